"""Asks a drafter at every place of a text and lets nothing of it be verified: what it would have drafted anywhere.

No drafter to use, but one to measure with (``replay.of_rehearsal``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Context, Cycle, Draft, Limits
from .protocol import Drafter


class Rehearsing:
    """Plain decoding beside which ``drafter`` drafts, in every cycle, as much as the limits allow.

    drafts: one for each cycle since the text began. For a drafter that learns from what was kept of its drafts, this is
    no rehearsal: nothing is.
    """

    name = "rehearsing"

    def __init__(self, drafter: Drafter) -> None:
        self.drafters = (drafter,)
        self.drafts: list[Draft] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self.drafters[0].begin(prompt)
        self.drafts = []

    def propose(self, context: Context, limits: Limits) -> Draft:
        self.drafts.append(self.drafters[0].propose(context, limits))
        return Draft()

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        self.drafters[0].observe(cycle, mine=False)
