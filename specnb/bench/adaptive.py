"""The adaptive policy against plain decoding and fixed settings on twelve prompts, four chosen to defeat speculation.

On every prompt plain decoding, the adaptive policy (which learns anew in each answer) and each fixed
setting write the same answer, interleaved. ``vs_plain`` is adaptive / plain tokens per second with
its 95 % interval over repeats; a prompt is lost where that lies wholly below 0.98. ``vs_best`` is
adaptive / the best fixed setting, plain decoding among them. The best of several noisy medians
flatters itself, so it is chosen by one half of the repeats and timed by the other, and again the
other way round. ``worst_vs_best_fixed`` leaves out the prompts chosen to defeat speculation.

Finished rounds are kept for half a day, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from .. import backend, drafters, machine, measure, models, trained
from ..adaptive import Adaptive, Costs
from ..intervals import ratio_interval
from ..journal import Journal
from ..lab import LONGEST_K, Lab
from ..measure import CONTENDED_CORES
from ..prompts import DEFEATING, RACED
from ..records import Run
from ..repetition import find_loop

FORMAT = "Q4_0"
MAX_TOKENS = 128
LEAST_VS_PLAIN = 0.98
PLAIN = (drafters.NoDrafter.name, 0)
LOOK_UP, MODEL = drafters.NgramSimple.name, drafters.Eagle.name
FIXED = (PLAIN, (LOOK_UP, 3), (LOOK_UP, 7), (LOOK_UP, 16), (MODEL, 1), (MODEL, 3))
"""(drafter, k) of the fixed settings."""

Speeds = dict[str, list[float]]
"""Arm -> tokens per second of each of its runs on one prompt."""


@dataclass(frozen=True, slots=True)
class Plan:
    """prompts: indices in RACED. fixed: settings raced against. repeats: an even number."""

    prompts: tuple[int, ...]
    fixed: tuple[tuple[str, int], ...]
    repeats: int
    max_tokens: int


FULL = Plan(tuple(range(len(RACED))), FIXED, 6, MAX_TOKENS)
QUICK = Plan((3, 8), (PLAIN, (LOOK_UP, 7)), 4, 64)


def run(*, quick: bool) -> dict[str, object]:
    plan = QUICK if quick else FULL
    journal = None if quick else Journal(models.cache_folder() / "bench-adaptive.jsonl", key=_key(plan))
    done = {(entry["prompt"], entry["round"]): entry["runs"] for entry in (journal.entries() if journal else ())}
    watch = machine.CoreWatch()
    with Lab(n_ctx=1024, format=FORMAT) as lab:
        lab.adaptive_drafters()  # from now on the target keeps its states, for every arm alike
        lab.staircase(precision=0.1 if quick else 0.05, max_seconds=8.0 if quick else 30.0)
        costs = lab.adaptive_costs(RACED[plan.prompts[0]])
        # Rounds outside, prompts inside: a noisy minute hits one round of several prompts, not one prompt.
        for number in range(plan.repeats):
            for index in plan.prompts:
                if (index, number) in done:
                    continue
                runs = measure.race(_arms(lab, costs, plan, index), repeats=1, seed=100 * number + index).runs
                entry = {"prompt": index, "round": number, "runs": [_answer(run) for run in runs]}
                done[index, number] = entry["runs"]
                if journal:
                    journal.add(entry)
    if journal:
        journal.end()
    rows = [_row(index, [done[index, number] for number in range(plan.repeats)]) for index in plan.prompts]
    return {
        "worst_vs_plain": min(row["vs_plain"] for row in rows),
        "worst_vs_best_fixed": min(row["vs_best"] for row in rows if row["kind"] != DEFEATING),
        "lost": [row["title"] for row in rows if row["lost"]],
        "rows": rows,
        "switch_ms": costs.switch_ms,
        "contended": watch.busy_elsewhere() > CONTENDED_CORES,
    }


def _key(plan: Plan) -> str:
    digests = [trained.load(trained.path_of(kind)).digest for kind in trained.KINDS]
    return f"{backend.build_info()} {digests} {plan} {FORMAT}"


def _arms(lab: Lab, costs: Costs, plan: Plan, index: int) -> Sequence[Callable[[], Run]]:
    prompt = RACED[index]

    def fixed(name: str, k: int) -> Run:
        drafter = lab.drafter(name, m=LONGEST_K) if name == LOOK_UP else lab.drafter(name)
        return lab.run(prompt, drafter, k=k, max_tokens=plan.max_tokens)

    arms = [lambda name=name, k=k: fixed(name, k) for name, k in plan.fixed]
    return [*arms, lambda: lab.run_adaptive(prompt, costs, max_tokens=plan.max_tokens).run]


def _answer(run: Run) -> dict[str, object]:
    name = Adaptive.name if run.drafter == Adaptive.name else arm_name(run.drafter, run.k)
    return {
        "arm": name,
        "speed": run.tokens_per_second,
        "tokens": run.emitted,
        "passes": run.target_passes,
        "loops": find_loop(run.tokens) is not None,
    }


def arm_name(drafter: str, k: int) -> str:
    return drafter if k == 0 else f"{drafter}, k={k}"


def _row(index: int, rounds: Sequence[Sequence[dict[str, object]]]) -> dict[str, object]:
    speeds: Speeds = {}
    for answers in rounds:
        for answer in answers:
            speeds.setdefault(answer["arm"], []).append(answer["speed"])
    mine = speeds.pop(Adaptive.name)
    plain = speeds[arm_name(*PLAIN)]
    interval = ratio_interval(mine, plain)
    best = max(speeds, key=lambda arm: median(speeds[arm]))
    adaptive = next(answer for answer in rounds[0] if answer["arm"] == Adaptive.name)
    return {
        "kind": RACED[index].kind,
        "title": RACED[index].title,
        "tokens": adaptive["tokens"],
        "loops": adaptive["loops"],
        "tokens_per_cycle": adaptive["tokens"] / adaptive["passes"],
        "vs_plain": median(mine) / median(plain),
        "vs_plain_ci": interval,
        "lost": interval is not None and interval[1] < LEAST_VS_PLAIN,
        "best_fixed": best,
        "best_vs_plain": median(speeds[best]) / median(plain),
        "vs_best": against_best(mine, speeds),
    }


def against_best(mine: Sequence[float], speeds: Speeds) -> float:
    """Mine / the best other, chosen by one half of the repeats and compared on the other; mean of both ways."""
    shares = []
    for first in (0, 1):
        best = max(speeds, key=lambda arm: median(speeds[arm][first::2]))
        shares.append(median(mine[1 - first :: 2]) / median(speeds[best][1 - first :: 2]))
    return mean(shares)


def table(figures: dict[str, object]) -> str:
    lines = [
        f"{'kind':<11}{'prompt':<34}{'tokens':>7}{'tok/cyc':>9}{'/plain':>8}  {'95 % interval':<15}"
        f"{'/best':>7}  best fixed setting",
    ]
    for row in figures["rows"]:
        ends = row["vs_plain_ci"]
        notes = (" (loops)" if row["loops"] else "") + ("  LOST" if row["lost"] else "")
        lines.append(
            f"{row['kind']:<11}{row['title']:<34}{row['tokens']:>7}{row['tokens_per_cycle']:>9.2f}"
            f"{row['vs_plain']:>8.3f}  {'-' if ends is None else f'{ends[0]:.3f} to {ends[1]:.3f}':<15}"
            f"{row['vs_best']:>7.3f}  {row['best_fixed']} ({row['best_vs_plain']:.2f}x){notes}"
        )
    lost = f"lost to plain decoding: {', '.join(figures['lost']) or 'none'}"
    lines.append(
        f"Worst against plain decoding {figures['worst_vs_plain']:.3f}; {lost}. Worst against the best fixed setting, "
        f"prompts chosen to defeat left out: {figures['worst_vs_best_fixed']:.3f}."
    )
    if figures["contended"]:
        lines.append("Other programs were using the cores: these figures are not to be trusted.")
    return "\n".join(lines)
