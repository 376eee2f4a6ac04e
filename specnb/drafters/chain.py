"""Several drafters in a fixed order: in every cycle the first that has a draft wins (common/speculative.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..records import Context, Cycle, Draft, Limits
from .protocol import Drafter


@dataclass(frozen=True, slots=True)
class Tally:
    """What one drafter of a chain did in the text so far.

    asked: proposals asked for. drafts: cycles in which its draft was verified. drafted, kept: tokens of these.
    """

    drafter: str
    asked: int = 0
    drafts: int = 0
    drafted: int = 0
    kept: int = 0


class Chain:
    """Asks its drafters in order and takes the first draft that is not empty; the later ones are not asked.

    llama.cpp's chain, except for the order: there it is fixed by kind (n-gram look-ups first: simple,
    map-k, map-k4v, mod, cache; then draft models), whatever the command line says; here it is the
    order given. Each drafter keeps its own lengths (a head those it was trained for) and is cut to the limits.
    Every drafter observes every cycle, and only the winner as its own; a cycle without a draft is nobody's.
    A model's draft shorter than ``n_min`` counts as none, and the next drafter is asked.

    Differs: llama.cpp feeds each verified batch to a draft model at once, whoever drafted; here a draft
    model catches up when it is asked, so the cycle after a run of look-ups pays for them.
    """

    name = "chain"

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        if not drafters:
            raise ValueError("A chain needs at least one drafter.")
        self.drafters = tuple(drafters)
        self._forget()

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """One for each drafter, in the order asked, since the text began."""
        return tuple(self._tallies)

    def begin(self, prompt: Sequence[int]) -> None:
        self._forget()
        for drafter in self.drafters:
            drafter.begin(prompt)

    def propose(self, context: Context, limits: Limits) -> Draft:
        self._winner = None
        for i, drafter in enumerate(self.drafters):
            self._tallies[i] = replace(self._tallies[i], asked=self._tallies[i].asked + 1)
            draft = drafter.propose(context, limits)
            if draft.tokens and (draft.confidences is None or len(draft.tokens) >= limits.n_min):
                self._winner = i
                return draft
        return Draft()

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        winner = self._winner if mine else None
        if winner is not None and cycle.drafted:
            tally = self._tallies[winner]
            self._tallies[winner] = replace(
                tally,
                drafts=tally.drafts + 1,
                drafted=tally.drafted + len(cycle.drafted),
                kept=tally.kept + cycle.kept,
            )
        for i, drafter in enumerate(self.drafters):
            drafter.observe(cycle, mine=i == winner)

    def _forget(self) -> None:
        self._winner: int | None = None
        self._tallies = [Tally(drafter.name) for drafter in self.drafters]
