"""T(N): the staircase of one machine, of several weight formats, of two machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import Protocol

from matplotlib.axes import Axes

from .. import messages
from ..intervals import median_interval, ratio_interval
from ..records import CostCurve
from ..render import exclusive
from .style import (
    MUTED_TEXT,
    SMALL,
    VERMILLION,
    WARNING_TEXT,
    axes_of,
    draw_points,
    fitting,
    from_zero,
    head,
    legend_beside,
    looks,
)

SIZE = {"height_in": 4.3}
SIZE_WITH_LEGEND = {"height_in": 4.3, "right_in": 1.9}

MOST_SPOKEN = 13
"""An alt text says at most about this many N of one curve."""


class Cliff(Protocol):
    """What is needed of a cliff (``theory.Cliff`` has it)."""

    after_n: int
    at_n: int
    ratio: float


@exclusive
def plot_cost_curve(
    curves: CostCurve | Sequence[CostCurve],
    *,
    cliffs: Sequence[Cliff] = (),
    dips: Sequence[int] = (),
    relative: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """T(N) in ms as a staircase: medians, 95 % bootstrap intervals, lines only between N and N + 1.

    cliffs, dips: what ``theory.cliffs`` and ``theory.dips`` say of the first curve, to be marked.
    relative: T(N) / T(1) instead of ms; ValueError for a curve that lacks N = 1.
    A point without an interval bar has fewer than 3 samples.
    """
    several = _sequence(curves)
    title = messages.COST_TITLE
    return _staircases(several, [c.label for c in several], title, relative, cliffs, dips, ax)


def describe_cost_curve(
    curves: CostCurve | Sequence[CostCurve],
    cliffs: Sequence[Cliff] = (),
    dips: Sequence[int] = (),
    *,
    relative: bool = False,
) -> str:
    """Alt text for ``plot_cost_curve``: the medians that matter, the cliffs, the dips, the label."""
    several = _sequence(curves)
    if relative:
        return _describe_relative(several, [c.label for c in several], messages.COST_TITLE)
    edges = {n for cliff in cliffs for n in (cliff.after_n, cliff.at_n)} | set(dips)
    marks = [(cliff.after_n, cliff.at_n, cliff.ratio) for cliff in cliffs]
    return " ".join(
        messages.cost_curve_alt(
            curve.label,
            spoken(curve.median_ms, edges),
            marks if curve is several[0] else (),
            dips if curve is several[0] else (),
            messages.curve_label(curve),
        )
        for curve in several
    )


@exclusive
def plot_formats(curves: Sequence[CostCurve], *, ax: Axes | None = None) -> Axes:
    """T(N) / T(1) of the same model in several weight formats, each curve named by its format.

    Two thin lines bound what is possible: N tokens for the price of one, and N times the price.
    """
    several = _sequence(curves)
    most = max(n for curve in several for n in curve.ns)
    ax = axes_of(ax, **SIZE_WITH_LEGEND)
    bound = {"color": MUTED_TEXT, "linewidth": 1.0, "zorder": 1}
    _staircases(several, _formats(several), messages.FORMATS_TITLE, True, (), (), ax)
    serial = range(1, most + 1)
    ax.plot(serial, serial, linestyle="-.", label=messages.FORMATS_SERIAL, scalex=False, scaley=False, **bound)
    ax.axhline(1.0, linestyle=":", label=messages.FORMATS_FREE, **bound)
    legend_beside(ax)
    return ax


def describe_formats(curves: Sequence[CostCurve]) -> str:
    """Alt text for ``plot_formats``."""
    return _describe_relative(_sequence(curves), _formats(curves), messages.FORMATS_TITLE)


@exclusive
def plot_compare_machines(curve_a: CostCurve, curve_b: CostCurve, *, ax: Axes | None = None) -> Axes:
    """Two staircases in units of their own T(1), so that their shapes can be compared."""
    curves = (curve_a, curve_b)
    return _staircases(curves, [c.label for c in curves], messages.MACHINES_TITLE, True, (), (), ax)


def describe_compare_machines(curve_a: CostCurve, curve_b: CostCurve) -> str:
    """Alt text for ``plot_compare_machines``."""
    curves = (curve_a, curve_b)
    return _describe_relative(curves, [c.label for c in curves], messages.MACHINES_TITLE)


def _sequence(curves: CostCurve | Sequence[CostCurve]) -> tuple[CostCurve, ...]:
    several = (curves,) if isinstance(curves, CostCurve) else tuple(curves)
    if not several:
        raise ValueError(messages.no_curves())
    return several


def _formats(curves: Sequence[CostCurve]) -> list[str]:
    return [curve.label if curve.model is None else curve.model.format for curve in curves]


def _relative(curve: CostCurve) -> dict[int, float]:
    medians = curve.median_ms
    if 1 not in medians:
        raise ValueError(messages.needs_t1(curve.label, curve.ns))
    return {n: value / medians[1] for n, value in medians.items()}


def _staircases(
    curves: Sequence[CostCurve],
    labels: Sequence[str],
    title: str,
    relative: bool,
    cliffs: Sequence[Cliff],
    dips: Sequence[int],
    ax: Axes | None,
) -> Axes:
    ax = axes_of(ax, **(SIZE if len(curves) == 1 else SIZE_WITH_LEGEND))
    for curve, label, look in zip(curves, labels, looks(len(curves)), strict=True):
        if relative:
            values = _relative(curve)
            ones = curve.samples_ms(1)
            # T(1) / T(1) is 1 by definition, not a measured ratio.
            ends = {n: ratio_interval(curve.samples_ms(n), ones) for n in curve.ns if n != 1}
        else:
            values = curve.median_ms
            ends = {n: median_interval(curve.samples_ms(n)) for n in curve.ns}
        draw_points(ax, values, look, label, ends)
    ns = sorted({n for curve in curves for n in curve.ns})
    _number_axis(ax, ns, {n for cliff in cliffs for n in (cliff.after_n, cliff.at_n)})
    from_zero(ax)
    shown = _relative(curves[0]) if relative else curves[0].median_ms
    for cliff in cliffs:
        _mark_cliff(ax, cliff, shown)
    for n in dips:
        _mark_dip(ax, n, shown[n])
    ax.set_xlabel(messages.COST_N_AXIS)
    ax.set_ylabel(messages.COST_RELATIVE_AXIS if relative else messages.COST_MS_AXIS)
    several = len(curves) > 1
    head(ax, title, messages.curve_labels(curves) if several else _one_label(curves[0]))
    if several:
        legend_beside(ax)
    return ax


def _one_label(curve: CostCurve) -> str:
    return f"{curve.label} · {messages.curve_label(curve)}"


def _mark_cliff(ax: Axes, cliff: Cliff, values: Mapping[int, float]) -> None:
    ax.axvspan(cliff.after_n, cliff.at_n, color=VERMILLION, alpha=0.22, linewidth=0, zorder=1)
    first = cliff.after_n == min(values)  # to its left there is only the axis
    ax.annotate(
        messages.cliff(cliff.after_n, cliff.at_n, cliff.ratio),
        (cliff.at_n if first else cliff.after_n, values[cliff.at_n]),
        (6, -6) if first else (-6, 5),
        textcoords="offset points",
        ha="left" if first else "right",
        va="center",
        fontsize=SMALL + 1,
        fontweight="bold",
        color=WARNING_TEXT,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0},
    )


def _mark_dip(ax: Axes, n: int, value: float) -> None:
    ax.annotate(
        messages.dip(n),
        (n, value),
        (0, -24),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=SMALL,
        color=MUTED_TEXT,
        arrowprops={"arrowstyle": "-", "color": MUTED_TEXT, "linewidth": 0.8, "shrinkB": 4},
    )


def _number_axis(ax: Axes, ns: Sequence[int], first: Iterable[int]) -> None:
    """N on a base-2 logarithmic axis, with as many measured N named as fit; ``first`` before all others."""
    ax.set_xscale("log", base=2)
    low, high = min(ns), max(ns)
    ax.set_xlim(low / 1.12, high * 1.12)
    width_in = ax.get_position().width * ax.figure.get_size_inches()[0] / log2(1.2544 * high / low)
    importance = sorted(ns, key=lambda n: (n not in first, n > 8, _odd_part(n), n))
    ticks = fitting(importance, lambda n: log2(n) * width_in)
    ax.set_xticks(ticks, [str(n) for n in ticks])
    ax.minorticks_off()


def _odd_part(n: int) -> int:
    """What is left of n without its factors of two: 1 for 16, 3 for 24."""
    return n // (n & -n)


def spoken(values: Mapping[int, float], needed: Iterable[int] = ()) -> dict[int, float]:
    """What an alt text says of a curve: all values when few; else N up to 9, powers of two, the last, those needed."""
    if len(values) <= MOST_SPOKEN:
        return dict(values)
    last = max(values)
    return {n: x for n, x in values.items() if n <= 9 or _odd_part(n) == 1 or n == last or n in needed}


def _describe_relative(curves: Sequence[CostCurve], labels: Sequence[str], title: str) -> str:
    told = {label: spoken(_relative(curve)) for label, curve in zip(labels, curves, strict=True)}
    return messages.relative_curves_alt(title, told, messages.curve_labels(curves))
