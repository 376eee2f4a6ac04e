"""Every drafter against plain decoding, on prompts kept out of all training: alpha, gamma, tokens per cycle, speedup.

For each weight format, prompt kind and temperature a drafter gets the k >= 1 and the p_min that are fastest in replays
of two of the prompts (``specnb.replay``), paid with its own costs and the staircase as it is just then. Then plain
decoding and all drafters write the same prompts at once, in turns (``specnb.turns``); a speedup is the median over
prompts of (speculative / plain) tokens per second, and beside it stand the lowest and the highest: of three or four
prompts no interval says more. Answers that fall into a repetition loop flatter most drafters and stand in rows of
their own (kind "loops").

Finished prompts are kept for half a day, so an interrupted benchmark goes on where it was. With SPECNB_RECORD=1 the
rows are also saved for notebook 06.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import mean, median

from .. import backend, drafters, machine, measure, models, replay, store, trained
from ..intervals import median_interval
from ..journal import Journal
from ..lab import Lab
from ..notebook import RUNS
from ..prompts import HELD_OUT
from ..records import PLAIN as PLAIN_SETTING
from ..records import DrafterScore, DrafterScores, DraftPrice, Run, Sampling, Setting
from ..repetition import find_loop
from ..turns import Timed

MAX_TOKENS = 128
PLAIN = drafters.NoDrafter.name
LOOPS = "loops"

PILOT_PROMPTS = 2
FEWEST_FOR_INTERVAL = 6
"""Of fewer prompts the bootstrap's 95 % interval of a median is their range, and covers it less often than that."""
LONGEST_K, LONGEST_MODEL_K = 10, 6
P_MINS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
COST_K, COST_ROUNDS = 4, 3
CONTEXT_LENGTH = 192

LOOK_UPS = tuple(kind.name for kind in drafters.LOOK_UPS)
HEAD_CHAIN = f"{drafters.NgramSimple.name},{drafters.Eagle.name}"
"""The look-up first and the head where that finds nothing: of both sorts the one that costs least."""
CHAINS = (drafters.Chain.name, HEAD_CHAIN)
ALL = (*drafters.names()[1:], HEAD_CHAIN)
FEW = ("ngram_simple", "distilled", "eagle", HEAD_CHAIN, "medusa")
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
    p_min: float
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
    """Of one format. plain_ms: T(1). draft_ms: per drafted token of each drafter, timed apart. prices: of its drafts
    between two passes of the target. switch_ms: of a pass over another N than the one before.
    """

    verify_ms: dict[int, float]
    draft_ms: dict[str, float]
    prices: dict[str, DraftPrice]
    switch_ms: float

    @property
    def plain_ms(self) -> float:
        return self.verify_ms[1]


@dataclass(frozen=True, slots=True)
class Pilot:
    """One prompt, and what a drafter would do with it. steps: (k, p_min) -> its cycles. loops: of the text."""

    steps: Callable[[int, float], tuple[replay.Step, ...]]
    loops: bool


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
    longest_staircase = 5.0 if quick else 20.0
    with Lab(n_ctx=1024) as lab:
        journal = None if quick else Journal(models.cache_folder() / "bench-drafters.jsonl", key=_key(lab, plan))
        answers = [Answer(**answer) for entry in journal.entries() for answer in entry] if journal else []
        costs = {}
        for format in plan.formats:
            lab.use_format(format)
            lab.drafter(drafters.Eagle.name)  # from now on the target keeps its states, for plain decoding as well
            here = {temperature: names for (f, temperature), names in plan.drafters.items() if f == format}
            drafting = dict.fromkeys(name for names in here.values() for name in names)
            costs[format] = _costs(lab, drafting, rounds=1 if quick else COST_ROUNDS, max_seconds=longest_staircase)
            for temperature, names in here.items():
                chosen: dict[str, dict[Setting, float]] = {}
                for index in plan.prompts if names else plan.prompts[::PLAIN_STEP]:
                    if any((a.format, a.temperature, a.prompt) == (format, temperature, index) for a in answers):
                        continue
                    kind = HELD_OUT[index].kind
                    if names and kind not in chosen:
                        of_kind = [i for i in plan.prompts if HELD_OUT[i].kind == kind][:PILOT_PROMPTS]
                        verify_ms = _staircase(lab, longest_staircase)
                        chosen[kind] = _choose(lab, of_kind, temperature, names, costs[format], verify_ms)
                    fresh = _race(lab, index, temperature, chosen.get(kind, {}))
                    answers += fresh
                    if journal:
                        journal.add([asdict(answer) for answer in fresh])
    scores = DrafterScores(tuple(_rows(answers, costs)), len(plan.prompts))
    if not quick and os.environ.get("SPECNB_RECORD") == "1":
        made_on = machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())
        store.save(scores, RUNS / "06-scores.json", machine=made_on)
    if journal:
        journal.end()
    return {
        "rows": [asdict(row) for row in scores.rows],
        "costs": {f: asdict(c) for f, c in costs.items()},
        "prompts": scores.prompts,
    }


