"""The ledger: what a cycle costs, part by part, and what that makes of a run.

Prices come from cycles whose outcome was scripted (``cycle_costs``), apart from every run they are
used on. A run is then priced twice: with the kept tokens it really had, which tests the costs
alone, and with nothing but its alpha, which tests the geometric assumption as well. Records in,
milliseconds out; nothing is fitted to the run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from statistics import fmean, median

import numpy as np

from . import theory
from .intervals import sum_ratio_interval
from .records import DISTURBED, Cycle, CycleCosts, CycleParts, CycleSample, DraftPrice, LedgerCell, PublishedStudy

FILLER = "filler"
"""Drafter's name in scripted cycles whose draft was made up."""

MODEL, LOOK_UP, NOBODY = "model", "look-up", ""
"""``CycleSample.source``."""

REACH = 64
"""Tokens by which a context may lie outside the measured ones; it is then priced as the nearest of them."""


def samples(cycles: Iterable[Cycle], *, keeps_drafts: bool, n_before: int | None = None) -> tuple[CycleSample, ...]:
    """Consecutive cycles as the ledger reads them.

    keeps_drafts: as in ``CycleCosts``. n_before: rows of the target pass before the first cycle; None
    where that was the prompt's. Whoever drafted is told by the confidences: only models have them, and of
    a chain either the look-up answers or the model. Settings with p_min above 0 are not priced here.
    """
    found: list[CycleSample] = []
    fed = 1
    for cycle in cycles:
        source = _source(cycle)
        found.append(
            CycleSample(
                n=cycle.n_rows,
                changed=cycle.n_rows != n_before,
                source=source,
                drafted=len(cycle.drafted),
                kept=cycle.kept,
                emitted=len(cycle.emitted),
                fed=fed,
                context_length=cycle.context_length,
                draft_ms=1e3 * cycle.draft_s,
                verify_ms=1e3 * cycle.verify_s,
                sampling_ms=1e3 * cycle.sampling_s,
                other_ms=1e3 * cycle.other_s,
            )
        )
        n_before = cycle.n_rows
        fed = _fed_next(fed, source, len(cycle.drafted), cycle.kept, len(cycle.emitted), keeps_drafts)
    return tuple(found)


def _source(cycle: Cycle) -> str:
    if cycle.drafter == FILLER:
        return FILLER
    if not cycle.drafted:
        return NOBODY
    return LOOK_UP if cycle.confidences is None else MODEL


def _fed_next(fed: int, source: str, drafted: int, kept: int, emitted: int, keeps_drafts: bool) -> int:
    """Tokens new to the drafter's model in the next cycle."""
    if source != MODEL:
        return fed + emitted  # it was not asked, and has read nothing
    # The last drafted token was never fed to the model that drafted it, so a fully kept draft leaves two to read.
    return emitted - min(kept, drafted - 1) if keeps_drafts else emitted


def together(costs: Sequence[CycleCosts], drafter: str | None = None) -> CycleCosts:
    """Costs measured in several rounds, as one. drafter: whose they are; the first's unless given."""
    if not costs:
        raise ValueError("There are no costs to put together: measure at least one round.")
    return CycleCosts(
        drafter=costs[0].drafter if drafter is None else drafter,
        samples=tuple(sample for each in costs for sample in each.samples),
        contexts=tuple(sorted({context for each in costs for context in each.contexts})),
        keeps_drafts=any(each.keeps_drafts for each in costs),
        recited=tuple(sample for each in costs for sample in each.recited),
        contended=any(each.contended for each in costs),
    )


