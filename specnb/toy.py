"""A target without weights: a table of logits behind the same interface as ``backend.Session``.

For tests that must be exhaustive and for cells that must run without a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from .records import Penalties, Sampling


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
    def states(self) -> np.ndarray:
        """What a head may read: one row a token held, made of that token and the one before it. Shape (n, 2)."""
        previous = [0, *self._tokens][: self.n_tokens]
        return np.array([previous, self._tokens], dtype=np.float32).T

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


class ToyVectorSession:
    """The toy beside ``backend.VectorSession``: each vector is a (token before, token) pair, and its state is itself.

    Fed the target's own states and the tokens that follow, a head over it with the target's
    ``seed`` and ``sharpness`` drafts what the target would say.
    """

    def __init__(self, n_vocab: int = 8, *, seed: int = 0, sharpness: float = 2.0, n_ctx: int = 512) -> None:
        self._table = ToySession(n_vocab, seed=seed, sharpness=sharpness)._table
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self.in_llama_s = 0.0
        self.passes: list[int] = []
        self._held = np.empty((0, 2), dtype=np.float32)
        self._n_last = 0

    @property
    def n_tokens(self) -> int:
        return len(self._held)

    @property
    def states(self) -> np.ndarray:
        return self._held

    def extend(self, vectors: np.ndarray) -> None:
        if not len(vectors) or len(self._held) + len(vectors) > self.n_ctx:
            raise ValueError(f"{len(vectors)} more vectors do not fit beside {len(self._held)} of {self.n_ctx}.")
        self._held = np.concatenate([self._held, vectors])
        self._n_last = len(vectors)
        self.passes.append(len(vectors))

    def rewind(self, n_keep: int) -> None:
        if not 0 <= n_keep <= len(self._held):
            raise ValueError(f"Cannot keep {n_keep} of {len(self._held)} vectors.")
        self._held = self._held[:n_keep]

    def logits(self, row: int) -> np.ndarray:
        """Row of the last pass. Vectors that are no pair of tokens are read as the nearest one."""
        if not -self._n_last <= row < self._n_last:
            raise ValueError(f"The last pass had {self._n_last} rows; there is no row {row}.")
        before, token = np.rint(self._held[row if row < 0 else row - self._n_last]).astype(int) % self.n_vocab
        return self._table[before, token]


class ToySampler:
    """Greedy, or one uniform number per draw at a temperature: the randomness llama.cpp's chain would use up.

    Penalties look back over what was drawn and, before that, over ``prompt``. Filters are ignored.
    """

    def __init__(self, sampling: Sampling, *, prompt: Sequence[int] = ()) -> None:
        self.sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._seen = list(prompt)

    def draw(self, session: ToySession, row: int) -> int:
        logits = session.logits(row)
        if self.sampling.penalties is not None:
            logits = penalised(logits, self._seen, self.sampling.penalties)
        self._seen.append(self._chosen(logits))
        return self._seen[-1]

    def _chosen(self, logits: np.ndarray) -> int:
        if self.sampling.greedy:
            return int(logits.argmax())
        # In float32 a random number next to 1 would round to the whole sum, and the draw leave the vocabulary.
        weights = np.exp((logits - logits.max()) / self.sampling.temperature).cumsum(dtype=np.float64)
        return int(np.searchsorted(weights, self._random.random() * weights[-1], side="right"))


def penalised(logits: np.ndarray, seen: Sequence[int], penalties: Penalties) -> np.ndarray:
    """Logits, shape (n_vocab,), as llama.cpp's penalties leave them after these tokens (src/llama-sampler.cpp)."""
    counts = np.bincount(seen[-penalties.last_n :], minlength=len(logits)) if seen else np.zeros(len(logits))
    scaled = np.where(logits > 0, logits / penalties.repeat, logits * penalties.repeat)
    lowered = scaled - counts * penalties.frequency - penalties.presence
    return np.where(counts > 0, lowered, logits).astype(logits.dtype)


class ToyBatch:
    """Several toy sequences of the same model that share passes: the toy beside ``backend.BatchSession``.

    sequences: one ``ToySession`` each. ``passes``: rows of every shared pass. Options as in ``ToySession``.
    """

    def __init__(self, n_sequences: int, n_vocab: int = 8, **options: int | float) -> None:
        self.sequences = tuple(ToySession(n_vocab, **options) for _ in range(n_sequences))
        self.passes: list[int] = []
        self._rows: list[np.ndarray] = []

    def extend(self, tokens: Mapping[int, Sequence[int]]) -> dict[int, int]:
        first_row: dict[int, int] = {}
        self._rows = []
        for index, each in tokens.items():
            self.sequences[index].extend(each)
            first_row[index] = len(self._rows)
            self._rows += [self.sequences[index].logits(row) for row in range(len(each))]
        self.passes.append(len(self._rows))
        return first_row

    def logits(self, row: int) -> np.ndarray:
        return self._rows[row]
