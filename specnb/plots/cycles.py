"""One cycle's time, the ledger of predictions, and speedup over draft length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.axes import Axes

from .. import messages
from ..render import exclusive
from .style import (
    BLUE,
    GREY,
    MUTED_TEXT,
    ORANGE,
    PALE,
    SKY,
    SMALL,
    VERMILLION,
    Ends,
    axes_of,
    draw_intervals,
    draw_points,
    from_zero,
    head,
    label_of,
    legend_below,
    looks,
    whole_ticks,
)

EMPTY_KS = range(1, 9)
"""Draft lengths on the axis of a speedup plot that has nothing to show yet."""


class LedgerRow(Protocol):
    """What is needed of a ledger's row: speeds in tokens/s (``records.PublishedLedgerRow`` has it)."""

    k: int
    predicted: float
    measured: float


@exclusive
def plot_cycle(
    k: int,
    draft_ms: float,
    verify_ms: float,
    other_ms: float = 0.0,
    *,
    plain: tuple[float, float] | None = None,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One cycle as a stacked bar: k drafted tokens, one target pass, the rest; milliseconds.

    draft_ms: per drafted token. plain: (tokens per cycle, ms per plain token) adds a second bar,
    the same tokens without speculation, so that the shorter bar wins.
    recorded: as in ``CostCurve.recorded``; None writes no label.
    """
    ax = axes_of(ax, height_in=2.7 if plain is None else 3.3, left_in=0.95 if plain is None else 1.35, bottom_in=1.0)
    drafted = k * draft_ms
    seam = {"edgecolor": "white", "linewidth": 1.2, "height": 0.62}
    for i in range(k):
        ax.barh(0, draft_ms, left=i * draft_ms, color=ORANGE, label=messages.CYCLE_DRAFT if i == 0 else None, **seam)
    ax.barh(0, verify_ms, left=drafted, color=BLUE, label=messages.CYCLE_VERIFY, **seam)
    if other_ms > 0:
        left = drafted + verify_ms
        ax.barh(0, other_ms, left=left, color=GREY, hatch="////", label=messages.CYCLE_OTHER, **seam)
    total = drafted + verify_ms + other_ms
    ends = [total]
    if plain is not None:
        amount, each = plain
        whole = int(amount)
        for i, share in enumerate([1.0] * whole + ([amount - whole] if amount > whole else [])):
            label = messages.CYCLE_PLAIN if i == 0 else None
            ax.barh(1, share * each, left=i * each, color=SKY, hatch="..", label=label, **seam)
        ends.append(amount * each)
    longest = max(ends)
    for y, end in enumerate(ends):
        ax.annotate(messages.cycle_total(end), (end, y), (5, 0), textcoords="offset points", va="center", weight="bold")
    if k and drafted > 0.1 * longest:
        _in_bar(ax, drafted / 2, messages.draft_bar(k, drafted), "black", ORANGE)
    if verify_ms > 0.14 * longest:
        _in_bar(ax, drafted + verify_ms / 2, messages.verify_bar(k + 1, verify_ms), "white", BLUE)
    ax.set_xlim(0, 1.14 * longest)
    ax.set_ylim(len(ends) - 0.5, -0.5)
    ax.set_yticks(range(len(ends)), [messages.CYCLE_ROW, messages.CYCLE_PLAIN_ROW][: len(ends)])
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.set_xlabel(messages.CYCLE_AXIS)
    head(ax, messages.CYCLE_TITLE, label_of(recorded))
    legend_below(ax, 4)
    return ax


def _in_bar(ax: Axes, x: float, text: str, colour: str, bar: str) -> None:
    seamless = {"facecolor": bar, "edgecolor": "none", "pad": 1.0}
    ax.text(x, 0, text, ha="center", va="center", fontsize=SMALL, color=colour, bbox=seamless)


def describe_cycle(
    k: int, draft_ms: float, verify_ms: float, other_ms: float = 0.0, *, plain: tuple[float, float] | None = None
) -> str:
    """Alt text for ``plot_cycle``."""
    return messages.cycle_alt(k, draft_ms, verify_ms, other_ms, plain)


@exclusive
def plot_ledger(
    rows: Sequence[LedgerRow], *, plain: float | None = None, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """Predicted beside measured speed for each k, with the error of the prediction.

    plain: tokens/s of plain decoding, drawn as a line. ValueError without rows.
    """
    if not rows:
        raise ValueError(messages.no_rows("rows"))
    ax = axes_of(ax, height_in=4.2, bottom_in=1.0)
    ks = [row.k for row in rows]
    ax.vlines(ks, [row.measured for row in rows], [row.predicted for row in rows], color=GREY, linewidth=1.5, zorder=2)
    ax.plot(
        ks,
        [row.predicted for row in rows],
        "s",
        markersize=8,
        markerfacecolor="white",
        markeredgecolor=ORANGE,
        markeredgewidth=2,
        label=messages.PREDICTED,
    )
    ax.plot(ks, [row.measured for row in rows], "o", markersize=7, color=BLUE, label=messages.MEASURED, zorder=3)
    for row in rows:
        ax.annotate(
            messages.change(row.predicted / row.measured - 1),
            (row.k, max(row.predicted, row.measured)),
            (0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL,
        )
    if plain is not None:
        ax.axhline(plain, color="black", linewidth=1, linestyle="--", label=messages.PLAIN, zorder=1)
    ax.margins(x=0.06)
    from_zero(ax, 1.16)
    whole_ticks(ax, ks)
    ax.set_xlabel(messages.K_AXIS)
    ax.set_ylabel(messages.SPEED_AXIS)
    head(ax, messages.LEDGER_TITLE, label_of(recorded))
    legend_below(ax, 3)
    return ax


def describe_ledger(rows: Sequence[LedgerRow], *, plain: float | None = None) -> str:
    """Alt text for ``plot_ledger``."""
    return messages.ledger_alt([(row.k, row.predicted, row.measured) for row in rows], plain)


@exclusive
def plot_speedup_over_k(
    predicted: Mapping[str, Mapping[int, float]],
    *,
    measured: Sequence[tuple[int, float, Ends]] = (),
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Speedup over plain decoding for each draft length; below the line at 1.0 speculation costs time.

    predicted: label -> (k -> speedup); the best k of the first one is named. measured: (k, speedup,
    interval or None). Lines join k and k + 1 only. With neither, the empty frame.
    """
    ax = axes_of(ax, height_in=4.2, bottom_in=1.0)
    for (label, by_k), look in zip(predicted.items(), looks(len(predicted)), strict=True):
        draw_points(ax, by_k, look, label)
    _draw_measured(ax, measured)
    ks = sorted({k for by_k in predicted.values() for k in by_k} | {k for k, _, _ in measured})
    _speedup_frame(ax, ks or EMPTY_KS)
    first = next((by_k for by_k in predicted.values() if by_k), None)
    if first is not None:
        best = max(first, key=lambda k: first[k])
        pays = first[best] > 1.0
        if pays:
            ax.plot(best, first[best], "o", markersize=13, markerfacecolor="none", markeredgecolor=VERMILLION, mew=2)
        ax.text(
            0.99,
            0.97,
            messages.best_prediction(best, first[best]) if pays else messages.BEST_OFF,
            transform=ax.transAxes,
            ha="right",
            va="top",
            weight="bold",
        )
    head(ax, messages.SPEEDUP_TITLE, label_of(recorded))
    legend_below(ax, 4)
    return ax


def _draw_measured(ax: Axes, measured: Sequence[tuple[int, float, Ends]]) -> None:
    if not measured:
        return
    ends = {k: pair for k, _, pair in measured}
    ax.plot(
        [k for k, _, _ in measured],
        [value for _, value, _ in measured],
        "D",
        color="black",
        markersize=6,
        zorder=5,
        label=messages.MEASURED_INTERVAL if any(ends.values()) else messages.MEASURED,
    )
    draw_intervals(ax, ends, "black")


def _speedup_frame(ax: Axes, ks: Sequence[int], top: float | None = None) -> None:
    """Axes of a speedup plot: the line at 1.0, the losing half shaded."""
    highest = 1.16 * ax.dataLim.y1 if ax.has_data() else 0.0
    ax.set_ylim(0, max(1.25, highest) if top is None else top)
    ax.set_xlim(min(ks) - 0.6, max(ks) + 0.6)
    ax.axhspan(0, 1, color=PALE, zorder=0)
    ax.axhline(1.0, color="black", linewidth=1.2, linestyle="--", zorder=1, label=messages.PLAIN_LINE)
    ax.text(0.99, 0.02, messages.SLOWER, transform=ax.transAxes, ha="right", fontsize=SMALL, color=MUTED_TEXT)
    whole_ticks(ax, ks)
    ax.set_xlabel(messages.K_AXIS)
    ax.set_ylabel(messages.SPEEDUP_AXIS)


def describe_speedup_over_k(
    predicted: Mapping[str, Mapping[int, float]], *, measured: Sequence[tuple[int, float, Ends]] = ()
) -> str:
    """Alt text for ``plot_speedup_over_k``."""
    return messages.speedup_alt(predicted, measured)
