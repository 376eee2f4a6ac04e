"""The adaptive policy against plain decoding and fixed settings on twelve prompts, four chosen to defeat speculation.

On every prompt plain decoding (twice, to show what can be told apart at all), the adaptive policy (which
learns anew in each answer) and each fixed setting write the same answer at once, in turns, cycle by
cycle (``specnb.turns``). ``vs_plain`` is adaptive / plain tokens per second with its 95 % interval over rounds;
a prompt is lost where that lies wholly below 0.98. ``vs_best`` is adaptive / the best fixed setting, plain
decoding among them. The best of several noisy figures flatters itself, so it is chosen by one half of the
rounds and timed by the other, and again the other way round. ``worst_vs_best_fixed`` leaves out the prompts
chosen to defeat speculation. ``together_vs_best_fixed`` is about all the others' tokens together, against one
fixed setting, the best for all of them; ``together_vs_best_each`` against the best for each of them, which
nobody can know beforehand. ``control`` is plain / plain, where it is farthest from 1.

Finished rounds are kept for half a day, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import mean

from .. import backend, drafters, machine, measure, models, trained, turns
from ..adaptive import Adaptive, Costs
from ..decoder import Policy
from ..intervals import sum_ratio_interval
from ..journal import Journal
from ..lab import LONGEST_K, Lab
from ..measure import CONTENDED_CORES
from ..policy import Fixed
from ..prompts import DEFEATING, RACED
from ..records import DISTURBED, Limits, Sampling
from ..repetition import find_loop

FORMAT = "Q4_0"
MAX_TOKENS = 128
LEAST_VS_PLAIN = 0.98
PLAIN = (drafters.NoDrafter.name, 0)
CONTROL = "plain again"
LOOK_UP, MODEL = drafters.NgramSimple.name, drafters.Eagle.name
FIXED = (PLAIN, (LOOK_UP, 3), (LOOK_UP, 7), (LOOK_UP, 16), (MODEL, 1), (MODEL, 3))
"""(drafter, k) of the fixed settings."""

Times = dict[str, list[float]]
"""Arm -> milliseconds per token of each of its runs on one prompt."""

Arms = dict[str, Callable[[int], turns.Generation]]
"""Arm -> the index of a prompt -> its answer, about to be written."""


@dataclass(frozen=True, slots=True)
class Plan:
    """prompts: indices in RACED. fixed: settings raced against. rounds: an even number."""

    prompts: tuple[int, ...]
    fixed: tuple[tuple[str, int], ...]
    rounds: int
    max_tokens: int


FULL = Plan(tuple(range(len(RACED))), FIXED, 8, MAX_TOKENS)
QUICK = Plan((3, 8), (PLAIN, (LOOK_UP, 7)), 2, 64)


def run(*, quick: bool) -> dict[str, object]:
    plan = QUICK if quick else FULL
    journal = None if quick else Journal(models.cache_folder() / "bench-adaptive.jsonl", key=_key(plan))
    done = {(entry["prompt"], entry["round"]): entry["runs"] for entry in (journal.entries() if journal else ())}
    watch = machine.CoreWatch()
    with Lab(n_ctx=1024, format=FORMAT) as lab:
        lab.adaptive_drafters()  # from now on the target keeps its states, for every arm alike
        lab.staircase(precision=0.1 if quick else 0.05, max_seconds=8.0 if quick else 30.0)
        costs = lab.adaptive_costs(RACED[plan.prompts[0]])
        with _arms(lab, costs, plan) as arms:
            # Rounds outside, prompts inside: a noisy minute hits one round of several prompts, not one prompt.
            for number in range(plan.rounds):
                for index in plan.prompts:
                    if (index, number) in done:
                        continue
                    entry = {"prompt": index, "round": number, "runs": _round(arms, index, number)}
                    done[index, number] = entry["runs"]
                    if journal:
                        journal.add(entry)
    if journal:
        journal.end()
    rows = [_row(index, [done[index, number] for number in range(plan.rounds)]) for index in plan.prompts]
    others = [row for row in rows if row["kind"] != DEFEATING]
    return {
        "worst_vs_plain": min(row["vs_plain"] for row in rows),
        "worst_vs_best_fixed": min(row["vs_best"] for row in others),
        **_together(others),
        "lost": [row["title"] for row in rows if row["lost"]],
        "control": max((row["control"] for row in rows), key=lambda ratio: abs(ratio - 1.0)),
        "disturbed": sum(row["disturbed"] for row in rows) / sum(row["cycles"] for row in rows),
        "rows": rows,
        "switch_ms": costs.switch_ms,
        "contended": watch.busy_elsewhere() > CONTENDED_CORES,
    }


def _key(plan: Plan) -> str:
    digests = [trained.load(trained.path_of(kind)).digest for kind in trained.KINDS]
    return f"{backend.build_info()} {digests} {plan} {FORMAT}"


@contextmanager
def _arms(lab: Lab, costs: Costs, plan: Plan) -> Iterator[Arms]:
    """All arms, each with sessions of its own, which are closed at the end."""
    with ExitStack() as stack:

        def arm(name: str, longest_k: int, policy: Callable[[drafters.Drafter], Policy]) -> Callable:
            session, drafter = stack.enter_context(lab.second(name))

            def begun(index: int) -> turns.Generation:
                return measure.generation(
                    session,
                    policy(drafter),
                    lab.prompt(RACED[index]),
                    name=name,
                    limits=Limits(k=longest_k),
                    sampling=Sampling(),
                    max_tokens=plan.max_tokens,
                )

            return begun

        def fixed(name: str, k: int) -> Callable:
            if name == LOOK_UP:  # with the longest draft that the policy may make, too
                return arm(PLAIN[0], k, lambda _none: Fixed(drafters.NgramSimple(m=LONGEST_K), Limits(k=k)))
            return arm(name, k, lambda drafter: Fixed(drafter, Limits(k=k)))

        def adaptive(model: drafters.Drafter) -> Policy:
            return Adaptive((drafters.NgramSimple(m=LONGEST_K), model), costs, longest_k=LONGEST_K)

        arms = {arm_name(name, k): fixed(name, k) for name, k in plan.fixed}
        yield arms | {CONTROL: fixed(*PLAIN), Adaptive.name: arm(MODEL, LONGEST_K, adaptive)}


def _round(arms: Arms, index: int, number: int) -> dict[str, dict[str, object]]:
    """Arm -> what its answer took, all written in turns."""
    timed = turns.race({name: begun(index) for name, begun in arms.items()}, seed=100 * number + index)
    return {name: _answer(each) for name, each in timed.items()}


def _answer(timed: turns.Timed) -> dict[str, object]:
    return {
        "ms": timed.ms,
        "disturbed": timed.disturbed,
        "tokens": timed.run.emitted,
        "passes": timed.run.target_passes,
        "loops": find_loop(timed.run.tokens) is not None,
    }


def arm_name(drafter: str, k: int) -> str:
    return drafter if k == 0 else f"{drafter}, k={k}"


def _row(index: int, rounds: Sequence[dict[str, dict[str, object]]]) -> dict[str, object]:
    times: Times = {name: [answers[name]["ms"] for answers in rounds] for name in rounds[0]}
    mine, control = times.pop(Adaptive.name), times.pop(CONTROL)
    plain = times[arm_name(*PLAIN)]
    interval = sum_ratio_interval(plain, mine)
    best = min(times, key=lambda arm: sum(times[arm]))
    adaptive = rounds[0][Adaptive.name]
    return {
        "kind": RACED[index].kind,
        "title": RACED[index].title,
        "tokens": adaptive["tokens"],
        "loops": adaptive["loops"],
        "tokens_per_cycle": adaptive["tokens"] / adaptive["passes"],
        "vs_plain": sum(plain) / sum(mine),
        "vs_plain_ci": interval,
        "lost": interval is not None and interval[1] < LEAST_VS_PLAIN,
        "best_fixed": best,
        "best_vs_plain": sum(plain) / sum(times[best]),
        "vs_best": against_best(mine, times),
        "vs_best_ci": sum_ratio_interval(times[best], mine),
        "ms": {name: adaptive["tokens"] * mean(each) for name, each in (times | {Adaptive.name: mine}).items()},
        "control": sum(plain) / sum(control),
        "cycles": sum(answer["passes"] for answers in rounds for answer in answers.values()),
        "disturbed": sum(answer["disturbed"] for answers in rounds for answer in answers.values()),
    }


def _together(rows: Sequence[dict[str, object]]) -> dict[str, float]:
    """Of all tokens of these prompts: the time with one fixed setting, or with each one's best, over the policy's."""
    mine = sum(row["ms"][Adaptive.name] for row in rows)
    fixed = [name for name in rows[0]["ms"] if name != Adaptive.name]
    of_each = sum(min(row["ms"][name] for name in fixed) for row in rows)
    return {
        "together_vs_best_fixed": min(sum(row["ms"][name] for row in rows) for name in fixed) / mine,
        "together_vs_best_each": of_each / mine,
    }


def against_best(mine: Sequence[float], times: Times) -> float:
    """Speed of mine / of the best other, chosen by one half of the rounds and compared on the other; mean of both."""
    shares = []
    for first in (0, 1):
        best = min(times, key=lambda arm: sum(times[arm][first::2]))
        shares.append(sum(times[best][1 - first :: 2]) / sum(mine[1 - first :: 2]))
    return mean(shares)


def table(figures: dict[str, object]) -> str:
    lines = [
        f"{'kind':<11}{'prompt':<34}{'tokens':>7}{'tok/cyc':>9}{'/plain':>8}  {'95 % interval':<15}"
        f"{'/best':>7}  {'95 % interval':<15}best fixed setting",
    ]
    for row in figures["rows"]:
        ends, of_best = _ends(row["vs_plain_ci"]), _ends(row["vs_best_ci"])
        notes = (" (loops)" if row["loops"] else "") + ("  LOST" if row["lost"] else "")
        lines.append(
            f"{row['kind']:<11}{row['title']:<34}{row['tokens']:>7}{row['tokens_per_cycle']:>9.2f}"
            f"{row['vs_plain']:>8.3f}  {ends:<15}"
            f"{row['vs_best']:>7.3f}  {of_best:<15}{row['best_fixed']} ({row['best_vs_plain']:.2f}x){notes}"
        )
    lost = f"lost to plain decoding: {', '.join(figures['lost']) or 'none'}"
    lines.append(
        f"Worst against plain decoding {figures['worst_vs_plain']:.3f}; {lost}. Worst against the best fixed setting, "
        f"prompts chosen to defeat left out: {figures['worst_vs_best_fixed']:.3f}; all of these together, against the "
        f"fixed setting that is best for all {figures['together_vs_best_fixed']:.3f}, against the best for each "
        f"{figures['together_vs_best_each']:.3f}."
    )
    lines.append(
        f"Plain decoding against itself: {figures['control']:.3f} where it is farthest from 1. Passes over {DISTURBED} "
        f"times as long as their like, put at their median: {100 * figures['disturbed']:.1f} %."
    )
    if figures["contended"]:
        lines.append("Other programs were using the cores: these figures are not to be trusted.")
    return "\n".join(lines)


def _ends(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
