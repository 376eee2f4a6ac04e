"""Prices from scripted cycles, and the bill of a run: numbers small enough to be worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specnb import ledger, store, theory
from specnb.records import Cycle, CycleCosts, CycleParts, CycleSample


def cycle(drafted, kept, *, start=10, drafter="draft_model", sure=True, emitted=None, **seconds):
    """A cycle of ``drafted`` tokens of which ``kept`` were kept; the target's own token comes after them."""
    return Cycle(
        drafter,
        start,
        tuple(range(drafted)),
        min(drafted, kept + 1),
        kept,
        tuple(range(kept + 1 if emitted is None else emitted)),
        (0.9,) * drafted if sure and drafted else None,
        **seconds,
    )


def sample(n, ms=0.0, *, drafted=None, kept=0, source="model", changed=False, fed=1, context=100, **parts):
    drafted = n - 1 if drafted is None else drafted
    parts = {"draft_ms": 1.0, "verify_ms": ms, "sampling_ms": 0.0, "other_ms": 0.0} | parts
    return CycleSample(n, changed, source, drafted, kept, kept + 1, fed, context, **parts)


def prices(*samples, contexts=(100,), keeps_drafts=True):
    return ledger.Prices(CycleCosts("draft_model", tuple(samples), contexts, keeps_drafts))


# --- what situation a cycle was in ------------------------------------------------------------


def test_times_are_milliseconds_and_stay_apart():
    (found,) = ledger.samples(
        [cycle(2, 1, draft_s=0.003, verify_s=0.02, sampling_s=0.0001, other_s=0.0002)], keeps_drafts=True
    )
    assert (found.draft_ms, found.verify_ms, found.sampling_ms, found.other_ms) == pytest.approx((3, 20, 0.1, 0.2))
    assert found.ms == pytest.approx(23.3)
    assert (found.n, found.drafted, found.kept, found.emitted, found.context_length) == (3, 2, 1, 2, 10)


def test_a_pass_pays_for_a_new_graph_when_n_is_another_than_before():
    cycles = [cycle(2, 0), cycle(2, 1), cycle(0, 0), cycle(0, 0), cycle(2, 2)]
    assert [s.changed for s in ledger.samples(cycles, keeps_drafts=True)] == [True, False, True, False, True]
    assert not ledger.samples(cycles, keeps_drafts=True, n_before=3)[0].changed


def test_a_fully_kept_draft_leaves_a_draft_model_one_token_more_to_read():
    cycles = [cycle(3, 3), cycle(3, 2), cycle(3, 0), cycle(1, 1), cycle(1, 1), cycle(1, 0)]
    assert [s.fed for s in ledger.samples(cycles, keeps_drafts=True)] == [1, 2, 1, 1, 2, 2]


def test_a_head_reads_whatever_was_emitted():
    cycles = [cycle(3, 3), cycle(3, 2), cycle(3, 0), cycle(3, 1)]
    assert [s.fed for s in ledger.samples(cycles, keeps_drafts=False)] == [1, 4, 3, 1]


def test_the_model_of_a_chain_reads_what_was_emitted_while_the_look_up_drafted():
    looked_up = cycle(4, 3, drafter="chain", sure=False)
    cycles = [cycle(2, 2, drafter="chain"), looked_up, looked_up, cycle(2, 0, drafter="chain"), cycle(2, 0)]
    found = ledger.samples(cycles, keeps_drafts=True)
    assert [s.source for s in found] == ["model", "look-up", "look-up", "model", "model"]
    # Two are left of the first cycle, then four and four come; after that only the pending one.
    assert [s.fed for s in found] == [1, 2, 6, 10, 1]


def test_sources_of_what_was_not_drafted_or_made_up():
    found = ledger.samples([cycle(0, 0), cycle(2, 0, drafter=ledger.FILLER)], keeps_drafts=True)
    assert [s.source for s in found] == ["", "filler"]


# --- prices -----------------------------------------------------------------------------------


def test_a_pass_is_priced_at_its_context_length_and_never_between_rows():
    found = prices(sample(5, 20.0, context=100), sample(5, 30.0, context=200), contexts=(100, 200))
    assert found.verify_ms(5, 100) == pytest.approx(20.0)
    assert found.verify_ms(5, 130) == pytest.approx(23.0)
    with pytest.raises(KeyError, match="N = 4 was not measured; measured: 5"):
        found.verify_ms(4, 100)


