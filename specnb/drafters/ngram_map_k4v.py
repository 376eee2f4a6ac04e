"""n-gram look-up that drafts only where one continuation has a clear majority (llama.cpp: ngram-map-k4v)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..records import Context, Cycle, Draft, Limits
from .ngram_map import LLAMA_CPP_MIN_HITS, PlaceFinder

MOST_VALUES = 4
"""Different continuations counted for one key (COMMON_NGRAM_MAX_VALUES); further ones are not noticed."""

HIGHEST_COUNT = 16_380
"""Counts stop here (COMMON_NGRAM_MAX_VALUE_COUNT)."""

MAJORITY = 2
"""The most frequent continuation must have been seen this many times as often as the others together."""


@dataclass(slots=True)
class Value:
    """One continuation of a key: its m tokens, how often it was counted, how many tokens it may draft."""

    tokens: tuple[int, ...]
    count: int
    longest: int


@dataclass(slots=True)
class Key:
    """One pattern: how often it was looked up, the place its counting starts from, its continuations."""

    look_ups: int = 0
    counted_from: int = 0
    values: list[Value] = field(default_factory=list)


class NgramMapK4v:
    """Proposes what followed the last n tokens before, if it nearly always was the same.

    n: length of the pattern, the "key" (llama.cpp: size_n, 12). m: length of the continuations
    compared and longest draft (size_m, 48). min_hits: how often a key must have been looked up
    with success before it drafts (1). A history must have 2n + m tokens, so llama.cpp's values hardly
    ever draft in a short answer; ``n`` 3 and ``m`` 8 are ours.

    Rules kept from common/ngram-map.cpp: which place is found (``PlaceFinder``); up to four
    different continuations are counted over all places of the key up to the one found; there is a
    draft only if no other was seen, or the most frequent one at least twice as often as the others
    together (the earliest of equals leads); the tokens are copied from the place found, whichever
    continuation won; the draft is as long as what was kept of the winner's draft before, so a
    winner of which nothing was kept drafts nothing.
    Counting starts again *at* the place found, so that place counts once more at every look-up:
    a key that is often looked up leans towards it.

    Differs: the text before is forgotten at ``begin``, where llama.cpp keeps what lies within the new
    prompt's length. The draft is further cut to k, and what is kept of a draft cut short counts as it
    does where llama.cpp's budget cuts one; a draft that was cleared as too short (n_min) tells
    nothing about its value.
    """

    name = "ngram_map_k4v"

    def __init__(self, n: int = 3, m: int = 8, min_hits: int = LLAMA_CPP_MIN_HITS) -> None:
        if n < 1 or m < 1 or min_hits < 1:
            raise ValueError(f"n, m and min_hits must be at least 1; got n={n}, m={m}, min_hits={min_hits}.")
        self.n = n
        self.m = m
        self.min_hits = min_hits
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._finder = PlaceFinder(self.n, self.m, prompt)
        self._keys: dict[tuple[int, ...], Key] = {}
        self._asked_value: Value | None = None

    def propose(self, context: Context, limits: Limits) -> Draft:
        tokens = context.tokens
        self._asked_value = None
        place = self._finder.find(tokens)
        if place == 0:
            return Draft()
        pattern = tuple(tokens[-self.n :])
        key = self._keys.setdefault(pattern, Key())
        key.look_ups = min(key.look_ups + 1, HIGHEST_COUNT)
        if key.look_ups < self.min_hits:
            return Draft()
        self._count(key, pattern, tokens, place)
        winner = max(key.values, key=lambda value: value.count)
        others = sum(value.count for value in key.values) - winner.count
        if winner.count < MAJORITY * others:
            return Draft()
        self._asked_value = winner
        start = place + self.n
        return Draft(tuple(tokens[start : start + min(winner.longest, limits.longest)]))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        if mine and cycle.drafted and self._asked_value is not None:
            self._asked_value.longest = cycle.kept

    def _count(self, key: Key, pattern: tuple[int, ...], tokens: Sequence[int], last: int) -> None:
        """Counts the key's continuations up to the place ``last``; each place once, ``last`` at every look-up."""
        for place in self._finder.places(pattern, key.counted_from, last):
            start = place + self.n
            continuation = tuple(tokens[start : start + self.m])
            for value in key.values:
                if value.tokens == continuation:
                    value.count = min(value.count + 1, HIGHEST_COUNT)
                    break
            else:
                if len(key.values) < MOST_VALUES:
                    key.values.append(Value(continuation, count=1, longest=self.m))
        key.counted_from = last
