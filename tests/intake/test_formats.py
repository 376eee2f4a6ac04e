"""Every format gives back the counts it was printed from, alone and mixed into a log."""

from __future__ import annotations

import random

import pytest

from specnb import intake

from .texts import closing_block, metrics, server_lines, statistics_line, timings


def only(text: str, **costs: object) -> intake.Block:
    found = intake.from_text(text, **costs)
    assert not found.refused, found.refused
    (block,) = found.blocks
    assert not block.contradictions, block.contradictions
    return block


def test_a_closing_block_gives_its_counts_and_its_passes():
    counts = only(closing_block(730, 526, emitted=673, k=5, seconds=12.132)).counts
    assert (counts.drafted, counts.kept, counts.emitted, counts.k) == (730, 526, 673, 5)
    assert counts.passes == (147, 147)
    assert counts.tokens_per_second == pytest.approx(55.473, abs=0.01)
    assert counts.acceptance == pytest.approx(0.72055)


def test_a_closing_block_in_which_nothing_was_drafted_prints_a_nan_and_is_no_error():
    block = only(closing_block(0, 0, emitted=100, k=3))
    assert block.counts.acceptance is None and block.reading.alpha is None
    assert block.verdict.diagnosis.name == "nothing drafted"


def test_statistics_under_a_closing_block_count_the_drafts_and_their_time():
    text = closing_block(300, 150, emitted=300, k=3) + statistics_line("draft-simple", 100, 300, 150, 2.5)
    counts = only(text).counts
    assert counts.drafts == (100, 100)
    assert counts.draft_ms == pytest.approx(2.5, rel=1e-3)


def test_statistics_alone_are_a_block():
    block = only(statistics_line("ngram-mod", 4, 256, 47, 0.01))
    assert (block.counts.label, block.counts.drafted, block.counts.kept) == ("ngram-mod", 256, 47)


def test_lookup_prints_the_drafts_time():
    text = closing_block(50, 20, emitted=80).replace(
        "n_accept ", "t_draft      = 25.00 ms, 500.00 us per token\nn_accept "
    )
    assert only(text).counts.draft_ms == pytest.approx(0.5)


@pytest.mark.parametrize(
    "prefix", ["", "0.06.896 I ", "[53409] 5.05.552.782 I ", "Dec 02 12:10:29 box llama-server[24689]: "]
)
def test_a_servers_lines_are_read_behind_any_prefix(prefix):
    text = "".join(prefix + line + "\n" for line in server_lines(259, 167, drafts=87, emitted=256).splitlines())
    counts = only(text).counts
    assert (counts.drafted, counts.kept, counts.drafts, counts.emitted) == (259, 167, (87, 87), 256)
    assert counts.seconds == pytest.approx(2.29672)


def test_old_servers_print_a_rate_and_no_mean():
    text = (
        "slot print_timing: id  0 | task 7 | \n"
        "prompt eval time =     228.52 ms /     1 tokens (  228.52 ms per token,     4.38 tokens per second)\n"
        "       eval time =   11082.61 ms /   200 tokens (   55.41 ms per token,    18.05 tokens per second)\n"
        "      total time =   11311.13 ms /   201 tokens\n"
        "slot print_timing: id  0 | task 7 | \n"
        "draft acceptance rate = 0.18732 (   65 accepted /   347 generated)\n"
    )
    counts = only(text).counts
    assert (counts.drafted, counts.kept, counts.drafts, counts.passes) == (347, 65, None, (134, 134))


def test_tasks_that_overlap_keep_their_own_times():
    both = [server_lines(30, 10, drafts=10, emitted=21 + i, task=i).splitlines() for i in range(2)]
    found = intake.from_text("\n".join(line for pair in zip(*both, strict=True) for line in pair))
    assert [block.counts.emitted for block in found.blocks] == [21, 22]


def test_a_printed_mean_gives_the_passes_exactly_or_as_a_range():
    assert only(server_lines(9089, 5995, drafts=1817)).counts.drafts == (1814, 1819)
    exact = only(server_lines(259, 167, drafts=87, per_position=(0.805, 0.632, 0.483))).counts
    assert exact.drafts == (87, 87) and exact.kept_by_position == (70, 55, 42)


def test_a_hundred_random_answers_have_their_passes_in_the_range():
    chance = random.Random(1)
    for _ in range(100):
        drafts, k = chance.randint(1, 400), chance.randint(1, 12)
        kept = sum(chance.randint(0, k) for _ in range(drafts))
        fewest, most = only(server_lines(k * drafts, kept, drafts=drafts), k=k).counts.drafts
        assert fewest <= drafts <= most