def test_a_context_just_outside_is_priced_as_the_nearest_and_one_far_outside_refused():
    found = prices(sample(5, 20.0, context=100), sample(5, 30.0, context=200), contexts=(100, 200))
    assert found.verify_ms(5, 90) == pytest.approx(20.0)
    with pytest.raises(ValueError, match="100 to 200 tokens in the cache, and is asked for at 300"):
        found.verify_ms(5, 300)


def test_a_price_is_a_median_raised_by_what_slow_passes_add_on_the_whole():
    # N=2: median 10, mean 11. N=3: median and mean 20. Over all six samples the mean lies 1.05 times above.
    found = prices(*[sample(2, ms) for ms in (10.0, 10.0, 13.0)], *[sample(3, 20.0)] * 3)
    assert found.verify_ms(2, 100) == pytest.approx(10.0 * 1.05)
    assert found.verify_ms(3, 100) == pytest.approx(20.0 * 1.05)


def test_a_new_graph_is_what_a_pass_takes_more_when_n_changed():
    found = prices(sample(3, 20.0), sample(3, 20.0), sample(3, 20.5, changed=True), sample(3, 20.7, changed=True))
    assert found.rebuild_ms == pytest.approx(0.6)
    assert found.of(sample(3, changed=True)).rebuild == pytest.approx(0.6)
    assert found.of(sample(3)).rebuild == 0.0


def drafting(drafted, ms, fed=1, context=100):
    return sample(drafted + 1, 20.0, fed=fed, context=context, draft_ms=ms)


def test_a_draft_is_priced_by_its_length_and_catching_up_by_what_it_has_to_read():
    found = prices(drafting(2, 4.0), drafting(4, 8.0), drafting(2, 5.0, fed=2), drafting(4, 12.0, fed=6))
    assert found.draft_ms("model", 2, 100) == pytest.approx(4.0)
    assert found.catch_up_ms(1) == 0.0
    assert found.catch_up_ms(2) == pytest.approx(1.0)
    assert found.catch_up_ms(4) == pytest.approx(2.5)
    with pytest.raises(KeyError, match="7 tokens to catch up with was not measured; measured: 1, 2, 6"):
        found.catch_up_ms(7)
    with pytest.raises(KeyError, match="k = 3 was not measured; measured: 2, 4"):
        found.draft_ms("model", 3, 100)


def test_noise_makes_catching_up_no_cheaper_than_nothing():
    assert prices(drafting(2, 4.0), drafting(2, 3.9, fed=2)).catch_up_ms(2) == 0.0


def test_a_look_up_costs_its_own_whatever_its_draft_and_nothing_when_it_is_not_asked():
    hit = sample(3, 20.0, source="look-up", draft_ms=0.02)
    miss = sample(1, 10.0, source="", draft_ms=0.01)
    made_up = sample(5, 25.0, source="filler", draft_ms=0.5)
    found = prices(hit, miss, made_up)
    assert found.of(sample(5, source="look-up")) == CycleParts(draft=0.02, verify=25.0)
    assert found.of(sample(1, source="")).draft == 0.01
    with pytest.raises(KeyError, match="draft_model was not measured in a cycle with a look-up"):
        prices(miss).draft_ms("look-up", 2, 100)


def test_a_recited_text_prices_look_ups_and_nothing_else():
    scripted = (sample(1, 10.0, source="", draft_ms=0.001), sample(3, 20.0))
    recited = (
        sample(1, 99.0, source="", draft_ms=0.03, other_ms=9.0), sample(3, 99.0, source="look-up", draft_ms=0.02),
        sample(3, 99.0, draft_ms=50.0), sample(5, 99.0, source="look-up", draft_ms=0.02),
    )  # fmt: skip
    found = ledger.Prices(CycleCosts("chain", scripted, (100,), True, recited))
    assert (found.draft_ms("", 0, 100), found.draft_ms("look-up", 2, 100)) == (0.03, 0.02)
    assert (found.verify_ms(3, 100), found.draft_ms("model", 2, 100)) == pytest.approx((20.0, 1.0))
    assert found.bookkeeping_ms == 0.0
    with pytest.raises(KeyError, match="N = 5 was not measured"):
        found.verify_ms(5, 100)


