"""The same alpha on several machines: a bar for each, to the right of plain decoding's line or to its left."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Protocol

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from .. import messages
from ..render import INK, LiveFigure, exclusive, legible
from .style import AVERAGE_ADVANCE, BLUE, GREY, MUTED_TEXT, SMALL, VERMILLION, axes_of, legend_below

LEFT_IN, RIGHT_IN = 2.35, 0.25
HIGHEST = 4.0
"""End of the axis, which must not move while a slider does; what is above stands in the bar's words."""

_BAR = 0.56
_OUT_OF_VIEW = (-99.0, -99.0)
_FASTER = {"facecolor": BLUE, "edgecolor": BLUE, "hatch": None}
_SLOWER = {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "////"}


class Verdict(Protocol):
    """What is needed of a row (``cards.Verdict`` has it). speedup: None where that k was not measured."""

    label: str
    speedup: float | None
    own_price: bool


@exclusive
def plot_machines(rows: Sequence[Verdict], alpha: float, k: int, *, gamma: float, ax: Axes | None = None) -> Axes:
    """Speedup of one alpha, k and gamma over plain decoding on every machine. ValueError without rows."""
    if not rows:
        raise ValueError(messages.MANY_NONE)
    ax = axes_of(ax, height_in=_height_in(rows), left_in=LEFT_IN, right_in=RIGHT_IN, bottom_in=0.95)
    _Bars(ax, rows).show(rows, alpha=alpha, k=k, gamma=gamma)
    return ax


def describe_machines(rows: Sequence[Verdict], alpha: float, k: int, *, gamma: float) -> str:
    """Alt text for ``plot_machines``."""
    return messages.many_alt(alpha, k, gamma, [(row.label, row.speedup) for row in rows])


@exclusive
def live_machines(rows: Sequence[Verdict]) -> LiveFigure:
    """The same for sliders: ``update(rows=, alpha=, k=, gamma=)``, with the same machines in the same order."""
    if not rows:
        raise ValueError(messages.MANY_NONE)
    ax = axes_of(None, height_in=_height_in(rows), left_in=LEFT_IN, right_in=RIGHT_IN, bottom_in=0.95)
    bars = _Bars(ax, rows)
    return LiveFigure(ax, bars.artists, bars.show)


class _Bars:
    """A row for each machine, made once; moving the sliders moves bars and words."""

    def __init__(self, ax: Axes, rows: Sequence[Verdict]) -> None:
        for label, look in ((messages.MANY_FASTER, _FASTER), (messages.MANY_SLOWER, _SLOWER)):
            ax.add_patch(Rectangle(_OUT_OF_VIEW, 0, 0, label=label, **look))
        ax.axvline(1.0, color=GREY, linewidth=1.6, zorder=3)
        ax.set_xlim(0.0, HIGHEST)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_yticks(range(len(rows)), [_named(row) for row in rows])
        ax.tick_params(axis="y", length=0)
        ax.grid(True, axis="x")
        ax.grid(False, axis="y")
        ax.set_xlabel(messages.SPEEDUP_AXIS)
        ax.set_title(messages.MANY_TITLE, pad=22.0)
        legend_below(ax, 2)
        self._label = ax.annotate(
            "", (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL, color=MUTED_TEXT
        )
        self._bars = [ax.add_patch(Rectangle((1.0, y - _BAR / 2), 0.0, _BAR, zorder=2)) for y in range(len(rows))]
        self._words = [ax.text(0, y, "", va="center", weight="bold", size=10, zorder=4) for y in range(len(rows))]

    @property
    def artists(self) -> list[Artist]:
        return [*self._bars, *self._words, self._label]

    def show(self, rows: Sequence[Verdict], *, alpha: float, k: int, gamma: float) -> None:
        self._label.set_text(messages.many_label(alpha, k, gamma))
        for row, bar, words in zip(rows, self._bars, self._words, strict=True):
            gain = 1.0 if row.speedup is None else min(row.speedup, HIGHEST)
            bar.set(**(_FASTER if gain > 1.0 else _SLOWER), visible=row.speedup is not None)
            bar.set_x(min(1.0, gain))
            bar.set_width(abs(gain - 1.0))
            words.set_text(messages.many_verdict(row.speedup))
            words.set_color(MUTED_TEXT if row.speedup is None else INK)
            self._place(words, gain)

    def _place(self, words: Text, gain: float) -> None:
        """Beyond the bar's end; inside it where there is no more room at the right."""
        inside = gain > 0.68 * HIGHEST
        words.set_x(gain - 0.05 if inside else max(gain, 1.0) + 0.05)
        words.set_ha("right" if inside else "left")
        if inside:
            words.set_color("white")


def _height_in(rows: Sequence[Verdict]) -> float:
    return 1.9 + 0.46 * len(rows)


def _named(row: Verdict) -> str:
    """The machine in at most two lines; where its cycles hold the price of its own draft, that is the second."""
    width = int(72.0 * (LEFT_IN - 0.15) / (AVERAGE_ADVANCE * SMALL))
    lines = wrap(legible(row.label), width, max_lines=1 if row.own_price else 2, placeholder=" …") or [""]
    return "\n".join([*lines, messages.MANY_OWN_PRICE] if row.own_price else lines)
