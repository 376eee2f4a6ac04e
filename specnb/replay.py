"""What a drafter would do at any k and p_min, told from text that is known already. No model runs.

With the same prompt and sampling the target writes the same text whatever is drafted: drafts change
how many passes it takes, never what it says. So one text tells the cycles of every setting:

* a look-up drafts from the text alone, so the loop is run again over the known text;
* a drafter with a model is asked once at every place, while the text is written plainly (``Rehearsal``). Which token
  it drafts behind others, and how sure it is, depends on them alone; a shorter k cuts its draft and a p_min ends it.

Both are exact. A look-up that learns from what was kept of its drafts learns it in the loop; drafters with a model do
not learn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

from . import decoder
from .drafters import Drafter
from .policy import Fixed
from .records import Draft, DraftPrice, Limits, Rehearsal


@dataclass(frozen=True, slots=True)
class Step:
    """One replayed cycle. computed: tokens to be paid for, the one that p_min throws away among them.

    None are where a look-up drafts. missed: tokens that the drafter's model has to read before it can draft.
    """

    drafted: int
    computed: int
    emitted: int
    missed: int = 0


def of_look_up(drafter: Drafter, prompt: Sequence[int], text: Sequence[int], k: int) -> tuple[Step, ...]:
    """The cycles of a drafter without a model on a known continuation. ValueError for an empty text."""
    if not text:
        raise ValueError("There is no text to replay: it is empty.")
    target = _KnownText(prompt, text, k)
    policy = Fixed(drafter, Limits(k=k))
    decoder.prefill(target, policy, prompt)
    cycles = decoder.decode(target, policy, target, prompt, max_tokens=len(text))
    return tuple(Step(len(cycle.drafted), len(cycle.drafted), len(cycle.emitted)) for cycle in cycles)


def of_rehearsal(rehearsal: Rehearsal, k: int, p_min: float = 0.0) -> tuple[Step, ...]:
    """The cycles of a drafter whose drafts hang on the text alone. ValueError for a k beyond the rehearsal's."""
    if k > rehearsal.k:
        raise ValueError(f"A rehearsal at k={rehearsal.k} cannot tell what k={k} would do.")
    text, steps, at, missed = rehearsal.text, [], 0, 0
    while at < len(text):
        draft = rehearsal.drafts[at]
        # As in the loop: a cycle emits one token more than it keeps, so the draft leaves room for that one.
        drafted, computed = _held_to(draft, min(k, len(text) - at - 1), p_min)
        right = (token == said for token, said in zip(draft.tokens[:drafted], text[at:], strict=False))
        kept = sum(1 for _ in takewhile(bool, right))
        steps.append(Step(drafted, computed, kept + 1, missed if computed else 0))
        at += kept + 1
        if computed:  # its model has read the pending token, and of the draft what it read to draft on
            missed = kept if rehearsal.rereads else max(0, kept - (computed - 1))
        else:
            missed += kept + 1
    return tuple(steps)


def _held_to(draft: Draft, longest: int, p_min: float) -> tuple[int, int]:
    """(tokens drafted, tokens computed) of a draft cut to a length and a p_min, which a look-up's knows nothing of."""
    if draft.confidences is None:
        return min(longest, len(draft.tokens)), 0
    confidences = draft.confidences[:longest]
    sure = sum(1 for _ in takewhile(lambda confidence: confidence >= p_min, confidences))
    return sure, min(sure + 1, len(confidences))


def ms_per_token(
    steps: Sequence[Step],
    verify_ms: Mapping[int, float],
    price: DraftPrice,
    *,
    other_ms: float = 0.0,
    switch_ms: float = 0.0,
) -> float:
    """Milliseconds per emitted token of replayed cycles.

    verify_ms: N -> ms. other_ms: sampling and bookkeeping of each cycle. switch_ms: of a pass over another N than the
    one before (``measure.switch_ms``). KeyError where a cycle's N was not measured.
    """
    spent = switch_ms * sum(step.drafted != before.drafted for before, step in pairwise(steps))
    for step in steps:
        n = step.drafted + 1
        if n not in verify_ms:
            raise KeyError(f"T(N) was not measured at N={n}, which these cycles need.")
        spent += price.ms(step.computed, step.missed) + verify_ms[n] + other_ms
    return spent / sum(step.emitted for step in steps)


def tokens_per_cycle(steps: Sequence[Step]) -> float:
    return sum(step.emitted for step in steps) / len(steps)


class _KnownText:
    """A target and sampler in one that always says the given text, whatever it is fed."""

    states = None

    def __init__(self, prompt: Sequence[int], text: Sequence[int], k: int) -> None:
        self._all = [*prompt, *text]
        # A draft may run past the end of the text, where it is cut by the budget but still has to fit.
        self.n_ctx = len(self._all) + 1
        self.n_batch = max(self.n_ctx, k + 1)
        self.n_vocab = max(self._all) + 1
        self.n_tokens = 0
        self._before_pass = 0

    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None:
        self._before_pass = self.n_tokens
        self.n_tokens += len(tokens)

    def rewind(self, n_keep: int) -> None:
        self.n_tokens = n_keep

    def draw(self, _session: object, row: int) -> int:
        return self._all[self._before_pass + row + 1]
