"""A reader's guesses beside what came out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ..records import Guess
from .writing import change, counted, listed, number, percent

GUESSED = {
    "00-speedup": ("n-gram drafts on the rewriting task: speedup over plain decoding", "×"),
    "01-t8": ("T(8) in units of T(1)", "×"),
    "01-f32-t8": ("T(8) in units of T(1), in F32 or in your model's own format", "×"),
    "02-k11": ("the article's speedup at k = 11", "×"),
    "02-free": ("speedup of a free draft at k = 4, on the article's machine", "×"),
    "03-k11": ("tested tokens of a draft of 11, in the article", ""),
    "03-own-k3": ("acceptance rate at k = 3, from alpha at k = 6", ""),
    "04-draft-model": ("the draft model's speedup at k = 4", "×"),
    "04-adaptive": ("the adaptive policy's speedup on a story", "×"),
    "05-hollow": ("time of a hollow model, in percent of the full one's", "%"),
    "06-trained": ("best speedup of a trained drafter at k = 2", "×"),
    "07-different": ("tokens that differ from plain decoding, of 48", ""),
    "07-gain": ("drawn drafts kept by rejection sampling, in units of greedy ones", "×"),
    "08-kinds": ("kinds of prompt where a setting wins beyond doubt, of 4", ""),
    "08-m5": ("best speedup of a free draft with alpha 0.7 on the M5 Pro", "×"),
    "09-load": ("gain of a free draft with alpha 0.8, sixteen sequences a pass", "×"),
    "09-temperature": ("alpha at temperature 1.3", ""),
    "09-exam": ("speedup of eagle at k = 3 on the chat prompt, in F32", "×"),
}
"""Every prediction of the notebooks, in their order -> what is guessed, and its unit."""

TOO_HIGH, TOO_LOW = "guess too high", "guess too low"
MEDIAN_OF_HALF = "median of the first half, of the second"
MISS_AXIS = "miss, of the truth"
PREDICTION_AXIS = "prediction"
MISSES_TITLE = "Your guesses, notebook by notebook"


def miss_tick(share: float) -> str:
    return f"{100 * share:g}%"


def guess_title(miss: float | None) -> str:
    if miss is None:
        return "Your guess and the answer"
    if miss == 0.0:
        return "Your guess is exactly right"
    return f"Your guess is {percent(abs(miss))} too {'high' if miss > 0 else 'low'}"


def truth_told(truth: float, unit: str) -> str:
    return f"the answer: {number(truth)}{unit}"


def guess_told(guess: float, unit: str) -> str:
    return f"your guess: {number(guess)}{unit}"


def guess_alt(made: Guess) -> str:
    what, unit = GUESSED[made.name]
    return f"{guess_title(made.miss)}. {what}: guessed {number(made.guess)}{unit}, in truth {number(made.truth)}{unit}."


def misses_alt(guesses: Sequence[Guess]) -> str:
    """guesses: with a miss, in the order of the notebooks."""
    told = [f"{made.name} {change(made.miss)}" for made in guesses]
    return f"{MISSES_TITLE}: {listed(told)}."


def misses_told(guesses: Sequence[Guess]) -> str:
    """What the figure of all misses says, in words; what to do when there is none."""
    if not guesses:
        return 'No guess has been kept yet. Put a number in place of None where a notebook says "Predict first".'
    half = len(guesses) // 2
    count = f"{counted(len(guesses), 'guess', 'guesses')} of {len(GUESSED)}"
    if not half:
        return f"{count}, off by {percent(abs(guesses[0].miss))}."
    first, second = (median(abs(made.miss) for made in part) for part in (guesses[:half], guesses[half:]))
    return (
        f"{count}. Median miss of the first {half}: {percent(first)}; of the last {len(guesses) - half}: "
        f"{percent(second)}."
    )
