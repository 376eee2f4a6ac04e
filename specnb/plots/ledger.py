"""Where every millisecond of a cycle goes, and how far a prediction from its parts lies from the clock."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from .. import messages
from ..records import CycleParts, LedgerCell
from ..render import exclusive, legible
from .style import (
    BLUE,
    GREEN,
    GREY,
    MUTED_TEXT,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    SMALL,
    VERMILLION,
    axes_of,
    head,
    label_of,
    legend_below,
    looks,
)

LEGEND_COLUMNS = 4

MOST_BARS = 5
"""Cells of one figure: each takes two bars."""

PARTS = (
    ("draft", ORANGE, ""),
    ("catch_up", VERMILLION, "xx"),
    ("verify", BLUE, ""),
    ("rebuild", SKY, "\\\\"),
    ("sampling", GREEN, "oo"),
    ("rollback", PURPLE, ".."),
    ("bookkeeping", GREY, "////"),
)
"""Fields of ``CycleParts`` in the order of a cycle, with colour and hatching."""

CLOCKED = (("drafting", ORANGE, ""), ("passing", BLUE, ""), ("sampling", GREEN, "oo"), ("other", GREY, "////"))
"""What a run's clock tells apart, in the same colours."""


@exclusive
def plot_cycle_parts(cells: Sequence[LedgerCell], *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """The mean cycle of each cell as two stacked bars: predicted from its parts, and as the clock took it.

    ValueError without cells, or with more than ``MOST_BARS``.
    """
    if not 1 <= len(cells) <= MOST_BARS:
        raise ValueError(messages.wrong_count(len(cells), MOST_BARS))
    ax = axes_of(ax, height_in=2.25 + 0.45 * len(cells), left_in=1.9, bottom_in=1.15)
    longest = max(max(cell.predicted.ms, cell.measured.ms) for cell in cells)
    for i, cell in enumerate(cells):
        for place, parts, fields in ((i - 0.2, cell.predicted, PARTS), (i + 0.2, cell.measured, CLOCKED)):
            _stack(ax, place, parts, fields)
            beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": SMALL}
            ax.annotate(messages.ms(parts.ms), (parts.ms, place), **beside)
    for name, colour, hatch in PARTS:
        ax.barh(0, 0, color=colour, hatch=hatch, edgecolor="white", label=messages.PART_NAMES[name])
    ax.set_xlim(0, 1.14 * longest)
    ax.set_ylim(len(cells) - 0.5, -0.5)
    ax.set_yticks(range(len(cells)), [legible(messages.cell_of_two_bars(cell)) for cell in cells], fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.set_xlabel(messages.CYCLE_AXIS)
    head(ax, messages.PARTS_TITLE, label_of(recorded))
    legend_below(ax, 4)
    return ax


def _stack(ax: Axes, place: float, parts: CycleParts, fields: Sequence[tuple[str, str, str]]) -> None:
    left = 0.0
    for name, colour, hatch in fields:
        width = max(0.0, getattr(parts, name))
        ax.barh(place, width, left=left, height=0.34, color=colour, hatch=hatch, edgecolor="white", linewidth=0.6)
        left += width


def describe_cycle_parts(cells: Sequence[LedgerCell]) -> str:
    """Alt text for ``plot_cycle_parts``."""
    return messages.cycle_parts_alt(cells)


@exclusive
def plot_ledger_errors(
    cells: Sequence[LedgerCell], *, bound: float = 0.02, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """predicted / measured - 1 of every cell against its milliseconds per token, a series for each drafter.

    Filled with a 95 % interval: from what was kept, so the costs' error. Hollow: from alpha alone. bound: the
    band that is shaded. ValueError without cells.
    """
    if not cells:
        raise ValueError(messages.no_rows("cells"))
    names = list(dict.fromkeys(cell.drafter for cell in cells))
    rows = -(-(len(names) + 2) // LEGEND_COLUMNS)
    ax = axes_of(ax, height_in=3.9 + 0.2 * rows, bottom_in=0.8 + 0.2 * rows)
    ax.axhspan(-100 * bound, 100 * bound, color=PALE, zorder=0)
    ax.axhline(0.0, color=MUTED_TEXT, linewidth=1.0, zorder=1)
    for name, look in zip(names, looks(len(names)), strict=True):
        own = [cell for cell in cells if cell.drafter == name]
        xs = [cell.measured_ms for cell in own]
        for cell in own:
            if cell.interval is not None:
                ends = [100 * (end - 1.0) for end in cell.interval]
                ax.plot([cell.measured_ms] * 2, ends, color=look.colour, linewidth=1.2, zorder=2)
        shape = {"marker": look.marker, "color": look.colour, "linestyle": "", "markersize": 7, "clip_on": False}
        ax.plot(xs, [100 * cell.error for cell in own], zorder=4, label=legible(name), **shape)
        hollow = shape | {"markerfacecolor": "none"}
        ax.plot(xs, [100 * cell.error_of_alpha for cell in own], zorder=3, alpha=0.7, **hollow)
    for label, face in ((messages.OF_KEPT, "black"), (messages.OF_ALPHA, "none")):
        ax.plot([], [], "o", color="black", markerfacecolor=face, markersize=7, label=label)
    widest = max(100 * bound, ax.dataLim.y1, -ax.dataLim.y0)
    ax.set_ylim(-1.15 * widest, 1.15 * widest)
    ax.margins(x=0.06)
    ax.set_xlabel(messages.MS_PER_TOKEN_AXIS)
    ax.set_ylabel(messages.ERROR_AXIS)
    head(ax, messages.ERRORS_TITLE, label_of(recorded))
    legend_below(ax, LEGEND_COLUMNS)
    return ax


def describe_ledger_errors(cells: Sequence[LedgerCell]) -> str:
    """Alt text for ``plot_ledger_errors``."""
    return messages.ledger_errors_alt(cells)
