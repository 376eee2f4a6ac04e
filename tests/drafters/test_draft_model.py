"""Drafting with a second model: what it costs, when it stops, and how its cache keeps in step."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from specnb.decoder import decode, prefill
from specnb.drafters import DraftModel, LayerSkip
from specnb.drafters.draft_model import common_prefix_length
from specnb.policy import Fixed
from specnb.records import Context, Draft, Limits, Sampling
from specnb.toy import ToySampler, ToySession

N_VOCAB = 24  # more than the ten candidates


def draft_session(seed: int = 1, **options: int) -> ToySession:
    return ToySession(N_VOCAB, seed=seed, **options)


def softmax_of_ten_best(logits: Sequence[float]) -> tuple[int, float]:
    """(argmax, its share among the ten highest), without numpy."""
    ten = sorted(logits, reverse=True)[:10]
    return list(logits).index(ten[0]), math.exp(ten[0]) / sum(math.exp(logit) for logit in ten)


def brute_force(tokens: Sequence[int], k: int, p_min: float, seed: int = 1) -> Draft:
    """The draft by evaluating the whole text from nothing for every token of it."""
    drafted: list[int] = []
    confidences: list[float] = []
    while len(drafted) < k:
        session = draft_session(seed)
        session.extend([*tokens, *drafted])
        token, confidence = softmax_of_ten_best(session.logits(-1).tolist())
        if confidence < p_min:
            break
        drafted.append(token)
        confidences.append(confidence)
    return Draft(tuple(drafted), tuple(confidences))


# --- drafts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DraftModel, LayerSkip])
@pytest.mark.parametrize("p_min", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_drafts_are_greedy_continuations_up_to_the_first_doubt(kind, p_min):
    dice = random.Random(3)
    lengths = set()
    for _ in range(40):
        tokens = [dice.randrange(N_VOCAB) for _ in range(dice.randrange(1, 9))]
        drafter = kind(draft_session())
        drafter.begin(tokens)
        draft = drafter.propose(Context(tokens), Limits(k=5, p_min=p_min))
        expected = brute_force(tokens, 5, p_min)
        assert draft.tokens == expected.tokens
        assert draft.confidences == pytest.approx(expected.confidences, rel=1e-5)
        lengths.add(len(draft.tokens))
    # Between the ends p_min refuses some first tokens and some later ones.
    assert lengths == {5} if p_min == 0.0 else min(lengths) == 0


def test_a_confidence_equal_to_p_min_passes():
    tokens = (3, 1)
    free = DraftModel(draft_session()).propose(Context(tokens), Limits(k=1))
    (confidence,) = free.confidences
    assert 0.0 < confidence < 1.0
    assert DraftModel(draft_session()).propose(Context(tokens), Limits(k=1, p_min=confidence)) == free
    just_above = math.nextafter(confidence, 1.0)
    assert DraftModel(draft_session()).propose(Context(tokens), Limits(k=1, p_min=just_above)) == Draft((), ())


def test_p_min_looks_at_each_token_alone_and_not_at_their_product():
    tokens = (3, 1)
    draft = DraftModel(draft_session()).propose(Context(tokens), Limits(k=4))
    lowest = min(draft.confidences)
    assert math.prod(draft.confidences) < lowest
    assert DraftModel(draft_session()).propose(Context(tokens), Limits(k=4, p_min=lowest)) == draft


def test_room_shortens_a_draft():
    drafter = DraftModel(draft_session())
    assert len(drafter.propose(Context((3, 1)), Limits(k=5, room=2)).tokens) == 2
    drafter.session.passes.clear()
    for limits in (Limits(k=0), Limits(k=5, room=0)):
        assert drafter.propose(Context((3, 1)), limits) == Draft()
    assert drafter.session.passes == [], "a draft of nothing costs nothing"


# --- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_a_draft_of_k_tokens_costs_k_passes_and_one_row_each(k):
    drafter = DraftModel(draft_session())
    drafter.begin((3, 1, 4))
    assert drafter.session.passes == [2]
    assert drafter.session.rows_read == 0, "the prompt is fed without asking for logits"
    drafter.session.passes.clear()
    drafter.propose(Context((3, 1, 4)), Limits(k=k))
    assert drafter.session.passes == [1] * k
    assert drafter.session.rows_read == k


def test_stopping_after_j_tokens_costs_j_plus_1_passes():
    dice = random.Random(4)
    stopped_after = set()
    for _ in range(60):
        tokens = [dice.randrange(N_VOCAB) for _ in range(4)]
        drafter = DraftModel(draft_session())
        drafter.begin(tokens)
        drafter.session.passes.clear()
        j = len(drafter.propose(Context(tokens), Limits(k=6, p_min=0.5)).tokens)
        assert drafter.session.passes == [1] * min(j + 1, 6)
        stopped_after.add(j)
    assert {0, 1, 2} <= stopped_after, "the first token can be refused as well"


def test_a_prompt_of_one_token_is_fed_with_the_first_draft():
    drafter = DraftModel(draft_session())
    drafter.begin((3,))
    assert drafter.session.passes == []
    drafter.propose(Context((3,)), Limits(k=2))
    assert drafter.session.passes == [1, 1]


def test_catching_up_with_a_long_text_asks_for_one_row_and_needs_no_batch_of_rows():
    """Another drafter may have made the text grow by more than a pass of logits holds."""
    tokens = tuple(i % N_VOCAB for i in range(12))
    drafter = DraftModel(draft_session(n_batch=4))
    assert drafter.propose(Context(tokens), Limits(k=2)).tokens == brute_force(tokens, 2, 0.0).tokens
    assert drafter.session.passes == [12, 1]


# --- in step with the text --------------------------------------------------------------------


@pytest.mark.parametrize("p_min", [0.0, 0.4])
def test_the_cache_follows_the_text_by_longest_common_prefix(p_min):
    """Refusals after every possible number of kept tokens: never a stale token, never one fed twice."""
    dice = random.Random(5)
    for _ in range(25):
        k = dice.choice([1, 2, 3, 5])
        tokens = [dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 2, 7]))]
        drafter = DraftModel(draft_session())
        drafter.begin(tokens)
        while len(tokens) < 40:
            held = list(drafter.session.tokens)
            drafter.session.passes.clear()
            draft = drafter.propose(Context(tokens), Limits(k=k, p_min=p_min))
            assert draft.tokens == brute_force(tokens, k, p_min).tokens

            j, passes = len(draft.tokens), drafter.session.passes
            in_common = 0
            while in_common < min(len(held), len(tokens)) and held[in_common] == tokens[in_common]:
                in_common += 1
            assert len(passes) == min(j + 1, k)
            assert passes[0] == len(tokens) - min(in_common, len(tokens) - 1)
            assert set(passes[1:]) <= {1}
            # The last of k tokens is never fed; one that p_min stopped after has been, to ask for the next.
            assert list(drafter.session.tokens) == [*tokens, *draft.tokens[: k - 1]]

            tokens.extend(draft.tokens[: dice.randrange(j + 1)])
            # More than one when other drafters go on meanwhile: then the text outgrows the refused tokens
            # that the cache still holds, and its length alone no longer says what is stale.
            tokens.extend(dice.randrange(N_VOCAB) for _ in range(dice.choice([1, 1, 2, 6])))


def test_a_text_that_did_not_grow_is_drafted_again_the_same():
    """The pending token is fed once more even when the cache holds it: its logits are needed."""
    drafter = DraftModel(draft_session())
    first = drafter.propose(Context((3, 1, 4)), Limits(k=4))
    assert drafter.propose(Context((3, 1, 4)), Limits(k=4)) == first


def test_a_new_prompt_forgets_the_text_before():
    drafter = DraftModel(draft_session())
    drafter.propose(Context((3, 1, 4)), Limits(k=4))
    drafter.begin((3, 1, 7))
    assert list(drafter.session.tokens) == [3, 1]


@pytest.mark.parametrize(
    ("a", "b", "n"), [("", "", 0), ("", "a", 0), ("abc", "abd", 2), ("ab", "abc", 2), ("abc", "abc", 3), ("x", "y", 0)]
)
def test_common_prefix_length(a, b, n):
    assert common_prefix_length(a, b) == common_prefix_length(b, a) == n


# --- a draft context shorter than the target's ------------------------------------------------


@pytest.mark.parametrize("n_tokens", [1, 9, 10, 11, 12, 30])
@pytest.mark.parametrize("k", [1, 4])
def test_a_full_draft_context_means_shorter_drafts_and_then_none(n_tokens, k):
    tokens = tuple(i % N_VOCAB for i in range(n_tokens))
    drafter = DraftModel(draft_session(n_ctx=10))
    drafter.begin(tokens)
    assert drafter.session.passes == ([n_tokens - 1] if 1 < n_tokens <= 10 else []), "work done ahead where it fits"
    draft = drafter.propose(Context(tokens), Limits(k=k))
    # k tokens are k - 1 places after the text: the last one is never fed.
    assert len(draft.tokens) == max(0, min(k, 10 - n_tokens + 1))
    assert draft.tokens == brute_force(tokens, len(draft.tokens), 0.0).tokens


@pytest.mark.parametrize("n_prompt", [1, 8, 10, 11, 12, 30])
def test_a_text_that_outgrows_the_draft_context_goes_on_without_drafts(n_prompt):
    prompt = tuple(i % N_VOCAB for i in range(n_prompt))
    target, drafter = ToySession(N_VOCAB, seed=1), DraftModel(draft_session(n_ctx=10))
    policy = Fixed(drafter, Limits(k=4))
    prefill(target, policy, prompt)
    cycles = list(decode(target, policy, ToySampler(Sampling()), prompt, max_tokens=20))
    assert sum(len(cycle.emitted) for cycle in cycles) == 20
    for cycle in cycles:
        # The drafter is the target itself: all it drafts is kept, so its room is the only limit.
        assert cycle.kept == len(cycle.drafted)
        assert len(cycle.drafted) <= max(0, 10 - cycle.context_length)
    assert any(cycle.drafted for cycle in cycles) == (n_prompt <= 10)
    assert not cycles[-1].drafted


def test_a_fresh_prompt_after_one_too_long_is_drafted_for_again():
    drafter = DraftModel(draft_session(n_ctx=10))
    drafter.begin((1,) * 30)
    assert drafter.propose(Context((1,) * 30), Limits(k=4)) == Draft()
    drafter.begin((3, 1))
    assert drafter.propose(Context((3, 1)), Limits(k=4)).tokens == brute_force((3, 1), 4, 0.0).tokens


def test_a_token_the_draft_does_not_know_gives_an_empty_draft():
    """Vocabularies of a pair may differ by some tokens at the end (common/speculative.cpp allows 128)."""
    drafter = DraftModel(ToySession(n_vocab=8))
    drafter.begin([1, 2])
    assert drafter.propose(Context([1, 2, 9]), Limits(k=3)) == Draft()
    assert len(drafter.propose(Context([1, 2, 7]), Limits(k=3)).tokens) == 3


def test_a_prompt_that_the_draft_does_not_know_is_refused_before_any_text():
    drafter = DraftModel(ToySession(n_vocab=8))
    for prompt in ([1, 9], [1, 9, 2]):  # the last token is not fed yet
        with pytest.raises(ValueError, match="token 9 and the draft model knows 8"):
            drafter.begin(prompt)
    drafter.begin([1, 2])
    assert len(drafter.propose(Context([1, 2]), Limits(k=3)).tokens) == 3


def test_a_draft_ends_before_a_token_that_the_target_lacks():
    """A draft may know some tokens more: ones that a fine-tuning added."""
    whole, cut = (DraftModel(ToySession(n_vocab=8, seed=2), **known) for known in ({}, {"n_vocab": 6}))
    beyond = 0
    for first in range(6):
        for second in range(6):
            for drafter in (whole, cut):
                drafter.begin((first, second))
            theirs, ours = (drafter.propose(Context((first, second)), Limits(k=4)).tokens for drafter in (whole, cut))
            at = next((i for i, token in enumerate(theirs) if token >= 6), len(theirs))
            assert ours == theirs[:at]
            beyond += at < len(theirs)
    assert beyond, "it never wanted one"
