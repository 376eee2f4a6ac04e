"""Policies: who drafts and how much."""

from __future__ import annotations

import pytest

from specnb.decoder import decode, prefill
from specnb.drafters import NgramSimple, NoDrafter
from specnb.policy import Fixed
from specnb.records import Cycle, Limits, Sampling
from specnb.toy import ToySampler, ToySession


@pytest.mark.parametrize("room", [0, 1, 3, 4, 100])
def test_fixed_changes_nothing_but_the_room(room):
    drafter = NgramSimple()
    policy = Fixed(drafter, Limits(k=4, n_min=2, p_min=0.3))
    for _ in range(2):
        chosen, limits = policy.choose(room)
        assert chosen is drafter
        assert limits == Limits(k=4, n_min=2, p_min=0.3, room=room)
        assert limits.longest == min(4, room)


def test_fixed_names_its_one_drafter_and_its_longest_k():
    drafter = NoDrafter()
    policy = Fixed(drafter, Limits(k=7))
    assert list(policy.drafters) == [drafter]
    assert policy.longest_k(drafter) == 7
    assert policy.limits == Limits(k=7, room=None), "choose must not remember a room"


class Listening(Fixed):
    """Notes what the loop tells it."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        object.__setattr__(self, "heard", [])

    def observe(self, cycle: Cycle) -> None:
        self.heard.append(cycle)


def test_the_loop_tells_the_policy_of_every_cycle_in_order():
    policy, session, prompt = Listening(NgramSimple(2, 6), Limits(k=4)), ToySession(8, seed=2), (1, 4, 2, 0, 6) * 4
    prefill(session, policy, prompt)
    cycles = list(decode(session, policy, ToySampler(Sampling()), prompt, max_tokens=30, clock=lambda: 0.0))
    assert policy.heard == cycles
    assert any(cycle.drafted for cycle in cycles)
