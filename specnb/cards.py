"""Machine cards: one file that says what a machine is, what passes cost there, and what to set on it.

A reader's own comes from a sweep and its advice (``make``), and is saved with ``store.save``. Whatever card lies in
``data/machines`` is on the ``shelf``. ``python -m specnb.cards`` makes this project's own cards again, from the
published figures and from the recordings in ``data/runs``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from . import advise, intake, messages, store, theory
from .records import (
    Advice,
    CardAlpha,
    Choice,
    CostCurve,
    DraftCost,
    DraftPrice,
    FieldReports,
    Forecast,
    Machine,
    MachineCard,
    ObservedCounts,
    PublishedStudy,
    PublishedSweep,
    Run,
    RunSet,
    Setting,
    Sweep,
)

FOLDER = store.DATA / "machines"

MOST_CARDS = 200
"""More files than this are no shelf."""


@dataclass(frozen=True)
class Shelf:
    """cards: file name without its end -> card, in order of names. refused: file name -> what is wrong with it."""

    cards: Mapping[str, MachineCard]
    refused: Mapping[str, str]


def shelf(folder: str | Path = FOLDER) -> Shelf:
    """Every card of a folder. A malformed one is named with its field and value; the others load all the same."""
    cards: dict[str, MachineCard] = {}
    refused: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*.json"))[:MOST_CARDS]:
        try:
            cards[path.stem] = store.load(path, MachineCard)
        except (store.BadRecord, OSError) as reason:
            refused[path.name] = str(reason)
    return Shelf(cards, refused)


def make(
    sweep: Sweep,
    advice: Advice | None = None,
    *,
    curve: CostCurve | None = None,
    label: str = "",
    draft_models: Mapping[str, str] | None = None,
    recorded: str = "",
) -> MachineCard:
    """The card of the machine that a sweep ran on.

    advice: of that sweep; worked out here unless given. curve: a fuller staircase of the same target than the
    sweep's own. label: what to call the card; the machine unless given. recorded: when and where the sweep was made, as
    plots take it ("2025-11-29 on Apple M3 Max"); here and today unless given.
    """
    advice = advice or advise.advise(sweep)
    on = recorded or f"{date.today()} on {sweep.machine.name}"
    choices = (*advice.by_kind, *([advice.overall] if advice.overall else []))
    return MachineCard(
        label=label or sweep.machine.name,
        machine=sweep.machine,
        provenance=messages.card_provenance(on, sweep.method, len(sweep.trials)),
        target=sweep.target,
        staircases=(_recorded(curve or sweep.costs.curve, on),),
        draft_models=dict(draft_models or {}),
        prices=sweep.costs.prices,
        alphas=_alphas_of_sweep(sweep),
        best=choices,
    )


def _recorded(curve: CostCurve, on: str) -> CostCurve:
    """A curve inside a card says itself when and where it was measured."""
    return curve if curve.recorded else replace(curve, recorded=on)


def as_shown(card: MachineCard, recorded: str) -> MachineCard:
    """A card beside the measurement it was made of: for a file its staircase is dated, for a figure it may be new.

    recorded: as plots take it, "" for a sweep that was measured here and now.
    """
    return replace(card, staircases=tuple(replace(curve, recorded=recorded) for curve in card.staircases))


def _alphas_of_sweep(sweep: Sweep) -> tuple[CardAlpha, ...]:
    """Of every drafter and kind, all trials without p_min together: drafts that p_min cuts short flatter alpha."""
    found = []
    for kind in sweep.kinds:
        settings = [setting for setting in sweep.measured(kind) if not setting.plain and setting.p_min == 0.0]
        for drafter in dict.fromkeys(setting.drafter for setting in settings):
            trials = [each for each in sweep.trials if (each.drafter, each.kind, each.p_min) == (drafter, kind, 0.0)]
            # Answers of one setting are alike word for word, so the k with the most drafted tokens speaks for all.
            trial = max(trials, key=lambda each: each.drafted)
            if trial.drafted:
                passes = (trial.passes, trial.passes)
                found.append(_alpha(drafter, kind, trial.k, trial.drafted, trial.kept, passes=passes))
    run = {(alpha.drafter, alpha.kind) for alpha in found}
    return tuple(found) + tuple(each for each in _forecast_alphas(sweep) if (each.drafter, each.kind) not in run)


def _forecast_alphas(sweep: Sweep) -> Iterable[CardAlpha]:
    """Of drafters that no run of a kind was spent on, from replays: a model's drafts are all k long."""
    longest: dict[tuple[str, str], Forecast] = {}
    for forecast in sweep.forecasts:
        cell = forecast.drafter, forecast.kind
        modelled = any(price.drafter == forecast.drafter for price in sweep.costs.prices)
        if modelled and forecast.k and forecast.p_min == 0.0 and (cell not in longest or forecast.k > longest[cell].k):
            longest[cell] = forecast
    for (drafter, kind), forecast in longest.items():
        # The text's end cuts a cycle short, so the mean may fall a little below 1.
        alpha = theory.solve_alpha(min(forecast.k + 1.0, max(1.0, forecast.tokens_per_cycle)), forecast.k)
        yield CardAlpha(drafter, kind, forecast.k, alpha, alpha)


