"""How much of a speculative run's wall time is spent inside llama.cpp, and the peak memory of a live session.

share_in_llama: time inside llama.cpp (passes and sampling of target and draft) / wall time of the
generation; k = 4, draft model, 128 tokens; the median over repeats. peak_mib: the most memory this
process held with the F32 target and its draft, after every format was visited in turn.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from .. import machine, models
from ..lab import Lab
from ..prompts import PROMPTS
from ..records import Run

K, MAX_TOKENS = 4, 128
FORMAT = "Q4_0"


def run(*, quick: bool) -> dict[str, object]:
    # The fastest format is the hardest case: the passes are short, so everything beside them weighs most.
    with Lab(format=FORMAT) as lab:
        shares, runs = [], []
        for _ in range(2 if quick else 6):
            seconds, run = _timed(lab)
            shares.append(run.in_llama_s / seconds)
            runs.append(run)
        peak = _peak_mib(lab, ("F32",) if quick else (*models.FORMATS, "F32"))
    cycles = [cycle for run in runs for cycle in run.cycles]
    return {
        "share_in_llama": round(median(shares), 4),
        "peak_mib": round(peak),
        "format": FORMAT,
        "cycles": len(cycles),
        "draft_ms": 1e3 * median(c.draft_s for c in cycles),
        "verify_ms": 1e3 * median(c.verify_s for c in cycles),
        "sampling_ms": 1e3 * median(c.sampling_s for c in cycles),
        "other_ms": 1e3 * median(c.other_s for c in cycles),
    }


def _timed(lab: Lab) -> tuple[float, Run]:
    drafter = lab.drafter("draft_model")
    start = perf_counter()
    run = lab.run(PROMPTS["story"], drafter, k=K, max_tokens=MAX_TOKENS)
    return perf_counter() - start - run.prefill_s, run


def _peak_mib(lab: Lab, formats: tuple[str, ...]) -> float:
    peak = 0.0
    for format in formats:
        lab.use_format(format)
        lab.run(PROMPTS["story"], "draft_model", k=K, max_tokens=16)
        peak = max(peak, machine.resident_mib())
    return peak


def table(figures: dict[str, object]) -> str:
    parts = "  ".join(f"{name} {figures[name + '_ms']:.2f} ms" for name in ("draft", "verify", "sampling", "other"))
    return (
        f"inside llama.cpp: {100 * figures['share_in_llama']:.1f} % of the wall time of {figures['cycles']} cycles "
        f"({figures['format']}, k = {K}, draft model, {MAX_TOKENS} tokens)\n"
        f"median cycle: {parts}\n"
        f"memory with the F32 target and its draft: {figures['peak_mib']} MiB"
    )
