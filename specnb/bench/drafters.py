"""Every drafter against plain decoding, on prompts kept out of all training: alpha, gamma, tokens per cycle, speedup.

For each weight format, prompt kind and temperature a drafter gets the k >= 1 that its own costs, the
staircase as it is just then and its alpha in a pilot run ask for. Then plain decoding and all drafters write
the same prompts at once, in turns (``specnb.turns``); a speedup is the median over prompts of (speculative / plain)
tokens per second, with a bootstrap interval over prompts. Answers that fall into a repetition
loop flatter every drafter and stand in rows of their own (kind "loops").

Finished prompts are kept for half a day, so an interrupted benchmark goes on where it was. With SPECNB_RECORD=1 the
rows are also saved for notebook 06.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from statistics import mean, median

from .. import backend, drafters, machine, models, predict, store, trained
from ..intervals import median_interval
from ..journal import Journal
from ..lab import Lab
from ..notebook import RUNS
from ..prompts import HELD_OUT
from ..records import PLAIN as PLAIN_SETTING
from ..records import DrafterScore, DrafterScores, Run, Sampling, Setting
from ..repetition import find_loop
from ..turns import Timed

MAX_TOKENS = 128
PLAIN = drafters.NoDrafter.name
PILOT_K, PILOT_PROMPTS = 4, 2
COST_ROUNDS = 3
LOOPS = "loops"

ALL = drafters.names()[1:]
FEW = ("ngram_simple", "distilled", "eagle", "medusa")
TRIED = {("Q4_0", 0.0): ALL, ("Q4_0", 0.7): FEW, ("F32", 0.0): FEW, ("F32", 0.7): FEW}
"""(format, temperature) -> drafters tried there: in the fastest format and in the slowest, or it would take hours. In
the other formats only plain decoding is run, as what they have to beat."""
PLAIN_STEP = 4
"""There a quarter of the prompts does, one of each kind: plain decoding takes the same time whatever it writes."""

QUICK_DRAFTERS, QUICK_KINDS = ("ngram_simple", "eagle"), ("code", "rewrite")


@dataclass(frozen=True, slots=True)
class Answer:
    """One prompt written once by one drafter. prompt: its index in HELD_OUT. first_*: of each draft's first token."""

    format: str
    temperature: float
    prompt: int
    drafter: str
    k: int
    emitted: int
    passes: int
    tested: int
    kept: int
    first_tested: int
    first_kept: int
    seconds: float
    loops: bool
    predicted: float | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one format. plain_ms: T(1). draft_ms: per drafted token of each drafter."""

    verify_ms: dict[int, float]
    draft_ms: dict[str, float]

    @property
    def plain_ms(self) -> float:
        return self.verify_ms[1]


@dataclass(frozen=True, slots=True)
class Pilots:
    """Of one kind of prompt. runs: drafter -> its runs. verify_ms: T(N) as it was then, for a machine's speed drifts.

    Without drafters there is no staircase to choose a k by.
    """

    runs: dict[str, list[Run]]
    verify_ms: dict[int, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """prompts: indices in HELD_OUT. drafters: (format, temperature) -> those to try there."""

    prompts: tuple[int, ...]
    drafters: dict[tuple[str, float], tuple[str, ...]]

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(format for format, _ in self.drafters))


def run(*, quick: bool) -> dict[str, object]:
    plan = _quick_plan() if quick else _full_plan()
    journal = None if quick else Journal(models.cache_folder() / "bench-drafters.jsonl", key=_key())
    answers = [Answer(**answer) for entry in journal.entries() for answer in entry] if journal else []
    longest_staircase = 5.0 if quick else 20.0
    with Lab(n_ctx=1024) as lab:
        costs = {}
        for format in plan.formats:
            lab.use_format(format)
            lab.drafter(drafters.Eagle.name)  # from now on the target keeps its states, for plain decoding as well
            here = {temperature: names for (f, temperature), names in plan.drafters.items() if f == format}
            drafting = dict.fromkeys(name for names in here.values() for name in names)
            costs[format] = _costs(lab, drafting, rounds=1 if quick else COST_ROUNDS, max_seconds=longest_staircase)
            for temperature, names in here.items():
                pilots: dict[str, Pilots] = {}
                for index in plan.prompts if names else plan.prompts[::PLAIN_STEP]:
                    if any((a.format, a.temperature, a.prompt) == (format, temperature, index) for a in answers):
                        continue
                    kind = HELD_OUT[index].kind
                    if kind not in pilots:
                        of_kind = [i for i in plan.prompts if HELD_OUT[i].kind == kind]
                        pilots[kind] = _pilots(lab, of_kind, temperature, names, max_seconds=longest_staircase)
                    fresh = _race(lab, index, temperature, names, pilots[kind], costs[format].draft_ms)
                    answers += fresh
                    if journal:
                        journal.add([asdict(answer) for answer in fresh])
    if journal:
        journal.end()
    scores = DrafterScores(tuple(_rows(answers, costs)), len(plan.prompts))
    if not quick and os.environ.get("SPECNB_RECORD") == "1":
        made_on = machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())
        store.save(scores, RUNS / "06-scores.json", machine=made_on)
    return {
        "rows": [asdict(row) for row in scores.rows],
        "costs": {f: asdict(c) for f, c in costs.items()},
        "prompts": scores.prompts,
    }


def _full_plan() -> Plan:
    plain = {(format, 0.0): () for format in models.FORMATS if (format, 0.0) not in TRIED}
    return Plan(tuple(range(len(HELD_OUT))), TRIED | plain)


def _key() -> str:
    """Answers of another build of llama.cpp or of other weights do not count."""
    digests = [trained.load(trained.path_of(kind)).digest for kind in trained.KINDS]
    return f"in turns, k by the staircase of the hour, {backend.build_info()} {digests}"


def _quick_plan() -> Plan:
    """One prompt of two kinds, one format, two drafters: whether it works, not what it measures."""
    first = tuple(next(i for i, prompt in enumerate(HELD_OUT) if prompt.kind == kind) for kind in QUICK_KINDS)
    return Plan(first, {("Q4_0", 0.0): QUICK_DRAFTERS})


def _sampling(temperature: float, prompt: int) -> Sampling:
    return Sampling() if temperature == 0.0 else Sampling(temperature=temperature, seed=100 + prompt)


def _pilots(
    lab: Lab, indices: Sequence[int], temperature: float, names: Sequence[str], *, max_seconds: float
) -> Pilots:
    """One run of each drafter for each of a kind's first prompts, for its alpha only."""
    runs = {
        name: [
            lab.run(HELD_OUT[i], name, k=PILOT_K, sampling=_sampling(temperature, i), max_tokens=MAX_TOKENS)
            for i in indices[:PILOT_PROMPTS]
        ]
        for name in names
    }
    return Pilots(runs, _staircase(lab, max_seconds) if names else {})


