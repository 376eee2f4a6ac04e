"""EAGLE on the toy: what it feeds and when, what it drafts, and that real states replace what it made up.

The projection picks the token out of the state and the next token out of the embedding. Over the
toy's table that is a perfect head where the seed is the target's, and an imperfect one elsewhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from specnb.decoder import decode, prefill
from specnb.drafters import Chain, Eagle, EagleInputs, NgramSimple
from specnb.policy import Fixed
from specnb.records import Context, Draft, Limits, Sampling
from specnb.toy import ToySampler, ToySession, ToyVectorSession

from .toy_loop import N_VOCAB, TOKEN_AND_NEXT, context_of, embedding, emitted, generate, plain

TEXTS = [(1, (3,)), (2, (1, 4, 2, 0, 6) * 4), (3, (7, 7)), (4, (5, 0, 11, 2))]
SAMPLINGS = [Sampling(), Sampling(temperature=0.7, seed=1), Sampling(temperature=1.0, seed=2)]

ALL = np.arange(N_VOCAB)


TYPICAL = np.array([(7 * token % 5, token % 3) for token in range(N_VOCAB)], dtype=np.float32)


def eagle(
    session: ToyVectorSession,
    vocabulary: np.ndarray = ALL,
    *,
    projection: np.ndarray = TOKEN_AND_NEXT,
    longest_k: int = 16,
) -> Eagle:
    return Eagle(
        session,
        EagleInputs(projection, embedding, TYPICAL[vocabulary].__getitem__, vocabulary),
        longest_k=longest_k,
    )


def head_of(seed: int, **options: int) -> Eagle:
    return eagle(ToyVectorSession(N_VOCAB, seed=seed, **options))


class Remembering(ToyVectorSession):
    """Logits and states of a row depend on every vector up to it, and a state is never the vector itself.

    The toy looks at one vector only, so it would not notice a stale one before it; and its states
    are the target's, so it would not notice one that was made up.
    """

    @property
    def states(self) -> np.ndarray:
        return np.array([(seen % 7, seen % N_VOCAB) for seen in self._seen()], dtype=np.float32).reshape(-1, 2)

    def logits(self, row: int) -> np.ndarray:
        assert -self._n_last <= row < self._n_last
        seen = self._seen()[row if row < 0 else row - self._n_last]
        return self._table[seen // N_VOCAB % N_VOCAB, seen % N_VOCAB]

    def _seen(self) -> list[int]:
        seen, all_seen = 1, []
        for a, b in self._held.astype(int).tolist():
            seen = (31 * seen + 7 * a + b) % 10007
            all_seen.append(seen)
        return all_seen


MIXED = np.array([[1, 2, 1, 0, 1, 3, 2, 1, 3, 1], [2, 1, 3, 0, 2, 1, 1, 5, 1, 4]], dtype=np.float32)
"""A projection in which every part of what the head knows counts."""


def brute_force(context: Context, k: int, p_min: float, vocabulary: np.ndarray = ALL) -> Draft:
    """The draft of a session that has been fed nothing before, one position a pass."""
    session = Remembering(N_VOCAB, seed=1)

    def recall(*read: int, n_read: int) -> Sequence[float]:
        ends = (i for i in reversed(range(n_read)) if tuple(context.tokens[: i + 1][-len(read) :]) == read)
        return next((context.states[i] for i in ends), (0, 0))

    def feed(state: Sequence[float], before: int, token: int, n_read: int) -> None:
        a, b = TYPICAL[token] if token in vocabulary else (0, 0)
        c, d = recall(token, n_read=n_read)
        e, f = recall(before, token, n_read=n_read)
        vector = [
            state[0] + 2 * state[1] + token + a + 3 * b + 2 * c + d + 3 * e + f,
            2 * state[0] + state[1] + 3 * token + 2 * a + b + c + 5 * d + e + 4 * f,
        ]
        session.extend(np.array([vector], dtype=np.float32))

    n_known = len(context.tokens) - 1
    for i in range(n_known):
        feed(context.states[i], *context.tokens[i : i + 2], n_read=i + 1)
    tokens: list[int] = []
    confidences: list[float] = []
    while session.n_tokens and len(tokens) < k:
        logits = session.logits(-1)[: len(vocabulary)].tolist()
        ten = sorted(logits, reverse=True)[:10]
        confidence = math.exp(ten[0]) / sum(math.exp(logit) for logit in ten)
        if confidence < p_min:
            break
        tokens.append(int(vocabulary[logits.index(ten[0])]))
        confidences.append(confidence)
        feed(session.states[-1], *(*context.tokens, *tokens)[-2:], n_read=n_known)
    return Draft(tuple(tokens), tuple(confidences))


# --- in the loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 4, 9])
@pytest.mark.parametrize(("seed", "prompt"), TEXTS)
def test_a_perfect_head_keeps_every_draft_in_full(seed, prompt, k):
    cycles = generate(head_of(seed), seed, prompt, k=k, n_tokens=5 * (k + 1) + (len(prompt) == 1))
    if len(prompt) == 1:  # nothing has been evaluated yet, so there is no state to read
        assert cycles[0].drafted == ()
        cycles = cycles[1:]
    assert [len(cycle.emitted) for cycle in cycles] == [k + 1] * 5
    assert all(cycle.kept == len(cycle.drafted) == k for cycle in cycles)
    assert all(len(cycle.confidences) == k and 0 < min(cycle.confidences) <= 1 for cycle in cycles)


@pytest.mark.parametrize("head_seed", [0, 50], ids=["perfect", "imperfect"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "T=0.7", "T=1"])
@pytest.mark.parametrize("p_min", [0.0, 0.4, 0.9, 1.0])
def test_the_text_is_the_one_of_plain_decoding(head_seed, sampling, p_min):
    for (seed, prompt), k in product(TEXTS, (0, 1, 3, 8)):
        cycles = generate(head_of(seed + head_seed), seed, prompt, sampling, k=k, p_min=p_min)
        assert emitted(cycles) == plain(seed, prompt, sampling, 60)
        for cycle in cycles:
            assert len(cycle.drafted) == len(cycle.confidences or ()) <= k
            assert all(confidence >= p_min for confidence in cycle.confidences or ())


def test_an_imperfect_head_is_kept_in_part():
    """Without this the test above could pass because nobody ever drafted, or was ever refused."""
    cycles = [cycle for seed, prompt in TEXTS for cycle in generate(head_of(seed + 50), seed, prompt, n_tokens=150)]
    assert {cycle.kept for cycle in cycles} >= {0, 1}
    assert 0 < sum(cycle.kept for cycle in cycles) < sum(len(cycle.drafted) for cycle in cycles)


def test_two_runs_share_nothing():
    used = head_of(50)
    for seed, prompt in [*TEXTS, *reversed(TEXTS)]:
        assert generate(used, seed, prompt) == generate(head_of(50), seed, prompt)


@pytest.mark.parametrize("n_tokens", [1, 2, 3, 5, 9])
def test_a_draft_leaves_room_for_the_token_after_it(n_tokens):
    seed, prompt = TEXTS[1]
    cycles = generate(head_of(seed), seed, prompt, k=8, n_tokens=n_tokens)
    assert emitted(cycles) == plain(seed, prompt, SAMPLINGS[0], n_tokens)
    assert [len(cycle.drafted) for cycle in cycles] == [n_tokens - 1]


def test_a_text_that_outgrows_the_head_goes_on_without_drafts():
    """Prompts that fit the head's context, end at its last place, and are longer than it."""
    for n_prompt in (1, 2, 8, 10, 11, 12, 30):
        prompt = tuple(i % N_VOCAB for i in range(n_prompt))
        cycles = generate(head_of(1, n_ctx=10), 1, prompt, n_tokens=20)
        assert emitted(cycles) == plain(1, prompt, SAMPLINGS[0], 20)
        for cycle in cycles:
            # The head is perfect: all it drafts is kept, so its room is the only limit. It holds one
            # position less than the text has tokens, and the last drafted token is never fed.
            assert cycle.kept == len(cycle.drafted) <= max(0, 10 - cycle.context_length + 1)
        assert any(cycle.drafted for cycle in cycles) == (n_prompt <= 11)
        assert not cycles[-1].drafted


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "T=0.7", "T=1"])
def test_in_a_chain_it_catches_up_with_what_others_drafted(sampling):
    for seed, prompt in TEXTS:
        chain = Chain((NgramSimple(2, 6), head_of(seed)))
        cycles = generate(chain, seed, prompt, sampling, n_tokens=150)
        assert emitted(cycles) == plain(seed, prompt, sampling, 150)
        look_up, head = chain.tallies
        assert look_up.drafts and head.drafts
        if sampling.greedy:
            assert head.kept == head.drafted, "a perfect head stays perfect after others' drafts"


