"""How often each rule of verification keeps a draft, from two models' distributions along one text.

That is *recorded* alpha: the text is given, so no draft ever changes what comes next. It flatters,
but it flatters all rules alike, and the same positions serve every temperature.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import verify
from .backend import Session
from .records import AcceptanceByRule

TEMPERATURES = tuple(i / 10 for i in range(11))


def by_rule(
    target: Session,
    draft: Session,
    tokens: Sequence[int],
    *,
    n_prompt: int,
    drafter: str,
    temperatures: Sequence[float] = TEMPERATURES,
) -> AcceptanceByRule:
    """Means over the positions that decide ``tokens[n_prompt:]``, whole vocabulary, no filters.

    target, draft: sessions of the same vocabulary; both are emptied. Raises ValueError without a
    token before or after n_prompt.
    """
    if not 0 < n_prompt < len(tokens):
        raise ValueError(f"{len(tokens)} tokens with a prompt of {n_prompt} leave no position to look at.")
    target_rows, draft_rows = (_rows(session, tokens, n_prompt) for session in (target, draft))
    found = [_means(target_rows, draft_rows, temperature) for temperature in temperatures]
    rejection, match, greedy = zip(*found, strict=True)
    return AcceptanceByRule(
        drafter=drafter,
        positions=len(target_rows),
        temperatures=tuple(temperatures),
        sampled_rejection=rejection,
        sampled_match=match,
        greedy=greedy,
    )


def _means(target_rows: np.ndarray, draft_rows: np.ndarray, temperature: float) -> tuple[float, float, float]:
    """(drawn draft and rejection sampling, drawn draft and exact match, greedy draft and either rule)."""
    p_target, p_draft = verify.softmax(target_rows, temperature), verify.softmax(draft_rows, temperature)
    rules = (verify.acceptance_of_rejection, verify.acceptance_of_match, verify.acceptance_of_greedy)
    return tuple(float(rule(p_target, p_draft).mean()) for rule in rules)


def _rows(session: Session, tokens: Sequence[int], n_prompt: int) -> np.ndarray:
    """Logits that decide each token behind the prompt, float32 of shape (len(tokens) - n_prompt, n_vocab)."""
    session.rewind(0)
    if n_prompt > 1:
        session.extend(tokens[: n_prompt - 1], rows="none")
    rows = []
    for token in tokens[n_prompt - 1 : -1]:
        session.extend([token], rows="last")
        rows.append(session.logits(-1).copy())
    session.rewind(0)
    return np.stack(rows)
