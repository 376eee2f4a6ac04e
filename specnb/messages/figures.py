"""What every figure tells: where its numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import CostCurve
from .writing import counted

MEASURED_HERE = "measured here, now"


def recorded_label(recorded: str) -> str:
    """The label of every figure, from what ``CostCurve.recorded`` says ("": measured here and now)."""
    if not recorded:
        return MEASURED_HERE
    if recorded[0].isdigit():  # a day, and maybe a place: "2025-11-29 on Apple M3 Max"
        return f"recorded on {recorded.replace(' on ', ', ', 1)}"
    return f"recorded: {recorded}"


def curve_label(curve: CostCurve) -> str:
    """Where a curve comes from and under what conditions, in one line."""
    parts = [recorded_label(curve.recorded)]
    if not curve.recorded:
        parts.append(curve.machine.name)
    if curve.context_length:  # 0: an empty context, or one that the source does not state
        parts.append(f"context {curve.context_length} tokens")
    if curve.threads:
        parts.append(counted(curve.threads, "thread"))
    if curve.contended:
        parts.append("other programs were running")
    return " · ".join(parts)


def curve_labels(curves: Sequence[CostCurve]) -> str:
    """One line for several curves: the label they share, or how many were recorded and measured."""
    different = list(dict.fromkeys(curve_label(curve) for curve in curves))
    if len(different) == 1:
        return different[0]
    here = sum(not curve.recorded for curve in curves)
    if here == len(curves):
        return MEASURED_HERE
    return "all recorded" if here == 0 else f"{here} of {len(curves)} {MEASURED_HERE}; the rest recorded"


NO_ALT = "A figure needs an alt text: say in words what it shows (each plot_<noun> has a describe_<noun>)."
