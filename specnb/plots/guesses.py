"""What the reader guessed beside what it was, and how the misses went over all notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from .. import messages
from ..records import Guess
from ..render import exclusive
from .style import BLUE, GREY, MUTED_TEXT, SMALL, VERMILLION, axes_of, head

LEAST_MISS = 0.01
"""The axis of misses begins here; what is nearer to the truth is drawn here."""


@exclusive
def plot_guess(made: Guess, *, ax: Axes | None = None) -> Axes:
    """Guess and truth on one line from 0, what lies between them drawn in."""
    what, unit = messages.GUESSED[made.name]
    ax = axes_of(ax, height_in=2.0, top_in=0.5, bottom_in=0.62)
    low, high = min(0.0, made.guess, made.truth), max(0.0, made.guess, made.truth) or 1.0
    span = high - low
    ax.set_xlim(low - 0.04 * span, high + 0.16 * span)
    ax.set_ylim(-1, 1)
    ax.yaxis.set_major_locator(NullLocator())
    ax.spines["left"].set_visible(False)
    ax.plot([made.guess, made.truth], [0, 0], color=GREY, linewidth=6, alpha=0.5, solid_capstyle="butt")
    # The truth is larger and lies below, so that a guess which is exactly right hides nothing.
    for value, y, marker, size, colour, told in (
        (made.truth, 0.55, "o", 15, BLUE, messages.truth_told(made.truth, unit)),
        (made.guess, -0.55, "D", 8, VERMILLION, messages.guess_told(made.guess, unit)),
    ):
        ax.plot(value, 0, marker, color=colour, markersize=size, markeredgecolor="white")
        side = "right" if value > low + 0.75 * span else "left"
        ax.text(value, y, told, ha=side, va="center", weight="bold")
    ax.set_xlabel(what)
    head(ax, messages.guess_title(made.miss), None)
    return ax


def describe_guess(made: Guess) -> str:
    """Alt text for ``plot_guess``."""
    return messages.guess_alt(made)


@exclusive
def plot_misses(guesses: Sequence[Guess], *, ax: Axes | None = None) -> Axes:
    """Every guess's miss in the order of the notebooks, on a logarithmic axis, and the medians of both halves.

    Guesses whose truth was 0 have no relative miss and are left out. ValueError when none is left.
    """
    told = measurable(guesses)
    if not told:
        raise ValueError("No guess has been kept yet, so there is nothing to draw: answer a prediction first.")
    ax = axes_of(ax, height_in=4.4, bottom_in=1.6)
    misses = [max(abs(made.miss), LEAST_MISS) for made in told]
    for way, marker, colour, label in ((1, "^", VERMILLION, messages.TOO_HIGH), (-1, "v", BLUE, messages.TOO_LOW)):
        chosen = [i for i, made in enumerate(told) if (made.miss >= 0) == (way > 0)]
        ax.plot(
            chosen,
            [misses[i] for i in chosen],
            marker,
            color=colour,
            markersize=9,
            markeredgecolor="white",
            label=label,
        )
    half = len(told) // 2
    if half:
        for first, last in ((0, half), (half, len(told))):
            middle = median(misses[first:last])
            ax.plot([first - 0.4, last - 0.6], [middle, middle], color=GREY, linewidth=2)
            ax.text(last - 0.6, middle, f" {messages.percent(middle)}", va="center", color=MUTED_TEXT, size=SMALL)
        ax.plot([], [], color=GREY, linewidth=2, label=messages.MEDIAN_OF_HALF)
    ax.set_yscale("log")
    top = max(2.0, 1.5 * max(misses))
    ax.set_ylim(0.8 * LEAST_MISS, top)
    ticks = [tick for tick in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0) if tick <= top]
    ax.set_yticks(ticks, [messages.miss_tick(tick) for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlim(-0.7, len(told) + 0.3)
    ax.set_xticks(range(len(told)), [made.name for made in told], rotation=35, ha="right", size=SMALL)
    ax.set_xlabel(messages.PREDICTION_AXIS)
    ax.set_ylabel(messages.MISS_AXIS)
    head(ax, messages.MISSES_TITLE, None)
    ax.figure.legend(loc="lower left", ncols=3)
    return ax


def describe_misses(guesses: Sequence[Guess]) -> str:
    """Alt text for ``plot_misses``."""
    return messages.misses_alt(measurable(guesses))


def measurable(guesses: Sequence[Guess]) -> list[Guess]:
    """Those with a relative miss, in the order of the notebooks (their names begin with its number)."""
    order = list(messages.GUESSED)
    return sorted((made for made in guesses if made.miss is not None), key=lambda made: order.index(made.name))
