"""Speculation that does not lose: who drafts, and how much, decided anew before each cycle.

What a cycle costs is known: the staircase, the time of a drafted token, and what a change of N
costs were measured beforehand. What it brings is not, so every drafter carries a running estimate
of alpha. In each cycle the policy takes whatever promises the most tokens per millisecond; plain
decoding is one of the picks, at one token for T(1).

**Learning without paying.** A draft need not be verified to be judged. Kept aside, it is compared
with the tokens that the target emits anyway, and the count comes out as verification's would. So a
look-up, which costs next to nothing to ask, is asked in every cycle and judged for free whenever
it is not used. A drafter that runs a model costs its drafting, and first the reading of what was
written since it was last asked; while it is off it is tried seldom, and more seldom after each trial
in which it was wrong.

**What it may lose.** A purse holds what was gained over plain decoding so far, and an allowance:
one plain pass at the start and ``ALLOWANCE`` of every plain pass since. Trials are paid from what has
come in since, none beforehand: a draft that is not expected to pay is not worth a price at once.
While it is empty, a drafter may only try its luck if its last draft, verified or kept aside, was
right in its first token.

A chain of drafters (``drafters.Chain``) asks in a fixed order and takes the first draft there is,
whatever it will cost to verify; its k is fixed. Here every draft is weighed against the others
and against none, and cut to the length that pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

from .drafters import Drafter, NoDrafter
from .records import Context, Cycle, Draft, DraftPrice, Limits, Pick

ALLOWANCE = 0.005
"""Share of plain decoding's time that may be lost to trials and wrong guesses."""

TRIALS = 0.4
"""Share of the allowance that may go into trials; the rest is for guesses that went wrong."""

MEMORY = 60
"""Drafts that an estimate of alpha looks back on: older ones fade, since texts change."""

RATE_MEMORY = 20
"""Cycles that the running tokens per millisecond looks back on."""

PRIOR_TESTS = 3.0
"""Weight, in tested tokens, of what is assumed of a drafter before it was seen."""

NO_DRAFT = Draft()

DWELL = 4
"""Cycles over which a change of N, or catching up, is expected to pay: less, and noise would hold it to a poor k."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured before the run. Times in milliseconds.

    verify_ms: N -> T(N) at about the context length of the run; only drafts with a measured N are
    made. drafts: drafter's name -> what its drafts cost; nothing, for look-ups. other_ms: sampling and
    bookkeeping of any cycle. switch_ms: what a pass takes longer when its N is not that of the pass
    before (llama.cpp then builds its compute graph anew).
    """

    verify_ms: Mapping[int, float]
    drafts: Mapping[str, DraftPrice]
    other_ms: float = 0.0
    switch_ms: float = 0.0

    def __post_init__(self) -> None:
        if 1 not in self.verify_ms:
            measured = ", ".join(map(str, sorted(self.verify_ms))) or "nothing"
            raise ValueError(f"T(1) is missing, the time of a plain token; measured: {measured}. Measure N=1 as well.")

    @property
    def plain_ms(self) -> float:
        """Of one plain token."""
        return self.verify_ms[1] + self.other_ms


@dataclass(frozen=True, slots=True)
class Prior:
    """Alphas a drafter is credited with before it was seen, of the kinds ``RunningAlpha`` tells apart."""

    on_track: float
    off_track: float
    later: float


LOOK_UP_PRIOR = Prior(on_track=0.6, off_track=0.3, later=0.8)
"""A little less than n-gram look-up with n = 3 kept on ``prompts.HELD_OUT``, loops left out.

There the most is written with this much caution: a wrong guess costs more than one that was not made.
"""

MODEL_PRIOR = Prior(0.42, 0.42, 0.42)
"""What the trained heads kept there."""


class RunningAlpha:
    """Discounted counts of kept and tested tokens, of three kinds of token, which differ.

    A draft's first token tells whether the drafter is on the right track at all: a look-up's match
    may be a coincidence. It is kept far more often where the first token of the last draft was
    (``on_track``) than after a miss. The later tokens are tested only if the first was kept.
    """

    def __init__(self, prior: Prior) -> None:
        self._later_prior = prior.later
        self._kept = [PRIOR_TESTS * prior.on_track, PRIOR_TESTS * prior.off_track, 0.0]
        self._tested = [PRIOR_TESTS, PRIOR_TESTS, 0.0]
        self.on_track = True

    def count(self, position: int, kept: bool) -> None:
        """One tested token. position: 0 for a draft's first."""
        if position:
            kind = 2
        else:
            kind = 0 if self.on_track else 1
            self.on_track = kept
            fade = 1.0 - 1.0 / MEMORY
            self._kept = [count * fade for count in self._kept]
            self._tested = [count * fade for count in self._tested]
        self._kept[kind] += kept
        self._tested[kind] += 1.0

    @property
    def alpha(self) -> float:
        """Kept / tested, all kinds together."""
        return sum(self._kept) / sum(self._tested)

    @property
    def first(self) -> float:
        """Of the next draft's first token."""
        kind = 0 if self.on_track else 1
        return self._kept[kind] / self._tested[kind]

    @property
    def later(self) -> float:
        # Where short drafts leave the later tokens untested, they are thought no worse than the first ones.
        assumed = max(self._later_prior, self._kept[0] / self._tested[0])
        return (self._kept[2] + PRIOR_TESTS * assumed) / (self._tested[2] + PRIOR_TESTS)


