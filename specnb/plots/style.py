"""How every figure looks: colours that colour-blind readers tell apart, a head with its label, honest lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from .. import messages, render

# Okabe & Ito 2008, "Color Universal Design".
BLUE, VERMILLION, GREEN, ORANGE, SKY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7"
GREY, PALE = "#707070", "#f1f1f1"
MUTED_TEXT = "#555555"  # 7.5:1 on white
WARNING_TEXT = "#A34700"  # vermillion, dark enough to read: 6.3:1 on white

SMALL = 9.0
"""Points of the smallest text: 12.5 CSS pixels on the page."""

AVERAGE_ADVANCE = 0.56
"""Mean width of a character in units of the font size, DejaVu Sans: fits text without measuring it."""

Ends = tuple[float, float] | None
"""(low, high) of an interval; None when there were too few samples for one."""


@dataclass(frozen=True, slots=True)
class Series:
    """Looks of one of several curves: no two share a colour, a marker or a line style and lightness."""

    colour: str
    marker: str
    line: str


SERIES = (
    Series(BLUE, "o", "-"),
    Series(ORANGE, "s", "--"),
    Series("#333333", "^", "-."),
    Series(GREEN, "D", ":"),
    Series(VERMILLION, "v", "-"),
    Series(SKY, "P", "--"),
    Series(PURPLE, "X", "-."),
)


def looks(count: int) -> Iterator[Series]:
    """One look for each series; after seven they repeat, and the legend is the only difference left."""
    return (SERIES[i % len(SERIES)] for i in range(count))


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever stands out more: at least 4.5:1 on any colour. colour: sRGB from 0 to 1."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"


def axes_of(ax: Axes | None, **size: float) -> Axes:
    """``ax``, or the only axes of a new figure of that size (``render.new_figure``'s arguments)."""
    return render.new_figure(**size).add_subplot() if ax is None else ax


def head(ax: Axes, title: str, label: str | None) -> None:
    """Title, and under it, in at most two lines, where the numbers come from."""
    width_pt = 72.0 * (1.0 - ax.get_position().x0) * ax.figure.get_size_inches()[0]
    lines = [] if label is None else _lines(label, int(width_pt / (AVERAGE_ADVANCE * SMALL)), 2)
    ax.set_title(title, pad=9.0 + 13.0 * len(lines))
    ax.annotate(
        "\n".join(lines),
        (0, 1),
        (0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=SMALL,
        color=MUTED_TEXT,
    )


def _lines(text: str, width: int, most: int) -> list[str]:
    return wrap(render.legible(text), width, max_lines=most, placeholder=" …") or [""]


def label_of(recorded: str | None) -> str | None:
    """The text for ``recorded`` as plot functions take it: None says nothing, "" is measured here and now."""
    return None if recorded is None else messages.recorded_label(recorded)


def legend_beside(ax: Axes) -> None:
    """The legend to the right of the data, where it hides none, in a margin of two inches."""
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles,
        ["\n".join(_lines(label, 17, 3)) for label in labels],
        loc="upper left",
        bbox_to_anchor=(1.015, 1.0),
    )


def legend_below(ax: Axes, columns: int) -> None:
    """The legend under the axis label, in a bottom margin of an inch."""
    below = ax.transAxes + ScaledTranslation(0, -0.55, ax.figure.dpi_scale_trans)
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=below,
        ncols=columns,
        columnspacing=1.6,
        handletextpad=0.5,
    )


def draw_points(
    ax: Axes, values: Mapping[int, float], look: Series, label: str, ends: Mapping[int, Ends] | None = None
) -> None:
    """A marker at each whole x, an interval bar where there is one, and a thin line between neighbours.

    Neighbours are x and x + 1: a line across a gap would claim values that nobody measured.
    """
    xs = sorted(values)
    dots = {"marker": look.marker, "color": look.colour, "markeredgecolor": "white", "markeredgewidth": 0.6}
    ax.plot(xs, [values[x] for x in xs], linestyle="", zorder=3, **dots)
    steps = [((x, values[x]), (x + 1, values[x + 1])) for x in xs if x + 1 in values]
    ax.add_collection(LineCollection(steps, colors=look.colour, linestyles=look.line, linewidths=1.1, zorder=2))
    ax.plot([], [], linestyle=look.line, linewidth=1.1, label=render.legible(label), **dots)  # for the legend
    draw_intervals(ax, ends or {}, look.colour)


def draw_intervals(ax: Axes, ends: Mapping[int, Ends], colour: str) -> None:
    """Vertical bars with caps; nothing where there is no interval."""
    known = {x: pair for x, pair in ends.items() if pair is not None}
    if known:
        lows, highs = zip(*known.values(), strict=True)
        middles = [(low + high) / 2 for low, high in known.values()]
        halves = [(high - low) / 2 for low, high in known.values()]
        ax.errorbar(list(known), middles, halves, fmt="none", ecolor=colour, elinewidth=1.3, capsize=3, zorder=4)
        ax.update_datalim([(x, y) for x, y in zip(known, lows, strict=True)])
        ax.update_datalim([(x, y) for x, y in zip(known, highs, strict=True)])


def from_zero(ax: Axes, headroom: float = 1.1) -> None:
    """The y axis from 0 to a little above the highest value, with whole steps where they fit."""
    ax.set_ylim(0, headroom * ax.dataLim.y1)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))


def whole_ticks(ax: Axes, values: Sequence[int]) -> None:
    """Ticks at these whole numbers; call it last, when the limits stand. Small ones win where not all fit."""
    low, high = ax.get_xlim()
    width_in = ax.get_position().width * ax.figure.get_size_inches()[0] / (high - low)
    ax.set_xticks(fitting(sorted(set(values)), lambda x: x * width_in))


def fitting(values: Sequence[int], place_in: Callable[[int], float]) -> list[int]:
    """The values whose tick labels fit beside each other, ascending; earlier ones before later ones.

    place_in: where a value lies on the axis, in inches.
    """
    kept: list[int] = []
    for value in values:
        needed = 0.085 * len(str(value)) + 0.07
        if all(abs(place_in(value) - place_in(other)) >= needed for other in kept):
            kept.append(value)
    return sorted(kept)
