"""The n-gram map with keys only, against llama.cpp's rule searched the long way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb.drafters import ngram_map
from specnb.drafters.ngram_map_k import NgramMapK

from .growing import agree, fresh, propose, verified

N, M = 2, 3


class LongWay:
    """common/ngram-map.cpp with a real table of slots and real searches. The history is without the pending token."""

    def __init__(self, n: int, m: int, prompt: Sequence[int], n_slots: int) -> None:
        self.n, self.m, self.at_begin = n, m, max(0, len(prompt) - 1)
        self.slots = [0] * n_slots
        self.last_hashed = 0
        self.keys: list[list] = []  # [a place of the key, tokens it may draft]
        self.used: list | None = None

    def slot(self, gram: Sequence[int]) -> int:
        value = sum(token * 2654435761 ** (len(gram) - 1 - i) for i, token in enumerate(gram))
        return value % 2**32 % len(self.slots)

    def unhashed(self, length: int) -> list[int]:
        """Places that are looked through and then hashed: the prompt's part, then the answer's, newest first."""
        reach = self.n + self.m + 1
        of_prompt = [j for j in range(self.at_begin - reach, 0, -1) if j > self.last_hashed]
        of_answer = [j for j in range(length - reach, self.at_begin, -1) if j > self.last_hashed]
        return of_prompt + of_answer

    def find(self, tokens: Sequence[int]) -> int:
        *history, _pending = tokens
        length, n = len(history), self.n
        if length < 2 * n + self.m:
            return 0
        key = list(tokens[len(tokens) - n :])
        stored = self.slots[self.slot(key)]
        match = stored if 0 < stored < length - n - self.m - 1 and history[stored : stored + n] == key else 0
        if match == 0:
            match = next((j for j in self.unhashed(length) if history[j : j + n] == key), 0)
        for j in self.unhashed(length):
            i = self.slot(history[j : j + n])
            self.slots[i] = self.slots[i] or j
        self.last_hashed = max(self.last_hashed, length - n - self.m - 1)
        return match

    def key_at(self, tokens: Sequence[int], match: int, new: list) -> list:
        n = self.n
        for key in self.keys:
            if tokens[key[0] : key[0] + n] == tokens[match : match + n]:
                return key
        self.keys.append(new)
        return new

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        self.used = None
        match = self.find(tokens)
        if match == 0:
            return ()
        self.used = self.key_at(tokens, match, [match, self.m])
        return tuple(tokens[match + self.n : match + self.n + self.used[1]])

    def accept(self, n_kept: int) -> None:
        if self.used is not None:
            self.used[1] = n_kept


@pytest.mark.parametrize("n_slots", [ngram_map.SLOTS, 17], ids=["262144 slots", "17 slots, so collisions"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (2, 2), (2, 5), (3, 8), (4, 3)])
def test_thousands_of_growing_texts(monkeypatch, n, m, n_slots):
    monkeypatch.setattr(ngram_map, "SLOTS", n_slots)
    drafts = agree(NgramMapK(n, m), lambda prompt: LongWay(n, m, prompt, n_slots), seed=10 * n + m)
    assert drafts > 200


def test_the_first_match_drafts():
    #        0  1  2  3  4  5  6  7  8  9
    tokens = [0, 8, 9, 1, 2, 3, 4, 5, 8, 9]
    assert fresh(NgramMapK(N, M), tokens) == (1, 2, 3)


def test_the_history_must_have_2n_plus_m_tokens_and_the_match_n_plus_m_plus_1_before_its_end():
    tokens = [0, 8, 9, 1, 2, 3, 8, 9]  # a history of 7 = 2n + m; the last place looked at is 7 - 6 = 1
    assert fresh(NgramMapK(N, M), tokens) == (1, 2, 3)
    assert fresh(NgramMapK(N, M), [0, *tokens]) == (1, 2, 3)
    assert fresh(NgramMapK(N, M), tokens[1:]) == ()  # too short
    assert fresh(NgramMapK(N, M), [0, 1, 8, 9, 2, 3, 8, 9]) == ()  # place 2 is too near the end


def test_asked_twice_about_the_same_text_the_nearest_place_is_no_longer_found():
    """It is in the hash slots by then, and those are trusted one place less far."""
    drafter, tokens = NgramMapK(N, M), [0, 8, 9, 1, 2, 3, 8, 9]
    assert [fresh(drafter, tokens), propose(drafter, tokens)] == [(1, 2, 3), ()]
    assert [fresh(drafter, [*tokens[:6], 7, 8, 9]), propose(drafter, [*tokens[:6], 7, 8, 9])] == [(1, 2, 3)] * 2


def test_place_0_is_not_looked_at():
    tail = [1, 2, 3, 4, 5, 6, 8, 9]
    assert fresh(NgramMapK(N, M), [8, 9, *tail]) == ()
    assert fresh(NgramMapK(N, M), [7, 8, 9, *tail]) == (1, 2, 3)


def test_in_the_prompt_the_latest_place_wins_and_later_ones_of_the_answer_never_do():
    prompt = [0, 8, 9, 1, 1, 1, 8, 9, 2, 2, 2, 0, 0, 0, 0, 0, 0, 8, 9]
    drafter = NgramMapK(N, M)
    assert fresh(drafter, prompt) == (2, 2, 2)
    # The answer has the pattern with another continuation, long ago by now; the hash slot keeps the old place.
    answer = [3, 3, 3, 8, 9, 4, 4, 4, 8, 9, 5, 5, 5, 0, 0, 0, 0, 0, 0]
    assert propose(drafter, [*prompt, *answer, 8, 9]) == (2, 2, 2)


def test_a_pattern_around_the_end_of_the_prompt_is_never_found():
    """The n + m + 1 places before the end of the prompt's history are not entered, now or later."""
    prompt = [0] * 10 + [8, 9, 1, 2, 3]
    answer = [4, 5, 6, 7, 7, 7, 7, 7, 7, 8, 9]
    drafter = NgramMapK(N, M)
    drafter.begin(prompt)
    assert propose(drafter, prompt + answer) == ()
    assert fresh(drafter, prompt + answer) == (1, 2, 3), "as a prompt, the same text has a match"


