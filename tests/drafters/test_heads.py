"""Heads before the first pass: what the loop asks of the session and of k, and that it finds them in chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from specnb.decoder import decode, prefill
from specnb.drafters import Chain, DraftModel, Eagle, EagleInputs, Head, Medusa, NgramSimple, NoDrafter, heads
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Draft, Limits, Sampling
from specnb.toy import ToySampler, ToySession, ToyVectorSession

from .toy_loop import TOKEN_AND_NEXT, embedding

N_VOCAB = 8
PROMPT = (3, 1, 4, 1, 5)


class Stateless(ToySession):
    """A target opened without keep_states."""

    states = None


class Noting:
    """A head that notes what it is told."""

    name = "noting"

    def __init__(self, longest_k: int = 3) -> None:
        self.longest_k = longest_k
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        self.states: list[list[float]] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self.calls.append(("begin", tuple(prompt)))

    def catch_up(self, context: Context) -> None:
        self.calls.append(("catch_up", tuple(context.tokens)))
        self.states = np.array(context.states).tolist()

    def propose(self, context: Context, limits: Limits) -> Draft:
        self.calls.append(("propose", tuple(context.tokens)))
        self.states = np.array(context.states).tolist()
        return Draft()

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass


def eagle(vocabulary: Sequence[int] = range(N_VOCAB), *, longest_k: int = 6, **options: int) -> Eagle:
    session = ToyVectorSession(N_VOCAB, seed=1, **options)
    typical = np.zeros((len(vocabulary), 2), np.float32)
    return Eagle(
        session,
        EagleInputs(TOKEN_AND_NEXT, embedding, typical.__getitem__, np.array(vocabulary)),
        longest_k=longest_k,
    )


def medusa(vocabulary: Sequence[int] = range(N_VOCAB)) -> Medusa:
    return Medusa(ToyVectorSession(N_VOCAB, seed=1), np.zeros((4, 2, 2), np.float32), np.array(vocabulary))


def draft_model() -> DraftModel:
    return DraftModel(ToySession(N_VOCAB, seed=2))


IN_CHAINS = {
    "alone": lambda head: head,
    "in a chain": lambda head: Chain((NgramSimple(2, 4), head)),
    "in a chain in a chain": lambda head: Chain((draft_model(), Chain((NgramSimple(2, 4), head)))),
}


# --- who is a head ----------------------------------------------------------------------------


def test_heads_are_found_wherever_they_are():
    one, two, three = eagle(), medusa(), Noting()
    chain = Chain((NgramSimple(2, 4), one, Chain((two, draft_model()))))
    assert list(heads([NoDrafter(), chain, three])) == [one, two, three]
    assert list(heads([NoDrafter(), draft_model(), NgramSimple(2, 4), Chain((draft_model(),))])) == []
    assert isinstance(one, Head) and isinstance(two, Head) and not isinstance(draft_model(), Head)


# --- refused before any pass ------------------------------------------------------------------


@pytest.mark.parametrize("place", IN_CHAINS)
@pytest.mark.parametrize("head", [eagle, medusa])
def test_a_session_without_states_is_refused(head, place):
    session, drafter = Stateless(N_VOCAB), IN_CHAINS[place](head())
    with pytest.raises(ValueError, match="keep_states=True") as refused:
        prefill(session, Fixed(drafter, Limits(k=2)), PROMPT)
    assert head().name in str(refused.value)
    assert session.passes == []


@pytest.mark.parametrize(("head", "longest"), [(eagle, 6), (medusa, 4)])
def test_a_k_the_head_was_not_trained_for_is_refused(head, longest):
    session, drafter = ToySession(N_VOCAB), head()
    with pytest.raises(ValueError) as refused:
        prefill(session, Fixed(drafter, Limits(k=longest + 3)), PROMPT)
    words = str(refused.value)
    assert f"k = {longest + 3} " in words and f"{longest} tokens" in words and head().name in words
    assert session.passes == []
    prefill(session, Fixed(drafter, Limits(k=longest)), PROMPT)
    assert session.passes == [4]


@pytest.mark.parametrize(("head", "longest"), [(eagle, 6), (medusa, 4)])
def test_in_a_chain_a_head_drafts_as_far_as_it_was_trained(head, longest):
    session, drafter = ToySession(N_VOCAB), IN_CHAINS["in a chain"](head())
    policy = Fixed(drafter, Limits(k=longest + 3))
    prefill(session, policy, PROMPT)
    cycles = list(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=60))
    assert max(len(cycle.drafted) for cycle in cycles if cycle.confidences) == longest


def test_a_refusal_leaves_an_earlier_text_alone():
    session = ToySession(N_VOCAB)
    prefill(session, Fixed(NoDrafter(), Limits(k=0)), PROMPT)
    with pytest.raises(ValueError, match="medusa"):
        prefill(session, Fixed(medusa(), Limits(k=5)), (1, 2))
    assert list(session.tokens) == list(PROMPT[:-1])


@pytest.mark.parametrize("drafter", [NoDrafter(), NgramSimple(2, 4), draft_model(), Chain((draft_model(),))])
def test_drafters_that_read_no_states_need_none(drafter):
    for session in (Stateless(N_VOCAB, seed=1), ToySession(N_VOCAB, seed=1)):
        policy = Fixed(drafter, Limits(k=30))
        prefill(session, policy, PROMPT)
        cycles = tuple(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=30))
        assert sum(len(cycle.emitted) for cycle in cycles) == 30


# --- what heads are told ----------------------------------------------------------------------


@pytest.mark.parametrize("place", IN_CHAINS)
def test_a_head_reads_the_prompts_states_before_the_first_cycle(place):
    """After its begin, and after the target's pass: those states belong to the prompt."""
    head, session = Noting(), ToySession(N_VOCAB)
    prefill(session, Fixed(IN_CHAINS[place](head), Limits(k=3)), PROMPT)
    assert head.calls == [("begin", PROMPT), ("catch_up", PROMPT)]
    assert head.states == [[0, 3], [3, 1], [1, 4], [4, 1]]


