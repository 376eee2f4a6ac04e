"""Verdicts: what was measured counts first, a range of alpha gives a range of speedups, prices are labelled."""

from __future__ import annotations

import pytest

from specnb import intake, store, theory
from specnb.intake.verdict import FREE, GIVEN, INFERRED, PRINTED
from specnb.records import ObservedCounts

STUDY = store.load_m5_pro()
STAIRCASE = STUDY.verify_ms


def counts(k: int, alpha: float, *, seconds: float | None = None, draft_ms: float | None = None) -> ObservedCounts:
    cycles = 1000
    kept = round(cycles * (theory.expected_tokens(alpha, k) - 1))
    return ObservedCounts(
        "tool",
        "",
        k * cycles,
        kept,
        drafts=(cycles, cycles),
        passes=(cycles, cycles),
        emitted=kept + cycles,
        k=k,
        seconds=seconds,
        draft_ms=draft_ms,
    )


def test_without_costs_there_is_no_verdict():
    verdict = intake.judge(intake.read(counts(3, 0.7)))
    assert verdict.says == "unknown" and verdict.predicted is None
    assert verdict.diagnosis.name == "costs unknown"


def test_a_staircase_predicts_every_k_and_finds_the_best():
    verdict = intake.judge(intake.read(counts(7, 0.7)), staircase=STAIRCASE, draft_ms=STUDY.draft_ms)
    assert set(verdict.predicted) == {n - 1 for n in STAIRCASE if n > 1}
    low, high = verdict.predicted[7]
    middle = theory.speedup(0.7, 7, STUDY.draft_ms, STAIRCASE, STAIRCASE[1])
    assert low < middle < high
    assert verdict.says == "loses" and verdict.draft_source == GIVEN
    ends = intake.read(counts(7, 0.7)).alpha_interval
    assert verdict.best == tuple(theory.best_k(alpha, STUDY.draft_ms, STAIRCASE, STAIRCASE[1]) for alpha in ends)
    assert all(theory.cycle_ms(k, STUDY.draft_ms, STAIRCASE) / (k + 1) > STAIRCASE[1] for k in verdict.hopeless)


def test_the_drafts_price_comes_from_the_caller_the_log_or_the_logs_time():
    reading = intake.read(counts(3, 0.7, draft_ms=1.5))
    assert intake.judge(reading, staircase=STAIRCASE).draft_source == PRINTED
    assert intake.judge(reading, staircase=STAIRCASE, draft_ms=9.0).draft_ms == 9.0
    cycle_s = theory.cycle_ms(3, 2.5, STAIRCASE)  # seconds of 1000 cycles
    inferred = intake.judge(intake.read(counts(3, 0.7, seconds=cycle_s)), staircase=STAIRCASE)
    assert inferred.draft_source == INFERRED and inferred.draft_ms == pytest.approx(2.5, rel=1e-6)


def test_an_unknown_price_never_makes_a_promise_but_may_refuse_one():
    good = intake.judge(intake.read(counts(3, 0.9)), staircase=STAIRCASE)
    assert good.draft_source == FREE and good.says == "unknown"
    assert good.predicted[3][0] > 1.0
    hopeless = intake.judge(intake.read(counts(8, 0.2)), staircase=STAIRCASE)
    assert hopeless.says == "loses"


@pytest.mark.parametrize("factor", [0.2, 10.0])
def test_a_foreign_staircase_is_found_out_and_not_used(factor):
    cycle_s = theory.cycle_ms(3, 2.5, STAIRCASE)
    verdict = intake.judge(intake.read(counts(3, 0.7, seconds=factor * cycle_s)), staircase=STAIRCASE)
    assert verdict.problem and verdict.predicted is None and verdict.says == "unknown"


def test_a_plain_speed_alone_gives_the_speedup_and_says_what_a_better_k_takes():
    block = intake.of_counts(counts(3, 0.7, seconds=50.0), plain_tokens_per_second=40.0)
    assert block.verdict.measured == pytest.approx(block.counts.tokens_per_second / 40.0)
    assert block.verdict.best is None
    told = str(intake.Intake((block,)))
    assert "Yes, it pays" in told and "takes a staircase" in told


def test_what_cannot_be_told_apart_is_not_claimed():
    same = intake.judge(intake.read(counts(3, 0.7, seconds=10.0)), plain_tokens_per_second=254.0)
    assert same.says == "not distinguishable"


def test_bad_costs_are_refused_with_the_number():
    reading = intake.read(counts(3, 0.7))
    for speed in (0.0, -3.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=str(speed)):
            intake.judge(reading, plain_tokens_per_second=speed)
    with pytest.raises(KeyError, match="2, 3"):
        intake.judge(reading, staircase={2: 5.0, 3: 6.0})
    with pytest.raises(ValueError, match="-4"):
        intake.judge(reading, staircase={1: 5.0, 2: -4.0, 4: 5.0})
    with pytest.raises(ValueError, match="draft_ms"):
        intake.judge(reading, staircase=STAIRCASE, draft_ms=-1.0)


@pytest.mark.parametrize(("cycles", "name"), [(9, "too few tokens"), (900, "structural")])
def test_nothing_kept_of_a_few_tokens_may_be_chance(cycles, name):
    seen = ObservedCounts("tool", "", cycles, 0, drafts=(cycles, cycles), passes=(cycles, cycles), k=1)
    assert intake.judge(intake.read(seen)).diagnosis.name == name
