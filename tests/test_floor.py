"""The two-term model of a pass and what refutes it, on the M5 Pro article's figures and on made-up ones."""

from __future__ import annotations

from math import inf

import pytest

from specnb import floor, store, theory
from specnb.records import LayerwiseCost, MemoryBandwidth, PassCost, PassCosts

STUDY = store.load_m5_pro()
LARGE, SMALL, SMALL_Q8 = STUDY.bandwidth
MIB = 2**20


def published_terms() -> floor.TwoTerms:
    rows = (LARGE, SMALL)
    return floor.fit_two_terms(
        [row.n_layer for row in rows], [row.weights_mib * MIB for row in rows], [row.ms_per_token for row in rows]
    )


def test_two_terms_through_the_articles_two_models_are_its_own():
    terms, printed = published_terms(), STUDY.facts["linear_model_refuted"]
    assert 1000 * terms.ms_per_layer == pytest.approx(printed["us_per_layer"], abs=0.05)
    assert terms.ms_per_gib == pytest.approx(printed["ms_per_gib"], abs=0.0006)
    assert terms.gb_per_s == pytest.approx(298, abs=1)
    for row in (LARGE, SMALL):  # no degree of freedom is left, so nothing has been tested yet
        assert terms.predict_ms(row.n_layer, row.weights_mib * MIB) == pytest.approx(row.ms_per_token)


def test_the_third_model_refutes_them_as_published():
    printed = STUDY.facts["linear_model_refuted"]
    predicted = published_terms().predict_ms(SMALL_Q8.n_layer, SMALL_Q8.weights_mib * MIB)
    assert predicted == pytest.approx(printed["predicted_q8_ms"], abs=0.001)
    assert predicted / SMALL_Q8.ms_per_token - 1 == pytest.approx(printed["error"], abs=0.0005)
    marginal = floor.marginal_gb_per_s(
        SMALL.weights_mib * MIB, SMALL.ms_per_token, SMALL_Q8.weights_mib * MIB, SMALL_Q8.ms_per_token
    )
    assert marginal == pytest.approx(810, rel=0.01)
    assert marginal > 2.5 * STUDY.facts["nominal_gb_per_s"]


def test_terms_are_recovered_from_more_models_than_two():
    layers, sizes = [10, 20, 30, 30], [1e8, 2.5e8, 3e8, 6e8]
    ms = [0.05 * n + size / 20e6 for n, size in zip(layers, sizes, strict=True)]
    terms = floor.fit_two_terms(layers, sizes, ms)
    assert terms.ms_per_layer == pytest.approx(0.05)
    assert terms.gb_per_s == pytest.approx(20.0)


@pytest.mark.parametrize(("layers", "sizes"), [([10], [1e8]), ([10, 20], [1e8, 2e8])])
def test_models_that_cannot_tell_the_terms_apart_are_refused(layers, sizes):
    with pytest.raises(ValueError, match="at least two models, not in proportion"):
        floor.fit_two_terms(layers, sizes, [1.0] * len(layers))


def test_bandwidth_is_bytes_over_time():
    assert floor.gb_per_s(400e6, 2.0) == pytest.approx(200.0)
    assert floor.marginal_gb_per_s(1e9, 5.0, 2e9, 10.0) == pytest.approx(200.0)
    assert floor.marginal_gb_per_s(1e9, 5.0, 2e9, 4.0) == inf
    with pytest.raises(ValueError, match="more bytes; got 2e"):
        floor.marginal_gb_per_s(2e9, 5.0, 1e9, 4.0)
    for ms in (0.0, -1.0, inf, float("nan")):
        with pytest.raises(ValueError, match="above 0 and finite"):
            floor.gb_per_s(1.0, ms)


def test_shares_add_up_to_what_was_measured_whatever_they_are():
    split = floor.shares(10.0, 80e6, 20.0, 1.5)
    assert (split.weights, split.fixed, split.rest) == pytest.approx((4.0, 1.5, 4.5))
    assert split.fixed_share == pytest.approx(0.15)
    cached = floor.shares(3.0, 80e6, 20.0, 1.5)  # faster than the memory: part of it was in a cache
    assert (cached.weights, cached.fixed, cached.rest) == pytest.approx((1.5, 1.5, 0.0))
    assert floor.shares(1.0, 80e6, 20.0, 1.5).total == pytest.approx(1.0)
    with pytest.raises(ValueError, match="above 0 GB/s"):
        floor.shares(1.0, 1.0, 0.0, 0.0)


def test_the_outlook_is_the_ledgers_with_t1_as_baseline():
    alpha, verify_ms = STUDY.facts["alpha_check"]["alpha"], STUDY.verify_ms
    found = floor.outlook(verify_ms, STUDY.draft_ms, alpha)
    assert found.best_k == theory.best_k(alpha, STUDY.draft_ms, verify_ms, verify_ms[1])
    assert found.speedup == theory.speedup(alpha, found.best_k, STUDY.draft_ms, verify_ms, verify_ms[1]) > 1
    assert found.gamma == STUDY.draft_ms / verify_ms[1]
    worse, better = (floor.outlook(verify_ms, STUDY.draft_ms, found.least_alpha + step) for step in (-0.01, 0.01))
    assert worse.best_k == 0 and worse.speedup == 1.0 and better.speedup > 1.0
    assert floor.outlook({1: 10.0, 2: 25.0}, 1.0, 0.9) == floor.Outlook(0.1, 0, 1.0, None)


def layerwise(few: int, many: int, n_layer: int, *samples: tuple[int, float, float]) -> LayerwiseCost:
    return LayerwiseCost("shape", "Q4_0", few, many, n_layer, 1, 1, 1, samples, 0, 1, False)


def test_further_layers_cost_what_the_added_ones_did():
    cost = layerwise(1, 4, 10, (1, 10.0, 16.0), (1, 10.0, 19.0), (1, 10.0, 22.0), (2, 20.0, 23.0))
    assert cost.extrapolated
    assert cost.samples_ms(1) == (28.0, 37.0, 46.0)
    assert cost.median_ms == {1: 37.0, 2: 29.0}
    with pytest.raises(KeyError, match="N=3 was not measured in 'shape'; measured: 1, 2"):
        cost.samples_ms(3)


def test_a_shape_that_was_timed_whole_is_not_extrapolated():
    cost = layerwise(2, 10, 10, (1, 10.0, 16.0))
    assert not cost.extrapolated and cost.median_ms == {1: 16.0}


@pytest.mark.parametrize(("few", "many", "n_layer"), [(2, 2, 10), (3, 2, 10), (0, 2, 10), (1, 11, 10)])
def test_layers_that_tell_nothing_are_refused(few, many, n_layer):
    with pytest.raises(ValueError, match=f"cannot tell what {n_layer} cost"):
        layerwise(few, many, n_layer, (1, 1.0, 2.0))


def test_passes_are_found_by_their_label():
    cost = PassCost("a", "Q4_0", 10, 1, 100_000_000, (4.0, 5.0, 60.0))
    assert cost.ms == 5.0 and cost.gb_per_s == pytest.approx(20.0)
    costs = PassCosts((cost,), 32, 1, False)
    assert costs.of("a") is cost
    with pytest.raises(KeyError, match="No pass of 'b' was timed; there are a"):
        costs.of("b")


def test_the_ceiling_is_the_fastest_read():
    found = MemoryBandwidth(((1, 9.0), (2, 15.0), (1, 11.0), (2, 14.0)), 512.0, False)
    assert found.ceiling_gb_per_s == 15.0
    assert found.by_threads == {1: 11.0, 2: 15.0}
