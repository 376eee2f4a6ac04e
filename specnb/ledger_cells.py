"""Measures the cells of a ledger: runs, and beside each a twin whose cycles cost what the machine takes just then.

What a pass takes wanders by a tenth within seconds on a shared machine, far more than the ledger is off. So
after every cycle of a run comes one of its twin (``cycle_costs.Twin``): another text, in a session of its own.
A cell is priced by its own twins. What was measured while another process held a core is measured again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, replace

from . import backend, cycle_costs, drafters, ledger, measure, trained
from .backend import Sampler, Session
from .drafters import Drafter
from .journal import Journal
from .lab import Lab
from .prompts import HELD_OUT, PROMPTS
from .records import Cycle, CycleCosts, CycleSample, Ledger, LedgerCell, Limits, Run, Sampling
from .text import Assembler, ending

PLAIN = drafters.NoDrafter.name
LONGEST_K = 16

RECITED = next(prompt for prompt in HELD_OUT if prompt.kind == "rewrite")
"""Its text, copied, is what look-ups are timed on; no cell uses it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    drafters: by name. kinds: of ``PROMPTS``. new_tokens: of each run. retries: times that what was contended is
    measured again.
    """

    drafters: tuple[str, ...]
    ks: tuple[int, ...]
    kinds: tuple[str, ...]
    rounds: int
    new_tokens: int
    retries: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A setting on a prompt."""

    drafter: str
    k: int
    kind: str


@dataclass(frozen=True, slots=True)
class Timed:
    """A run of a cell in one round, and what its twin took. tries: 1 when the first was not contended."""

    cell: Cell
    round: int
    samples: tuple[CycleSample, ...]
    costs: CycleCosts
    tries: int


@dataclass(frozen=True, slots=True)
class Recital:
    """What a look-up took in one round to look, where it finds something and where it does not."""

    drafter: str
    round: int
    costs: CycleCosts


def measured(lab: Lab, plan: Plan, *, journal: Journal | None = None) -> Ledger:
    """All cells of a plan. journal: finished runs go into it, and those in it are not measured again."""
    experiment = Experiment(lab, plan, journal)
    experiment.measure_all()
    return experiment.ledger()


def key(lab: Lab, plan: Plan) -> str:
    """For a journal: pieces of another build, other weights, threads or another plan do not count."""
    return f"{backend.build_info()} {lab.digests(_offered(lab, plan))} {lab.threads} {plan}"


def _offered(lab: Lab, plan: Plan) -> tuple[str, ...]:
    """Without the drafters trained for the embedded model, where the target is another."""
    return tuple(name for name in plan.drafters if lab.embedded or name not in trained.KINDS)