class Prices:
    """Milliseconds for every part of a cycle in every situation that was scripted.

    A price is the median over samples of the same situation, times how far the mean of all such
    samples lies above their medians: sums are made of means, and a mean over few samples is at the mercy
    of one slow pass. KeyError for a number of rows or of drafted tokens that was not scripted: T(N) is
    never filled in. Along the context length prices lie on the line between the measured ones.
    """

    def __init__(self, costs: CycleCosts) -> None:
        self.drafter = costs.drafter
        self.keeps_drafts = costs.keeps_drafts
        settled = [s for s in costs.samples if not s.changed]
        own = [s for s in costs.samples if s.source == MODEL]
        self._verify = _Curves("a pass over N rows, N", costs.contexts, [(s.n, s, s.verify_ms) for s in settled])
        self._draft = _Curves(
            "a draft of k tokens, k",
            costs.contexts,
            [(s.drafted, s, s.draft_ms) for s in own if s.fed == 1],
            # It grows little with the context, and a chain's model may have one token to read at the start alone.
            reach=inf,
        )
        rebuilds = [
            s.verify_ms - self._verify.at(s.n, s.context_length)
            for s in costs.samples
            if s.changed and self._verify.reaches(s.n, s.context_length)
        ]
        self.rebuild_ms = max(0.0, median(rebuilds)) if rebuilds else 0.0
        # What seldom comes twice in a row is known from its first passes too, less the graph that they built.
        timed = [(s.n, s, s.verify_ms - self.rebuild_ms * s.changed) for s in costs.samples]
        self._verify = _Curves("a pass over N rows, N", costs.contexts, timed)
        beyond = _medians(
            (s.fed, s.draft_ms - self._draft.at(s.drafted, s.context_length))
            for s in own
            if s.fed > 1 and s.drafted in self._draft
        )
        # Reading more is not cheaper than reading less; a difference below 0 is noise.
        self._catch_up = {1: 0.0} | {fed: max(0.0, ms) for fed, ms in beyond.items()}
        # In a script a drafter without a model makes no draft of its own; what was recited knows better.
        self._flat = {
            source: ms
            for of in (costs.samples, costs.recited)
            for source, ms in _medians((s.source, s.draft_ms) for s in of if s.source in (LOOK_UP, NOBODY)).items()
        }
        self._sampling = _medians((s.emitted, s.sampling_ms) for s in costs.samples)
        other = _medians((s.rolled_back, s.other_ms) for s in costs.samples)
        self.bookkeeping_ms = other.get(False, other.get(True, 0.0))
        self.rollback_ms = other.get(True, self.bookkeeping_ms) - self.bookkeeping_ms

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """Lengths of a model's drafts that were measured, ascending."""
        return tuple(sorted(self._draft))

    @property
    def longest_catch_up(self) -> int:
        """The most tokens whose reading was measured; 1 where nothing but the pending token was ever new."""
        return max(self._catch_up)

    def draft_ms(self, source: str, drafted: int, context_length: float) -> float:
        """A proposal when only the pending token is new to the drafter."""
        if source == MODEL:
            return self._draft.at(drafted, context_length)
        if source not in self._flat:
            raise KeyError(
                f"{self.drafter} was not measured in a cycle with {'a look-up' if source else 'no draft'}; measured: "
                f"{', '.join(map(repr, self._flat)) or 'models only'}."
            )
        return self._flat[source]

    def catch_up_ms(self, fed: float) -> float:
        """What reading ``fed`` tokens takes more than reading one; on the line between the measured numbers."""
        return _between("tokens to catch up with", self._catch_up, fed)

    def verify_ms(self, n: int, context_length: float) -> float:
        """T(n) at a context length, the pass before having had n rows as well."""
        return self._verify.at(n, context_length)

    def sampling_ms(self, draws: int) -> float:
        """That many tokens drawn, on the line between the measured numbers."""
        return _between("draws", self._sampling, draws)

    def of(self, sample: CycleSample) -> CycleParts:
        """What a cycle in this situation costs. Its own times are not looked at."""
        return CycleParts(
            draft=self.draft_ms(sample.source, sample.drafted, sample.context_length),
            catch_up=self.catch_up_ms(sample.fed) if sample.source == MODEL else 0.0,
            verify=self.verify_ms(sample.n, sample.context_length),
            rebuild=self.rebuild_ms if sample.changed else 0.0,
            sampling=self.sampling_ms(sample.emitted),
            rollback=self.rollback_ms if sample.rolled_back else 0.0,
            bookkeeping=self.bookkeeping_ms,
        )


class _Curves:
    """key -> (context length -> ms): the median at each context of the plan, placed at the mean length there."""

    def __init__(
        self,
        what: str,
        contexts: Sequence[int],
        timed: Sequence[tuple[int, CycleSample, float]],
        *,
        reach: float = REACH,
    ) -> None:
        self._what, self._reach = what, reach
        groups: dict[int, dict[int, list[tuple[int, float]]]] = {}
        for key, sample, ms in timed:
            began = max((c for c in contexts if c <= sample.context_length), default=min(contexts))
            groups.setdefault(key, {}).setdefault(began, []).append((sample.context_length, ms))
        self._points: dict[int, dict[int, float]] = {}
        above: list[float] = []
        for key, by_context in groups.items():
            for found in by_context.values():
                middle = median(ms for _, ms in found)
                self._points.setdefault(key, {})[round(fmean(length for length, _ in found))] = middle
                above += [ms / middle for _, ms in found if middle > 0.0]
        self._straggling = fmean(above) if above else 1.0

    def reaches(self, key: int, context_length: float) -> bool:
        """Whether ``at`` knows a price: not so where a script has run on far beyond the last context of the plan."""
        points = self._points.get(key, ())
        return bool(points) and min(points) - self._reach <= context_length <= max(points) + self._reach

    def __iter__(self) -> Iterator[int]:
        return iter(self._points)

    def at(self, key: int, context_length: float) -> float:
        if key not in self._points:
            measured = ", ".join(map(str, sorted(self._points))) or "none"
            raise KeyError(f"The cost of {self._what} = {key} was not measured; measured: {measured}.")
        points = self._points[key]
        low, high = min(points), max(points)
        if not self.reaches(key, context_length):
            raise ValueError(
                f"The cost of {self._what} = {key} was measured with {low} to {high} tokens in the cache, and is asked "
                f"for at {context_length:g}. Measure at contexts around it."
            )
        inside = min(max(context_length, low), high)
        curves = {length: {key: ms} for length, ms in points.items()}
        return self._straggling * theory.verify_ms_at_context(curves, key, inside)


