"""Where each drafter's tokens come from, drawn: what it reads, what makes the tokens, and the pass they all share."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from .. import messages
from ..render import INK, exclusive
from .style import BLUE, GREY, MUTED_TEXT, ORANGE, PALE, SKY, SMALL, axes_of, head

ROW_IN, N_DRAFTED = 0.78, 3
NAME_X, READS, MAKES, DRAFT, TARGET = 0.0, (0.17, 0.38), (0.43, 0.66), (0.71, 0.82), (0.865, 1.0)
"""Where the columns lie, as shares of the width."""


@exclusive
def plot_flows(flows: Sequence[messages.Flow] = messages.FLOWS, *, ax: Axes | None = None) -> Axes:
    """One row a drafter, from what it reads to the one target pass that verifies whatever came."""
    ax = axes_of(ax, height_in=0.85 + ROW_IN * len(flows), left_in=0.2, right_in=0.2, top_in=0.45, bottom_in=0.4)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_xlabel(messages.FLOWS_AXIS)
    ax.set_xlim(0, 1)
    ax.set_ylim(len(flows) - 0.45, -0.45)
    _box(ax, TARGET, (-0.4, len(flows) - 0.6), messages.FLOW_TARGET, BLUE, "white")
    for y, flow in enumerate(flows):
        ax.text(NAME_X, y, flow.drafter, va="center", weight="bold", size=SMALL + 0.5)
        _box(ax, READS, (y - 0.3, y + 0.3), flow.reads, PALE, INK)
        _arrow(ax, (READS[1], y), (MAKES[0], y))
        for (low, high), text in zip(_parts(y, len(flow.makes)), flow.makes, strict=True):
            _box(ax, MAKES, (low, high), text, ORANGE, INK)
        ax.text(
            sum(MAKES) / 2,
            y + (0.46 if flow.again else 0.41),
            flow.then,
            ha="center",
            va="center",
            size=SMALL,
            color=MUTED_TEXT,
        )
        if flow.again:
            _again(ax, y)
        _arrow(ax, (MAKES[1], y), (DRAFT[0], y))
        _drafted(ax, y)
        _arrow(ax, (DRAFT[1], y), (TARGET[0], y))
    head(ax, messages.FLOWS_TITLE, None)
    return ax


def describe_flows(flows: Sequence[messages.Flow] = messages.FLOWS) -> str:
    """Alt text for ``plot_flows``."""
    return messages.flows_alt(flows)


def _parts(y: float, count: int) -> list[tuple[float, float]]:
    """Heights of the boxes that make tokens: one, or several that work at the same time."""
    height = 0.6 / count
    gap = 0.03 if count > 1 else 0.0
    return [(y - 0.3 + i * height, y - 0.3 + (i + 1) * height - gap) for i in range(count)]


def _box(ax: Axes, xs: tuple[float, float], ys: tuple[float, float], text: str, colour: str, ink: str) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (xs[0], ys[0]), xs[1] - xs[0], ys[1] - ys[0],
            boxstyle="round,pad=0,rounding_size=0.012", mutation_aspect=6,
            facecolor=colour, edgecolor=GREY, linewidth=0.8,
        )
    )  # fmt: skip
    ax.text(sum(xs) / 2, sum(ys) / 2, text, ha="center", va="center", size=SMALL, color=ink, linespacing=1.15)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=INK, linewidth=1.0, shrinkB=1))


def _again(ax: Axes, y: float) -> None:
    """From the box's end back to its start: what it made is its next input."""
    ax.add_patch(
        FancyArrowPatch(
            (MAKES[1] - 0.01, y + 0.3), (MAKES[0] + 0.01, y + 0.3),
            connectionstyle="arc3,rad=-0.07", arrowstyle="-|>", mutation_scale=9, color=INK, linewidth=1.0,
        )
    )  # fmt: skip


def _drafted(ax: Axes, y: float) -> None:
    width = (DRAFT[1] - DRAFT[0]) / N_DRAFTED
    for i in range(N_DRAFTED):
        left = DRAFT[0] + i * width
        _box(ax, (left + 0.003, left + width - 0.003), (y - 0.16, y + 0.16), messages.drafted_token(i + 1), SKY, INK)