@dataclass(slots=True)
class _Aside:
    """A draft that was not verified: compared with the text as it grows. start: where in the context it begins."""

    start: int
    tokens: tuple[int, ...]
    compared: int = 0


@dataclass(slots=True)
class _Arm:
    """One drafter and what is known of it.

    read: tokens of the text that its model has read: when it was asked last, or the prompt's.
    prices: (k, milliseconds of a cycle) for every k that pays if all is kept, ascending.
    wait: cycles between trials. next_trial: the cycle of the next one.
    draft, k: of the present cycle: what it proposed, None where it was not asked; how much of it is worth most.
    """

    drafter: Drafter
    longest_k: int
    price: DraftPrice
    prices: tuple[tuple[int, float], ...]
    running: RunningAlpha
    tokens: list[float] = field(default_factory=list)
    """tokens[n]: expected of a cycle with a draft of n."""
    draft: Draft | None = None
    k: int = 0
    aside: _Aside | None = None
    read: int = 0
    wait: int = 1
    next_trial: int = 0

    @property
    def free(self) -> bool:
        return self.price.first_ms == 0.0

    def missed(self, length: int) -> int:
        """Tokens of a text of that length that its model has to read before it drafts, the last aside."""
        return max(0, length - self.read - 1)

    def count(self, position: int, kept: bool) -> None:
        self.running.count(position, kept)
        self.tokens.clear()

    def weigh(self, longest: int, rate: float, last_n: int, change_ms: float, late_ms: float) -> float:
        """Sets ``k`` to the draft of at most ``longest`` tokens that is worth most, 0 where there is none; its worth.

        Its worth is the tokens expected of the cycle, less those that its time would bring at the rate
        of late (tokens per millisecond). The most of this, and not of tokens per millisecond in this
        cycle alone, gives the most tokens per millisecond of a text (renewal reward; Dinkelbach 1967):
        where drafts are rare, a long one may pay that takes longer a token than a short one.
        change_ms, late_ms: this cycle's part of what a change of N and of what catching up costs.
        """
        tokens = self.tokens or self._expect()
        best_k, most = 0, -inf
        for k, ms in self.prices:
            if k > longest:
                break
            worth = tokens[k] - rate * (late_ms + (ms if k + 1 == last_n else ms + change_ms))
            if worth > most:
                best_k, most = k, worth
        self.k = best_k
        return most

    def _expect(self) -> list[float]:
        gain, later = self.running.first, self.running.later
        self.tokens.append(1.0)
        for _ in range(self.longest_k):
            self.tokens.append(self.tokens[-1] + gain)
            gain *= later
        return self.tokens


