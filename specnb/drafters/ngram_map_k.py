"""n-gram look-up that remembers how much of each pattern's draft was kept (llama.cpp: ngram-map-k)."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Context, Cycle, Draft, Limits
from .ngram_map import PlaceFinder


class NgramMapK:
    """Proposes what followed an earlier place of the last n tokens, as long as this pattern was right last time.

    n: length of the pattern, the "key" (llama.cpp: size_n, 12). m: longest continuation copied
    (size_m, 48). A history must have 2n + m tokens, so llama.cpp's values hardly ever draft in a
    short answer; ``n`` 3 and ``m`` 8 are ours.

    Rules kept from common/ngram-map.cpp: which place is found (``PlaceFinder``); the first match
    drafts at once (the documentation speaks of several, and min_hits does nothing here, so it is no
    argument); each key's draft is as long as what was kept of its draft before. That number can only
    fall: a key of which nothing was kept never drafts again.

    Differs: the text before is forgotten at ``begin``, keys and all, where llama.cpp keeps what lies
    within the new prompt's length. The draft is further cut to k, and what is kept of a draft cut
    short counts as it does where llama.cpp's budget cuts one; a draft that was cleared as too short
    (n_min) tells nothing about its key.
    """

    name = "ngram_map_k"

    def __init__(self, n: int = 3, m: int = 8) -> None:
        if n < 1 or m < 1:
            raise ValueError(f"n and m must be at least 1; got n={n}, m={m}.")
        self.n = n
        self.m = m
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._finder = PlaceFinder(self.n, self.m, prompt)
        self._longest: dict[tuple[int, ...], int] = {}
        self._asked_key: tuple[int, ...] | None = None

    def propose(self, context: Context, limits: Limits) -> Draft:
        tokens = context.tokens
        self._asked_key = None
        place = self._finder.find(tokens)
        if place == 0:
            return Draft()
        self._asked_key = tuple(tokens[-self.n :])
        longest = min(self._longest.get(self._asked_key, self.m), limits.longest)
        start = place + self.n
        return Draft(tuple(tokens[start : start + longest]))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        if mine and cycle.drafted and self._asked_key is not None:
            self._longest[self._asked_key] = cycle.kept
