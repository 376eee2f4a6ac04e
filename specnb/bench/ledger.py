"""The ledger: every drafter and k on three prompts, predicted from costs measured apart, and measured.

A run's price is the sum over its cycles of draft, catch-up, target pass at its context length, new
graphs, sampling, rollback and bookkeeping. None of it comes from the run: the parts are timed in
scripted cycles (``specnb.cycle_costs``). The first prediction takes the tokens that each cycle
really kept, so its error is the costs'; the second takes alpha alone and adds the error of the
geometric assumption.

Costs and runs of a drafter alternate, round after round. What was measured while another process
held a core is measured again, up to twice, and listed. Finished pieces are kept for half a day, so
an interrupted benchmark goes on where it was. A look-up's k ends at its longest draft, since beyond
it every run is the same; a head's at the length it was trained for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from statistics import fmean, median

from .. import backend, cycle_costs, drafters, ledger, machine, measure, models, trained
from ..backend import Sampler
from ..drafters import Drafter
from ..journal import Journal
from ..lab import Lab
from ..prompts import HELD_OUT, PROMPTS
from ..records import CycleCosts, CycleSample, LedgerCell, Limits, Run, Sampling

FORMAT = "Q4_0"
"""The embedded model is fastest in it, so whatever is not a pass weighs most."""

PLAIN = drafters.NoDrafter.name
BOUND = 0.06
"""No cell's interval may lie wholly beyond this error."""

RETRIES = 2
MARGIN = 8
RECITED = next(prompt for prompt in HELD_OUT if prompt.kind == "rewrite")
"""Its text, copied, is what look-ups are timed on; no cell uses it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    families: drafters whose target passes are priced together. kinds: of ``PROMPTS``. retries: times that what
    was contended is measured again.
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


LOOK_UPS = (PLAIN, *(kind.name for kind in drafters.LOOK_UPS))
FULL = Plan(
    families=(LOOK_UPS, *((name,) for name in drafters.names() if name not in LOOK_UPS)),
    ks=tuple(range(1, 17)),
    kinds=("rewrite", "code", "story"),
    rounds=2,
    new_tokens=64,
    n_contexts=3,
    retries=RETRIES,
)
QUICK = Plan(
    families=((PLAIN, "ngram_simple"), ("draft_model",), ("eagle",)),
    ks=(1, 3, 5),
    kinds=("rewrite",),
    rounds=1,
    new_tokens=24,
    n_contexts=2,
    retries=0,
)


def run(*, quick: bool) -> dict[str, object]:
    plan, started = QUICK if quick else FULL, time.perf_counter()
    with Lab(n_ctx=1024) as lab:
        if lab.embedded:
            lab.use_format(FORMAT)
        journal = None if quick else Journal(models.cache_folder() / "bench-ledger.jsonl", key=_key(lab, plan))
        bench = _Bench(lab, plan, journal)
        for family in bench.families:
            for number in range(plan.rounds):
                bench.measure(family, number)
        format = lab.format
    if journal:
        journal.end()
    cells = bench.cells()
    rerun = [asdict(cell) for cell in {timed.cell: None for timed in bench.timed if timed.tries > 1}]
    return {**summary(cells), "rerun": rerun, "format": format, "seconds": time.perf_counter() - started}


def _key(lab: Lab, plan: Plan) -> str:
    """Pieces of another build, other weights, threads or another plan do not count."""
    weights = lab.digests([name for family in _families(lab, plan) for name in family])
    return f"{backend.build_info()} {weights} {lab.threads} {plan}"


def _families(lab: Lab, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Without the drafters trained for the embedded model, where the target is another."""
    return tuple(family for family in plan.families if lab.embedded or not set(family) & set(trained.KINDS))