# --- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_prompt_is_read_ahead_and_a_draft_then_costs_k_passes_of_one(k):
    head, prompt = head_of(1), (3, 1, 4, 1, 5)
    prefill(ToySession(N_VOCAB, seed=1), Fixed(head, Limits(k=k)), prompt)
    assert head.session.passes == [4], "every position but the pending token's, in one pass"
    head.session.passes.clear()
    head.propose(context_of(prompt), Limits(k=k))
    assert head.session.passes == [1] * k


def test_without_reading_ahead_the_first_draft_reads_the_prompt():
    head, prompt = head_of(1), (3, 1, 4, 1, 5)
    head.begin(prompt)
    assert head.session.passes == []
    head.propose(context_of(prompt), Limits(k=3))
    assert head.session.passes == [4, 1, 1]


@pytest.mark.parametrize("seed", [1, 50])
def test_each_cycle_feeds_the_newly_known_positions_in_one_pass(seed):
    head, target, sampler, prompt = head_of(seed), ToySession(N_VOCAB, seed=1), ToySampler(Sampling()), (3, 1, 4)
    policy = Fixed(head, Limits(k=4))
    prefill(target, policy, prompt)
    head.session.passes.clear()
    new, kept = 1, set()  # the first draft feeds the last known position again
    for cycle in decode(target, policy, sampler, prompt, max_tokens=100):
        if cycle.drafted:
            assert head.session.passes == [new, *[1] * (len(cycle.drafted) - 1)]
            new = len(cycle.emitted)
        kept.add(cycle.kept)
        head.session.passes.clear()
    assert len(kept) > 1 or seed == 1


