"""Sweeps over settings, and the advice drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median

from .costs import CostCurve
from .runs import Limits, Machine


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reader can set. Plain decoding is the drafter "none" with k = 0."""

    drafter: str
    k: int
    p_min: float = 0.0

    def __post_init__(self) -> None:
        # As stored: a setting read back from a recording is to be equal to the one that was planned.
        object.__setattr__(self, "p_min", float(f"{self.p_min:.6g}"))
        _ = self.limits  # refuses what no run could be held to

    @property
    def limits(self) -> Limits:
        """What a run with this setting is held to."""
        return Limits(k=self.k, p_min=self.p_min)

    @property
    def plain(self) -> bool:
        return self.k == 0


PLAIN = Setting("none", 0)
"""Plain decoding, always a candidate."""

SMALL_GAIN = 0.05
"""A gain below this share is called small: its interval knows the noise of timing, and nothing of other prompts."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One point of a sweep: a setting that wrote the prompt of one kind, once.

    stage: "screen" or "final" (measured after all choices, so that choosing flatters none) of a racing
    sweep, "grid" of an exhaustive one. passes: target passes. seconds: of decoding, the prompt excluded.
    contended: another process held a core meanwhile. looped: the text repeats itself, which flatters drafters.
    """

    drafter: str
    k: int
    p_min: float
    kind: str
    stage: str
    repeat: int
    emitted: int
    passes: int
    drafted: int
    kept: int
    seconds: float
    contended: bool = False
    looped: bool = False

    def __post_init__(self) -> None:
        where = f"The trial of {self.drafter}, k={self.k} on {self.kind!r}"
        if not 0.0 < self.seconds < float("inf"):
            raise ValueError(f"{where} took {self.seconds} s: a time is above 0 and finite.")
        if not 0 <= self.kept <= self.drafted:
            raise ValueError(f"{where} kept {self.kept} of {self.drafted} drafted tokens: acceptance is at most 1.")
        if not self.passes <= self.emitted <= (self.k + 1) * self.passes or self.passes < 1:
            raise ValueError(
                f"{where} emitted {self.emitted} tokens in {self.passes} passes: tokens per cycle lie between 1 and "
                f"k + 1 = {self.k + 1}."
            )

    @property
    def setting(self) -> Setting:
        return Setting(self.drafter, self.k, self.p_min)

    @property
    def ms_per_token(self) -> float:
        """Milliseconds of decoding per emitted token."""
        return 1e3 * self.seconds / self.emitted

    @property
    def tokens_per_cycle(self) -> float:
        return self.emitted / self.passes

    @property
    def acceptance_rate(self) -> float | None:
        """Kept / drafted. None when nothing was drafted."""
        return self.kept / self.drafted if self.drafted else None


