"""Medusa on the toy: each head's formula, what is cut, and that one state is all it reads."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from specnb.drafters import Medusa
from specnb.records import Context, Draft, Limits, Sampling
from specnb.toy import ToySession, ToyVectorSession

from .toy_loop import N_VOCAB, context_of, emitted, generate, plain

TEXTS = [(1, (3,)), (2, (1, 4, 2, 0, 6) * 4), (3, (7, 7)), (4, (5, 0, 11, 2))]
SAMPLINGS = [Sampling(), Sampling(temperature=0.7, seed=1), Sampling(temperature=1.0, seed=2)]
N_HEADS = 4
BLOCKS = np.random.default_rng(5).normal(scale=0.7, size=(N_HEADS, 2, 2)).astype(np.float32)
ALL = np.arange(N_VOCAB)


def medusa(seed: int = 1, *, blocks: np.ndarray = BLOCKS, vocabulary: np.ndarray = ALL) -> Medusa:
    return Medusa(ToyVectorSession(N_VOCAB, seed=seed), blocks, vocabulary)


def long_way(state: Sequence[float], block: Sequence[Sequence[float]]) -> list[float]:
    """state + silu(block @ state), number by number."""
    products = [sum(w * x for w, x in zip(row, state, strict=True)) for row in block]
    return [x + p / (1.0 + math.exp(-p)) for x, p in zip(state, products, strict=True)]


def brute_force(context: Context, k: int, p_min: float, seed: int = 1) -> Draft:
    """The draft, one head at a time."""
    table, tokens, confidences = ToySession(N_VOCAB, seed=seed)._table, [], []
    for block in BLOCKS[:k].tolist():
        before, token = (round(x) % N_VOCAB for x in long_way(context.states[-1].tolist(), block))
        logits = table[before, token].tolist()
        ten = sorted(logits, reverse=True)[:10]
        confidence = math.exp(ten[0]) / sum(math.exp(logit) for logit in ten)
        if confidence < p_min:
            break
        tokens.append(logits.index(ten[0]))
        confidences.append(confidence)
    return Draft(tuple(tokens), tuple(confidences))


def random_contexts(seed: int, n: int = 40) -> list[Context]:
    dice = random.Random(seed)
    return [context_of([dice.randrange(N_VOCAB) for _ in range(dice.randrange(2, 9))]) for _ in range(n)]


def test_each_head_adds_its_block_to_the_last_state():
    for context in random_contexts(1):
        head = medusa()
        head.propose(context, Limits(k=N_HEADS))
        expected = [long_way(context.states[-1].tolist(), block) for block in BLOCKS.tolist()]
        np.testing.assert_allclose(head.session.states, expected, rtol=1e-5, atol=1e-5)
        assert head.session.passes == [N_HEADS], "all heads in one pass"


@pytest.mark.parametrize("p_min", [0.0, 0.3, 0.6])
def test_drafts_are_each_heads_best_up_to_the_first_doubt(p_min):
    lengths = set()
    for context, k in product(random_contexts(2), range(1, N_HEADS + 1)):
        draft, expected = medusa().propose(context, Limits(k=k, p_min=p_min)), brute_force(context, k, p_min)
        assert draft.tokens == expected.tokens
        assert draft.confidences == pytest.approx(expected.confidences, rel=1e-5)
        assert all(isinstance(token, int) for token in draft.tokens), "no numpy integers in records"
        lengths.add(len(draft.tokens))
    assert lengths == {1, 2, 3, 4} if p_min == 0.0 else {0, 1} <= lengths


def test_a_confidence_equal_to_p_min_passes():
    context = context_of((3, 1, 4))
    free = medusa().propose(context, Limits(k=1))
    (confidence,) = free.confidences
    assert medusa().propose(context, Limits(k=1, p_min=confidence)) == free
    assert medusa().propose(context, Limits(k=1, p_min=math.nextafter(confidence, 1.0))) == Draft((), ())


def test_blocks_of_zero_guess_what_follows_the_state_itself():
    """silu(0) = 0, so each head says what the target said at its last evaluated token: the pending one, if greedy."""
    for tokens in ((3, 1), (1, 4, 2, 0, 6), (7, 7, 0)):
        target = ToySession(N_VOCAB, seed=1)
        target.extend(tokens)
        greedy = int(target.logits(-1).argmax())
        draft = medusa(blocks=np.zeros_like(BLOCKS)).propose(context_of((*tokens, greedy)), Limits(k=3))
        assert draft.tokens == (greedy,) * 3


@pytest.mark.parametrize("size", [100.0, 1e4])
def test_large_products_raise_no_warning(size):
    """exp overflows for a product far below zero; its share of the state is then none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head = medusa(blocks=np.full((1, 2, 2), -size, dtype=np.float32))
        assert len(head.propose(context_of((3, 4, 1)), Limits(k=1)).tokens) == 1
    np.testing.assert_array_equal(head.session.states, context_of((3, 4, 1)).states[-1:])


