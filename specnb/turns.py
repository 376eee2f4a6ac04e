"""Texts that take turns, cycle by cycle, so that whatever slows the machine slows all of them alike.

Whole runs of a second or two, one after the other, cannot be told apart within a tenth on a shared machine:
what a pass takes wanders that much from one second to the next. Here several settings write the same prompt at
once, each in a session of its own on the same weights, and the next cycle always goes to the shortest text: all
of them are then at the same place of the text at the same moment.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from .records import DISTURBED, Cycle, Run

Generation = Generator[Cycle, None, Run]
"""``measure.generation``: a text under way."""

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Timed:
    """A run that took turns with others. ms: per token, None without any.

    disturbed: cycles whose pass was put at the median of its like, the passes over as many rows in all texts of the
    race: one that took over ``DISTURBED`` times as long was held up by something else, which hits one text and
    not the others by chance.
    """

    run: Run
    ms: float | None
    disturbed: int


def race(texts: Mapping[Label, Generation], *, seed: int = 0) -> dict[Label, Timed]:
    """Writes all texts to their ends and times each: label -> what it took. Their sessions must not be shared.

    Among texts of the same length the next is drawn by lot: strict turns could fall in with a rhythm of the machine.
    """
    runs = _written(texts, random.Random(seed))
    passes: dict[int, list[float]] = {}
    for run in runs.values():
        for cycle in run.cycles:
            passes.setdefault(cycle.n_rows, []).append(cycle.verify_s)
    like_s = {n: median(found) for n, found in passes.items()}
    return {label: _timed(run, like_s) for label, run in runs.items()}


def _written(texts: Mapping[Label, Generation], order: random.Random) -> dict[Label, Run]:
    emitted, runs = dict.fromkeys(texts, 0), {}
    while len(runs) < len(texts):
        label = min((label for label in texts if label not in runs), key=lambda each: (emitted[each], order.random()))
        try:
            emitted[label] += len(next(texts[label]).emitted)
        except StopIteration as end:
            runs[label] = end.value
    return {label: runs[label] for label in texts}


def _timed(run: Run, like_s: Mapping[int, float]) -> Timed:
    held_up_s = [
        cycle.verify_s - like_s[cycle.n_rows]
        for cycle in run.cycles
        if cycle.verify_s > DISTURBED * like_s[cycle.n_rows]
    ]
    ms = 1e3 * (run.decode_s - sum(held_up_s)) / run.emitted if run.emitted else None
    return Timed(run, ms, len(held_up_s))