def test_catching_up_twice_costs_nothing_the_second_time():
    head, context = head_of(1), context_of((3, 1, 4))
    head.begin(context.tokens)
    head.catch_up(context)
    head.catch_up(context)
    assert head.session.passes == [2]


def test_catching_up_after_a_draft_replaces_what_was_made_up():
    head = eagle(Remembering(N_VOCAB, seed=1), projection=MIXED)
    context = context_of((3, 1, 4))
    head.propose(context, Limits(k=4))
    assert head.session.n_tokens == 2 + 3
    head.catch_up(context)
    assert head.session.n_tokens == 2
    longer = context_of((3, 1, 4, 1, 5))
    head.catch_up(longer)
    assert head.session.n_tokens == 4
    assert head.propose(longer, Limits(k=4)).tokens == brute_force(longer, 4, 0.0).tokens


@pytest.mark.parametrize("limits", [Limits(k=0), Limits(k=5, room=0)])
def test_a_draft_of_nothing_costs_nothing(limits):
    head = head_of(1)
    assert head.propose(context_of((3, 1, 4)), limits) == Draft()
    assert head.session.passes == []


# --- drafts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p_min", [0.0, 0.5])
@pytest.mark.parametrize("vocabulary", [ALL, np.array([9, 3, 0, 7, 5, 11, 1, 8, 2, 10, 4])], ids=["all", "partial"])
def test_along_a_growing_text_it_drafts_what_a_head_made_afresh_does(p_min, vocabulary):
    """Every number of kept tokens, then one or more new ones: never a stale position, never a made-up state."""

    class Reduced(Remembering):
        def logits(self, row: int) -> np.ndarray:
            return super().logits(row)[: len(vocabulary)]

    dice, lengths = random.Random(6), set()
    for _ in range(40):
        k = dice.choice([1, 2, 3, 5])
        tokens = [dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 2, 7]))]
        head = eagle(Reduced(N_VOCAB, seed=1), vocabulary, projection=MIXED)
        head.begin(tokens)
        if dice.random() < 0.5:
            head.catch_up(context_of(tokens))
        while len(tokens) < 40:
            context = context_of(tokens)
            draft = head.propose(context, Limits(k=k, p_min=p_min))
            expected = brute_force(context, k, p_min, vocabulary)
            assert draft.tokens == expected.tokens
            assert (draft.confidences or ()) == pytest.approx(expected.confidences, rel=1e-5)
            lengths.add(len(draft.tokens))
            tokens.extend(draft.tokens[: dice.randrange(len(draft.tokens) + 1)])
            # More than one when other drafters went on meanwhile.
            tokens.extend(dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 1, 2, 6])))
    # A text of one token drafts nothing; p_min stops anywhere.
    assert lengths == ({0, 1, 2, 3, 5} if p_min == 0.0 else {0, 1, 2, 3, 4, 5})


