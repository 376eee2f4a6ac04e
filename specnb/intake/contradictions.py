"""Counts that cannot all be true, each named with its numbers. Nothing is worked out from a block that has one."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

from .. import messages
from ..records import ObservedCounts
from . import vllm_log
from .fitting import drafts_that_fit
from .parsed import LONGEST_K

RATE_DIGITS = {vllm_log.TOOL: 5e-4}
"""Half the last digit of a printed rate; llama.cpp's programs print five decimals of a share, or as much in percent."""
_RATE_DIGIT = 5e-6
_SIX_DIGITS = 5e-6
_FLOAT_SLACK = 1e-6


def contradictions(counts: ObservedCounts) -> tuple[str, ...]:
    """In words; empty for counts that agree with each other. A count printed to six digits is allowed its rounding."""
    found = [*_totals(counts), *_rates(counts), *_lengths(counts), *_positions(counts)]
    return tuple(dict.fromkeys(found))


def _slack(counts: ObservedCounts) -> int:
    """Tokens by which rounded totals may be off."""
    return ceil(_SIX_DIGITS * max(counts.drafted, counts.kept)) if counts.rounded else 0


def _totals(counts: ObservedCounts) -> list[str]:
    found = []
    if counts.kept > counts.drafted + _slack(counts):
        found.append(messages.intake_kept_more(counts.kept, counts.drafted))
    if counts.emitted is not None and counts.first_tokens == 0 and counts.emitted < counts.kept:
        found.append(messages.intake_emitted_less(counts.emitted, counts.kept))
    if counts.passes is not None and counts.passes[1] == 0 and counts.drafted:
        found.append(messages.intake_no_passes(counts.drafted, counts.emitted, counts.kept))
    return found


def _rates(counts: ObservedCounts) -> list[str]:
    found = []
    printed, rate = counts.acceptance, counts.acceptance_rate
    if printed is not None:
        digits = RATE_DIGITS.get(counts.tool, _RATE_DIGIT)
        if printed > 1.0 + digits:
            found.append(messages.intake_rate_above_one(printed))
        if rate is not None and abs(printed - rate) > digits + _FLOAT_SLACK:
            found.append(messages.intake_rate_mismatch(printed, counts.kept, counts.drafted))
    found += [messages.intake_rate_above_one(share) for share in counts.per_position if share > 1.0][:1]
    return found


def _lengths(counts: ObservedCounts) -> list[str]:
    """Against k, where it is known: no draft is longer, and no pass gives more than k + 1 tokens."""
    found = []
    k, slack = counts.k, _slack(counts)
    if k is not None and k > LONGEST_K:
        return [messages.intake_k_too_large(k, LONGEST_K)]
    mean, drafts = counts.mean_length, counts.drafts
    if mean is not None and mean < 1.0:
        found.append(messages.intake_mean_below_one(mean))
    elif mean is not None and counts.drafted and not _mean_fits(counts):
        found.append(messages.intake_mean_mismatch(mean, counts.kept, counts.drafted))
    if mean is not None and k is not None and mean > k + 1 + 0.005:
        found.append(messages.intake_too_many_tokens(mean, k))
    passes = drafts or counts.passes
    if passes is None or k is None:
        return found
    most = passes[1]
    if counts.drafted > k * most + slack:
        found.append(messages.intake_drafts_too_long(counts.drafted, most, k))
    if counts.kept > k * most + slack:
        found.append(messages.intake_too_many_tokens((counts.kept + most) / most if most else float("inf"), k))
    if drafts is not None and drafts[0] > counts.drafted + slack:
        found.append(messages.intake_more_drafts_than_tokens(drafts[0], counts.drafted))
    return found


def _mean_fits(counts: ObservedCounts) -> bool:
    fitting = drafts_that_fit(counts.kept, counts.drafted, counts.mean_length)
    if fitting is None:
        return counts.kept > counts.drafted  # that is the contradiction, and it is named already
    return counts.drafts is None or (fitting[0] <= counts.drafts[1] and counts.drafts[0] <= fitting[1])


def _positions(counts: ObservedCounts) -> list[str]:
    """A token is kept only after all those before it, so the counts by position can only fall."""
    found = []
    by_position, slack = counts.kept_by_position, _slack(counts)
    for place, (before, after) in enumerate(pairwise(by_position), 1):
        if after > before:
            found.append(messages.intake_position_rises(place, before, after))
            break
    for place, (before, after) in enumerate(pairwise(counts.per_position), 1):
        if after > before + _FLOAT_SLACK:
            found.append(messages.intake_position_rises(place, before, after))
            break
    if by_position and counts.drafts is not None and by_position[0] > counts.drafts[1] + slack:
        found.append(messages.intake_position_above_drafts(by_position[0], counts.drafts[1]))
    if by_position and abs(sum(by_position) - counts.kept) > slack:
        found.append(messages.intake_positions_sum(sum(by_position), counts.kept))
    return found
