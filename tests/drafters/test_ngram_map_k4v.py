"""The n-gram map with up to four continuations per key, against llama.cpp's rule searched the long way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb.drafters import ngram_map
from specnb.drafters.ngram_map_k4v import NgramMapK4v

from .growing import agree, fresh, propose, verified
from .test_ngram_map_k import LongWay

N, M = 2, 3
PATTERN = [8, 9]
FILLER = [0] * (N + M)  # so that the last occurrence before the pattern is far enough from the end


class LongWayWithValues(LongWay):
    """Keys are [a place, counted from, look-ups, values]; values are [place of the tokens, count, longest draft]."""

    def __init__(self, n: int, m: int, min_hits: int, prompt: Sequence[int], n_slots: int) -> None:
        super().__init__(n, m, prompt, n_slots)
        self.min_hits = min_hits

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        n, m = self.n, self.m
        self.used = None
        match = self.find(tokens)
        if match == 0:
            return ()
        key = self.key_at(tokens, match, [match, 0, 0, []])
        key[2] += 1
        if key[2] < self.min_hits:
            return ()
        values = key[3]
        for i in range(key[1], match + 1):
            if tokens[i : i + n] != tokens[match : match + n]:
                continue
            followers = tokens[i + n : i + n + m]
            same = [value for value in values if tokens[value[0] : value[0] + m] == followers]
            if same:
                same[0][1] += 1
            elif len(values) < 4:
                values.append([i + n, 1, m])
        key[1] = match
        counts = [value[1] for value in values]
        if sum(counts) > max(counts) and max(counts) < 2 * (sum(counts) - max(counts)):
            return ()
        best = values[counts.index(max(counts))]
        self.used = [None, best]
        return tuple(tokens[match + n : match + n + best[2]])

    def accept(self, n_kept: int) -> None:
        if self.used is not None:
            self.used[1][2] = n_kept


@pytest.mark.parametrize("n_slots", [ngram_map.SLOTS, 17], ids=["262144 slots", "17 slots, so collisions"])
@pytest.mark.parametrize(("n", "m", "min_hits"), [(1, 1, 1), (1, 4, 2), (2, 1, 1), (2, 5, 1), (3, 8, 1), (2, 2, 3)])
def test_thousands_of_growing_texts(monkeypatch, n, m, min_hits, n_slots):
    monkeypatch.setattr(ngram_map, "SLOTS", n_slots)
    drafts = agree(
        NgramMapK4v(n, m, min_hits),
        lambda prompt: LongWayWithValues(n, m, min_hits, prompt, n_slots),
        seed=100 * n + 10 * m + min_hits,
    )
    assert drafts > 50


def text(*continuations: int) -> list[int]:
    """The pattern followed by c c c, for every c in turn; then, far enough away, the pattern again."""
    return [0, *(token for c in continuations for token in (*PATTERN, c, c, c)), *FILLER, *PATTERN]


@pytest.mark.parametrize(
    ("seen", "drafted"),
    [
        ((1,), True),  # never anything else
        ((1, 1, 1), True),
        ((1, 2), False),
        ((2, 1, 1), True),  # twice as often as the others together
        ((2, 1, 1, 2), False),
        ((2, 3, 1, 1, 1), False),  # three of five
        ((2, 3, 1, 1, 1, 1), True),  # four of six
        ((2, 3, 4, 1, 1, 1, 1, 1), False),  # five against three
        ((2, 3, 4, 1, 1, 1, 1, 1, 1), True),  # six against three
    ],
)
def test_the_majority_rule(seen, drafted):
    assert fresh(NgramMapK4v(N, M), text(*seen)) == ((seen[-1],) * 3 if drafted else ())


def test_the_tokens_come_from_the_place_found_even_if_another_continuation_won():
    assert fresh(NgramMapK4v(N, M), text(1, 1, 1, 1, 2)) == (2, 2, 2)


def test_a_fifth_continuation_is_not_noticed():
    assert fresh(NgramMapK4v(N, M), text(1, 1, 1, 1, 1, 1, 2, 3, 4)) == (4, 4, 4), "six against three"
    assert fresh(NgramMapK4v(N, M), text(1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7)) == (7, 7, 7), "still six against three"


def test_an_occurrence_at_the_very_first_token_is_counted_though_never_found():
    assert fresh(NgramMapK4v(N, M), text(2, 1)[1:]) == (), "one against one"
    assert fresh(NgramMapK4v(N, M), text(1)[1:]) == (), "found it is not"


def test_the_place_found_counts_again_at_every_look_up():
    drafter, tokens = NgramMapK4v(N, M), text(1, 2)
    assert fresh(drafter, tokens) == ()  # one against one
    tokens = [*tokens, 3, 4, 5, *PATTERN]
    assert propose(drafter, tokens) == (2, 2, 2)  # the same place: one against two


def test_min_hits_counts_successful_look_ups():
    drafter, tokens = NgramMapK4v(N, M, min_hits=3), text(1)
    drafts = [fresh(drafter, tokens)]
    for _ in range(3):
        tokens = [*tokens, 3, 4, 5, *PATTERN]
        drafts.append(propose(drafter, tokens))
    assert drafts == [(), (), (1, 1, 1), (1, 1, 1)]


def test_a_value_of_which_nothing_was_kept_never_drafts_again():
    drafter, tokens = NgramMapK4v(N, M), text(1)
    fresh(drafter, tokens)
    verified(drafter, (1, 1, 1), 2)
    tokens = [*tokens, 3, 4, 5, *PATTERN]
    assert propose(drafter, tokens) == (1, 1)
    verified(drafter, (1, 1), 0, mine=False)
    tokens = [*tokens, 3, 4, 5, *PATTERN]
    assert propose(drafter, tokens) == (1, 1), "what was kept of somebody else's draft says nothing"
    verified(drafter, (1, 1), 0)
    for _ in range(3):
        tokens = [*tokens, 3, 4, 5, *PATTERN]
        assert propose(drafter, tokens) == ()
        verified(drafter, (), 0)


def test_a_cleared_draft_and_an_observation_after_no_draft_change_nothing():
    drafter, tokens = NgramMapK4v(N, M), text(1)
    fresh(drafter, tokens)
    verified(drafter, (), 0)  # cleared by the loop as shorter than n_min
    assert propose(drafter, [*tokens, 3]) == ()
    verified(drafter, (7,), 0)
    assert propose(drafter, [*tokens, 3, 4, 5, *PATTERN]) == (1, 1, 1)


def test_k_cuts_the_draft():
    assert fresh(NgramMapK4v(N, M), text(1), k=2) == (1, 1)


def test_a_new_prompt_forgets_text_keys_and_values():
    drafter = NgramMapK4v(N, M)
    fresh(drafter, text(1))
    verified(drafter, (1, 1, 1), 0)
    assert fresh(drafter, text(1)) == (1, 1, 1)
    assert fresh(drafter, text(2)) == (2, 2, 2)


@pytest.mark.parametrize("lengths", [(0, 8, 1), (3, 0, 1), (3, 8, 0)])
def test_impossible_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match="at least 1; got n={}, m={}, min_hits={}".format(*lengths)):
        NgramMapK4v(*lengths)