class Adaptive:
    """A policy for one text (make a new one for the next): drafter and k by expected tokens per millisecond.

    drafters: look-ups (no draft time) and drafters that run a model, in the order in which they are
    asked. longest_k: of any draft; heads are held to what they were trained for. ``picks`` tells
    what was chosen in every cycle.
    """

    name = "adaptive"

    def __init__(self, drafters: Sequence[Drafter], costs: Costs, *, longest_k: int = 16) -> None:
        self.costs = costs
        self.picks: list[Pick] = []
        self._none = NoDrafter()
        self._arms = tuple(_arm(drafter, costs, longest_k) for drafter in drafters)
        self._purse_ms = costs.plain_ms
        self._trials_ms = 0.0
        self._late_tokens, self._late_ms = 1.0, costs.plain_ms
        self._last_n = 1
        self._cycle = 0
        self._chosen: _Arm | None = None
        self._model_ms = 0.0

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self._none, *(arm.drafter for arm in self._arms))

    def longest_k(self, drafter: Drafter) -> int:
        return next((arm.longest_k for arm in self._arms if arm.drafter is drafter), 0)

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        self._compare(context.tokens)
        self._model_ms = 0.0
        if self._cycle == 0:
            for arm in self._arms:
                arm.read = len(context.tokens) - 1
        for arm in self._arms:
            arm.draft = self._ask(arm, context, min(arm.longest_k, room)) if arm.free else None
        best = self._choose(room, len(context.tokens))
        if best is None:
            self._try_one(context)
        elif not best.free:
            best.wait = 1
            best.draft = self._ask(best, context, best.k)
            # It may draft less than it was asked for, and only some passes were measured.
            best.k = max((k for k, _ in best.prices if k <= len(best.draft.tokens)), default=0)
        self._put_aside(len(context.tokens), best)
        self._chosen = best
        drafter, k, draft = (self._none, 0, NO_DRAFT) if best is None else (best.drafter, best.k, best.draft)
        self.picks.append(
            Pick(
                drafter=drafter.name,
                k=k,
                tried=best is None and self._model_ms > 0.0,
                alphas=tuple([(arm.drafter.name, arm.running.alpha) for arm in self._arms]),
                purse_ms=self._purse_ms,
            )
        )
        return drafter, Limits(k=k, room=room), draft

    def observe(self, cycle: Cycle) -> None:
        if self._chosen is not None:
            for position in range(cycle.tested):
                self._chosen.count(position, position < cycle.kept)
        n, emitted, plain_ms = cycle.n_rows, len(cycle.emitted), self.costs.plain_ms
        cost = self.costs.verify_ms[n] + self.costs.other_ms + (self.costs.switch_ms if n != self._last_n else 0.0)
        if self._model_ms:
            # The time it really took may be longer: the first draft of a draft model reads the prompt.
            cost += max(self._model_ms, 1e3 * cycle.draft_s)
        self._purse_ms += emitted * plain_ms * (1.0 + ALLOWANCE) - cost
        self._trials_ms += emitted * plain_ms * ALLOWANCE * TRIALS
        fade = 1.0 - 1.0 / RATE_MEMORY
        self._late_tokens = self._late_tokens * fade + emitted
        self._late_ms = self._late_ms * fade + cost
        self._last_n = n
        self._cycle += 1

    def _choose(self, room: int, length: int) -> _Arm | None:
        """The drafter worth most, None where plain decoding is. length: of the text."""
        rate, change_ms = self._late_tokens / self._late_ms, self.costs.switch_ms / DWELL
        most = 1.0 - rate * (self.costs.plain_ms + (0.0 if self._last_n == 1 else change_ms))
        chosen = None
        for arm in self._arms:
            longest = min(arm.longest_k, room) if arm.draft is None else len(arm.draft.tokens)
            late_ms = arm.price.ms(0, arm.missed(length)) / DWELL
            worth = arm.weigh(longest, rate, self._last_n, change_ms, late_ms)
            # With an empty purse only a drafter that was on the right track in its last draft may try its luck.
            if worth > most and (self._purse_ms > 0.0 or arm.running.on_track):
                chosen, most = arm, worth
        return chosen

    def _ask(self, arm: _Arm, context: Context, k: int) -> Draft:
        draft = arm.drafter.propose(context, Limits(k=k))
        if not arm.free:
            self._model_ms += arm.price.ms(len(draft.tokens), arm.missed(len(context.tokens)))
        arm.read = len(context.tokens)
        return draft

    def _try_one(self, context: Context) -> None:
        """Lets one model that is off draft, to be judged without being verified, where the purse allows."""
        for arm in self._arms:
            if arm.free or arm.k == 0 or arm.aside is not None or self._cycle < arm.next_trial:
                continue
            if arm.price.ms(arm.k, arm.missed(len(context.tokens))) <= min(self._purse_ms, self._trials_ms):
                arm.draft = self._ask(arm, context, arm.k)
                self._trials_ms -= self._model_ms
                self._wait_longer(arm)
                return

    def _wait_longer(self, arm: _Arm) -> None:
        """The pause between trials doubles; at its longest, trials take what the allowance for them brings in."""
        longest = ceil(self._model_ms / (ALLOWANCE * TRIALS * self.costs.plain_ms))
        arm.wait = max(1, min(2 * arm.wait, longest))
        arm.next_trial = self._cycle + arm.wait

    def _put_aside(self, start: int, best: _Arm | None) -> None:
        """Keeps the drafts that are not verified, one of each drafter, cut as they would have been."""
        for arm in self._arms:
            if arm is best:
                arm.aside = None  # its draft is verified: the same tokens must not count twice
            elif arm.aside is None and arm.draft is not None:
                tokens = arm.draft.tokens[: arm.k]
                arm.aside = _Aside(start, tokens) if tokens else None

    def _compare(self, tokens: Sequence[int]) -> None:
        """Judges the drafts put aside by what the target has emitted since."""
        for arm in self._arms:
            aside = arm.aside
            if aside is None:
                continue
            for position in range(aside.compared, min(len(aside.tokens), len(tokens) - aside.start)):
                kept = aside.tokens[position] == tokens[aside.start + position]
                arm.count(position, kept)
                aside.compared += 1
                if not kept:
                    arm.aside = None
                    break
                if aside.compared == len(aside.tokens):
                    arm.aside = None
                    arm.wait, arm.next_trial = 1, self._cycle  # all kept: worth another look at once


def _arm(drafter: Drafter, costs: Costs, longest_k: int) -> _Arm:
    longest_k = min(longest_k, getattr(drafter, "longest_k", longest_k))
    price = costs.drafts[drafter.name]
    prices = ((n - 1, costs.verify_ms[n] + costs.other_ms + price.ms(n - 1)) for n in sorted(costs.verify_ms))
    return _Arm(
        drafter,
        longest_k,
        price,
        tuple((k, ms) for k, ms in prices if 0 < k <= longest_k and ms < (k + 1) * costs.plain_ms),
        RunningAlpha(MODEL_PRIOR if price.first_ms else LOOK_UP_PRIOR),
    )
