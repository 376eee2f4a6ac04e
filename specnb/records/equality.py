"""Whether two texts are the same, and how logits round."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two runs of the same prompt and sampling first emit different tokens, and what a control says of it.

    position: of the emitted token, from 0. plain_token, other_token: None where that text has ended.
    gap: between the two best logits there, in a pass over one token. rounding: the largest change of a
    logit there when the same tokens are evaluated in passes as long as the other run's.
    reproduced: without any draft, the same sampler chooses ``plain_token`` from the control's row of a
    pass over one token and ``other_token`` from its row of the longer pass. For greedy text that
    implies gap <= 2 * rounding.
    """

    position: int
    plain_token: int | None
    other_token: int | None
    gap: float
    rounding: float
    reproduced: bool

    @property
    def within_rounding(self) -> bool:
        """Whether the two best could change places: each moves by ``rounding`` at most."""
        return self.gap <= 2.0 * self.rounding


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run held against plain decoding, token by token. compared: tokens up to the first difference, or all."""

    drafter: str
    k: int
    compared: int
    divergence: Divergence | None = None

    @property
    def verdict(self) -> str:
        """ "identical", "explained" (the control makes the same two choices) or "unexplained"."""
        if self.divergence is None:
            return "identical"
        return "explained" if self.divergence.reproduced else "unexplained"


@dataclass(frozen=True, slots=True)
class ComparisonSet:
    """Several comparisons, in the order in which they were made."""

    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Rounding:
    """How far logits move when the same tokens are evaluated N in a pass instead of one.

    changes: (N, largest change of any logit at any position, positions at which any logit changed).
    logit_range: mean over positions of the largest minus the smallest logit. gaps: between the two best
    logits, one a position, ascending.
    """

    label: str
    positions: int
    logit_range: float
    changes: tuple[tuple[int, float, int], ...] = field(metadata={"names": ("n", "change", "positions")})
    gaps: tuple[float, ...]

    @property
    def change_by_n(self) -> dict[int, float]:
        return {n: change for n, change, _ in self.changes}


@dataclass(frozen=True, slots=True)
class AcceptanceByRule:
    """Mean chance that a drafted token is kept along a given text (*recorded*), by rule, at several temperatures.

    sampled_rejection, sampled_match: the draft is drawn from the drafter's distribution, and kept by
    rejection sampling or when it equals the target's own draw. greedy: the draft is the drafter's best
    token, for which both rules have the same chance.
    """

    drafter: str
    positions: int
    temperatures: tuple[float, ...]
    sampled_rejection: tuple[float, ...]
    sampled_match: tuple[float, ...]
    greedy: tuple[float, ...]
