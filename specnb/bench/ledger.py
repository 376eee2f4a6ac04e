"""The ledger: every drafter and k on three prompts, predicted from costs measured apart, and measured.

A run's price is the sum over its cycles of draft, catch-up, target pass at its context length, new
graphs, sampling, rollback and bookkeeping. None of it comes from the run: the parts are timed in the
cycles of a twin, another text in a session of its own that takes turns with the run (``specnb.cycle_costs``),
so that a machine that is faster or slower for some seconds is so for both. The first prediction takes
the tokens that each cycle really kept, so its error is the costs'; the second takes alpha alone and
adds the error of the geometric assumption.

Single cycles that took over half as long again as their like are left out of runs and costs alike, and
counted. What was measured while another process held a core is measured again, up to twice, and listed.
Where a cell's interval lies wholly beyond 6 %, all cells of its drafter get another round, and both rounds
count (``beyond_at_first``: how many there were). Finished runs are kept for half a day, so an interrupted
benchmark goes on where it was. A look-up's k ends at its longest draft, since beyond it every run is the
same; a head's at the length it was trained for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean, median

from .. import drafters, ledger_cells, models
from ..journal import Journal
from ..lab import Lab
from ..ledger_cells import LONGEST_K, PLAIN, Plan
from ..records import DISTURBED, LedgerCell

FORMAT = "Q4_0"
"""The embedded model is fastest in it, so whatever is not a pass weighs most."""

BOUND = 0.06
"""No cell's interval may lie wholly beyond this error."""

FULL = Plan(
    drafters=drafters.names(),
    ks=tuple(range(1, LONGEST_K + 1)),
    kinds=("rewrite", "code", "story"),
    rounds=1,
    new_tokens=64,
    retries=2,
)
QUICK = Plan(
    drafters=(PLAIN, "ngram_simple", "draft_model", "eagle"),
    ks=(1, 3, 5),
    kinds=("rewrite",),
    rounds=1,
    new_tokens=32,
    retries=0,
)


def run(*, quick: bool) -> dict[str, object]:
    plan, started = QUICK if quick else FULL, time.perf_counter()
    with Lab(n_ctx=1024) as lab:
        if lab.embedded:
            lab.use_format(FORMAT)
        path = models.cache_folder() / "bench-ledger.jsonl"
        journal = None if quick else Journal(path, key=ledger_cells.key(lab, plan))
        experiment = ledger_cells.Experiment(lab, plan, journal)
        experiment.measure_all()
        at_first = [cell for cell in experiment.ledger().cells if cell.wholly_beyond(BOUND)]
        for name in dict.fromkeys(cell.drafter for cell in at_first):
            experiment.measure(name, plan.rounds)
        cells = experiment.ledger().cells
        format = lab.format
    if journal:
        journal.end()
    seconds = time.perf_counter() - started
    return {**summary(cells), "beyond_at_first": len(at_first), "format": format, "seconds": seconds}


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
        "disturbed": sum(cell.disturbed for cell in cells) / sum(cell.cycles for cell in cells),
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
        "tries": cell.tries,
    }


def table(figures: dict[str, object]) -> str:
    rows = figures["rows"]
    lines = [
        f"Predicted over measured milliseconds per token, {figures['format']}, {len(rows)} cells, "
        f"{figures['seconds']:.0f} s.",
        f"Given what was kept: median error {_percent(figures['median_error'])}, largest "
        f"{_percent(figures['max_error'])}; {figures['beyond']} cell(s) wholly beyond {_percent(BOUND)} "
        f"({figures['beyond_at_first']} before their drafters' second round).",
        f"Given alpha alone:   median error {_percent(figures['median_error_of_alpha'])}, largest "
        f"{_percent(figures['max_error_of_alpha'])}.",
        f"Left out of runs and costs alike: cycles that took over {DISTURBED} times the median of their like, "
        f"{_percent(figures['disturbed'])} of all.",
        "",
        *_by_drafter(rows),
        "",
        *_by_cell(rows),
        "",
        _listed("Measured again, because another process held a core", [row for row in rows if row["tries"] > 1]),
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
