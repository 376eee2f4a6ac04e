"""What is wrong with a setting, from its counts and its costs: numbers in, one named diagnosis out.

The rules of thumb for this are about the acceptance rate: a healthy band of 20 to 70 %, under 5 %
something is broken. But at a constant alpha the acceptance rate falls with k
(``theory.acceptance_rate_from_alpha``): the M5 Pro article's own table leaves the band at k = 1 and
at k = 16 with alpha near 0.70 throughout, and at k = 16 an alpha of 0.44 looks broken. So all rules
here are about alpha, which says how good the drafts are, and about costs, which say what they are worth.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import messages, theory
from .records import Diagnosis, Loop

STRUCTURAL_ALPHA = 0.05
"""The 5 % rule, of alpha. Drafts of any use are right far more often; refused this often, something is incompatible."""

NOTABLE_GAIN = 0.05
"""Another k has to be predicted this much faster before it is called better; the ledger itself errs by some."""


def diagnose(
    *,
    k: int,
    alpha: float | None = None,
    acceptance: float | None = None,
    tested: int | None = None,
    verify_ms: Mapping[int, float] | None = None,
    draft_ms: float = 0.0,
    plain_ms: float | None = None,
    other_ms: float = 0.0,
    loop: Loop | None = None,
) -> Diagnosis:
    """Names what is wrong with speculation at ``k``, or that nothing is.

    alpha:      kept / tested; left out, it is solved from ``acceptance`` as if every draft had k tokens.
    acceptance: kept / drafted. With neither, nothing was drafted, and that is the diagnosis.
    tested:     tokens that alpha was counted over; with few of them, an alpha near 0 may be chance.
    verify_ms:  N -> ms per target pass (``CostCurve.median_ms``); without it only the counts are judged.
    draft_ms:   per drafted token. other_ms: per cycle. plain_ms: per token without speculation; T(1) unless given.
    loop:       where the text repeats itself (``repetition.find_loop``), if it does.

    The first of these that holds: "nothing drafted"; alpha under 0.05, which is "structural", or "too few tokens"
    where the interval of so few (``theory.alpha_interval``) reaches beyond; "looped text";
    "costs unknown" (no staircase); "fine"; another k is better and this one lies "in a notch" (k - 1 and k + 1 are
    both better) or "over a cliff", is "too long" or "too short"; no k pays, because of a "dear draft" (a free one
    would pay) or because of "dear passes" (not even a free one would).

    ValueError for an alpha or acceptance outside [0, 1], for k < 1, and for an acceptance that no alpha
    gives; KeyError where N = k + 1 (or, without plain_ms, N = 1) was not measured.
    """
    if alpha is None and acceptance is None:
        return _named("nothing drafted", k)
    if acceptance is not None and not 0.0 <= acceptance <= 1.0:
        raise ValueError(messages.impossible_acceptance(acceptance))
    if alpha is None:
        alpha = theory.solve_alpha(1.0 + k * acceptance, k)
    expected = theory.expected_tokens(alpha, k)
    if acceptance is None:
        acceptance = theory.acceptance_rate_from_alpha(alpha, k)
    counts = {"alpha": alpha, "acceptance": acceptance, "tokens_per_cycle": expected}
    if alpha < STRUCTURAL_ALPHA:
        by_chance = tested is not None and theory.alpha_interval(round(alpha * tested), tested)[1] >= STRUCTURAL_ALPHA
        return _named("too few tokens" if by_chance else "structural", k, **counts, tested=tested)
    if loop is not None:
        return _named("looped text", k, **counts)
    if verify_ms is None:
        return _named("costs unknown", k, **counts)
    return _judged(k, counts, verify_ms, draft_ms, plain_ms, other_ms)


def _judged(
    k: int,
    counts: Mapping[str, float],
    verify_ms: Mapping[int, float],
    draft_ms: float,
    plain_ms: float | None,
    other_ms: float,
) -> Diagnosis:
    """The part that needs costs."""
    alpha = counts["alpha"]
    if plain_ms is None:
        plain_ms = theory.cycle_ms(0, 0.0, verify_ms, other_ms=other_ms)

    def speedup(length: int, each_ms: float = draft_ms) -> float:
        return theory.speedup(alpha, length, each_ms, verify_ms, plain_ms, other_ms=other_ms)

    now = speedup(k)
    lengths = [n - 1 for n in sorted(verify_ms) if n >= 2]
    best = max(lengths, key=speedup)
    found = {**counts, "speedup": now}
    if speedup(best) <= 1.0:
        # Leaving it off is the best there is. Is it the draft's price, or would no draft pay?
        free = max(speedup(length, 0.0) for length in lengths)
        return _named("dear draft" if free > 1.0 else "dear passes", k, **found, free_speedup=free)
    if now >= 1.0 and speedup(best) < (1.0 + NOTABLE_GAIN) * now:
        return _named("fine", k, **found)
    better = {"better_k": best, "better_speedup": speedup(best)}
    beside = [length for length in (k - 1, k + 1) if length in lengths]
    if len(beside) == 2 and all(speedup(length) >= (1.0 + NOTABLE_GAIN) * now for length in beside):
        return _named("in a notch", k, **found, **better)
    if best > k:
        return _named("too short", k, **found, **better)
    between = [cliff for cliff in theory.cliffs(verify_ms) if best + 1 < cliff.at_n <= k + 1]
    if between:
        return _named("over a cliff", k, **found, **better, cliff_n=between[0].at_n)
    return _named("too long", k, **found, **better)


def _named(name: str, k: int, **found: float) -> Diagnosis:
    unsaid = Diagnosis(name=name, k=k, **found)
    return Diagnosis(name=name, k=k, **found, text=messages.diagnosis(unsaid))
