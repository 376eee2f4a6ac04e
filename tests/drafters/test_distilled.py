"""The distilled draft model: tokens go in as vectors, rows come out as the target's ids, the rest is DraftModel."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from specnb.drafters import Distilled, DraftModel, EmbeddedTokens
from specnb.records import Context, Draft, Limits, Sampling
from specnb.toy import ToySession, ToyVectorSession

from .toy_loop import N_VOCAB, embedding, emitted, generate, plain

SHUFFLED = np.random.default_rng(3).permutation(N_VOCAB)
SOME = np.array([10, 2, 7, 4, 0])


class Drafting(ToyVectorSession):
    """The toy over tokens' vectors, with the output rows of a vocabulary."""

    def __init__(self, vocabulary: np.ndarray, *, seed: int = 1, n_ctx: int = 512) -> None:
        super().__init__(N_VOCAB, seed=seed, n_ctx=n_ctx)
        self._vocabulary = vocabulary

    def logits(self, row: int) -> np.ndarray:
        assert row == -1, "a draft needs the last row only"
        before, token = [0, *self._held[:, 0].astype(int)][-2:]
        return self._table[before, token][self._vocabulary]


def distilled(vocabulary: np.ndarray = SHUFFLED, **options: int) -> Distilled:
    return Distilled(EmbeddedTokens(Drafting(vocabulary, **options), embedding, N_VOCAB), vocabulary)


def test_tokens_and_vectors_keep_in_step_through_rewinds():
    dice, vectors = random.Random(1), Drafting(SHUFFLED, n_ctx=20)
    session = EmbeddedTokens(vectors, embedding, N_VOCAB)
    assert (session.n_ctx, session.n_vocab) == (20, N_VOCAB)
    expected: list[int] = []
    for _ in range(200):
        if expected and (dice.random() < 0.4 or len(expected) > 15):
            keep = dice.randrange(len(expected) + 1)
            del expected[keep:]
            session.rewind(keep)
        else:
            more = [dice.randrange(N_VOCAB) for _ in range(dice.randrange(1, 5))]
            expected += more
            session.extend(more, rows=dice.choice(["all", "last", "none"]))
        assert list(session.tokens) == expected
        np.testing.assert_array_equal(vectors.states, embedding(expected).reshape(-1, 2))


def test_a_pass_that_is_refused_leaves_them_in_step():
    session = EmbeddedTokens(Drafting(SHUFFLED, n_ctx=4), embedding, N_VOCAB)
    session.extend([1, 2, 3])
    with pytest.raises(ValueError, match="do not fit"):
        session.extend([4, 5])
    assert list(session.tokens) == [1, 2, 3]
    session.extend([4])
    assert list(session.tokens) == [1, 2, 3, 4]


def test_the_time_inside_llama_cpp_is_the_inner_sessions():
    vectors = Drafting(SHUFFLED)
    session = EmbeddedTokens(vectors, embedding, N_VOCAB)
    vectors.in_llama_s = 2.5
    assert session.in_llama_s == 2.5


@pytest.mark.parametrize("p_min", [0.0, 0.4])
def test_it_drafts_what_a_draft_model_of_the_same_weights_does(p_min):
    dice, lengths = random.Random(5), set()
    for _ in range(25):
        k = dice.choice([1, 2, 3, 5])
        tokens = [dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 2, 7]))]
        ours, theirs = distilled(n_ctx=30), DraftModel(ToySession(N_VOCAB, seed=1, n_ctx=30))
        ours.begin(tokens)
        theirs.begin(tokens)
        while len(tokens) < 40:
            context, limits = Context(tokens), Limits(k=k, p_min=p_min)
            draft, expected = ours.propose(context, limits), theirs.propose(context, limits)
            assert draft.tokens == expected.tokens
            assert (draft.confidences or ()) == pytest.approx(expected.confidences or ())
            assert all(isinstance(token, int) for token in draft.tokens), "no numpy integers in records"
            assert list(ours.session.tokens) == list(theirs.session.tokens)
            lengths.add(len(draft.tokens))
            tokens.extend(draft.tokens[: dice.randrange(len(draft.tokens) + 1)])
            tokens.extend(dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 1, 2, 6])))
    assert lengths >= {0, 1, 2, 3, 5}


def test_a_reduced_vocabulary_drafts_its_best_row_as_the_targets_id():
    table = ToySession(N_VOCAB, seed=1)._table
    for before, token in product(range(N_VOCAB), repeat=2):
        context = [before, token]
        for drafted in distilled(SOME).propose(Context(context), Limits(k=3)).tokens:
            row = table[context[-2], context[-1]]
            assert drafted == max(SOME.tolist(), key=lambda one, row=row: row[one])
            context.append(drafted)


def test_the_text_may_hold_tokens_that_it_cannot_draft():
    """The embedding knows all of the target's tokens; only the output is reduced."""
    others = sorted(set(range(N_VOCAB)) - set(SOME.tolist()))
    assert len(distilled(SOME).propose(Context(others), Limits(k=3)).tokens) == 3


def test_a_token_outside_the_embedding_gives_an_empty_draft():
    drafter = distilled()
    drafter.begin([1, 2])
    assert drafter.propose(Context([1, 2, N_VOCAB]), Limits(k=3)) == Draft()
    assert len(drafter.propose(Context([1, 2, N_VOCAB - 1]), Limits(k=3)).tokens) == 3


def test_it_is_a_draft_model_by_another_name():
    drafter = distilled()
    assert isinstance(drafter, DraftModel) and drafter.name == "distilled"


@pytest.mark.parametrize("vocabulary", [SHUFFLED, SOME], ids=["shuffled", "reduced"])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=1)], ids=["greedy", "T=0.8"])
@pytest.mark.parametrize("k", [1, 4])
def test_the_text_is_the_one_of_plain_decoding(vocabulary, sampling, k):
    drafted = kept = 0
    for prompt, p_min in product([(3,), (1, 4, 2, 0, 6) * 3, (7, 7)], (0.0, 0.4)):
        cycles = generate(distilled(vocabulary), 1, prompt, sampling, k=k, p_min=p_min, n_tokens=50)
        assert emitted(cycles) == plain(1, prompt, sampling, 50)
        drafted += sum(len(cycle.drafted) for cycle in cycles)
        kept += sum(cycle.kept for cycle in cycles)
    if vocabulary is SHUFFLED and sampling.greedy:
        assert kept == drafted > 0, "it is the target itself"
    else:
        assert 0 < kept < drafted
