"""Exercises whose answer is a function: it is called on many cases, under a time limit."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from .exercise import Exercise, Unreadable, Verdict, WrongAnswer, as_number, diagnosed, is_unanswered, said, shown

TIME_LIMIT_S = 2.0
"""For all cases together. A bisection needs milliseconds."""

Case = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call. value: the number returned; None: none was, and ``problem`` says what happened instead.

    blank: the call shows a function that nobody has written yet.
    """

    case: Case
    value: float | None = None
    problem: str = ""
    blank: bool = False


class _TimeUp(BaseException):
    """Raised inside the worker. No Exception, so an ``except Exception`` in the answer lets it through."""


def outcomes_within(
    function: Callable[..., object],
    cases: Sequence[Case],
    limit_s: float,
    read: Callable[[object], object] = as_number,
) -> tuple[Outcome, ...]:
    """What the function does on each case; shorter than ``cases`` when the time was up.

    read: makes a value of what was returned; raises Unreadable where it is of the wrong kind.

    It runs in a thread of its own, which is ended by an exception when the time is up: a thread that
    loops for ever would slow down every measurement after it. One that waits inside C code cannot be
    ended so; it is a daemon and ends with the kernel. (CPython 3.10 never interrupts a loop whose body
    begins with ``try``, in any thread; newer versions do.)
    """
    outcomes: list[Outcome] = []

    def work() -> None:
        with suppress(_TimeUp):
            for case in cases:
                outcomes.append(_outcome(function, case, read))

    worker = threading.Thread(target=work, name="answer", daemon=True)
    worker.start()
    try:
        worker.join(limit_s)
        done = tuple(outcomes)
    finally:  # also when the reader interrupts the kernel
        if worker.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident or 0), ctypes.py_object(_TimeUp))
    return done


def _outcome(function: Callable[..., object], case: Case, read: Callable[[object], object]) -> Outcome:
    try:
        result = function(*case)
    except _TimeUp:
        raise
    except NotImplementedError as error:
        return Outcome(case, problem=f"it raises {said(error)}.", blank=True)
    except BaseException as error:  # SystemExit and KeyboardInterrupt raised by the answer are its answer
        return Outcome(case, problem=f"it raises {said(error)}.")
    if is_unanswered(result):
        return Outcome(case, problem="it returns nothing; is there a return on every way through it?", blank=True)
    try:
        return Outcome(case, value=read(result))
    except Unreadable as error:
        return Outcome(case, problem=f"what it returns is no answer: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionExercise(Exercise):
    """The answer is a function of the named arguments that returns a number.

    arguments: their names, for messages. cases: ordinary arguments. edges: the legal extremes, where
    formulas divide by zero. truth and each mistake's value take one case. tolerance: largest absolute
    error. edges_nudge: said when only the edges fail. endless_nudge: said when the time was up.
    put_back: (value, *case) -> a sentence on what the wrong value would mean, from which the reader can
    see that it is wrong.
    """

    truth: Callable[..., float]
    arguments: tuple[str, ...]
    cases: tuple[Case, ...]
    edges: tuple[Case, ...]
    wrong: tuple[WrongAnswer, ...]
    tolerance: float
    edges_nudge: str
    endless_nudge: str
    put_back: Callable[..., str]

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        if not callable(answer):
            return self.not_it(f"that is of type {type(answer).__name__}; give the function itself, without brackets.")
        everything = self.cases + self.edges
        outcomes = outcomes_within(answer, everything, TIME_LIMIT_S)
        if outcomes and all(outcome.blank for outcome in outcomes):
            return Verdict("unanswered", f"{self.unanswered().message} So far {outcomes[0].problem}")
        if len(outcomes) < len(everything):
            at = self._at(everything[len(outcomes)])
            return _wrong(f"{at} it was still busy when {TIME_LIMIT_S:g} s were over. {self.endless_nudge}")
        failed = [outcome for outcome in outcomes if not self._equal(outcome, self.truth(*outcome.case))]
        if not failed:
            return self.right(f"all {len(everything)} cases agree")
        first, at = failed[0], self._at(failed[0].case)
        if first.case in self.edges:
            return _wrong(f"all is well between the extremes, but {at} {_happened(first)} {self.edges_nudge}")
        inside = outcomes[: len(self.cases)]
        if mistakes := [mistake for mistake in self.wrong if self._made(mistake, inside)]:
            return diagnosed(mistakes)
        if first.value is None:
            return _wrong(f"{at} {first.problem}")
        return self.not_it(f"{at} {_happened(first)} {self.put_back(first.value, *first.case)}")

    def _equal(self, outcome: Outcome, value: float) -> bool:
        return outcome.value is not None and abs(outcome.value - value) <= self.tolerance

    def _made(self, mistake: WrongAnswer, outcomes: Sequence[Outcome]) -> bool:
        """Whether every outcome is what the mistake leads to, wherever it leads to anything."""
        values = [(outcome, mistake.value(*outcome.case)) for outcome in outcomes]
        return all(self._equal(outcome, value) for outcome, value in values if value is not None)

    def _at(self, case: Case) -> str:
        return "for " + " and ".join(f"{name} = {shown(v)}" for name, v in zip(self.arguments, case, strict=True))


def _wrong(because: str) -> Verdict:
    return Verdict("diagnosed", f"not it: {because}")


def _happened(outcome: Outcome) -> str:
    return outcome.problem if outcome.value is None else f"it returns {shown(outcome.value)}."
