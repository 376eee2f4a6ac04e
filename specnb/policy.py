"""Which drafter and how long a draft before each cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .drafters import Drafter
from .records import Limits


@dataclass(frozen=True)
class Fixed:
    """The same drafter and the same limits in every cycle. ``k`` 0 is plain decoding."""

    drafter: Drafter
    limits: Limits

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self.drafter,)

    @property
    def longest_k(self) -> int:
        return self.limits.k

    def choose(self, room: int) -> tuple[Drafter, Limits]:
        return self.drafter, replace(self.limits, room=room)