def test_sampling_is_priced_by_draws_and_rollback_apart_from_bookkeeping():
    found = prices(
        sample(3, 20.0, kept=0, sampling_ms=0.1, other_ms=0.05), sample(3, 20.0, kept=2, sampling_ms=0.3, other_ms=0.02)
    )
    assert found.sampling_ms(2) == pytest.approx(0.2)
    assert found.bookkeeping_ms == pytest.approx(0.02)
    assert found.rollback_ms == pytest.approx(0.03)
    assert found.of(sample(3, kept=2)).rollback == 0.0
    assert found.of(sample(3, kept=1)).other == pytest.approx(0.05)


# --- bills ------------------------------------------------------------------------------------

TOY = prices(
    *[sample(3, 20.0, kept=kept, draft_ms=4.0, sampling_ms=0.1 * (kept + 1), other_ms=0.05) for kept in (0, 1)],
    sample(3, 20.0, kept=2, draft_ms=4.0, sampling_ms=0.3, other_ms=0.02),
    sample(3, 20.0, fed=2, draft_ms=5.0, sampling_ms=0.1, other_ms=0.05),
    sample(3, 20.5, changed=True, kept=2, draft_ms=4.0, sampling_ms=0.3, other_ms=0.02),
)


def test_the_bill_of_a_run_is_the_sum_of_its_cycles():
    run = ledger.samples([cycle(2, 2, start=100), cycle(2, 0, start=103)], keeps_drafts=True)
    first, second = map(TOY.of, run)
    assert (first.draft, first.catch_up, first.verify, first.rebuild) == pytest.approx((4.0, 0.0, 20.0, 0.5))
    assert (first.sampling, first.rollback, first.bookkeeping) == pytest.approx((0.3, 0.0, 0.02))
    assert (second.catch_up, second.rebuild, second.rollback) == pytest.approx((1.0, 0.0, 0.03))
    assert ledger.ms_per_token(run, TOY) == pytest.approx((24.82 + 25.15) / 4)


def test_its_own_times_do_not_enter_a_bill():
    run = [cycle(2, 2, start=100), cycle(2, 0, start=103)]
    slow = [cycle(2, 2, start=100, verify_s=9.0, draft_s=9.0), cycle(2, 0, start=103, other_s=9.0)]
    bills = [ledger.ms_per_token(ledger.samples(each, keeps_drafts=True), TOY) for each in (run, slow)]
    assert bills[0] == bills[1]


@pytest.mark.parametrize(("alpha", "kept"), [(0.0, 0), (1.0, 2)])
def test_from_alpha_it_is_the_same_bill_where_alpha_leaves_no_choice(alpha, kept):
    cycles = [cycle(2, kept, start=100 + i * (kept + 1)) for i in range(4)]
    run = ledger.samples(cycles, keeps_drafts=True)
    assert ledger.ms_per_token_of_alpha(run, alpha, TOY) == pytest.approx(ledger.ms_per_token(run, TOY))


def test_from_alpha_it_is_expected_cost_over_expected_tokens():
    run = ledger.samples([cycle(2, 2, start=100), cycle(2, 0, start=103)], keeps_drafts=True)
    # At alpha 0.5 a cycle keeps 0, 1 or 2 with probability 1/2, 1/4, 1/4: 1.75 tokens, 0.175 ms of draws,
    # a rollback in three of four, and one token more to read after one of four.
    each = 24.0 + 0.175 + 0.02 + 0.75 * 0.03
    assert ledger.ms_per_token_of_alpha(run, 0.5, TOY) == pytest.approx((2 * each + 0.5 + 0.25 * 1.0) / 3.5)
    # What was kept in the run does not matter, only what was drafted.
    other = ledger.samples([cycle(2, 0, start=100), cycle(2, 0, start=101)], keeps_drafts=True)
    assert ledger.ms_per_token_of_alpha(other, 0.5, TOY) == ledger.ms_per_token_of_alpha(run, 0.5, TOY)


def test_from_alpha_no_pass_is_priced_beyond_the_run_s_contexts():
    kept = {draws: replace(drafting(2, 4.0), kept=draws - 1, emitted=draws) for draws in (1, 2, 3)}
    costs = prices(*kept.values())
    run = [replace(kept[1], context_length=100 + i) for i in range(30)]
    # At alpha 1 thirty such cycles would write ninety tokens, far beyond what the costs reach.
    assert ledger.ms_per_token_of_alpha(run, 1.0, costs) == pytest.approx(24.0 / 3)


