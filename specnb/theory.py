"""The arithmetic of speculative decoding: numbers and mappings N -> ms in, numbers out.

Nothing here reads a file, a clock or a random generator. The model is Leviathan, Kalman & Matias
2023, "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192), with one
change: the paper lets a target pass cost the same whatever it verifies, here its cost is the
measured ``verify_ms[N]``. Their gamma (draft length) is our ``k``; their c (draft time / target
time) is our ``gamma``.

Words: ``k`` tokens are drafted in a cycle; one target pass over N = k + 1 rows verifies them;
``alpha`` is the probability that a tested token is kept, the same at every position and
independent of the others (that is the model's assumption, not a fact about texts).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt
from numbers import Integral

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.optimize import bisect
from scipy.special import ndtri

Alpha = float | np.ndarray
"""One alpha, or an array of them where a function says that it takes one."""


def _checked_alpha(alpha: Alpha) -> np.ndarray:
    values = np.asarray(alpha, dtype=float)
    wrong = values[~((values >= 0.0) & (values <= 1.0))]  # written so that NaN is wrong, too
    if wrong.size:
        raise ValueError(f"alpha is a probability between 0 and 1; got {wrong.flat[0]}.")
    return values


def _checked_k(k: int, *, least: int = 0) -> int:
    if not isinstance(k, Integral) or k < least:
        raise ValueError(f"k counts drafted tokens: a whole number, {least} or more; got {k!r}.")
    return int(k)


def _checked_ms(name: str, ms: float) -> float:
    if not 0.0 <= ms < inf:
        raise ValueError(f"{name} is a time in milliseconds, 0 or more and finite; got {ms}.")
    return float(ms)


def _checked_pass_ms(name: str, ms: float) -> float:
    if not 0.0 < ms < inf:
        raise ValueError(f"{name} is the time of a target pass in milliseconds, above 0 and finite; got {ms}.")
    return float(ms)


def _pass_ms(verify_ms: Mapping[int, float], n: int) -> float:
    """T(n) as measured; a gap in the curve is an error, because kernels have cliffs and dips in gaps."""
    if n not in verify_ms:
        measured = ", ".join(map(str, sorted(verify_ms))) or "nothing"
        raise KeyError(f"T(N) was not measured at N={n}; measured: {measured}. Measure N={n}, or pick another k.")
    return _checked_pass_ms(f"T({n})", verify_ms[n])


# --- tokens -----------------------------------------------------------------------------------


def expected_tokens(alpha: Alpha, k: int) -> Alpha:
    """Mean tokens emitted per cycle: (1 - alpha^(k+1)) / (1 - alpha), and k + 1 at alpha = 1.

    Leviathan et al. 2023 (arXiv 2211.17192), equation 1. Between 1 (only the target's own token)
    and k + 1. alpha: a float, or an array of any shape, which gives an array of that shape.
    """
    # Summed as 1 + alpha + ... + alpha^k: the quotient loses its digits as alpha nears 1, and is 0/0 there.
    tokens = polyval(_checked_alpha(alpha), np.ones(_checked_k(k) + 1))
    return tokens if np.ndim(alpha) else float(tokens)


def tokens_per_cycle_distribution(alpha: float, k: int) -> np.ndarray:
    """P(emitted = 1), ..., P(emitted = k + 1): shape (k + 1,), sums to 1.

    A geometric law cut off at the draft's end: m tokens come out when m - 1 drafted ones are kept
    and the next is refused; k + 1 when all are kept. Its mean is ``expected_tokens(alpha, k)``.
    """
    alpha = float(_checked_alpha(alpha))
    probabilities = alpha ** np.arange(_checked_k(k) + 1)
    probabilities[:-1] *= 1.0 - alpha  # refused; nothing is left to refuse after the k-th
    return probabilities


def acceptance_rate_from_alpha(alpha: Alpha, k: int) -> Alpha:
    """Expected kept / drafted, the rate that llama.cpp prints: (expected tokens - 1) / k.

    It falls as k grows even when alpha does not, because tokens after the first refusal count as
    drafted but could not be kept. k must be 1 or more: with nothing drafted there is no rate.
    """
    return (expected_tokens(alpha, _checked_k(k, least=1)) - 1.0) / k


# --- alpha ------------------------------------------------------------------------------------


def solve_alpha(tokens_per_cycle: float, k: int) -> float:
    """The alpha for which ``expected_tokens(alpha, k)`` is tokens_per_cycle, by bisection.

    1.0 gives 0 and k + 1 gives 1. ValueError for anything outside [1, k + 1], for NaN, and for
    k = 0. llama.cpp solves the same equation for ``--spec-synth-len`` (its docs/speculative.md,
    "Synthetic Acceptance").
    """
    return solve_alpha_mixed(tokens_per_cycle, (k,))


def solve_alpha_mixed(tokens_per_cycle: float, draft_lengths: Sequence[int]) -> float:
    """The alpha whose mean of ``expected_tokens(alpha, k_i)`` over the cycles is tokens_per_cycle.

    draft_lengths: the realised draft length k_i of each cycle, as in ``Run.draft_lengths``; zeros
    (cycles without a draft) belong in it, since their tokens are in tokens_per_cycle as well.
    ValueError when nothing was drafted at all, or when no alpha between 0 and 1 fits.
    """
    lengths = np.array([_checked_k(k) for k in draft_lengths], dtype=int)
    if not lengths.any():
        raise ValueError(
            f"Nothing was drafted in {len(lengths)} cycle(s), so alpha cannot be known: "
            "no token was tested. Use runs in which the drafter proposed something."
        )
    most = (lengths.sum() + len(lengths)) / len(lengths)
    if not 1.0 <= tokens_per_cycle <= most:
        raise ValueError(
            f"{tokens_per_cycle} tokens per cycle fits no alpha: drafts of {lengths.mean():g} token(s) on average "
            f"give between 1 and {most:g}. Check that tokens and cycles count the same part of the run."
        )
    # alpha^j is gained by every cycle with k_i >= j. Whole counts keep both ends of the bracket exact.
    reached = np.bincount(lengths)[::-1].cumsum()[::-1]
    return float(bisect(lambda alpha: polyval(alpha, reached) / len(lengths) - tokens_per_cycle, 0.0, 1.0))


def alpha_bounds(
    tokens_per_cycle: float, mean_length: float, longest: int, *, shortest: int = 0
) -> tuple[float, float]:
    """The smallest and the largest alpha that fit when only the mean of the draft lengths is known.

    longest, shortest: no draft of the run was longer or shorter (0: cycles without a draft are counted as well).
    Expected tokens are concave in the length of a draft, so of all runs with this mean the one of equal
    lengths (to the whole token) gives the most tokens at an alpha and needs the smallest, and the one of
    nothing but the longest and the shortest needs the largest. Equal where all drafts were equally long.
    ValueError for a mean outside [shortest, longest] or of 0, and for tokens outside [1, mean + 1].
    """
    _checked_k(longest, least=1), _checked_k(shortest)
    if not (shortest <= mean_length <= longest and mean_length > 0.0):
        raise ValueError(
            f"Drafts of {shortest} to {longest} token(s) cannot have a mean length of {mean_length:g}. "
            "Check that drafted tokens and cycles count the same part of the run."
        )
    if not 1.0 <= tokens_per_cycle <= mean_length + 1.0:
        raise ValueError(
            f"{tokens_per_cycle} tokens per cycle fits no alpha: drafts of {mean_length:g} token(s) on average give "
            f"between 1 and {mean_length + 1.0:g}. Check that tokens and cycles count the same part of the run."
        )
    places = np.arange(1, longest + 1)
    equal = np.clip(mean_length - (places - 1), 0.0, 1.0)
    spread = longest - shortest
    extreme = np.where(places <= shortest, 1.0, (mean_length - shortest) / spread if spread else 1.0)
    # share[i]: of the cycles, how many had a draft that reached place i + 1; each of those gains alpha^(i + 1) tokens.
    low, high = (_alpha_of_shares(tokens_per_cycle, share) for share in (equal, extreme))
    return min(low, high), high


def _alpha_of_shares(tokens_per_cycle: float, share: np.ndarray) -> float:
    gains = np.concatenate([[1.0], share])
    if tokens_per_cycle >= gains.sum():  # all kept, to rounding
        return 1.0
    return float(bisect(lambda alpha: polyval(alpha, gains) - tokens_per_cycle, 0.0, 1.0))


def alpha_interval(kept: int, tested: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval (low, high) for alpha when ``kept`` of ``tested`` tokens were kept.

    Wilson's score interval (Wilson 1927, JASA 22:209): sound for small counts and near 0 and 1. It
    assumes that the tests are independent. Tokens of one text are not quite (easy and hard
    passages come in stretches), so read it as the narrowest the interval can be.
    """
    if not 0 <= kept <= tested:
        raise ValueError(f"kept counts some of the tested tokens; got kept={kept} of tested={tested}.")
    if tested == 0:
        raise ValueError("No token was tested (tested=0), so alpha cannot be known. Use runs with drafts.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is a probability between 0 and 1, both excluded; got {confidence}.")
    z = float(ndtri(0.5 + confidence / 2.0))
    share = kept / tested
    shrink = 1.0 + z * z / tested
    middle = (share + z * z / (2.0 * tested)) / shrink
    half = z * sqrt(share * (1.0 - share) / tested + (z / (2.0 * tested)) ** 2) / shrink
    # The interval holds the share itself, and ends at it when all or none were kept; rounding may miss by 1e-16.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


# --- time -------------------------------------------------------------------------------------


def gamma(draft_ms: float, target_ms: float) -> float:
    """Draft time per token / target time per token (Leviathan et al. 2023 call it c). No unit."""
    return _checked_ms("draft_ms", draft_ms) / _checked_pass_ms("target_ms", target_ms)


def cycle_ms(k: int, draft_ms: float, verify_ms: Mapping[int, float], *, other_ms: float = 0.0) -> float:
    """Milliseconds of one cycle: k * draft_ms + verify_ms[k + 1] + other_ms.

    draft_ms: milliseconds per drafted token. verify_ms: N -> milliseconds of one target pass over
    N rows (``CostCurve.median_ms``); k drafts need k + 1 rows because the pending token takes one.
    other_ms: sampling, rollback and bookkeeping per cycle. An unmeasured N = k + 1 raises
    KeyError and is never interpolated.
    """
    drafting = _checked_k(k) * _checked_ms("draft_ms", draft_ms)
    return drafting + _pass_ms(verify_ms, k + 1) + _checked_ms("other_ms", other_ms)


def implied_cycle_ms(tokens_per_cycle: float, tokens_per_second: float) -> float:
    """Milliseconds of one whole cycle, drafts and everything else included, from what a run printed.

    ValueError for fewer than one token a cycle and for a speed that is not above 0.
    """
    if not 1.0 <= tokens_per_cycle < np.inf:
        raise ValueError(f"A cycle emits at least one token; got {tokens_per_cycle} tokens per cycle.")
    if not 0.0 < tokens_per_second < np.inf:
        raise ValueError(f"tokens_per_second must be above 0 and finite; got {tokens_per_second}.")
    return 1000.0 * tokens_per_cycle / tokens_per_second


def ms_per_token(
    alpha: Alpha, k: int, draft_ms: float, verify_ms: Mapping[int, float], *, other_ms: float = 0.0
) -> Alpha:
    """Milliseconds per emitted token: ``cycle_ms`` / ``expected_tokens``. alpha may be an array."""
    return cycle_ms(k, draft_ms, verify_ms, other_ms=other_ms) / expected_tokens(alpha, k)


def speedup(
    alpha: Alpha,
    k: int,
    draft_ms: float,
    verify_ms: Mapping[int, float],
    plain_ms: float,
    *,
    other_ms: float = 0.0,
) -> Alpha:
    """How many times faster than plain decoding: plain_ms / ``ms_per_token``. alpha may be an array.

    plain_ms: measured milliseconds per token without speculation. It is asked for because it need
    not be T(1): a benchmark pass and a generation step are different programs. k = 0 is a cycle
    that only pays T(1), so its speedup is plain_ms / (T(1) + other_ms), not 1.
    With a flat T(N) = plain_ms this is Leviathan et al. 2023 (arXiv 2211.17192), theorem 3.8.
    """
    return _checked_pass_ms("plain_ms", plain_ms) / ms_per_token(alpha, k, draft_ms, verify_ms, other_ms=other_ms)


def speedup_under_load(
    alpha: Alpha, k: int, sequences: int, draft_ms: float, verify_ms: Mapping[int, float], *, other_ms: float = 0.0
) -> Alpha:
    """How many times as many tokens per second ``sequences`` texts get together by drafting. alpha may be an array.

    One pass serves all: plain decoding pays T(sequences) for a token of each, a cycle pays
    T(sequences * (k + 1)) and the drafts of all, made one after the other, for ``expected_tokens`` of
    each. draft_ms: per drafted token; other_ms: per sequence and cycle, paid by plain decoding too.
    KeyError for an unmeasured N. With one sequence it is ``speedup`` over plain_ms = T(1) + other_ms.
    """
    if sequences < 1:
        raise ValueError(f"sequences counts texts that share a pass: 1 or more; got {sequences}.")
    beside_ms = sequences * _checked_ms("other_ms", other_ms)
    plain_ms = _pass_ms(verify_ms, sequences) + beside_ms
    drafting_ms = sequences * _checked_k(k) * _checked_ms("draft_ms", draft_ms)
    cycle = drafting_ms + _pass_ms(verify_ms, sequences * (k + 1)) + beside_ms
    return expected_tokens(alpha, k) * plain_ms / cycle


def best_k(alpha: float, draft_ms: float, verify_ms: Mapping[int, float], plain_ms: float) -> int:
    """The draft length with the highest speedup; 0 (leave it off) when none is above 1.

    Tries every k >= 1 whose N = k + 1 was measured, and no other; the shorter draft wins a tie.
    ValueError when no N >= 2 was measured, because then no draft can be judged.
    """
    speedups = {0: 1.0} | {k: speedup(alpha, k, draft_ms, verify_ms, plain_ms) for k in _measured_ks(verify_ms)}
    return max(speedups, key=speedups.__getitem__)


def speedup_of_best_k(alpha: Alpha, draft_ms: float, verify_ms: Mapping[int, float], plain_ms: float) -> Alpha:
    """The highest speedup of any k >= 1 whose N = k + 1 was measured; below 1 where none pays. alpha may be an array.

    ValueError when no N >= 2 was measured.
    """
    return np.max([speedup(alpha, k, draft_ms, verify_ms, plain_ms) for k in _measured_ks(verify_ms)], axis=0)


def _measured_ks(verify_ms: Mapping[int, float]) -> list[int]:
    """Every k >= 1 whose pass was measured, ascending."""
    measured = [n - 1 for n in sorted(verify_ms) if n >= 2]
    if not measured:
        raise ValueError(
            f"No draft can be judged: T(N) was measured only at N={sorted(verify_ms)}. Measure N=2 and up."
        )
    return measured


def break_even_alpha(k: int, draft_ms: float, verify_ms: Mapping[int, float], plain_ms: float) -> float | None:
    """The smallest alpha with speedup >= 1: where ``expected_tokens(alpha, k)`` = cycle / plain_ms.

    0.0 when the cycle is no dearer than one plain token, so that k always wins. None when
    cycle / (k + 1) > plain_ms: even alpha = 1 loses, and no alpha can rescue this k.
    k must be 1 or more: without a draft alpha has no part in the speed.
    """
    cycle = cycle_ms(_checked_k(k, least=1), draft_ms, verify_ms)
    tokens_needed = cycle / _checked_pass_ms("plain_ms", plain_ms)
    if tokens_needed > k + 1:
        return None
    return solve_alpha(max(1.0, tokens_needed), k)


# --- the staircase ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cliff:
    """A step of T(N) that is too dear: from ``after_n`` rows (the last cheap ones) to ``at_n`` = after_n + 1.

    before_ms, after_ms: T(after_n) and T(at_n). ratio: after_ms / before_ms.
    """

    after_n: int
    at_n: int
    before_ms: float
    after_ms: float
    ratio: float


def _neighbours(median_ms: Mapping[int, float]) -> list[tuple[int, int]]:
    """Pairs (n, n + 1) with both measured: only there is a step the doing of one row."""
    return [(n, n + 1) for n in sorted(median_ms) if n + 1 in median_ms]


def cliffs(median_ms: Mapping[int, float], ratio: float = 1.4) -> tuple[Cliff, ...]:
    """Every step n -> n + 1 with T(n+1) / T(n) >= ratio and > (n+1) / n, ascending in n.

    median_ms: N -> milliseconds. Steps across unmeasured N are left out: they cannot be placed.

    The second bound is what makes a cliff. One more row raises the expected tokens by a factor of
    at most (n+1) / n, at alpha = 1; a dearer step is one that no alpha can pay back, however cheap
    the draft. It also keeps a plain slope (T proportional to N) from being called a cliff.
    The first bound keeps noise out where (n+1) / n is close to 1; 1.4 is what the M5 Pro article
    uses, and is the larger of the two from n = 3 on.
    """
    found = []
    for n, next_n in _neighbours(median_ms):
        before, after = _pass_ms(median_ms, n), _pass_ms(median_ms, next_n)
        step = after / before
        if step >= ratio and step > next_n / n:
            found.append(Cliff(n, next_n, before, after, step))
    return tuple(found)


def dips(median_ms: Mapping[int, float]) -> tuple[int, ...]:
    """Every N with T(N) < T(N - 1), both measured: one row more, and yet cheaper.

    Real where N reaches a better kernel; compare the size with the curve's intervals before
    believing in one, since on a plateau noise alone makes small ones.
    """
    return tuple(n for before, n in _neighbours(median_ms) if _pass_ms(median_ms, n) < _pass_ms(median_ms, before))


def longest_cheap_draft(median_ms: Mapping[int, float]) -> int | None:
    """The longest draft that stays before the cliff: the cliff's N minus 2. None without a cliff.

    The cliff's N is the first dear number of rows, so N - 1 rows are cheap, and one of them is the
    pending token's (chosen in the last cycle, not yet fed to the target). The rest is for drafts.
    The token that the target adds for free takes no row: it is read off the last row's logits.
    Of several cliffs the one with the largest ratio counts, the first on a tie. Whether a draft far
    beyond the cliff pays after all (the step may be followed by a plateau) is for ``best_k`` to say.
    """
    found = cliffs(median_ms)
    return max(found, key=lambda cliff: cliff.ratio).at_n - 2 if found else None


def marginal_ms(median_ms: Mapping[int, float]) -> dict[tuple[int, int], float]:
    """(a, b) -> (T(b) - T(a)) / (b - a): ms per added row between neighbours in the list of measured N."""
    ns = sorted(median_ms)
    return {(a, b): (_pass_ms(median_ms, b) - _pass_ms(median_ms, a)) / (b - a) for a, b in pairwise(ns)}


def verify_ms_at_context(curves: Mapping[int, Mapping[int, float]], n: int, context_length: int) -> float:
    """T(n) in milliseconds at a context length, on the line between the two measured around it.

    curves: context length in tokens -> (N -> ms). A line is fair in context length, where
    attention adds work in proportion, and never in N. ValueError outside the measured contexts;
    KeyError when a curve that is needed has no N = n.
    """
    measured = sorted(curves)
    if not measured or not measured[0] <= context_length <= measured[-1]:
        between = f"from {measured[0]} to {measured[-1]} tokens" if measured else "at no context length"
        raise ValueError(
            f"T({n}) cannot be told at a context of {context_length} tokens: curves were measured {between}. "
            f"Measure a curve at {context_length} or beyond."
        )
    below = max(length for length in measured if length <= context_length)
    above = min(length for length in measured if length >= context_length)
    ends = _pass_ms(curves[below], n), _pass_ms(curves[above], n)
    return float(np.interp(context_length, (below, above), ends))
