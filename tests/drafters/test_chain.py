"""The chain: who is asked, whose draft it is, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb.decoder import decode, prefill
from specnb.drafters import DraftModel, NgramSimple, NoDrafter
from specnb.drafters.chain import Chain, Tally
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Draft, Limits, Sampling
from specnb.toy import ToySampler, ToySession

from .growing import propose, verified


class Scripted:
    """Proposes one scripted draft after the other and notes what it is told."""

    def __init__(self, name: str, *drafts: tuple[int, ...]) -> None:
        self.name = name
        self.drafts = list(drafts)
        self.prompts: list[tuple[int, ...]] = []
        self.observed: list[bool] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self.prompts.append(tuple(prompt))

    def propose(self, context: Context, limits: Limits) -> Draft:
        draft = self.drafts.pop(0)
        return Draft(draft, tuple(0.5 for _ in draft))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        self.observed.append(mine)


def test_the_first_draft_that_is_not_empty_wins_and_later_ones_are_not_asked():
    a, b, c = Scripted("a", (), (1, 2), ()), Scripted("b", (3,), ()), Scripted("c", ())
    chain = Chain((a, b, c))
    chain.begin((0,))
    assert propose(chain, (0,)) == (3,)
    assert (len(a.drafts), len(b.drafts), len(c.drafts)) == (2, 1, 1)
    verified(chain, (3,), 1)
    assert propose(chain, (0, 3, 0)) == (1, 2)
    assert (len(a.drafts), len(b.drafts), len(c.drafts)) == (1, 1, 1)
    verified(chain, (1, 2), 0)
    assert propose(chain, (0, 3, 0, 0)) == ()
    assert (len(a.drafts), len(b.drafts), len(c.drafts)) == (0, 0, 0)
    verified(chain, (), 0)
    # Everybody sees every cycle; only the winner's draft was its own, and an empty draft is nobody's.
    assert (a.observed, b.observed, c.observed) == ([False, True, False], [True, False, False], [False] * 3)
    assert chain.tallies == (
        Tally("a", asked=3, drafts=1, drafted=2, kept=0),
        Tally("b", asked=2, drafts=1, drafted=1, kept=1),
        Tally("c", asked=1, drafts=0, drafted=0, kept=0),
    )


def test_the_winners_draft_is_passed_on_with_its_confidences():
    assert Chain((Scripted("a", (1, 2)),)).propose(Context((0,)), Limits(k=4)) == Draft((1, 2), (0.5, 0.5))


def test_a_draft_that_the_loop_cleared_is_the_winners_and_counts_as_none():
    a = Scripted("a", (1,))
    chain = Chain((a, Scripted("b")))
    propose(chain, (0,))
    verified(chain, (), 0)
    assert a.observed == [True]
    assert chain.tallies[0] == Tally("a", asked=1)


def test_cycles_of_a_drafter_outside_the_chain_are_nobodys():
    a = Scripted("a", (1,))
    chain = Chain((a,))
    propose(chain, (0,))
    verified(chain, (7, 8), 2, mine=False)
    assert a.observed == [False]
    assert chain.tallies == (Tally("a", asked=1),)


def test_a_new_prompt_reaches_everybody_and_forgets_the_counts():
    a, b = Scripted("a", (1,)), Scripted("b")
    chain = Chain((a, b))
    propose(chain, (0,))
    verified(chain, (1,), 1)
    chain.begin((4, 5))
    assert a.prompts == b.prompts == [(4, 5)]
    assert chain.tallies == (Tally("a"), Tally("b"))


def test_tallies_are_frozen_records():
    tally = Chain((NoDrafter(),)).tallies[0]
    with pytest.raises(AttributeError):
        tally.asked = 3


def test_a_chain_of_nobody_is_refused():
    with pytest.raises(ValueError, match="at least one drafter"):
        Chain(())


def test_look_up_then_draft_model_in_the_loop():
    """Look-up wins where the text repeats itself, the model (here: the target itself) drafts the rest."""
    prompt, k = (1, 4, 2, 0, 6) * 4, 4
    session = ToySession(8, seed=2)
    chain = Chain((NgramSimple(2, 4), DraftModel(ToySession(8, seed=2))))
    policy = Fixed(chain, Limits(k=k))
    prefill(session, policy, prompt)
    cycles = tuple(decode(session, policy, ToySampler(Sampling()), prompt, max_tokens=40))
    look_up, model = chain.tallies
    assert look_up.asked == len(cycles)
    assert model.asked == len(cycles) - look_up.drafts
    assert look_up.drafts > 0 and model.drafts > 0
    assert model.kept == model.drafted > 0
    assert look_up.drafted + model.drafted == sum(len(cycle.drafted) for cycle in cycles)
    assert look_up.kept + model.kept == sum(cycle.kept for cycle in cycles)
    assert look_up.drafts + model.drafts == sum(bool(cycle.drafted) for cycle in cycles)
    assert {cycle.drafter for cycle in cycles} == {"chain"}
    assert sum(cycle.confidences is not None for cycle in cycles if cycle.drafted) == model.drafts


def test_a_models_draft_shorter_than_n_min_counts_as_none_and_a_look_ups_does_not():
    model = Scripted("model", (1,), (1, 2), (1,))
    chain = Chain((model, Copying(3, 4)))
    chain.begin((0,))
    asked = [chain.propose(Context((0,)), Limits(k=4, n_min=2)).tokens for _ in range(2)]
    assert asked == [(3, 4), (1, 2)]
    assert Chain((Copying(5), model)).propose(Context((0,)), Limits(k=4, n_min=2)).tokens == (5,)


class Copying(NoDrafter):
    """Always the same draft, without confidences, as a look-up's is."""

    def __init__(self, *tokens: int) -> None:
        self._tokens = tokens

    def propose(self, context: Context, limits: Limits) -> Draft:
        return Draft(self._tokens)
