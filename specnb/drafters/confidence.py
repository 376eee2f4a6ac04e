"""How sure a drafter is of its best token: llama.cpp's number, which ``p_min`` is compared with."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE_CANDIDATES = 10
"""llama.cpp's confidence is a softmax over the ten best logits, so it is larger than over the vocabulary."""


def best_with_confidence(logits: np.ndarray) -> tuple[int, float]:
    """(the token with the highest logit, its probability among the ten best).

    logits: shape (n_vocab,). Source: llama.cpp's draft sampler, top_k(10) then a softmax at
    temperature 1 (common/speculative.cpp; src/llama-sampler.cpp).
    """
    best = int(logits.argmax())
    return best, float(1.0 / np.exp(_highest(logits, CONFIDENCE_CANDIDATES) - logits[best]).sum())


def _highest(logits: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` highest values, unordered; all of them when there are fewer.

    Partitioning a whole vocabulary takes as long as a twentieth of a small model's pass. So: lay
    the values out in columns and look only into the ``count`` columns with the highest maxima. A
    value outside them has at least ``count`` others, those maxima, that are no lower.
    """
    rows = math.isqrt(logits.size) // 4
    if rows < 2 or logits.size // rows <= count:
        return np.partition(logits, max(0, logits.size - count))[-count:]
    table = logits[: logits.size // rows * rows].reshape(rows, -1)
    columns = np.argpartition(table.max(axis=0), -count)[-count:]
    candidates = np.concatenate([table[:, columns].ravel(), logits[table.size :]])
    return np.partition(candidates, candidates.size - count)[-count:]
