"""Predict first: a guess is compared with the truth, drawn beside it, and kept for the last notebook.

Guesses outlive the kernel, in a file of the clone that is not part of it, so that notebook 09 can
draw how the misses of all notebooks went.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .. import messages, plots, store
from ..records import Guess, Guesses
from .exercise import Unreadable, Verdict, as_number, is_unanswered, shown


@dataclass(frozen=True, slots=True, repr=False)
class Compared(Verdict):
    """The reply to a guess: as text, and in a notebook a figure with it."""

    made: Guess

    def _ipython_display_(self) -> None:
        print(self.message)
        plots.show(plots.plot_guess(self.made), plots.describe_guess(self.made))


def predict(name: str, guess: object, *, truth: float | None) -> Verdict:
    """Compares a guess with the truth and keeps the pair under ``name`` (the last one counts).

    name: one of ``messages.GUESSED``, else KeyError. guess: a number, or None for no guess. truth: None when
    it could not be measured. No guess raises; a truth that is no number raises ValueError.
    """
    if name not in messages.GUESSED:
        raise KeyError(f"There is no prediction {name!r}. The predictions are: {', '.join(messages.GUESSED)}.")
    if truth is None:
        return Verdict("unmeasured", "nothing to compare with: the answer was not measured.")
    try:
        truth = as_number(truth)
    except Unreadable as error:
        raise ValueError(f"The truth of prediction {name!r} is not one: {error}") from None
    if is_unanswered(guess):
        # JupyterLab shows the first line of a folded output.
        return Verdict("guess", f"no guess made.\nThe answer is {shown(truth)}.")
    try:
        made = Guess(name, as_number(guess), truth)
    except Unreadable as error:
        return Verdict("guess", f"no guess yet: {error}")
    told = f"you guessed {shown(made.guess)}, the answer is {shown(truth)}: {_missed(made)}."
    try:
        store.save(predictions().with_one(made), _kept_in())
    except (OSError, store.BadRecord) as error:
        told += f" (It could not be kept for notebook 09: {error})"
    return Compared("guess", told, made)


def predictions() -> Guesses:
    """All guesses that were kept. A file that cannot be read counts as none: the next guess replaces it."""
    try:
        return store.load(_kept_in(), Guesses)
    except (FileNotFoundError, store.BadRecord):
        return Guesses()


def _kept_in() -> Path:
    """SPECNB_GUESSES names another file, for those who share a clone."""
    named = os.environ.get("SPECNB_GUESSES")
    return Path(named) if named else store.DATA / "local" / "guesses.json"


def _missed(made: Guess) -> str:
    if made.guess == made.truth:
        return "exactly right"
    if made.miss is None:
        return f"off by {shown(abs(made.guess))}"
    return f"{100 * abs(made.miss):.3g}% too {'high' if made.miss > 0 else 'low'}"