def test_the_longest_draft_is_one_token_a_head():
    context = context_of((3, 1, 4))
    assert medusa().longest_k == N_HEADS
    assert medusa(blocks=BLOCKS[:2]).longest_k == 2
    longest = medusa().propose(context, Limits(k=N_HEADS))
    assert medusa().propose(context, Limits(k=50)) == longest
    assert len(longest.tokens) == N_HEADS


@pytest.mark.parametrize(("limits", "n"), [(Limits(k=3), 3), (Limits(k=4, room=2), 2), (Limits(k=1), 1)])
def test_limits_cut_the_draft_and_the_pass(limits, n):
    head, context = medusa(), context_of((3, 1, 4))
    assert head.propose(context, limits).tokens == brute_force(context, n, 0.0).tokens
    assert head.session.passes == [n]


@pytest.mark.parametrize("limits", [Limits(k=0), Limits(k=5, room=0)])
def test_a_draft_of_nothing_costs_nothing(limits):
    head = medusa()
    assert head.propose(context_of((3, 1, 4)), limits) == Draft()
    assert head.session.passes == []


def test_a_text_of_one_token_drafts_nothing():
    head = medusa()
    head.begin((3,))
    head.catch_up(context_of((3,)))
    assert head.propose(context_of((3,)), Limits(k=4)) == Draft()
    assert head.session.passes == []


def test_nothing_is_kept_from_cycle_to_cycle():
    used = medusa()
    for context in random_contexts(3):
        used.catch_up(context)
        assert used.propose(context, Limits(k=4)) == medusa().propose(context, Limits(k=4))
        assert used.session.n_tokens == N_HEADS
    used.begin((3, 1))
    assert used.session.n_tokens == 0


def test_rows_are_mapped_to_the_targets_ids():
    some = np.array([10, 2, 7, 4, 0])

    class Rows(ToyVectorSession):
        def logits(self, row: int) -> np.ndarray:
            return super().logits(row)[some]

    table = ToySession(N_VOCAB, seed=1)._table
    for context in random_contexts(4):
        draft = Medusa(Rows(N_VOCAB, seed=1), BLOCKS, some).propose(context, Limits(k=4))
        for token, block in zip(draft.tokens, BLOCKS.tolist(), strict=True):
            before, last = (round(x) % N_VOCAB for x in long_way(context.states[-1].tolist(), block))
            assert token == max(some.tolist(), key=lambda one, row=table[before, last]: row[one])


@pytest.mark.parametrize("k", range(N_HEADS + 1))
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "T=0.7", "T=1"])
def test_the_text_is_the_one_of_plain_decoding(k, sampling):
    for (seed, prompt), p_min in product(TEXTS, (0.0, 0.4, 1.0)):
        cycles = generate(medusa(seed), seed, prompt, sampling, k=k, p_min=p_min)
        assert emitted(cycles) == plain(seed, prompt, sampling, 60)
        assert all(len(cycle.drafted) <= k for cycle in cycles)


def test_it_drafts_keeps_and_is_refused():
    """Without this the test above could pass because nobody ever drafted anything."""
    cycles = [cycle for seed, prompt in TEXTS for cycle in generate(medusa(seed), seed, prompt, SAMPLINGS[0], k=4)]
    assert 0 < sum(cycle.kept for cycle in cycles) < sum(len(cycle.drafted) for cycle in cycles)
