"""Experiments on the embedded model: what they return, never how fast it was."""

from __future__ import annotations

from collections import Counter

import pytest

from specnb import drafters, measure
from specnb.backend import SessionError
from specnb.records import Limits, Sampling

pytestmark = pytest.mark.model


def test_a_cost_curve_measures_every_n_in_every_round_in_changing_order(session):
    curve = measure.cost_curve(session, (1, 2, 4), context_length=16, precision=0.0, rounds=(3, 5))
    counts = Counter(n for n, _ in curve.samples)
    assert counts == {1: 5, 2: 5, 4: 5}
    rounds = [tuple(n for n, _ in curve.samples[i : i + 3]) for i in range(0, 15, 3)]
    assert all(sorted(order) == [1, 2, 4] for order in rounds)
    assert len(set(rounds)) > 1
    assert session.n_tokens == 0
    assert curve.context_length == 16
    assert curve.threads == session.threads
    assert curve.model.format == "Q4_0"
    assert curve.recorded == ""


def test_it_stops_as_soon_as_the_intervals_are_narrow_enough(session):
    seen = []
    curve = measure.cost_curve(
        session, (1, 2), context_length=8, precision=1e9, rounds=(4, 50), on_round=lambda *told: seen.append(told)
    )
    assert Counter(n for n, _ in curve.samples)[1] == 4
    assert [number for number, _ in seen] == [4]


def test_an_n_that_does_not_fit_is_refused_with_its_numbers(session):
    with pytest.raises(SessionError, match="65 tokens need logits in one pass, but a pass holds 64"):
        measure.cost_curve(session, (1, 65), context_length=8)


def test_the_widest_interval_counts():
    narrow = [(1, ms) for ms in (10.0, 10.0, 10.1, 10.1)]
    assert measure.widest_interval(narrow) < 0.02
    assert measure.widest_interval([*narrow, *[(2, ms) for ms in (10.0, 10.0, 30.0, 30.0)]]) > 0.3
    assert measure.widest_interval([*narrow, (3, 5.0)]) == float("inf")


def test_drift_is_the_change_from_the_first_half_to_the_second():
    assert measure.drift([(1, 10.0), (1, 10.0), (1, 12.0), (1, 12.0)]) == pytest.approx(0.2)
    assert measure.drift([(1, 10.0)]) == 0.0


def test_a_change_of_n_costs_little_and_not_less_than_nothing(session):
    cost_ms = measure.switch_ms(session, (1, 4), context_length=32, rounds=4)
    assert 0.0 <= cost_ms < measure.cost_curve(session, (4,), context_length=32, rounds=(3, 3)).median_ms[4]
    assert session.n_tokens == 0


def test_draft_cost_is_per_drafted_token(session, embedded):
    drafter = drafters.DraftModel(session)
    cost = measure.draft_cost(drafter, [5, 6, 7, 8, 9], k=3, repeats=4)
    assert len(cost.samples_ms) == 4
    assert cost.k == 3
    assert cost.ms_per_token > 0


def test_a_drafter_that_proposes_nothing_has_no_cost():
    with pytest.raises(ValueError, match="'ngram_simple' proposed nothing"):
        measure.draft_cost(drafters.NgramSimple(), [1, 2, 3])


def test_a_run_records_what_happened(session, model):
    prompt = model.chat_prompt("Say hello.")
    seen = []
    run = measure.run(
        session, drafters.NgramSimple(), prompt, limits=Limits(k=4), sampling=Sampling(), max_tokens=12,
        prompt_kind="chat", on_cycle=seen.append,
    )  # fmt: skip
    assert run.cycles == tuple(seen)
    assert 1 <= run.emitted <= 12
    assert run.finish in ("max_tokens", "end of text")
    assert run.text == model.text(run.tokens)
    assert run.prompt_tokens == prompt
    assert 0 < run.in_llama_s <= run.decode_s
    assert run.prefill_s > 0


def test_a_stopped_run_keeps_what_it_has(session, model):
    seen = []
    run = measure.run(
        session, drafters.NoDrafter(), model.chat_prompt("Tell a story."), limits=Limits(k=0), sampling=Sampling(),
        max_tokens=50, on_cycle=seen.append, stopped=lambda: len(seen) >= 3,
    )  # fmt: skip
    assert run.emitted == 3
    assert run.finish == "stopped"


def test_a_race_interleaves_its_arms(session, model):
    prompt = model.chat_prompt("Hi.")

    def arm(drafter):
        return lambda: measure.run(session, drafter, prompt, limits=Limits(k=2), sampling=Sampling(), max_tokens=3)

    found = measure.race([arm(drafters.NoDrafter()), arm(drafters.NgramSimple())], repeats=4)
    order = [run.drafter for run in found.runs]
    assert Counter(order) == {"none": 4, "ngram_simple": 4}
    assert order != sorted(order)
    assert len({run.tokens for run in found.runs}) == 1
    assert len(found.speeds("none")) == 4
    with pytest.raises(KeyError, match="No run of 'eagle'"):
        found.of("eagle")
