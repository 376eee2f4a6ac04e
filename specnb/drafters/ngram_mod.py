"""n-gram look-up in one hashed table that knows only the next token (llama.cpp: ngram-mod).

The draft is rolled out of the table: the next token of the last n tokens, then the next of the
last n with that one, and so on. Nothing says whether a cell was filled by this n-gram or by
another one with the same hash; verification finds out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from ..records import Context, Cycle, Draft, Limits

LLAMA_CPP_N, LLAMA_CPP_M, LLAMA_CPP_N_MIN = 24, 64, 48
"""llama.cpp's n_match, n_max and n_min of ngram-mod (common/common.h), which are also --spec-default."""

CELLS = 4 * 1024 * 1024
"""Cells of the table: 16 MiB of 32-bit integers."""

MULTIPLIER = 6_364_136_223_846_793_005
"""Of the hash h = h * MULTIPLIER + token, taken over the n-gram with 64 bits (common/ngram-mod.cpp)."""

BITS_64 = 2**64 - 1

EMPTY = 0
"""Cells hold the token id plus one, so that a fresh table is all zeros, which costs no memory until it is used."""


class NgramMod:
    """Rolls a draft out of a table hash(n tokens) -> next token; no comparison, hence collisions.

    n:              length of the n-grams (llama.cpp: n_match, 24; it warns below 16).
    m:              longest draft (n_max, 64).
    n_min:          a roll that meets an empty cell before this many tokens is no draft (48).
    cells:          size of the table (4,194,304); make it small to see collisions.
    chunk:          the answer's n-grams are entered together, once the first one missing starts more than this
                    many tokens (32) before the history's end: the latest ones are not in the table yet.
    most_occupied:  begin() empties a table of which a larger share is filled (0.25).
    low_share, low_rounds: after this many drafts in a row (5) of which less than this share was kept
                    (0.25; a comment there says 0.5), the table is emptied, and entered anew from the text.

    A draft of llama.cpp's has 48 to 64 tokens and follows 24 known ones, which a short answer hardly ever
    offers; ``n`` 3, ``m`` 8 and ``n_min`` 2 are ours. The other defaults are the original's
    (common/speculative.cpp).

    Differs: llama.cpp has one table for the whole process, filled by every request and slot and
    emptied for all of them; here it is this drafter's and starts empty with every text (as does the
    count of low rounds). So after low rounds the same n-grams come back, only sooner; what goes is
    another text's. The draft is further cut to k, after n_min is applied; the share is taken of what
    was really verified, where llama.cpp takes it of the draft before its budget cuts it.
    """

    name = "ngram_mod"

    def __init__(
        self,
        n: int = 3,
        m: int = 8,
        n_min: int = 2,
        *,
        cells: int = CELLS,
        chunk: int = 32,
        most_occupied: float = 0.25,
        low_share: float = 0.25,
        low_rounds: int = 5,
    ) -> None:
        if n < 1 or m < 1 or not 0 <= n_min <= m:
            raise ValueError(f"n and m must be at least 1 and n_min between 0 and m; got n={n}, m={m}, n_min={n_min}.")
        if cells < 1 or chunk < 0 or low_rounds < 1:
            raise ValueError(
                f"cells and low_rounds must be at least 1 and chunk at least 0; got cells={cells}, "
                f"low_rounds={low_rounds}, chunk={chunk}."
            )
        self.n = n
        self.m = m
        self.n_min = n_min
        self.cells = cells
        self.chunk = chunk
        self.most_occupied = most_occupied
        self.low_share = low_share
        self.low_rounds = low_rounds
        # What a token's leaving the window takes from the hash.
        self._leaving = pow(MULTIPLIER, n, 2**64)
        self._table: np.ndarray | None = None
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._empty()
        self._cell_of = array("q")  # of the n-gram that starts at each place of the text
        self._next_of = array("i")
        self._hash = 0
        self._n_low = 0
        length = max(0, len(prompt) - 1)
        if length < self.n:
            return
        self._enter(prompt, length - self.n)
        if len(set(self._cell_of)) / self.cells > self.most_occupied:
            self._empty()
            self._n_entered = length - self.n

    def propose(self, context: Context, limits: Limits) -> Draft:
        tokens = context.tokens
        length = len(tokens) - 1
        if length < self.n:
            return Draft()
        if self._n_entered + self.chunk < length:
            self._enter(tokens, length - self.n)
        return Draft(tuple(self._roll(tokens, limits.longest)))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        if not mine or not cycle.drafted:
            return
        self._n_low = self._n_low + 1 if cycle.kept / len(cycle.drafted) < self.low_share else 0
        if self._n_low >= self.low_rounds:
            self._empty()
            self._n_low = 0

    def _roll(self, tokens: Sequence[int], longest: int) -> list[int]:
        """Up to ``longest`` tokens out of the table; none when it has no n_min of them in a row."""
        if self._table is None:
            return []
        window = list(tokens[-self.n :])
        hashed = _hash(window)
        enough = min(self.m, max(longest, self.n_min))
        for i in range(enough):
            entry = int(self._table[hashed % self.cells])
            if entry == EMPTY:
                if i < self.n_min:
                    return []
                break
            token = entry - 1
            hashed = self._rolled(hashed, window[i], token)
            window.append(token)
        return window[self.n :][:longest]

    def _enter(self, tokens: Sequence[int], stop: int) -> None:
        """Enters the n-grams that start before ``stop`` and were not entered yet; a later one overwrites."""
        if stop <= self._n_entered:
            return
        for start in range(len(self._cell_of), stop):
            following = tokens[start + self.n]
            if start == 0:
                self._hash = _hash(tokens[: self.n])
            else:
                self._hash = self._rolled(self._hash, tokens[start - 1], tokens[start + self.n - 1])
            self._cell_of.append(self._hash % self.cells)
            self._next_of.append(following + 1)
        if self._table is None:
            self._table = np.zeros(self.cells, np.int32)
        new = slice(self._n_entered, stop)
        self._table[np.frombuffer(self._cell_of, np.int64)[new]] = np.frombuffer(self._next_of, np.int32)[new]
        self._n_entered = stop

    def _empty(self) -> None:
        """Empties the table; every n-gram of the text is then to be entered again."""
        if self._table is not None:
            # Nothing but this text's n-grams is in it, so the rest need not be cleared.
            self._table[np.frombuffer(self._cell_of, np.int64)] = EMPTY
        self._n_entered = 0

    def _rolled(self, hashed: int, leaves: int, enters: int) -> int:
        """The hash of the window one token further on."""
        return (hashed * MULTIPLIER + enters - leaves * self._leaving) & BITS_64


def _hash(tokens: Sequence[int]) -> int:
    """llama.cpp's hash of an n-gram: 64 bits, before it is taken modulo the size of the table."""
    hashed = 0
    for token in tokens:
        hashed = (hashed * MULTIPLIER + token) & BITS_64
    return hashed
