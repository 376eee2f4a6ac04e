"""The exercises: right answers pass, known mistakes get their own diagnosis, and nothing raises."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from specnb import check as package
from specnb import messages, store, theory
from specnb.check import check, exercises, function_exercise, hint, predict, predictions
from specnb.check.exercise import ChoiceExercise, NumberExercise, WrongAnswer, shown
from specnb.check.function_exercise import FunctionExercise
from specnb.records import Cycle, Run, Sampling

STUDY = store.load_m5_pro()
NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def run_of(*cycles: tuple[int, int]) -> Run:
    """A run of cycles given as (drafted, kept); what was tested and emitted follows."""
    return Run(
        prompt_tokens=(1,),
        cycles=tuple(
            Cycle(
                drafter="draft",
                context_length=10,
                drafted=(7,) * drafted,
                tested=min(kept + 1, drafted),
                kept=kept,
                emitted=(7,) * (kept + 1),
            )
            for drafted, kept in cycles
        ),
        drafter="draft",
        k=4,
        n_min=0,
        p_min=0.0,
        sampling=Sampling(),
        prefill_s=0.0,
    )


def best_k_facts(alpha: float, draft_ms: float) -> dict[str, object]:
    """The line of notebook 04's figure, on the M5 Pro's staircase."""
    ms, plain_ms = STUDY.verify_ms, STUDY.plain_ms
    line = {n - 1: theory.speedup(alpha, n - 1, draft_ms, ms, plain_ms) for n in ms if n > 1}
    return {"speedup_by_k": line, "alpha": alpha, "verify_ms": ms}


RUN = run_of((4, 2), (4, 4), (4, 0), (4, 1), (3, 1), (0, 0), (4, 3))
NOTHING_DRAFTED = run_of((0, 0), (0, 0))
FACTS = {
    "00-tokens-per-cycle": {"run": RUN},
    "00-acceptance": {"run": RUN},
    "04-alpha": {"run": RUN},
    "04-best-k": best_k_facts(0.6, STUDY.draft_ms),
    "04-verdict": {"low": 1.1, "high": 1.3},
    "06-gamma": {"draft_ms": STUDY.draft_ms, "verify_ms": STUDY.verify_ms},
    "06-free-draft": {"verify_ms": STUDY.verify_ms},
    "05-times-dearer": {"draft_parameters": 494_032_768},
    "05-possible": {"marginal": 25.0, "ceiling": 20.0},
    "08-mixture": {"shares": (0.8, 0.2), "speedups": (0.95, 2.0)},
    "08-tie": {"ratio": (0.94, 0.99)},
    "08-no-rescue": {"draft_ms": 3.0, "verify_ms": {1: 10.0, 2: 15.0, 3: 18.0, 4: 26.0, 5: 40.0}},
    "08-same-draft": {"yours": {1: 10.0, 8: 20.0}, "theirs": STUDY.verify_ms},
    "08-passes": {"emitted": 673, "drafted": 730, "kept": 526, "k": 5},
    "09-load": {"alpha": 0.5, "k": 3, "prices": {1: 1.78, 2: 1.62, 4: 1.78, 8: 2.1, 16: 2.8}},
    "09-p-min": {"rows": ((0.0, 0.6, 129.8), (0.3, 0.62, 131.3), (0.85, 0.89, 96.1))},
}

# Written apart from the exercises, from the definitions.
RIGHT = {
    "00-tokens-per-cycle": 18 / 7,
    "00-acceptance": 11 / 23,
    "01-pass-ms": 9 / 113.95 * 1000,
    "01-cliff": 9,
    "01-longest-draft": 7,
    "01-dip": 4,
    "02-expected": 1 + 0.7 + 0.7**2 + 0.7**3 + 0.7**4,
    "02-cycle-ms": 4 * 2.817 + 29.01,
    "02-speed": 1000 * (1 - 0.7**5) / 0.3 / (4 * 2.817 + 29.01),
    "02-break-even": 0.7611,
    "03-implied-acceptance": 0.2969,
    "03-why": "alpha",
    "04-alpha": 11 / 16,
    "04-best-k": 1,
    "04-verdict": "on",
    "07-state": "emitted",
    "07-sums": 0.2 + 0.3 + 0.2,
    "07-worst": 1000 / 57.6 / (4 * 2.817 + 29.01),
    "06-gamma": 2.817 / 18.15,
    "06-free-draft": 20.93 / 18.15 - 1,
    "06-free-on-m5": 2.841 * 1000 / 57.6 / 29.01,
    "06-second-head": "independence",
    "05-times-dearer": (2.817 / 17.074) / (0.494 / 7.62),
    "05-marginal": (638.74 - 462.96) * 1.048576 / (3.045 - 2.817),
    "05-possible": "no",
    "08-mixture": 1 / (0.8 / 0.95 + 0.2 / 2),
    "08-tie": "second",
    "08-no-rescue": 4,  # (4 * 3 + 40) / 5 = 10.4 ms a token at best, against 10 plain
    "08-same-draft": 2.0 / (44.77 / 18.15),
    "08-passes": 147,
    "09-load": 8,  # the first price above 1 + 0.5 + 0.25 + 0.125
    "09-band": 0.7064,
    "09-p-min": 0.3,
    "09-structural": "the log",
}

NUMBERS = [id for id, each in exercises().items() if isinstance(each, NumberExercise)]
CHOICES = [id for id, each in exercises().items() if isinstance(each, ChoiceExercise)]
EVERY_ID = list(exercises())
FUNCTIONS = ("03-solve-alpha", "04-look-up", "07-accept-loop", "07-rejection")


def facts_of(exercise_id: str) -> dict[str, object]:
    return FACTS.get(exercise_id, {})


def gives_away(message: str, truth: float) -> bool:
    """Whether the message holds the number, in any spelling of two digits or more (or the whole count)."""
    spellings = {shown(truth), f"{truth:.3g}", f"{truth:.2g}", f"{truth:.2f}", f"{truth:.3f}"}
    if truth == int(truth):
        spellings = {str(int(truth))}
    return any(re.search(rf"(?<![\d.]){re.escape(spelling)}(?![\d]|\.\d)", message) for spelling in spellings)


# --- every exercise ---------------------------------------------------------------------------


def test_the_exercises_are_the_promised_ones_with_unique_ids():
    written = [each.id for notebook in package.NOTEBOOKS for each in notebook.exercises(STUDY)]
    assert len(set(written)) == len(written)
    assert set(written) == set(EVERY_ID) == {*RIGHT, *FUNCTIONS}


@pytest.mark.parametrize("exercise_id", EVERY_ID)
@pytest.mark.parametrize("nothing", [None, ...])
def test_an_unanswered_exercise_says_so_and_asks_its_question(exercise_id, nothing):
    verdict = check(exercise_id, nothing, **facts_of(exercise_id))
    assert verdict.status == "unanswered"
    assert repr(verdict) == str(verdict) == f"not answered yet: {exercises()[exercise_id].question}"


@pytest.mark.parametrize("exercise_id", RIGHT)
def test_a_right_answer_is_right_and_says_why_it_matters(exercise_id):
    verdict = check(exercise_id, RIGHT[exercise_id], **facts_of(exercise_id))
    assert verdict.status == "right", verdict
    assert verdict.message.startswith("right: ")
    assert verdict.message.endswith(exercises()[exercise_id].why)


class Bomb:
    """Raises wherever it is touched."""

    def __float__(self):
        raise RuntimeError("no float")

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no eq")

    __hash__ = None


class TextBomb(str):
    def strip(self, *_):
        raise RuntimeError("no strip")

    casefold = strip


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raises_the_unspeakable(*_):
    raise Unspeakable


HOSTILE = [
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -1,
    1e300,
    "seven",
    "",
    b"9",
    TextBomb("9"),
    [],
    [9],
    {},
    object(),
    Bomb(),
    Bomb,
    1j,
    True,
    lambda: 1 / 0,
    lambda *_: 1 / 0,
    raises_the_unspeakable,
    lambda *_: exit(1),
    lambda *_: "seven",
    lambda *_: Bomb(),
    lambda *_: math.nan,
    lambda *_: (yield),
    print,
    max,
]


@pytest.mark.parametrize("exercise_id", EVERY_ID)
@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_no_answer_raises_or_passes(exercise_id, answer):
    verdict = check(exercise_id, answer, **facts_of(exercise_id))
    if answer is print and exercise_id in FUNCTIONS:  # it returns None, as an unwritten function does
        assert verdict.status == "unanswered"
    else:
        assert verdict.status in ("not it", "diagnosed")
        assert verdict.message.startswith("not it: ")
    assert "\n" not in verdict.message and "\x1b" not in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("seven", "without quotes"),
        ([], "of type list"),
        (math.nan, "0 / 0"),
        (math.inf, "division by 0"),
        (10**400, "OverflowError"),
        (Bomb(), "RuntimeError: no float"),
        (lambda: 1 / 0, "call it"),
    ],
)
def test_what_is_no_number_is_said_in_words(answer, words):
    assert words in check("01-cliff", answer).message


def test_an_unknown_exercise_names_the_known_ones():
    for ask in (lambda: check("99-nothing", 1), lambda: hint("99-nothing", 1)):
        with pytest.raises(KeyError, match=r"99-nothing.*01-cliff.*04-verdict"):
            ask()


@pytest.mark.parametrize("facts", [{}, {"run": RUN, "low": 1}, {"runs": RUN}])
def test_wrong_facts_are_the_notebooks_mistake_and_raise(facts):
    with pytest.raises(TypeError, match=r"'04-alpha' is checked with run="):
        check("04-alpha", None, **facts)


def test_a_missing_measurement_is_said():
    verdict = check("04-alpha", 0.7, run=None)
    assert verdict.status == "unmeasured" and "run is None" in verdict.message


@pytest.mark.parametrize(("exercise_id", "words"), [("00-acceptance", "nothing was drafted"), ("04-alpha", "no token")])
def test_a_run_without_drafts_has_nothing_to_check_against(exercise_id, words):
    verdict = check(exercise_id, 0.0, run=NOTHING_DRAFTED)
    assert verdict.status == "unmeasured" and words in verdict.message


# --- numbers ----------------------------------------------------------------------------------

MISTAKES = [
    pytest.param(id, mistake, id=f"{id}-{i}") for id in NUMBERS for i, mistake in enumerate(exercises()[id].wrong)
]


@pytest.mark.parametrize(("exercise_id", "mistake"), MISTAKES)
def test_each_known_mistake_gets_its_diagnosis_and_no_answer(exercise_id, mistake):
    facts = facts_of(exercise_id)
    exercise = exercises()[exercise_id]
    verdict = check(exercise_id, mistake.value(**facts), **facts)
    assert verdict.status == "diagnosed"
    assert mistake.diagnosis in verdict.message
    assert not gives_away(verdict.message, exercise.truth(**facts)), verdict


def test_the_listed_mistakes_are_those_that_readers_make():
    """Typed by hand from the texts, as a reader would compute them."""
    typed = {
        "00-tokens-per-cycle": {18 / 11: "emitted / kept", 11 / 7: "own token is missing", 11 / 23: "acceptance rate"},
        "00-acceptance": {11 / 16: "kept / tested", 18 / 23: "emitted / drafted", 1100 / 23: "per cent"},
        "01-pass-ms": {8.776: "N is forgotten", 113.95: "the rate itself", 0.0790: "in seconds", 12.66: "passes per"},
        "01-cliff": {8: "still cheap", 7: "draft length"},
        "01-longest-draft": {9: "read as a k", 8: "takes a row too"},
        "01-dip": {3: "dear side", 8: "nearly flat"},
        "02-expected": {1.773: "kept tokens only", 2.8: "own token is missing", 3.8: "tested", 2.533: "one term short"},
        "02-cycle-ms": {38.498: "T(4)", 31.827: "counted once", 43.095: "one token too many", 29.01: "pass alone"},
        "02-speed": {14.52: "milliseconds per token", 24.83: "cycles per second", 0.06885: "per millisecond"},
        "02-break-even": {0.7454: "T(1)", 0.7592: "one more"},
        "03-implied-acceptance": {3.078 / 7: "kept draft", 3.078 / 8: "could emit", 0.692: "is alpha"},
        "04-alpha": {11 / 23: "acceptance rate"},
        "04-best-k": {3: "costs nothing", 7: "before the cliff", 31: "largest k"},
        "06-gamma": {6.443: "inverse", 0.1346: "two rows", 2.817: "milliseconds"},
        "06-free-draft": {1.153: "must emit", 0.8672: "upside down", 0.5766: "share of k + 1"},
        "06-free-on-m5": {1.2246: "still paid for", 1.3884: "with itself", 1.7775: "measured plain speed"},
        "07-sums": {0.31: "independent draws", 0.3: "greedy draft", 0.7556: "weigh each"},
        "07-worst": {0.5985: "leaves out the drafts", 2.3200: "turn it over", 0: "emits one token", 1: "were free"},
        "08-mixture": {1.16: "mean of the speedups by share", 1.475: "plain mean", 0.9421: "time it takes"},
        "08-no-rescue": {0: "cost nothing", 1: "first costs more"},
        "08-same-draft": {0.4467: "compares milliseconds", 1.2333: "upside down", 2.4667: "a pass costs"},
        "08-passes": {146: "shorter", 673: "plain decoding", 204: "throws away"},
        "09-load": {0: "always right", 4: "still pays"},
        "09-band": {0.1498: "rate itself", 2.397: "cycle keeps", 3.397: "tokens per cycle", 0.5826: "one token more"},
        "09-p-min": {0.85: "another column", 131.3: "its speed"},
        "05-times-dearer": {0.165: "gamma itself", 1.996: "stands twice", 0.0648: "without the", 0.393: "upside down"},
        "05-marginal": {771.0: "MiB per", 752.9: "GiB per", 220.0: "larger file", 172.3: "smaller file"},
    }
    assert set(typed) == set(NUMBERS)
    for exercise_id, answers in typed.items():
        for answer, words in answers.items():
            verdict = check(exercise_id, answer, **facts_of(exercise_id))
            assert verdict.status == "diagnosed" and words in verdict.message, (exercise_id, answer, verdict)


@pytest.mark.parametrize("exercise_id", NUMBERS)
def test_hints_questions_and_nudges_keep_the_number_to_themselves(exercise_id):
    exercise = exercises()[exercise_id]
    facts = facts_of(exercise_id)
    for text in (exercise.question, exercise.nudge, *exercise.hints):
        if not facts:
            assert not gives_away(text, exercise.truth()), text


@pytest.mark.parametrize("exercise_id", NUMBERS)
def test_the_tolerance_is_where_it_is_said_to_be(exercise_id):
    exercise, facts = exercises()[exercise_id], facts_of(exercise_id)
    truth = exercise.truth(**facts)
    for sign in (-1, 1):
        inside = truth * (1 + sign * 0.99 * exercise.tolerance)
        outside = truth * (1 + sign * 1.01 * exercise.tolerance) if exercise.tolerance else truth + sign * 0.01
        assert check(exercise_id, inside, **facts).status == "right"
        assert check(exercise_id, outside, **facts).status != "right"


@pytest.mark.parametrize("exercise_id", [id for id in NUMBERS if exercises()[id].tolerance])
def test_three_significant_digits_are_enough(exercise_id):
    facts = facts_of(exercise_id)
    rounded = float(f"{exercises()[exercise_id].truth(**facts):.3g}")
    assert check(exercise_id, rounded, **facts).status == "right"


def test_two_digits_that_fit_a_mistake_as_well_are_not_called_one():
    verdict = check("02-break-even", 0.76)
    assert verdict.status == "not it" and "digits" in verdict.message


def test_an_unforeseen_answer_gets_the_nudge():
    verdict = check("01-cliff", 24)
    assert verdict.status == "not it" and verdict.message == f"not it: {exercises()['01-cliff'].nudge}"


def test_numbers_of_other_types_count():
    from decimal import Decimal
    from fractions import Fraction

    import numpy as np

    for nine in (9.0, Decimal(9), Fraction(9), np.int64(9), np.float32(9), np.array(9)):
        assert check("01-cliff", nine).status == "right", type(nine)


def test_a_mistake_that_cannot_be_told_from_the_truth_is_none():
    """With one token per draft every drafted token is tested, so kept / tested is kept / drafted."""
    short = run_of((1, 1), (1, 0), (1, 1))
    assert short.acceptance_rate == short.alpha_tested
    for exercise_id in ("00-acceptance", "04-alpha"):
        assert check(exercise_id, 2 / 3, run=short).status == "right"


def test_a_mistake_within_the_tolerance_is_still_seen_when_computed_exactly():
    near = run_of(*[(4, 4)] * 100, (4, 2))
    assert near.acceptance_rate != near.alpha_tested
    assert near.alpha_tested == pytest.approx(near.acceptance_rate, rel=0.005)
    assert check("00-acceptance", near.alpha_tested, run=near).status == "diagnosed"
    assert check("00-acceptance", near.acceptance_rate, run=near).status == "right"
    assert check("00-acceptance", round(near.acceptance_rate, 3), run=near).status == "right"


def test_a_mistake_that_cannot_be_made_is_passed_over():
    """Nothing kept: emitted / kept does not exist. A text cut short inside a draft: no alpha solves it."""
    refused = run_of((4, 0), (4, 0))
    assert check("00-tokens-per-cycle", 1, run=refused).status == "right"
    assert check("00-acceptance", 0, run=refused).status == "right"
    cut = Run(
        prompt_tokens=(1,),
        cycles=(Cycle("draft", 10, (7, 7), 0, 0, ()), Cycle("draft", 10, (7,), 1, 1, (7,))),
        drafter="draft",
        k=2,
        n_min=0,
        p_min=0.0,
        sampling=Sampling(),
        prefill_s=0.0,
    )
    with pytest.raises(ValueError):
        theory.solve_alpha_mixed(cut.tokens_per_cycle, cut.draft_lengths)
    assert check("04-alpha", 1, run=cut).status == "right"


def test_mistakes_with_the_same_value_are_all_named():
    facts = best_k_facts(0.95, 6.0)
    free = theory.best_k(0.95, 0.0, facts["verify_ms"], STUDY.plain_ms)
    assert free == max(facts["verify_ms"]) - 1 != theory.best_k(0.95, 6.0, facts["verify_ms"], STUDY.plain_ms)
    message = check("04-best-k", free, **facts).message
    assert "costs nothing" in message and " Or: " in message and "largest k" in message


def test_no_draft_that_pays_is_k_zero():
    facts = best_k_facts(0.05, STUDY.draft_ms)
    assert check("04-best-k", 0, **facts).status == "right"
    assert check("04-best-k", 1, **facts).status != "right"


def test_the_published_truths_are_computed_from_the_study():
    slower = store.load_m5_pro().throughput[9]
    assert exercises()["01-pass-ms"].truth() == pytest.approx(9000 / slower)
    assert exercises()["01-pass-ms"].truth() == pytest.approx(STUDY.curve.median_ms[9], abs=0.01)


# --- choices ----------------------------------------------------------------------------------


def test_choices_ignore_case_and_spaces():
    assert check("03-why", "  Alpha ").status == "right"
    assert check("04-verdict", "ON", low=1.1, high=1.3).status == "right"


@pytest.mark.parametrize(("low", "high"), [(1.1, 1.3), (0.5, 0.9), (0.9, 1.1), (1.0, 1.2), (0.8, 1.0)])
def test_the_verdict_follows_the_ends_of_the_interval(low, high):
    truth = "on" if low > 1 else "off" if high < 1 else "unclear"
    diagnoses = exercises()["04-verdict"].diagnoses
    for choice in ("on", "off", "unclear"):
        verdict = check("04-verdict", choice, low=low, high=high)
        if choice == truth:
            assert verdict.status == "right"
        else:
            assert verdict.message == f"not it: {diagnoses[choice]}"
            assert not re.search(rf"\b{truth}\b", verdict.message)


def test_an_interval_that_is_none_raises():
    for low, high in ((1.2, 1.1), (math.nan, 1.1)):
        with pytest.raises(ValueError, match="from low to high"):
            check("04-verdict", "on", low=low, high=high)


@pytest.mark.parametrize("choice", ["acceptance", "tokens per cycle"])
def test_what_changes_with_k_is_told_how(choice):
    verdict = check("03-why", choice)
    assert verdict.status == "diagnosed" and "alpha" not in verdict.message


def test_an_answer_outside_the_options_lists_them():
    verdict = check("03-why", "gamma")
    assert verdict.status == "not it"
    assert all(f'"{option}"' in verdict.message for option in exercises()["03-why"].options)


@pytest.mark.parametrize("exercise_id", CHOICES)
def test_each_option_that_can_be_wrong_has_a_diagnosis(exercise_id):
    exercise = exercises()[exercise_id]
    never_wrong = set(exercise.options) - set(exercise.diagnoses)
    assert never_wrong == (
        {
            "03-why": {"alpha"},
            "06-second-head": {"independence"},
            "07-state": {"emitted"},
            "09-structural": {"the log"},
        }.get(exercise_id, set())
    )


# --- functions --------------------------------------------------------------------------------


def emits(alpha: float, terms: int) -> float:
    return (1 - alpha**terms) / (1 - alpha)


def bisected(target: float, terms: int, steps: int = 60) -> float:
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if emits(middle, terms) < target else (low, middle)
    return (low + high) / 2


def solve_on_a_grid(tokens_per_cycle, k):
    return min((abs(theory.expected_tokens(i / 1000, k) - tokens_per_cycle), i / 1000) for i in range(1001))[1]


def without_edges(tokens_per_cycle, k):
    if tokens_per_cycle in (1, k + 1):
        raise ValueError("no sign change")
    return bisected(tokens_per_cycle, k + 1)


def wrong_at_the_top(tokens_per_cycle, k):
    return 0.0 if tokens_per_cycle == k + 1 else bisected(tokens_per_cycle, k + 1)


def by_newton_from_nowhere(tokens_per_cycle, k):
    raise ArithmeticError("did not\nconverge")


def unwritten(tokens_per_cycle, k): ...


def not_implemented(tokens_per_cycle, k):
    raise NotImplementedError


@pytest.mark.parametrize(
    "solve",
    [theory.solve_alpha, lambda tokens_per_cycle, k: bisected(tokens_per_cycle, k + 1), solve_on_a_grid],
)
def test_a_solver_that_works_is_right(solve):
    verdict = check("03-solve-alpha", solve)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize(
    ("solve", "words"),
    [
        (lambda tokens, k: (tokens - 1) / k, "the acceptance rate"),
        (lambda tokens, k: bisected(tokens, k), "one term short"),
        (lambda tokens, k: 1 - 1 / tokens, "a draft without end"),
        (without_edges, "between the extremes, but for tokens_per_cycle = 1 and k = 1 it raises ValueError: no sign"),
        (wrong_at_the_top, "between the extremes, but for tokens_per_cycle = 2 and k = 1 it returns 0."),
        (by_newton_from_nowhere, "it raises ArithmeticError: did not converge."),
        (lambda tokens: tokens, "it raises TypeError"),
        (lambda tokens, k: [0.5], "of type list"),
        (lambda tokens, k: math.nan, "NaN"),
    ],
)
def test_each_known_way_to_go_wrong_is_diagnosed(solve, words):
    verdict = check("03-solve-alpha", solve)
    assert verdict.status == "diagnosed" and words in verdict.message, verdict


def test_an_unforeseen_solver_is_told_what_its_alpha_would_give():
    verdict = check("03-solve-alpha", lambda tokens, k: bisected(tokens, k + 1, steps=3))
    assert verdict.status == "not it" and "Put back into expected_tokens" in verdict.message
    assert "between 0 and 1" in check("03-solve-alpha", lambda tokens, k: 7 * tokens).message


@pytest.mark.parametrize("solve", [unwritten, not_implemented])
def test_a_function_without_a_body_is_unanswered(solve):
    verdict = check("03-solve-alpha", solve)
    assert verdict.status == "unanswered" and verdict.message.startswith("not answered yet: ")


def test_a_forgotten_return_on_one_way_is_diagnosed():
    verdict = check("03-solve-alpha", lambda tokens, k: None if k > 2 else bisected(tokens, k + 1))
    assert verdict.status == "diagnosed" and "returns nothing" in verdict.message


def test_a_called_solver_is_not_a_function():
    assert "without brackets" in check("03-solve-alpha", 0.692).message


def test_a_loop_without_end_is_told_and_stopped(monkeypatch):
    monkeypatch.setattr(function_exercise, "TIME_LIMIT_S", 0.2)

    def endless(tokens_per_cycle, k):
        while True:
            tokens_per_cycle = tokens_per_cycle / 1  # before the try: see outcomes_within on CPython 3.10
            try:
                tokens_per_cycle = tokens_per_cycle / 1
            except Exception:
                pass

    verdict = check("03-solve-alpha", endless)
    assert verdict.status == "diagnosed" and "still busy" in verdict.message and "k = 1" in verdict.message
    for _ in range(1000):
        if not any(thread.name == "answer" for thread in threading.enumerate()):
            break
        time.sleep(0.01)
    assert not any(thread.name == "answer" for thread in threading.enumerate())


def test_a_loop_that_never_ends_at_the_edges_says_where(monkeypatch):
    monkeypatch.setattr(function_exercise, "TIME_LIMIT_S", 0.5)

    def by_exact_hit(tokens_per_cycle, k):
        while tokens_per_cycle == k + 1:
            pass
        return theory.solve_alpha(tokens_per_cycle, k)

    assert "for tokens_per_cycle = 2 and k = 1 it was still busy" in check("03-solve-alpha", by_exact_hit).message


def test_a_mistake_is_only_made_when_every_case_shows_it():
    exercise = exercises()["03-solve-alpha"]
    assert isinstance(exercise, FunctionExercise)
    lines = [WrongAnswer(lambda tokens, k: theory.solve_alpha(tokens, k), "")]
    assert all(exercise.truth(*case) == pytest.approx(lines[0].value(*case)) for case in exercise.cases)
    half_right = lambda tokens, k: (tokens - 1) / k if k < 5 else 0.5  # noqa: E731
    assert check("03-solve-alpha", half_right).status == "not it"


# --- hints ------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise_id", EVERY_ID)
def test_hints_come_step_by_step_and_end(exercise_id):
    hints = exercises()[exercise_id].hints
    assert len(hints) >= 2
    for step, text in enumerate(hints, start=1):
        assert repr(hint(exercise_id, step)) == f"hint {step} of {len(hints)}: {text}"
    assert all(a != b for a, b in pairwise(hints))
    assert hint(exercise_id) == hint(exercise_id, 1)
    assert "no more hints" in hint(exercise_id, len(hints) + 1).message


@pytest.mark.parametrize("step", [0, -1, None, "one", 1.5])
def test_a_step_that_is_none_is_said(step):
    assert "numbered from 1" in hint("01-cliff", step).message


# --- predictions ------------------------------------------------------------------------------


@pytest.fixture
def kept_in(monkeypatch, tmp_path):
    """The file of this test's guesses."""
    monkeypatch.setenv("SPECNB_GUESSES", str(tmp_path / "guesses.json"))
    return tmp_path / "guesses.json"


