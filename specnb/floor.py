"""Why a draft cannot be as cheap as it is small: a two-term model of a pass, and what refutes it.

The M5 Pro article's model says that a pass over one token takes a fixed time per layer and, for its
weights, bytes / bandwidth. Two models fix its two terms; only a third can test it. Times in ms,
bandwidths in GB/s (10^9 bytes), sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from . import theory


@dataclass(frozen=True, slots=True)
class TwoTerms:
    """ms = ms_per_layer * layers + bytes / bandwidth."""

    ms_per_layer: float
    ms_per_byte: float

    @property
    def gb_per_s(self) -> float:
        """The bandwidth that the second term stands for; infinite or negative where bytes seem to cost nothing."""
        return 1e-6 / self.ms_per_byte if self.ms_per_byte else inf

    @property
    def ms_per_gib(self) -> float:
        return self.ms_per_byte * 2**30

    def predict_ms(self, n_layer: int, n_bytes: float) -> float:
        return self.ms_per_layer * n_layer + self.ms_per_byte * n_bytes


def fit_two_terms(n_layers: Sequence[int], n_bytes: Sequence[float], ms: Sequence[float]) -> TwoTerms:
    """The two terms by least squares; through two models they pass exactly, which is why that proves nothing.

    ValueError for fewer than two models, or for models between which layers and bytes are in proportion.
    """
    sizes = np.array([n_layers, np.asarray(n_bytes) / 2**30], dtype=float).T
    if len(sizes) != len(ms) or np.linalg.matrix_rank(sizes) < 2:
        raise ValueError(
            f"Two terms need at least two models, not in proportion: layers {list(n_layers)}, bytes {list(n_bytes)}, "
            f"ms {list(ms)}."
        )
    per_layer, per_gib = np.linalg.lstsq(sizes, np.asarray(ms, dtype=float), rcond=None)[0]
    return TwoTerms(float(per_layer), float(per_gib) / 2**30)


def gb_per_s(n_bytes: float, ms: float) -> float:
    """Effective bandwidth: bytes read / time. The bytes are those that the pass reads, not all in the file."""
    if not 0.0 < ms < inf:
        raise ValueError(f"A pass takes a time in milliseconds, above 0 and finite; got {ms}.")
    return n_bytes / 1e6 / ms


def marginal_gb_per_s(bytes_a: float, ms_a: float, bytes_b: float, ms_b: float) -> float:
    """Bandwidth at which the bytes that b has more than a would have come in the time that b takes longer.

    Infinite where b takes no longer. Above what the memory can do, the time of a was not spent on its bytes.
    ValueError unless b has more bytes.
    """
    if not bytes_b > bytes_a:
        raise ValueError(f"The second model must have more bytes; got {bytes_a:g} and {bytes_b:g}.")
    return (bytes_b - bytes_a) / 1e6 / (ms_b - ms_a) if ms_b > ms_a else inf


@dataclass(frozen=True, slots=True)
class Shares:
    """Where the time of a pass goes, in ms.

    weights: its bytes at the memory's ceiling. fixed: a pass of a model with as many layers and hardly any weights.
    rest: neither; weights that come slower than the ceiling, and other work that grows with the width.
    """

    weights: float
    fixed: float
    rest: float

    @property
    def total(self) -> float:
        return self.weights + self.fixed + self.rest

    @property
    def fixed_share(self) -> float:
        """At least this much of the time does not depend on the weights."""
        return self.fixed / self.total


def shares(ms: float, n_bytes: float, ceiling_gb_per_s: float, fixed_ms: float) -> Shares:
    """Splits a measured pass. Where caches beat the ceiling, or noise does, the first two are cut to fit the total.

    ValueError for a ceiling that is not above 0.
    """
    if not 0.0 < ceiling_gb_per_s < inf:
        raise ValueError(f"A memory's ceiling is above 0 GB/s and finite; got {ceiling_gb_per_s}.")
    fixed = min(fixed_ms, ms)
    weights = min(n_bytes / 1e6 / ceiling_gb_per_s, ms - fixed)
    return Shares(weights=weights, fixed=fixed, rest=ms - fixed - weights)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What speculation would bring. best_k: 0 where no k pays; then speedup is 1, of leaving it off.

    least_alpha: from here on some k pays; None where none can.
    """

    gamma: float
    best_k: int
    speedup: float
    least_alpha: float | None


def outlook(verify_ms: Mapping[int, float], draft_ms: float, alpha: float) -> Outlook:
    """Would a target with this staircase pay with a draft of this time per token and this alpha?

    The plain baseline is T(1): of a model that nobody has, nothing else can be known. KeyError without N = 1.
    """
    plain_ms = verify_ms[1]
    best = theory.best_k(alpha, draft_ms, verify_ms, plain_ms)
    needed = [theory.break_even_alpha(n - 1, draft_ms, verify_ms, plain_ms) for n in verify_ms if n > 1]
    return Outlook(
        gamma=theory.gamma(draft_ms, plain_ms),
        best_k=best,
        speedup=theory.speedup(alpha, best, draft_ms, verify_ms, plain_ms) if best else 1.0,
        least_alpha=min((alpha for alpha in needed if alpha is not None), default=None),
    )
