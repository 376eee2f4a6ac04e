"""How long a 13-point cost curve of the embedded model takes, and how narrow its intervals are.

seconds: wall time of the measurement. points: N measured. max_ci_rel: the widest 95 % interval of
a median, as a distance from the median relative to it. Q4_0, one thread per physical core.
"""

from __future__ import annotations

from statistics import median

from .. import measure
from ..intervals import median_interval
from ..lab import Lab
from ..records import CostCurve

PRECISION = 0.05


def run(*, quick: bool) -> dict[str, object]:
    seconds = 6.0 if quick else 60.0
    with Lab(format="Q4_0") as lab:
        # The goal is under the bar, so that noise in the last round does not put the result above it.
        curve = measure.cost_curve(lab.session, measure.QUICK_NS, precision=0.9 * PRECISION, max_seconds=seconds)
    return {
        "seconds": round(curve.seconds, 2),
        "points": len(curve.ns),
        "max_ci_rel": round(measure.widest_interval(curve.samples), 4),
        "samples": len(curve.samples),
        "drift": round(curve.drift, 4),
        "contended": curve.contended,
        "rows": _rows(curve),
    }


def _rows(curve: CostCurve) -> list[dict[str, float]]:
    first = curve.median_ms[1]
    rows = []
    for n in curve.ns:
        ms = curve.samples_ms(n)
        low, high = median_interval(ms) or (None, None)
        rows.append({"n": n, "ms": median(ms), "low_ms": low, "high_ms": high, "relative": median(ms) / first})
    return rows


def table(figures: dict[str, object]) -> str:
    lines = [f"{'N':>3}  {'T(N) ms':>9}  {'95 % interval':>19}  {'T(N)/T(1)':>9}"]
    lines += [
        f"{row['n']:>3}  {row['ms']:>9.2f}  {row['low_ms']:>8.2f} … {row['high_ms']:>8.2f}  {row['relative']:>9.2f}"
        for row in figures["rows"]
    ]
    contended = (
        "; another process was using the cores, so measure again when it is quiet" if figures["contended"] else ""
    )
    lines.append(
        f"{figures['points']} points, {figures['samples']} samples in {figures['seconds']} s; widest interval "
        f"±{100 * figures['max_ci_rel']:.1f} % of the median; drift {100 * figures['drift']:+.1f} %{contended}"
    )
    return "\n".join(lines)
