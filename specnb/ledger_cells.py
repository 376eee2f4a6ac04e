"""Measures the cells of a ledger: costs in scripted cycles and runs of the same drafters, in turns.

What a pass takes wanders by several percent within a minute on an ordinary machine. So all that one k
of a family needs is a *slice* of some seconds: scripts, a few runs, scripts again, until the runs are
done, and a cell is priced by the scripts of its own slices. What was measured while another process
held a core is measured again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass

from . import backend, cycle_costs, drafters, ledger, machine, measure, trained
from .backend import Sampler
from .drafters import Drafter
from .journal import Journal
from .lab import Lab
from .prompts import HELD_OUT, PROMPTS
from .records import Cycle, CycleCosts, CycleSample, Ledger, LedgerCell, Limits, Run, Sampling
from .text import Assembler, ending

PLAIN = drafters.NoDrafter.name
LOOK_UPS = (PLAIN, *(kind.name for kind in drafters.LOOK_UPS))
"""Names whose target passes no model's passes come between: one family."""

LONGEST_K = 16
MARGIN = 8
"""Contexts are scripted from this many tokens before the shortest prompt's end: the scripts run on from there."""

RUNS_BETWEEN_SCRIPTS = 4
REPEATS = 3
"""Times that each script of a slice is played where only one k is needed; where all up to k are, once."""

RECITED = next(prompt for prompt in HELD_OUT if prompt.kind == "rewrite")
"""Its text, copied, is what look-ups are timed on; no cell uses it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    families: drafters whose target passes are priced together: look-ups, or one with a model. kinds: of ``PROMPTS``.
    n_contexts: context lengths at which scripts begin, 2 or more. retries: times that what was contended is
    measured again.
    """

    families: tuple[tuple[str, ...], ...]
    ks: tuple[int, ...]
    kinds: tuple[str, ...]
    rounds: int
    new_tokens: int
    n_contexts: int
    retries: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A setting on a prompt."""

    drafter: str
    k: int
    kind: str


@dataclass(frozen=True, slots=True)
class Timed:
    """A run of a cell in one round. contended: another process held a core. tries: 1 when the first was good."""

    cell: Cell
    round: int
    samples: tuple[CycleSample, ...]
    contended: bool
    tries: int


@dataclass(frozen=True, slots=True)
class Slice:
    """One k of a family in one round. costs: of scripts between the runs. runs: of every cell with that k."""

    family: tuple[str, ...]
    k: int
    round: int
    costs: tuple[CycleCosts, ...]
    runs: tuple[Timed, ...]


@dataclass(frozen=True, slots=True)
class Recital:
    """What a look-up took in one round to look, where it finds something and where it does not."""

    drafter: str
    round: int
    costs: CycleCosts


def measured(lab: Lab, plan: Plan, *, journal: Journal | None = None) -> Ledger:
    """All cells of a plan. journal: finished slices go into it, and those in it are not measured again."""
    experiment = Experiment(lab, plan, journal)
    for number in range(plan.rounds):
        for family in experiment.families:
            experiment.measure(family, number)
    return experiment.ledger()


def key(lab: Lab, plan: Plan) -> str:
    """For a journal: pieces of another build, other weights, threads or another plan do not count."""
    weights = lab.digests([name for family in _families(lab, plan) for name in family])
    return f"{backend.build_info()} {weights} {lab.threads} {plan}"


def _families(lab: Lab, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Without the drafters trained for the embedded model, where the target is another."""
    return tuple(family for family in plan.families if lab.embedded or not set(family) & set(trained.KINDS))


