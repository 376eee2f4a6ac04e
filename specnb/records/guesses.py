"""What the reader expected before looking."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Guess:
    """What the reader expected before looking, and what it was. name: of the prediction, "01-t8"."""

    name: str
    guess: float = field(metadata={"signed": True})
    truth: float = field(metadata={"signed": True})

    @property
    def miss(self) -> float | None:
        """(guess - truth) / |truth|; None where the truth is 0."""
        return (self.guess - self.truth) / abs(self.truth) if self.truth else None


@dataclass(frozen=True, slots=True)
class Guesses:
    """A reader's guesses, one a name, in the order in which they were first made."""

    guesses: tuple[Guess, ...] = ()
    provenance: str = "Made by the reader of the notebooks in this clone, before looking."

    def with_one(self, made: Guess) -> Guesses:
        """With this guess in the place of an earlier one of its name, or at the end."""
        by_name = {each.name: each for each in self.guesses} | {made.name: made}
        return Guesses(tuple(by_name.values()), self.provenance)