def test_a_new_text_recalls_nothing_of_the_one_before():
    """Not the states of its tokens, nor those of the pairs."""
    head = eagle(Remembering(N_VOCAB, seed=1), projection=MIXED)
    head.begin((3, 1, 4))
    head.propose(context_of((3, 1, 4, 1, 5, 9, 2, 6)), Limits(k=4))
    for tokens in ((7, 9, 2, 5), (0, 4, 1)):
        context = context_of(tokens)
        head.begin(tokens)
        assert head.propose(context, Limits(k=4)).confidences == pytest.approx(
            brute_force(context, 4, 0.0).confidences, rel=1e-5
        )


def test_a_text_that_did_not_grow_is_drafted_again_the_same():
    head = eagle(Remembering(N_VOCAB, seed=1), projection=MIXED)
    context = context_of((3, 1, 4))
    first = head.propose(context, Limits(k=4))
    assert head.propose(context, Limits(k=4)) == first
    assert first.tokens == brute_force(context, 4, 0.0).tokens


def test_a_confidence_equal_to_p_min_passes_and_the_first_token_may_be_refused():
    context = context_of((3, 1))
    free = head_of(1).propose(context, Limits(k=1))
    (confidence,) = free.confidences
    assert 0.0 < confidence < 1.0
    assert head_of(1).propose(context, Limits(k=1, p_min=confidence)) == free
    assert head_of(1).propose(context, Limits(k=1, p_min=math.nextafter(confidence, 1.0))) == Draft((), ())


def test_p_min_stops_before_the_unsure_token():
    context = context_of((3, 1, 4))
    free = head_of(2).propose(context, Limits(k=8))
    unsure = free.confidences.index(min(free.confidences[1:]))
    assert unsure > 0
    p_min = math.nextafter(free.confidences[unsure], 1.0)
    first = next(i for i, confidence in enumerate(free.confidences) if confidence < p_min)
    draft = head_of(2).propose(context, Limits(k=8, p_min=p_min))
    assert draft == Draft(free.tokens[:first], free.confidences[:first])


