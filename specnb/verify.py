"""Verification: which drafted tokens are kept, and which token comes next.

Two rules. *Exact match* is llama.cpp's (common/sampling.cpp, common_sampler_sample_and_accept_n), and
the one the loop uses: at every position the target draws its own token as it always would, and the
drafted token is kept only when it is that very token. What is emitted is always the target's own
draw, so the text cannot depend on the drafter; only the speed can.

*Rejection sampling* is the papers' (Leviathan et al. 2023, arXiv 2211.17192, algorithm 1; Chen et al.
2023, arXiv 2302.01318): a drafted token is kept with probability min(1, p_target / p_draft), and
after a refusal the next token comes from what the draft left over. The text then depends on the draft,
but its distribution does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Verdict:
    """kept: drafted tokens accepted. tested: those looked at. emitted: kept tokens, then the target's own.

    ended: whether the last emitted token ends the text.
    """

    kept: int
    tested: int
    emitted: tuple[int, ...]
    ended: bool = False


def exact_match(
    drafted: Sequence[int], draw: Callable[[int], int], ends_text: Callable[[int], bool] = lambda _token: False
) -> Verdict:
    """Compares the draft with the target's draws, row by row, up to the first difference.

    drafted:   the proposed tokens, n of them; the pass had n+1 rows.
    draw:      row -> the target's token there (row 0 follows the pending token). It is called once
               for every emitted token and never otherwise, so a sampler's state advances with the text.
    ends_text: whether a token ends the generation; called once for every emitted token, in order.
               Nothing is emitted after such a token.
               (llama.cpp emits one more when the ending was the last drafted token; nobody reads it.)

    When every drafted token is kept, row n holds the target's next token already: the bonus token.
    """
    emitted: list[int] = []
    for row, proposal in enumerate(drafted):
        own = draw(row)
        emitted.append(own)
        ended = ends_text(own)
        if own != proposal:
            return Verdict(kept=row, tested=row + 1, emitted=tuple(emitted), ended=ended)
        if ended:
            return Verdict(kept=row + 1, tested=row + 1, emitted=tuple(emitted), ended=True)
    emitted.append(draw(len(drafted)))
    return Verdict(kept=len(drafted), tested=len(drafted), emitted=tuple(emitted), ended=ends_text(emitted[-1]))


def rejection_sampling(
    drafted: Sequence[int],
    p_draft: np.ndarray,
    p_target: np.ndarray,
    random: np.random.Generator,
    ends_text: Callable[[int], bool] = lambda _token: False,
) -> Verdict:
    """Keeps drafted tokens by modified rejection sampling, up to the first refusal.

    drafted:  n tokens. p_draft: shape (n, n_vocab), row i is the distribution that token i was really
              drawn from; for a greedy draft all of it stands on that token. p_target: shape
              (n + 1, n_vocab), row 0 follows the pending token. Raises ValueError for other shapes.
    """
    if np.shape(p_draft)[:1] != (len(drafted),) or np.shape(p_target)[:1] != (len(drafted) + 1,):
        raise ValueError(
            f"{len(drafted)} drafted tokens need as many rows of p_draft and one more of p_target; "
            f"got {len(p_draft)} and {len(p_target)}."
        )
    emitted: list[int] = []
    for row, proposal in enumerate(drafted):
        kept = bool(random.random() * p_draft[row][proposal] < p_target[row][proposal])
        own = int(proposal) if kept else drawn(residual(p_target[row], p_draft[row]), random)
        emitted.append(own)
        ended = ends_text(own)
        if not kept or ended:
            return Verdict(kept=row + kept, tested=row + 1, emitted=tuple(emitted), ended=ended)
    emitted.append(drawn(p_target[-1], random))
    return Verdict(kept=len(drafted), tested=len(drafted), emitted=tuple(emitted), ended=ends_text(emitted[-1]))


def residual(p_target: np.ndarray, p_draft: np.ndarray) -> np.ndarray:
    """What the next token is drawn from after a refusal: max(0, p_target - p_draft), scaled to sum to 1.

    Where the two are equal nothing can be refused; rounding may ask all the same, and p_target is given.
    """
    left = np.maximum(0.0, p_target - p_draft)
    total = left.sum()
    return left / total if total > 0.0 else p_target


def drawn(probabilities: np.ndarray, random: np.random.Generator) -> int:
    """One token of a distribution, shape (n_vocab,), by one random number."""
    sums = np.cumsum(probabilities, dtype=np.float64)
    return int(np.searchsorted(sums, random.random() * sums[-1], side="right"))


def acceptance_of_match(p_target: np.ndarray, p_draft: np.ndarray) -> np.ndarray:
    """Chance that a draft *drawn* from p_draft equals the target's own draw: the sum of p_target * p_draft.

    Arrays of shape (..., n_vocab); the result has shape (...).
    """
    return (p_target * p_draft).sum(axis=-1)


def acceptance_of_rejection(p_target: np.ndarray, p_draft: np.ndarray) -> np.ndarray:
    """Chance that rejection sampling keeps a draft *drawn* from p_draft: the sum of min(p_target, p_draft).

    Leviathan et al. 2023, theorem 3.5. Shapes as in ``acceptance_of_match``, which is never larger.
    """
    return np.minimum(p_target, p_draft).sum(axis=-1)


def acceptance_of_greedy(p_target: np.ndarray, p_draft: np.ndarray) -> np.ndarray:
    """Chance that the drafter's best token is kept, by either rule: p_target of it.

    It is what both sums above become when all of p_draft stands on one token. Shapes as there.
    """
    best = np.argmax(p_draft, axis=-1)[..., None]
    return np.take_along_axis(np.asarray(p_target), best, axis=-1)[..., 0]


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities, float64 of the same shape, over the last axis; at temperature 0 all of it on the best token."""
    logits = np.asarray(logits, dtype=np.float64)
    if temperature == 0.0:
        return (np.arange(logits.shape[-1]) == logits.argmax(axis=-1)[..., None]).astype(np.float64)
    weights = np.exp((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=-1, keepdims=True)
