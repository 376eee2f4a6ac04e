"""Machine cards: one on a page, several side by side, and what one drafter would bring on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import messages
from ..records import Choice, MachineCard
from ..render import INK, exclusive, legible, new_figure
from .cost import Cliff, plot_cost_curve, spoken
from .style import AVERAGE_ADVANCE, BLUE, GREY, MUTED_TEXT, ORANGE, SMALL, axes_of, head, legend_below

WIDTH_IN, LEFT_IN, RIGHT_IN = 7.2, 0.75, 0.3
LABEL_IN = 1.9
"""Margin for names of drafters and machines at the left of a row."""

MOST_ALPHAS, MOST_CHOICES = 14, 10

CHOICE_COLUMNS = ((0.0, 1.2, 10.0), (1.3, 1.9, 11.0), (3.3, WIDTH_IN - LEFT_IN - 3.3 - RIGHT_IN, 10.0))
"""Of "what to set": inches from the margin, inches of room, points of a character (more of a bold one)."""


class Gain(Protocol):
    """What is needed of a row (``cards.SameAlpha`` has it)."""

    label: str
    k: int
    speedup: float


@exclusive
def card_page(card: MachineCard, *, cliffs: Sequence[Cliff] = ()) -> Figure:
    """One page: the machine, its staircase in ms, how good drafts are, and what to set.

    cliffs: what ``theory.cliffs`` says of the card's staircase. Parts that the card lacks are said to be lacking.
    """
    lines = [line for told in messages.card_head(card) for line in _wrapped(told, WIDTH_IN - LEFT_IN - RIGHT_IN)]
    alphas, choices = card.alphas[:MOST_ALPHAS], card.best[:MOST_CHOICES]
    head_in = 0.62 + 0.18 * len(lines)
    staircase_in = 3.9 if card.staircase is not None else 0.5
    alpha_in = 1.35 + 0.22 * max(1, len(alphas))
    best_in = 0.55 + 0.24 * max(1, sum(map(_lines_of_choice, choices)))
    page_in = head_in + staircase_in + alpha_in + best_in
    figure = new_figure(WIDTH_IN, page_in)
    _write(figure, page_in, 0.34, card.label, fontsize=15, fontweight="bold")
    for i, line in enumerate(lines):
        _write(figure, page_in, 0.62 + 0.18 * i, line, fontsize=SMALL, color=MUTED_TEXT)
    top_in = head_in
    if card.staircase is None:
        _write(figure, page_in, top_in + 0.2, messages.CARD_NO_STAIRCASE, color=MUTED_TEXT)
    else:
        ax = _part(figure, page_in, top_in + 0.8, staircase_in - 1.5, LEFT_IN)
        plot_cost_curve(card.staircase, cliffs=cliffs, ax=ax)
    top_in += staircase_in
    _alphas(figure, page_in, top_in, card)
    _choices(figure, page_in, top_in + alpha_in, card)
    return figure


def _part(figure: Figure, page_in: float, top_in: float, height_in: float, left_in: float) -> Axes:
    """Axes that begin ``top_in`` inches below the page's upper edge."""
    bottom = 1.0 - (top_in + height_in) / page_in
    width = (WIDTH_IN - left_in - RIGHT_IN) / WIDTH_IN
    return figure.add_axes((left_in / WIDTH_IN, bottom, width, height_in / page_in))


def _write(figure: Figure, page_in: float, top_in: float, text: str, left_in: float = LEFT_IN, **look: object) -> None:
    figure.text(left_in / WIDTH_IN, 1.0 - top_in / page_in, legible(text), va="baseline", **look)


def _wrapped(text: str, width_in: float, size: float = SMALL) -> list[str]:
    return wrap(legible(text), int(72.0 * width_in / (AVERAGE_ADVANCE * size))) or [""]