def _alpha(
    drafter: str,
    kind: str,
    k: int,
    drafted: int,
    kept: int,
    *,
    passes: tuple[int, int] | None = None,
    drafts: tuple[int, int] | None = None,
    tested: int | None = None,
) -> CardAlpha:
    if tested:
        low = high = kept / tested
        interval = theory.alpha_interval(kept, tested)
    else:
        reading = intake.read(ObservedCounts("card", "", drafted, kept, drafts=drafts, passes=passes, k=k))
        (low, high), interval = reading.alpha, reading.alpha_interval
    return CardAlpha(drafter, kind, k, low, high, *interval, kept=kept, drafted=drafted)


# --- the project's own cards -------------------------------------------------------------------------------


def of_study(study: PublishedStudy) -> MachineCard:
    """The M5 Pro article's machine: alphas solved from the printed acceptance, intervals unknown."""
    best = max(study.runs, key=lambda run: run.speedup)
    drafter = "draft_model"
    return MachineCard(
        label=study.machine.name,
        machine=study.machine,
        provenance=study.provenance,
        target=study.curve.label,
        staircases=(study.curve,),
        plain_ms=study.plain_ms,
        draft_models={drafter: study.bandwidth[1].model} if len(study.bandwidth) > 1 else {},
        prices=(DraftPrice(drafter, study.draft_ms, study.draft_ms),),
        alphas=tuple(_published_alpha(drafter, run.k, run.acceptance_rate) for run in study.runs),
        best=(_published_choice(Setting(drafter, best.k), best.speedup),),
    )


def _published_alpha(drafter: str, k: int, acceptance: float) -> CardAlpha:
    alpha = theory.solve_alpha(1.0 + k * acceptance, k)
    return CardAlpha(drafter, "", k, alpha, alpha)


def _published_choice(setting: Setting, speedup: float) -> Choice:
    """Nothing is known of the noise, so the verdict stays open."""
    return Choice("", "unclear", setting, speedup)


def of_reports(reports: FieldReports) -> tuple[MachineCard, ...]:
    """One card for each machine of the field reports: those with a staircase, and those with a sweep over k."""
    staircases = tuple(
        MachineCard(
            label=curve.label, machine=curve.machine, provenance=curve.recorded, target=curve.label, staircases=(curve,)
        )
        for curve in reports.curves
    )
    sweeps = (each for each in reports.sweeps if each.varied == "k" and each.plain_tokens_per_second)
    return staircases + tuple(map(_of_published_sweep, sweeps))


def _of_published_sweep(sweep: PublishedSweep) -> MachineCard:
    best = max(sweep.points, key=lambda point: point.tokens_per_second)
    return MachineCard(
        label=sweep.label,
        machine=Machine(sweep.label, source=sweep.source),
        provenance=messages.card_published(sweep.source),
        target=messages.CARD_MTP_TARGET,
        alphas=tuple(
            _published_alpha(messages.CARD_MTP, point.k, point.acceptance_rate)
            for point in sweep.points
            if point.k and point.acceptance_rate is not None
        ),
        best=(
            _published_choice(
                Setting(messages.CARD_MTP, best.k), best.tokens_per_second / sweep.plain_tokens_per_second
            ),
        ),
    )


def of_recordings(folder: str | Path = store.DATA / "runs") -> MachineCard:
    """The machine of the recordings in a folder, from what the notebooks recorded there.

    With a recorded sweep: ``make`` of the latest one. Without: the target that most drafters were recorded with, their
    alphas by counting, and choices from runs against plain decoding. The target's staircase comes first, then those of
    its other formats. ValueError without a staircase, BadRecord for a file that is none.
    """
    saved = [store.load_any(path) for path in sorted(Path(folder).glob("*.json"))]
    curves = [each.record for each in saved if isinstance(each.record, CostCurve) and each.record.model is not None]
    if not curves:
        raise ValueError(messages.card_no_staircase(str(Path(folder).name)))
    sweeps = [each for each in saved if isinstance(each.record, Sweep)]
    if sweeps:
        latest = max(sweeps, key=lambda each: each.recorded_on)
        card = make(latest.record, recorded=latest.recorded)
        # The sweep's own curve ends at its longest k; a fuller one of the same target may have been recorded.
        same = [curve for curve in (*card.staircases, *curves) if curve.model and curve.machine == card.machine]
        return replace(card, staircases=_best_staircases(same, card.target) or card.staircases)
    sets = [each.record for each in saved if isinstance(each.record, RunSet)]
    sets += [RunSet((each.record,)) for each in saved if isinstance(each.record, Run)]
    target = _usual_target(sets) or _name(curves[0])
    sets = [runs for runs in sets if all(run.target == target for run in runs.runs)]
    staircases = _best_staircases(curves, target)
    prices = {each.record.label: each.record for each in saved if isinstance(each.record, DraftCost)}
    days = sorted({str(each.recorded_on) for each in saved if each.recorded_on})
    return MachineCard(
        label=staircases[0].machine.name,
        machine=staircases[0].machine,
        provenance=messages.card_recorded(days[0], days[-1], len(saved)),
        target=target,
        staircases=staircases,
        prices=tuple(DraftPrice(name, cost.ms_per_token, cost.ms_per_token) for name, cost in sorted(prices.items())),
        alphas=tuple(_alphas_of_runs(sets)),
        best=tuple(_choices_of_runs(sets)),
    )


def _usual_target(sets: Sequence[RunSet]) -> str:
    """The target with the most drafters on the most kinds."""
    drafted = {(run.target, run.drafter, run.prompt_kind) for each in sets for run in each.runs if run.drafted}
    targets = sorted(target for target, _drafter, _kind in drafted)
    return max(targets, key=targets.count, default="")


def _best_staircases(curves: Iterable[CostCurve], target: str) -> tuple[CostCurve, ...]:
    """One of each format: undisturbed, with the most threads, N and samples, in this order. The target's is first."""
    best: dict[str, CostCurve] = {}
    for curve in curves:
        name = _name(curve)
        if name not in best or _worth(best[name]) < _worth(curve):
            best[name] = curve
    return tuple(best[name] for name in sorted(best, key=lambda name: (name != target, name)))


def _name(curve: CostCurve) -> str:
    """Model and format, as runs and sweeps name their target."""
    return f"{curve.model.name} {curve.model.format}"


def _worth(curve: CostCurve) -> tuple[bool, int, int, int]:
    return not curve.contended, curve.threads or 0, len(curve.ns), len(curve.samples)


def _alphas_of_runs(sets: Iterable[RunSet]) -> Iterable[CardAlpha]:
    """Each drafter's run of each kind that tested the most tokens. Runs of one setting repeat each other's text."""
    runs = [run for each in sets for run in each.runs if run.tested and run.prompt_kind and run.p_min == 0.0]
    for drafter, kind in sorted({(run.drafter, run.prompt_kind) for run in runs}):
        run = max((r for r in runs if (r.drafter, r.prompt_kind) == (drafter, kind)), key=lambda each: each.tested)
        yield _alpha(drafter, kind, run.k, run.drafted, run.kept, tested=run.tested)


def _choices_of_runs(sets: Iterable[RunSet]) -> Iterable[Choice]:
    """One for each kind that was also decoded plainly, out of the set with the most runs."""
    raced: dict[str, RunSet] = {}
    for runs in sets:
        kind = runs.runs[0].prompt_kind
        plain = any(run.drafter == advise.PLAIN.drafter for run in runs.runs)
        if kind and plain and len(runs.runs) > len(raced[kind].runs if kind in raced else ()):
            raced[kind] = runs
    for kind, runs in sorted(raced.items()):
        times: dict[Setting, list[float]] = {}
        for run in runs.runs:
            setting = advise.PLAIN if run.drafter == advise.PLAIN.drafter else Setting(run.drafter, run.k, run.p_min)
            times.setdefault(setting, []).append(1e3 * run.decode_s / run.emitted)
        yield advise.choose(kind, times)


# --- side by side ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SameAlpha:
    """What one drafter would bring on one card's staircase. k: the best there; 0: off, with a speedup of 1."""

    label: str
    k: int
    speedup: float


def same_alpha(cards: Iterable[MachineCard], alpha: float, *, gamma: float = 0.0) -> tuple[SameAlpha, ...]:
    """The same drafter on every staircase, the highest speedup first: only the machines differ.

    gamma: draft time / plain time per token, the card's ``baseline_ms``; 0 for a look-up. Cards without a staircase, or
    with nothing but T(1), are left out. ValueError for an alpha outside [0, 1] or a gamma that is none.
    """
    found = []
    for card in cards:
        verify_ms = {} if card.staircase is None else card.staircase.median_ms
        if len(verify_ms) < 2:
            continue
        plain_ms = card.baseline_ms
        k = theory.best_k(alpha, gamma * plain_ms, verify_ms, plain_ms)
        gain = theory.speedup(alpha, k, gamma * plain_ms, verify_ms, plain_ms) if k else 1.0
        found.append(SameAlpha(card.label, k, gain))
    return tuple(sorted(found, key=lambda each: -each.speedup))


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """What a cycle costs on one machine, as finely as it is known.

    plain_ms: of a plain token. verify_ms: N -> ms, its staircase; a draft may then have any price. cycle_ms: k -> ms of
    whole cycles, its own draft's price included, where nothing finer was published; only these ks are known.
    """

    label: str
    plain_ms: float
    verify_ms: Mapping[int, float] = field(default_factory=dict)
    cycle_ms: Mapping[int, float] = field(default_factory=dict)

    @property
    def longest_k(self) -> int:
        return max((0, *(n - 1 for n in self.verify_ms), *self.cycle_ms))

    def speedup(self, alpha: float, k: int, gamma: float) -> float | None:
        """Over plain decoding; gamma counts where there is a staircase. None for a k that was not measured."""
        if k + 1 in self.verify_ms:
            return theory.speedup(alpha, k, gamma * self.plain_ms, self.verify_ms, self.plain_ms)
        if k in self.cycle_ms:
            return theory.expected_tokens(alpha, k) * self.plain_ms / self.cycle_ms[k]
        return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """speedup: None where that k was not measured. own_price: whether the machine's own draft is in its cycles."""

    label: str
    speedup: float | None
    own_price: bool


def costs_of_cards(cards: Iterable[MachineCard]) -> tuple[MachineCosts, ...]:
    """Of every card with a staircase."""
    return tuple(
        MachineCosts(card.label, card.baseline_ms, card.staircase.median_ms)
        for card in cards
        if card.staircase is not None
    )


def costs_of_reports(reports: FieldReports) -> tuple[MachineCosts, ...]:
    """Of every sweep over k with a plain speed: its drafts all have k tokens, so each point implies a cycle's cost."""
    return tuple(
        MachineCosts(
            sweep.label,
            1000.0 / sweep.plain_tokens_per_second,
            cycle_ms={
                point.k: theory.implied_cycle_ms(1.0 + point.k * point.acceptance_rate, point.tokens_per_second)
                for point in sweep.points
                if point.k and point.acceptance_rate is not None
            },
        )
        for sweep in reports.sweeps
        if sweep.varied == "k" and sweep.plain_tokens_per_second
    )


def verdicts(machines: Iterable[MachineCosts], alpha: float, k: int, *, gamma: float = 0.0) -> tuple[Verdict, ...]:
    """What the same alpha and k bring on each machine, in their order."""
    return tuple(Verdict(each.label, each.speedup(alpha, k, gamma), not each.verify_ms) for each in machines)


# --- made again --------------------------------------------------------------------------------------------


def file_name(card: MachineCard) -> str:
    """Of its label: letters and digits with hyphens between, so that no label can leave the folder."""
    words = re.sub(r"[^a-z0-9]+", "-", card.label.lower()).strip("-")
    return f"{words[:60] or 'machine'}.json"


def remake(folder: str | Path = FOLDER) -> tuple[Path, ...]:
    """Writes the project's own cards anew, and returns their files. Cards of others in the folder stay."""
    cards = (of_study(store.load_m5_pro()), of_recordings(), *of_reports(store.load_field_reports()))
    return tuple(store.save(card, Path(folder) / file_name(card)) for card in cards)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m specnb.cards", description=remake.__doc__)
    parser.parse_args(arguments)
    for path in remake():
        print(path.name)


if __name__ == "__main__":
    main()
