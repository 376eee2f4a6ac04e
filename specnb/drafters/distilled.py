"""A draft model distilled from the target, with the target's embeddings and only its most frequent tokens as output.

From the target's point of view an ordinary draft model; the difference is inside. A llama GGUF has
one vocabulary size, so the tokens go in as the target's embedding rows and the reduced output's
rows are mapped to the target's ids here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .draft_model import DraftModel
from .protocol import Rows, VectorSession


class EmbeddedTokens:
    """A session over tokens made of one over vectors. ``logits`` are over the reduced vocabulary.

    n_vocab: how many tokens the embedding knows.
    """

    def __init__(self, session: VectorSession, embedding: Rows, n_vocab: int) -> None:
        self.n_ctx = session.n_ctx
        self.n_vocab = n_vocab
        self._session = session
        self._embedding = embedding
        self._tokens: list[int] = []

    @property
    def in_llama_s(self) -> float:
        """Seconds spent inside llama.cpp."""
        return self._session.in_llama_s

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None:
        self._session.extend(self._embedding(tokens))
        self._tokens.extend(tokens)

    def rewind(self, n_keep: int) -> None:
        del self._tokens[n_keep:]
        self._session.rewind(n_keep)

    def logits(self, row: int) -> np.ndarray:
        return self._session.logits(row)


class Distilled(DraftModel):
    """vocabulary: the target's ids of the output's rows."""

    name = "distilled"

    def __init__(self, session: EmbeddedTokens, vocabulary: np.ndarray) -> None:
        super().__init__(session)
        self._vocabulary = vocabulary

    def _best(self) -> tuple[int, float]:
        row, confidence = super()._best()
        return int(self._vocabulary[row]), confidence
