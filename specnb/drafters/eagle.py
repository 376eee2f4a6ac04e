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


class EagleInputs:
    """The way from states and tokens to the layer's input, which is a sum of parts. Any number of heads may share it.

    projection: float32 of shape (n_embd, 5 n_embd), from (state, embedding, typical state, state
    recalled by the token, state recalled by it and the one before) to the layer's input. embedding:
    of the target's tokens. vocabulary: the target's ids of the head's output rows. typical: states by
    those rows; those of other tokens count as zero, as do states not to be recalled.
    """

    def __init__(self, projection: np.ndarray, embedding: Rows, typical: Rows, vocabulary: np.ndarray) -> None:
        parts = (np.ascontiguousarray(part.T) for part in np.split(projection, 5, axis=1))
        self.of_state, self._of_token, of_typical, *self.of_recalled = parts
        self.vocabulary = vocabulary
        self._embedding = embedding
        frequent = vocabulary.tolist()
        self._row_of = {token: row for row, token in enumerate(frequent)}
        # Every draft is made of these tokens, so their part is made once, and not while drafting.
        self._frequent = embedding(frequent) @ self._of_token + typical(range(len(frequent))) @ of_typical

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        arrays = (self.of_state, self._of_token, *self.of_recalled, self._frequent, self.vocabulary)
        return sum(array.nbytes for array in arrays)

    def of_tokens(self, tokens: Sequence[int]) -> np.ndarray:
        """The part of tokens, typical states included. Shape (len(tokens), n_embd)."""
        found = np.empty((len(tokens), self._frequent.shape[1]), np.float32)
        rows = np.fromiter((self._row_of.get(token, -1) for token in tokens), np.intp, len(tokens))
        found[rows >= 0] = self._frequent[rows[rows >= 0]]
        if rare := [i for i, row in enumerate(rows) if row < 0]:
            found[rare] = self._embedding([tokens[i] for i in rare]) @ self._of_token
        return found


class Eagle:
    """Drafts greedily from states; stops early when unsure (``limits.p_min``).

    session: the head's layer; its logits are over the vocabulary of ``inputs``.
    """

    name = "eagle"

    def __init__(self, session: VectorSession, inputs: EagleInputs, *, longest_k: int) -> None:
        self.session = session
        self.longest_k = longest_k
        self._inputs = inputs
        self._recalled_inputs: dict[tuple[int, ...], np.ndarray] = {}
        self._n_real = 0

    @property
    def array_bytes(self) -> int:
        """Of its weights outside the session's model."""
        return self._inputs.bytes

    @property
    def bytes_per_token(self) -> int:
        """The target's state, and what is recalled of it by one token and by two, at most."""
        return (1 + len(self._inputs.of_recalled)) * self._inputs.of_state.shape[0] * self._inputs.of_state.itemsize

    def begin(self, prompt: Sequence[int]) -> None:
        self.session.rewind(0)
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
        longest = min(limits.longest, self.longest_k, self.session.n_ctx - n_known + 1)
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
            tokens.append(int(self._inputs.vocabulary[row]))
            confidences.append(confidence)
            if len(confidences) == longest:
                break
            inputs = self.session.states[-1:] @ self._inputs.of_state + self._inputs.of_tokens(tokens[-1:])
            inputs[0] += self._recalled(*tokens[-2:])
            self.session.extend(inputs)
        return Draft(tuple(tokens[1:]), tuple(confidences))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass

    def _read(self, context: Context, first: int) -> None:
        n_known = len(context.tokens) - 1
        self.session.rewind(first)
        if first < n_known:
            states, tokens = context.states[first:n_known], context.tokens
            inputs = states @ self._inputs.of_state + self._inputs.of_tokens(tokens[first + 1 :])
            recalled = [states @ part for part in self._inputs.of_recalled]
            for row, position in enumerate(range(first, n_known)):
                for gram, each in enumerate(recalled, start=1):
                    if position + 1 >= gram:
                        self._recalled_inputs[tuple(tokens[position + 1 - gram : position + 1])] = each[row]
                inputs[row] += self._recalled(*tokens[position : position + 2])
            self.session.extend(inputs)
        self._n_real = n_known

    def _recalled(self, before: int, token: int) -> np.ndarray | float:
        """What the last places with this token, and with both, add to the layer's input; 0 where there were none."""
        of_token = self._recalled_inputs.get((token,), 0.0)
        return of_token + self._recalled_inputs.get((before, token), 0.0)
