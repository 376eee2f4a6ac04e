"""One alpha on many machines: the ledger on staircases, and whole cycles where only those were published."""

from __future__ import annotations

import pytest

from specnb import cards, store, theory
from specnb.cards import MachineCosts, Verdict

REPORTS = store.load_field_reports()
M5 = cards.of_study(store.load_m5_pro())
STAIRS = MachineCosts("stairs", 10.0, verify_ms={1: 10.0, 2: 11.0, 4: 20.0})


def named(label: str) -> MachineCosts:
    return next(each for each in cards.costs_of_reports(REPORTS) if each.label == label)


def test_on_a_staircase_it_is_the_ledger():
    (m5,) = cards.costs_of_cards([M5])
    medians, plain_ms = M5.staircase.median_ms, 1000 / 57.6
    assert m5.plain_ms == plain_ms
    assert m5.speedup(0.7, 3, 0.15) == theory.speedup(0.7, 3, 0.15 * plain_ms, medians, plain_ms)


@pytest.mark.parametrize("sweep", [each for each in REPORTS.sweeps if each.varied == "k"], ids=lambda each: each.label)
def test_a_sweeps_own_alpha_gives_back_its_own_speedups(sweep):
    machine = named(sweep.label)
    assert set(machine.cycle_ms) == {point.k for point in sweep.points}
    for point in sweep.points:
        alpha = theory.solve_alpha(1.0 + point.k * point.acceptance_rate, point.k)
        reported = point.tokens_per_second / sweep.plain_tokens_per_second
        assert machine.speedup(alpha, point.k, gamma=0.4) == pytest.approx(reported)


def test_the_same_alpha_has_opposite_verdicts():
    rows = cards.verdicts(cards.costs_of_reports(REPORTS), 0.845, 3)
    found = {row.label: round(row.speedup, 2) for row in rows}
    assert found == {"RTX 5090 at 600 W": 2.08, "M3 Ultra": 0.91}


def test_a_k_that_was_not_reported_is_not_made_up():
    assert named("M3 Ultra").speedup(0.9, 1, 0.0) is None
    assert named("M3 Ultra").speedup(0.9, 5, 0.0) is None
    assert STAIRS.speedup(0.9, 2, 0.0) is None
    assert STAIRS.speedup(0.5, 1, 0.0) == pytest.approx(1.5 * 10 / 11)


def test_a_price_of_drafts_counts_only_where_there_is_a_staircase():
    whole = MachineCosts("whole", 10.0, cycle_ms={1: 12.0})
    free, priced = (cards.verdicts([STAIRS, whole], 0.5, 1, gamma=gamma) for gamma in (0.0, 0.3))
    assert free[0].speedup > priced[0].speedup == pytest.approx(1.5 * 10 / 14)
    assert free[1] == priced[1] == Verdict("whole", pytest.approx(1.25), own_price=True)
    assert not free[0].own_price


def test_the_longest_k_is_what_the_slider_needs():
    assert (STAIRS.longest_k, named("RTX 5090 at 600 W").longest_k, MachineCosts("none", 1.0).longest_k) == (3, 6, 0)


def test_cards_without_a_staircase_and_sweeps_over_p_min_are_left_out():
    assert cards.costs_of_cards(cards.of_reports(REPORTS)[-1:]) == ()
    assert {each.label for each in cards.costs_of_reports(REPORTS)} == {"RTX 5090 at 600 W", "M3 Ultra"}


def test_a_cycle_out_of_printed_figures():
    assert theory.implied_cycle_ms(3.0, 60.0) == pytest.approx(50.0)
    with pytest.raises(ValueError, match=r"at least one token; got 0\.5"):
        theory.implied_cycle_ms(0.5, 60.0)
    with pytest.raises(ValueError, match="above 0 and finite; got 0"):
        theory.implied_cycle_ms(2.0, 0)
