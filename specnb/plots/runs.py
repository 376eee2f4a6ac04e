"""One generation, cycle by cycle."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from .. import messages
from ..records import Run
from ..render import exclusive
from .style import BLUE, GREY, ORANGE, PALE, axes_of, head, legend_below

FEW = 120
"""Cycles that can be told apart by seams and hatching; with more, there would be nothing else to see."""


@exclusive
def plot_run_timeline(run: Run, *, ax: Axes | None = None) -> Axes:
    """Every cycle as a column: its width is its time, its height its tokens; refused ones on top, hatched.

    A run without times (a toy target's) has columns of equal width, one a target pass.
    ValueError for a run without cycles.
    """
    if not run.cycles:
        raise ValueError(messages.no_rows("run.cycles"))
    ax = axes_of(ax, height_in=3.8, bottom_in=1.0)
    timed, few = run.decode_s > 0, len(run.cycles) <= FEW
    widths = [cycle.seconds if timed else 1.0 for cycle in run.cycles]
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    kept = np.array([cycle.kept for cycle in run.cycles])
    emitted = np.array([len(cycle.emitted) for cycle in run.cycles])
    drafted = np.array([len(cycle.drafted) for cycle in run.cycles])
    # A kept token that ends the text leaves no token of the target's own: emitted == kept.
    layers = (
        (np.zeros_like(kept), kept, messages.TIMELINE_KEPT, {"facecolor": BLUE}),
        (kept, emitted, messages.TIMELINE_OWN, {"facecolor": ORANGE}),
        (
            emitted,
            emitted + drafted - kept,
            messages.TIMELINE_REFUSED,
            {"facecolor": PALE, "edgecolor": GREY, "hatch": "////" if few else None, "linewidth": 0.0},
        ),
    )
    for low, high, label, look in layers:
        ax.fill_between(edges, _stepped(low), _stepped(high), step="post", label=label, **look)
    if few:
        tops = np.maximum(_stepped(emitted + drafted - kept), np.append(0, emitted + drafted - kept))
        ax.vlines(edges, 0, tops, color="white", linewidth=0.8)
    ax.set_xlim(0, edges[-1])
    ax.set_ylim(0, 1.08 * max(emitted + drafted - kept))
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.xaxis.get_major_locator().set_params(integer=not timed)
    ax.set_xlabel(messages.TIMELINE_AXIS if timed else messages.TIMELINE_CYCLE_AXIS)
    ax.set_ylabel(messages.TIMELINE_TOKENS_AXIS)
    label = messages.run_label(run.drafter, run.k, run.emitted, run.target_passes, run.tokens_per_second)
    head(ax, messages.TIMELINE_TITLE, label)
    legend_below(ax, 3)
    return ax


def _stepped(values: np.ndarray) -> np.ndarray:
    """One value for each edge: the last column's height is repeated at its right end."""
    return np.append(values, values[-1])


def describe_run_timeline(run: Run) -> str:
    """Alt text for ``plot_run_timeline``."""
    return messages.timeline_alt(
        run.drafter, run.k, run.target_passes, run.emitted, run.kept, run.drafted, run.decode_s
    )