def test_a_guess_is_compared_and_remembered(kept_in):
    verdict = predict("01-t8", 20, truth=44.77)
    assert repr(verdict) == "you guessed 20, the answer is 44.77: 55.3% too low."
    assert "25% too high" in predict("02-k11", 125, truth=100).message
    assert "exactly right" in predict("00-speedup", 9, truth=9).message
    assert [(made.name, made.guess, made.truth) for made in predictions().guesses] == [
        ("01-t8", 20, 44.77),
        ("02-k11", 125, 100),
        ("00-speedup", 9, 9),
    ]
    assert predictions().guesses[0].miss == pytest.approx((20 - 44.77) / 44.77)


def test_guesses_outlive_the_kernel(kept_in):
    predict("01-t8", 2, truth=4)
    code = "from specnb.check import predictions; print(predictions().guesses[0].guess)"
    assert float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) == 2.0


def test_running_a_cell_again_replaces_its_guess(kept_in):
    predict("01-t8", 1, truth=2)
    predict("02-k11", 1, truth=2)
    predict("01-t8", 3, truth=2)
    assert [(made.name, made.guess) for made in predictions().guesses] == [("01-t8", 3), ("02-k11", 1)]


@pytest.mark.parametrize("nothing", [None, ...])
def test_no_guess_shows_the_answer_and_is_not_remembered(kept_in, nothing):
    assert repr(predict("01-t8", nothing, truth=44.77)) == "no guess made.\nThe answer is 44.77."
    assert predictions().guesses == ()
    assert not kept_in.exists()


