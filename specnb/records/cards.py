"""What one machine measured, to be laid beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .costs import CostCurve
from .runs import Machine
from .tuning import Choice, DraftPrice


@dataclass(frozen=True, slots=True)
class CardAlpha:
    """How good a drafter's tokens are on one kind of text: live alpha, (low, high) where only bounds are known.

    kind: of prompt; "" for all, or not told. k: the longest draft allowed. interval_low, interval_high: 95 %, where
    counts are known. kept, drafted: the counts behind it.
    """

    drafter: str
    kind: str
    k: int
    low: float
    high: float
    interval_low: float | None = None
    interval_high: float | None = None
    kept: int | None = None
    drafted: int | None = None

    def __post_init__(self) -> None:
        where = f"alpha of {self.drafter} on {self.kind or 'all kinds'!r}"
        for name in ("low", "high", "interval_low", "interval_high"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError(f"The {where} has {name} {value}: alpha is a probability between 0 and 1.")
        if self.low > self.high:
            raise ValueError(f"The {where} runs from {self.low} to {self.high}: the lower bound is the larger one.")
        if self.kept is not None and self.drafted is not None and self.kept > self.drafted:
            raise ValueError(f"The {where} rests on {self.kept} kept of {self.drafted} drafted: acceptance over 1.")

    @property
    def has_interval(self) -> bool:
        return self.interval_low is not None and self.interval_high is not None


@dataclass(frozen=True, slots=True)
class MachineCard:
    """One machine with one target, to be laid beside others: what passes, drafts and settings cost and bring there.

    label: what to call it in a figure. provenance: who measured it, when and how. target: model and format that
    alphas, prices and choices are of. draft_models: by drafter name. staircases: the target's first, then others'.
    prices: of drafts; look-ups have none. best: a choice for each prompt kind and for all (kind ""). plain_ms: of a
    token with speculation switched off, where that is known apart from the staircase.
    """

    label: str
    machine: Machine
    provenance: str
    target: str
    staircases: tuple[CostCurve, ...] = ()
    draft_models: Mapping[str, str] = field(default_factory=dict)
    prices: tuple[DraftPrice, ...] = ()
    alphas: tuple[CardAlpha, ...] = ()
    best: tuple[Choice, ...] = ()
    plain_ms: float | None = None

    def __post_init__(self) -> None:
        for name in ("label", "target"):
            if not getattr(self, name).strip():
                raise ValueError(f"The machine card has an empty {name}: nobody could tell it from others.")
        for curve in self.staircases:
            if 1 not in curve.ns:
                measured = ", ".join(map(str, curve.ns))
                raise ValueError(
                    f"The staircase {curve.label!r} of the card {self.label!r} lacks N=1, the unit in which cards are "
                    f"compared (measured: {measured}). Measure N=1."
                )
        if self.plain_ms is not None and not 0.0 < self.plain_ms < float("inf"):
            raise ValueError(f"The card {self.label!r} says that a plain token takes {self.plain_ms} ms.")
        for choice in self.best:
            ends = choice.interval or ()
            for value in (choice.speedup, *ends):
                if value is not None and not 0.0 < value < float("inf"):
                    raise ValueError(f"The card {self.label!r} says {value} times as fast on {choice.kind!r}.")
            if ends and ends[0] > ends[1]:
                raise ValueError(f"The card {self.label!r} has the interval {ends[0]} to {ends[1]} on {choice.kind!r}.")

    @property
    def staircase(self) -> CostCurve | None:
        """The target's staircase; None where none was measured."""
        return self.staircases[0] if self.staircases else None

    @property
    def baseline_ms(self) -> float | None:
        """Milliseconds of a plain token, over which speedups are told: ``plain_ms``, else the staircase's T(1)."""
        return self.staircase.median_ms[1] if self.plain_ms is None and self.staircase is not None else self.plain_ms
