"""Prompt look-up (Saxena 2023), as llama-cpp-python does it: the *earliest* place of the last tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Context, Cycle, Draft, Limits


class PromptLookup:
    """Proposes what followed the first place of the last n tokens, else of the last n - 1, and so on to one token.

    n: longest pattern tried (llama-cpp-python: max_ngram_size, 2). m: longest continuation copied
    (num_pred_tokens, 10; its README suggests 2 where there is no GPU). Both defaults are the original's.

    Rules kept from LlamaPromptLookupDecoding (llama_cpp/llama_speculative.py): any place counts, the
    very first and those that overlap the pattern included, as long as a token follows; the earliest
    wins, not the latest; the continuation may run up to the pending token. So a text that repeats
    itself is copied from its beginning, and nearly every cycle has a draft, many of them a guess
    from one token.

    Differs: the draft is further cut to k and to the room the budget leaves; the original is cut to
    the room in the context only.
    """

    name = "prompt_lookup"

    def __init__(self, n: int = 2, m: int = 10) -> None:
        if n < 1 or m < 1:
            raise ValueError(f"n and m must be at least 1; got n={n}, m={m}.")
        self.n = n
        self.m = m
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._follows: dict[tuple[int, ...], int] = {}
        self._n_indexed = 0
        self._index(prompt)

    def propose(self, context: Context, limits: Limits) -> Draft:
        tokens = context.tokens
        self._index(tokens)
        for size in range(min(self.n, len(tokens) - 1), 0, -1):
            start = self._follows.get(tuple(tokens[-size:]))
            if start is not None:
                return Draft(tuple(tokens[start : start + min(self.m, limits.longest)]))
        return Draft()

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _index(self, tokens: Sequence[int]) -> None:
        """Notes, for every pattern that a token follows, where its earliest place is followed."""
        for follower in range(self._n_indexed, len(tokens)):
            for size in range(1, min(self.n, follower) + 1):
                self._follows.setdefault(tuple(tokens[follower - size : follower]), follower)
        self._n_indexed = len(tokens)
