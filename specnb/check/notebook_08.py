"""Exercises of the notebook on tuning: what a sweep says, another machine's card, and numbers from somebody's log."""

from __future__ import annotations

from collections.abc import Mapping

from .. import theory
from ..records import PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer

SAME_K = 7
"""Up to the M5 Pro's cliff, and in every quick sweep."""

Staircase = Mapping[int, float]


def exercises(_study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_mixture(), _tie(), _no_rescue(), _same_draft(), _passes())


def _mixture() -> Exercise:
    return NumberExercise(
        id="08-mixture",
        question="how many times as fast is all of it together, with the setting left on for everything?",
        why="Speeds do not average, times do: what is slowed down counts by the tokens it writes.",
        nudge="How long do a hundred plain tokens' worth of each part take now? Add times, not speedups.",
        hints=(
            "A part with speedup s takes its share / s of the plain time.",
            "Add these over the parts; their shares add up to 1.",
            "The speedup of the whole is 1 / (share_a / speedup_a + share_b / speedup_b).",
        ),
        facts=("shares", "speedups"),
        truth=lambda shares, speedups: 1 / sum(share / s for share, s in zip(shares, speedups, strict=True)),
        wrong=(
            WrongAnswer(
                lambda shares, speedups: sum(share * s for share, s in zip(shares, speedups, strict=True)),
                "that is the mean of the speedups by share. A part that runs twice as fast takes half the time; it "
                "does not give the others its speed.",
            ),
            WrongAnswer(
                lambda shares, speedups: sum(speedups) / len(speedups),
                "that is the plain mean of the speedups, as if both parts wrote as much.",
            ),
            WrongAnswer(
                lambda shares, speedups: sum(share / s for share, s in zip(shares, speedups, strict=True)),
                "that is the time it takes, in units of plain decoding. The speedup is one over it.",
            ),
        ),
    )


def _tie() -> Exercise:
    return ChoiceExercise(
        id="08-tie",
        question='which of the two would you set, by these intervals: "first", "second" or "either"?',
        why="Both speedups are over the same plain rounds, and a slow one of those raises both: that they overlap is "
        "no test, and only their ratio decides. Had its interval been 0.98 to 1.07, either would do: take the simpler "
        "one.",
        nudge="Which of the intervals compares the two settings with each other?",
        hints=(
            "A plain round that was slow raises both speedups alike, so their intervals are wide together.",
            "The two settings were timed in the same rounds: the interval that counts is that of their ratio.",
            "Where does 1 lie: below all of that interval, above all of it, or within?",
        ),
        facts=("ratio",),
        truth=_faster,
        options=("first", "second", "either"),
        diagnoses={
            "first": "the first is faster for sure only if all of the interval of first over second is above 1.",
            "second": "the second is faster for sure only if all of the interval of first over second is below 1.",
            "either": "the two speedups overlap, but that is no test: both hold the noise of the same plain rounds. "
            "Look at their ratio, whose interval does not contain 1.",
        },
    )


def _faster(ratio: tuple[float, float]) -> str:
    """ratio: interval of the first setting's speed over the second's, timed in the same rounds."""
    low, high = ratio
    if low > 1.0:
        return "first"
    return "second" if high < 1.0 else "either"


def _no_rescue() -> Exercise:
    return NumberExercise(
        id="08-no-rescue",
        question="which is the shortest draft k that no alpha can rescue (0 if there is none)?",
        why="At a k that no alpha can rescue, neither another prompt nor a better trained drafter of this price pays. "
        "Where the answer is 0, some alpha would rescue every k that was measured.",
        nudge="Suppose every drafted token is kept. What does a token cost then, and what does a plain one cost?",
        hints=(
            "With alpha = 1 a cycle emits k + 1 tokens.",
            "It costs k draft tokens and one pass over k + 1 rows.",
            "Try k = 1, 2, 3, ...: theory.break_even_alpha(k, draft_ms, verify_ms, plain_ms) is None where it is lost.",
        ),
        facts=("draft_ms", "verify_ms"),
        truth=lambda draft_ms, verify_ms: _first_lost(draft_ms, verify_ms),
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda draft_ms, verify_ms: _first_lost(0.0, verify_ms),
                "that is the answer for drafts that cost nothing. This drafter is paid by the token.",
            ),
            WrongAnswer(
                lambda draft_ms, verify_ms: _first_dearer(draft_ms, verify_ms),
                "that is where a cycle first costs more than one plain token. It may: it can emit k + 1 of them.",
            ),
        ),
    )


def _first_lost(draft_ms: float, verify_ms: Staircase) -> int:
    ks = sorted(n - 1 for n in verify_ms if n > 1)
    return next((k for k in ks if theory.break_even_alpha(k, draft_ms, verify_ms, verify_ms[1]) is None), 0)


def _first_dearer(draft_ms: float, verify_ms: Staircase) -> int:
    ks = sorted(n - 1 for n in verify_ms if n > 1)
    return next((k for k in ks if theory.cycle_ms(k, draft_ms, verify_ms) > verify_ms[1]), 0)


def _same_draft() -> Exercise:
    n = SAME_K + 1
    return NumberExercise(
        id="08-same-draft",
        question=f"free drafts of {SAME_K} tokens and the same alpha on both machines, each speedup over that "
        "machine's own T(1): how many times as large is the speedup on the other one as on yours?",
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
