"""Every diagnosis of every exercise is reached by an answer that makes the mistake; a new one has to be as well."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from test_check import FACTS

from specnb import theory
from specnb.check import check, exercises, function_exercise, rule_exercise
from specnb.check.exercise import ChoiceExercise, Exercise, NumberExercise, Verdict
from specnb.check.function_exercise import FunctionExercise
from specnb.check.rule_exercise import DistributionExercise, TokensExercise

OTHER_FACTS = {
    "04-verdict": ({"low": 0.8, "high": 0.9}, {"low": 0.9, "high": 1.1}),
    "05-possible": ({"marginal": 15.0, "ceiling": 20.0},),
    "08-tie": ({"ratio": (0.98, 1.07)}, {"ratio": (1.02, 1.09)}),
}
"""Where an option that is right under FACTS is wrong."""


def wrong_only_at_the_ends(tokens_per_cycle, k):
    return 0.5 if tokens_per_cycle == k + 1 else theory.solve_alpha(tokens_per_cycle, k)


def endless(*_):
    while True:
        pass


def right_unless_short(tokens, n, m):
    tokens[len(tokens) - n - 1]  # not there in a short text, where the index falls below -len(tokens)
    return exercises()["04-look-up"].truth(tokens, n, m)


OTHER_ANSWERS = {
    ("03-solve-alpha", "edges_nudge"): wrong_only_at_the_ends,
    ("03-solve-alpha", "endless_nudge"): endless,
    ("04-look-up", "edges_nudge"): right_unless_short,
    ("07-rejection", "as_seldom_as_match"): lambda token, p_target, p_draft, random: drawn(p_target, random),
}
"""Answers for what an exercise says beside its list of mistakes."""


def drawn(p, random):
    return int((random.random() * p.sum() >= p.cumsum()).sum())


def of_tuples(emits):
    """The mistake as an answer, which is given lists."""
    return lambda *case: emits(*(tuple(value) if isinstance(value, list) else value for value in case))


def emitting(mistake):
    """A rule of verification whose tokens follow the distribution to which the mistake leads."""
    of_pair = cache(lambda target, draft: np.asarray(mistake.emits(np.array(target), np.array(draft)), float))
    return lambda token, p_target, p_draft, random: drawn(of_pair(tuple(p_target), tuple(p_draft)), random)


def ways(exercise: Exercise) -> list[tuple[str, object, dict[str, object]]]:
    """(diagnosis, an answer that should get it, the facts it is judged by), for every diagnosis there is."""
    facts = FACTS.get(exercise.id, {})
    if isinstance(exercise, ChoiceExercise):
        every = (facts, *OTHER_FACTS.get(exercise.id, ()))
        wrong_by = lambda option: next((f for f in every if exercise.truth(**f) != option), None)  # noqa: E731
        return [(diagnosis, option, wrong_by(option)) for option, diagnosis in exercise.diagnoses.items()]
    if isinstance(exercise, NumberExercise):
        return [(mistake.diagnosis, mistake.value(**facts), facts) for mistake in exercise.wrong]
    if isinstance(exercise, FunctionExercise):
        known, beside = [(m.diagnosis, m.value) for m in exercise.wrong], ("edges_nudge", "endless_nudge")
    elif isinstance(exercise, TokensExercise):
        known, beside = [(m.diagnosis, of_tuples(m.emits)) for m in exercise.wrong], ("edges_nudge",)
    elif isinstance(exercise, DistributionExercise):
        known, beside = [(m.diagnosis, emitting(m)) for m in exercise.wrong], ("as_seldom_as_match",)
    else:
        raise TypeError(f"Say here how to reach the diagnoses of a {type(exercise).__name__}.")
    others = [(getattr(exercise, name), OTHER_ANSWERS[exercise.id, name]) for name in beside if getattr(exercise, name)]
    return [(diagnosis, answer, facts) for diagnosis, answer in known + others]


WAYS = [pytest.param(id, *way, id=f"{id}-{i}") for id, each in exercises().items() for i, way in enumerate(ways(each))]


def judged(exercise_id: str, answer: object, facts: dict[str, object] | None) -> Verdict:
    assert facts is not None, "no facts are given under which this option is wrong"
    return check(exercise_id, answer, **facts)


@pytest.mark.parametrize(("exercise_id", "diagnosis", "answer", "facts"), WAYS)
def test_each_mistake_gets_its_own_diagnosis(exercise_id, diagnosis, answer, facts, monkeypatch):
    for module in (function_exercise, rule_exercise):
        monkeypatch.setattr(module, "TIME_LIMIT_S", 0.3 if answer is endless else 10.0)
    verdict = judged(exercise_id, answer, facts)
    assert verdict.status == "diagnosed" and diagnosis in verdict.message, verdict


@pytest.mark.parametrize("exercise_id", exercises())
def test_every_exercise_knows_two_mistakes_or_more_and_tells_them_apart(exercise_id):
    diagnoses = [diagnosis for diagnosis, _, _ in ways(exercises()[exercise_id])]
    assert len(diagnoses) == len(set(diagnoses)) >= 2
    assert all(diagnosis.endswith((".", "?", ")")) for diagnosis in diagnoses)


@pytest.mark.parametrize("exercise_id", [id for id, each in exercises().items() if isinstance(each, ChoiceExercise)])
def test_no_hint_nor_diagnosis_says_which_option_is_right(exercise_id):
    exercise = exercises()[exercise_id]
    for facts in (FACTS.get(exercise_id, {}), *OTHER_FACTS.get(exercise_id, ())):
        truth = exercise.truth(**facts)
        for text in (exercise.nudge, *exercise.hints) if not facts else ():
            assert not re.search(rf'"{truth}"|\b(answer is|it is) {truth}\b', text), text
        for option in set(exercise.diagnoses) - {truth}:
            assert f'"{truth}"' not in check(exercise_id, option, **facts).message


# --- the look-up -----------------------------------------------------------------------------


def looked_up(tokens, n, m):
    for place in range(len(tokens) - n - 1, -1, -1):
        if tokens[place : place + n] == tokens[-n:]:
            return tokens[place + n : place + n + m]
    return []


def by_list(tokens, n, m):
    found = [i for i in range(len(tokens) - n) if tokens[i : i + n] == tokens[-n:]]
    return np.array(tokens[found[-1] + n :][:m]) if found else ()


@pytest.mark.parametrize("answer", [looked_up, by_list])
def test_any_right_look_up_passes(answer):
    assert check("04-look-up", answer).status == "right"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda tokens, n, m: looked_up(tokens, n, m) or None, "returns nothing"),
        (lambda tokens, n, m: tokens.index(99), "for tokens = [1, 2, 3, 4, 1, 2] and n = 2 and m = 2 it raises Val"),
        (lambda tokens, n, m: tokens[:m], "it returns [1, 2]. Which n tokens"),
        (lambda tokens: tokens, "takes 1 positional argument"),
    ],
)
def test_an_unforeseen_look_up_is_shown_a_case(answer, words):
    verdict = check("04-look-up", answer)
    assert verdict.status == "not it" and words in verdict.message, verdict