def _staircase(lab: Lab, max_seconds: float) -> dict[int, float]:
    return dict(lab.staircase(precision=0.05, max_seconds=max_seconds).median_ms)


def _costs(lab: Lab, names: Iterable[str], *, rounds: int, max_seconds: float) -> Costs:
    """A drafter costs the median of some rounds over all drafters: a disturbance of seconds spoils one round only."""
    found = [{name: lab.draft_ms(name, HELD_OUT[0], k=PILOT_K) for name in names} for _ in range(rounds)]
    draft_ms = {name: median(each[name] for each in found) for name in found[0]}
    return Costs(_staircase(lab, max_seconds), draft_ms)


def _best_k(
    pilots: list[Run], draft_ms: float, verify_ms: dict[int, float], longest: float
) -> tuple[int, float | None]:
    """(the k >= 1 of the highest predicted speedup, that prediction), median over the pilot runs."""
    by_k: dict[int, list[float]] = {}
    for pilot in [pilot for pilot in pilots if find_loop(pilot.tokens) is None] or pilots:
        for k, speedup in predict.from_run(pilot, draft_ms=draft_ms, verify_ms=verify_ms).speedup_by_k.items():
            by_k.setdefault(k, []).append(speedup)
    allowed = {k: median(values) for k, values in by_k.items() if k <= longest}
    if not allowed:
        return PILOT_K, None  # it never drafted in the pilot: any k will do
    best = max(allowed, key=allowed.__getitem__)
    return best, allowed[best]


def _race(
    lab: Lab,
    index: int,
    temperature: float,
    names: tuple[str, ...],
    pilots: Pilots,
    draft_ms: dict[str, float],
) -> list[Answer]:
    """Plain decoding and every drafter on one prompt, in turns."""
    prompt, sampling = HELD_OUT[index], _sampling(temperature, index)
    predicted: dict[Setting, float | None] = {PLAIN_SETTING: None}
    for name in names:
        k, speedup = _best_k(pilots.runs[name], draft_ms[name], pilots.verify_ms, _longest_k(name))
        predicted[Setting(name, k)] = speedup
    timed = lab.in_turns(prompt, tuple(predicted), sampling=sampling, max_tokens=MAX_TOKENS, seed=index)
    return [
        replace(_answer(each, lab.format, temperature, index), predicted=predicted[setting])
        for setting, each in timed.items()
    ]


def _longest_k(name: str) -> float:
    """The longest draft it was trained for; infinite where nothing limits it."""
    return (name in trained.KINDS and trained.load(trained.path_of(name)).longest_k) or inf


def _answer(timed: Timed, format: str, temperature: float, index: int) -> Answer:
    run = timed.run
    drafts = [cycle for cycle in run.cycles if cycle.drafted]
    return Answer(
        format=format,
        temperature=temperature,
        prompt=index,
        drafter=run.drafter,
        k=run.k,
        emitted=run.emitted,
        passes=run.target_passes,
        tested=run.tested,
        kept=run.kept,
        first_tested=sum(cycle.tested > 0 for cycle in drafts),
        first_kept=sum(cycle.kept > 0 for cycle in drafts),
        seconds=timed.ms * run.emitted / 1e3,
        loops=find_loop(run.tokens) is not None,
    )