class _Bench:
    """What was measured so far: ``costs`` by drafter, ``timed`` runs."""

    def __init__(self, lab: Lab, plan: Plan, journal: Journal | None) -> None:
        self._lab, self._plan, self._journal = lab, plan, journal
        self.families = _families(lab, plan)
        self._costs: dict[tuple[str, int], CycleCosts] = {}
        self.timed: list[Timed] = []
        for entry in journal.entries() if journal else ():
            if "costs" in entry:
                self._costs[entry["drafter"], entry["round"]] = _costs_of(entry["costs"])
            else:
                self.timed.append(_timed_of(entry))

    def measure(self, family: Sequence[str], number: int) -> None:
        """One round of a family: its costs, and then every cell once, in random order."""
        wanted = [(name, number) for name in family]
        known = {(timed.cell, timed.round) for timed in self.timed}
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
                self.timed.append(timed)
                self._note(asdict(timed) | {"samples": [astuple(sample) for sample in timed.samples]})
            missing = contended

    def cells(self) -> tuple[LedgerCell, ...]:
        found = []
        for family in self.families:
            for name in family:
                rounds = [costs for (drafter, _), costs in sorted(self._costs.items()) if drafter == name]
                prices = ledger.Prices(ledger.together(rounds, name))
                for cell in self._cells_of((name,)):
                    runs = [timed for timed in self.timed if timed.cell == cell]
                    samples = [timed.samples for timed in runs]
                    contended = any(timed.contended for timed in runs) or any(costs.contended for costs in rounds)
                    found.append(ledger.cell(samples, prices, k=cell.k, kind=cell.kind, contended=contended))
        return tuple(found)

    def _cells_of(self, names: Sequence[str]) -> Iterator[Cell]:
        for name in names:
            ks = (0,) if name == PLAIN else [k for k in self._plan.ks if k <= _longest_k(name)]
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
        shared = cycle_costs.scripted(session, first, sampler, ks=ks, contexts=self._contexts(), seed=number)
        prompt = self._lab.prompt(RECITED)
        text = [*prompt[len(prompt) // 2 :], *reversed(prompt[: len(prompt) // 2])]  # copies, and then does not
        found = {}
        for name, drafter in opened.items():
            parts = [shared]
            if not own or isinstance(drafter, drafters.Chain):
                parts.append(cycle_costs.recited(session, drafter, sampler, prompt, text))
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

        def count(cycle: object) -> None:
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


def _longest_k(name: str) -> int:
    """The longest draft that it can make; the longest of the plan where nothing limits it."""
    if name in trained.KINDS:
        return trained.load(trained.path_of(name)).longest_k or max(FULL.ks)
    return next((kind().m for kind in drafters.LOOK_UPS if kind.name == name), max(FULL.ks))


def _plain(costs: CycleCosts) -> dict[str, object]:
    return asdict(costs) | {"samples": [astuple(sample) for sample in costs.samples]}


def _costs_of(entry: dict[str, object]) -> CycleCosts:
    samples = tuple(CycleSample(*row) for row in entry["samples"])
    return CycleCosts(**entry | {"samples": samples, "contexts": tuple(entry["contexts"])})


def _timed_of(entry: dict[str, object]) -> Timed:
    samples = tuple(CycleSample(*row) for row in entry["samples"])
    return Timed(**entry | {"cell": Cell(**entry["cell"]), "samples": samples})


# --- figures ----------------------------------------------------------------------------------


def summary(cells: Sequence[LedgerCell]) -> dict[str, object]:
    """Medians and largest errors over the cells, and a row for each."""
    errors = [abs(cell.error) for cell in cells]
    of_alpha = [abs(cell.error_of_alpha) for cell in cells]
    return {
        "median_error": median(errors),
        "max_error": max(errors),
        "median_error_of_alpha": median(of_alpha),
        "max_error_of_alpha": max(of_alpha),
        "beyond": sum(cell.wholly_beyond(BOUND) for cell in cells),
        "rows": [_row(cell) for cell in cells],
    }


def _row(cell: LedgerCell) -> dict[str, object]:
    interval = cell.interval
    return {
        "drafter": cell.drafter,
        "k": cell.k,
        "kind": cell.kind,
        "cycles": cell.cycles,
        "tokens_per_cycle": cell.tokens_per_cycle,
        "alpha": cell.alpha,
        "measured_ms": cell.measured_ms,
        "predicted_ms": cell.predicted_ms,
        "error": cell.error,
        "error_ci": None if interval is None else [end - 1.0 for end in interval],
        "beyond": cell.wholly_beyond(BOUND),
        "of_alpha_ms": cell.of_alpha_ms,
        "error_of_alpha": cell.error_of_alpha,
        "cycle_ms": asdict(cell.predicted),
        # What the prediction leaves over or lacks, by what a run's clock can tell apart; shares of a cycle.
        "rest": {
            part: (getattr(cell.measured, part) - getattr(cell.predicted, part)) / cell.measured.ms
            for part in ("drafting", "passing", "sampling", "other")
        },
        "contended": cell.contended,
    }


def table(figures: dict[str, object]) -> str:
    rows = figures["rows"]
    lines = [
        f"Predicted over measured milliseconds per token, {figures['format']}, {len(rows)} cells, "
        f"{figures['seconds']:.0f} s.",
        f"Given what was kept: median error {_percent(figures['median_error'])}, largest "
        f"{_percent(figures['max_error'])}; {figures['beyond']} cell(s) wholly beyond {_percent(BOUND)}.",
        f"Given alpha alone:   median error {_percent(figures['median_error_of_alpha'])}, largest "
        f"{_percent(figures['max_error_of_alpha'])}.",
        "",
        *_by_drafter(rows),
        "",
        *_by_cell(rows),
        "",
        _listed("Measured again, because another process held a core", figures["rerun"]),
        _listed("Still contended after that, so not to be trusted", [row for row in rows if row["contended"]]),
    ]
    return "\n".join(lines)


def _by_drafter(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """One line a drafter; what is left, by part, as a share of the measured cycle."""
    yield (
        f"{'drafter':<16}{'cells':>6}{'median':>9}{'largest':>9}{'beyond':>8}{'of alpha':>10}   "
        "left over, in % of a cycle: draft   pass   sampling   other"
    )
    for name in dict.fromkeys(row["drafter"] for row in rows):
        own = [row for row in rows if row["drafter"] == name]
        rest = {part: fmean(row["rest"][part] for row in own) for part in own[0]["rest"]}
        yield (
            f"{name:<16}{len(own):>6}{_percent(median(abs(row['error']) for row in own)):>9}"
            f"{_percent(max(abs(row['error']) for row in own)):>9}{sum(row['beyond'] for row in own):>8}"
            f"{_percent(median(abs(row['error_of_alpha']) for row in own)):>10}"
            f"{100 * rest['drafting']:>35.2f}{100 * rest['passing']:>7.2f}{100 * rest['sampling']:>11.2f}"
            f"{100 * rest['other']:>8.2f}"
        )


def _by_cell(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    yield (
        f"{'drafter':<16}{'k':>3} {'prompt':<9}{'alpha':>6}{'tok/cyc':>9}{'measured':>10}{'predicted':>11}{'error':>8}"
        f"  {'95 % interval':<17}{'of alpha':>9}{'error':>8}"
    )
    for row in rows:
        interval = row["error_ci"]
        ends = f"{100 * interval[0]:+.1f} % to {100 * interval[1]:+.1f} %" if interval else "–"
        alpha = "–" if row["alpha"] is None else f"{row['alpha']:.2f}"
        yield (
            f"{row['drafter']:<16}{row['k']:>3} {row['kind']:<9}{alpha:>6}{row['tokens_per_cycle']:>9.2f}"
            f"{row['measured_ms']:>10.2f}{row['predicted_ms']:>11.2f}{100 * row['error']:>+7.1f}%  {ends:<17}"
            f"{row['of_alpha_ms']:>9.2f}{100 * row['error_of_alpha']:>+7.1f}%"
            f"{'  beyond' if row['beyond'] else ''}{'  contended' if row['contended'] else ''}"
        )


def _listed(what: str, cells: Sequence[dict[str, object]]) -> str:
    named = ", ".join(f"{cell['drafter']} k={cell['k']} {cell['kind']}" for cell in cells)
    return f"{what}: {named or 'none'}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
