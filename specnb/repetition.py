"""Repetition loops: small models fall into them, and every drafter looks brilliant inside one."""

from __future__ import annotations

from collections.abc import Sequence

from .records import Loop

LONGEST_PERIOD = 64
FEWEST_TOKENS = 24
FEWEST_REPEATS = 3


def find_loop(tokens: Sequence[int]) -> Loop | None:
    """The longest stretch that repeats with one period, if it is long enough to flatter a drafter.

    Long enough: at least three repeats and 24 tokens. Copying a text once, as a rewriting task
    does, is no loop.
    """
    best: Loop | None = None
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // FEWEST_REPEATS) + 1):
        run = 0
        for i in range(period, len(tokens) + 1):
            if i < len(tokens) and tokens[i] == tokens[i - period]:
                run += 1
                continue
            length = run + period
            long_enough = length >= max(FEWEST_TOKENS, FEWEST_REPEATS * period)
            if run and long_enough and (best is None or length > best.stop - best.start):
                best = Loop(start=i - length, stop=i, period=period)
            run = 0
    return best
