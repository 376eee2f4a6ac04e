"""What keeps a small draft dear: bandwidth reached, the two-term model beside it, gamma against size, time by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.axes import Axes

from .. import messages
from ..intervals import ratio_interval
from ..records import LayerwiseCost
from ..render import exclusive, legible
from .style import (
    BLUE,
    GREY,
    MUTED_TEXT,
    ORANGE,
    SMALL,
    VERMILLION,
    axes_of,
    draw_points,
    from_zero,
    head,
    label_of,
    legend_below,
    legend_beside,
    looks,
    whole_ticks,
)

MIB = 2**20


class Pass(Protocol):
    """What is needed of a timed pass (``records.PassCost`` has it)."""

    label: str
    format: str
    bytes_per_pass: int
    ms: float


class Split(Protocol):
    """What is needed of a pass split by cause, in ms (``floor.Shares`` has it)."""

    weights: float
    fixed: float
    rest: float


@exclusive
def plot_effective_bandwidth(
    rates: Mapping[str, float],
    ceiling_gb_per_s: float,
    *,
    ceiling_name: str = messages.CEILING_LINE,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of GB/s by model, and the ceiling as a line; each bar says its share of it. ValueError without bars."""
    if not rates:
        raise ValueError(messages.no_rows("rates"))
    ax = axes_of(ax, height_in=1.9 + 0.33 * len(rates), left_in=_room_for(rates), bottom_in=1.05)
    most = max(*rates.values(), ceiling_gb_per_s)
    ax.barh(range(len(rates)), list(rates.values()), height=0.62, color=BLUE, label=messages.BANDWIDTH_MEASURED)
    for y, rate in enumerate(rates.values()):
        share = messages.percent(rate / ceiling_gb_per_s)
        text = f"{messages.gb_per_s(rate)}, {share}"
        inside = rate > 0.4 * most
        ax.annotate(
            text,
            (rate, y),
            (-5 if inside else 5, 0),
            textcoords="offset points",
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
            fontsize=SMALL,
            bbox={"facecolor": BLUE if inside else "white", "edgecolor": "none", "pad": 1.0},
            zorder=5,
        )
    name = f"{ceiling_name}: {messages.gb_per_s(ceiling_gb_per_s)}"
    ax.axvline(ceiling_gb_per_s, color=VERMILLION, linestyle="--", linewidth=1.8, label=name)
    _rows(ax, list(rates), most)
    ax.set_xlabel(messages.BANDWIDTH_AXIS)
    head(ax, messages.BANDWIDTH_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_effective_bandwidth(
    rates: Mapping[str, float], ceiling_gb_per_s: float, *, ceiling_name: str = messages.CEILING_LINE
) -> str:
    """Alt text for ``plot_effective_bandwidth``."""
    return messages.bandwidth_alt(rates, ceiling_gb_per_s, ceiling_name)


@exclusive
def plot_two_terms(
    passes: Sequence[Pass],
    predicted_ms: Mapping[str, float],
    ceiling_gb_per_s: float,
    *,
    ceiling_name: str = messages.CEILING_LINE,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Measured passes by weight format, hollow marks for what a model predicts, and the memory's ceiling as a line.

    predicted_ms: label of a pass -> ms; a thin line joins it with what was measured. A point under the ceiling's
    line would be faster than the memory. ValueError without passes.
    """
    if not passes:
        raise ValueError(messages.no_rows("passes"))
    ax = axes_of(ax, height_in=4.6, bottom_in=1.3)
    formats = dict.fromkeys(each.format for each in passes)
    for format, look in zip(formats, looks(len(formats)), strict=True):
        points = [(each.bytes_per_pass / MIB, each.ms) for each in passes if each.format == format]
        xs, ys = zip(*points, strict=True)
        ax.plot(xs, ys, look.marker, color=look.colour, linestyle="", label=legible(format), markersize=8, zorder=4)
    label = messages.TWO_TERMS_PREDICTED
    for each in passes:
        if each.label in predicted_ms:
            x, guess = each.bytes_per_pass / MIB, predicted_ms[each.label]
            ax.plot([x, x], [each.ms, guess], color=GREY, linewidth=1.0, zorder=2)
            hollow = {"markerfacecolor": "white", "markeredgecolor": VERMILLION, "markeredgewidth": 1.8}
            ax.plot(x, guess, "o", markersize=9, linestyle="", label=label, zorder=3, **hollow)
            label = None
    most = 1.08 * max(each.bytes_per_pass for each in passes) / MIB
    ends = [0.0, most]
    name = f"{ceiling_name}: {messages.gb_per_s(ceiling_gb_per_s)}"
    ax.plot(ends, [x * MIB / 1e6 / ceiling_gb_per_s for x in ends], "--", color=VERMILLION, linewidth=1.4, label=name)
    ax.set_xlim(0, most)
    from_zero(ax)
    ax.set_xlabel(messages.TWO_TERMS_X_AXIS)
    ax.set_ylabel(messages.TWO_TERMS_Y_AXIS)
    head(ax, messages.TWO_TERMS_TITLE, label_of(recorded))
    legend_below(ax, 3)
    return ax


def describe_two_terms(passes: Sequence[Pass], predicted_ms: Mapping[str, float]) -> str:
    """Alt text for ``plot_two_terms``."""
    return messages.two_terms_alt(
        [(each.label, each.bytes_per_pass / MIB, each.ms, predicted_ms.get(each.label)) for each in passes]
    )


@exclusive
def plot_gamma_against_size(
    points: Mapping[str, tuple[float, float]], *, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """points: label -> (draft / target parameters, gamma), both on logarithmic axes; on the line they are equal.

    ValueError without points, or for one that is not above 0.
    """
    if not points:
        raise ValueError(messages.no_rows("points"))
    if min(min(pair) for pair in points.values()) <= 0:
        raise ValueError(messages.above_zero(points))
    ax = axes_of(ax, height_in=4.6, right_in=2.0)
    values = [value for pair in points.values() for value in pair]
    low, high = min(values) / 1.5, max(*values, 1.0) * 1.25
    ax.plot([low, high], [low, high], "--", color=GREY, linewidth=1.2, label=messages.GAMMA_RATIO_EQUAL)
    for (label, (ratio, gamma)), look in zip(points.items(), looks(len(points)), strict=True):
        ax.plot([ratio, ratio], [ratio, gamma], color=GREY, linewidth=0.8, zorder=1)
        ax.plot(ratio, gamma, look.marker, color=look.colour, markersize=9, linestyle="", label=label, zorder=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(messages.GAMMA_RATIO_X_AXIS)
    ax.set_ylabel(messages.GAMMA_RATIO_Y_AXIS)
    head(ax, messages.GAMMA_RATIO_TITLE, label_of(recorded))
    legend_beside(ax)
    return ax


def describe_gamma_against_size(points: Mapping[str, tuple[float, float]]) -> str:
    """Alt text for ``plot_gamma_against_size``."""
    return messages.gamma_ratio_alt(points)


@exclusive
def plot_time_shares(shares: Mapping[str, Split], *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Stacked bars of ms by cause, one a model. ValueError without any."""
    if not shares:
        raise ValueError(messages.no_rows("shares"))
    ax = axes_of(ax, height_in=1.9 + 0.4 * len(shares), left_in=_room_for(shares), bottom_in=1.05)
    parts = (
        (messages.SHARES_FIXED, [each.fixed for each in shares.values()], {"color": ORANGE}),
        (messages.SHARES_WEIGHTS, [each.weights for each in shares.values()], {"color": BLUE}),
        (messages.SHARES_REST, [each.rest for each in shares.values()], {"color": "#dddddd", "hatch": "////"}),
    )
    left = [0.0] * len(shares)
    for label, widths, style in parts:
        ax.barh(range(len(shares)), widths, left=left, height=0.62, label=label, edgecolor="white", **style)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for y, total in enumerate(left):
        ax.annotate(messages.ms(total), (total, y), (5, 0), textcoords="offset points", va="center", weight="bold")
    _rows(ax, list(shares), 1.12 * max(left))
    ax.set_xlabel(messages.TWO_TERMS_Y_AXIS)
    head(ax, messages.SHARES_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_time_shares(shares: Mapping[str, Split]) -> str:
    """Alt text for ``plot_time_shares``."""
    return messages.shares_alt({label: (each.weights, each.fixed, each.rest) for label, each in shares.items()})


@exclusive
def plot_shape_staircases(
    costs: Sequence[LayerwiseCost], *, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """T(N) / T(1) of several shapes; the legend says of how many layers each was timed. ValueError without any."""
    if not costs:
        raise ValueError(messages.no_rows("costs"))
    ax = axes_of(ax, height_in=4.3, right_in=2.0)
    for cost, look in zip(costs, looks(len(costs)), strict=True):
        ones, medians = cost.samples_ms(1), cost.median_ms
        ends = {n: _ratio_ends(cost.samples_ms(n), ones) for n in cost.ns if n != 1}
        relative = {n: value / medians[1] for n, value in medians.items()}
        draw_points(ax, relative, look, _shape_entry(cost), ends)
    from_zero(ax)
    whole_ticks(ax, [n for cost in costs for n in cost.ns])
    ax.set_xlabel(messages.SHAPES_N_AXIS)
    ax.set_ylabel(messages.COST_RELATIVE_AXIS)
    head(ax, messages.SHAPES_TITLE, label_of(recorded))
    legend_beside(ax)
    return ax


def describe_shape_staircases(costs: Sequence[LayerwiseCost]) -> str:
    """Alt text for ``plot_shape_staircases``."""
    told = {_shape_entry(cost): {n: value / cost.median_ms[1] for n, value in cost.median_ms.items()} for cost in costs}
    return messages.shapes_alt(told)


def _shape_entry(cost: LayerwiseCost) -> str:
    return messages.shape_entry(cost.label, cost.format, cost.many, cost.n_layer)


def _ratio_ends(samples: Sequence[float], ones: Sequence[float]) -> tuple[float, float] | None:
    """None where noise turned an extrapolated T(1) negative: no ratio then."""
    return ratio_interval(samples, ones) if min(ones) > 0 else None


def _room_for(labels: Mapping[str, object]) -> float:
    """Inches to the left of bars for the longest of their labels."""
    return 0.35 + 0.085 * max(len(label) for label in labels)


def _rows(ax: Axes, labels: Sequence[str], most: float) -> None:
    """Names of bars, the first on top."""
    ax.set_yticks(range(len(labels)), [legible(label) for label in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlim(0, 1.12 * most)
    ax.tick_params(axis="y", length=0, labelcolor=MUTED_TEXT)
    ax.grid(False)
