"""When speculation loses: under load, at a temperature, with a p_min that is too careful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from .. import messages
from ..intervals import ratio_interval
from ..records import LoadSweep
from ..render import exclusive, legible
from .style import (
    BLUE,
    GREY,
    SMALL,
    VERMILLION,
    Ends,
    axes_of,
    draw_intervals,
    from_zero,
    head,
    label_of,
    legend_below,
    looks,
)

PLAIN = "none"


@exclusive
def plot_load_price(
    prices: Mapping[int, float],
    worth: Mapping[str, float],
    *,
    k: int,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """What drafts cost a shared pass, against what they bring: above a line, drafting loses at that alpha.

    prices: number of sequences B -> T(B * (k + 1)) / T(B). worth: label -> expected tokens per cycle,
    one dashed line each. ValueError without prices.
    """
    if not prices:
        raise ValueError(messages.no_rows("prices"))
    ax = axes_of(ax, height_in=4.2, bottom_in=1.3)
    counts = sorted(prices)
    ax.plot(counts, [prices[b] for b in counts], "o-", color=BLUE, linewidth=1.2, label=messages.LOAD_PRICE_SERIES)
    for (label, tokens), look in zip(worth.items(), list(looks(len(worth) + 1))[1:], strict=True):
        ax.axhline(tokens, color=look.colour, linestyle="--", linewidth=1.2, label=legible(label))
    ax.axhline(k + 1, color=GREY, linestyle=":", linewidth=1.2, label=messages.load_ceiling(k))
    _counts_axis(ax, counts)
    ax.set_ylim(0, 1.12 * max(k + 1, *prices.values()))
    ax.set_ylabel(messages.load_price_axis(k))
    head(ax, messages.LOAD_PRICE_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_load_price(prices: Mapping[int, float], worth: Mapping[str, float], *, k: int) -> str:
    """Alt text for ``plot_load_price``."""
    return messages.load_price_alt(prices, worth, k)


@exclusive
def plot_load(
    sweep: LoadSweep,
    predicted: Mapping[str, Mapping[int, float]] | None = None,
    *,
    recorded: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Speedup over plain decoding of as many sequences, by their number: measured with intervals, and predicted.

    predicted: drafter's label -> (number of sequences -> speedup), as hollow markers. ValueError for a
    sweep without drafters; KeyError where plain decoding was not run at a load.
    """
    if not sweep.drafters:
        raise ValueError(messages.no_rows("sweep.drafters"))
    ax = axes_of(ax, height_in=4.4, bottom_in=1.3)
    counts = sweep.counts
    for drafter, look in zip(sweep.drafters, looks(len(sweep.drafters)), strict=True):
        gains = _gains(sweep, drafter)
        ends = {b: ratio_interval(sweep.speeds(drafter, b), sweep.speeds(PLAIN, b)) for b in counts}
        ax.plot(
            counts,
            [gains[b] for b in counts],
            linestyle=look.line,
            marker=look.marker,
            color=look.colour,
            linewidth=1.1,
            label=legible(drafter),
        )
        draw_intervals(ax, ends, look.colour)
        expected = (predicted or {}).get(drafter, {})
        if expected:
            ax.plot(
                sorted(expected),
                [expected[b] for b in sorted(expected)],
                linestyle="",
                marker=look.marker,
                markersize=10,
                markerfacecolor="none",
                markeredgecolor=look.colour,
                label=messages.load_predicted(legible(drafter)),
            )
    ax.axhline(1.0, color=GREY, linewidth=1.2, label=messages.PLAIN_LINE)
    _counts_axis(ax, counts)
    from_zero(ax)
    ax.set_ylabel(messages.SPEEDUP_AXIS)
    head(ax, messages.LOAD_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_load(sweep: LoadSweep, predicted: Mapping[str, Mapping[int, float]] | None = None) -> str:
    """Alt text for ``plot_load``."""
    return messages.load_alt({d: _gains(sweep, d) for d in sweep.drafters}, predicted or {})


@exclusive
def plot_alpha_by_temperature(
    rows: Mapping[str, Sequence[tuple[float, float, Ends]]], *, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """Live alpha against the target's temperature, one series a drafter.

    rows: drafter -> (temperature, alpha, its interval). ValueError without rows.
    """
    if not any(rows.values()):
        raise ValueError(messages.no_rows("rows"))
    ax = axes_of(ax, height_in=4.0, bottom_in=1.0)
    for (name, points), look in zip(rows.items(), looks(len(rows)), strict=True):
        points = sorted(points)
        xs = [temperature for temperature, _, _ in points]
        ax.plot(
            xs,
            [alpha for _, alpha, _ in points],
            marker=look.marker,
            color=look.colour,
            linestyle=look.line,
            label=legible(name),
        )
        draw_intervals(ax, {temperature: ends for temperature, _, ends in points}, look.colour)
    ax.set_ylim(0, 1)
    ax.margins(x=0.06)
    ax.set_xticks(sorted({temperature for points in rows.values() for temperature, _, _ in points}))
    ax.set_xlabel(messages.TEMPERATURE_AXIS)
    ax.set_ylabel(messages.FRONTIER_ALPHA_AXIS)
    head(ax, messages.TEMPERATURE_TITLE, label_of(recorded))
    legend_below(ax, 3)
    return ax


def describe_alpha_by_temperature(rows: Mapping[str, Sequence[tuple[float, float, Ends]]]) -> str:
    """Alt text for ``plot_alpha_by_temperature``."""
    return messages.temperature_alt(
        {name: [(temperature, alpha) for temperature, alpha, _ in sorted(points)] for name, points in rows.items()}
    )


@exclusive
def plot_p_min(
    rows: Sequence[tuple[float, float, float]], *, recorded: str | None = None, ax: Axes | None = None
) -> Axes:
    """Acceptance rate and speed against p_min, each in units of its value at the smallest p_min.

    rows: (p_min, acceptance rate, tokens/s). ValueError without rows.
    """
    if not rows:
        raise ValueError(messages.no_rows("rows"))
    ax = axes_of(ax, height_in=4.0, bottom_in=1.0)
    rows = sorted(rows)
    thresholds = [p_min for p_min, _, _ in rows]
    _, rate, speed = rows[0]
    ax.plot(thresholds, [r / rate for _, r, _ in rows], "s--", color=BLUE, label=messages.ACCEPTANCE_SERIES)
    ax.plot(thresholds, [s / speed for _, _, s in rows], "o-", color=VERMILLION, label=messages.P_MIN_SPEED_SERIES)
    ax.axhline(1.0, color=GREY, linewidth=1.0)
    for place, value, name in (
        (-1, rows[-1][1] / rate, messages.percent(rows[-1][1])),
        (-1, rows[-1][2] / speed, messages.tokens_per_second(rows[-1][2])),
    ):
        ax.annotate(name, (thresholds[place], value), (0, 8), textcoords="offset points", ha="right", fontsize=SMALL)
    from_zero(ax, 1.2)
    ax.set_xlabel(messages.P_MIN_AXIS)
    ax.set_ylabel(messages.p_min_axis(thresholds[0]))
    head(ax, messages.P_MIN_TITLE, label_of(recorded))
    legend_below(ax, 2)
    return ax


def describe_p_min(rows: Sequence[tuple[float, float, float]]) -> str:
    """Alt text for ``plot_p_min``."""
    return messages.p_min_alt(sorted(rows))


def _gains(sweep: LoadSweep, drafter: str) -> dict[int, float]:
    return {count: sweep.gain(drafter, count) for count in sweep.counts}


def _counts_axis(ax: Axes, counts: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(list(counts)))
    ax.xaxis.set_major_formatter(FixedFormatter([str(count) for count in counts]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(messages.LOAD_AXIS)
