"""Exercises of the notebook on the staircase: what one pass over N tokens costs."""

from __future__ import annotations

from .. import theory
from ..records import PublishedStudy
from .exercise import Exercise, NumberExercise, WrongAnswer

PASS_N = 9
LARGEST_SMALL_N = 8


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_pass_ms(study), _cliff(study), _longest_draft(study), _dip(study))


def _cliff_n(study: PublishedStudy) -> int:
    return max(theory.cliffs(study.curve.median_ms), key=lambda cliff: cliff.ratio).at_n


def _pass_ms(study: PublishedStudy) -> Exercise:
    rate = study.throughput[PASS_N]
    return NumberExercise(
        id="01-pass-ms",
        question=f"the M5 Pro does N = {PASS_N} tokens in one pass at {rate:g} tokens/s. How many ms is the pass?",
        why="A rate in tokens/s divides by N and so hides the staircase; in milliseconds per pass you can see it.",
        nudge=f"The rate says how long a token takes on average, and the pass does {PASS_N} of them.",
        hints=(
            "How many passes of this size fit into a second?",
            "Time = amount / rate, and the amount is the N tokens of the pass.",
            "That gives seconds; a second has 1000 milliseconds.",
        ),
        truth=lambda: 1000 * PASS_N / rate,
        unit="ms",
        wrong=(
            WrongAnswer(
                lambda: 1000 / rate, "that is milliseconds per token. N is forgotten: all N come from one pass."
            ),
            WrongAnswer(lambda: rate, "that is the rate itself, in tokens/s. The question is for a time."),
            WrongAnswer(
                lambda: PASS_N / rate, "the time is right, but in seconds. The staircase is drawn in milliseconds."
            ),
            WrongAnswer(
                lambda: rate / PASS_N, "that is passes per second, a rate. The question is for the time of one."
            ),
        ),
    )


def _cliff(study: PublishedStudy) -> Exercise:
    return NumberExercise(
        id="01-cliff",
        question="at which N does the M5 Pro's staircase jump?",
        why="The jump is another matrix kernel taking over, so it belongs to this machine and this software: "
        "yours may jump elsewhere, or not at all.",
        nudge="Look for the one step that is far higher than all the others, and name the N it leads up to.",
        hints=(
            "Compare each pass with the one before: T(N) / T(N − 1).",
            "One of these ratios is far above the ratio of the tokens, N / (N − 1).",
            "The cliff is called by the first N that is dear, not by the last that is cheap.",
        ),
        truth=lambda: _cliff_n(study),
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda: _cliff_n(study) - 1,
                "a pass over that many tokens is still cheap. A cliff is called by the first dear N.",
            ),
            WrongAnswer(
                lambda: _cliff_n(study) - 2,
                "that is a draft length k. The question is for N, all tokens in the pass, drafted or not.",
            ),
        ),
    )


def _longest_draft(study: PublishedStudy) -> Exercise:
    return NumberExercise(
        id="01-longest-draft",
        question="what is the longest draft k that stays before the M5 Pro's cliff?",
        why="Every longer draft pays for the cliff in each cycle, however good its tokens are.",
        nudge="A draft of k tokens makes the pass longer than k. Find how many tokens a cheap pass may hold, then "
        "ask who else needs a row.",
        hints=(
            "Start from the largest N that is still cheap.",
            "One token of the pass was chosen in the last cycle and not yet fed to the target.",
            "The target's own new token takes no row: it is read from the last row.",
        ),
        truth=lambda: theory.longest_cheap_draft(study.curve.median_ms),
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda: _cliff_n(study),
                "that is the N of the cliff read as a k. A pass over so many tokens is already dear.",
            ),
            WrongAnswer(
                lambda: _cliff_n(study) - 1,
                "so many tokens fit into a cheap pass, but not all can be drafted ones: the pending token, chosen "
                "in the last cycle, takes a row too.",
            ),
        ),
    )


def _dip(study: PublishedStudy) -> Exercise:
    curve = study.curve.median_ms
    small = [n for n in curve if n <= LARGEST_SMALL_N]

    def dip() -> int:
        (found,) = theory.dips({n: curve[n] for n in small})
        return found

    flat = min((n for n in small if curve[n] > curve.get(n - 1, curve[n])), key=lambda n: curve[n] / curve[n - 1])
    return NumberExercise(
        id="01-dip",
        question=f"which N up to {LARGEST_SMALL_N} is cheaper on the M5 Pro than the N before it?",
        why="There a better kernel takes over, so a longer draft can cost less: never smooth a measured staircase.",
        nudge="Go through the passes in order and look for a time that is below the time just before it.",
        hints=(
            "Take the differences T(N) − T(N − 1).",
            "Exactly one of the differences is negative.",
            "Name the N on the right side of the step, not the one on its left.",
        ),
        truth=dip,
        tolerance=0,
        wrong=(
            WrongAnswer(lambda: dip() - 1, "that is the dear side of the dip; it costs more than the N before it."),
            WrongAnswer(
                lambda: flat,
                f"the step there is nearly flat, but it goes up: T({flat - 1}) = {curve[flat - 1]:g} ms, "
                f"T({flat}) = {curve[flat]:g} ms.",
            ),
        ),
    )
