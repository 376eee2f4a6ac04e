"""n-gram look-up against llama.cpp's rule, searched the long way."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from specnb.drafters import NgramSimple
from specnb.records import Context, Draft, Limits


def llama_cpp_draft(history: Sequence[int], pending: int, n: int, m: int) -> tuple[int, ...]:
    """The rule of common/ngram-map.cpp, where the history is without the pending token."""
    length = len(history)
    if length <= n + m + 1:
        return ()
    pattern = [*history[length - (n - 1) :], pending]
    match = 0
    for start in range(length - n - 1, 0, -1):
        if list(history[start : start + n]) == pattern:
            match = start
            break
    if match == 0:
        return ()
    copied = min(m, length - (match + n))
    if copied < n:
        return ()
    return tuple(history[match + n : match + n + copied])


def propose(drafter: NgramSimple, tokens: Sequence[int], k: int = 64) -> tuple[int, ...]:
    return drafter.propose(Context(tokens), Limits(k=k)).tokens


def fresh(tokens: Sequence[int], n: int, m: int, k: int = 64) -> tuple[int, ...]:
    drafter = NgramSimple(n, m)
    drafter.begin(tokens)
    return propose(drafter, tokens, k)


def periodic(period: int, length: int) -> list[int]:
    return [i % period for i in range(length)]


# Three periods and more than n + m + 1 tokens: the latest match is one whole period back.
@pytest.mark.parametrize(
    ("n", "m", "period", "drafted"),
    [(12, 48, 5, 0), (12, 48, 12, 0), (12, 48, 13, 12), (12, 48, 20, 19), (12, 48, 60, 48), (4, 8, 5, 4), (4, 8, 4, 0)],
)
@pytest.mark.parametrize("phase", [0, 1, 3])
def test_hand_worked_periods(n, m, period, drafted, phase):
    tokens = periodic(period, 3 * period + n + m + 3 + phase)
    draft = fresh(tokens, n, m)
    assert len(draft) == drafted
    assert draft == tuple((tokens[-1] + 1 + i) % period for i in range(drafted)), "the period goes on"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (2, 2), (2, 5), (3, 8), (4, 3), (5, 6)])
def test_thousands_of_growing_texts(n, m):
    """One drafter follows a text that grows by 1 to 5 tokens a cycle; the long search starts anew each time."""
    dice = random.Random(100 * n + m)
    agreed = 0
    for _ in range(300):
        drafter, letters = NgramSimple(n, m), dice.choice([1, 2, 3, 5])
        tokens = [dice.randrange(letters) for _ in range(dice.choice([1, 2, n, n + m, n + m + 2, 30]))]
        drafter.begin(tokens)
        while len(tokens) < 60:
            draft = propose(drafter, tokens)
            assert draft == llama_cpp_draft(tokens[:-1], tokens[-1], n, m), tokens
            agreed += bool(draft)
            # As the loop does it: some of the draft is kept, then comes the target's own token.
            tokens.extend(draft[: dice.randrange(len(draft) + 1)])
            tokens.extend(dice.randrange(letters) for _ in range(dice.choice([1, 1, 1, 4])))
    assert (agreed > 100) == (m >= n), "with m < n a continuation is never long enough"


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_k_cuts_the_draft_after_the_rule(k):
    """A continuation shorter than n gives nothing; one that k makes shorter than n is still a draft."""
    tokens = periodic(9, 40)
    whole = fresh(tokens, 3, 8)
    assert len(whole) == 8
    assert fresh(tokens, 3, 8, k) == whole[:k]


def test_room_cuts_the_draft_too():
    tokens = periodic(9, 40)
    assert NgramSimple(3, 8).propose(Context(tokens), Limits(k=8, room=2)).tokens == fresh(tokens, 3, 8)[:2]


def test_the_history_must_be_longer_than_n_plus_m_plus_1():
    n, m = 2, 3
    # History (without the pending token) of 6 = n + m + 1 tokens: too short; of 7: long enough.
    assert fresh([0, 8, 9, 1, 2, 8, 9], n, m) == ()
    assert fresh([0, 8, 9, 1, 2, 3, 8, 9], n, m) == (1, 2, 3)


def test_a_match_at_the_very_first_token_is_not_looked_at():
    assert fresh([8, 9, 1, 2, 3, 4, 8, 9], 2, 3) == ()
    assert fresh([0, 8, 9, 1, 2, 3, 4, 8, 9], 2, 3) == (1, 2, 3)


def test_the_most_recent_occurrence_wins():
    assert fresh([0, 8, 9, 1, 1, 1, 8, 9, 2, 2, 2, 8, 9], 2, 3) == (2, 2, 2)


def test_no_older_occurrence_is_tried_when_the_continuation_is_too_short():
    # After the latest "8 9" only one history token follows (the second 8); after the older one three do.
    tokens = [0, 8, 9, 1, 1, 1, 8, 9, 8, 9]
    assert fresh(tokens, 2, 3) == ()
    assert fresh(tokens[:-2], 2, 3) == (1, 1, 1)


def test_a_draft_has_no_confidences_and_p_min_means_nothing():
    tokens = periodic(9, 40)
    drafts = {NgramSimple(3, 8).propose(Context(tokens), Limits(k=8, p_min=p_min)) for p_min in (0.0, 1.0)}
    assert drafts == {Draft(fresh(tokens, 3, 8), None)}


def test_a_new_prompt_forgets_the_text_before():
    drafter = NgramSimple(2, 3)
    first = [0, 8, 9, 1, 2, 3, 4, 8, 9]
    drafter.begin(first)
    assert propose(drafter, first) == (1, 2, 3)
    second = [5, 6, 5, 7, 6, 7, 0, 0, 8, 9]
    drafter.begin(second)
    assert propose(drafter, second) == ()
    # Shorter than the text before: nothing of it may be mistaken for already indexed.
    third = [0, 8, 9, 4, 4, 4, 8, 9]
    drafter.begin(third)
    assert propose(drafter, third) == (4, 4, 4)


def test_the_context_is_not_changed():
    tokens = periodic(9, 40)
    propose(NgramSimple(3, 8), tokens)
    assert tokens == periodic(9, 40)


@pytest.mark.parametrize(("n", "m"), [(0, 8), (3, 0), (-1, 8)])
def test_impossible_lengths_are_refused_with_both(n, m):
    with pytest.raises(ValueError, match=f"at least 1; got n={n}, m={m}"):
        NgramSimple(n, m)
