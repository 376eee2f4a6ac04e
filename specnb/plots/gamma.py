"""Speedup over gamma at one alpha and one k: what a cheaper draft would bring, and where that ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from .. import messages
from ..render import LiveFigure, exclusive, legible
from .style import BLUE, GREY, VERMILLION, axes_of, head, label_of, legend_below, looks

Points = Mapping[str, tuple[float, float]]
"""What it is -> (gamma, measured speedup)."""

LIVE_POINTS = 7
"""More would need colours that can no longer be told apart."""


@exclusive
def plot_speedup_over_gamma(
    gammas: Sequence[float],
    speedups: Sequence[float],
    points: Points,
    *,
    alpha: float,
    k: int,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """speedups: the ledger's, one for each gamma. points: measured ones, each of a drafter with an alpha of its own."""
    ax = _frame(ax, max(gammas), max([*speedups, *(y for _, y in points.values()), 1.0]) * 1.1)
    ax.plot(gammas, speedups, color=BLUE, linewidth=2, label=messages.gamma_curve(alpha, k))
    ax.plot(gammas[0], speedups[0], "o", markersize=11, markerfacecolor="none", markeredgecolor=VERMILLION, mew=2)
    ax.annotate(
        messages.free_draft(speedups[0]), (gammas[0], speedups[0]), (12, 8), textcoords="offset points", weight="bold"
    )
    _measured(ax, points)
    head(ax, messages.GAMMA_TITLE, label_of(recorded))
    legend_below(ax, 3)
    return ax


def describe_speedup_over_gamma(
    gammas: Sequence[float], speedups: Sequence[float], points: Points, *, alpha: float, k: int
) -> str:
    """Alt text for ``plot_speedup_over_gamma``."""
    return messages.gamma_alt(gammas, speedups, points, alpha, k)


@exclusive
def live_speedup_over_gamma(most_gamma: float, *, top: float) -> LiveFigure:
    """The same for sliders: ``update(gammas=, speedups=, gamma=, speedup=, alpha=, k=, points=)``.

    gamma, speedup: where the reader is; no speedup where the pass was not measured.
    """
    ax = _frame(None, most_gamma, top)
    (line,) = ax.plot([], [], color=BLUE, linewidth=2)
    (here,) = ax.plot([], [], "o", markersize=12, markerfacecolor="none", markeredgecolor=VERMILLION, mew=2)
    dots = [ax.plot([], [], look.marker, color=look.colour, markersize=8)[0] for look in looks(LIVE_POINTS)]
    names = [ax.text(0, 0, "", size=9, va="center") for _ in dots]
    readout = ax.text(0.99, 0.97, "", transform=ax.transAxes, ha="right", va="top", weight="bold", size=12)
    head(ax, messages.GAMMA_TITLE, None)

    def move(
        *,
        gammas: Sequence[float],
        speedups: Sequence[float],
        gamma: float,
        speedup: float | None,
        alpha: float,
        k: int,
        points: Points,
    ) -> None:
        line.set_data(gammas, speedups)
        known = speedup is not None
        here.set_data([gamma] if known else [], [speedup] if known else [])
        readout.set_text(messages.gamma_readout(gamma, speedup, alpha, k) if known else "")
        told = [*points.items()][: len(dots)]
        for i, (dot, name) in enumerate(zip(dots, names, strict=True)):
            x, y = told[i][1] if i < len(told) else (0.0, 0.0)
            dot.set_data([x] if i < len(told) else [], [y] if i < len(told) else [])
            name.set_position((x + 0.02 * most_gamma, y - 0.04 * top))
            name.set_text(legible(told[i][0]) if i < len(told) else "")

    return LiveFigure(ax, [line, here, *dots, *names, readout], move)


def _frame(ax: Axes | None, most_gamma: float, top: float) -> Axes:
    ax = axes_of(ax, height_in=4.2, bottom_in=1.15)
    ax.set_xlim(-0.01 * most_gamma, most_gamma)
    ax.set_ylim(0, top)
    ax.axhline(1.0, color=GREY, linewidth=1.6, linestyle="--")
    ax.set_xlabel(messages.FRONTIER_GAMMA_AXIS)
    ax.set_ylabel(messages.SPEEDUP_AXIS)
    return ax


def _measured(ax: Axes, points: Points) -> None:
    for (name, (gamma, speedup)), look in zip(points.items(), looks(len(points)), strict=True):
        label = messages.measured_point(name)
        ax.plot(gamma, speedup, look.marker, color=look.colour, markersize=8, linestyle="", label=legible(label))
