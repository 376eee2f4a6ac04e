"""Bootstrap intervals: how far a median, or a ratio of medians, could be off by chance.

The percentile bootstrap (Efron 1979, Annals of Statistics 7:1): draw as many samples again, with
replacement, many times over, and take the middle ``confidence`` of what comes out. The draws
always start from the same seed, so the same samples give the same interval. Samples count as
independent; those of a slow drift are not, and their interval is too narrow (see
``CostCurve.drift``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

Interval = tuple[float, float]

FEWEST_SAMPLES = 3
"""With fewer there is nothing to resample: two samples say nothing about a third."""


def median_interval(samples: Sequence[float], confidence: float = 0.95, resamples: int = 2000) -> Interval | None:
    """(low, high) for the median of ``samples``, in their unit. None for fewer than 3 samples.

    ValueError for a confidence outside (0, 1), fewer than 1 resample, or a sample that is not finite.
    """
    values = _checked(samples, confidence, resamples)
    if values.size < FEWEST_SAMPLES:
        return None
    return _middle(_resampled_medians(values, resamples, seed=0), confidence)


def ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = 0.95, resamples: int = 2000
) -> Interval | None:
    """(low, high) for median(numerators) / median(denominators), the two resampled apart.

    They need not be paired or equally many. None when either has fewer than 3 samples. ValueError
    as in ``median_interval``, and for a denominator that is not above 0.
    """
    above = _checked(numerators, confidence, resamples)
    below = _checked(denominators, confidence, resamples)
    if below.size and below.min() <= 0.0:
        raise ValueError(f"A ratio needs denominators above 0; got {below.min():g}.")
    if min(above.size, below.size) < FEWEST_SAMPLES:
        return None
    # Two seeds: with one, equally many samples would be drawn in step and the ratio's spread come out too small.
    ratios = _resampled_medians(above, resamples, seed=0) / _resampled_medians(below, resamples, seed=1)
    return _middle(ratios, confidence)


def sum_ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = 0.95, resamples: int = 2000
) -> Interval | None:
    """(low, high) for sum(numerators) / sum(denominators) over pairs, which are resampled together.

    For rates over cycles: predicted over measured time, tokens over milliseconds. None for fewer than 3
    pairs. ValueError as in ``ratio_interval``, and where the two are not equally many.
    """
    above = _checked(numerators, confidence, resamples)
    below = _checked(denominators, confidence, resamples)
    if above.size != below.size:
        raise ValueError(f"Pairs need as many numerators as denominators; got {above.size} and {below.size}.")
    if below.size and below.min() <= 0.0:
        raise ValueError(f"A ratio needs denominators above 0; got {below.min():g}.")
    if above.size < FEWEST_SAMPLES:
        return None
    drawn = np.random.default_rng(0).integers(0, above.size, (resamples, above.size))
    return _middle(above[drawn].sum(axis=1) / below[drawn].sum(axis=1), confidence)


def _checked(samples: Sequence[float], confidence: float, resamples: int) -> np.ndarray:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is a probability between 0 and 1, both excluded; got {confidence}.")
    if resamples < 1:
        raise ValueError(f"resamples counts the draws: 1 or more; got {resamples}.")
    values = np.asarray(samples, dtype=float)
    wrong = values[~np.isfinite(values)]
    if wrong.size:
        raise ValueError(f"An interval needs finite samples; got {wrong[0]}.")
    return values


@lru_cache(maxsize=128)
def _draws(size: int, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks that decide the median of each resample: the two middle ones (equal when size is odd).

    A resample of *sorted* samples is known by its ranks, and so is its median; ranks depend on
    nothing but size and seed, so they are drawn once for every curve measured with that many rounds.
    """
    ranks = np.random.default_rng(seed).integers(0, size, (resamples, size))
    low, high = (size - 1) // 2, size // 2
    ranks.partition((low, high), axis=1)
    return ranks[:, low].copy(), ranks[:, high].copy()


def _resampled_medians(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    ordered = np.sort(values)
    low, high = _draws(values.size, resamples, seed)
    return (ordered[low] + ordered[high]) / 2.0


def _middle(estimates: np.ndarray, confidence: float) -> Interval:
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(estimates, (tail, 1.0 - tail))
    return float(low), float(high)
