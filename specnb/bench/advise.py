"""Does the quick way find what the whole grid would? Advised and best settings, measured again side by side.

The racing sweep (rehearsals, replays, a few settings measured) and the exhaustive grid both run on
six prompt kinds with the embedded model in F32. Then, for each kind, the advised setting and the grid's best
cell answer the same prompt again, at once and in turns (``specnb.turns``), since the best of many noisy cells
flatters itself.
share_of_best: advised / best speed, on the kind where it is lowest. time_share: seconds of the racing
sweep / seconds of the grid. A setting that is both advised and best has a share of 1.

Finished points are kept for half a day, so an interrupted benchmark goes on where it was. About 25 minutes
on two quiet cores; --quick takes two kinds, two drafters and a small grid.
"""

from __future__ import annotations

from statistics import median

from .. import advise, drafters, messages, sweep
from ..intervals import sum_ratio_interval
from ..lab import Lab
from ..prompts import PROMPTS
from ..records import Setting, Sweep

FORMAT, QUICK_FORMAT = "F32", "Q4_0"
AGAIN, QUICK_AGAIN = 12, 3
"""Rounds of the last comparison."""

PLAN = sweep.Plan(
    drafters=(
        drafters.NgramSimple.name,
        drafters.PromptLookup.name,
        drafters.Distilled.name,
        drafters.Eagle.name,
        drafters.Medusa.name,
    ),
    ks=(1, 2, 3, 4, 6, 8),
    prompts=tuple(PROMPTS.values()),
    max_tokens=40,
)
QUICK_PLAN = sweep.Plan(
    drafters=(drafters.NgramSimple.name, drafters.Eagle.name),
    ks=(2, 4),
    p_mins=(0.0,),
    prompts=(PROMPTS["code"], PROMPTS["rewrite"]),
    max_tokens=24,
    repeats=1,
    screened=2,
    finalists=1,
    curve_s=2.0,
)


def run(*, quick: bool) -> dict[str, object]:
    plan = QUICK_PLAN if quick else PLAN
    with Lab(format=QUICK_FORMAT if quick else FORMAT, n_ctx=1024) as lab:
        sweepers = {
            method: sweep.Sweeper(
                lab, plan, method=method, journal=None if quick else sweep.journal_for(lab, plan, method)
            )
            for method in ("racing", "exhaustive")
        }
        racing, grid = (sweeper.run() for sweeper in sweepers.values())
        advice = advise.advise(racing)
        rows = [
            _row(lab, plan, choice.kind, choice.advised, _best(grid, choice.kind), QUICK_AGAIN if quick else AGAIN)
            for choice in advice.by_kind
        ]
        for sweeper in sweepers.values():
            sweeper.finish()
        grid_s = grid.seconds - grid.costs.curve.seconds  # a grid needs no cost curve
    return {
        "share_of_best": round(min(row["share"] for row in rows), 4),
        "median_share": round(median(row["share"] for row in rows), 4),
        "time_share": round(racing.seconds / grid_s, 4),
        "racing_s": round(racing.seconds, 1),
        "grid_s": round(grid_s, 1),
        "settings": len(grid.settings),
        "runs_racing": len(racing.trials),
        "runs_grid": len(grid.trials),
        "contended": sum(trial.contended for found in (racing, grid) for trial in found.trials),
        "rerun": len(racing.rerun) + len(grid.rerun),
        "rows": rows,
        "answer": messages.advice_answer(advice),
    }


def _best(grid: Sweep, kind: str) -> Setting:
    """The setting of the lowest median time on a kind, plain decoding included."""
    return min(grid.measured(kind), key=lambda setting: median(trial.ms_per_token for trial in grid.of(setting, kind)))


def _row(lab: Lab, plan: sweep.Plan, kind: str, advised: Setting, best: Setting, rounds: int) -> dict[str, object]:
    share, interval = 1.0, None
    if advised != best:
        prompt = next(prompt for prompt in plan.prompts if prompt.kind == kind)
        both = [
            lab.in_turns(prompt, (advised, best), max_tokens=plan.max_tokens, seed=number) for number in range(rounds)
        ]
        of_advised, of_best = ([timed[setting].ms for timed in both] for setting in (advised, best))
        share, interval = sum(of_best) / sum(of_advised), sum_ratio_interval(of_best, of_advised)
    return {
        "kind": kind,
        "advised": messages.setting_name(advised),
        "best": messages.setting_name(best),
        "share": round(share, 4),
        "share_ci": interval,
    }


def table(figures: dict[str, object]) -> str:
    lines = [f"{'kind':<11}{'advised':<38}{'best of the grid':<38}{'advised / best':>14}  95 % interval"]
    for row in figures["rows"]:
        ends = row["share_ci"]
        interval = "the same setting" if row["advised"] == row["best"] else f"{ends[0]:.3f} … {ends[1]:.3f}"
        lines.append(f"{row['kind']:<11}{row['advised']:<38}{row['best']:<38}{row['share']:>14.3f}  {interval}")
    lines += [
        figures["answer"],
        f"{figures['runs_racing']} runs in {figures['racing_s']} s against {figures['runs_grid']} runs of "
        f"{figures['settings']} settings in {figures['grid_s']} s: {100 * figures['time_share']:.0f} % of the time; "
        f"worst share of the best {100 * figures['share_of_best']:.1f} %, median "
        f"{100 * figures['median_share']:.1f} %; {figures['contended']} runs disturbed by other programs, "
        f"{figures['rerun']} measured again",
    ]
    return "\n".join(lines)
