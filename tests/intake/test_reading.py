"""Alpha from counts: bounds that hold the truth, exact where the counts allow it, and the field reports replayed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from specnb import intake, store, theory
from specnb.records import ObservedCounts, PublishedCounts

from .texts import closing_block, server_lines

REPORTS = store.load_field_reports()


def simulated(alpha: float, lengths: list[int], seed: int) -> tuple[ObservedCounts, int]:
    """Counts of cycles with these draft lengths, and how many tokens were tested."""
    chance = random.Random(seed)
    kept = tested = 0
    for length in lengths:
        for _ in range(length):
            tested += 1
            if chance.random() >= alpha:
                break
            kept += 1
    drafts = sum(length > 0 for length in lengths)
    counts = ObservedCounts(
        tool="simulation",
        label="",
        drafted=sum(lengths),
        kept=kept,
        drafts=(drafts, drafts),
        passes=(len(lengths), len(lengths)),
        emitted=kept + len(lengths),
        k=max(lengths),
    )
    return counts, tested


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.9])
def test_the_bounds_and_the_interval_hold_the_truth(alpha, seed):
    chance = random.Random(seed + 100)
    lengths = [chance.choice((0, 1, 2, 5, 8)) for _ in range(600)]
    counts, tested = simulated(alpha, lengths, seed)
    by_count = counts.kept / tested
    for less in (counts, replace(counts, drafts=None), replace(counts, drafts=None, passes=None)):
        reading = intake.read(less)
        low, high = reading.alpha
        assert low - 0.03 <= by_count <= high + 0.03
        assert reading.alpha_interval[0] - 0.02 <= alpha <= reading.alpha_interval[1] + 0.02
    # What is known less, is known no better.
    widths = [
        intake.read(each).alpha
        for each in (counts, replace(counts, drafts=None), replace(counts, drafts=None, passes=None))
    ]
    assert widths[0][1] - widths[0][0] <= widths[1][1] - widths[1][0] <= widths[2][1] - widths[2][0] + 1e-9


def test_drafts_of_one_length_give_alpha_exactly():
    counts, tested = simulated(0.7, [4] * 2000, 3)
    reading = intake.read(counts)
    assert reading.exact
    assert reading.alpha[0] == pytest.approx(theory.solve_alpha(1 + counts.kept / 2000, 4))
    assert reading.alpha[0] == pytest.approx(counts.kept / tested, abs=0.02)


def test_without_k_there_is_no_upper_bound_and_that_is_said():
    counts, _ = simulated(0.7, [4] * 100, 3)
    reading = intake.read(replace(counts, k=None))
    assert reading.alpha[1] == 1.0 and not reading.exact
    assert any("Give k" in each for each in reading.unknown)
    assert intake.read(replace(counts, k=None), k=4).exact


def test_drafted_and_kept_alone_say_little_and_say_so():
    reading = intake.read(ObservedCounts("tool", "", 300, 150))
    assert reading.tokens_per_cycle is None and reading.draft_length is None and reading.tested is None
    assert reading.alpha[0] == 0.5
    assert len(reading.unknown) == 3


def test_drafts_of_one_token_are_all_tested():
    reading = intake.read(ObservedCounts("tool", "", 35, 29, drafts=(35, 35), k=1))
    assert reading.tested == 35 and reading.alpha_tested == pytest.approx(29 / 35)
    assert reading.alpha_interval == theory.alpha_interval(29, 35)


def test_nothing_kept_is_alpha_zero_with_an_interval():
    reading = intake.read(ObservedCounts("tool", "", 300, 0, drafts=(100, 100), k=3))
    assert reading.alpha == (0.0, 0.0)
    assert reading.alpha_interval[0] == 0.0 and 0.0 < reading.alpha_interval[1] < 0.05


def test_all_kept_is_alpha_one():
    reading = intake.read(ObservedCounts("tool", "", 300, 300, drafts=(100, 100), k=3))
    assert reading.alpha == (1.0, 1.0) and reading.alpha_interval[0] > 0.97


# --- the field reports -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", REPORTS.counts, ids=lambda row: row.label)
def test_a_field_report_printed_by_a_server_is_read_back(row: PublishedCounts):
    shares = row.kept_by_position
    text = server_lines(row.drafted, row.kept, drafts=row.cycles, emitted=row.emitted, per_position=shares)
    found = intake.from_text(text, k=row.k)
    (block,) = found.blocks
    assert not block.contradictions and not found.refused
    fewest, most = block.counts.drafts
    assert fewest <= row.cycles <= most
    assert (most - fewest) <= 0.02 * row.cycles
    low, high = block.reading.tokens_per_draft
    assert low <= row.tokens_per_cycle <= high
    exact = intake.read(replace(block.counts, drafts=(row.cycles, row.cycles)))
    assert exact.alpha_interval[0] <= exact.alpha[0] <= exact.alpha[1] <= exact.alpha_interval[1]
    if row.drafted == row.k * row.cycles:
        assert exact.alpha[0] == pytest.approx(theory.solve_alpha(row.tokens_per_cycle, row.k), abs=1e-6)


def test_the_report_with_positions_agrees_with_alpha_by_counting():
    row = REPORTS.counts[0]
    block = intake.of_counts(
        ObservedCounts("tool", row.label, row.drafted, row.kept, drafts=(row.cycles, row.cycles), k=row.k)
    )
    kept_at_1 = row.kept_by_position[0]
    assert block.reading.alpha[0] == pytest.approx(kept_at_1, abs=0.03)


@pytest.mark.parametrize("row", REPORTS.summaries, ids=lambda row: row.label)
def test_a_field_report_printed_by_the_example_is_read_back(row: PublishedCounts):
    seconds = 10.0 if row.tokens_per_second is None else row.emitted / row.tokens_per_second
    text = closing_block(row.drafted, row.kept, emitted=row.emitted, k=row.k, seconds=seconds)
    found = intake.from_text(text, plain_tokens_per_second=row.plain_tokens_per_second)
    (block,) = found.blocks
    assert not block.contradictions and not found.refused
    passes = row.emitted - row.kept
    assert block.counts.passes == (passes, passes)
    assert block.reading.tokens_per_cycle == pytest.approx((row.emitted / passes,) * 2)
    low, high = block.reading.alpha
    assert row.kept / row.drafted - 1e-9 <= low <= high <= 1.0
    if row.plain_tokens_per_second is not None:
        expected = row.tokens_per_second / row.plain_tokens_per_second
        assert block.verdict.measured == pytest.approx(expected, rel=2e-3)
        assert block.verdict.says == "pays"


def test_the_m_rope_failure_is_structural():
    failure = store.load_m5_pro().facts["mrope_failure"]
    (block,) = intake.from_text(closing_block(failure["n_drafted"], failure["n_accept"], emitted=400, k=4)).blocks
    assert block.verdict.diagnosis.name == "structural"


def test_the_m5_pro_table_read_as_logs_says_k_1_and_off_beyond_the_cliff():
    study = store.load_m5_pro()
    for row in study.runs:
        cycles = 1000
        kept = round(row.acceptance_rate * row.k * cycles)
        emitted = kept + cycles
        text = closing_block(row.k * cycles, kept, emitted=emitted, k=row.k, seconds=emitted / row.tokens_per_second)
        (block,) = intake.from_text(
            text,
            staircase=study.verify_ms,
            plain_tokens_per_second=study.plain_tokens_per_second,
            draft_ms=study.draft_ms,
        ).blocks
        assert block.verdict.measured == pytest.approx(row.speedup, abs=0.01)
        assert 0.6 < block.reading.alpha[0] < 0.75
        low, high = sorted(block.verdict.best)
        assert {low, high} <= {1, 3, 4}
        if row.k >= 11:
            assert block.verdict.says == "loses"
            assert block.verdict.diagnosis.name == "over a cliff"