class Experiment:
    """One plan on one lab, and what was measured so far."""

    def __init__(self, lab: Lab, plan: Plan, journal: Journal | None) -> None:
        self._lab, self._plan, self._journal = lab, plan, journal
        self.families = _families(lab, plan)
        self._slices: list[Slice] = []
        self._recitals: list[Recital] = []
        for entry in journal.entries() if journal else ():
            if "family" in entry:
                self._slices.append(_slice_of(entry))
            else:
                self._recitals.append(Recital(**entry | {"costs": _costs_of(entry["costs"])}))

    def measure(self, family: Sequence[str], number: int) -> None:
        """One round of a family: a slice for every k, in random order."""
        family = tuple(family)
        known = {(each.family, each.k) for each in self._slices if each.round == number}
        ks = sorted({cell.k for cell in self._cells_of(family)} - {k for of, k in known if of == family})
        recited = {each.drafter for each in self._recitals if each.round == number}
        opened = {name: self._lab.drafter(name) for name in family} if ks else {}
        for name, drafter in opened.items():
            if name not in recited and (not cycle_costs.runs_a_model(drafter) or isinstance(drafter, drafters.Chain)):
                self._recitals.append(found := Recital(name, number, self._recited(drafter)))
                self._note(asdict(found) | {"costs": _plain(found.costs)})
        for k in random.Random(number).sample(ks, len(ks)):
            self._slices.append(found := self._slice(opened, k, number))
            self._note(_plain_slice(found))

    def ledger(self) -> Ledger:
        """What the cells measured so far say. KeyError or ValueError where a round is missing altogether."""
        found: list[LedgerCell] = []
        for family in self.families:
            for cell in self._cells_of(family):
                slices = [each for each in self._slices if (each.family, each.k) == (family, cell.k)]
                runs = [timed for each in slices for timed in each.runs if timed.cell == cell]
                costs = [costs for each in slices for costs in each.costs]
                costs += [each.costs for each in self._recitals if each.drafter == cell.drafter]
                found.append(
                    ledger.cell(
                        [timed.samples for timed in runs],
                        ledger.Prices(ledger.together(costs, cell.drafter)),
                        k=cell.k,
                        kind=cell.kind,
                        contended=any(each.contended for each in (*runs, *costs)),
                        tries=max((timed.tries for timed in runs), default=1),
                    )
                )
        return Ledger(tuple(found))

    def _cells_of(self, names: Sequence[str]) -> Iterator[Cell]:
        for name in names:
            ks = (0,) if name == PLAIN else [k for k in self._plan.ks if k <= longest_k(name)]
            for k in ks:
                yield from (Cell(name, k, kind) for kind in self._plan.kinds)

    def _slice(self, opened: dict[str, Drafter], k: int, number: int) -> Slice:
        order = random.Random(f"{number} {k}")
        cells = [cell for cell in self._cells_of(tuple(opened)) if cell.k == k]
        order.shuffle(cells)
        # Scripts come at least as often as there are contexts, even where runs are few.
        size = max(1, min(RUNS_BETWEEN_SCRIPTS, len(cells) // self._plan.n_contexts))
        groups = [cells[i : i + size] for i in range(0, len(cells), size)]
        contexts = order.sample(self._contexts(), self._plan.n_contexts)
        first, *others = _dealt(contexts, len(groups) + 1)
        costs, runs = [self._scripted(opened, k, first, number)], []
        for group, dealt in zip(groups, others, strict=True):
            runs += [self._timed(opened[cell.drafter], cell, number) for cell in group]
            costs.append(self._scripted(opened, k, dealt, number))
        return Slice(tuple(opened), k, number, tuple(costs), tuple(runs))

    def _scripted(self, opened: dict[str, Drafter], k: int, contexts: Sequence[int], number: int) -> CycleCosts:
        """Of cycles as the family's runs with that k have them; measured again when contended."""
        first = next(iter(opened.values()))
        model, every_length = self._lab.model, not cycle_costs.runs_a_model(first) or isinstance(first, drafters.Chain)
        for _ in range(self._plan.retries + 1):
            found = cycle_costs.scripted(
                self._lab.session,
                first,
                Sampler(Sampling()),
                # A model drafts k tokens in every cycle; a look-up any number up to k.
                ks=range(k + 1) if every_length else (k,) * REPEATS,
                contexts=contexts,
                ends_text=ending(Assembler(model.piece), model.is_eog),
                seed=number,
            )
            if not found.contended:
                break
        return found

    def _recited(self, drafter: Drafter) -> CycleCosts:
        model, prompt = self._lab.model, self._lab.prompt(RECITED)
        text = [*prompt[len(prompt) // 2 :], *reversed(prompt[: len(prompt) // 2])]  # copies, and then does not
        ends_text = ending(Assembler(model.piece), model.is_eog)
        return cycle_costs.recited(self._lab.session, drafter, Sampler(Sampling()), prompt, text, ends_text=ends_text)

    def _contexts(self) -> tuple[int, ...]:
        """From just before the shortest prompt's end to where the longest answer ends."""
        lengths = [len(self._lab.prompt(PROMPTS[kind])) for kind in self._plan.kinds]
        low, high = min(lengths) - MARGIN, max(lengths) + self._plan.new_tokens - MARGIN
        steps = self._plan.n_contexts - 1
        return tuple(low + (high - low) * i // steps for i in range(steps + 1))

    def _timed(self, drafter: Drafter, cell: Cell, number: int) -> Timed:
        """A run; made again when contended."""
        tries, contended = 0, True
        while contended and tries <= self._plan.retries:
            watch, tries = machine.CoreWatch(), tries + 1
            run = self._run(drafter, cell)
            contended = watch.busy_elsewhere() > measure.CONTENDED_CORES
        samples = ledger.samples(run.cycles, keeps_drafts=cycle_costs.keeps_drafts(drafter))
        return Timed(cell, number, samples, contended, tries)

    def _run(self, drafter: Drafter, cell: Cell) -> Run:
        emitted = 0

        def count(cycle: Cycle) -> None:
            nonlocal emitted
            emitted += len(cycle.emitted)

        return measure.run(
            self._lab.session,
            drafter,
            self._lab.prompt(PROMPTS[cell.kind]),
            limits=Limits(k=cell.k),
            sampling=Sampling(),
            # With room to spare, so that the last draft is as long as the others.
            max_tokens=self._plan.new_tokens + cell.k + 1,
            prompt_kind=cell.kind,
            stopped=lambda: emitted >= self._plan.new_tokens,
            on_cycle=count,
        )

    def _note(self, entry: dict[str, object]) -> None:
        if self._journal:
            self._journal.add(entry)


def longest_k(name: str) -> int:
    """The longest draft that it can make; the longest of the plan where nothing limits it."""
    if name in trained.KINDS:
        return trained.load(trained.path_of(name)).longest_k or LONGEST_K
    return next((kind().m for kind in drafters.LOOK_UPS if kind.name == name), LONGEST_K)


def _dealt(contexts: Sequence[int], count: int) -> list[Sequence[int]]:
    """The contexts in ``count`` parts: each of them at least once, no part empty."""
    return [contexts[i::count] or (contexts[i % len(contexts)],) for i in range(count)]


def _plain_slice(found: Slice) -> dict[str, object]:
    runs = [asdict(timed) | {"samples": [astuple(sample) for sample in timed.samples]} for timed in found.runs]
    return asdict(found) | {"costs": [_plain(costs) for costs in found.costs], "runs": runs}


def _slice_of(entry: dict[str, object]) -> Slice:
    costs, runs = (tuple(of(each) for each in entry[name]) for name, of in (("costs", _costs_of), ("runs", _timed_of)))
    return Slice(**entry | {"family": tuple(entry["family"]), "costs": costs, "runs": runs})


def _plain(costs: CycleCosts) -> dict[str, object]:
    rows = {name: [astuple(sample) for sample in getattr(costs, name)] for name in ("samples", "recited")}
    return asdict(costs) | rows


def _costs_of(entry: dict[str, object]) -> CycleCosts:
    rows = {name: tuple(CycleSample(*row) for row in entry[name]) for name in ("samples", "recited")}
    return CycleCosts(**entry | rows | {"contexts": tuple(entry["contexts"])})


def _timed_of(entry: dict[str, object]) -> Timed:
    samples = tuple(CycleSample(*row) for row in entry["samples"])
    return Timed(**entry | {"cell": Cell(**entry["cell"]), "samples": samples})
