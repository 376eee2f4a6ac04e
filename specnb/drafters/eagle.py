"""EAGLE: one layer over the target's hidden states drafts in the space of states (Li et al. 2024, arXiv 2401.15077).

Position i of the head reads the target's state at token i and what is known of token i + 1, and
predicts the state at token i + 1; the target's output rows turn that into the draft of token
i + 2. To draft further the head reads its own prediction in place of the state it does not have.
After verification the real states are there, and they replace what was made up.

Differs from the paper: a chain and no tree; the training unrolls the head over its own predictions
(EAGLE-3, arXiv 2503.01840); and of token i + 1 the head reads more than the embedding. It is told
the token's typical state, made once from the target, and recalls the states at the last places where
the target read this token, and where it read tokens i and i + 1 one after the other: what followed
there often follows again (the idea of Token Recycling, arXiv 2408.08696, which keeps tokens instead
of states).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Context, Cycle, Draft, Limits
from .confidence import best_with_confidence
from .protocol import Rows, VectorSession


class Eagle:
    """Drafts greedily from states; stops early when unsure (``limits.p_min``).

    session: the head's layer; its logits are over ``vocabulary``, the target's ids of its rows.
    projection: float32 of shape (n_embd, 5 n_embd), from (state, embedding, typical state, state
    recalled by the token, state recalled by it and the one before) to the layer's input. embedding:
    of the target's tokens. typical: states by the rows of ``vocabulary``; those of other tokens count
    as zero, as do states not to be recalled.
    """

    name = "eagle"

    def __init__(
        self,
        session: VectorSession,
        projection: np.ndarray,
        embedding: Rows,
        typical: Rows,
        vocabulary: np.ndarray,
        *,
        longest_k: int,
    ) -> None:
        self.session = session
        self.longest_k = longest_k
        parts = (np.ascontiguousarray(part.T) for part in np.split(projection, 5, axis=1))
        self._of_state, self._of_token, self._of_typical, *self._of_recalled = parts
        self._embedding = embedding
        self._typical = typical
        self._vocabulary = vocabulary
        self._row_of = {token: row for row, token in enumerate(vocabulary.tolist())}
        self._token_inputs: dict[int, np.ndarray] = {}
        self._recalled_inputs: dict[tuple[int, ...], np.ndarray] = {}
        self._n_real = 0

    def begin(self, prompt: Sequence[int]) -> None:
        self.session.rewind(0)
        self._token_inputs.clear()
        self._recalled_inputs.clear()
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
        tokens = [context.tokens[-1]]
        confidences: list[float] = []
        while True:
            row, confidence = best_with_confidence(self.session.logits(-1))
            if confidence < limits.p_min:
                break
            tokens.append(int(self._vocabulary[row]))
            confidences.append(confidence)
            if len(confidences) == longest:
                break
            self._keep_inputs_of(tokens[-1:])
            self.session.extend(self.session.states[-1:] @ self._of_state + self._input_of(*tokens[-2:]))
        return Draft(tuple(tokens[1:]), tuple(confidences))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _read(self, context: Context, first: int) -> None:
        n_known = len(context.tokens) - 1
        self.session.rewind(first)
        if first < n_known:
            states, tokens = context.states[first:n_known], context.tokens
            self._keep_inputs_of(tokens[first + 1 :])
            recalled = [states @ part for part in self._of_recalled]
            following: list[np.ndarray] = []
            for row, position in enumerate(range(first, n_known)):
                for gram, inputs in enumerate(recalled, start=1):
                    if position + 1 >= gram:
                        self._recalled_inputs[tuple(tokens[position + 1 - gram : position + 1])] = inputs[row]
                following.append(self._input_of(*tokens[position : position + 2]))
            self.session.extend(states @ self._of_state + np.stack(following))
        self._n_real = n_known

    def _input_of(self, before: int, token: int) -> np.ndarray:
        """What is known of a token whose own input is kept, as it goes into the layer. Shape (n_embd,)."""
        known = self._token_inputs[token]
        for read in ((token,), (before, token)):
            if (recalled := self._recalled_inputs.get(read)) is not None:
                known = known + recalled
        return known

    def _keep_inputs_of(self, tokens: Sequence[int]) -> None:
        """A text repeats its tokens, so their part of the input is made once."""
        new = [token for token in dict.fromkeys(tokens) if token not in self._token_inputs]
        if new:
            self._token_inputs.update(zip(new, self._embedding(new) @ self._of_token, strict=True))
        if frequent := [token for token in new if token in self._row_of]:
            inputs = self._typical([self._row_of[token] for token in frequent]) @ self._of_typical
            for token, more in zip(frequent, inputs, strict=True):
                self._token_inputs[token] = self._token_inputs[token] + more
