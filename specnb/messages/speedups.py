"""The ledger, alpha and the speedup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from ..records import LedgerCell
from .writing import (
    at_interval,
    capital,
    change,
    counted,
    listed,
    ms,
    number,
    percent,
    speedup,
    tokens,
    tokens_per_second,
)

LEDGER_TITLE = "The ledger: predicted and measured speed by draft length"
SPEED_AXIS = "tokens per second"
K_AXIS = "k: tokens drafted per cycle"
PREDICTED = "predicted"
MEASURED = "measured"
MEASURED_INTERVAL = "measured, 95% interval"
PLAIN = "plain decoding"
SPEEDUP_TITLE = "Speedup by draft length"
SPEEDUP_AXIS = "times as fast as plain decoding"
PLAIN_LINE = "plain decoding, 1.0×"
BEST_OFF = "no k is predicted to pay: leave it off"
SLOWER = "slower than plain decoding"


def best_prediction(k: int, value: float) -> str:
    return f"best predicted: k={k}, {speedup(value)}"


def live_speedup(k: int, value: float) -> str:
    return f"k={k}: {speedup(value)}"


def live_speedup_unmeasured(k: int) -> str:
    return f"k={k}: N={k + 1} was not measured"


def ledger_alt(rows: Sequence[tuple[int, float, float]], plain: float | None) -> str:
    """rows: (k, predicted tokens/s, measured tokens/s)."""
    told = listed(
        f"k={k} {number(predicted)} predicted, {number(measured)} measured ({change(predicted / measured - 1)})"
        for k, predicted, measured in rows
    )
    baseline = "" if plain is None else f" Plain decoding: {tokens_per_second(plain)}."
    return f"Tokens per second by draft length: {told}.{baseline}"


def speedup_alt(
    predicted: Mapping[str, Mapping[int, float]], measured: Sequence[tuple[int, float, tuple[float, float] | None]]
) -> str:
    told = [
        f"{label}: {listed(f'{speedup(value)} at k={k}' for k, value in sorted(by_k.items()))}."
        for label, by_k in predicted.items()
    ]
    if measured:
        points = (
            f"{speedup(value) if ends is None else at_interval(speedup(value), *map(speedup, ends))} at k={k}"
            for k, value, ends in measured
        )
        told.append(f"{capital(MEASURED)}: {listed(points)}.")
    return " ".join(["Speedup over plain decoding.", *told])


PARTS_TITLE = "Where every millisecond of a cycle goes"
PART_NAMES = {
    "draft": "draft",
    "catch_up": "catching up",
    "verify": "target pass",
    "rebuild": "new graph",
    "sampling": "sampling",
    "rollback": "rollback",
    "bookkeeping": "bookkeeping",
}
"""What the fields of ``CycleParts`` are called."""

ERRORS_TITLE = "How far the ledger is off"
MS_PER_TOKEN_AXIS = "measured milliseconds per token"
ERROR_AXIS = "predicted / measured − 1, percent"
OF_KEPT = "from what was kept"
OF_ALPHA = "from alpha alone"


def wrong_count(count: int, most: int) -> str:
    return f"Between 1 and {most} cells fit this figure; got {count}. Choose the ones to compare."


def cell_of_two_bars(cell: LedgerCell) -> str:
    return f"{cell.drafter}, k={cell.k}\npredicted, measured"


def cycle_parts_alt(cells: Sequence[LedgerCell]) -> str:
    told = []
    for cell in cells:
        parts = listed(f"{name} {ms(getattr(cell.predicted, field))}" for field, name in PART_NAMES.items())
        told.append(
            f"{cell.drafter} at k={cell.k} on {cell.kind}: predicted {ms(cell.predicted.ms)} a cycle ({parts}), "
            f"measured {ms(cell.measured.ms)}."
        )
    return " ".join([f"{PARTS_TITLE}.", *told])


def ledger_errors_alt(cells: Sequence[LedgerCell]) -> str:
    """One sentence a drafter: median and largest error from what was kept, median error from alpha alone."""
    told = []
    for drafter in dict.fromkeys(cell.drafter for cell in cells):
        own = [cell for cell in cells if cell.drafter == drafter]
        largest = max((cell.error for cell in own), key=abs)
        told.append(
            f"{drafter}, {counted(len(own), 'cell')}: from what was kept {change(median(cell.error for cell in own))} "
            f"in the median and {change(largest)} at most; from alpha alone "
            f"{change(median(cell.error_of_alpha for cell in own))} in the median."
        )
    return " ".join([f"{ERRORS_TITLE}, predicted over measured time per token.", *told])


BISECTION_TITLE = "Solving for alpha: halve the bracket until it fits"
ALPHA_AXIS = "α: probability that a tested token is kept"
TOKENS_AXIS = "expected tokens per cycle"
BISECTION_BRACKETS = "brackets, first on top"
ACCEPTANCE_TITLE = "Acceptance rate falls with k although alpha does not"
SHARE_AXIS = "percent"
ACCEPTANCE_SERIES = "acceptance rate (kept / drafted)"
ALPHA_SERIES = "alpha (solved from tokens per cycle)"
POSITION_TITLE = "How often a tested token is kept, by its position in the draft"
POSITION_AXIS = "position in the draft"
POSITION_SHARE_AXIS = "kept / tested, percent"
POSITION_OBSERVED = "observed"
POSITION_OBSERVED_INTERVAL = "observed, 95% interval"
KEPT_TITLE = "How many drafted tokens a cycle keeps"
KEPT_AXIS = "drafted tokens kept in a cycle"
CYCLES_AXIS = "share of cycles, percent"
OBSERVED = "observed"
LIVE_TOKENS_TITLE = "Expected tokens per cycle"


def expected_tokens_curve(k: int) -> str:
    return f"E[tokens] at k={k}"


def target_line(value: float) -> str:
    return f"observed: {tokens(value)} per cycle"


def solved_alpha(alpha: float) -> str:
    return f"α = {number(alpha)}"


def alpha_line(alpha: float) -> str:
    return f"α = {number(alpha)} at every position"


def geometric(alpha: float | None) -> str:
    return "expected from alpha" if alpha is None else f"expected from α = {number(alpha)}"


def tested_count(count: int) -> str:
    return f"n={count}"


def live_tokens(alpha: float, value: float) -> str:
    return f"α = {number(alpha)}: {tokens(value)} per cycle"


def no_rows(what: str) -> str:
    return f"There is nothing to plot: {what} is empty."


def bisection_alt(steps: Sequence[tuple[float, float, float, float]], target: float, k: int) -> str:
    """steps: (low, high, mid, expected tokens at mid)."""
    told = listed(f"α {number(mid)} gives {number(value)}" for _, _, mid, value in steps)
    low, high, mid, _ = steps[-1]
    return (
        f"Expected tokens per cycle against alpha at k={k}. Bisection for {tokens(target)} per cycle in "
        f"{len(steps)} steps: {told}. Last bracket {number(low)} to {number(high)}; α is about {number(mid)}."
    )


def acceptance_alt(rows: Sequence[tuple[int, float, float]]) -> str:
    """rows: (k, acceptance rate, alpha)."""
    told = listed(f"k={k} {percent(rate)} with alpha {number(alpha)}" for k, rate, alpha in rows)
    return f"Acceptance rate and alpha by draft length: {told}."


def position_alt(kept_by_position: Sequence[tuple[int, int]], alpha: float | None) -> str:
    told = listed(
        f"position {i}: {kept} of {tested}" + (f" ({percent(kept / tested)})" if tested else "")
        for i, (kept, tested) in enumerate(kept_by_position, 1)
    )
    line = "" if alpha is None else f" The line is alpha, {percent(alpha)} at every position."
    return f"Drafted tokens kept of those tested. {capital(told)}.{line}"


def kept_alt(counts: Sequence[int], probabilities: Sequence[float]) -> str:
    total = sum(counts)
    told = listed(
        f"{kept} kept {percent(count / total) if total else 'never observed'}, expected {percent(probability)}"
        for kept, (count, probability) in enumerate(zip(counts, probabilities, strict=True))
    )
    return f"Tokens kept per cycle over {total} cycles: {told}."


def lengths_differ(counts: int, probabilities: int) -> str:
    return (
        f"Observed counts and expected probabilities must both run from 0 kept to k kept; "
        f"got {counts} counts and {probabilities} probabilities."
    )