def test_from_alpha_a_rare_pass_far_from_where_alpha_would_have_it_is_priced_where_it_was():
    refused = [cycle(8, 0, start=100 + i) for i in range(40)]
    rare, kept = cycle(4, 0, start=140), [cycle(8, 8, start=141 + 9 * i) for i in range(12)]
    run = ledger.samples([*refused, rare, *kept], keeps_drafts=False)
    timed = [replace(each, verify_ms=20.0, draft_ms=4.0, sampling_ms=0.0, other_ms=0.0) for each in run]
    costs = ledger.Prices(CycleCosts("eagle", tuple(timed), (100, 140, 180, 220), False))
    # At alpha 0.9 forty cycles of 8 would have written some 250 tokens before the one draft of 4.
    assert ledger.ms_per_token_of_alpha(run, 0.9, costs) > 0


def test_from_alpha_a_stretch_of_look_ups_beyond_any_measured_is_priced_as_the_longest():
    look_up = sample(3, 20.0, kept=2, source="look-up", draft_ms=0.01)
    chain = prices(drafting(2, 4.0), drafting(2, 7.0, fed=4), look_up)
    cycles = [cycle(2, 2, start=100, sure=False), cycle(2, 2, start=103, sure=False), cycle(2, 0, start=106)]
    run = ledger.samples(cycles, keeps_drafts=True, n_before=3)
    # All kept: the model would have seven tokens to read, and at most four were timed.
    found = ledger.ms_per_token_of_alpha(run, 1.0, chain)
    assert found == pytest.approx((3 * 20.0 + 2 * 0.01 + 4.0 + 3.0) / 9)


def test_with_a_flat_price_it_is_theory():
    found = prices(*[sample(5, 30.0, kept=kept, draft_ms=8.0, fed=1 + (kept == 4)) for kept in range(5)])
    run = ledger.samples([cycle(4, 1, start=100)], keeps_drafts=True, n_before=5)
    assert ledger.ms_per_token_of_alpha(run, 0.6, found) == pytest.approx(theory.ms_per_token(0.6, 4, 2.0, {5: 30.0}))


def test_drafts_of_any_length_lie_on_the_line_through_two_measured_ones():
    model = prices(drafting(1, 2.0), drafting(4, 5.0), drafting(4, 6.0, fed=2))
    # 3 tokens: 4 ms, and a token more to read after a fully kept draft, at 1 ms.
    assert ledger.drafting_ms(model, 3, 0.5, 100) == pytest.approx(4.0 + 0.125)
    assert ledger.drafting_ms(model, 16, 0.0, 100) == pytest.approx(17.0)
    head = prices(drafting(1, 2.0), drafting(4, 5.0), drafting(4, 5.8, fed=5), keeps_drafts=False)
    # 1.75 tokens are emitted on average, so 0.75 more than one are to be read, at 0.2 ms each.
    assert ledger.drafting_ms(head, 2, 0.5, 100) == pytest.approx(3.0 + 0.75 * 0.2)
    with pytest.raises(KeyError, match="two lengths are needed"):
        ledger.drafting_ms(prices(drafting(4, 5.0)), 3, 0.5, 100)


def test_rounds_are_put_together():
    one = CycleCosts("none", (sample(1, 10.0),), (100,), False)
    two = CycleCosts("chain", (sample(1, 12.0),), (50, 100), True, (sample(2, 9.0),), contended=True)
    both = ledger.together([one, two], "chain")
    assert both == CycleCosts("chain", one.samples + two.samples, (50, 100), True, two.recited, contended=True)
    with pytest.raises(ValueError, match="no costs to put together"):
        ledger.together([])


def test_the_average_cycle():
    assert ledger.mean_parts([CycleParts(draft=1.0, verify=4.0), CycleParts(draft=2.0)]) == CycleParts(1.5, 0.0, 2.0)


# --- a cell -----------------------------------------------------------------------------------


