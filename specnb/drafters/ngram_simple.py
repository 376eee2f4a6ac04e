"""n-gram look-up: find where the last n tokens stood before and propose what followed (common/ngram-map.cpp).

No model, no weights, next to no cost; and nothing to say about text that repeats nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Context, Cycle, Draft, Limits


class NgramSimple:
    """llama.cpp's ngram-simple: the most recent earlier occurrence wins, and no older one is tried.

    n: length of the pattern (llama.cpp: size_n, 12). m: longest continuation copied (size_m, 48).
    Its defaults hardly ever draft in a short answer; ``n`` 3 and ``m`` 8 are ours.

    Rules kept from the original: the history must be longer than n + m + 1; a match at the very
    first token is not looked at; a continuation shorter than n gives no draft at all, so text that
    repeats with a period of n or less drafts nothing. The length is further cut to k, which the
    original leaves to size_m.
    """

    name = "ngram_simple"

    def __init__(self, n: int = 3, m: int = 8) -> None:
        if n < 1 or m < 1:
            raise ValueError(f"n and m must be at least 1; got n={n}, m={m}.")
        self.n = n
        self.m = m
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._follows: dict[tuple[int, ...], int] = {}
        # llama.cpp's search stops at 1: a match at the very first token is never found.
        self._next_start = 1

    def propose(self, context: Context, limits: Limits) -> Draft:
        history = context.tokens
        self._index(history)
        # llama.cpp counts the history without the pending token: L = len(history) - 1.
        if len(history) - 1 <= self.n + self.m + 1:
            return Draft()
        follows = self._follows.get(tuple(history[-self.n :]))
        if follows is None:
            return Draft()
        continuation = history[follows : min(follows + self.m, len(history) - 1)]
        if len(continuation) < self.n:
            return Draft()
        return Draft(tuple(continuation[: limits.longest]))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _index(self, history: Sequence[int]) -> None:
        """Notes, for every pattern, what follows its latest occurrence; only new places are visited.

        llama.cpp's search begins at L - n - 1, so the last places stay unindexed for now.
        """
        end = len(history) - 1 - self.n
        for start in range(self._next_start, end):
            self._follows[tuple(history[start : start + self.n])] = start + self.n
        self._next_start = max(self._next_start, end)
