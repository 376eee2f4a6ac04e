"""Exercises of the notebook on tuning: another machine's card, and numbers from somebody's log."""

from __future__ import annotations

from collections.abc import Mapping

from ..records import PublishedStudy
from .exercise import Exercise, NumberExercise, WrongAnswer

SAME_K = 7
"""Up to the M5 Pro's cliff, and in every quick sweep."""

Staircase = Mapping[int, float]


def exercises(_study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_same_draft(), _passes())


def _same_draft() -> Exercise:
    n = SAME_K + 1
    return NumberExercise(
        id="08-same-draft",
        question=f"free drafts of {SAME_K} tokens and the same alpha on both machines: how many times as large is the "
        "speedup on the other one as on yours?",
        why="Alpha cancels. Of two machines with the same drafter, the shape of the staircase alone decides.",
        nudge="Write down the speedup on each machine, in units of its own T(1), and divide.",
        hints=(
            "A free draft's cycle takes one pass over k + 1 rows.",
            "speedup = expected tokens * T(1) / T(k + 1), each T of the same machine.",
            f"The expected tokens are the same on both. What is left: T({n}) / T(1) of yours over that of the other.",
        ),
        facts=("yours", "theirs"),
        truth=lambda yours, theirs: _ratio(yours, theirs, n),
        unmeasured=f"both staircases need N = 1 and N = {n}.",
        wrong=(
            WrongAnswer(
                lambda yours, theirs: yours[n] / theirs[n] if n in yours and n in theirs else None,
                "that compares milliseconds. A machine that is slow at everything gains as much as a fast one: divide "
                "by each one's T(1) first.",
            ),
            WrongAnswer(
                lambda yours, theirs: None if (ratio := _ratio(yours, theirs, n)) is None else 1.0 / ratio,
                "that is upside down: how many times as large it is on yours.",
            ),
            WrongAnswer(
                lambda yours, theirs: theirs[n] / theirs[1] if n in theirs else None,
                "that is what a pass costs on the other machine. The question is for the two speedups, one over the "
                "other.",
            ),
        ),
    )


def _ratio(yours: Staircase, theirs: Staircase, n: int) -> float | None:
    """How many times as large the speedup of a free draft of n - 1 tokens is on theirs."""
    if not {1, n} <= yours.keys() & theirs.keys():
        return None
    return (yours[n] / yours[1]) / (theirs[n] / theirs[1])


def _passes() -> Exercise:
    return NumberExercise(
        id="08-passes",
        question="how many target passes did this run make? The block does not print it, but it can be had exactly.",
        why="Tokens per cycle, realised k and alpha all follow from it; the acceptance rate alone gives none of them.",
        nudge="Where can an emitted token come from? There are two places.",
        hints=(
            "An emitted token is a drafted one that was kept, or the target's own.",
            "Every pass adds one token of the target's own, whether anything was drafted or not.",
            "So the tokens that were not kept drafts are as many as the passes.",
        ),
        facts=("emitted", "drafted", "kept", "k"),
        truth=lambda emitted, drafted, kept, k: emitted - kept,
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda emitted, drafted, kept, k: drafted / k,
                "that takes every draft to have k tokens. Drafts may be shorter: at the end of the text, or by p_min.",
            ),
            WrongAnswer(
                lambda emitted, drafted, kept, k: emitted,
                "that is a pass for every token: plain decoding. A pass that keeps drafts emits several.",
            ),
            WrongAnswer(
                lambda emitted, drafted, kept, k: drafted - kept,
                "that counts drafted tokens that were not kept. A refusal throws away the rest of its draft, too.",
            ),
        ),
    )
