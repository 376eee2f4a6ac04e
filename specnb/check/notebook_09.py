"""Exercises of the notebook on losing: load, the acceptance band, p_min, and a failure that no tuning helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import theory
from ..records import PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer

LONGEST = 16
"""The k of the article's last row."""

Row = tuple[float, float, float]
"""(p_min, acceptance rate, tokens/s)"""


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_load(), _band(study), _p_min(), _structural(study))


def _load() -> Exercise:
    return NumberExercise(
        id="09-load",
        question="with how many sequences, of those measured, does drafting first lose by T(N) alone (0 if never)?",
        why="Every sequence that joins takes rows that drafts could have had almost for free. Runs may first lose a "
        "step earlier or later: this T(N) is that of one sequence.",
        nudge="For each B: is T(B (k + 1)) / T(B) more than the tokens that a cycle brings?",
        hints=(
            "A plain pass of B sequences has B rows and brings B tokens.",
            "A drafting pass has B (k + 1) rows and brings B times the expected tokens of a cycle.",
            "Compare prices[b] with theory.expected_tokens(alpha, k); take the first b whose price is higher.",
        ),
        facts=("alpha", "k", "prices"),
        truth=_first_loss,
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda alpha, k, prices: _first_above(k + 1, prices),
                "that is where even drafts that are always right lose. Yours are right with probability alpha.",
            ),
            WrongAnswer(
                _last_gain,
                "that is the most sequences for which drafting still pays. The question is for the first loss.",
            ),
        ),
    )


def _first_loss(alpha: float, k: int, prices: Mapping[int, float]) -> int:
    return _first_above(theory.expected_tokens(alpha, k), prices)


def _first_above(tokens: float, prices: Mapping[int, float]) -> int:
    """The first number of sequences whose price is above ``tokens``; 0 if none is."""
    return next((b for b in sorted(prices) if prices[b] > tokens), 0)


def _last_gain(alpha: float, k: int, prices: Mapping[int, float]) -> int | None:
    first = _first_loss(alpha, k, prices)
    return max((b for b in prices if b < first), default=None)


def _band(study: PublishedStudy) -> Exercise:
    (run,) = (run for run in study.runs if run.k == LONGEST)
    rate = run.acceptance_rate
    return NumberExercise(
        id="09-band",
        question=f"an acceptance rate of {100 * rate:g}% at k = {LONGEST}, every draft full: which alpha is that?",
        why="A rate far below the healthy band, and as good a draft as at k = 1: what was wrong was its length.",
        nudge="How many tokens does a cycle emit, and which alpha gives so many?",
        hints=(
            f"Of {LONGEST} drafted tokens a cycle keeps {rate:g} times {LONGEST} on average.",
            "It emits one more: the target's own.",
            "theory.solve_alpha(tokens_per_cycle, k) does the rest.",
        ),
        truth=lambda: theory.solve_alpha(1 + LONGEST * rate, LONGEST),
        wrong=(
            WrongAnswer(
                lambda: rate, "that is the acceptance rate itself. Most of those tokens were drafted but never tested."
            ),
            WrongAnswer(
                lambda: LONGEST * rate, "that is how many drafted tokens a cycle keeps; alpha is a probability."
            ),
            WrongAnswer(
                lambda: 1 + LONGEST * rate, "those are the tokens per cycle. One step is left: solve for alpha."
            ),
            WrongAnswer(
                lambda: theory.solve_alpha(LONGEST * rate, LONGEST),
                "close: but a cycle emits one token more than it keeps, the target's own.",
            ),
        ),
    )


def _p_min() -> Exercise:
    return NumberExercise(
        id="09-p-min",
        question="which p_min of your sweep was the fastest?",
        why="Speed decides. The acceptance rate counts only what was drafted, and a draft that is never made is never "
        "refused.",
        nudge="Look at the column with tokens per second.",
        hints=(
            "Each row is (p_min, acceptance rate, tokens per second).",
            "max(rows, key=...) finds the row; its first entry is the answer.",
            "The key is the last entry of a row.",
        ),
        facts=("rows",),
        truth=lambda rows: max(rows, key=lambda row: row[2])[0],
        tolerance=0,
        wrong=(
            WrongAnswer(
                _most_accepted, "that one has the highest acceptance rate, which is another column. Is it the fastest?"
            ),
            WrongAnswer(
                lambda rows: max(row[2] for row in rows), "that is its speed. Which p_min is it, the row's first entry?"
            ),
        ),
    )


def _most_accepted(rows: Sequence[Row]) -> float:
    return max(rows, key=lambda row: row[1])[0]


def _structural(study: PublishedStudy) -> Exercise:
    counts = study.facts["mrope_failure"]
    return ChoiceExercise(
        id="09-structural",
        question=f'{counts["n_drafted"]} tokens drafted, {counts["n_accept"]} kept. Where do you look first: "k", '
        '"p_min", "another draft" or "the log"?',
        why="Any draft that speaks the target's language is right now and then. Next to never means that something "
        "does not fit together, and there it said so: a cache that cannot take tokens back.",
        nudge="Which of these could turn next to nothing into a healthy alpha?",
        hints=(
            "What is alpha, at most, whatever k was?",
            "A random guess among the likeliest words would do better.",
            "Tuning trades tokens for time. Here are no tokens to trade.",
        ),
        truth=lambda: "the log",
        options=("k", "p_min", "another draft", "the log"),
        diagnoses={
            "k": "already the first token of every draft is refused, so no length helps.",
            "p_min": "it would draft less, and keep as little.",
            "another draft": "a poor draft keeps one token in five, or in ten. This is one in a thousand.",
        },
    )
