"""Measures the cells of a ledger: costs in scripted cycles and runs of the same drafters, in turns.

Costs and runs of a drafter alternate, round after round, so that a slow drift of the machine hits
both. What was measured while another process held a core is measured again.
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


def measured(lab: Lab, plan: Plan, *, journal: Journal | None = None) -> Ledger:
    """All cells of a plan. journal: finished pieces go into it, and those in it are not measured again."""
    experiment = Experiment(lab, plan, journal)
    for family in experiment.families:
        for number in range(plan.rounds):
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
        self._costs: dict[tuple[str, int], CycleCosts] = {}
        self._timed: list[Timed] = []
        for entry in journal.entries() if journal else ():
            if "costs" in entry:
                self._costs[entry["drafter"], entry["round"]] = _costs_of(entry["costs"])
            else:
                self._timed.append(_timed_of(entry))

    def measure(self, family: Sequence[str], number: int) -> None:
        """One round of a family: its costs, and then every cell once, in random order."""
        wanted = [(name, number) for name in family]
        known = {(timed.cell, timed.round) for timed in self._timed}
        missing = [cell for cell in self._cells_of(family) if (cell, number) not in known]
        if all(key in self._costs for key in wanted) and not missing:
            return
        opened = {name: self._lab.drafter(name) for name in family}
        if not all(key in self._costs for key in wanted):
            for name, costs in self._measure_costs(opened, number).items():
                self._costs[name, number] = costs
                self._note({"drafter": name, "round": number, "costs": _plain(costs)})
        order = random.Random(number)
        order.shuffle(missing)
        for attempt in range(1, self._plan.retries + 2):
            last = attempt == self._plan.retries + 1
            contended = []
            for cell in missing:
                timed = self._time(opened[cell.drafter], cell, number, attempt)
                if timed.contended and not last:
                    contended.append(cell)
                    continue
                self._timed.append(timed)
                self._note(asdict(timed) | {"samples": [astuple(sample) for sample in timed.samples]})
            missing = contended

    def ledger(self) -> Ledger:
        """What the cells measured so far say. KeyError or ValueError where a round is missing altogether."""
        found: list[LedgerCell] = []
        for family in self.families:
            for name in family:
                rounds = [costs for (drafter, _), costs in sorted(self._costs.items()) if drafter == name]
                prices = ledger.Prices(ledger.together(rounds, name))
                for cell in self._cells_of((name,)):
                    runs = [timed for timed in self._timed if timed.cell == cell]
                    found.append(
                        ledger.cell(
                            [timed.samples for timed in runs],
                            prices,
                            k=cell.k,
                            kind=cell.kind,
                            contended=any(each.contended for each in (*runs, *rounds)),
                            tries=max((timed.tries for timed in runs), default=1),
                        )
                    )
        return Ledger(tuple(found))

    def _cells_of(self, names: Sequence[str]) -> Iterator[Cell]:
        for name in names:
            ks = (0,) if name == PLAIN else [k for k in self._plan.ks if k <= longest_k(name)]
            for k in ks:
                yield from (Cell(name, k, kind) for kind in self._plan.kinds)

    def _measure_costs(self, opened: dict[str, Drafter], number: int) -> dict[str, CycleCosts]:
        """By drafter. Look-ups share the target's part and have a part of their own; measured again when contended."""
        for _ in range(self._plan.retries + 1):
            found = self._costs_once(opened, number)
            if not any(costs.contended for costs in found.values()):
                break
        return found

    def _costs_once(self, opened: dict[str, Drafter], number: int) -> dict[str, CycleCosts]:
        first = next(iter(opened.values()))
        longest = max(cell.k for cell in self._cells_of(tuple(opened)))
        own = cycle_costs.runs_a_model(first)
        # A model drafts k tokens in every cycle; a look-up any number up to k.
        ks = [k for k in self._plan.ks if k <= longest] if own else range(longest + 1)
        session, sampler = self._lab.session, Sampler(Sampling())
        model = self._lab.model
        as_in_a_run = ending(Assembler(model.piece), model.is_eog)
        shared = cycle_costs.scripted(
            session, first, sampler, ks=ks, contexts=self._contexts(), ends_text=as_in_a_run, seed=number
        )
        prompt = self._lab.prompt(RECITED)
        text = [*prompt[len(prompt) // 2 :], *reversed(prompt[: len(prompt) // 2])]  # copies, and then does not
        found = {}
        for name, drafter in opened.items():
            parts = [shared]
            if not own or isinstance(drafter, drafters.Chain):
                parts.append(cycle_costs.recited(session, drafter, sampler, prompt, text, ends_text=as_in_a_run))
            found[name] = ledger.together(parts, name)
        return found

    def _contexts(self) -> tuple[int, ...]:
        """From just before the shortest prompt's end to where the longest answer ends."""
        lengths = [len(self._lab.prompt(PROMPTS[kind])) for kind in self._plan.kinds]
        low, high = min(lengths) - MARGIN, max(lengths) + self._plan.new_tokens - MARGIN
        steps = self._plan.n_contexts - 1
        return tuple(low + (high - low) * i // steps for i in range(steps + 1))

    def _time(self, drafter: Drafter, cell: Cell, number: int, attempt: int) -> Timed:
        watch = machine.CoreWatch()
        run = self._run(drafter, cell)
        contended = watch.busy_elsewhere() > measure.CONTENDED_CORES
        samples = ledger.samples(run.cycles, keeps_drafts=cycle_costs.keeps_drafts(drafter))
        return Timed(cell, number, samples, contended, attempt)

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


def _plain(costs: CycleCosts) -> dict[str, object]:
    rows = {name: [astuple(sample) for sample in getattr(costs, name)] for name in ("samples", "recited")}
    return asdict(costs) | rows


def _costs_of(entry: dict[str, object]) -> CycleCosts:
    rows = {name: tuple(CycleSample(*row) for row in entry[name]) for name in ("samples", "recited")}
    return CycleCosts(**entry | rows | {"contexts": tuple(entry["contexts"])})


def _timed_of(entry: dict[str, object]) -> Timed:
    samples = tuple(CycleSample(*row) for row in entry["samples"])
    return Timed(**entry | {"cell": Cell(**entry["cell"]), "samples": samples})
