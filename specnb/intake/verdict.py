"""Whether the speculation behind some counts pays, and which k would be better: counts in, verdict out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import diagnose, messages, predict, theory
from ..records import Diagnosis
from .reading import Range, Reading

GIVEN, PRINTED, INFERRED, FREE = "given", "printed", "inferred", "free"
"""Where a draft's price comes from. "free": it is not known, so every prediction is of the best case."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """says: "pays", "loses", "not distinguishable" or "unknown".

    measured: speed of these counts / plain speed, one run each; against_t1: T(1) had to stand in for the plain speed.
    predicted: k -> speedup at the lower and the upper end of alpha's interval. best: the best k at these two ends;
    0 is off. draft_ms: per drafted token, and where that comes from. hopeless: every k at which not even alpha = 1
    would pay. problem: why the staircase cannot belong to these counts.
    """

    says: str
    measured: float | None = None
    against_t1: bool = False
    predicted: Mapping[int, Range] | None = None
    best: tuple[int, int] | None = None
    draft_ms: float | None = None
    draft_source: str = FREE
    hopeless: tuple[int, ...] = ()
    problem: str = ""
    diagnosis: Diagnosis | None = None


def judge(
    reading: Reading,
    *,
    staircase: Mapping[int, float] | None = None,
    plain_tokens_per_second: float | None = None,
    draft_ms: float | None = None,
) -> Verdict:
    """staircase: N -> ms of a target pass (``CostCurve.median_ms``), of the machine and model of these counts.

    plain_tokens_per_second: without speculation, on the same prompts; without it T(1) is the baseline.
    draft_ms: per drafted token; left out, what the log printed, else what its times leave, else 0: the best case.
    ValueError for a speed, a price or a pass that is not a time; KeyError for a staircase without N = 1 and no speed.
    """
    if plain_tokens_per_second is not None and not 1e-6 < plain_tokens_per_second < 1e9:
        raise ValueError(messages.intake_bad_speed(plain_tokens_per_second))
    if draft_ms is not None and not 0.0 <= draft_ms < 1e9:
        raise ValueError(messages.intake_bad_draft_ms(draft_ms))
    if staircase is None:
        return _without_staircase(reading, plain_tokens_per_second)
    if plain_tokens_per_second is None and 1 not in staircase:
        raise KeyError(messages.intake_needs_t1(sorted(staircase)))
    plain_ms = staircase[1] if plain_tokens_per_second is None else 1000.0 / plain_tokens_per_second
    speed = reading.counts.tokens_per_second
    measured = None if speed is None else speed * plain_ms / 1000.0
    known = {"measured": measured, "against_t1": plain_tokens_per_second is None}
    if reading.alpha_interval is None:
        return Verdict(_says(measured, None), **known, diagnosis=_diagnosis(reading, None, 0.0, plain_ms))
    inferred = _inferred_draft_ms(reading, staircase, plain_ms)
    if inferred is not None and not 0.0 <= inferred <= plain_ms:
        # Nobody drafts at a higher price than the target's, and nothing takes less than no time.
        return Verdict("unknown", problem=messages.intake_foreign_staircase(inferred, plain_ms))
    each_ms, source = _price(draft_ms, reading.counts.draft_ms, inferred)
    share = 1.0 if reading.drafted_share is None else sum(reading.drafted_share) / 2.0
    low, high = reading.alpha_interval

    def gain(alpha: float, k: int) -> float:
        return predict.speedup_at_share(alpha, k, share, each_ms, staircase, plain_ms)

    ks = [n - 1 for n in sorted(staircase) if n >= 2]
    predicted = {k: (gain(low, k), gain(high, k)) for k in ks}
    best = (_best(predicted, 0), _best(predicted, 1)) if ks else None
    now = predicted.get(_usual_k(reading))
    return Verdict(
        says=_says(measured, None if source == FREE and now and now[1] >= 1.0 else now),
        **known,
        predicted=predicted,
        best=best,
        draft_ms=each_ms,
        draft_source=source,
        hopeless=tuple(k for k in ks if theory.break_even_alpha(k, each_ms, staircase, plain_ms) is None),
        diagnosis=_diagnosis(reading, staircase, each_ms, plain_ms),
    )


def _best(predicted: Mapping[int, Range], end: int) -> int:
    """The k with the highest speedup at one end of alpha's interval; 0 (off) where none is above 1."""
    k = max(predicted, key=lambda each: predicted[each][end])
    return k if predicted[k][end] > 1.0 else 0


def _without_staircase(reading: Reading, plain: float | None) -> Verdict:
    speed = reading.counts.tokens_per_second
    measured = None if plain is None or speed is None else speed / plain
    found = _diagnosis(reading, None, 0.0, None)
    if measured is not None and found is not None and found.name == "costs unknown":
        found = None  # the measurement answers what the diagnosis would ask for
    return Verdict(_says(measured, None), measured, diagnosis=found)


def _says(measured: float | None, predicted: Range | None) -> str:
    """A measured speed is believed before a predicted one; within the ledger's own error nothing is claimed."""
    low, high = (measured, measured) if measured is not None else predicted or (None, None)
    if low is None:
        return "unknown"
    if low > 1.0 + diagnose.NOTABLE_GAIN:
        return "pays"
    return "loses" if high < 1.0 - diagnose.NOTABLE_GAIN else "not distinguishable"


def _price(given: float | None, printed: float | None, inferred: float | None) -> tuple[float, str]:
    for each, source in ((given, GIVEN), (printed, PRINTED), (inferred, INFERRED)):
        if each is not None:
            return each, source
    return 0.0, FREE


def _usual_k(reading: Reading) -> int | None:
    """The draft length that a usual pass had, to the whole token: its cost hangs on it. k where no length is known."""
    if reading.draft_length is None:
        return reading.counts.k
    return max(1, round(sum(reading.draft_length) / 2.0))


def _inferred_draft_ms(reading: Reading, staircase: Mapping[int, float], plain_ms: float) -> float | None:
    """What the log's time leaves for a drafted token (and for sampling and bookkeeping) beside the staircase's passes.

    Below 0 where the passes alone take longer than all the log did. None where passes or time are not known.
    """
    counts, k = reading.counts, _usual_k(reading)
    if counts.passes is None or counts.seconds is None or k is None or k + 1 not in staircase:
        return None
    passes = sum(counts.passes) / 2.0
    drafts = passes if counts.drafts is None else min(passes, sum(counts.drafts) / 2.0)
    spent = 1000.0 * counts.seconds - (passes - drafts) * plain_ms
    left = spent - drafts * staircase[k + 1]
    if -diagnose.NOTABLE_GAIN * spent < left < 0.0:  # two measurements differ by as much
        return 0.0
    return left / counts.drafted


def _diagnosis(
    reading: Reading, staircase: Mapping[int, float] | None, draft_ms: float, plain_ms: float | None
) -> Diagnosis | None:
    """Of the usual k with drafts equally long, if alpha's other end does not change it. None where k is not known."""
    k = _usual_k(reading)
    if reading.alpha is None:
        return diagnose.diagnose(k=k or 1)
    if k is None:
        return None
    if staircase is not None and k + 1 not in staircase:
        staircase = None
    low, high = reading.alpha
    alphas = (low,) if reading.counts.k is None else (low, high)
    first, *others = (
        diagnose.diagnose(
            k=k, alpha=alpha, tested=reading.tested, verify_ms=staircase, draft_ms=draft_ms, plain_ms=plain_ms
        )
        for alpha in alphas
    )
    return first if all(other.name == first.name for other in others) else None
