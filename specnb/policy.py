"""Which drafter and how long a draft before each cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .drafters import Drafter
from .records import Context, Cycle, Draft, Limits


@dataclass(frozen=True)
class Fixed:
    """The same drafter and the same limits in every cycle. ``k`` 0 is plain decoding."""

    drafter: Drafter
    limits: Limits

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self.drafter,)

    def longest_k(self, drafter: Drafter) -> int:
        return self.limits.k

    def choose(self, room: int) -> tuple[Drafter, Limits]:
        return self.drafter, replace(self.limits, room=room)

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        drafter, limits = self.choose(room)
        return drafter, limits, drafter.propose(context, limits)

    def observe(self, cycle: Cycle) -> None:
        pass
