"""What counts say: alpha, tokens per cycle, realised k. Exactly where that is possible, otherwise as bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from .. import messages, theory
from ..records import ObservedCounts

Range = tuple[float, float]
"""(low, high); equal ends: exact."""


@dataclass(frozen=True, slots=True)
class Reading:
    """counts: what it was read from. None: the numbers cannot give it, and ``unknown`` says why.

    tokens_per_draft: tokens per pass that verified a draft, the target's own included.
    tokens_per_cycle: emitted / target passes, plain passes counted. draft_length: realised k, drafted tokens per pass
    with a draft (per pass, where drafts are not counted apart). drafted_share: of the passes, those with a draft.
    tested: tokens that verification looked at. alpha: all values that fit the counts; one, if the ends are equal.
    alpha_interval: 95 %, around the whole of ``alpha``. alpha_tested: kept / tested, where tested is known.
    """

    counts: ObservedCounts
    acceptance_rate: float | None = None
    tokens_per_draft: Range | None = None
    tokens_per_cycle: Range | None = None
    draft_length: Range | None = None
    drafted_share: Range | None = None
    tested: int | None = None
    alpha: Range | None = None
    alpha_interval: Range | None = None
    alpha_tested: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether alpha is one number (to 0.001) and not a range of those that fit."""
        return self.alpha is not None and self.alpha[1] - self.alpha[0] < 1e-3


def read(counts: ObservedCounts, *, k: int | None = None) -> Reading:
    """counts: without contradictions. k: the longest draft allowed, where the tool did not print it.

    Assumes what ``theory`` does: a tested token is kept with the same probability wherever it stands.
    """
    if counts.k is None and k is not None:
        counts = replace(counts, k=k)
    if counts.drafted == 0:
        return Reading(counts, tokens_per_cycle=_per(counts.kept, counts.passes))
    alpha = _alpha(counts)
    tested = _tested(counts)
    steps = counts.drafts or counts.passes
    return Reading(
        counts,
        acceptance_rate=counts.acceptance_rate,
        tokens_per_draft=_per(counts.kept, counts.drafts),
        tokens_per_cycle=_per(counts.kept, counts.passes),
        draft_length=None if steps is None else (counts.drafted / steps[1], counts.drafted / steps[0]),
        drafted_share=_share(counts),
        tested=tested,
        alpha=alpha,
        alpha_interval=_interval(counts, alpha, tested),
        alpha_tested=None if not tested else counts.kept / tested,
        unknown=tuple(_unknown(counts, tested)),
    )


def total(several: Sequence[ObservedCounts]) -> ObservedCounts:
    """The sum of blocks of one tool. What one of them lacks, the sum lacks."""

    def added(values: list) -> int | float | None:
        return None if any(value is None for value in values) else sum(values)

    def ends(values: list) -> tuple[int, int] | None:
        if any(value is None for value in values):
            return None
        return sum(fewest for fewest, _ in values), sum(most for _, most in values)

    ks = {each.k for each in several if each.drafted}
    positions = [each.kept_by_position for each in several if each.drafted]
    longest = max((len(each) for each in positions), default=0)
    return ObservedCounts(
        tool=several[0].tool,
        label=messages.intake_sum(len(several)),
        drafted=sum(each.drafted for each in several),
        kept=sum(each.kept for each in several),
        # An answer in which nothing was drafted has no drafted pass, whether its line says so or not.
        drafts=ends([each.drafts if each.drafted else (0, 0) for each in several]),
        passes=ends([each.passes for each in several]),
        emitted=added([each.emitted for each in several]),
        first_tokens=added([each.first_tokens for each in several]),
        k=None if None in ks else max(ks, default=None),
        kept_by_position=tuple(sum(each[i] for each in positions if i < len(each)) for i in range(longest))
        if all(positions)
        else (),
        seconds=added([each.seconds for each in several]),
        draft_ms=_mean_draft_ms(several),
        requests=added([each.requests for each in several]),
        rounded=any(each.rounded for each in several),
    )


