"""Exercises for notebook cells: ``check`` an answer, ask for a ``hint``, ``predict`` before looking.

An unanswered exercise says so and no answer raises, so a notebook always runs through. The exercises
stand in one file per notebook; each of these has a function ``exercises(study)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .. import store
from . import (
    notebook_00,
    notebook_01,
    notebook_02,
    notebook_03,
    notebook_04,
    notebook_05,
    notebook_06,
    notebook_07,
    notebook_08,
    notebook_09,
)
from .exercise import Exercise, Verdict, is_unanswered
from .guesses import predict, predictions

__all__ = ["Verdict", "check", "exercises", "hint", "predict", "predictions"]

NOTEBOOKS = (
    notebook_00,
    notebook_01,
    notebook_02,
    notebook_03,
    notebook_04,
    notebook_05,
    notebook_06,
    notebook_07,
    notebook_08,
    notebook_09,
)


@cache
def exercises() -> Mapping[str, Exercise]:
    """Every exercise by its id, in the order of the notebooks."""
    study = store.load_m5_pro()
    found = [exercise for notebook in NOTEBOOKS for exercise in notebook.exercises(study)]
    return MappingProxyType({exercise.id: exercise for exercise in found})


def check(exercise_id: str, answer: object, **facts: object) -> Verdict:
    """Judges an answer: "not answered yet" for None and ..., "right", or why it is wrong.

    facts: what the truth depends on where that is the reader's own measurement, for example
    ``check("00-acceptance", answer, run=run)``; one that is None makes the verdict "unmeasured".
    No answer raises. KeyError for an unknown exercise, TypeError for facts it does not ask for or lacks.
    """
    exercise = _find(exercise_id)
    _require(exercise, facts)
    if is_unanswered(answer):
        return exercise.unanswered()
    if absent := [name for name, value in facts.items() if value is None]:
        return Verdict("unmeasured", f"nothing to check against: {', '.join(absent)} is None. Measure it first.")
    return exercise.judge(answer, facts)


def hint(exercise_id: str, step: int = 1) -> Verdict:
    """Hint 1, 2, ... of an exercise; a step that it does not have is said, never raised."""
    hints = _find(exercise_id).hints
    if isinstance(step, int) and 1 <= step <= len(hints):
        return Verdict("hint", f"hint {step} of {len(hints)}: {hints[step - 1]}")
    if isinstance(step, int) and step > len(hints):
        return Verdict("hint", f"no more hints: this exercise has {len(hints)}.")
    return Verdict("hint", f"hints are numbered from 1 to {len(hints)}.")


def _find(exercise_id: str) -> Exercise:
    known = exercises()
    if exercise_id not in known:
        raise KeyError(f"There is no exercise {exercise_id!r}. The exercises are: {', '.join(known)}.")
    return known[exercise_id]


def _require(exercise: Exercise, facts: Mapping[str, object]) -> None:
    if set(facts) != set(exercise.facts):
        needs = ", ".join(f"{name}=" for name in exercise.facts) or "nothing but the answer"
        got = ", ".join(f"{name}=" for name in facts) or "nothing else"
        raise TypeError(f"Exercise {exercise.id!r} is checked with {needs}; got {got}.")
