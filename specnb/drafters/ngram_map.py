"""Where an n-gram stood before, as llama.cpp's ngram-map finds it (common/ngram-map.cpp).

What ngram-map-k and ngram-map-k4v have in common. It is not simply "the latest place": a hash
slot keeps the first place that filled it, and some places are never entered at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

SLOTS = 262_144
"""Slots of the hash map (COMMON_NGRAM_HASH_MAP_SIZE)."""

MULTIPLIER = 2_654_435_761
"""Of the hash h = h * MULTIPLIER + token, taken over the n-gram with 32 bits (LCG_FACTOR)."""

BITS_32 = 2**32 - 1

LLAMA_CPP_N, LLAMA_CPP_M, LLAMA_CPP_MIN_HITS = 12, 48, 1
"""llama.cpp's size_n, size_m and min_hits, of either ngram-map (common/common.h)."""


class PlaceFinder:
    """Finds an earlier place of the last n tokens, m of whose successors are known.

    Places are counted from the start of the text; the pending token is no part of the history,
    whose length is L. The rules, in llama.cpp's order:

    * A history shorter than 2n + m finds nothing.
    * The n-gram's hash slot is looked up; tokens are compared, so a collision is noticed and
      counts as "not there".
    * Else the places not yet entered in the slots are searched, newest first: those of the prompt
      up to L0 - n - m - 1 (L0: the history's length when the text began), then those after L0 up
      to L - n - m - 1. Place 0 is never looked at, and neither are the n + m + 1 places around the
      end of the prompt.
    * Then these places are entered, newest first. A filled slot is never overwritten, so an n-gram
      of the answer is found where it stood *first*, and one of the prompt where it stood last.

    Cost: every place is visited once; a look-up is two dictionary accesses and at most two bisections.
    """

    def __init__(self, n: int, m: int, prompt: Sequence[int]) -> None:
        self.n = n
        self.m = m
        self._places: dict[tuple[int, ...], list[int]] = {}
        self._n_listed = 0
        self._n_prompt = max(0, len(prompt) - 1)
        self._last_of_prompt = max(0, self._n_prompt - n - m - 1)
        self._last_entered = 0
        self._slots: dict[int, int] = {}
        # The prompt's work ahead. Nothing is found earlier for it: a slot's place is what the search would
        # find, and where another n-gram has the slot the search is still made (``_last_entered`` is 0).
        self._list(prompt, self._n_prompt - n - m - 1)
        self._enter(prompt, 0, self._last_of_prompt)

    def find(self, tokens: Sequence[int]) -> int:
        """The place, 0 for none. tokens: the history and then the pending token."""
        length = len(tokens) - 1
        if length < 2 * self.n + self.m:
            return 0
        newest = length - self.n - self.m - 1
        self._list(tokens, newest)
        pattern = tuple(tokens[-self.n :])
        place = self._slots.get(_slot(pattern), 0)
        if not 0 < place < newest or tuple(tokens[place : place + self.n]) != pattern:
            place = self._latest(pattern, self._last_entered, self._last_of_prompt)
            place = place or self._latest(pattern, max(self._last_entered, self._n_prompt), newest)
        self._enter(tokens, max(self._last_entered, self._n_prompt), newest)
        self._last_entered = max(self._last_entered, newest)
        return place

    def places(self, pattern: tuple[int, ...], first: int, last: int) -> Sequence[int]:
        """Every place of an n-gram with first <= place <= last, ascending, 0 and the prompt's end included."""
        found = self._places.get(pattern, [])
        return found[bisect_right(found, first - 1) : bisect_right(found, last)]

    def _latest(self, pattern: tuple[int, ...], after: int, last: int) -> int:
        """The latest place with after < place <= last, 0 for none."""
        found = self._places.get(pattern, [])
        i = bisect_right(found, last)
        return found[i - 1] if i and found[i - 1] > after else 0

    def _list(self, tokens: Sequence[int], last: int) -> None:
        """Notes the places of all n-grams up to ``last``."""
        for place in range(self._n_listed, last + 1):
            self._places.setdefault(tuple(tokens[place : place + self.n]), []).append(place)
        self._n_listed = max(self._n_listed, last + 1)

    def _enter(self, tokens: Sequence[int], after: int, last: int) -> None:
        """Fills empty hash slots with the places after < place <= last, the newest winning among these."""
        for place in range(last, after, -1):
            self._slots.setdefault(_slot(tokens[place : place + self.n]), place)


def _slot(pattern: Sequence[int]) -> int:
    """The hash slot of an n-gram; different n-grams may share one."""
    hashed = 0
    for token in pattern:
        hashed = (hashed * MULTIPLIER + token) & BITS_32
    return hashed % SLOTS
