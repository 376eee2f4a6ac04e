"""Bootstrap intervals: right on average, the same every time, and honest about too few samples."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from specnb.intervals import median_interval, ratio_interval, sum_ratio_interval


def lognormal(seed: int, size: int = 30) -> list[float]:
    return np.random.default_rng(seed).lognormal(3.0, 0.1, size).tolist()


@pytest.mark.parametrize("size", [3, 4, 7, 30, 31])
def test_the_interval_holds_the_median_and_stays_within_the_samples(size):
    samples = lognormal(1, size)
    low, high = median_interval(samples)
    assert min(samples) <= low <= median(samples) <= high <= max(samples)


def test_95_percent_intervals_hold_the_true_median_about_95_times_in_100():
    true_median = np.exp(3.0)
    hits = sum(low <= true_median <= high for low, high in (median_interval(lognormal(seed)) for seed in range(400)))
    assert 0.90 <= hits / 400 <= 0.98


def test_the_ratio_interval_holds_the_true_ratio_about_95_times_in_100():
    hits = 0
    for seed in range(300):
        slow = [2.0 * ms for ms in lognormal(seed)]
        low, high = ratio_interval(slow, lognormal(seed + 1000))
        hits += low <= 2.0 <= high
    assert 0.90 <= hits / 300 <= 0.99


def test_the_two_sides_of_a_ratio_are_resampled_apart():
    samples = lognormal(2)
    low, high = ratio_interval(samples, samples)
    assert low < 1.0 < high  # drawn in step, every ratio would be exactly 1


def test_the_same_samples_give_the_same_interval_in_any_order():
    samples = lognormal(3)
    assert median_interval(samples) == median_interval(samples) == median_interval(samples[::-1])
    assert ratio_interval(samples, lognormal(4)) == ratio_interval(samples[::-1], lognormal(4))


def test_the_medians_are_those_of_drawing_with_replacement():
    """Against the plain way: draw samples, take the median, and so on; within what chance allows."""
    samples, generator = lognormal(5, 9), np.random.default_rng(99)
    medians = np.median(generator.choice(samples, (20000, 9)), axis=1)
    expected = np.quantile(medians, [0.025, 0.975])
    assert median_interval(samples, resamples=20000) == pytest.approx(expected, rel=0.02)


def test_more_confidence_is_wider_and_more_samples_are_narrower():
    low, high = median_interval(lognormal(6))
    wide_low, wide_high = median_interval(lognormal(6), confidence=0.99)
    assert wide_low <= low < high <= wide_high
    many_low, many_high = median_interval(lognormal(6, 1000))
    assert many_high - many_low < (high - low) / 2


@pytest.mark.parametrize("samples", [(), (1.0,), (1.0, 2.0)])
def test_fewer_than_three_samples_have_no_interval(samples):
    assert median_interval(samples) is None
    assert ratio_interval(samples, [1.0] * 5) is None
    assert ratio_interval([1.0] * 5, samples) is None


def test_equal_samples_have_an_interval_without_width():
    assert median_interval([4.0] * 5) == (4.0, 4.0)
    assert ratio_interval([4.0] * 5, [2.0] * 3) == (2.0, 2.0)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, float("nan")])
def test_a_confidence_that_is_no_probability_is_refused(confidence):
    with pytest.raises(ValueError, match=f"got {confidence}"):
        median_interval([1.0, 2.0, 3.0], confidence)


def test_impossible_samples_are_refused_with_the_value():
    with pytest.raises(ValueError, match="finite samples; got nan"):
        median_interval([1.0, float("nan"), 2.0])
    with pytest.raises(ValueError, match="above 0; got 0"):
        ratio_interval([1.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="got 0"):
        median_interval([1.0, 2.0, 3.0], resamples=0)


def test_a_ratio_of_sums_resamples_pairs_together():
    assert sum_ratio_interval([2.0, 20.0, 6.0], [1.0, 10.0, 3.0]) == (2.0, 2.0)
    low, high = sum_ratio_interval([10.0, 12.0, 8.0, 11.0, 9.0] * 8, [10.0] * 40)
    assert 0.9 < low < 1.0 < high < 1.1
    # One long cycle weighs as much as its time.
    low, high = sum_ratio_interval([1.0] * 30 + [300.0], [1.0] * 30 + [100.0])
    assert low < 1.1 and 2.5 < high < 3.0


def test_a_ratio_of_sums_refuses_what_is_no_pair():
    assert sum_ratio_interval([1.0, 2.0], [1.0, 2.0]) is None
    with pytest.raises(ValueError, match="got 3 and 4"):
        sum_ratio_interval([1.0] * 3, [1.0] * 4)
    with pytest.raises(ValueError, match="above 0; got 0"):
        sum_ratio_interval([1.0] * 3, [1.0, 0.0, 1.0])
