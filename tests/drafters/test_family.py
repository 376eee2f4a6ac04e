"""All look-ups and chains of them in the loop: the text stays plain decoding's, and runs share nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from specnb import drafters
from specnb.decoder import decode, prefill
from specnb.drafters import (
    Chain,
    Drafter,
    DraftModel,
    NgramCache,
    NgramMapK,
    NgramMapK4v,
    NgramMod,
    NgramSimple,
    PromptLookup,
)
from specnb.drafters.ngram_cache import count_followers
from specnb.policy import Fixed
from specnb.records import Limits, Sampling
from specnb.toy import ToySampler, ToySession

from . import toy_loop
from .toy_loop import emitted

N_VOCAB = 8
plain, generate = partial(toy_loop.plain, n_vocab=N_VOCAB), partial(toy_loop.generate, n_vocab=N_VOCAB)

TEXTS = [(1, (3,)), (2, (1, 4, 2, 0, 6) * 4), (3, (7, 7, 0, 1) * 10)]
SAMPLINGS = [Sampling(), Sampling(temperature=0.7, seed=1), Sampling(temperature=1.0, seed=2)]

DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "map-k": NgramMapK,
    "map-k 1/4": lambda: NgramMapK(1, 4),
    "map-k4v": NgramMapK4v,
    "map-k4v 1/3": lambda: NgramMapK4v(1, 3),
    "mod": NgramMod,
    "mod 2/16, collisions": lambda: NgramMod(2, 16, 0, cells=50, most_occupied=1.0),
    "cache": NgramCache,
    "cache, earlier texts": lambda: NgramCache(
        dynamic=count_followers((0, 1, 2, 3) * 5, (1, 2, 3, 4)), static=count_followers((6, 1, 4, 5) * 5, (2,))
    ),
    "prompt look-up": PromptLookup,
    "chain of look-ups": lambda: Chain((NgramSimple(3, 8), NgramMapK4v(2, 4), NgramMod(2, 8, 4), NgramCache())),
    "chain with a model": lambda: Chain((NgramMapK(2, 4), DraftModel(ToySession(N_VOCAB, seed=2, sharpness=1.0)))),
}


def test_the_menu():
    assert drafters.names() == (
        "none",
        "ngram_simple",
        "ngram_map_k",
        "ngram_map_k4v",
        "ngram_mod",
        "ngram_cache",
        "prompt_lookup",
        "chain",
        "draft_model",
        "distilled",
        "layer_skip",
        "eagle",
        "medusa",
    )


def test_every_look_up_is_tested_here():
    assert set(drafters.LOOK_UPS) - {type(make()) for make in DRAFTERS.values()} == {NgramSimple}, "it is in the chain"


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "T=0.7", "T=1"])
@pytest.mark.parametrize(("k", "n_min"), [(0, 0), (1, 0), (4, 0), (4, 3), (16, 0)])
def test_the_text_is_the_one_of_plain_decoding(name, sampling, k, n_min):
    for seed, prompt in TEXTS:
        cycles = generate(DRAFTERS[name](), seed, prompt, sampling, k=k, n_min=n_min, n_tokens=150)
        assert emitted(cycles) == plain(seed, prompt, sampling, 150)
        assert all(len(cycle.drafted) <= k for cycle in cycles)
        of_models = [len(cycle.drafted) for cycle in cycles if cycle.drafted and cycle.confidences]
        assert all(length >= n_min for length in of_models), "n_min is for drafts by a model"


@pytest.mark.parametrize("name", DRAFTERS)
def test_each_drafts_keeps_and_is_refused(name):
    """Without this the test above could pass because nobody ever drafted anything."""
    cycles = [
        cycle
        for seed, prompt in TEXTS
        for sampling in SAMPLINGS
        for cycle in generate(DRAFTERS[name](), seed, prompt, sampling, k=4, n_tokens=150)
    ]
    drafted, kept = sum(len(cycle.drafted) for cycle in cycles), sum(cycle.kept for cycle in cycles)
    assert 0 < kept < drafted


@pytest.mark.parametrize("name", DRAFTERS)
def test_two_runs_share_nothing(name):
    """A drafter that has seen other texts makes the cycles of a fresh one, to the last count."""
    used = DRAFTERS[name]()
    for seed, prompt in [*TEXTS, *reversed(TEXTS)]:
        sampling = SAMPLINGS[seed % len(SAMPLINGS)]
        fresh = generate(DRAFTERS[name](), seed, prompt, sampling, k=4, n_tokens=150)
        assert generate(used, seed, prompt, sampling, k=4, n_tokens=150) == fresh


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("n_prompt", [1, 2, 3, 4, 5])
def test_short_prompts_and_a_full_context(name, n_prompt):
    prompt = (5,) * n_prompt
    for spare in range(4):
        session, policy = ToySession(N_VOCAB, seed=1, n_ctx=n_prompt + spare), Fixed(DRAFTERS[name](), Limits(k=8))
        prefill(session, policy, prompt)
        cycles = tuple(decode(session, policy, ToySampler(Sampling()), prompt, max_tokens=40))
        assert emitted(cycles) == plain(1, prompt, Sampling(), spare + 1)
