"""What every drafter answers, what one over the target's hidden states answers besides, and what it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

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


@runtime_checkable
class Head(Drafter, Protocol):
    """A drafter trained over one target's hidden states (EAGLE, Medusa).

    longest_k: the longest draft it was trained for; it makes none that is longer.
    """

    longest_k: int

    def catch_up(self, context: Context) -> None:
        """Reads the states that are new since the last call; ``propose`` does it too, this does it ahead of time."""


class VectorSession(Protocol):
    """What trained drafters need of a session that reads vectors (``backend.VectorSession``)."""

    n_ctx: int
    in_llama_s: float

    @property
    def states(self) -> np.ndarray: ...
    def extend(self, vectors: np.ndarray) -> None: ...
    def rewind(self, n_keep: int) -> None: ...
    def logits(self, row: int) -> np.ndarray: ...


class Rows(Protocol):
    """Rows of a matrix by their numbers: the target's token embeddings, say, by token."""

    def __call__(self, numbers: Sequence[int]) -> np.ndarray: ...


def heads(drafters: Sequence[Drafter]) -> Iterator[Head]:
    """The heads among drafters, those inside chains included."""
    for drafter in drafters:
        if isinstance(drafter, Head):
            yield drafter
        yield from heads(getattr(drafter, "drafters", ()))