class Experiment:
    """One plan on one lab, and what was measured so far."""

    def __init__(self, lab: Lab, plan: Plan, journal: Journal | None) -> None:
        self._lab, self._plan, self._journal = lab, plan, journal
        self.drafters = _offered(lab, plan)
        self._timed: list[Timed] = []
        self._recitals: list[Recital] = []
        for entry in journal.entries() if journal else ():
            if "cell" in entry:
                self._timed.append(_timed_of(entry))
            else:
                self._recitals.append(Recital(**entry | {"costs": _costs_of(entry["costs"])}))

    def measure_all(self) -> None:
        """Every drafter, as many rounds as the plan has."""
        for number in range(self._plan.rounds):
            for name in self.drafters:
                self.measure(name, number)

    def measure(self, name: str, number: int) -> None:
        """One round of a drafter: every cell once, in random order."""
        known = {timed.cell for timed in self._timed if timed.round == number}
        missing = [cell for cell in self._cells_of(name) if cell not in known]
        if not missing:
            return
        drafter = self._lab.drafter(name)
        recited = any((each.drafter, each.round) == (name, number) for each in self._recitals)
        if not recited and cycle_costs.looks_up(drafter):
            self._recitals.append(found := Recital(name, number, self._recited(drafter)))
            self._note(asdict(found) | {"costs": _plain(found.costs)})
        with self._lab.second(name) as twins:
            for cell in random.Random(number).sample(missing, len(missing)):
                self._timed.append(found := self._time(drafter, twins, cell, number))
                rows = [astuple(sample) for sample in found.samples]
                self._note(asdict(found) | {"samples": rows, "costs": _plain(found.costs)})

    def ledger(self) -> Ledger:
        """What the cells measured so far say."""
        found: list[LedgerCell] = []
        for name in self.drafters:
            recitals = [each.costs for each in self._recitals if each.drafter == name]
            for cell in self._cells_of(name):
                measured = [timed for timed in self._timed if timed.cell == cell]
                # What stayed contended to the last try counts only where no round was quiet.
                runs = [timed for timed in measured if not timed.costs.contended] or measured
                found.append(
                    ledger.cell(
                        [timed.samples for timed in runs],
                        ledger.Prices(ledger.together([*map(_calm, runs), *recitals], name)),
                        k=cell.k,
                        kind=cell.kind,
                        contended=any(timed.costs.contended for timed in runs),
                        tries=max(timed.tries for timed in measured),
                    )
                )
        return Ledger(tuple(found))

    def _cells_of(self, name: str) -> Iterator[Cell]:
        for k in (0,) if name == PLAIN else [k for k in self._plan.ks if k <= longest_k(name)]:
            yield from (Cell(name, k, kind) for kind in self._plan.kinds)

    def _time(self, drafter: Drafter, twins: tuple[Session, Drafter], cell: Cell, number: int) -> Timed:
        """A run and its twin; both again when contended. twins: session and drafter of twins."""
        tries, contended = 0, True
        while contended and tries <= self._plan.retries:
            tries += 1
            twin = self._twin(*twins, cell)
            run = self._run(drafter, cell, twin.follow)
            costs = twin.costs()
            contended = costs.contended
        samples = ledger.samples(run.cycles, keeps_drafts=cycle_costs.keeps_drafts(drafter))
        return Timed(cell, number, samples, costs, tries)

    def _twin(self, session: Session, drafter: Drafter, cell: Cell) -> cycle_costs.Twin:
        begins = len(self._lab.prompt(PROMPTS[cell.kind])) - 1
        return cycle_costs.Twin(
            session,
            drafter,
            Sampler(Sampling()),
            k=cell.k,
            contexts=(begins, begins + self._plan.new_tokens // 2),
            ends_text=self._as_in_a_run(),
        )

    def _as_in_a_run(self) -> Callable[[int], bool]:
        return ending(Assembler(self._lab.model.piece), self._lab.model.is_eog)

    def _recited(self, drafter: Drafter) -> CycleCosts:
        prompt = self._lab.prompt(RECITED)
        text = [*prompt[len(prompt) // 2 :], *reversed(prompt[: len(prompt) // 2])]  # copies, and then does not
        return cycle_costs.recited(
            self._lab.session, drafter, Sampler(Sampling()), prompt, text, ends_text=self._as_in_a_run()
        )

    def _run(self, drafter: Drafter, cell: Cell, follow: Callable[[Cycle], None]) -> Run:
        emitted = 0

        def count(cycle: Cycle) -> None:
            nonlocal emitted
            emitted += len(cycle.emitted)
            follow(cycle)

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


def _calm(timed: Timed) -> CycleCosts:
    """What its twin took, less what disturbed it."""
    return replace(timed.costs, samples=ledger.calmed(timed.costs.samples))


def _plain(costs: CycleCosts) -> dict[str, object]:
    rows = {name: [astuple(sample) for sample in getattr(costs, name)] for name in ("samples", "recited")}
    return asdict(costs) | rows


def _costs_of(entry: dict[str, object]) -> CycleCosts:
    rows = {name: tuple(CycleSample(*row) for row in entry[name]) for name in ("samples", "recited")}
    return CycleCosts(**entry | rows | {"contexts": tuple(entry["contexts"])})


def _timed_of(entry: dict[str, object]) -> Timed:
    samples = tuple(CycleSample(*row) for row in entry["samples"])
    return Timed(**entry | {"cell": Cell(**entry["cell"]), "samples": samples, "costs": _costs_of(entry["costs"])})
