"""How many drafted passes fit what a log printed: means and shares are rounded, passes are whole."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

MOST_CANDIDATES = 20_000
"""More numbers of passes than this fit only huge counts, where shares of three digits tell nothing new."""

_HALF_DIGIT = {2: 0.005, 3: 0.0005}
_FLOAT_SLACK = 1e-9


def drafts_that_fit(kept: int, drafted: int, mean_length: float) -> tuple[int, int] | None:
    """(fewest, most) drafted passes with 1 + kept / passes = mean_length, a figure of two decimals.

    Equal ends: known exactly. Every such pass drafted a token or more, so there are at most ``drafted``.
    None when no whole number fits: then mean and counts contradict each other.
    """
    half = _HALF_DIGIT[2] + _FLOAT_SLACK
    if kept == 0:
        return (1, drafted) if abs(mean_length - 1.0) <= half and drafted else None
    most_extra, least_extra = mean_length - 1.0 + half, mean_length - 1.0 - half
    if most_extra <= 0.0:
        return None
    fewest = max(1, ceil(kept / most_extra))
    most = drafted if least_extra <= 0.0 else min(drafted, floor(kept / least_extra))
    return (fewest, most) if fewest <= most else None


def narrowed(
    kept: int, drafts: tuple[int, int], per_position: Sequence[float]
) -> tuple[tuple[int, int], tuple[int, ...]]:
    """``drafts`` narrowed by the shares kept at position 1, 2, ... (three decimals), and the counts behind them.

    The counts are empty unless there is only one way to them; ``drafts`` is as before when nothing fits.
    """
    fewest, most = drafts
    if not per_position or most - fewest > MOST_CANDIDATES:
        return drafts, ()
    fitting = {n: counts for n in range(fewest, most + 1) if (counts := _counts_at(n, kept, per_position)) is not None}
    if not fitting:
        return drafts, ()
    counts = next(iter(fitting.values())) if len(fitting) == 1 else ()
    return (min(fitting), max(fitting)), counts


def _counts_at(passes: int, kept: int, per_position: Sequence[float]) -> tuple[int, ...] | None:
    """Whole counts with these shares of ``passes`` and the sum ``kept``; () where several would do; None for none."""
    half = _HALF_DIGIT[3] + _FLOAT_SLACK
    ranges = [(ceil((share - half) * passes), floor((share + half) * passes)) for share in per_position]
    ranges = [(max(0, low), min(passes, high)) for low, high in ranges]
    if any(low > high for low, high in ranges):
        return None
    if not sum(low for low, _ in ranges) <= kept <= sum(high for _, high in ranges):
        return None
    return tuple(low for low, _ in ranges) if all(low == high for low, high in ranges) else ()
