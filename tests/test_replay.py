"""Replayed cycles against the loop that really runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specnb import decoder, drafters, replay
from specnb.policy import Fixed
from specnb.records import Draft, DraftPrice, Limits, Rehearsal, Run, Sampling
from specnb.toy import ToySampler, ToySession

PROMPT = (0, 1, 2, 0, 1, 2, 0, 3, 1, 0, 1, 2)


def run(drafter, k: int, p_min: float = 0.0, tokens: int = 120) -> Run:
    target, policy = ToySession(8, seed=3), Fixed(drafter, Limits(k=k, p_min=p_min))
    decoder.prefill(target, policy, PROMPT)
    cycles = tuple(decoder.decode(target, policy, ToySampler(Sampling()), PROMPT, max_tokens=tokens))
    return Run(PROMPT, cycles, drafter.name, k, 0, p_min, Sampling(), 0.0)


def draft_model(sharpness: float = 2.0, seed: int = 3) -> drafters.DraftModel:
    return drafters.DraftModel(ToySession(8, seed=seed, sharpness=sharpness))


def shape(found: Run) -> list[tuple[int, int]]:
    return [(len(cycle.drafted), len(cycle.emitted)) for cycle in found.cycles]


@pytest.mark.parametrize("kind", drafters.LOOK_UPS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("k", [1, 3, 8])
def test_a_look_up_is_replayed_exactly_from_the_text_alone(kind, k):
    text = run(drafters.NoDrafter(), 0).tokens
    steps = replay.of_look_up(kind(), PROMPT, text, k)
    assert [(step.drafted, step.emitted) for step in steps] == shape(run(kind(), k))


def rehearsal(drafter, k: int) -> Rehearsal:
    rehearsing = drafters.Rehearsing(drafter)
    return Rehearsal(run(rehearsing, k).tokens, tuple(rehearsing.drafts), k, rereads=False)


def chain(drafter) -> drafters.Chain:
    return drafters.Chain((drafters.NgramSimple(2, 6), drafter))


@pytest.mark.parametrize("around", [lambda drafter: drafter, chain], ids=["alone", "behind a look-up"])
@pytest.mark.parametrize("p_min", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_a_rehearsal_tells_every_cycle_of_every_shorter_setting(k, p_min, around):
    steps = replay.of_rehearsal(rehearsal(around(draft_model(sharpness=1.0, seed=4)), 8), k, p_min)
    real = run(around(draft_model(sharpness=1.0, seed=4)), k, p_min)
    assert [(step.drafted, step.emitted) for step in steps] == shape(real)


@pytest.mark.parametrize("p_min", [0.0, 0.5])
@pytest.mark.parametrize("around", [lambda drafter: drafter, chain], ids=["alone", "behind a look-up"])
def test_a_rehearsal_tells_what_the_model_had_to_compute_and_to_read(around, p_min):
    """Every pass of the draft model feeds tokens: the pending one, those it missed, and one for each further draft."""
    model = draft_model(sharpness=1.0, seed=3)
    steps = replay.of_rehearsal(rehearsal(around(model), 5), 5, p_min)
    counted = draft_model(sharpness=1.0, seed=3)
    run(around(counted), 5, p_min)
    read = sum(step.computed + step.missed for step in steps)
    assert sum(counted.session.passes[1:]) == read


def test_a_rehearsal_is_refused_a_longer_k_and_a_place_without_a_draft():
    with pytest.raises(ValueError, match="k=3 cannot tell what k=4"):
        replay.of_rehearsal(Rehearsal((1,), (Draft(),), 3, rereads=False), 4)
    with pytest.raises(ValueError, match="got 1 for 2"):
        Rehearsal((1, 2), (Draft(),), 3, rereads=False)


def test_drafts_and_passes_are_paid_and_a_missing_pass_is_named():
    steps = [replay.Step(2, 3, 3), replay.Step(0, 1, 1)]
    price = DraftPrice("d", 2.0, 0.5)
    assert replay.ms_per_token(steps, {1: 10.0, 3: 20.0}, price, other_ms=1.0) == (20 + 3.0 + 10 + 2.0 + 2.0) / 4
    with pytest.raises(KeyError, match="N=3"):
        replay.ms_per_token(steps, {1: 10.0}, price)


def test_nothing_to_replay_is_said():
    with pytest.raises(ValueError, match="empty"):
        replay.of_look_up(drafters.NgramSimple(), PROMPT, (), 3)
    with pytest.raises(ValueError, match="got 0 for 0"):
        Rehearsal((), (), 2, rereads=False)


def test_a_look_up_may_be_asked_for_more_than_the_text_holds():
    steps = replay.of_look_up(drafters.NgramSimple(), range(30), (1, 2, 3), 48)
    assert sum(step.emitted for step in steps) == 3


def test_what_a_chain_looks_up_costs_no_model_and_is_left_for_it_to_read():
    looked_up, made = Draft((5,) * 4), Draft((5, 5, 7, 7), (0.9, 0.8, 0.7, 0.6))
    rehearsal = Rehearsal((5,) * 10, (looked_up, *[made] * 9), 4, rereads=False)
    steps = replay.of_rehearsal(rehearsal, 4)
    assert [(step.drafted, step.computed, step.emitted, step.missed) for step in steps] == [
        (4, 0, 5, 0), (4, 4, 3, 5), (1, 1, 2, 0)
    ]  # fmt: skip
    again = replay.of_rehearsal(replace(rehearsal, rereads=True), 4)
    assert [step.missed for step in again] == [0, 5, 2], "a head reads what was kept anew"
