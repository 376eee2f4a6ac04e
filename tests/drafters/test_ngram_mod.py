"""The hashed table of next tokens, against llama.cpp's rule with a table filled cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb.drafters.ngram_mod import CELLS, LLAMA_CPP_M, LLAMA_CPP_N, LLAMA_CPP_N_MIN, NgramMod

from .growing import agree, fresh, propose, verified


class LongWay:
    """common/ngram-mod.cpp and its driver in common/speculative.cpp, with a dictionary for a table."""

    def __init__(self, n: int, m: int, n_min: int, cells: int, prompt: Sequence[int]) -> None:
        self.n, self.m, self.n_min, self.cells = n, m, n_min, cells
        self.table: dict[int, int] = {}
        self.first_missing = self.low = self.drafted = 0
        history = prompt[:-1]
        if len(history) >= n:
            self.enter(history)
            if len(self.table) > 0.25 * cells:
                self.table = {}

    def cell(self, gram: Sequence[int]) -> int:
        value = 0
        for token in gram:
            value = (value * 6364136223846793005 + token) % 2**64
        return value % self.cells

    def enter(self, history: Sequence[int]) -> None:
        for i in range(self.first_missing, len(history) - self.n):
            self.table[self.cell(history[i : i + self.n])] = history[i + self.n]
        self.first_missing = len(history) - self.n

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        self.drafted = 0
        history = tokens[:-1]
        if len(history) < self.n:
            return ()
        if self.first_missing + 32 < len(history):
            self.enter(history)
        rolled: list[int] = []
        while len(rolled) < self.m:
            following = self.table.get(self.cell([*tokens, *rolled][-self.n :]))
            if following is None:
                break
            rolled.append(following)
        if len(rolled) < min(self.n_min, self.m):
            return ()
        self.drafted = len(rolled)
        return tuple(rolled)

    def accept(self, n_kept: int) -> None:
        self.low = self.low + 1 if n_kept / self.drafted < 0.25 else 0
        if self.low == 5:
            self.table, self.low, self.first_missing = {}, 0, 0


@pytest.mark.parametrize("cells", [CELLS, 401, 7], ids=["no collisions", "some collisions", "hardly anything else"])
@pytest.mark.parametrize(("n", "m", "n_min"), [(1, 1, 0), (1, 4, 2), (2, 3, 3), (3, 8, 2), (6, 12, 9), (40, 3, 1)])
def test_thousands_of_growing_texts(n, m, n_min, cells):
    drafts = agree(
        NgramMod(n, m, n_min, cells=cells), lambda prompt: LongWay(n, m, n_min, cells, prompt), seed=n + m, texts=100
    )
    assert drafts > 100


def loop(period: int, length: int) -> list[int]:
    return [i % period for i in range(length)]


@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_a_loop_is_rolled_on_for_ever_whatever_its_period(period):
    tokens = loop(period, 40)
    draft = fresh(NgramMod(3, 16), tokens)
    assert draft == tuple((tokens[-1] + 1 + i) % period for i in range(16)), "longer than anything copied could be"


def test_a_roll_stops_at_an_empty_cell_and_needs_n_min_tokens():
    # After 8 9 came 1 2 3 and then the end of the history, 8; after 3 8 nothing is known.
    tokens = [8, 9, 1, 2, 3, 8, 9]
    assert fresh(NgramMod(2, 8, 4), tokens) == (1, 2, 3, 8)
    assert fresh(NgramMod(2, 8, 5), tokens) == ()
    assert fresh(NgramMod(2, 3, 3), tokens) == (1, 2, 3)


def test_k_cuts_after_n_min_is_applied():
    tokens = [8, 9, 1, 2, 3, 8, 9]
    assert fresh(NgramMod(2, 8, 4), tokens, k=2) == (1, 2)
    assert fresh(NgramMod(2, 8, 5), tokens, k=2) == ()
    assert fresh(NgramMod(2, 8, 0), tokens, k=0) == ()


def test_llama_cpps_lengths_draft_48_to_64_tokens_or_none():
    lengths = LLAMA_CPP_N, LLAMA_CPP_M, LLAMA_CPP_N_MIN
    assert lengths == (24, 64, 48)
    for n_known, n_drafted in ((47, 0), (48, 48), (60, 60), (100, 64)):
        known = list(range(n_known))
        # The roll goes through what is known to the history's end, which is one token before the text's.
        rolled = [*known[24:], 500, *known[:23]]
        assert fresh(NgramMod(*lengths), [*known, 500, *known[:24]]) == tuple(rolled[:n_drafted])


def test_the_latest_occurrence_overwrites():
    assert fresh(NgramMod(2, 3, 0), [8, 9, 1, 3, 4, 8, 9, 2, 5, 6, 8, 9]) == (2, 5, 6)


def test_a_collision_proposes_another_n_grams_token():
    """With one token per n-gram and multiplier 1 modulo 4, the cell is the token modulo 4: 1 and 5 share it."""
    tokens = [1, 7, 3, 5]
    assert fresh(NgramMod(1, 1, 0, cells=CELLS), tokens) == ()
    assert fresh(NgramMod(1, 1, 0, cells=4, most_occupied=1.0), tokens) == (7,)


def test_the_answers_n_grams_are_entered_in_chunks():
    """After a prompt of one loop comes an answer of another; it is unknown until 33 tokens past the last entered."""
    n, prompt = 3, loop(5, 21)
    drafter = NgramMod(n, 4, 0)
    drafter.begin(prompt)
    entered = len(prompt) - 1 - n
    known = []
    for length in range(1, 40):
        tokens = [*prompt, *(10 + i % 4 for i in range(length))]
        known.append(bool(propose(drafter, tokens)))
    first = known.index(True, n)  # before that the pattern may still be the prompt's
    assert len(prompt) + 1 + first - 1 == entered + 33
    assert all(known[first:])


def test_a_table_more_than_a_quarter_full_is_emptied_at_begin_and_filled_by_the_answer_alone():
    prompt = [*range(26), 0, 1]  # 25 different n-grams of two tokens in its history, one cell each if spread
    cells = next(c for c in range(26, 200) if len({LongWay(2, 4, 0, c, ()).cell((i, i + 1)) for i in range(25)}) == 25)
    assert fresh(NgramMod(2, 4, 0, cells=cells), prompt) == (), "full"
    assert fresh(NgramMod(2, 4, 0, cells=cells, most_occupied=1.0), prompt) == (2, 3, 4, 5)
    drafter = NgramMod(2, 4, 0, cells=cells)
    drafter.begin(prompt)
    grown = [*prompt, *[30, 31, 32, 33] * 12]
    assert propose(drafter, grown) == (30, 31, 32, 33)


def test_a_table_of_which_just_a_quarter_is_filled_is_kept():
    def spread(count: int) -> int:
        return len({LongWay(2, 4, 0, 4 * count, ()).cell((i, i + 1)) for i in range(count)})

    count = next(count for count in range(4, 100) if spread(count) == count)
    assert fresh(NgramMod(2, 1, 1, cells=4 * count), [*range(count + 1), 0, 1]) == (2,)


def rounds(drafter: NgramMod, tokens: list[int], kept: Sequence[int]) -> list[int]:
    """Drafts and keeps so many of each draft; then comes the same pattern again. Returns the text afterwards."""
    for count in kept:
        draft = propose(drafter, tokens)
        assert len(draft) == 4
        verified(drafter, draft, count)
        tokens = [*tokens, *draft[:count], *tokens[2:4]]
    return tokens


TEXT = [7, 8, 0, 1, 2, 3, 4, 5, 6, 0, 1]


def is_emptied(drafter: NgramMod, tokens: list[int]) -> bool:
    """Whether the table has nothing to say about this text (which is too short for it to be entered anew)."""
    return propose(drafter, tokens) == ()


@pytest.mark.parametrize(
    ("kept", "emptied"),
    [
        ((0, 0, 0, 0), False),
        ((0, 0, 0, 0, 0), True),
        ((1, 0, 0, 0, 0), False),  # one of four is not less than a quarter
        ((0, 0, 0, 0, 1), False),
        ((0, 0, 0, 0, 1, 0, 0, 0, 0), False),  # the count starts again
        ((0, 0, 0, 0, 1, 0, 0, 0, 0, 0), True),
    ],
)
def test_the_table_is_emptied_after_five_low_rounds_in_a_row(kept, emptied):
    drafter = NgramMod(2, 4, 4, chunk=1000)
    drafter.begin(TEXT)
    tokens = rounds(drafter, TEXT, kept)
    assert is_emptied(drafter, tokens) == emptied


def test_rounds_of_nobody_or_of_somebody_else_are_not_counted():
    drafter = NgramMod(2, 4, 4, chunk=1000)
    drafter.begin(TEXT)
    tokens = rounds(drafter, TEXT, (0, 0, 0, 0))
    verified(drafter, (), 0)
    verified(drafter, (1, 2, 3, 4), 0, mine=False)
    verified(drafter, (1, 2, 3, 4), 4, mine=False)
    assert not is_emptied(drafter, tokens)
    rounds(drafter, tokens, (0,))
    assert is_emptied(drafter, tokens)


def test_an_emptied_table_is_entered_anew_from_the_text():
    drafter = NgramMod(2, 4, 4)
    text = [*range(20, 60), *TEXT]
    drafter.begin(text)
    tokens = rounds(drafter, text, (0, 0, 0, 0, 0))
    assert len(propose(drafter, tokens)) == 4


def test_the_share_kept_is_of_what_was_verified():
    """A draft cut to two tokens of which one is kept is a good round, though one of four would be a quarter."""
    drafter = NgramMod(2, 4, 4, chunk=1000, low_share=0.4)
    drafter.begin(TEXT)
    for _ in range(6):
        verified(drafter, propose(drafter, TEXT, k=2), 1)
    assert not is_emptied(drafter, TEXT)


def test_a_new_prompt_forgets_the_table_and_the_low_rounds():
    drafter = NgramMod(2, 4, 4, chunk=1000)
    drafter.begin(TEXT)
    tokens = rounds(drafter, TEXT, (0, 0, 0, 0))
    drafter.begin(TEXT)
    rounds(drafter, TEXT, (0,))
    assert not is_emptied(drafter, tokens)
    assert fresh(drafter, [9] * 10 + [0, 1]) == ()


def test_the_table_takes_no_memory_before_a_text_needs_it():
    drafter = NgramMod()
    assert drafter._table is None
    drafter.begin(loop(5, 30))
    assert drafter._table.nbytes == 16 * 2**20


@pytest.mark.parametrize(("n", "m", "n_min"), [(0, 8, 2), (3, 0, 0), (3, 8, 9), (3, 8, -1)])
def test_impossible_lengths_are_refused_with_all_three(n, m, n_min):
    with pytest.raises(ValueError, match=f"got n={n}, m={m}, n_min={n_min}"):
        NgramMod(n, m, n_min)


@pytest.mark.parametrize("options", [{"cells": 0}, {"chunk": -1}, {"low_rounds": 0}])
def test_impossible_tables_are_refused(options):
    with pytest.raises(ValueError, match="{}={}".format(*next(iter(options.items())))):
        NgramMod(**options)