def test_a_prompt_of_one_token_has_no_states():
    head = Noting()
    prefill(ToySession(N_VOCAB), Fixed(head, Limits(k=3)), (3,))
    assert head.calls == [("begin", (3,)), ("catch_up", (3,))] and head.states == []


def test_every_cycle_shows_the_states_of_all_tokens_but_the_pending_one():
    head, session = Noting(), ToySession(N_VOCAB, seed=1)
    policy = Fixed(head, Limits(k=3))
    prefill(session, policy, PROMPT)
    text = list(PROMPT)
    for cycle in decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=12):
        assert head.calls[-1] == ("propose", tuple(text))
        assert head.states == [[before, token] for before, token in zip([0, *text], text[:-1], strict=False)]
        text.extend(cycle.emitted)


def test_a_head_with_a_smaller_context_than_the_prompt_does_not_stop_the_text():
    session, policy = ToySession(N_VOCAB, seed=1), Fixed(eagle(n_ctx=3), Limits(k=2))
    prefill(session, policy, PROMPT)
    cycles = tuple(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=5))
    assert [cycle.drafted for cycle in cycles] == [()] * 5


# --- drafts that are no tokens ----------------------------------------------------------------


class Astray(Noting):
    """Proposes what it is given."""

    def __init__(self, *tokens: int) -> None:
        super().__init__()
        self._tokens = tokens

    def propose(self, context: Context, limits: Limits) -> Draft:
        return Draft(self._tokens)


@pytest.mark.parametrize(("tokens", "bad"), [((8,), 8), ((1, 2, 99), 99), ((-1,), -1), ((1, -7, 8), -7)])
def test_a_draft_outside_the_vocabulary_is_refused_before_anything_is_emitted(tokens, bad):
    session, policy = ToySession(N_VOCAB, seed=1), Fixed(Astray(*tokens), Limits(k=3))
    prefill(session, policy, PROMPT)
    with pytest.raises(ValueError, match=rf"Token id {bad} is outside the vocabulary of 8\."):
        next(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=12))
    assert session.passes == [4] and list(session.tokens) == list(PROMPT[:-1]), "no pass but the prompt's"


@pytest.mark.parametrize("head", [eagle, medusa])
def test_a_head_whose_rows_are_no_tokens_of_the_target_is_refused(head):
    session, policy = ToySession(N_VOCAB, seed=1), Fixed(head(vocabulary=range(100, 108)), Limits(k=1))
    prefill(session, policy, PROMPT)
    with pytest.raises(ValueError, match=r"Token id 10\d is outside the vocabulary of 8\."):
        next(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=12))
    assert session.passes == [4]


def test_a_draft_cut_to_its_limits_is_judged_after_the_cut():
    """Only tokens that would be verified matter."""
    session, policy = ToySession(N_VOCAB, seed=1), Fixed(Astray(1, 2, 99), Limits(k=2))
    prefill(session, policy, PROMPT)
    cycle = next(decode(session, policy, ToySampler(Sampling()), PROMPT, max_tokens=12))
    assert cycle.drafted == (1, 2)
