"""Medusa: several heads over one hidden state, each guessing a token further ahead (Cai et al. 2024, arXiv 2401.10774).

All heads read the same state, that of the last token the target has evaluated. Head j guesses the
token j places after the pending one, and none knows which tokens the pending one and the other
heads' guesses turn out to be: that is what makes it cheap (one product for all) and what breaks it.

Differs from the paper: the best guess of each head in a chain, no tree of candidates; the heads
share one output norm and the target's own output rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Context, Cycle, Draft, Limits
from .confidence import best_with_confidence
from .protocol import VectorSession


class Medusa:
    """blocks: float32 of shape (heads, n_embd, n_embd), one residual block a head.

    session: the output norm and rows, without attention; its logits are over ``vocabulary``.
    """

    name = "medusa"

    def __init__(self, session: VectorSession, blocks: np.ndarray, vocabulary: np.ndarray) -> None:
        self.session = session
        self.longest_k = len(blocks)
        self._blocks = np.ascontiguousarray(blocks.reshape(-1, blocks.shape[-1]))
        self._vocabulary = vocabulary

    @property
    def array_bytes(self) -> int:
        """Of its weights outside the session's model."""
        return self._blocks.nbytes + self._vocabulary.nbytes

    @property
    def bytes_per_token(self) -> int:
        """The target's state."""
        return self._blocks.shape[1] * self._blocks.itemsize

    def begin(self, prompt: Sequence[int]) -> None:
        self.session.rewind(0)

    def catch_up(self, context: Context) -> None:
        """Nothing is kept from cycle to cycle: each proposal reads one state."""

    def propose(self, context: Context, limits: Limits) -> Draft:
        """The heads in one pass, as many as ``limits`` allow; a p_min saves nothing of it, only of the verification."""
        longest = min(limits.longest, self.longest_k)
        if longest <= 0 or len(context.tokens) < 2:
            return Draft()
        state = context.states[-1]
        self.session.rewind(0)
        self.session.extend(state + _silu(self._blocks[: longest * len(state)] @ state).reshape(longest, -1))
        tokens: list[int] = []
        confidences: list[float] = []
        for head in range(longest):
            row, confidence = best_with_confidence(self.session.logits(head))
            if confidence < limits.p_min:
                break
            tokens.append(int(self._vocabulary[row]))
            confidences.append(confidence)
        return Draft(tuple(tokens), tuple(confidences))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass


def _silu(x: np.ndarray) -> np.ndarray:
    # exp of a large positive number overflows to infinity and the quotient to 0, as it should.
    with np.errstate(over="ignore"):
        return x / (1.0 + np.exp(-x))
