"""Counts of followers with thresholds, against llama.cpp's rule with everything counted anew each time."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from specnb.drafters.ngram_cache import LAX, STRICT, NgramCache, count_followers

from .growing import agree, fresh, propose, verified


class LongWay:
    """common/ngram-cache.cpp, its counts taken by searching lists of (n-gram, follower) pairs in order of sight."""

    def __init__(self, n: int, m: int, dynamic: Sequence[int] = (), static: Sequence[int] = ()) -> None:
        self.n, self.m = n, m
        self.pairs: list[tuple[tuple[int, ...], int]] = []
        self.counted = 0
        self.dynamic = self.seen(dynamic, range(1, n + 1))
        self.static = self.seen(static, [2])

    @staticmethod
    def seen(tokens: Sequence[int], sizes: Sequence[int]) -> list[tuple[tuple[int, ...], int]]:
        return [(tuple(tokens[i - size : i]), tokens[i]) for size in sizes for i in range(size, len(tokens))]

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        self.pairs += self.seen(tokens[self.counted :], range(1, self.n + 1))
        self.counted = len(tokens)
        if len(tokens) < max(self.n, 2):
            return ()
        text = list(tokens)
        while len(text) < len(tokens) + self.m:
            token = self.one(text)
            if token is None:
                break
            text.append(token)
        return tuple(text[len(tokens) :])

    def one(self, text: list[int]) -> int | None:
        after_two = [token for gram, token in self.static if gram == tuple(text[-2:])]
        for pairs, samples, percents in (
            (self.pairs, [2, 2, 1, 1], [66, 50, 50, 50]),
            (self.dynamic, [4, 3, 2, 2], [75, 66, 66, 66]),
        ):
            for size in range(self.n, 0, -1):
                followers = [token for gram, token in pairs if gram == tuple(text[-size:])]
                best, best_score = None, 0
                for token in dict.fromkeys(followers):
                    score = followers.count(token) * (100 * after_two.count(token) or 1)
                    if score > best_score:
                        best, best_score = token, score
                if len(followers) < samples[size - 1]:
                    continue
                if 100 * followers.count(best) >= percents[size - 1] * len(followers):
                    return best
        if len(after_two) >= 2:
            best = max(dict.fromkeys(after_two), key=after_two.count)
            if 100 * after_two.count(best) >= 50 * len(after_two):
                return best
        return None

    def accept(self, n_kept: int) -> None:
        pass


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 4), (3, 3), (4, 8)])
@pytest.mark.parametrize("earlier", [0, 40], ids=["this text only", "with dynamic and static counts"])
def test_thousands_of_growing_texts(n, m, seed, earlier):
    dice = random.Random(seed)
    dynamic, static = ([dice.randrange(6) for _ in range(earlier)] for _ in range(2))
    drafter = NgramCache(n, m, dynamic=count_followers(dynamic, range(1, n + 1)), static=count_followers(static, [2]))
    drafts = agree(drafter, lambda _prompt: LongWay(n, m, dynamic, static), seed=seed, texts=25, length=80)
    assert drafts > 100


def after(gram: Sequence[int], followers: Sequence[int]) -> list[int]:
    """A text in which the n-gram was followed by each of these once, ending in the n-gram; nothing else recurs."""
    others = iter(range(1000, 2000))
    text = [next(others) for _ in range(5)]
    for token in followers:
        text += [*gram, token, *(next(others) for _ in range(5))]
    return [*text, *gram]


@pytest.mark.parametrize(
    ("size", "followers", "drafted"),
    [
        (1, [1], False),  # needs two occurrences
        (1, [1, 1], True),
        (1, [1, 2], False),
        (1, [1, 1, 2], True),  # 66.7 %
        (1, [1, 2, 1, 3, 1], False),  # 60 %
        (2, [1, 1], True),
        (2, [1, 2], True),  # 50 % is enough
        (2, [2, 1, 3], False),
        (3, [1], True),  # one occurrence is enough
        (3, [1, 2], True),
        (3, [1, 2, 3], False),
        (4, [1], True),
        (4, [1, 2, 3], False),
    ],
)
def test_the_lax_thresholds(size, followers, drafted):
    gram = [50, 51, 52, 53][:size]
    draft = fresh(NgramCache(), after(gram, followers), k=1)
    # Shorter n-grams see the same followers and are stricter; so they never draft what the longest refuses.
    assert draft == ((1,) if drafted else ())


@pytest.mark.parametrize(
    ("size", "followers", "drafted"),
    [
        (1, [1, 1, 1], False),  # needs four
        (1, [1, 1, 1, 2], True),  # 75 %
        (1, [1, 1, 1, 2, 3], False),
        (2, [1, 1], False),  # needs three
        (2, [1, 1, 2], True),
        (2, [1, 1, 1, 2, 3], False),  # 60 %
        (3, [1], False),  # needs two
        (3, [1, 1], True),
        (3, [1, 2], False),
        (4, [1, 1], True),
        (4, [1, 1, 2, 3], False),
    ],
)
def test_the_strict_thresholds_of_counts_from_earlier_texts(size, followers, drafted):
    gram = (50, 51, 52, 53)[:size]
    dynamic = {gram: {token: followers.count(token) for token in followers}}
    assert fresh(NgramCache(dynamic=dynamic), [0, 1, 2, 3, *gram], k=1) == ((1,) if drafted else ())


@pytest.mark.parametrize(
    ("followers", "drafted"), [([1], False), ([1, 1], True), ([1, 2], True), ([1, 2, 3], False), ([1, 1, 2, 3], True)]
)
def test_the_static_counts_alone(followers, drafted):
    static = {(50, 51): {token: followers.count(token) for token in followers}}
    assert fresh(NgramCache(static=static), [0, 1, 50, 51], k=1) == ((1,) if drafted else ())


def test_the_text_itself_is_asked_first_then_earlier_texts_then_the_static_counts():
    static = {(50, 51): {9: 2}}
    dynamic = {(50, 51): {8: 3}}
    assert fresh(NgramCache(dynamic=dynamic, static=static), after([50, 51], [7, 7]), k=1) == (7,)
    assert fresh(NgramCache(dynamic=dynamic, static=static), [0, 1, 50, 51], k=1) == (8,)
    assert fresh(NgramCache(static=static), [0, 1, 50, 51], k=1) == (9,)


def test_static_counts_weigh_the_followers_but_not_the_percentage():
    text = after([50, 51], [1, 1, 2])
    assert fresh(NgramCache(), text, k=1) == (1,)
    assert fresh(NgramCache(static={(50, 51): {2: 1}}), text, k=1) == (), "2 leads by weight, with 33 %"
    assert fresh(NgramCache(static={(50, 51): {2: 1}}), after([50, 51], [1, 2]), k=1) == (2,)


def test_the_longest_n_gram_is_asked_first():
    # 7 followed 51 three times, but 50 51 was followed by 9.
    text = [0, 51, 7, 1, 51, 7, 2, 51, 7, 3, 49, 50, 51, 9, 4, 49, 50, 51]
    assert fresh(NgramCache(), text, k=1) == (9,)


def test_of_equals_the_first_seen_leads():
    assert fresh(NgramCache(), after([50, 51], [3, 4]), k=1) == (3,)
    assert fresh(NgramCache(), after([50, 51], [4, 3]), k=1) == (4,)


def test_drafted_tokens_are_context_for_the_next_and_eight_are_the_most():
    tokens = [i % 13 for i in range(30)]
    assert fresh(NgramCache(), tokens) == tuple((tokens[-1] + 1 + i) % 13 for i in range(8))
    assert fresh(NgramCache(m=20), tokens) == tuple((tokens[-1] + 1 + i) % 13 for i in range(20))
    assert fresh(NgramCache(), tokens, k=3) == fresh(NgramCache(), tokens)[:3]


def test_fewer_than_four_tokens_draft_nothing():
    assert fresh(NgramCache(), [5, 5, 5]) == ()
    assert fresh(NgramCache(), [5, 5, 5, 5]) == (5,) * 8


PROMPT = [0, 1, 2, 3, 4, 5]


def test_a_cycle_that_kept_nothing_counts_nothing():
    drafter = NgramCache()
    drafter.begin(PROMPT)
    tokens = list(PROMPT)
    for token in [60, 61, 62, 63, 64] * 4:
        assert propose(drafter, tokens) == ()
        verified(drafter, (), 0)
        tokens.append(token)
    assert fresh(drafter, tokens) != (), "as a prompt, the same text has drafts"


def test_n_grams_do_not_reach_across_the_border_between_two_proposals():
    drafter = NgramCache()
    drafter.begin(PROMPT)
    propose(drafter, PROMPT)
    first = [*PROMPT, 60, 61, 62, 63]
    propose(drafter, first)
    second = [*first, 64, 65, 66, 67]
    propose(drafter, second)
    assert propose(drafter, [*second, 70, 60, 61, 62]) == (63,), "came in one cycle; what followed it did not"
    assert propose(drafter, [*second, 70, 60, 61, 62, 71, 62, 63, 64]) == ()
    assert propose(drafter, [*second, 70, 60, 61, 62, 71, 62, 63, 64, 72, 64, 65, 66]) == (67,)


def test_tokens_before_the_first_proposal_belong_to_the_prompts_text():
    """In a chain the first cycles may be another drafter's."""
    drafter = NgramCache()
    drafter.begin(PROMPT)
    assert propose(drafter, [*PROMPT, 60, 61, 62, 3, 4, 5])[:3] == (60, 61, 62)


def test_a_new_prompt_forgets_the_text_before():
    drafter = NgramCache()
    fresh(drafter, after([50, 51, 52, 53], [1]))
    assert fresh(drafter, [0, 1, 2, 50, 51, 52, 53]) == ()


def test_count_followers_of_a_text():
    assert count_followers([1, 2, 1, 2, 3], [1]) == {(1,): {2: 2}, (2,): {1: 1, 3: 1}}
    assert count_followers([1, 2, 1, 2, 3], [2]) == {(1, 2): {1: 1, 3: 1}, (2, 1): {2: 1}}


@pytest.mark.parametrize(("n", "m"), [(0, 8), (4, 0)])
def test_impossible_lengths_are_refused_with_both(n, m):
    with pytest.raises(ValueError, match=f"at least 1; got n={n}, m={m}"):
        NgramCache(n, m)


def test_n_grams_without_thresholds_are_refused():
    with pytest.raises(ValueError, match=r"n=5 needs thresholds .* 1 to 5 tokens; there are 4 lax and 4 strict"):
        NgramCache(5)
    NgramCache(5, lax=(*LAX, (1, 50)), strict=(*STRICT, (2, 66)))
