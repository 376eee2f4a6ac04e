"""EAGLE: one layer over the target's hidden states drafts in the space of states (Li et al. 2024, arXiv 2401.15077).

Position i of the head reads the target's state at token i and the embedding of token i + 1, and
predicts the state at token i + 1; the target's output rows turn that into the draft of token
i + 2. To draft further the head reads its own prediction in place of the state it does not have.
After verification the real states are there, and they replace what was made up.

Differs from the paper: a chain and no tree, and the training unrolls the head over its own
predictions (EAGLE-3, arXiv 2503.01840).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Context, Cycle, Draft, Limits
from .confidence import best_with_confidence
from .protocol import Embedding, VectorSession


class Eagle:
    """Drafts greedily from states; stops early when unsure (``limits.p_min``).

    session: the head's layer; its logits are over ``vocabulary``, the target's ids of its rows.
    projection: float32 of shape (n_embd, 2 n_embd), from (state, embedding) to the layer's input.
    """

    name = "eagle"

    def __init__(
        self,
        session: VectorSession,
        projection: np.ndarray,
        embedding: Embedding,
        vocabulary: np.ndarray,
        *,
        longest_k: int,
    ) -> None:
        self.session = session
        self.longest_k = longest_k
        self._of_state, self._of_token = (np.ascontiguousarray(half.T) for half in np.split(projection, 2, axis=1))
        self._embedding = embedding
        self._token_inputs: dict[int, np.ndarray] = {}
        self._vocabulary = vocabulary
        self._n_real = 0

    def begin(self, prompt: Sequence[int]) -> None:
        self.session.rewind(0)
        self._token_inputs.clear()
        self._n_real = 0

    def catch_up(self, context: Context) -> None:
        """Feeds the positions whose state and next token are both known; those of the last draft are made anew."""
        # The target may hold a prompt longer than the head can; then nothing is ever drafted (``propose``).
        if len(context.tokens) - 1 <= self.session.n_ctx:
            self._read(context, first=self._n_real)

    def propose(self, context: Context, limits: Limits) -> Draft:
        n_known = len(context.tokens) - 1
        # The last drafted token is never fed, so k tokens need k - 1 places after the known ones.
        longest = min(limits.longest, self.session.n_ctx - n_known + 1)
        if longest <= 0 or n_known == 0:
            return Draft()
        # The last known position is fed again even when it is there: its logits are the first draft's.
        self._read(context, first=min(self._n_real, n_known - 1))
        tokens: list[int] = []
        confidences: list[float] = []
        while True:
            row, confidence = best_with_confidence(self.session.logits(-1))
            if confidence < limits.p_min:
                break
            tokens.append(int(self._vocabulary[row]))
            confidences.append(confidence)
            if len(tokens) == longest:
                break
            self._feed(self.session.states[-1:], tokens[-1:])
        return Draft(tuple(tokens), tuple(confidences))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _read(self, context: Context, first: int) -> None:
        n_known = len(context.tokens) - 1
        self.session.rewind(first)
        if first < n_known:
            self._feed(context.states[first:n_known], context.tokens[first + 1 : n_known + 1])
        self._n_real = n_known

    def _feed(self, states: np.ndarray, following: Sequence[int]) -> None:
        self.session.extend(states @ self._of_state + self._inputs_of(following))

    def _inputs_of(self, tokens: Sequence[int]) -> np.ndarray:
        """The tokens' half of the projection; a text repeats its tokens, so it is kept. Shape (len(tokens), n_embd)."""
        new = [token for token in dict.fromkeys(tokens) if token not in self._token_inputs]
        if new:
            self._token_inputs.update(zip(new, self._embedding(new) @ self._of_token, strict=True))
        return np.stack([self._token_inputs[token] for token in tokens])
