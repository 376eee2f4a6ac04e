"""Alpha: solving for it, and what it says about acceptance, positions and kept tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .. import messages
from ..render import exclusive
from .style import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    SMALL,
    VERMILLION,
    Ends,
    axes_of,
    draw_intervals,
    from_zero,
    head,
    label_of,
    legend_below,
    whole_ticks,
)

ALPHAS = np.linspace(0.0, 1.0, 201)

ExpectedTokens = Callable[[np.ndarray, int], np.ndarray]
"""(alphas, k) -> expected tokens per cycle, as ``theory.expected_tokens`` gives them."""


@exclusive
def plot_alpha_bisection(
    steps: Sequence[tuple[float, float, float, float]],
    target: float,
    k: int,
    expected_tokens: ExpectedTokens,
    *,
    ax: Axes | None = None,
) -> Axes:
    """E[tokens](alpha), the observed tokens per cycle, and the brackets that close in on alpha.

    steps: (low, high, mid, expected tokens at mid), first step first. expected_tokens:
    ``theory.expected_tokens``. ValueError without steps.
    """
    if not steps:
        raise ValueError(messages.no_rows("steps"))
    ax = axes_of(ax, height_in=4.4, bottom_in=1.0)
    tokens = expected_tokens(ALPHAS, k)
    ax.plot(ALPHAS, tokens, color=BLUE, linewidth=2, label=messages.expected_tokens_curve(k))
    ax.axhline(target, color=VERMILLION, linewidth=1.4, linestyle="--", label=messages.target_line(target))
    # Brackets hang in a band of their own below zero, each under the one before: a funnel.
    band = 0.32 * (k + 1)
    heights = -band * np.linspace(0.1, 0.95, max(2, len(steps)))[: len(steps)]
    lows, highs, mids, values = (np.array(column) for column in zip(*steps, strict=True))
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.hlines(heights, lows, highs, color="#333333", linewidth=1.6, label=messages.BISECTION_BRACKETS)
    ax.plot(mids, heights, "|", color=VERMILLION, markersize=6, markeredgewidth=1.6)
    ax.plot(mids, values, "o", color=BLUE, markeredgecolor="black", markersize=6, zorder=3)
    ax.vlines(mids[-1], -band, target, color=VERMILLION, linewidth=1, linestyle=":")
    ax.annotate(
        messages.solved_alpha(mids[-1]),
        (mids[-1], target),
        (9, -6),
        textcoords="offset points",
        va="top",
        fontweight="bold",
    )
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-band, 1.04 * (k + 1))
    ax.set_yticks([tick for tick in MaxNLocator(8, integer=True).tick_values(0, k + 1) if 0 <= tick <= k + 1])
    ax.set_xlabel(messages.ALPHA_AXIS)
    ax.set_ylabel(messages.TOKENS_AXIS)
    head(ax, messages.BISECTION_TITLE, None)
    legend_below(ax, 3)
    return ax


def describe_alpha_bisection(steps: Sequence[tuple[float, float, float, float]], target: float, k: int) -> str:
    """Alt text for ``plot_alpha_bisection``."""
    return messages.bisection_alt(steps, target, k)


@exclusive
def plot_acceptance_and_alpha(
    rows: Sequence[tuple[int, float, float]], *, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """Acceptance rate and alpha over k: the first falls by its definition, the second need not.

    rows: (k, acceptance rate, alpha), both shares between 0 and 1. ValueError without rows.
    """
    if not rows:
        raise ValueError(messages.no_rows("rows"))
    ax = axes_of(ax, height_in=4.0, bottom_in=1.0)
    rows = sorted(rows)
    ks = [k for k, _, _ in rows]
    rates, alphas = [100 * rate for _, rate, _ in rows], [100 * alpha for _, _, alpha in rows]
    ax.plot(ks, alphas, "s-", color=ORANGE, linewidth=1.2, markeredgecolor="black", label=messages.ALPHA_SERIES)
    ax.plot(ks, rates, "o--", color=BLUE, linewidth=1.2, label=messages.ACCEPTANCE_SERIES)
    for i in sorted({0, len(ks) - 1}):
        _name(ax, ks[i], alphas[i], 9)
        if alphas[i] - rates[i] > 5.0:  # else one name is enough for both
            _name(ax, ks[i], rates[i], -16)
    ax.set_ylim(0, 100)
    ax.margins(x=0.05)
    whole_ticks(ax, ks)
    ax.set_xlabel(messages.K_AXIS)
    ax.set_ylabel(messages.SHARE_AXIS)
    head(ax, messages.ACCEPTANCE_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def _name(ax: Axes, k: int, value: float, above_pt: float) -> None:
    text = messages.percent(value / 100)
    ax.annotate(text, (k, value), (0, above_pt), textcoords="offset points", ha="center", fontsize=SMALL)


def describe_acceptance_and_alpha(rows: Sequence[tuple[int, float, float]]) -> str:
    """Alt text for ``plot_acceptance_and_alpha``."""
    return messages.acceptance_alt(sorted(rows))


@exclusive
def plot_position_acceptance(
    kept_by_position: Sequence[tuple[int, int]],
    alpha: float | None = None,
    *,
    intervals: Sequence[Ends] = (),
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Kept / tested at each draft position, against the model's one alpha for all of them.

    kept_by_position: (times kept, times tested) as in ``Run.kept_by_position``. intervals: one for
    each position, e.g. ``theory.alpha_interval(kept, tested)``; they grow as fewer are tested.
    A position that was never tested gets no bar. ValueError without positions.
    """
    if not kept_by_position:
        raise ValueError(messages.no_rows("kept_by_position"))
    ax = axes_of(ax, height_in=3.8, bottom_in=1.0)
    tested = {i: (kept, n) for i, (kept, n) in enumerate(kept_by_position, 1) if n}
    observed = messages.POSITION_OBSERVED_INTERVAL if any(intervals) else messages.POSITION_OBSERVED
    shares = [100 * kept / n for kept, n in tested.values()]
    ax.bar(list(tested), shares, 0.62, color=SKY, edgecolor="#333333", linewidth=0.8, label=observed)
    draw_intervals(
        ax, {i: pair and (100 * pair[0], 100 * pair[1]) for i, pair in enumerate(intervals, 1) if i in tested}, "black"
    )
    for i, (_, n) in tested.items():
        ax.annotate(messages.tested_count(n), (i, 0), (0, 4), textcoords="offset points", ha="center", fontsize=SMALL)
    if alpha is not None:
        ax.axhline(100 * alpha, color=VERMILLION, linewidth=1.8, linestyle="--", label=messages.alpha_line(alpha))
    ax.set_ylim(0, 105)
    ax.set_yticks(range(0, 101, 20))
    ax.set_xlim(0.4, len(kept_by_position) + 0.6)
    whole_ticks(ax, range(1, len(kept_by_position) + 1))
    ax.set_xlabel(messages.POSITION_AXIS)
    ax.set_ylabel(messages.POSITION_SHARE_AXIS)
    head(ax, messages.POSITION_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_position_acceptance(kept_by_position: Sequence[tuple[int, int]], alpha: float | None = None) -> str:
    """Alt text for ``plot_position_acceptance``."""
    return messages.position_alt(kept_by_position, alpha)


@exclusive
def plot_kept_distribution(
    counts: Sequence[int],
    probabilities: Sequence[float],
    *,
    alpha: float | None = None,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How many drafted tokens a cycle kept, beside what alpha lets expect.

    counts: cycles with 0, 1, ..., k kept. probabilities: of the same, as in
    ``theory.tokens_per_cycle_distribution(alpha, k)``. alpha: named in the legend.
    ValueError when the two differ in length or are empty.
    """
    if len(counts) != len(probabilities):
        raise ValueError(messages.lengths_differ(len(counts), len(probabilities)))
    if not len(counts):
        raise ValueError(messages.no_rows("counts"))
    ax = axes_of(ax, height_in=3.8, bottom_in=1.0)
    kept, total = np.arange(len(counts)), sum(counts)
    if total:
        shares = 100.0 * np.asarray(counts) / total
        ax.bar(kept, shares, 0.62, color=SKY, edgecolor="#333333", linewidth=0.8, label=messages.OBSERVED)
    ax.plot(
        kept,
        100.0 * np.asarray(probabilities),
        "D",
        color=VERMILLION,
        markeredgecolor="black",
        markersize=7,
        label=messages.geometric(alpha),
    )
    from_zero(ax)
    ax.set_xlim(-0.6, len(counts) - 0.4)
    whole_ticks(ax, range(len(counts)))
    ax.set_xlabel(messages.KEPT_AXIS)
    ax.set_ylabel(messages.CYCLES_AXIS)
    head(ax, messages.KEPT_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_kept_distribution(counts: Sequence[int], probabilities: Sequence[float]) -> str:
    """Alt text for ``plot_kept_distribution``."""
    return messages.kept_alt(counts, probabilities)