def test_json_is_read_bare_inside_an_answer_and_without_a_draft():
    counts = only(timings(347, 65, emitted=200, ms=11082.606)).counts
    assert (counts.drafted, counts.kept, counts.emitted, counts.passes) == (347, 65, 200, (134, 134))
    assert counts.seconds == pytest.approx(11.082606)
    assert only('{"predicted_n": 50, "predicted_ms": 1000.0}').counts.drafted == 0


def test_the_chunks_of_a_stream_are_one_answer_and_another_prompt_is_another():
    chunks = [timings(5 * i, 2 * i, emitted=4 * i, ms=100.0 * i) for i in range(1, 6)]
    other = timings(10, 5, emitted=9, ms=300.0, prompt_ms=99.0)
    found = intake.from_text("\n".join("data: " + chunk for chunk in [*chunks, other]))
    assert [(block.counts.drafted, block.counts.kept) for block in found.blocks] == [(25, 10), (10, 5)]
    assert found.sums[0].counts.drafted == 35


@pytest.mark.parametrize("server", ["vllm", "llamacpp"])
def test_metrics_give_totals_and_positions(server):
    block = only(metrics(server, 1000, 3000, 1660, (710, 530, 420)))
    assert (block.counts.drafted, block.counts.kept, block.counts.drafts) == (3000, 1660, (1000, 1000))
    assert block.counts.kept_by_position == (710, 530, 420) and block.counts.k == 3
    assert block.reading.tested == 1000 + 710 + 530  # every draft had k tokens


def test_metrics_of_several_engines_are_told_apart_and_summed():
    text = "".join(metrics("vllm", 10, 30, 9, (5, 3, 1), labels=f'engine="{i}",model_name="m"') for i in range(3))
    found = intake.from_text(text)
    assert [block.counts.label for block in found.blocks] == ["0, m", "1, m", "2, m"]
    (total,) = found.sums
    assert (total.counts.drafted, total.counts.drafts, total.counts.kept_by_position) == (90, (30, 30), (15, 9, 3))


def test_a_counter_scraped_twice_counts_once():
    found = intake.from_text(metrics("vllm", 10, 30, 9) + metrics("vllm", 20, 60, 18))
    assert [block.counts.drafted for block in found.blocks] == [60]


def test_llama_servers_six_digits_are_told_and_allowed():
    text = metrics("llamacpp", 1_234_567, 3_703_700, 1_851_853, (617_284, 617_284, 617_285 - 1), shown="{:.6g}")
    assert "e+06" in text
    block = only(text)
    assert block.counts.rounded and any("six digits" in note for note in block.reading.unknown)


def test_vllms_log_line_is_read():
    line = (
        "(APIServer pid=1) INFO 09-09 11:51:35 [metrics.py:96] SpecDecoding metrics: Draft acceptance rate: 88.8%, "
        "Mean acceptance length: 5.44, Accepted throughput: 4.37 tokens/s, Drafted throughput: 4.92 tokens/s, "
        "Accepted: 262 tokens, Drafted: 295 tokens, Per-position acceptance rate: 0.983, 0.949, 0.915, 0.881, 0.712\n"
    )
    block = only(line)
    assert block.counts.drafts == (59, 59)
    assert block.counts.kept_by_position == (58, 56, 54, 52, 42)
    assert block.reading.alpha_tested == pytest.approx(262 / 279)


def test_several_blocks_in_one_log_are_told_each_and_in_sum_and_tools_are_not_added():
    text = (
        closing_block(100, 40, emitted=90, k=4)
        + closing_block(60, 30, emitted=70, k=4)
        + timings(100, 40, emitted=91, ms=900.0)
    )
    found = intake.from_text(text)
    assert len(found.blocks) == 3
    (total,) = found.sums
    assert (total.counts.drafted, total.counts.kept, total.counts.emitted, total.counts.k) == (160, 70, 160, 4)
    assert total.counts.passes == (90, 90)
    assert "sum of 2" in str(found)


def test_the_sum_lacks_what_one_block_lacks():
    total = intake.total([only(closing_block(10, 4, emitted=9, k=4)).counts, only(closing_block(10, 4)).counts])
    assert total.emitted is None and total.passes is None and total.k is None


def test_a_text_without_counts_says_what_is_read():
    found = intake.from_text("hello\nn_predict = -1\n")
    assert not found.blocks and found.best is None and "n_drafted" in str(found)