def _full_plan() -> Plan:
    plain = {(format, 0.0): () for format in models.FORMATS if (format, 0.0) not in TRIED}
    return Plan(tuple(range(len(HELD_OUT))), TRIED | plain)


def _key(lab: Lab, plan: Plan) -> str:
    """Answers of another build of llama.cpp, of other weights, threads or another plan do not count."""
    return f"k and p_min by replays, {backend.build_info()} {lab.digests(ALL)} {lab.threads} {MAX_TOKENS} {plan}"


def _quick_plan() -> Plan:
    """One prompt of two kinds, one format, two drafters: whether it works, not what it measures."""
    first = tuple(next(i for i, prompt in enumerate(HELD_OUT) if prompt.kind == kind) for kind in QUICK_KINDS)
    return Plan(first, {("Q4_0", 0.0): QUICK_DRAFTERS})


def _sampling(temperature: float, prompt: int) -> Sampling:
    return Sampling() if temperature == 0.0 else Sampling(temperature=temperature, seed=100 + prompt)


def _choose(
    lab: Lab,
    indices: Sequence[int],
    temperature: float,
    names: Sequence[str],
    costs: Costs,
    verify_ms: Mapping[int, float],
) -> dict[Setting, float]:
    """What each drafter gets on a kind of prompt, by pilots on these, and the speedup predicted of it.

    verify_ms: T(N) just now, in place of that in ``costs``: a machine's speed drifts.
    """
    chosen: dict[Setting, float] = {}
    # One plain text a prompt does for all look-ups.
    plain = {
        i: lab.run(HELD_OUT[i], sampling=_sampling(temperature, i), max_tokens=MAX_TOKENS)
        for i in (indices if set(names) & set(LOOK_UPS) else ())
    }
    for name in names:
        pilots = [
            _looked_up(lab, plain[i], name) if name in LOOK_UPS else _rehearsed(lab, i, temperature, name)
            for i in indices
        ]
        chosen |= dict([_best(name, pilots, costs.prices[name], verify_ms, costs.switch_ms)])
    return chosen


def _looked_up(lab: Lab, plain: Run, name: str) -> Pilot:
    def steps(k: int, _p_min: float) -> tuple[replay.Step, ...]:
        return replay.of_look_up(lab.drafter(name), plain.prompt_tokens, plain.tokens, k)

    return Pilot(steps, find_loop(plain.tokens) is not None)


def _rehearsed(lab: Lab, index: int, temperature: float, name: str) -> Pilot:
    sampling = _sampling(temperature, index)
    found = lab.rehearse(HELD_OUT[index], name, k=_longest_k(name), sampling=sampling, max_tokens=MAX_TOKENS)
    return Pilot(partial(replay.of_rehearsal, found), find_loop(found.text) is not None)


def _best(
    name: str, pilots: Sequence[Pilot], price: DraftPrice, verify_ms: Mapping[int, float], switch_ms: float
) -> tuple[Setting, float]:
    """The setting with k >= 1 of the highest predicted speedup, and that: the median over pilots, loops left out."""
    telling = [pilot for pilot in pilots if not pilot.loops] or pilots

    def speedup(setting: Setting) -> float:
        steps = (pilot.steps(setting.k, setting.p_min) for pilot in telling)
        return median(verify_ms[1] / replay.ms_per_token(each, verify_ms, price, switch_ms=switch_ms) for each in steps)

    predicted = {
        setting: speedup(setting)
        for k in range(1, _longest_k(name) + 1)
        for setting in (Setting(name, k, p_min) for p_min in (P_MINS if name not in LOOK_UPS else (0.0,)))
    }
    return max(predicted.items(), key=lambda item: item[1])


def _longest_k(name: str) -> int:
    """Of what is tried: a look-up's drafts cost nothing, and a head's are no longer than those it was trained for."""
    if name in LOOK_UPS + CHAINS:
        return LONGEST_K
    trained_for = name in trained.KINDS and trained.load(trained.path_of(name)).longest_k
    return min(LONGEST_MODEL_K, trained_for or LONGEST_MODEL_K)


def _staircase(lab: Lab, max_seconds: float) -> dict[int, float]:
    """T(N) as it is now, for every draft that may be tried: a machine's speed drifts."""
    curve = measure.cost_curve(
        lab.session, range(1, LONGEST_K + 2), context_length=CONTEXT_LENGTH, rounds=(5, 40), max_seconds=max_seconds
    )
    return dict(curve.median_ms)