@dataclass(frozen=True, slots=True)
class Trials:
    """Points that were measured at once, in turns; or one alone."""

    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a setting would cost on one kind, replayed from a known text and paid with costs measured apart."""

    drafter: str
    k: int
    p_min: float
    kind: str
    ms_per_token: float
    tokens_per_cycle: float

    @property
    def setting(self) -> Setting:
        return Setting(self.drafter, self.k, self.p_min)


@dataclass(frozen=True, slots=True)
class DraftPrice:
    """Milliseconds of a draft of one token, and of each further token, measured between passes of the target.

    catch_up_ms: for each token of the text, but the last, that the drafter's model has not read before; None where
    that was not measured, and then nothing is added for it.
    """

    drafter: str
    first_ms: float
    further_ms: float
    catch_up_ms: float | None = None

    def __post_init__(self) -> None:
        for name in ("first_ms", "further_ms", "catch_up_ms"):
            ms = getattr(self, name)
            if ms is not None and not 0.0 <= ms < float("inf"):
                raise ValueError(f"A draft of {self.drafter} costs 0 ms or more, and not {ms} ms ({name}).")

    def ms(self, tokens: int, missed: int = 0) -> float:
        """Milliseconds of a draft for which ``tokens`` tokens were computed, after ``missed`` that were not read."""
        drafting_ms = self.first_ms + (tokens - 1) * self.further_ms if tokens else 0.0
        return drafting_ms + missed * (self.catch_up_ms or 0.0)


@dataclass(frozen=True, slots=True)
class SweepCosts:
    """What passes and drafts cost, measured apart. prices: none for look-ups, which run no model."""

    curve: CostCurve
    prices: tuple[DraftPrice, ...] = ()

    def price(self, drafter: str) -> DraftPrice:
        """A drafter's price; free where none was measured."""
        return next((price for price in self.prices if price.drafter == drafter), DraftPrice(drafter, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Points over drafter, k, p_min and prompt kind, of one target on one machine.

    method: "racing" (forecasts first, the few most promising measured) or "exhaustive" (every cell measured).
    settings: every setting looked at. complete: False where it was stopped. rerun: points that were measured again
    because of other programs. seconds: spent measuring, over all sittings.
    """

    machine: Machine
    target: str
    method: str
    kinds: tuple[str, ...]
    settings: tuple[Setting, ...]
    max_tokens: int
    costs: SweepCosts
    trials: tuple[Trial, ...]
    seconds: float
    complete: bool
    forecasts: tuple[Forecast, ...] = ()
    rerun: tuple[Trial, ...] = ()

    def of(self, setting: Setting, kind: str) -> tuple[Trial, ...]:
        """The trials to judge a setting by on one kind: the final ones where there are any, else all."""
        found = [trial for trial in self.trials if trial.setting == setting and trial.kind == kind]
        return tuple([trial for trial in found if trial.stage == "final"] or found)

    def measured(self, kind: str) -> tuple[Setting, ...]:
        """Settings with trials on one kind, plain decoding first."""
        found = dict.fromkeys(trial.setting for trial in self.trials if trial.kind == kind)
        return tuple(sorted(found, key=lambda setting: not setting.plain))

    def run_speedups(self, kind: str) -> Mapping[Setting, float]:
        """Speculative setting -> times as fast as plain decoding, where that was run in the same stage on this kind.

        A machine is faster in one stage than in the next, so times of two stages do not compare: what was only
        screened has no speedup here. Final rounds were taken in turns, so their times add up; others have medians.
        """
        plain = self.of(PLAIN, kind)
        found = {}
        for setting in self.measured(kind):
            trials = self.of(setting, kind)
            if not setting.plain and plain and trials[0].stage == plain[0].stage:
                middle = fmean if trials[0].stage == "final" else median
                ms, plain_ms = (middle(trial.ms_per_token for trial in each) for each in (trials, plain))
                found[setting] = plain_ms / ms
        return found

    def forecast_speedups(self, kind: str) -> Mapping[Setting, float]:
        """Speculative setting -> times as fast as plain decoding, forecast against forecast.

        So what all forecasts leave out is left out on both sides.
        """
        ms = {each.setting: each.ms_per_token for each in self.forecasts if each.kind == kind}
        return {setting: ms[PLAIN] / each for setting, each in ms.items() if not setting.plain and PLAIN in ms}


@dataclass(frozen=True, slots=True)
class Choice:
    """What to set for one prompt kind (or for all: kind "").

    verdict: "on", "off" or "unclear". setting: the fastest that was measured, plain decoding aside; None where
    nothing else was measured. speedup: of it over plain decoding, with its 95 % interval where there were three
    repeats. ties: other settings that cannot be told from it. looped: the text repeats itself.
    """

    kind: str
    verdict: str
    setting: Setting | None
    speedup: float | None
    interval: tuple[float, float] | None = None
    ties: tuple[Setting, ...] = ()
    looped: bool = False
    contended: bool = False

    @property
    def advised(self) -> Setting:
        """The setting to use: plain decoding unless the verdict is "on"."""
        return self.setting if self.setting is not None and self.verdict == "on" else PLAIN

    @property
    def small_gain(self) -> bool:
        """Whether "on" rests on so little that another prompt may well undo it."""
        return self.verdict == "on" and self.speedup is not None and self.speedup < 1.0 + SMALL_GAIN


@dataclass(frozen=True, slots=True)
class Hopeless:
    """A draft length that no alpha can rescue: even if every token is kept, a token costs more than a plain one."""

    drafter: str
    k: int
    ms_per_token_at_best: float
    plain_ms: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set here. by_kind: a choice for each prompt kind. overall: one setting for all kinds, equally much of
    each; None where none was measured on all of them."""

    machine: Machine
    target: str
    by_kind: tuple[Choice, ...]
    overall: Choice | None
    hopeless: tuple[Hopeless, ...] = ()
    rerun: tuple[Trial, ...] = ()
    complete: bool = True
