"""Whether random weights cost what real ones do: a synthetic copy of the embedded model beside it, at every N.

Both are in memory and timed one right after the other, so noise hits both alike; each visit of an N gives one
ratio of copy to original. worst_error, median_error: of the ratio's median over N, as a distance from 1.
Q4_0, one thread per physical core; twelve minutes.
"""

from __future__ import annotations

from statistics import median

from .. import machine, measure, models, synthetic
from ..backend import Model, Session
from ..intervals import median_interval
from ..records import CostCurve

FORMAT = "Q4_0"
QUICK_NS, QUICK_SECONDS = (1, 2, 4, 8, 16), 4.0


def run(*, quick: bool) -> dict[str, object]:
    ns = QUICK_NS if quick else measure.FULL_NS
    source = models.embedded()
    plan = synthetic.plan(synthetic.shape_of(source), FORMAT)
    with (
        synthetic.model_file(plan) as copy,
        Model(models.in_format(source, FORMAT)) as real_model,
        Model(copy) as copy_model,
        _session(real_model) as real,
        _session(copy_model) as copied,
    ):
        curves = measure.cost_curves(
            (real, copied), ns, precision=0.02, rounds=(5, 60), max_seconds=QUICK_SECONDS if quick else 720.0
        )
    rows = _rows(*curves)
    errors = [abs(row["ratio"] - 1) for row in rows]
    return {
        "worst_error": round(max(errors), 4),
        "median_error": round(median(errors), 4),
        "rounds": len(curves[0].samples) // len(ns),
        "seconds": round(curves[0].seconds, 1),
        "contended": curves[0].contended,
        "rows": rows,
    }


def _session(model: Model) -> Session:
    return Session(model, n_ctx=256, n_batch=128, threads=machine.usable_cores())


def _rows(real: CostCurve, copy: CostCurve) -> list[dict[str, object]]:
    rows = []
    for n in real.ns:
        ratios = [b / a for a, b in zip(real.samples_ms(n), copy.samples_ms(n), strict=True)]
        rows.append(
            {
                "n": n,
                "real_ms": real.median_ms[n],
                "synthetic_ms": copy.median_ms[n],
                "ratio": median(ratios),
                "ratio_ci": median_interval(ratios),
            }
        )
    return rows


def table(figures: dict[str, object]) -> str:
    lines = [f"{'N':>3}  {'real ms':>9}  {'copy ms':>9}  {'copy / real':>11}  95 % interval"]
    for row in figures["rows"]:
        interval = "–" if row["ratio_ci"] is None else "{:.3f} … {:.3f}".format(*row["ratio_ci"])
        lines.append(
            f"{row['n']:>3}  {row['real_ms']:>9.2f}  {row['synthetic_ms']:>9.2f}  {row['ratio']:>11.3f}  {interval}"
        )
    contended = (
        "; another process was using the cores, so measure again when it is quiet" if figures["contended"] else ""
    )
    lines.append(
        f"Copy against original: off by {100 * figures['median_error']:.1f} % (median over N), "
        f"{100 * figures['worst_error']:.1f} % at worst; {figures['rounds']} rounds, {figures['seconds']} s{contended}"
    )
    return "\n".join(lines)
