"""The three calls every drafter answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..records import Context, Cycle, Draft, Limits


class Drafter(Protocol):
    """Proposes tokens; never decides any. A drafter keeps what it needs by itself."""

    name: str

    def begin(self, prompt: Sequence[int]) -> None:
        """A new text starts with these tokens; forget the one before. May do the prompt's work ahead."""

    def propose(self, context: Context, limits: Limits) -> Draft:
        """Tokens that may follow the context, at most ``limits.longest``; an empty draft is legal."""

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        """What verification made of a draft, and whether the draft was this drafter's."""
