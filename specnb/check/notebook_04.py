"""Exercises of the notebook on live runs: alpha by counting, the best k, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping

from .. import theory
from ..records import PublishedStudy, Run
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer


def exercises(_study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_alpha(), _best_k(), _verdict())


def _alpha() -> Exercise:
    return NumberExercise(
        id="04-alpha",
        question="what is the live alpha of your run, by counting?",
        why="With alpha and your staircase the ledger tells the speed at every k, from one run at one k.",
        nudge="Count only the tokens that verification looked at. How many of those were kept?",
        hints=(
            "Alpha is the chance of a token that is tested.",
            "A cycle tests its draft up to and including the first refusal.",
            "Both counts are in the run: run.kept and run.tested.",
        ),
        facts=("run",),
        truth=lambda run: run.alpha_tested,
        unmeasured="no token was tested in this run.",
        wrong=(
            WrongAnswer(
                lambda run: run.acceptance_rate,
                "that is the acceptance rate. It divides by every drafted token, those behind a refusal included, "
                "which had no chance.",
            ),
            WrongAnswer(
                _solved_alpha,
                "that is alpha solved from tokens per cycle: another estimate of the same thing, and a good one, but "
                "the question is for the one by counting. (If you rounded, give a digit more.)",
            ),
        ),
    )


def _solved_alpha(run: Run) -> float | None:
    try:
        return theory.solve_alpha_mixed(run.tokens_per_cycle, run.draft_lengths)
    except ValueError:  # a text that ends inside a draft may emit less than a token per pass
        return None


def _best_k() -> Exercise:
    return NumberExercise(
        id="04-best-k",
        question="which k has the highest predicted speedup on your machine (0 if none pays)?",
        why="The best draft ends where one more token costs more than it is likely to bring, on this machine with "
        "this drafter.",
        nudge="Compute the speedup for every k whose pass was measured, compare with 1, and take the highest.",
        hints=(
            "theory.speedup(alpha, k, draft_ms, verify_ms, plain_ms) is the prediction for one k.",
            "Try each k for which N = k + 1 was measured, and no other.",
            "If no speedup is above 1, leaving it off is best, and that is k = 0.",
        ),
        facts=("alpha", "draft_ms", "verify_ms", "plain_ms"),
        truth=theory.best_k,
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda alpha, draft_ms, verify_ms, plain_ms: theory.best_k(alpha, 0.0, verify_ms, plain_ms),
                "that is the best k of a draft that costs nothing. Yours is paid for by the token.",
            ),
            WrongAnswer(
                lambda verify_ms, **_: theory.longest_cheap_draft(verify_ms),
                "that is the longest draft before the cliff, which looks at passes only. What drafting takes and what "
                "alpha brings decide as well.",
            ),
            WrongAnswer(
                _largest_measured_k,
                "that is the largest k that was measured. Late tokens of a draft are seldom reached and always paid.",
            ),
        ),
    )


def _largest_measured_k(verify_ms: Mapping[int, float], **_: object) -> int:
    return max(verify_ms) - 1


def _verdict() -> Exercise:
    return ChoiceExercise(
        id="04-verdict",
        question='does speculation pay on your machine, by the interval of its speedup: "on", "off" or "unclear"?',
        why="An interval, unlike a single number, says whether another run would tell you the same.",
        nudge="Where does the interval lie, seen from a speedup of 1?",
        hints=(
            "At a speedup of 1 it makes no difference.",
            "The middle of the interval decides nothing; its ends do.",
            "Are both ends above 1, both below, or is 1 between them?",
        ),
        facts=("low", "high"),
        truth=_where_it_lies,
        options=("on", "off", "unclear"),
        diagnoses={
            "on": "that needs the whole interval above 1, its low end included.",
            "off": "that needs the whole interval below 1, its high end included.",
            "unclear": "1 is not inside the interval, so the measurement does decide.",
        },
    )


def _where_it_lies(low: float, high: float) -> str:
    if not low <= high:
        raise ValueError(f"An interval runs from low to high; got low={low}, high={high}.")
    if low > 1:
        return "on"
    return "off" if high < 1 else "unclear"
