"""Two-Model drafting: a second model continues the text greedily (llama.cpp's draft-simple).

Mirrors common/speculative.cpp with one deliberate difference: llama.cpp feeds every verified
batch to the draft model a second time, while here the draft's cache keeps what it evaluated and
is brought in step by longest common prefix, so a cycle costs k draft passes and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from ..records import Context, Cycle, Draft, Limits
from .confidence import best_with_confidence


class DraftSession(Protocol):
    """What this drafter needs of a session."""

    n_ctx: int
    n_vocab: int

    @property
    def tokens(self) -> Sequence[int]: ...
    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None: ...
    def rewind(self, n_keep: int) -> None: ...
    def logits(self, row: int) -> np.ndarray: ...


class DraftModel:
    """Drafts greedily with its own session; stops early when unsure (``limits.p_min``).

    n_vocab: how many tokens the target knows, where it may be fewer than the draft: a draft ends before a token that
    the target lacks. (llama.cpp lets a pair differ by some tokens at the end, and fails when one of them is drafted.)
    """

    name = "draft_model"

    def __init__(self, session: DraftSession, *, n_vocab: int | None = None) -> None:
        self.session = session
        self._n_vocab = session.n_vocab if n_vocab is None else n_vocab

    def begin(self, prompt: Sequence[int]) -> None:
        """Raises ValueError where the prompt holds a token that the draft does not know: it could never draft."""
        if max(prompt, default=0) >= self.session.n_vocab:
            raise ValueError(
                f"The prompt holds token {max(prompt)} and the draft model knows {self.session.n_vocab} tokens, so it "
                "can draft nothing for this text. Use a draft with all of the target's tokens."
            )
        self.session.rewind(0)
        # The target may hold a prompt longer than the draft can; then nothing is ever drafted (``propose``).
        if 1 < len(prompt) <= self.session.n_ctx:
            self.session.extend(prompt[:-1], rows="none")

    def propose(self, context: Context, limits: Limits) -> Draft:
        """Up to ``limits.longest`` tokens with confidences.

        Empty when the draft's context is full, or when the text holds a token that the draft does
        not know (a pair's vocabularies may differ by some tokens at the end).
        """
        # The last drafted token is never fed, so k tokens need k - 1 places after the context.
        longest = min(limits.longest, self.session.n_ctx - len(context.tokens) + 1)
        if longest <= 0:
            return Draft()
        # The pending token is fed again even when it happens to be there: its logits are needed.
        keep = min(common_prefix_length(self.session.tokens, context.tokens), len(context.tokens) - 1)
        self.session.rewind(keep)
        feed = context.tokens[keep:]
        if max(feed) >= self.session.n_vocab:
            return Draft()
        tokens: list[int] = []
        confidences: list[float] = []
        while len(tokens) < longest:
            self.session.extend(feed, rows="last")
            token, confidence = self._best()
            if confidence < limits.p_min or token >= self._n_vocab:
                break
            tokens.append(token)
            confidences.append(confidence)
            feed = [token]
        return Draft(tuple(tokens), tuple(confidences))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _best(self) -> tuple[int, float]:
        """The token it would draft now, and its confidence."""
        return best_with_confidence(self.session.logits(-1))


def common_prefix_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    shortest = min(len(a), len(b))
    return next((i for i in range(shortest) if a[i] != b[i]), shortest)