@pytest.mark.parametrize("guess", HOSTILE, ids=range(len(HOSTILE)))
def test_no_guess_raises(kept_in, guess):
    message = predict("01-t8", guess, truth=3).message
    assert message.startswith(("no guess yet: ", "you guessed "))
    assert len(message) < 300


def test_a_truth_of_zero_has_no_per_cent(kept_in):
    assert "off by 2" in predict("07-different", 2, truth=0).message
    assert predictions().guesses[0].miss is None
    assert "too high" in predict("02-k11", -1, truth=-2).message


def test_a_truth_that_was_not_measured_is_said_and_one_that_is_no_number_raises(kept_in):
    assert predict("01-t8", 2, truth=None).status == "unmeasured"
    with pytest.raises(ValueError, match="truth of prediction '01-t8'"):
        predict("01-t8", 2, truth="fast")
    with pytest.raises(KeyError, match="no prediction '01-t9'"):
        predict("01-t9", 2, truth=2)
    assert predictions().guesses == ()


@pytest.mark.parametrize("spoilt", ["", "[]", '{"schema": "specnb/run/1"}', "\x00"])
def test_a_spoilt_file_of_guesses_is_replaced(kept_in, spoilt):
    kept_in.write_text(spoilt)
    assert predictions().guesses == ()
    predict("01-t8", 2, truth=4)
    assert len(predictions().guesses) == 1


def test_a_guess_that_cannot_be_kept_is_compared_all_the_same(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPECNB_GUESSES", str(tmp_path / "file" / "guesses.json"))
    assert "50% too low. (It could not be kept" in predict("01-t8", 2, truth=4).message


def test_a_guess_in_a_notebook_is_drawn(kept_in, monkeypatch):
    drawn = []
    monkeypatch.setattr("specnb.plots.show", lambda drawing, alt: drawn.append(alt))
    predict("01-t8", 2, truth=4)._ipython_display_()
    assert drawn == ["Your guess is 50.0% too low. T(8) in units of T(1): guessed 2.00×, in truth 4.00×."]


def test_every_prediction_of_the_notebooks_is_in_the_table_and_in_their_order():
    texts = [path.read_text(encoding="utf-8") for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    asked = [name for text in texts for name in re.findall(r'predict\(\\"([^"\\]+)', text)]
    assert asked == list(messages.GUESSED)
    assert len(asked) >= 15