def _mean_draft_ms(several: Sequence[ObservedCounts]) -> float | None:
    drafting = [each for each in several if each.drafted]
    if not drafting or any(each.draft_ms is None for each in drafting):
        return None
    return sum(each.draft_ms * each.drafted for each in drafting) / sum(each.drafted for each in drafting)


def _per(kept: int, passes: tuple[int, int] | None) -> Range | None:
    """Tokens per pass: one of the target's own, and what was kept."""
    return None if passes is None or passes[0] == 0 else (1 + kept / passes[1], 1 + kept / passes[0])


def _share(counts: ObservedCounts) -> Range | None:
    if counts.drafts is None or counts.passes is None or counts.passes[0] == 0:
        return None
    return min(1.0, counts.drafts[0] / counts.passes[1]), min(1.0, counts.drafts[1] / counts.passes[0])


def _alpha(counts: ObservedCounts) -> Range:
    """Every alpha that some run with these counts could have had."""
    drafted, kept, k = counts.drafted, counts.kept, counts.k
    kept = min(kept, drafted)  # six digits may have rounded it up
    steps, shortest = (counts.drafts, 1) if counts.drafts else (counts.passes, 0)
    if steps is None or steps[1] == 0:
        # Drafts of one token each would have tested all; drafts of k tokens each the fewest.
        return kept / drafted, 1.0 if k is None else theory.solve_alpha(min(k + 1.0, 1 + kept * k / drafted), k)
    fewest, most = max(steps[0], 1), steps[1]
    if shortest:
        most = max(1, min(most, drafted))
    longest = ceil(drafted / fewest) if k is None else k
    fewest = min(most, max(fewest, ceil(drafted / longest)))
    most = max(most, ceil(drafted / longest))

    def bounds(passes: int) -> Range:
        return theory.alpha_bounds(1 + kept / passes, drafted / passes, longest, shortest=shortest)

    low, high = bounds(most)[0], bounds(fewest)[1]
    if k is None and not (shortest and drafted == fewest):
        high = 1.0  # who knows how long the longest was
    return low, max(low, high)


def _tested(counts: ObservedCounts) -> int | None:
    """Known where every draft had k tokens: position i + 1 was tested whenever position i was kept."""
    drafts, k = counts.drafts, counts.k
    if drafts is None or drafts[0] != drafts[1] or counts.rounded:
        return None
    if k == 1 or drafts[0] == counts.drafted:
        return counts.drafted
    full = k is not None and counts.drafted == k * drafts[0] and len(counts.kept_by_position) == k
    return drafts[0] + sum(counts.kept_by_position[:-1]) if full else None


def _interval(counts: ObservedCounts, alpha: Range, tested: int | None) -> Range:
    """Wilson's for kept / tested. Where tested is not known, alpha says how many that makes: kept / alpha."""
    kept = counts.kept
    if tested is not None:
        return theory.alpha_interval(min(kept, tested), tested)
    if kept == 0:
        at_least = counts.drafts[0] if counts.drafts else ceil(counts.drafted / counts.k) if counts.k else 1
        return theory.alpha_interval(0, max(1, at_least))
    low, high = (theory.alpha_interval(kept, max(kept, round(kept / end))) for end in alpha)
    return low[0], high[1]


def _unknown(counts: ObservedCounts, tested: int | None) -> list[str]:
    said = []
    if tested is None:
        said.append(messages.INTAKE_TESTED_UNKNOWN)
    if counts.drafts is None and counts.passes is None:
        said.append(messages.INTAKE_PASSES_UNKNOWN)
    if counts.k is None:
        said.append(messages.INTAKE_K_UNKNOWN)
    if counts.passes is not None and counts.first_tokens:
        said.append(messages.INTAKE_PASSES_DERIVED)
    if counts.rounded:
        said.append(messages.INTAKE_ROUNDED)
    return said
