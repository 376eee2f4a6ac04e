"""Exercises of the notebook on four drafters: gamma, what a free draft needs, and why a later guess is a worse one."""

from __future__ import annotations

from collections.abc import Mapping

from .. import theory
from ..records import PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_gamma(), _free_draft(), _what_is_left(study), _second_head())


def _gamma() -> Exercise:
    return NumberExercise(
        id="06-gamma",
        question="what is eagle's gamma on your machine, from draft_ms and the staircase?",
        why="Gamma has no unit, so it can be compared between machines; a millisecond cannot.",
        nudge="Divide the time of one drafted token by the time of one plain token.",
        hints=(
            "Both times are for one token.",
            "draft_ms is per drafted token already: k is not in it.",
            "A plain token is a target pass over one row, T(1).",
        ),
        facts=("draft_ms", "verify_ms"),
        truth=lambda draft_ms, verify_ms: theory.gamma(draft_ms, verify_ms[1]),
        wrong=(
            WrongAnswer(
                lambda draft_ms, verify_ms: verify_ms[1] / draft_ms if draft_ms else None,
                "that is its inverse: how many drafted tokens one plain token pays for.",
            ),
            WrongAnswer(
                lambda draft_ms, verify_ms: draft_ms / verify_ms[2] if 2 in verify_ms else None,
                "that compares with a pass over two rows. A plain token needs one row only.",
            ),
            WrongAnswer(lambda draft_ms, **_: draft_ms, "that is a time in milliseconds. Gamma is a ratio."),
        ),
    )


def _free_draft() -> Exercise:
    return NumberExercise(
        id="06-free-draft",
        question="which alpha does a draft of one token need to break even here if drafting costs nothing?",
        why="No drafter, however cheap, pays below this alpha at k = 1: it is the price of the staircase's first step.",
        nudge="At k = 1 a cycle emits 1 + alpha tokens and costs one pass over two rows.",
        hints=(
            "Break even means: milliseconds per emitted token equal T(1).",
            "With nothing for the draft the cycle costs T(2).",
            "T(2) / (1 + alpha) = T(1).",
        ),
        facts=("verify_ms",),
        truth=_free_alpha,
        unmeasured="even a free draft that is always right cannot pay at k = 1 here: T(2) is over twice T(1).",
        wrong=(
            WrongAnswer(
                lambda verify_ms: verify_ms[2] / verify_ms[1],
                "that is how many tokens a cycle must emit. One of them comes without any luck: the target's own.",
            ),
            WrongAnswer(
                lambda verify_ms: verify_ms[1] / verify_ms[2],
                "that is T(1) over T(2): the tokens that a pass over two rows is worth, turned upside down.",
            ),
            WrongAnswer(
                lambda verify_ms: verify_ms[2] / verify_ms[1] / 2,
                "that is the share of k + 1 tokens that must come out. The target's own token needs no alpha.",
            ),
        ),
    )


def _free_alpha(verify_ms: Mapping[int, float]) -> float | None:
    return theory.break_even_alpha(1, 0.0, verify_ms, verify_ms[1])


def _what_is_left(study: PublishedStudy) -> Exercise:
    free = next(row for row in study.facts["free_draft"] if row["k"] == 4)
    tokens, pass_ms = free["tokens_per_cycle"], study.verify_ms[5]
    cycle_ms = theory.cycle_ms(4, study.draft_ms, study.verify_ms)
    return NumberExercise(
        id="06-free-on-m5",
        question=(
            f"M5 Pro, k = 4: {tokens} tokens per cycle, T(5) = {pass_ms} ms, {study.plain_tokens_per_second} plain "
            f"tokens/s, {study.draft_ms} ms per drafted token. What would the speedup be if drafting cost nothing?"
        ),
        why="What a cheaper draft can still bring is bounded, and this is the bound at the same alpha.",
        nudge="Take the draft out of the cycle, keep everything else, and compare with plain decoding.",
        hints=(
            "A cycle without draft time costs the pass alone.",
            "Milliseconds per token: that cost over the tokens per cycle.",
            "Plain milliseconds per token are 1000 / (plain tokens/s).",
        ),
        truth=lambda: study.plain_ms * tokens / pass_ms,
        wrong=(
            WrongAnswer(
                lambda: study.plain_ms * tokens / cycle_ms,
                "that is the ledger with the draft still paid for: where the machine is now.",
            ),
            WrongAnswer(
                lambda: cycle_ms / pass_ms,
                "that is how much faster the *cycle* becomes, compared with itself and not with plain decoding.",
            ),
            WrongAnswer(
                lambda: study.verify_ms[1] * tokens / pass_ms,
                "that takes T(1) of the staircase for a plain token. The measured plain speed is given; use it.",
            ),
        ),
    )


def _second_head() -> Exercise:
    return ChoiceExercise(
        id="06-second-head",
        question='Medusa\'s second head is kept less often than its first. Why: "capacity", "independence" or "cost"?',
        why="A chain that reads its own guess knows which of the likely continuations it is in; a head that does not "
        "must hedge between all of them.",
        nudge="What does the second head know of what the first one proposed?",
        hints=(
            "All heads have the same shape and read the same state.",
            "EAGLE's second step reads its first guess.",
            "Kept second tokens are counted only where the first was kept.",
        ),
        truth=lambda: "independence",
        options=("capacity", "independence", "cost"),
        diagnoses={
            "capacity": "every head has as many weights as the first; its task is what differs.",
            "cost": "cost decides whether a draft pays, never whether a token is right.",
        },
    )
