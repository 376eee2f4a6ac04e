"""Replayed cycles against the loop that really runs."""

from __future__ import annotations

import pytest

from specnb import decoder, drafters, replay
from specnb.policy import Fixed
from specnb.records import Cycle, Draft, DraftPrice, Limits, Run, Sampling
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


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_a_shorter_k_of_a_draft_model_is_replayed_from_a_pilot(seed, k):
    """Seed 3 agrees with the target, seed 4 is another model: always right, hardly ever right."""
    steps = replay.of_pilot(run(draft_model(seed=seed), 9), k)
    real = shape(run(draft_model(seed=seed), k))
    assert sum(step.emitted for step in steps) == 120
    assert [(step.drafted, step.emitted) for step in steps][:-2] == real[: len(steps) - 2]
    assert len(steps) == pytest.approx(len(real), abs=1)


@pytest.mark.parametrize("p_min", [0.3, 0.6, 0.9])
def test_a_higher_p_min_stops_where_the_confidences_say_so(p_min):
    steps = replay.of_pilot(run(draft_model(sharpness=1.0, seed=4), 9), 4, p_min)
    real = run(draft_model(sharpness=1.0, seed=4), 4, p_min)
    assert replay.tokens_per_cycle(steps) == pytest.approx(real.tokens_per_cycle, rel=0.03)
    drafted = sum(step.drafted for step in steps)
    assert drafted == pytest.approx(real.drafted, abs=0.1 * real.drafted + 3)
    assert all(step.drafted <= step.computed <= step.drafted + 1 for step in steps)


def rehearsal(drafter, k: int) -> replay.Rehearsal:
    rehearsing = drafters.Rehearsing(drafter)
    return replay.Rehearsal(run(rehearsing, k).tokens, tuple(rehearsing.drafts), k, rereads=False)


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
        replay.of_rehearsal(replay.Rehearsal((1,), (Draft(),), 3, rereads=False), 4)
    with pytest.raises(ValueError, match="got 1 for 2"):
        replay.Rehearsal((1, 2), (Draft(),), 3, rereads=False)


def test_a_pilot_at_a_p_min_tells_of_shorter_k_at_the_same_one():
    pilot = run(draft_model(sharpness=1.0, seed=4), 8, 0.4)
    assert replay.of_pilot(pilot, 8, 0.4)[:5] == tuple(
        replay.Step(len(c.drafted), len(c.drafted) + (len(c.drafted) < 8), len(c.emitted)) for c in pilot.cycles[:5]
    )
    with pytest.raises(ValueError, match=r"k=8 and p_min=0\.4 cannot tell what k=4 and p_min=0 would do"):
        replay.of_pilot(pilot, 4)
    with pytest.raises(ValueError, match="cannot tell what k=9"):
        replay.of_pilot(pilot, 9, 0.4)


def test_a_kept_token_that_ends_the_text_has_no_own_one_behind_it():
    ended = Cycle("d", 10, (5, 6), tested=2, kept=2, emitted=(5, 6), confidences=(0.9, 0.9))
    steps = replay.of_pilot(Run((1,), (ended,), "d", 2, 0, 0.0, Sampling(), 0.0), 2)
    assert sum(step.emitted for step in steps) == 2


def test_drafts_and_passes_are_paid_and_a_missing_pass_is_named():
    steps = [replay.Step(2, 3, 3), replay.Step(0, 1, 1)]
    price = DraftPrice("d", 2.0, 0.5)
    assert replay.ms_per_token(steps, {1: 10.0, 3: 20.0}, price, other_ms=1.0) == (20 + 3.0 + 10 + 2.0 + 2.0) / 4
    with pytest.raises(KeyError, match="N=3"):
        replay.ms_per_token(steps, {1: 10.0}, price)


def test_nothing_to_replay_is_said():
    with pytest.raises(ValueError, match="empty"):
        replay.of_look_up(drafters.NgramSimple(), PROMPT, (), 3)
    with pytest.raises(ValueError, match="no cycles"):
        replay.of_pilot(Run((1,), (), "d", 2, 0, 0.0, Sampling(), 0.0), 2)


def test_a_look_up_may_be_asked_for_more_than_the_text_holds():
    steps = replay.of_look_up(drafters.NgramSimple(), range(30), (1, 2, 3), 48)
    assert sum(step.emitted for step in steps) == 3


def test_what_a_chain_looks_up_costs_no_model():
    def cycle(drafted: int, kept: int, confidences: tuple[float, ...] | None) -> Cycle:
        return Cycle("chain", 9, (5,) * drafted, kept + (kept < drafted), kept, (5,) * (kept + 1), confidences)

    looked_up, made = cycle(4, 3, None), cycle(4, 1, (0.9, 0.8, 0.7, 0.6))
    pilot = Run(PROMPT, (looked_up, made, looked_up), "chain", 4, 0, 0.0, Sampling(), 0.0)
    assert [(step.drafted, step.computed) for step in replay.of_pilot(pilot, 4)] == [(4, 0), (4, 4), (3, 0)]
    assert [step.computed for step in replay.of_pilot(pilot, 1)][:4] == [0, 0, 1, 0]