def _alphas(figure: Figure, page_in: float, top_in: float, card: MachineCard) -> None:
    """A row for each drafter and kind: a dot or a bar for alpha, a thin line for its interval; hollow without one."""
    _write(figure, page_in, top_in + 0.2, messages.CARD_ALPHA_TITLE, fontsize=12, fontweight="bold")
    rows = card.alphas[:MOST_ALPHAS]
    if not rows:
        _write(figure, page_in, top_in + 0.5, messages.CARD_NO_ALPHA, color=MUTED_TEXT)
        return
    _write(figure, page_in, top_in + 0.4, messages.CARD_ALPHA_LEGEND, fontsize=SMALL, color=MUTED_TEXT)
    ax = _part(figure, page_in, top_in + 0.55, 0.22 * len(rows), LEFT_IN + LABEL_IN - 0.4)
    for y, row in enumerate(rows):
        face = BLUE if row.has_interval else "white"
        if row.has_interval:
            ax.plot((row.interval_low, row.interval_high), (y, y), color=BLUE, linewidth=1.2, zorder=2)
        ax.plot(
            (row.low, row.high), (y, y), "-o", color=BLUE, markerfacecolor=face, linewidth=5.0, zorder=3, clip_on=False
        )  # fmt: skip
    names = [messages.card_alpha_row(row) for row in rows]
    ax.set_yticks(range(len(rows)), [legible(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0.0, 1.0)
    ax.grid(True, axis="x")
    ax.grid(False, axis="y")
    ax.set_xlabel(messages.ALPHA_AXIS)
    if len(card.alphas) > len(rows):
        note = messages.card_not_shown(len(card.alphas) - len(rows))
        ax.annotate(
            note, (1, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", ha="right", fontsize=SMALL
        )


def _choices(figure: Figure, page_in: float, top_in: float, card: MachineCard) -> None:
    """The settings as a small table; what is too long for its column goes on below."""
    _write(figure, page_in, top_in + 0.2, messages.CARD_BEST_TITLE, fontsize=12, fontweight="bold")
    rows = card.best[:MOST_CHOICES]
    line_in = top_in + 0.48
    for choice in rows:
        columns = zip(_choice_columns(choice), CHOICE_COLUMNS, ("normal", "bold", "normal"), strict=True)
        for lines, (left_in, _room_in, _size), weight in columns:
            for i, line in enumerate(lines):
                _write(figure, page_in, line_in + 0.24 * i, line, LEFT_IN + left_in, fontsize=10, fontweight=weight)
        line_in += 0.24 * _lines_of_choice(choice)
    if not rows:
        _write(figure, page_in, top_in + 0.48, messages.CARD_NO_BEST, color=MUTED_TEXT)


def _choice_columns(choice: Choice) -> list[list[str]]:
    """The lines of each column."""
    columns = zip(messages.card_choice(choice), CHOICE_COLUMNS, strict=True)
    return [_wrapped(text, room_in, size) for text, (_left_in, room_in, size) in columns]


def _lines_of_choice(choice: Choice) -> int:
    return max(map(len, _choice_columns(choice)))


def card_page_alt(card: MachineCard) -> str:
    """Alt text for ``card_page``."""
    return messages.card_alt(card, {} if card.staircase is None else spoken(_relative(card)))


def _relative(card: MachineCard) -> dict[int, float]:
    medians = card.staircase.median_ms
    return {n: value / medians[1] for n, value in medians.items()}


@exclusive
def plot_cards(cards: Sequence[MachineCard], *, ax: Axes | None = None) -> Axes:
    """The staircases of several machines in units of their own T(1); cards without one are left out.

    ValueError where none has a staircase.
    """
    drawn = plot_cost_curve(_labelled(cards), relative=True, ax=ax)
    drawn.set_title(messages.CARDS_TITLE, pad=9.0 + 13.0)
    return drawn


def describe_cards(cards: Sequence[MachineCard]) -> str:
    """Alt text for ``plot_cards``."""
    told: Mapping[str, Mapping[int, float]] = {
        card.label: spoken(_relative(card)) for card in cards if card.staircase is not None
    }
    return messages.relative_curves_alt(messages.CARDS_TITLE, told, messages.curve_labels(_labelled(cards)))


def _labelled(cards: Sequence[MachineCard]) -> list:
    curves = [replace(card.staircase, label=card.label) for card in cards if card.staircase is not None]
    if not curves:
        raise ValueError(messages.no_cards())
    return curves


@exclusive
def plot_same_alpha(rows: Sequence[Gain], alpha: float, *, gamma: float = 0.0, ax: Axes | None = None) -> Axes:
    """Speedup of the same drafter at the best k on every machine's staircase; one row a machine.

    rows: from ``cards.same_alpha``. A hollow dot at 1 means "leave it off". ValueError without rows.
    """
    if not rows:
        raise ValueError(messages.no_cards())
    ax = axes_of(ax, height_in=1.9 + 0.34 * len(rows), left_in=LABEL_IN + 0.55, right_in=1.0, bottom_in=0.95)
    for y, row in enumerate(rows):
        off = row.k == 0
        ax.plot((1.0, row.speedup), (y, y), color=GREY, linewidth=1.2, zorder=2)
        ax.plot(
            row.speedup, y, "s" if off else "o", color=ORANGE if off else BLUE, markersize=8,
            markerfacecolor="white" if off else BLUE, zorder=3,
        )  # fmt: skip
        ax.annotate(
            messages.same_alpha_entry(row.k, row.speedup), (row.speedup, y), (9, 0), textcoords="offset points",
            va="center", fontsize=SMALL, color=INK,
        )  # fmt: skip
    for marker, colour, face, label in (
        ("o", BLUE, BLUE, messages.CARD_BEST_K),
        ("s", ORANGE, "white", messages.CARD_OFF),
    ):
        ax.plot([], [], marker, color=colour, markerfacecolor=face, markersize=8, linestyle="", label=label)
    ax.axvline(1.0, color=GREY, linewidth=1.0, zorder=1)
    ax.set_yticks(range(len(rows)), ["\n".join(_wrapped(row.label, LABEL_IN + 0.4)[:2]) for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0.0, max(1.2, 1.08 * max(row.speedup for row in rows)))
    ax.grid(True, axis="x")
    ax.grid(False, axis="y")
    ax.set_xlabel(messages.SPEEDUP_AXIS)
    head(ax, messages.SAME_ALPHA_TITLE, messages.same_alpha_label(alpha, gamma))
    legend_below(ax, 2)
    return ax


def describe_same_alpha(rows: Sequence[Gain], alpha: float, *, gamma: float = 0.0) -> str:
    """Alt text for ``plot_same_alpha``."""
    return messages.same_alpha_alt(alpha, gamma, [(row.label, row.k, row.speedup) for row in rows])