def _costs(lab: Lab, names: Iterable[str], *, rounds: int, max_seconds: float) -> Costs:
    """A drafter costs the median of some rounds over all drafters: a disturbance of seconds spoils one round only."""
    apart = [{name: lab.draft_ms(name, HELD_OUT[0], k=COST_K) for name in names} for _ in range(rounds)]
    prices = [{name: lab.draft_price(name, HELD_OUT[0]) for name in names} for _ in range(rounds)]
    return Costs(
        _staircase(lab, max_seconds),
        {name: median(each[name] for each in apart) for name in apart[0]},
        {name: _median_price([each[name] for each in prices]) for name in prices[0]},
        measure.switch_ms(lab.session),
    )


def _median_price(prices: Sequence[DraftPrice]) -> DraftPrice:
    return DraftPrice(
        prices[0].drafter,
        median(price.first_ms for price in prices),
        median(price.further_ms for price in prices),
        median(price.catch_up_ms or 0.0 for price in prices),
    )


def _race(lab: Lab, index: int, temperature: float, predicted: Mapping[Setting, float]) -> list[Answer]:
    """Plain decoding and every drafter on one prompt, in turns."""
    settings = (PLAIN_SETTING, *predicted)
    timed = lab.in_turns(
        HELD_OUT[index], settings, sampling=_sampling(temperature, index), max_tokens=MAX_TOKENS, seed=index
    )
    return [
        replace(_answer(each, lab.format, temperature, index), predicted=predicted.get(setting))
        for setting, each in timed.items()
    ]


def _answer(timed: Timed, format: str, temperature: float, index: int) -> Answer:
    run = timed.run
    drafts = [cycle for cycle in run.cycles if cycle.drafted]
    return Answer(
        format=format,
        temperature=temperature,
        prompt=index,
        drafter=run.drafter,
        k=run.k,
        p_min=run.p_min,
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
    fastest = {temperature: _fastest(plain, temperature) for _, temperature in plain}
    rows = [
        DrafterScore(
            drafter=PLAIN,
            format=format,
            kind="all",
            temperature=temperature,
            k=0,
            p_min=0.0,
            tokens_per_cycle=1.0,
            speedup=1.0,
            tokens_per_second=median(speeds.values()),
            against_fastest_plain=median(speed / fastest[temperature](prompt) for prompt, speed in speeds.items()),
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
                p_min=median(a.p_min for a in group),
                alpha=sum(a.kept for a in group) / tested if tested else None,
                alpha_first=sum(a.first_kept for a in group) / first if first else None,
                gamma=costs[format].draft_ms[drafter] / costs[format].plain_ms,
                tokens_per_cycle=sum(a.emitted for a in group) / sum(a.passes for a in group),
                predicted=median(guesses) if guesses and kind != LOOPS else None,
                speedup=median(ratios),
                speedup_range=(min(ratios), max(ratios)),
                speedup_ci=median_interval(ratios) if len(ratios) >= FEWEST_FOR_INTERVAL else None,
                tokens_per_second=median(a.emitted / a.seconds for a in group),
                against_fastest_plain=median(a.emitted / a.seconds / fastest[temperature](a.prompt) for a in group),
                prompts=len(group),
            )
        )
    return rows


def _fastest(plain: dict[tuple[str, float], dict[int, float]], temperature: float) -> Callable[[int], float]:
    """Prompt -> tokens per second of plain decoding at a temperature, in the format that is fastest there.

    Where that format did not write the prompt, the median over those it did.
    """
    speeds = max((of for (_, t), of in plain.items() if t == temperature), key=lambda of: median(of.values()))
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
        f"{'drafter':<20}{'format':<7}{'T':>4} {'kind':<10}{'k':>3}{'p_min':>7}{'alpha':>7}{'first':>7}{'gamma':>7}"
        f"{'tok/cyc':>9}{'predicted':>11}{'speedup':>9}  {'each prompt':<15}{'tok/s':>7}{'/fastest':>9}{'prompts':>9}",
    ]
    for row in figures["rows"]:
        lowest, highest = row["speedup_range"] or (row["speedup"], row["speedup"])
        lines.append(
            f"{row['drafter']:<20}{row['format']:<7}{row['temperature']:>4} {row['kind']:<10}{row['k']:>3}"
            f"{row['p_min']:>7g}"
            f"{_number(row['alpha']):>7}{_number(row['alpha_first']):>7}{_number(row['gamma'], 3):>7}"
            f"{_number(row['tokens_per_cycle']):>9}{_number(row['predicted']):>11}{_number(row['speedup']):>9}  "
            f"{f'{lowest:.2f}-{highest:.2f}':<15}"
            f"{row['tokens_per_second']:>7.0f}{_number(row['against_fastest_plain']):>9}{row['prompts']:>9}"
        )
    return "\n".join(lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