def test_a_cell_lays_prediction_beside_measurement():
    def run(slower):
        times = {"draft_s": 0.004, "verify_s": 0.02 + slower, "sampling_s": 0.0003, "other_s": 0.00002}
        cycles = [cycle(2, 2, start=100, **times), cycle(2, 0, start=103, **times), cycle(2, 1, start=104, **times)]
        return ledger.samples(cycles, keeps_drafts=True, n_before=3)

    found = ledger.cell([run(0.0), run(0.001)], TOY, k=2, kind="chat")
    assert (found.drafter, found.k, found.kind, found.cycles) == ("draft_model", 2, "chat", 6)
    assert found.tokens_per_cycle == 2.0
    assert found.alpha == pytest.approx(3 / 5)
    assert found.measured_ms == pytest.approx((24.32 + 0.5) / 2)
    # Full: 24.32. Refused after it: one more to read (1 ms), a rollback. One kept: the same without the reading.
    assert found.predicted_ms == pytest.approx((24.32 + 25.15 + 24.25) / 6)
    assert found.error == pytest.approx(found.predicted_ms / found.measured_ms - 1)
    assert found.interval[0] < 1 + found.error < found.interval[1]
    assert not found.wholly_beyond(0.06)
    assert found.measured.passing == pytest.approx(20.5)
    assert found.predicted.drafting == pytest.approx(4.0 + 1 / 3)
    assert found.of_alpha_ms == pytest.approx(ledger.ms_per_token_of_alpha(run(0.0), 3 / 5, TOY))


def test_an_interval_wholly_beyond_a_bound_is_told_on_either_side():
    def with_interval(*ends):
        one = ledger.samples([cycle(2, 0, start=100, verify_s=0.02)] * 3, keeps_drafts=True)
        return replace(ledger.cell([one], TOY, k=2, kind="chat"), interval=ends or None)

    assert with_interval(1.07, 1.2).wholly_beyond(0.06)
    assert with_interval(0.8, 0.93).wholly_beyond(0.06)
    assert not with_interval(0.8, 0.95).wholly_beyond(0.06)
    assert not with_interval(1.05, 1.2).wholly_beyond(0.06)
    assert not with_interval().wholly_beyond(0.06)


def test_a_cell_without_a_cycle_is_refused():
    with pytest.raises(ValueError, match="no cycle of draft_model with k=2 on 'chat'"):
        ledger.cell([], TOY, k=2, kind="chat")


# --- a published gap --------------------------------------------------------------------------


def test_a_second_pass_of_the_draft_explains_one_k_of_the_article_and_too_much_of_others():
    study = store.load_m5_pro()
    draft = next(cliff for cliff in study.cliffs if cliff.model == "Qwen2.5-0.5B Q4_K_M")
    found = {gap.k: gap for gap in ledger.second_pass(study, {1: study.draft_ms, 8: draft.ms_8, 9: draft.ms_9})}
    # By hand, k=7: 1 + 7 * 0.2946 = 3.0622 tokens at 42.26 tokens/s are 72.46 ms; 7 * 2.817 + 44.77 = 64.489 ms.
    assert found[7].missing_ms == pytest.approx(7.97, abs=0.01)
    assert (found[7].low_ms, found[7].high_ms) == (5.30, 5.30)
    assert (found[1].low_ms, found[1].high_ms) == (2.817, 5.30)
    assert (found[16].low_ms, found[16].high_ms) == (10.29, None)
    assert {k for k, gap in found.items() if gap.explains_too_much} == {1, 11, 16}


def test_disturbed_cycles_are_left_out_of_the_times_and_counted():
    calm = [sample(3, 20.0, kept=kept) for kept in (0, 1, 2) for _ in range(4)]
    spiked = [*calm, sample(3, 90.0, kept=2), sample(3, 20.0, draft_ms=2.0)]
    assert ledger.undisturbed(spiked) == tuple(calm)
    assert ledger.calmed(spiked)[12:] == (sample(3, 20.0, kept=2), sample(3, 20.0))
    assert ledger.undisturbed([sample(3, 90.0)]) == (sample(3, 90.0),), "one alone has no like to be told from"
    found = ledger.cell([spiked], prices(*calm), k=2, kind="code")
    assert (found.cycles, found.disturbed) == (14, 2)
    assert found.measured_ms == found.predicted_ms == pytest.approx(21.0 / 2)
    assert found.tokens_per_cycle == pytest.approx((24 + 3 + 1) / 14)
