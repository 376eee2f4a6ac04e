"""Several texts at once: each drafts for itself, one target pass verifies the drafts of all.

The loop is ``decoder``'s: a ``Text`` for each sequence proposes and settles; here they only share the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Protocol

from .decoder import Sampler, Text
from .records import Cycle, SharedPass


class Batch(Protocol):
    """What the loop needs of several sequences (``backend.BatchSession``, ``toy.ToyBatch``)."""

    def extend(self, tokens: Mapping[int, Sequence[int]]) -> Mapping[int, int]: ...


def decode_together(
    session: Batch,
    texts: Sequence[Text],
    samplers: Sequence[Sampler],
    *,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[dict[int, Cycle]]:
    """Yields, per shared target pass, the cycle of each text that took part: its index -> its cycle.

    texts: one for each sequence of the session from the first on, their prompts evaluated
    (``decoder.prefill``). samplers: one each, since a sampler's state belongs to one text. A text that
    ends leaves; the others go on. Every cycle's ``verify_s`` is the whole pass: that is what its text
    waited for. ValueError when texts and samplers are not equally many.
    """
    if len(texts) != len(samplers):
        raise ValueError(f"Each text needs a sampler of its own; got {len(texts)} texts and {len(samplers)} samplers.")
    while not stopped():
        proposed = {i: text.propose() for i, text in enumerate(texts) if not text.finished}
        if not proposed:
            return
        start = clock()
        first_row = session.extend(proposed)
        pass_s = clock() - start
        yield {i: _settled(texts[i], samplers[i], session, first_row[i], pass_s) for i in proposed}


def _settled(text: Text, sampler: Sampler, session: Batch, first_row: int, pass_s: float) -> Cycle:
    return text.settle(lambda row: sampler.draw(session, first_row + row), pass_s=pass_s)


def shared_pass(cycles: Mapping[int, Cycle]) -> SharedPass:
    """The sums over the cycles of one pass. ValueError without cycles."""
    if not cycles:
        raise ValueError("A shared pass needs at least one cycle.")
    each = tuple(cycles.values())
    return SharedPass(
        sequences=len(each),
        rows=sum(cycle.n_rows for cycle in each),
        drafted=sum(len(cycle.drafted) for cycle in each),
        tested=sum(cycle.tested for cycle in each),
        kept=sum(cycle.kept for cycle in each),
        emitted=sum(len(cycle.emitted) for cycle in each),
        draft_s=sum(cycle.draft_s for cycle in each),
        verify_s=each[0].verify_s,
        other_s=sum(cycle.sampling_s + cycle.other_s for cycle in each),
    )
