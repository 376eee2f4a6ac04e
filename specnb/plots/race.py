"""Runs side by side: how many tokens each has after so many seconds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from matplotlib.axes import Axes

from .. import messages
from ..records import Run
from ..render import exclusive
from .style import axes_of, head, label_of, legend_below, looks


@exclusive
def plot_race(runs: Sequence[Run], *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Tokens over seconds, one line a run; a step up is one target pass. ValueError without runs or times."""
    if not runs or not all(run.decode_s > 0 for run in runs):
        raise ValueError(messages.no_rows("runs"))
    ax = axes_of(ax, height_in=3.8, bottom_in=1.0)
    for run, look in zip(runs, looks(len(runs)), strict=False):
        seconds = [0.0, *accumulate(cycle.seconds for cycle in run.cycles)]
        tokens = [0, *accumulate(len(cycle.emitted) for cycle in run.cycles)]
        ax.step(seconds, tokens, where="post", color=look.colour, linestyle=look.line, linewidth=1.8)
        # The end of each run is what is compared, so it alone carries the marker.
        ax.plot(
            seconds[-1], tokens[-1], look.marker, color=look.colour, markersize=8, linestyle=look.line,
            label=messages.race_entry(run.drafter, run.k, run.tokens_per_second),
        )  # fmt: skip
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    ax.set_xlabel(messages.RACE_TIME_AXIS)
    ax.set_ylabel(messages.RACE_TOKENS_AXIS)
    head(ax, messages.RACE_TITLE, label_of(recorded))
    legend_below(ax, 2)  # a third beside them would run out of the figure
    return ax


def describe_race(runs: Sequence[Run]) -> str:
    """Alt text for ``plot_race``."""
    return messages.race_alt([(run.drafter, run.k, run.emitted, run.decode_s, run.target_passes) for run in runs])