@pytest.mark.parametrize("room", [1, 2, 5, 9])
def test_room_shortens_a_draft(room):
    free = head_of(1).propose(context_of((3, 1)), Limits(k=5))
    draft = head_of(1).propose(context_of((3, 1)), Limits(k=5, room=room))
    assert draft.tokens == free.tokens[:room]


@pytest.mark.parametrize("n_tokens", [2, 9, 10, 11, 12, 30])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_full_head_means_shorter_drafts_and_then_none(n_tokens, k, ahead):
    context = context_of(tuple(i % N_VOCAB for i in range(n_tokens)))
    head = head_of(1, n_ctx=10)
    head.begin(context.tokens)
    if ahead:
        head.catch_up(context)
        assert head.session.passes == ([n_tokens - 1] if n_tokens - 1 <= 10 else []), "work done ahead where it fits"
    draft = head.propose(context, Limits(k=k))
    # n_tokens - 1 positions are known, and k tokens are k - 1 places after them.
    expected = max(0, min(k, 10 - (n_tokens - 1) + 1))
    assert len(draft.tokens) == expected
    assert draft.tokens == head_of(1).propose(context, Limits(k=expected)).tokens
    assert head.session.n_tokens <= 10


def test_a_prompt_of_one_token_drafts_nothing_until_there_is_a_state():
    head = head_of(1)
    head.begin((3,))
    head.catch_up(context_of((3,)))
    assert head.propose(context_of((3,)), Limits(k=4)) == Draft()
    assert head.session.passes == []
    assert len(head.propose(context_of((3, 5)), Limits(k=4)).tokens) == 4
    assert head.session.passes == [1, 1, 1, 1]


def test_a_new_text_forgets_the_one_before():
    head, after_another = head_of(1), context_of((5, 2, 7))
    head.propose(context_of((3, 1, 4, 1, 5)), Limits(k=4))
    head.begin(after_another.tokens)
    assert head.session.n_tokens == 0
    assert head.propose(after_another, Limits(k=4)) == head_of(1).propose(after_another, Limits(k=4))


# --- a reduced output -------------------------------------------------------------------------


class Rows(ToyVectorSession):
    """The toy with only some output rows, in any order."""

    def __init__(self, vocabulary: np.ndarray, *, seed: int) -> None:
        super().__init__(N_VOCAB, seed=seed)
        self._vocabulary = vocabulary

    def logits(self, row: int) -> np.ndarray:
        return super().logits(row)[self._vocabulary]


def test_rows_in_another_order_draft_the_same_tokens():
    """The tokens fed on while drafting are the target's ids as well: they choose the later ones."""
    shuffled = np.random.default_rng(3).permutation(N_VOCAB)
    for tokens in ((3, 1), (1, 4, 2, 0, 6), (7, 7, 0)):
        draft = eagle(Rows(shuffled, seed=1), shuffled).propose(context_of(tokens), Limits(k=6))
        expected = head_of(1).propose(context_of(tokens), Limits(k=6))
        assert draft.tokens == expected.tokens
        assert all(isinstance(token, int) for token in draft.tokens), "no numpy integers in records"
        assert draft.confidences == pytest.approx(expected.confidences)


def test_a_reduced_vocabulary_drafts_its_own_best_and_the_text_stays():
    some = np.array([10, 2, 7, 4, 0])
    drafted = set()
    for seed, prompt in TEXTS:
        cycles = generate(eagle(Rows(some, seed=seed), some), seed, prompt)
        assert emitted(cycles) == plain(seed, prompt, SAMPLINGS[0], 60)
        drafted |= {token for cycle in cycles for token in cycle.drafted}
        for cycle in cycles:
            context = (*prompt, *emitted(cycles))[: cycle.context_length + 1]
            for token in cycle.drafted:
                logits = ToySession(N_VOCAB, seed=seed)._table[context[-2], context[-1]]
                assert token == max(some.tolist(), key=lambda one, logits=logits: logits[one])
                context = (*context, token)
    assert drafted == set(some.tolist())
