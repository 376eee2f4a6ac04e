"""Alpha against gamma: where each drafter stands, and the lines along which the best k gives the same speedup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from .. import messages
from ..render import exclusive, legible
from .style import GREY, MUTED_TEXT, SMALL, axes_of, head, label_of, legend_below, looks

LEVELS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 2.5)
"""Speedups that get a line; 1.0, where speculation begins to pay, is the bold one."""


@exclusive
def plot_frontier(
    points: Mapping[str, tuple[float, float]],
    alphas: Sequence[float],
    gammas: Sequence[float],
    speedups: np.ndarray,
    *,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """points: drafter -> (alpha, gamma). speedups: of the best k, shape (len(alphas), len(gammas)), of one staircase.

    ValueError without points, or where the shape does not fit.
    """
    if not points:
        raise ValueError(messages.no_rows("drafters"))
    if np.shape(speedups) != (len(alphas), len(gammas)):
        raise ValueError(messages.wrong_grid(np.shape(speedups), (len(alphas), len(gammas))))
    ax = axes_of(ax, height_in=4.6, bottom_in=1.3)
    _equal_speedups(ax, alphas, gammas, speedups)
    for (name, (alpha, gamma)), look in zip(points.items(), looks(len(points)), strict=False):
        ax.plot(
            gamma,
            alpha,
            look.marker,
            color=look.colour,
            markersize=9,
            linestyle="",
            label=legible(name),
            zorder=4,
            clip_on=False,
        )
    ax.set_xlim(0, max(gammas))
    ax.set_ylim(0, 1)
    ax.set_xlabel(messages.FRONTIER_GAMMA_AXIS)
    ax.set_ylabel(messages.FRONTIER_ALPHA_AXIS)
    head(ax, messages.FRONTIER_TITLE, label_of(recorded))
    legend_below(ax, 4)
    return ax


@exclusive
def plot_layer_search(
    sets: Mapping[str, Sequence[tuple[float, float]]],
    alphas: Sequence[float],
    gammas: Sequence[float],
    speedups: np.ndarray,
    *,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """sets: how layers were chosen -> (share of layers kept, recorded alpha) of each. Else as the frontier."""
    ax = axes_of(ax, height_in=4.4, bottom_in=1.15)
    _equal_speedups(ax, alphas, gammas, speedups)
    for (name, points), look in zip(sets.items(), looks(len(sets)), strict=False):
        xs, ys = zip(*sorted(points), strict=True) if points else ((), ())
        line = {"marker": look.marker, "color": look.colour, "linestyle": look.line, "linewidth": 1.1}
        ax.plot(xs, ys, label=legible(name), zorder=4, **line)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel(messages.LAYERS_KEPT_AXIS)
    ax.set_ylabel(messages.RECORDED_ALPHA_AXIS)
    head(ax, messages.LAYER_SEARCH_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_layer_search(sets: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Alt text for ``plot_layer_search``."""
    return messages.layer_search_alt(sets)


def _equal_speedups(ax: Axes, alphas: Sequence[float], gammas: Sequence[float], speedups: np.ndarray) -> None:
    widths = [2.2 if level == 1.0 else 0.9 for level in LEVELS]
    lines = ax.contour(gammas, alphas, speedups, levels=LEVELS, colors=GREY, linewidths=widths)
    ax.clabel(lines, fmt=lambda level: f"{level:g}×", fontsize=SMALL, colors=MUTED_TEXT)


def describe_frontier(points: Mapping[str, tuple[float, float]]) -> str:
    """Alt text for ``plot_frontier``."""
    return messages.frontier_alt(points)