def _medians(pairs: Iterable[tuple[Hashable, float]]) -> dict[Hashable, float]:
    groups: dict[Hashable, list[float]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: median(groups[key]) for key in sorted(groups)}


def _between(what: str, measured: Mapping[int, float], count: float) -> float:
    if not measured or not min(measured) <= count <= max(measured):
        raise KeyError(
            f"The cost of {count:g} {what} was not measured; measured: {', '.join(map(str, measured)) or 'none'}."
        )
    return float(np.interp(count, list(measured), list(measured.values())))


def ms_per_token(run: Sequence[CycleSample], prices: Prices) -> float:
    """Predicted milliseconds per token, given what was drafted and kept in each cycle: tests the costs alone."""
    return sum(prices.of(sample).ms for sample in run) / sum(sample.emitted for sample in run)


def ms_per_token_of_alpha(run: Sequence[CycleSample], alpha: float, prices: Prices) -> float:
    """Predicted milliseconds per token, given alpha: every tested token is kept with that probability.

    Of the run only the drafts are taken, who made them and how long they were: whether a look-up finds
    something is not alpha's business. What was kept is not looked at; expected costs over expected tokens.
    """
    spent = tokens = 0.0
    fed = 1.0
    for sample in run:
        drafted = sample.drafted
        # Priced where the run made it: where alpha would have had it, a rare N may not have been measured.
        context_length = sample.context_length
        emitted = theory.tokens_per_cycle_distribution(alpha, drafted)
        expected, all_kept = theory.expected_tokens(alpha, drafted), float(emitted[-1])
        spent += prices.draft_ms(sample.source, drafted, context_length)
        # A stretch of look-ups may come out longer than any that was measured; it is priced as the longest of those.
        spent += prices.catch_up_ms(min(fed, prices.longest_catch_up)) if sample.source == MODEL else 0.0
        spent += prices.verify_ms(sample.n, context_length) + (prices.rebuild_ms if sample.changed else 0.0)
        spent += sum(share * prices.sampling_ms(draws) for draws, share in enumerate(emitted, 1))
        spent += prices.bookkeeping_ms + (1.0 - all_kept) * prices.rollback_ms
        tokens += expected
        if sample.source != MODEL:
            fed += expected
        else:  # the expected value of ``_fed_next``
            fed = 1.0 + all_kept if prices.keeps_drafts else expected
    return spent / tokens


def calmed(cycles: Sequence[CycleSample]) -> tuple[CycleSample, ...]:
    """All cycles; where pass or draft took over ``DISTURBED`` times the median of their like, at that median.

    Something held a core then: such cycles are few, take up to ten times as long, and hit run and costs by chance.
    For costs, where no situation may go missing.
    """
    passes = _medians((s.n, s.verify_ms) for s in cycles)
    drafts = _medians(((s.drafted, s.fed), s.draft_ms) for s in cycles if s.source == MODEL)

    def calm(s: CycleSample) -> CycleSample:
        like = drafts[s.drafted, s.fed] if s.source == MODEL else s.draft_ms
        draft_ms = like if s.draft_ms > DISTURBED * like else s.draft_ms
        verify_ms = passes[s.n] if s.verify_ms > DISTURBED * passes[s.n] else s.verify_ms
        return replace(s, draft_ms=draft_ms, verify_ms=verify_ms)

    return tuple(map(calm, cycles))


def undisturbed(cycles: Sequence[CycleSample]) -> tuple[CycleSample, ...]:
    """Those cycles that ``calmed`` leaves as they are."""
    return tuple(s for s, calm in zip(cycles, calmed(cycles), strict=True) if s == calm)


