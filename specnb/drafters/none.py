"""Plain decoding, said as a drafter: nothing is ever proposed."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Context, Cycle, Draft, Limits


class NoDrafter:
    name = "none"

    def begin(self, prompt: Sequence[int]) -> None:
        pass

    def propose(self, context: Context, limits: Limits) -> Draft:
        return Draft()

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass
