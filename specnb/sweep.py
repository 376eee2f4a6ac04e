"""Sweeps over drafter x k x p_min x prompt kind: which points to measure, in what order, and what is done already.

Two ways. The *exhaustive* one measures every point. The *racing* one measures what passes and
drafts cost, takes one plain run a kind and one rehearsal a kind and drafter with a model, replays
them for every setting (``replay``), and measures only the few most promising, against plain decoding:
first all of them once, then the best again, interleaved, in rounds that no choice has seen.

Every finished piece (costs, runs, points) is kept in a journal under a name. A sweep that was
stopped or killed asks for the same pieces by the same names, finds those that are done, and ends with
the same table.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Literal, TypeVar

from . import backend, drafters, machine, measure, messages, models, replay, store
from .journal import Journal
from .lab import Lab
from .prompts import Prompt
from .records import PLAIN, DraftPrice, Forecast, Rehearsal, Run, Setting, Sweep, SweepCosts, Trial, Trials
from .repetition import find_loop

Record = TypeVar("Record")

LOOK_UPS = tuple(kind.name for kind in drafters.LOOK_UPS)

CONTEXT_LENGTH = 128
"""Of the cost curve: the middle of a short prompt and its answer."""

NEAR = 1.10
"""Settings forecast to take up to this many times the best one's time are worth a measurement."""

FAR = 1.05
"""A setting that took this many times the best one's time in the first round is out."""

MOST_DISTURBED = 3
"""Points disturbed again one after the other before no more are measured again."""

PER_DRAFTER = 2
"""Forecasts share what they leave out within a drafter, so no drafter may fill the first round alone."""


class NotSaved(RuntimeError):
    """A finished piece could not be written to the journal. It is kept in memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to sweep over.

    p_mins: tried with drafters that have confidences; 0 for the others. prompts: one for each kind. max_tokens: of
    every answer. repeats: of every point of an exhaustive sweep. screened, finalists: most settings of a kind that a
    racing sweep measures once, and in its final rounds, one setting for all kinds aside. rounds: final rounds.
    curve_s: most seconds for the cost curve.
    """

    drafters: tuple[str, ...]
    ks: tuple[int, ...]
    prompts: tuple[Prompt, ...]
    p_mins: tuple[float, ...] = (0.0, 0.5)
    max_tokens: int = 64
    repeats: int = 3
    screened: int = 3
    finalists: int = 2
    rounds: int = 5
    curve_s: float = 8.0

    def __post_init__(self) -> None:
        if not (self.drafters and self.ks and self.p_mins and self.prompts):
            raise ValueError("A sweep needs at least one drafter, one k, one p_min and one prompt.")
        if min(self.ks) < 1:
            raise ValueError(f"A sweep's k starts at 1; got {min(self.ks)}. Plain decoding is measured in any case.")
        if len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"A sweep takes one prompt of each kind; got {', '.join(self.kinds)}. Name kinds apart.")

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(prompt.kind for prompt in self.prompts)


@dataclass(frozen=True, slots=True)
class Progress:
    """done, expected: answers; a racing sweep learns on its way how many it needs. what: the piece now finished."""

    done: int
    expected: int
    seconds_left: float
    what: str


@dataclass(frozen=True, slots=True)
class _Round:
    """Settings that answer one prompt at once, in turns; or one that answers it alone."""

    prompt: Prompt
    settings: tuple[Setting, ...]
    stage: str
    repeat: int

    @property
    def name(self) -> str:
        return f"{self.stage} {' '.join(map(_named, self.settings))} {self.prompt.kind} {self.repeat}"


class Sweeper:
    """One sweep of one target. ``run`` may be called again after a stop or an error and goes on where it was.

    journal: None keeps finished pieces in memory only; ``journal_for`` gives the one in the cache folder.
    Opening the drafters raises ``models.PairError`` where one does not fit the target, ValueError where each of the
    plan's k is longer than any of the drafters was trained for.
    """

    def __init__(
        self,
        lab: Lab,
        plan: Plan,
        *,
        method: Literal["racing", "exhaustive"] = "racing",
        journal: Journal | None = None,
    ) -> None:
        self._lab = lab
        self._plan = plan
        self._method = method
        self.journal = journal
        # All of them before anything is measured: with a head among them the target keeps its states, for plain too.
        self._longest = {name: getattr(lab.drafter(name), "longest_k", inf) for name in plan.drafters}
        self.settings = (PLAIN, *self._speculative())
        if len(self.settings) == 1:
            raise ValueError(messages.no_k_fits(plan.ks, self._longest))
        self._pieces: dict[str, dict[str, object]] = {}
        self._unsaved: list[dict[str, object]] = []
        for entry in journal.entries() if journal else ():
            self._pieces[entry["name"]] = entry
        self._forecasts: list[Forecast] = []
        self._trials: dict[_Round, tuple[Trial, ...]] = {}
        self._rerun: dict[_Round, tuple[Trial, ...]] = {}

    def run(
        self,
        *,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Sweep | None:
        """Measures what is left. Stopped, it gives the points there are, ``complete`` False; None before the costs are.

        Raises NotSaved when the journal cannot be written; the points stay, and ``so_far`` gives them.
        """
        self._on_progress, self._stopped = on_progress, stopped
        self._forecasts, self._trials, self._rerun = [], {}, {}
        self._done, self._done_s = 0, 0.0
        try:
            if self._method == "racing":
                self._race()
            else:
                self._measure_all()
        except _Stopped:
            return self.so_far()
        return self._sweep(complete=True)

    def so_far(self) -> Sweep | None:
        """The points measured until now; None before the costs are, which come first."""
        return self._sweep(complete=False) if "costs" in self._pieces else None

    def finish(self) -> None:
        """Removes the journal: the next sweep measures everything anew. For when the result is in safety."""
        if self.journal:
            self.journal.end()

    # -- the two ways -------------------------------------------------------------------------

    def _race(self) -> None:
        plan = self._plan
        # A drafter at a time: its weights are loaded once.
        rehearsing = [name for name in dict.fromkeys(each.drafter for each in self.settings[1:]) if _has_model(name)]
        raced = plan.screened + plan.rounds * (plan.finalists + 2)
        self._expected = 1 + len(plan.prompts) * (1 + len(rehearsing) + raced)
        costs = self._costs()
        plain = {prompt.kind: self._plain(prompt) for prompt in plan.prompts}
        rehearsals = {
            (name, prompt.kind): self._rehearsal(prompt, name) for name in rehearsing for prompt in plan.prompts
        }
        for kind in plan.kinds:
            of_kind = {name: rehearsals[name, kind] for name in rehearsing}
            self._forecasts += self._forecast(kind, plain[kind], of_kind, costs)
        for_all = self._best_for_all()
        for number, prompt in enumerate(plan.prompts):
            self._race_kind(prompt, for_all)
            self._expected = self._done + (len(plan.prompts) - number - 1) * raced
        self._rerun_contended()

    def _race_kind(self, prompt: Prompt, for_all: Setting) -> None:
        plan = self._plan
        best = self._promising(prompt.kind)
        if len(best) > 1:
            screened = self._measured(_Round(prompt, tuple(best), "screen", 0))
            ms = {trial.setting: trial.ms_per_token for trial in screened}
            ranked = sorted(best, key=ms.__getitem__)[: plan.finalists]
            best = [setting for setting in ranked if ms[setting] <= FAR * ms[ranked[0]]]
        finalists = (PLAIN, *dict.fromkeys((*best, for_all)))
        for repeat in range(plan.rounds):
            self._measured(_Round(prompt, finalists, "final", repeat))

    def _measure_all(self) -> None:
        plan, order = self._plan, random.Random(0)
        self._expected = 1 + len(plan.prompts) * len(self.settings) * plan.repeats
        self._costs()
        for repeat in range(plan.repeats):
            for prompt in order.sample(plan.prompts, len(plan.prompts)):
                for setting in self._by_drafter(order):
                    self._measured(_Round(prompt, (setting,), "grid", repeat))
        self._rerun_contended()

    def _by_drafter(self, order: random.Random) -> list[Setting]:
        """All settings in random order, but those of a drafter together: its weights are loaded once."""
        names = dict.fromkeys(setting.drafter for setting in self.settings)
        shuffled = order.sample(list(names), len(names))
        of = {name: [setting for setting in self.settings if setting.drafter == name] for name in names}
        return [setting for name in shuffled for setting in order.sample(of[name], len(of[name]))]

    # -- choosing -----------------------------------------------------------------------------

    def _speculative(self) -> list[Setting]:
        plan = self._plan
        return [
            Setting(name, k, p_min)
            for name in plan.drafters
            for k in sorted(plan.ks)
            if k <= self._longest[name]
            for p_min in (plan.p_mins if _has_model(name) else (0.0,))
        ]

    def _forecast(
        self, kind: str, plain: Run, rehearsals: Mapping[str, Rehearsal], costs: SweepCosts
    ) -> list[Forecast]:
        """Every setting on one kind, plain decoding among them: replayed, then paid with costs measured apart."""
        verify_ms = costs.curve.median_ms
        other_ms = 1e3 * median(cycle.sampling_s + cycle.other_s for cycle in plain.cycles)
        found = []
        for setting in self.settings:
            if rehearsal := rehearsals.get(setting.drafter):
                steps = replay.of_rehearsal(rehearsal, setting.k, setting.p_min)
            else:
                drafter = self._lab.drafter(setting.drafter)
                steps = replay.of_look_up(drafter, plain.prompt_tokens, plain.tokens, setting.k)
            ms = replay.ms_per_token(steps, verify_ms, costs.price(setting.drafter), other_ms=other_ms)
            found.append(Forecast(setting.drafter, setting.k, setting.p_min, kind, ms, replay.tokens_per_cycle(steps)))
        return found

    def _promising(self, kind: str) -> list[Setting]:
        """Settings worth measuring on a kind, the most promising first; of those forecast to be alike the first."""
        ranked = sorted((f for f in self._forecasts if f.kind == kind and f.k), key=lambda f: f.ms_per_token)
        chosen: dict[tuple[str, float], Setting] = {}
        for forecast in ranked:
            alike = (forecast.drafter, forecast.ms_per_token)
            of_drafter = sum(name == forecast.drafter for name, _ in chosen)
            near = forecast.ms_per_token <= NEAR * ranked[0].ms_per_token
            if near and alike not in chosen and of_drafter < PER_DRAFTER:
                chosen[alike] = forecast.setting
        return list(chosen.values())[: self._plan.screened]

    def _best_for_all(self) -> Setting:
        """The setting, plain decoding aside, forecast to need the least time for as many tokens of every kind."""
        total: dict[Setting, float] = {}
        for forecast in self._forecasts:
            if forecast.k:
                total[forecast.setting] = total.get(forecast.setting, 0.0) + forecast.ms_per_token
        return min(total, key=total.__getitem__)

    # -- measuring ----------------------------------------------------------------------------

    def _costs(self) -> SweepCosts:
        return self._once("costs", SweepCosts, self._measure_costs, what="costs of passes and drafts")

    def _measure_costs(self) -> SweepCosts:
        ns = range(1, max(self._plan.ks) + 2)
        curve = measure.cost_curve(
            self._lab.session, ns, context_length=CONTEXT_LENGTH, rounds=(5, 40), max_seconds=self._plan.curve_s
        )
        with_model = filter(_has_model, self._plan.drafters)
        return SweepCosts(curve, tuple(self._price(name) for name in with_model))

    def _price(self, name: str) -> DraftPrice:
        return self._lab.draft_price(name, self._plan.prompts[0])

    def _plain(self, prompt: Prompt) -> Run:
        what = f"{prompt.kind}, {messages.setting_name(PLAIN)}"
        return self._once(f"plain {prompt.kind}", Run, lambda: self._write(prompt, PLAIN), what=what)

    def _rehearsal(self, prompt: Prompt, name: str) -> Rehearsal:
        what = f"{prompt.kind}, {messages.rehearsal_of(name)}"
        return self._once(f"rehearsal {name} {prompt.kind}", Rehearsal, lambda: self._rehearse(prompt, name), what=what)

    def _rehearse(self, prompt: Prompt, name: str) -> Rehearsal:
        k = min(max(self._plan.ks), self._longest[name])
        found = self._lab.rehearse(prompt, name, k=k, max_tokens=self._plan.max_tokens, stopped=self._stopped)
        if self._stopped():
            raise _Stopped
        return found

    def _measured(self, part: _Round, *, again: bool = False) -> tuple[Trial, ...]:
        found = self._once(
            f"{part.name} again" if again else part.name,
            Trials,
            partial(self._measure, part),
            what=f"{part.prompt.kind}, {messages.settings_in_turns(part.settings)}",
            answers=len(part.settings),
        ).trials
        if again:
            self._rerun[part] = self._trials[part]
        self._trials[part] = found
        return found

    def _measure(self, part: _Round) -> Trials:
        watch = machine.CoreWatch()
        written = self._written(part)
        contended = watch.busy_elsewhere() > measure.CONTENDED_CORES
        return Trials(
            tuple(
                Trial(
                    drafter=setting.drafter,
                    k=setting.k,
                    p_min=setting.p_min,
                    kind=part.prompt.kind,
                    stage=part.stage,
                    repeat=part.repeat,
                    emitted=run.emitted,
                    passes=run.target_passes,
                    drafted=run.drafted,
                    kept=run.kept,
                    seconds=seconds,
                    contended=contended,
                    looped=find_loop(run.tokens) is not None,
                )
                for setting, (run, seconds) in written.items()
            )
        )

    def _written(self, part: _Round) -> dict[Setting, tuple[Run, float]]:
        """Setting -> its answer, and the seconds it took."""
        if len(part.settings) == 1:
            (setting,) = part.settings
            run = self._write(part.prompt, setting)
            return {setting: (run, run.decode_s)}
        timed = self._lab.in_turns(
            part.prompt, part.settings, max_tokens=self._plan.max_tokens, stopped=self._stopped, seed=part.repeat
        )
        if self._stopped():
            raise _Stopped
        return {setting: (each.run, each.ms * each.run.emitted / 1e3) for setting, each in timed.items()}

    def _write(self, prompt: Prompt, setting: Setting) -> Run:
        run = self._lab.run(
            prompt,
            setting.drafter,
            k=setting.k,
            p_min=setting.p_min,
            max_tokens=self._plan.max_tokens,
            stopped=self._stopped,
        )
        if self._stopped():  # it may have ended early, and is no point then
            raise _Stopped
        return run

    def _rerun_contended(self) -> None:
        """Final and grid points taken while another program held a core, once more at the end: it may be gone by then.

        Not for ever: when several in a row are disturbed again, the machine is a busy one, and the advice says so.
        """
        in_a_row = 0
        for part, trials in list(self._trials.items()):
            if trials[0].contended and part.stage in ("final", "grid") and in_a_row < MOST_DISTURBED:
                again = self._measured(part, again=True)
                in_a_row = in_a_row + 1 if again[0].contended else 0

    # -- what is done already -----------------------------------------------------------------

    def _once(
        self, name: str, record_type: type[Record], make: Callable[[], Record], *, what: str, answers: int = 1
    ) -> Record:
        """The piece of that name: measured now, unless it was before. answers: how much of the work it is."""
        if name not in self._pieces:
            if self._stopped():
                raise _Stopped
            start = perf_counter()
            record = make()
            piece = {"name": name, "seconds": perf_counter() - start, "record": store.to_json(record)}
            self._pieces[name] = piece
            self._unsaved.append(piece)
            self._save()
        self._done += answers
        self._done_s += float(self._pieces[name]["seconds"])
        left_s = max(0, self._expected - self._done) * self._done_s / self._done
        self._on_progress(Progress(self._done, max(self._done, self._expected), left_s, what))
        # What was just measured takes the way through JSON, too: so a resumed sweep sees the very same numbers.
        return store.from_json(record_type, self._pieces[name]["record"])

    def _save(self) -> None:
        if self.journal is None:
            return
        while self._unsaved:
            try:
                self.journal.add(self._unsaved[0])
            except OSError as error:
                raise NotSaved(
                    f"The sweep's journal {self.journal.path} cannot be written: {error.strerror or error}. All "
                    f"{len(self._pieces)} finished pieces are kept in memory: make room, and run the sweep again."
                ) from error
            del self._unsaved[0]

    @property
    def _seconds(self) -> float:
        return sum(float(piece["seconds"]) for piece in self._pieces.values())

    def _sweep(self, *, complete: bool) -> Sweep:
        info = self._lab.model.info
        return Sweep(
            machine=machine.this_machine(backend.build_info(), gpu=backend.gpu_offload()),
            target=f"{info.name} {info.format}",
            method=self._method,
            kinds=self._plan.kinds,
            settings=self.settings,
            max_tokens=self._plan.max_tokens,
            costs=store.from_json(SweepCosts, self._pieces["costs"]["record"]),
            trials=tuple(trial for trials in self._trials.values() for trial in trials),
            seconds=self._seconds,
            complete=complete,
            forecasts=tuple(self._forecasts),
            rerun=tuple(trial for trials in self._rerun.values() for trial in trials),
        )


def _has_model(name: str) -> bool:
    return name not in LOOK_UPS


def swept(lab: Lab, plan: Plan, *, method: Literal["racing", "exhaustive"] = "racing") -> Sweep:
    """A whole sweep. Interrupted or killed, the next call goes on where it was; finished, it measures anew."""
    sweeper = Sweeper(lab, plan, method=method, journal=journal_for(lab, plan, method))
    found = sweeper.run()
    sweeper.finish()
    return found


def journal_for(lab: Lab, plan: Plan, method: str) -> Journal:
    """The journal of this sweep in the cache folder: for the same machine, build, model, weights and plan.

    Raises NotSaved when there can be no cache folder.
    """
    here = machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())
    what = [method, asdict(here), asdict(lab.model.info), lab.threads, lab.digests(plan.drafters), asdict(plan)]
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
    try:
        folder = models.cache_folder()
    except OSError as error:
        raise NotSaved(f"The cache folder {error.filename} cannot be made: {error.strerror}.") from error
    return Journal(Path(folder) / f"sweep-{key}.jsonl", key=key)


class _Stopped(Exception):
    """The reader asked the sweep to stop."""


def _named(setting: Setting) -> str:
    return f"{setting.drafter} {setting.k} {setting.p_min:g}"