def _rows(answers: list[Answer], costs: dict[str, Costs]) -> list[DrafterScore]:
    """Plain decoding in every format first; then a row a (format, temperature, drafter, kind)."""
    plain = _plain_speeds(answers)
    fastest = _fastest(plain)
    rows = [
        DrafterScore(
            drafter=PLAIN,
            format=format,
            kind="all",
            temperature=temperature,
            k=0,
            tokens_per_cycle=1.0,
            speedup=1.0,
            tokens_per_second=median(speeds.values()),
            against_fastest_plain=median(speed / fastest(prompt) for prompt, speed in speeds.items()),
            prompts=len(speeds),
        )
        for (format, temperature), speeds in plain.items()
    ]
    groups: dict[tuple[str, float, str, str], list[Answer]] = {}
    for answer in answers:
        if answer.drafter != PLAIN:
            kind = LOOPS if answer.loops else HELD_OUT[answer.prompt].kind
            groups.setdefault((answer.format, answer.temperature, answer.drafter, kind), []).append(answer)
    loops_last = sorted(groups.items(), key=lambda item: item[0][-1] == LOOPS)
    for (format, temperature, drafter, kind), group in loops_last:
        before = plain[format, temperature]
        ratios = [a.emitted / a.seconds / before[a.prompt] for a in group]
        tested, first = sum(a.tested for a in group), sum(a.first_tested for a in group)
        guesses = [a.predicted for a in group if a.predicted is not None]
        rows.append(
            DrafterScore(
                drafter=drafter,
                format=format,
                kind=kind,
                temperature=temperature,
                k=round(median(a.k for a in group)),
                alpha=sum(a.kept for a in group) / tested if tested else None,
                alpha_first=sum(a.first_kept for a in group) / first if first else None,
                gamma=costs[format].draft_ms[drafter] / costs[format].plain_ms,
                tokens_per_cycle=sum(a.emitted for a in group) / sum(a.passes for a in group),
                predicted=median(guesses) if guesses and kind != LOOPS else None,
                speedup=median(ratios),
                speedup_ci=median_interval(ratios),
                tokens_per_second=median(a.emitted / a.seconds for a in group),
                against_fastest_plain=median(a.emitted / a.seconds / fastest(a.prompt) for a in group),
                prompts=len(group),
            )
        )
    return rows


def _fastest(plain: dict[tuple[str, float], dict[int, float]]) -> Callable[[int], float]:
    """Prompt -> tokens per second of greedy plain decoding in the format that is fastest at it.

    Where that format did not write the prompt, the median over those it did.
    """
    coldest = min(temperature for _, temperature in plain)
    speeds = max((of for (_, t), of in plain.items() if t == coldest), key=lambda of: median(of.values()))
    return lambda prompt: speeds.get(prompt) or median(speeds.values())


def _plain_speeds(answers: list[Answer]) -> dict[tuple[str, float], dict[int, float]]:
    """(format, temperature) -> prompt -> tokens per second of plain decoding there."""
    found: dict[tuple[str, float], dict[int, list[float]]] = {}
    for a in answers:
        if a.drafter == PLAIN:
            found.setdefault((a.format, a.temperature), {}).setdefault(a.prompt, []).append(a.emitted / a.seconds)
    return {key: {prompt: mean(speeds) for prompt, speeds in of.items()} for key, of in found.items()}


def table(figures: dict[str, object]) -> str:
    lines = [
        "Plain decoding first: where a fast format is to be had, a speedup in a slow one only undoes the slow format.",
        f"{'drafter':<16}{'format':<7}{'T':>4} {'kind':<10}{'k':>3}{'alpha':>7}{'first':>7}{'gamma':>7}{'tok/cyc':>9}"
        f"{'predicted':>11}{'speedup':>9}  {'95 % interval':<15}{'tok/s':>7}{'/fastest':>9}{'prompts':>9}",
    ]
    for row in figures["rows"]:
        interval = row["speedup_ci"]
        lines.append(
            f"{row['drafter']:<16}{row['format']:<7}{row['temperature']:>4} {row['kind']:<10}{row['k']:>3}"
            f"{_number(row['alpha']):>7}{_number(row['alpha_first']):>7}{_number(row['gamma'], 3):>7}"
            f"{_number(row['tokens_per_cycle']):>9}{_number(row['predicted']):>11}{_number(row['speedup']):>9}  "
            f"{f'{interval[0]:.2f}-{interval[1]:.2f}' if interval else '–':<15}"
            f"{row['tokens_per_second']:>7.0f}{_number(row['against_fastest_plain']):>9}{row['prompts']:>9}"
        )
    return "\n".join(lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
