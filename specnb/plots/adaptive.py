"""A run under the adaptive policy: what was chosen before each pass, and what it thought of the drafters."""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes

from .. import messages
from ..records import AdaptiveRun
from ..render import exclusive
from .style import GREY, VERMILLION, axes_of, head, label_of, looks

_LOWER = (0.0, -1.08, 1.0, 0.72)
"""The panel of the running alphas, in units of the upper one."""


@exclusive
def plot_adaptive(found: AdaptiveRun, *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Above, the k chosen before each target pass, by drafter; below, each drafter's running alpha.

    ValueError for a run without passes.
    """
    if not found.picks:
        raise ValueError(messages.no_rows("picks"))
    ax = axes_of(ax, height_in=4.8, bottom_in=2.2, right_in=2.0)
    names = [name for name, _ in found.picks[0].alphas]
    shown = dict(zip(names, looks(len(names)), strict=False))
    off = [i for i, pick in enumerate(found.picks) if pick.k == 0]
    ax.plot(off, [0] * len(off), "o", color=GREY, markerfacecolor="white", markersize=3.5, label=messages.PLAIN)
    for name, look in shown.items():
        at = [(i, pick.k) for i, pick in enumerate(found.picks) if pick.drafter == name and pick.k]
        xs, ks = [x for x, _ in at], [k for _, k in at]
        ax.vlines(xs, 0, ks, color=look.colour, linewidth=0.8, alpha=0.6)
        ax.plot(xs, ks, look.marker, color=look.colour, markersize=5, label=name)
    tried = [i for i, pick in enumerate(found.picks) if pick.tried]
    if tried:
        ax.plot(tried, [0] * len(tried), "x", color=VERMILLION, markersize=7, label=messages.ADAPTIVE_TRIED)
    top = max(pick.k for pick in found.picks)
    ax.set_ylim(-0.06 * max(top, 1), 1.12 * max(top, 1))
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    ax.set_ylabel(messages.ADAPTIVE_K_AXIS)
    ax.legend(loc="upper left", bbox_to_anchor=(1.015, 1.0))
    below = ax.inset_axes(_LOWER, sharex=ax)
    for name, look in shown.items():
        below.plot([dict(pick.alphas)[name] for pick in found.picks], look.line, color=look.colour, label=name)
    below.set_ylim(-0.03, 1.03)
    below.set_ylabel(messages.ADAPTIVE_ALPHA_AXIS)
    below.tick_params(labelbottom=False)
    below.legend(loc="upper left", bbox_to_anchor=(1.015, 1.0))
    ax.set_xlabel(messages.TIMELINE_CYCLE_AXIS)
    head(ax, messages.ADAPTIVE_TITLE, label_of(recorded))
    return ax


def describe_adaptive(found: AdaptiveRun) -> str:
    """Alt text for ``plot_adaptive``."""
    passes = Counter((pick.drafter, pick.k) for pick in found.picks)
    by_drafter: dict[str, list[tuple[int, int]]] = {}
    for (drafter, k), count in sorted(passes.items()):
        by_drafter.setdefault(drafter, []).append((k, count))
    return messages.adaptive_alt(by_drafter, sum(pick.tried for pick in found.picks), found.picks[-1].alphas)
