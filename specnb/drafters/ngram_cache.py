"""Drafting from counts of what followed each n-gram (llama.cpp: ngram-cache, known from its lookup example).

The only look-up with a threshold: a token is proposed if it followed often enough, in numbers and
in per cent. Its source of surprises is what gets counted; see ``NgramCache``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records import Context, Cycle, Draft, Limits

Counts = Mapping[tuple[int, ...], Mapping[int, int]]
"""n-gram -> token -> how often that token followed it."""

LAX = ((2, 66), (2, 50), (1, 50), (1, 50))
"""For n-grams of 1, 2, 3, 4 tokens: (fewest occurrences, fewest per cent) when the text itself is asked."""

STRICT = ((4, 75), (3, 66), (2, 66), (2, 66))
"""The same for counts of earlier texts."""

STATIC_N = 2
"""Length of the n-grams in counts of a large body of text (LLAMA_NGRAM_STATIC)."""

STATIC_WEIGHT = 100
"""A token that the static counts know too has its count multiplied by this and by its static count."""


class NgramCache:
    """Proposes token by token what most often followed the last 4, else the last 3, 2 or 1 tokens.

    n:       longest n-gram (llama.cpp: LLAMA_NGRAM_MAX, 4). m: longest draft (8, fixed there).
    lax, strict: (fewest occurrences, fewest per cent) for n-grams of 1, 2, ... tokens, at least max(n, 2) of them.
    dynamic: counts of earlier texts, static: counts of a large body of text (n-grams of two tokens), as
             ``count_followers`` makes them; without any, only this text is asked. All defaults are llama.cpp's.

    Rules kept from common/ngram-cache.cpp, for every drafted token: first this text's counts with the
    lax thresholds, the longest n-gram first; then the dynamic ones with the strict thresholds; then
    the static ones alone with the lax thresholds of its length. Among the tokens that followed, the one
    with the highest count leads, each count weighted with the static one; if it falls short of a
    threshold, the next shorter n-gram is asked. Drafted tokens are context for the next one.

    A quirk kept from common/speculative.cpp: each proposal counts only the tokens that are new
    since the last one, as if they were a text of their own. No n-gram reaches across that border, and
    a cycle that kept nothing adds one token and so counts nothing at all.

    Differs: the text before is forgotten at ``begin``; llama.cpp goes on with the old counts and the
    old length, so that a later request's prompt is not counted where it is shorter. Fewer than
    max(n, 2) tokens draft nothing; llama.cpp asks for two and reads before the beginning. Of tokens
    with the same score the first seen leads; there, whichever the hash table yields first. (The
    dynamic counts are never added to; llama.cpp's server does not do so either.) The draft is further
    cut to k.
    """

    name = "ngram_cache"

    def __init__(
        self,
        n: int = 4,
        m: int = 8,
        *,
        lax: Sequence[tuple[int, int]] = LAX,
        strict: Sequence[tuple[int, int]] = STRICT,
        dynamic: Counts | None = None,
        static: Counts | None = None,
    ) -> None:
        if n < 1 or m < 1:
            raise ValueError(f"n and m must be at least 1; got n={n}, m={m}.")
        needed = max(n, STATIC_N)
        if min(len(lax), len(strict)) < needed:
            raise ValueError(
                f"n={n} needs thresholds for n-grams of 1 to {needed} tokens; there are {len(lax)} lax and "
                f"{len(strict)} strict ones. Give both tables a pair for each length."
            )
        self.n = n
        self.m = m
        self.lax = lax
        self.strict = strict
        self.dynamic = dynamic or {}
        self.static = static or {}
        self.begin(())

    def begin(self, prompt: Sequence[int]) -> None:
        self._counts: dict[tuple[int, ...], dict[int, int]] = {}
        self._n_counted = 0
        # The first proposal counts the prompt and what came since as one text; the prompt's part is done ahead.
        self._n_settled = 0
        self._count(prompt)

    def propose(self, context: Context, limits: Limits) -> Draft:
        tokens = context.tokens
        self._count(tokens)
        self._n_settled = len(tokens)
        if len(tokens) < max(self.n, STATIC_N):
            return Draft()
        recent = list(tokens[-max(self.n, STATIC_N) :])
        drafted: list[int] = []
        for _ in range(min(self.m, limits.longest)):
            token = self._next(recent)
            if token is None:
                break
            drafted.append(token)
            recent = [*recent[1:], token]
        return Draft(tuple(drafted))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _next(self, recent: Sequence[int]) -> int | None:
        """The token to draft after these, None when no level has one."""
        pair = tuple(recent[-STATIC_N:])
        static = self.static.get(pair, {})
        for counts, thresholds in ((self._counts, self.lax), (self.dynamic, self.strict)):
            for size in range(self.n, 0, -1):
                followers = counts.get(tuple(recent[-size:]))
                if followers:
                    token = _clear_leader(followers, static, *thresholds[size - 1])
                    if token is not None:
                        return token
        return _clear_leader(static, {}, *self.lax[STATIC_N - 1]) if static else None

    def _count(self, tokens: Sequence[int]) -> None:
        """Counts followers among the tokens after ``_n_settled``; those counted before are passed over."""
        _count_followers(self._counts, tokens, self._n_settled, self._n_counted, range(1, self.n + 1))
        self._n_counted = len(tokens)


def count_followers(tokens: Sequence[int], sizes: Sequence[int]) -> Counts:
    """What followed each n-gram of these sizes in a text: ``dynamic`` takes 1, 2, 3 and 4, ``static`` takes 2."""
    counts: dict[tuple[int, ...], dict[int, int]] = {}
    _count_followers(counts, tokens, 0, 0, sizes)
    return counts


def _count_followers(
    counts: dict[tuple[int, ...], dict[int, int]],
    tokens: Sequence[int],
    start: int,
    first: int,
    sizes: Sequence[int],
) -> None:
    """Adds the tokens from ``first`` on as followers of the n-grams before them that begin at ``start`` or later."""
    for place in range(first, len(tokens)):
        token = tokens[place]
        for size in sizes:
            if place - size >= start:
                followers = counts.setdefault(tuple(tokens[place - size : place]), {})
                followers[token] = followers.get(token, 0) + 1


def _clear_leader(
    followers: Mapping[int, int], static: Mapping[int, int], fewest: int, fewest_percent: int
) -> int | None:
    """The follower with the highest (weighted) count, None when it or their sum is below a threshold."""
    total = sum(followers.values())
    if total < fewest:
        return None
    leader = max(followers, key=followers.__getitem__)
    if static:
        weight = {token: STATIC_WEIGHT * count for token, count in static.items()}
        leader = max(followers, key=lambda token: followers[token] * weight.get(token, 1))
    return leader if 100 * followers[leader] >= fewest_percent * total else None