def test_a_loop_drafts_whatever_its_period():
    """Unlike ngram_simple: the place found always has m known successors."""
    for period in (1, 2, 3, 5):
        tokens = [i % period for i in range(30)]
        assert fresh(NgramMapK(3, 8), tokens) == tuple((tokens[-1] + 1 + i) % period for i in range(8))


def test_llama_cpps_lengths_need_73_tokens():
    assert (ngram_map.LLAMA_CPP_N, ngram_map.LLAMA_CPP_M) == (12, 48)
    drafter = NgramMapK(ngram_map.LLAMA_CPP_N, ngram_map.LLAMA_CPP_M)
    assert fresh(drafter, [i % 5 for i in range(72)]) == ()
    assert len(fresh(drafter, [i % 5 for i in range(73)])) == 48


def grown(n_rounds: int) -> list[list[int]]:
    """The same text to n_rounds lengths, each ending in 8 9; the first is a prompt."""
    texts = [[0, 8, 9, 1, 2, 3, 4, 5, 8, 9]]
    for _ in range(n_rounds):
        texts.append([*texts[-1], 6, 7, 8, 9])
    return texts


def test_a_key_of_which_nothing_was_kept_never_drafts_again():
    drafter = NgramMapK(N, M)
    first, *later = grown(3)
    assert fresh(drafter, first) == (1, 2, 3)
    verified(drafter, (1, 2, 3), 0)
    for tokens in later:
        assert propose(drafter, tokens) == ()
        verified(drafter, (), 0)


def test_a_key_drafts_as_much_as_was_kept_last_time():
    drafter = NgramMapK(N, M)
    first, second, third, fourth = grown(3)
    fresh(drafter, first)
    verified(drafter, (1, 2, 3), 2)
    assert propose(drafter, second) == (1, 2)
    verified(drafter, (1, 2), 2)
    assert propose(drafter, third) == (1, 2)
    verified(drafter, (1, 2), 1)
    assert propose(drafter, fourth) == (1,)


def test_other_keys_somebody_elses_draft_and_a_cleared_draft_change_nothing():
    drafter = NgramMapK(N, M)
    first, second, third, _ = grown(3)
    fresh(drafter, first)
    verified(drafter, (1, 2, 3), 0, mine=False)
    assert propose(drafter, second) == (1, 2, 3)
    verified(drafter, (), 0)  # cleared by the loop as shorter than n_min
    assert propose(drafter, third) == (1, 2, 3)
    verified(drafter, (1, 2, 3), 0)
    other_key = [*third, 0, 1, 2]
    assert propose(drafter, other_key) == (3, 4, 5)


def test_an_observation_after_no_draft_is_nobodys():
    drafter = NgramMapK(N, M)
    first, second, *_ = grown(2)
    fresh(drafter, first)
    assert propose(drafter, [*first, 0]) == ()
    verified(drafter, (7,), 0)
    assert propose(drafter, second) == (1, 2, 3)


def test_k_cuts_the_draft_and_what_is_kept_of_it_counts():
    drafter = NgramMapK(N, M)
    first, second, *_ = grown(2)
    assert fresh(drafter, first, k=2) == (1, 2)
    verified(drafter, (1, 2), 2)
    assert propose(drafter, second) == (1, 2)


def test_a_new_prompt_forgets_text_and_keys():
    drafter = NgramMapK(N, M)
    first, *_ = grown(1)
    fresh(drafter, first)
    verified(drafter, (1, 2, 3), 0)
    assert fresh(drafter, first) == (1, 2, 3)
    assert fresh(drafter, [0, 0, 0, 0, 0, 0, 0, 0, 8, 9]) == ()


@pytest.mark.parametrize(("n", "m"), [(0, 8), (3, 0)])
def test_impossible_lengths_are_refused_with_both(n, m):
    with pytest.raises(ValueError, match=f"at least 1; got n={n}, m={m}"):
        NgramMapK(n, m)
