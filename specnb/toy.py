"""A target without weights: a table of logits behind the same interface as ``backend.Session``.

For tests that must be exhaustive and for cells that must run without a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .records import Sampling


class ToySession:
    """A second-order Markov chain: logits of a row depend on the last two tokens only.

    sharpness: spread of the logits; larger is more predictable. Sessions with the same
    ``n_vocab``, ``seed`` and ``sharpness`` are the same model. ``rows_read`` counts rows looked at.
    """

    def __init__(
        self, n_vocab: int = 8, *, seed: int = 0, sharpness: float = 2.0, n_ctx: int = 512, n_batch: int = 64
    ) -> None:
        shape = (n_vocab, n_vocab, n_vocab)
        self._table = (sharpness * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self.n_batch = n_batch
        self.rows_read = 0
        self.passes: list[int] = []
        self._tokens: list[int] = []
        self._rows: list[np.ndarray | None] = []

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def n_tokens(self) -> int:
        return len(self._tokens)

    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None:
        if not tokens:
            raise ValueError("A pass needs at least one token.")
        if self.n_tokens + len(tokens) > self.n_ctx:
            raise ValueError(f"{len(tokens)} more tokens do not fit beside {self.n_tokens} of {self.n_ctx}.")
        if rows == "all" and len(tokens) > self.n_batch:
            raise ValueError(f"{len(tokens)} rows do not fit one pass of {self.n_batch}.")
        if min(tokens) < 0 or max(tokens) >= self.n_vocab:
            bad = next(token for token in tokens if not 0 <= token < self.n_vocab)
            raise ValueError(f"Token id {bad} is outside the vocabulary of {self.n_vocab}.")
        self.passes.append(len(tokens))
        self._rows = []
        for i, token in enumerate(tokens):
            previous = self._tokens[-1] if self._tokens else 0
            self._tokens.append(token)
            wanted = rows == "all" or (rows == "last" and i == len(tokens) - 1)
            self._rows.append(self._table[previous, token] if wanted else None)

    def rewind(self, n_keep: int) -> None:
        if not 0 <= n_keep <= self.n_tokens:
            raise ValueError(f"Cannot keep {n_keep} of {self.n_tokens} tokens.")
        del self._tokens[n_keep:]

    def logits(self, row: int) -> np.ndarray:
        logits = self._rows[row]
        if logits is None:
            raise ValueError(f"Row {row} was evaluated without asking for its logits.")
        self.rows_read += 1
        return logits


class ToySampler:
    """Greedy, or one uniform number per draw at a temperature: the randomness llama.cpp's chain would use up."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._random = np.random.default_rng(sampling.seed)

    def draw(self, session: ToySession, row: int) -> int:
        logits = session.logits(row)
        if self.sampling.greedy:
            return int(logits.argmax())
        # In float32 a random number next to 1 would round to the whole sum, and the draw leave the vocabulary.
        weights = np.exp((logits - logits.max()) / self.sampling.temperature).cumsum(dtype=np.float64)
        return int(np.searchsorted(weights, self._random.random() * weights[-1], side="right"))
