"""Random texts that grow as in the loop, along which a drafter is compared with the long way of its rule."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from specnb.drafters.protocol import Drafter
from specnb.records import Context, Cycle, Limits


class Rule(Protocol):
    """A rule written down the long way; a new object for every text. The last token is the pending one."""

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]: ...
    def accept(self, n_kept: int) -> None: ...


def propose(drafter: Drafter, tokens: Sequence[int], k: int = 64) -> tuple[int, ...]:
    return drafter.propose(Context(tokens), Limits(k=k)).tokens


def fresh(drafter: Drafter, tokens: Sequence[int], k: int = 64) -> tuple[int, ...]:
    """The draft on a text that begins with all these tokens."""
    drafter.begin(tokens)
    return propose(drafter, tokens, k)


def verified(drafter: Drafter, draft: Sequence[int], kept: int, *, mine: bool = True) -> None:
    """Tells the drafter that ``kept`` of the draft's tokens were right."""
    tested = min(kept + 1, len(draft))
    drafter.observe(Cycle(drafter.name, 0, tuple(draft), tested, kept, (*draft[:kept], 0)), mine=mine)


def agree(
    drafter: Drafter, new_rule: Callable[[tuple[int, ...]], Rule], *, seed: int, texts: int = 150, length: int = 110
) -> int:
    """Follows growing texts with one drafter and asserts its drafts; returns how many were not empty.

    Texts are noise, or a loop with noise, over one to six letters. Each cycle keeps a part of the
    draft (little in some texts, so that low acceptance is met) and adds a token; sometimes the
    drafter is not asked, or the draft is somebody else's, as in a chain.
    """
    dice = random.Random(seed)
    n_drafts = 0
    for _ in range(texts):
        letters, noise, unlucky = dice.choice([1, 2, 3, 6]), dice.choice([0.1, 0.4, 1.0]), dice.random()
        loop = [dice.randrange(letters) for _ in range(dice.choice([1, 3, 7, 12]))]

        def more(tokens: list[int], count: int, letters=letters, noise=noise, loop=loop) -> None:
            for _ in range(count):
                tokens.append(dice.randrange(letters) if dice.random() < noise else loop[len(tokens) % len(loop)])

        tokens: list[int] = []
        more(tokens, dice.choice([1, 2, 5, 15, 30, 60]))
        drafter.begin(tuple(tokens))
        rule = new_rule(tuple(tokens))
        while len(tokens) < length:
            if dice.random() < 0.1:
                more(tokens, dice.choice([1, 2, 9]))
                continue
            draft = propose(drafter, tokens)
            assert draft == rule.draft(tokens), tokens
            n_drafts += bool(draft)
            kept = 0 if dice.random() < unlucky else dice.randrange(len(draft) + 1)
            mine = dice.random() < 0.9
            verified(drafter, draft, kept, mine=mine)
            if mine and draft:
                rule.accept(kept)
            tokens.extend(draft[:kept])
            more(tokens, 1)
    return n_drafts