def cell(
    runs: Sequence[Sequence[CycleSample]],
    prices: Prices,
    *,
    k: int,
    kind: str,
    contended: bool = False,
    tries: int = 1,
) -> LedgerCell:
    """Runs of one setting on one prompt, measured and predicted. ValueError without a cycle.

    Times are those of the ``undisturbed`` cycles; prices should come from ``calmed`` ones.
    """
    cycles = [sample for run in runs for sample in run]
    if not cycles:
        raise ValueError(f"There is no cycle of {prices.drafter} with k={k} on {kind!r} to predict.")
    tested = sum(min(sample.drafted, sample.kept + 1) for sample in cycles)
    alpha = sum(sample.kept for sample in cycles) / tested if tested else None
    calm = [sample for run in runs for sample in undisturbed(run)]
    emitted = sum(sample.emitted for sample in calm)
    bills = [prices.of(sample) for sample in calm]
    return LedgerCell(
        drafter=prices.drafter,
        k=k,
        kind=kind,
        cycles=len(cycles),
        tokens_per_cycle=sum(sample.emitted for sample in cycles) / len(cycles),
        alpha=alpha,
        measured_ms=sum(sample.ms for sample in calm) / emitted,
        predicted_ms=sum(bill.ms for bill in bills) / emitted,
        of_alpha_ms=fmean(ms_per_token_of_alpha(run, alpha or 0.0, prices) for run in runs),
        interval=sum_ratio_interval([bill.ms for bill in bills], [sample.ms for sample in calm]),
        predicted=mean_parts(bills),
        measured=mean_parts(
            [
                CycleParts(
                    draft=sample.draft_ms,
                    verify=sample.verify_ms,
                    sampling=sample.sampling_ms,
                    bookkeeping=sample.other_ms,
                )
                for sample in calm
            ]
        ),
        disturbed=len(cycles) - len(calm),
        contended=contended,
        tries=tries,
    )


def draft_price(prices: Prices, context_length: float) -> DraftPrice:
    """A model's drafts as they cost inside cycles, from two measured lengths; KeyError without two.

    A draft model passes once a token, so its drafts lie on a line in k, and so does reading what is new. For a
    quick look at every k (the live view, replays); a ledger has every k measured.
    """
    ks = prices.draft_lengths
    if len(ks) < 2:
        raise KeyError(f"Drafts of two lengths are needed to tell those of others; measured: {ks}.")
    shortest, longest = (prices.draft_ms(MODEL, length, context_length) for length in (ks[0], ks[-1]))
    further = max(0.0, (longest - shortest) / (ks[-1] - ks[0]))
    most = prices.longest_catch_up
    return DraftPrice(
        prices.drafter,
        max(0.0, shortest - further * (ks[0] - 1)),
        further,
        prices.catch_up_ms(most) / (most - 1) if most > 1 else 0.0,
    )


def drafting_ms(prices: Prices, k: int, alpha: float, context_length: float) -> float:
    """What a model's draft of k tokens takes on average, catching up included (``draft_price``)."""
    price = draft_price(prices, context_length)
    fed = 1.0 + alpha**k if prices.keeps_drafts else theory.expected_tokens(alpha, k)
    return price.ms(k) + (fed - 1.0) * (price.catch_up_ms or 0.0)


def mean_parts(bills: Sequence[CycleParts]) -> CycleParts:
    """The average cycle of several."""
    return CycleParts(**{each.name: fmean(getattr(bill, each.name) for bill in bills) for each in fields(CycleParts)})


@dataclass(frozen=True, slots=True)
class SecondPass:
    """What a published cycle took beside drafts and pass, and what a second pass of the draft model would have taken.

    missing_ms: measured cycle less k drafts and T(k + 1). low_ms, high_ms: bounds of the second pass over k + 1
    rows, from the nearest passes of the draft model that were published (None: none over as many rows).
    """

    k: int
    missing_ms: float
    low_ms: float
    high_ms: float | None

    @property
    def explains_too_much(self) -> bool:
        """Whether even the least that such a pass takes is more than what is missing."""
        return self.low_ms > self.missing_ms


def second_pass(study: PublishedStudy, draft_pass_ms: Mapping[int, float]) -> tuple[SecondPass, ...]:
    """Tests a guess at what the study's ledger leaves out: that the draft model reads every verified batch again.

    llama.cpp does so today (common/speculative.cpp, ``process``), at T_draft(k + 1) a cycle. draft_pass_ms: N -> ms of
    the draft model, N = 1 among them. The bounds assume only that a pass over more rows is not cheaper.
    """
    found = []
    for run in study.runs:
        tokens = 1.0 + run.k * run.acceptance_rate
        missing = 1e3 * tokens / run.tokens_per_second - theory.cycle_ms(run.k, study.draft_ms, study.verify_ms)
        low = max(ms for n, ms in draft_pass_ms.items() if n <= run.k + 1)
        high = min((ms for n, ms in draft_pass_ms.items() if n >= run.k + 1), default=None)
        found.append(SecondPass(run.k, missing, low, high))
    return tuple(found)
