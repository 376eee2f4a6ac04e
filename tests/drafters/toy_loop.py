"""Texts over the toy target: the loop with a drafter, the same text without the loop, and what a drafter is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specnb.decoder import decode, prefill
from specnb.drafters.protocol import Drafter
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Limits, Sampling
from specnb.toy import ToySampler, ToySession

N_VOCAB = 12  # more than the ten candidates of a confidence

TOKEN_AND_NEXT = np.array([[0, 1, *[0] * 8], [0, 0, 1, *[0] * 7]], dtype=np.float32)
"""An EAGLE projection that picks the token out of the toy's state and the next one out of ``embedding``."""


def embedding(tokens: Sequence[int]) -> np.ndarray:
    return np.array([(token, 0) for token in tokens], dtype=np.float32)


def context_of(tokens: Sequence[int]) -> Context:
    """What the loop shows a drafter of a toy target: the last token is pending."""
    target = ToySession(N_VOCAB)
    if len(tokens) > 1:
        target.extend(tokens[:-1], rows="none")
    return Context(tuple(tokens), target.states)


def plain(
    seed: int, prompt: tuple[int, ...], sampling: Sampling, n_tokens: int, *, n_vocab: int = N_VOCAB
) -> tuple[int, ...]:
    """One token a pass, without the loop."""
    session, sampler = ToySession(n_vocab, seed=seed), ToySampler(sampling)
    session.extend(prompt)
    tokens = []
    for _ in range(n_tokens):
        tokens.append(sampler.draw(session, -1))
        session.extend(tokens[-1:])
    return tuple(tokens)


def generate(
    drafter: Drafter,
    seed: int,
    prompt: tuple[int, ...],
    sampling: Sampling | None = None,
    *,
    k: int = 4,
    n_min: int = 0,
    p_min: float = 0.0,
    n_tokens: int = 60,
    n_vocab: int = N_VOCAB,
) -> tuple[Cycle, ...]:
    """One run, greedy unless ``sampling`` is given; its clock stands still, so that equal runs compare equal."""
    session, policy = ToySession(n_vocab, seed=seed), Fixed(drafter, Limits(k=k, n_min=n_min, p_min=p_min))
    prefill(session, policy, prompt)
    sampler = ToySampler(sampling or Sampling())
    return tuple(decode(session, policy, sampler, prompt, max_tokens=n_tokens, clock=lambda: 0.0))


def emitted(cycles: Sequence[Cycle]) -> tuple[int, ...]:
    return tuple(token for cycle in cycles for token in cycle.emitted)
