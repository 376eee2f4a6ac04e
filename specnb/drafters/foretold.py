"""A draft out of a text that is known beforehand: what a drafter of a given alpha would do, at no cost.

No drafter to use, but one to measure with. Its k and its alpha are what the experiment says, so what is
left to see is the cost of the passes (llama.cpp has ``--spec-synth-rates`` for the same purpose). And a
drafter that remembers an earlier answer to the same prompt is just this, with an alpha of 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Context, Cycle, Draft, Limits


class Foretold:
    """Proposes ``answer``, token by token, each of them right with probability alpha and otherwise spoilt.

    answer: what follows the prompt. Which tokens are spoilt is drawn once, by ``seed``, so a token does
    not change by being proposed again. Where the answer is used up, or has been left behind by a text
    that went another way, nothing is proposed. ValueError for an alpha outside [0, 1].
    """

    name = "foretold"

    def __init__(self, answer: Sequence[int], *, alpha: float = 1.0, seed: int = 0) -> None:
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"alpha is a probability between 0 and 1; got {alpha}.")
        spoilt = np.random.default_rng(seed).random(len(answer)) >= alpha
        # Any other token is a wrong one; the id before (after 0: 1) is sure to be in the vocabulary.
        wrong = (token - 1 if token else 1 for token in answer)
        self._proposed = tuple(w if bad else t for t, w, bad in zip(answer, wrong, spoilt, strict=True))
        self._answer = tuple(answer)
        self._n_prompt = 0

    def begin(self, prompt: Sequence[int]) -> None:
        self._n_prompt = len(prompt)

    def propose(self, context: Context, limits: Limits) -> Draft:
        done = len(context.tokens) - self._n_prompt
        if tuple(context.tokens[self._n_prompt :]) != self._answer[:done]:
            return Draft()
        return Draft(self._proposed[done : done + limits.longest])

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass
