"""Speculation that does not lose: who drafts, and how much, decided anew before each cycle.

What a cycle costs is known: the staircase, the time of a drafted token, and what a change of N
costs were measured beforehand. What it brings is not, so every drafter carries a running estimate
of alpha. In each cycle the policy takes whatever promises the most tokens per millisecond; plain
decoding is one of the picks, at one token for T(1).

**Learning without paying.** A draft need not be verified to be judged. Kept aside, it is compared
with the tokens that the target emits anyway, and the count comes out as verification's would. So a
look-up, which costs next to nothing to ask, is asked in every cycle and judged for free whenever
it is not used. A drafter that runs a model costs its drafting; while it is off it is tried
seldom, and twice as seldom after each trial that leaves it off. Nothing else of it is kept in
step meanwhile: drafters catch up when they are asked.

**What it may lose.** Two rules bound the loss against plain decoding. A purse holds what was
gained over plain decoding so far, and an allowance: one plain pass at the start and ``ALLOWANCE``
of every plain pass since. Trials are paid from it, and while it is empty nothing is drafted.
So a run of n tokens takes at most about (1 + ALLOWANCE) n + 1 plain passes and one wasted cycle,
whatever the estimates say, as long as the costs hold.

A chain of drafters (``drafters.Chain``) asks in a fixed order and takes the first draft there is,
whatever it will cost to verify; its k is fixed. Here every draft is weighed against the others
and against none, and cut to the length that pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from .drafters import Drafter, NoDrafter
from .records import Context, Cycle, Draft, Limits, Pick

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

DWELL = 4
"""Cycles over which a change of N is expected to pay its price: less, and noise would hold it to a poor k."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured before the run. Times in milliseconds.

    verify_ms: N -> T(N) at about the context length of the run; only drafts with a measured N are
    made. draft_ms: drafter's name -> per drafted token; 0 for look-ups. other_ms: sampling and
    bookkeeping of any cycle. switch_ms: what a pass takes longer when its N is not that of the pass
    before (llama.cpp then builds its compute graph anew).
    """

    verify_ms: Mapping[int, float]
    draft_ms: Mapping[str, float]
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


LOOK_UP_PRIOR = Prior(on_track=0.65, off_track=0.35, later=0.85)
"""About what n-gram look-up with n = 3 kept on ``prompts.HELD_OUT``, loops left out."""

MODEL_PRIOR = Prior(0.5, 0.5, 0.5)


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
    """One drafter and what is known of it. wait: cycles between trials; next_trial: the cycle of the next.

    tokens[n]: expected tokens of a cycle with a draft of n.
    """

    drafter: Drafter
    longest_k: int
    draft_ms: float
    running: RunningAlpha
    aside: _Aside | None = None
    wait: int = 1
    next_trial: int = 0
    tokens: list[float] = field(default_factory=list)

    @property
    def free(self) -> bool:
        return self.draft_ms == 0.0

    def expect(self) -> None:
        """Brings ``tokens`` in line with the running estimate."""
        first, later = self.running.first, self.running.later
        self.tokens, gain = [1.0], first
        for _ in range(self.longest_k):
            self.tokens.append(self.tokens[-1] + gain)
            gain *= later


class Adaptive:
    """A policy for one text (make a new one for the next): drafter and k by expected tokens per millisecond.

    drafters: look-ups (no draft time) and drafters that run a model, in the order in which they are
    asked. longest_k: of any draft; heads are held to what they were trained for. prior: the alpha
    a drafter is credited with before it was seen. ``picks`` tells what was chosen in every cycle.
    """

    name = "adaptive"

    def __init__(self, drafters: Sequence[Drafter], costs: Costs, *, longest_k: int = 16) -> None:
        self.costs = costs
        self.picks: list[Pick] = []
        self._none = NoDrafter()
        self._arms = [self._arm(drafter, longest_k) for drafter in drafters]
        self._ks = [n - 1 for n in sorted(costs.verify_ms) if 1 < n <= longest_k + 1]
        self._purse_ms = costs.plain_ms
        self._trials_ms = TRIALS * costs.plain_ms
        self._late_tokens, self._late_ms = 1.0, costs.plain_ms
        self._last_n = 1
        self._cycle = 0
        self._chosen: _Arm | None = None
        self._model_ms = 0.0

    def _arm(self, drafter: Drafter, longest_k: int) -> _Arm:
        k = min(longest_k, getattr(drafter, "longest_k", longest_k))
        draft_ms = self.costs.draft_ms[drafter.name]
        arm = _Arm(drafter, k, draft_ms, RunningAlpha(MODEL_PRIOR if draft_ms else LOOK_UP_PRIOR))
        arm.expect()
        return arm

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self._none, *(arm.drafter for arm in self._arms))

    def longest_k(self, drafter: Drafter) -> int:
        return next((arm.longest_k for arm in self._arms if arm.drafter is drafter), 0)

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        self._compare(context.tokens)
        drafts = {
            arm.drafter: arm.drafter.propose(context, Limits(k=arm.longest_k, room=room))
            for arm in self._arms
            if arm.free
        }
        best, best_k, most = None, 0, self._worth(None, 0)
        own_k: dict[Drafter, int] = {}
        for arm in self._arms:
            longest = min(room, len(drafts[arm.drafter].tokens) if arm.free else arm.longest_k)
            worths = {k: self._worth(arm, k) for k in self._ks if k <= longest}
            if not worths:
                continue
            own_k[arm.drafter] = k = max(worths, key=worths.__getitem__)
            # With an empty purse only a drafter whose last draft was on the right track may try its luck.
            allowed = self._purse_ms > 0.0 or arm.running.on_track
            if worths[k] > most and allowed:
                best, best_k, most = arm, k, worths[k]
        self._model_ms = 0.0
        if best is None:
            self._try_one(context, own_k, drafts)
        elif not best.free:
            best.wait = 1
            drafts[best.drafter] = self._ask(best, context, best_k)
            best_k = max((k for k in self._ks if k <= len(drafts[best.drafter].tokens)), default=0)
        for arm in self._arms:
            if arm is not best and arm.aside is None and arm.drafter in drafts and arm.drafter in own_k:
                arm.aside = _Aside(len(context.tokens), drafts[arm.drafter].tokens[: own_k[arm.drafter]])
        self._chosen = best
        drafter = self._none if best is None else best.drafter
        self.picks.append(
            Pick(
                drafter=drafter.name,
                k=best_k,
                tried=self._model_ms > 0.0 and best is None,
                alphas=tuple((arm.drafter.name, arm.running.alpha) for arm in self._arms),
                purse_ms=self._purse_ms,
            )
        )
        return drafter, Limits(k=best_k, room=room), Draft() if best is None else drafts[best.drafter]

    def observe(self, cycle: Cycle) -> None:
        arm = self._chosen
        if arm is not None and cycle.drafted:
            for position in range(cycle.tested):
                arm.running.count(position, position < cycle.kept)
            arm.expect()
        n = cycle.n_rows
        cost = self.costs.verify_ms[n] + self.costs.other_ms + (self.costs.switch_ms if n != self._last_n else 0.0)
        if self._model_ms:
            # The time it really took may be longer: catching up after a pause is not in the price of a token.
            cost += max(self._model_ms, 1e3 * cycle.draft_s)
        self._purse_ms += len(cycle.emitted) * self.costs.plain_ms * (1.0 + ALLOWANCE) - cost
        self._trials_ms += len(cycle.emitted) * self.costs.plain_ms * TRIALS * ALLOWANCE
        fade = 1.0 - 1.0 / RATE_MEMORY
        self._late_tokens = self._late_tokens * fade + len(cycle.emitted)
        self._late_ms = self._late_ms * fade + cost
        self._last_n = n
        self._cycle += 1

    def _compare(self, tokens: Sequence[int]) -> None:
        """Judges drafts put aside by what the target emitted since."""
        for arm in self._arms:
            aside = arm.aside
            if aside is None:
                continue
            for position in range(aside.compared, min(len(aside.tokens), len(tokens) - aside.start)):
                kept = aside.tokens[position] == tokens[aside.start + position]
                arm.running.count(position, kept)
                aside.compared += 1
                if not kept or aside.compared == len(aside.tokens):
                    self._judge_trial(arm, kept)
                    arm.aside = None
                    break
            arm.expect()

    def _judge_trial(self, arm: _Arm, all_kept: bool) -> None:
        """A trial kept to its end may be followed by the next at once; after another one the pause doubles."""
        if arm.free:
            return
        price_ms = len(arm.aside.tokens) * arm.draft_ms
        longest_wait = ceil(price_ms / (TRIALS * ALLOWANCE * self.costs.plain_ms))
        arm.wait = 1 if all_kept else min(2 * arm.wait, longest_wait)
        arm.next_trial = self._cycle + arm.wait

    def _try_one(self, context: Context, own_k: Mapping[Drafter, int], drafts: dict[Drafter, Draft]) -> None:
        """Lets one model that is off draft, without verifying it, where that could pay and the purse allows."""
        for arm in self._arms:
            k = own_k.get(arm.drafter, 0)
            if arm.free or k == 0 or arm.aside is not None or self._cycle < arm.next_trial:
                continue
            hopeless = self._cycle_ms(arm, k) >= (k + 1) * self.costs.plain_ms
            if not hopeless and k * arm.draft_ms <= min(self._purse_ms, self._trials_ms):
                drafts[arm.drafter] = self._ask(arm, context, k)
                self._trials_ms -= self._model_ms
                return

    def _ask(self, arm: _Arm, context: Context, k: int) -> Draft:
        draft = arm.drafter.propose(context, Limits(k=k))
        self._model_ms = len(draft.tokens) * arm.draft_ms
        return draft

    def _worth(self, arm: _Arm | None, k: int) -> float:
        """Expected tokens of a cycle, less those that its time would bring at the rate of late.

        The most of this, and not of tokens per millisecond in this cycle alone, gives the most tokens
        per millisecond of a text (renewal reward; Dinkelbach 1967): where drafts are rare, a long one
        may pay that takes longer a token than a short one.
        """
        tokens = 1.0 if arm is None else arm.tokens[k]
        change_ms = 0.0 if k + 1 == self._last_n else self.costs.switch_ms / DWELL
        return tokens - (self._cycle_ms(arm, k) + change_ms) * self._late_tokens / self._late_ms

    def _cycle_ms(self, arm: _Arm | None, k: int) -> float:
        drafting = 0.0 if arm is None else k * arm.draft_ms
        return drafting + self.costs.verify_ms[k + 1] + self.costs.other_ms
