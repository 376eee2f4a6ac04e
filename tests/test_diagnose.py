from __future__ import annotations

import pytest

from specnb import store, theory
from specnb.diagnose import STRUCTURAL_ALPHA, diagnose
from specnb.records import Loop

STUDY = store.load_m5_pro()
COSTS = {"verify_ms": STUDY.verify_ms, "draft_ms": STUDY.draft_ms, "plain_ms": STUDY.plain_ms}
FLAT = {n: 10.0 for n in range(1, 18)}
SERIAL = {n: 10.0 * n for n in range(1, 18)}


@pytest.mark.parametrize(
    ("k", "name"),
    [
        (1, "fine"), (2, "in a notch"), (3, "fine"), (5, "too long"), (7, "too long"), (11, "over a cliff"),
        (16, "over a cliff"),
    ],
)  # fmt: skip
def test_the_m5_pro_table(k, name):
    (run,) = (run for run in STUDY.runs if run.k == k)
    found = diagnose(k=k, acceptance=run.acceptance_rate, **COSTS)
    assert found.name == name
    # The published ledger is 7 to 13 % optimistic.
    assert found.speedup == pytest.approx(run.speedup, rel=0.15)
    if name == "over a cliff":
        assert found.cliff_n == 9 and found.better_k + 1 < 9
    assert f"k={k}" in found.text


def test_the_healthy_band_of_acceptance_would_condemn_runs_whose_alpha_is_the_same():
    rates = {run.k: run.acceptance_rate for run in STUDY.runs}
    assert rates[1] > 0.70 and rates[16] < 0.20
    alphas = [theory.solve_alpha(1 + k * rate, k) for k, rate in rates.items()]
    assert max(alphas) - min(alphas) < 0.03


def test_the_five_percent_rule_is_about_alpha():
    rate = theory.acceptance_rate_from_alpha(0.4, 16)
    assert rate < 0.05
    assert diagnose(k=16, acceptance=rate, verify_ms=FLAT).name == "fine"
    counts = STUDY.facts["mrope_failure"]
    for k in (1, 4, 16):
        assert diagnose(k=k, acceptance=counts["n_accept"] / counts["n_drafted"], **COSTS).name == "structural"


def test_structural_needs_no_costs_and_ends_at_its_bound():
    assert diagnose(k=4, alpha=0.0).name == "structural"
    assert diagnose(k=4, alpha=STRUCTURAL_ALPHA).name != "structural"


@pytest.mark.parametrize(
    ("kept", "tested", "name"), [(0, 20, "too few tokens"), (0, 200, "structural"), (1, 60, "too few tokens")]
)
def test_an_alpha_near_nothing_of_few_tokens_may_be_chance(kept, tested, name):
    found = diagnose(k=4, alpha=kept / tested, tested=tested, verify_ms=FLAT)
    assert found.name == name and found.tested == tested


def test_nothing_drafted():
    found = diagnose(k=4)
    assert found.name == "nothing drafted" and found.alpha is None and found.speedup is None


def test_a_loop_makes_every_figure_worthless():
    assert diagnose(k=4, alpha=0.99, verify_ms=FLAT, loop=Loop(0, 60, 5)).name == "looped text"


def test_without_a_staircase_only_the_ceiling_is_told():
    found = diagnose(k=3, acceptance=0.5)
    assert found.name == "costs unknown"
    assert found.tokens_per_cycle == pytest.approx(2.5)
    assert "2.50×" in found.text


def test_a_dear_draft_and_dear_passes():
    assert diagnose(k=4, alpha=0.7, verify_ms=FLAT, draft_ms=9.0).name == "dear draft"
    found = diagnose(k=4, alpha=0.7, verify_ms=SERIAL)
    assert found.name == "dear passes" and found.free_speedup < 1 and found.better_k is None


def test_too_short():
    found = diagnose(k=1, alpha=0.9, verify_ms=FLAT)
    assert found.name == "too short" and found.better_k == 16 and found.better_speedup > found.speedup


def test_a_setting_that_loses_where_another_wins_is_not_fine_however_close_they_are():
    verify_ms = {1: 10.0, 2: 14.9, 3: 20.0}
    found = diagnose(k=2, alpha=0.5, verify_ms=verify_ms)
    assert found.speedup < 1 < found.better_speedup < 1.05 * 1.1
    assert found.name == "too long" and found.better_k == 1


def test_other_work_is_paid_by_plain_decoding_too():
    cheap = diagnose(k=4, alpha=0.7, verify_ms=SERIAL)
    assert diagnose(k=4, alpha=0.7, verify_ms=SERIAL, other_ms=1000.0).speedup > 2 > cheap.speedup


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"k": 4, "acceptance": 1.2}, ValueError, "1.2"),
        ({"k": 4, "acceptance": float("nan")}, ValueError, "nan"),
        ({"k": 4, "alpha": -0.1}, ValueError, "-0.1"),
        ({"k": 0, "alpha": 0.5}, ValueError, "0"),
        ({"k": 4, "alpha": 0.5, "verify_ms": {1: 10.0, 2: 11.0}}, KeyError, "N=5"),
        ({"k": 1, "alpha": 0.5, "verify_ms": {2: 11.0}}, KeyError, "N=1"),
        ({"k": 1, "alpha": 0.5, "verify_ms": {1: 10.0, 2: float("nan")}}, ValueError, "nan"),
    ],
)
def test_what_cannot_be_is_refused_with_the_number(options, error, said):
    with pytest.raises(error, match=said):
        diagnose(**options)
