"""What the ledger expects of other draft lengths, from one run's alpha and costs measured apart from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

from . import theory
from .records import Run


@dataclass(frozen=True, slots=True)
class Prediction:
    """alpha: live, solved from tokens per cycle; None when nothing was drafted.

    drafted_share: share of cycles that had a draft (n-gram drafters often have none).
    speedup_by_k: k -> predicted speedup over plain decoding, for every k whose pass was measured.
    """

    alpha: float | None
    drafted_share: float
    speedup_by_k: dict[int, float]


DraftMs = float | Callable[[int, float], float]
"""Milliseconds per token drafted by a model; or (k, alpha) -> of a whole draft, the catching up included."""


def from_run(run: Run, *, draft_ms: DraftMs, verify_ms: Mapping[int, float], other_ms: float = 0.0) -> Prediction:
    """Speedup over k if every cycle that had a draft in ``run`` had one of k tokens.

    draft_ms: 0 for look-ups; of a chain, its model's. verify_ms: N -> ms. other_ms: a cycle's sampling and
    bookkeeping, paid by plain cycles too. All three come from measurements other than ``run``; only alpha,
    the share of drafted cycles and who drafted in them are taken from it. Two assumptions are left: alpha is
    the same at every position (geometric), and a longer k changes neither alpha nor how often there is a draft.
    """
    lengths = [length for length in run.draft_lengths if length]
    if not lengths:
        return Prediction(alpha=None, drafted_share=0.0, speedup_by_k={})
    drafted = [len(cycle.emitted) for cycle in run.cycles if cycle.drafted]
    # A text that ends inside a draft emits no token of the target's own, so the mean may fall just short of 1.
    alpha = theory.solve_alpha_mixed(max(1.0, mean(drafted)), lengths)
    share = len(lengths) / run.target_passes
    # What a chain's look-up found cost nothing; only models have confidences.
    by_model = sum(cycle.confidences is not None for cycle in run.cycles if cycle.drafted) / len(lengths)
    plain_ms = verify_ms[1] + other_ms

    def each_ms(k: int) -> float:
        return by_model * (draft_ms(k, alpha) / k if callable(draft_ms) else draft_ms)

    return Prediction(
        alpha=alpha,
        drafted_share=share,
        speedup_by_k={
            n - 1: speedup_at_share(alpha, n - 1, share, each_ms(n - 1), verify_ms, plain_ms, other_ms=other_ms)
            for n in sorted(verify_ms)
            if n > 1
        },
    )


def speedup_at_share(
    alpha: float,
    k: int,
    share: float,
    draft_ms: float,
    verify_ms: Mapping[int, float],
    plain_ms: float,
    *,
    other_ms: float = 0.0,
) -> float:
    """Speedup when a share of the cycles has a draft of k tokens; those cost and emit what theory says.

    The others are plain: ``plain_ms`` for one token.
    """
    tokens = share * theory.expected_tokens(alpha, k) + (1 - share)
    cost_ms = share * theory.cycle_ms(k, draft_ms, verify_ms, other_ms=other_ms) + (1 - share) * plain_ms
    return tokens * plain_ms / cost_ms
