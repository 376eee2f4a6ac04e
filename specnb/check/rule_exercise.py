"""Exercises whose answer is a rule: a function that says which tokens are drafted or emitted.

``TokensExercise`` compares tokens; ``DistributionExercise`` asks chance: it calls the answer often
and tests what came out with chi-square, for a rule that draws has no single right token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chisquare

from ..verify import acceptance_of_match, acceptance_of_rejection, drawn
from .exercise import Exercise, Unreadable, Verdict, as_number, diagnosed
from .function_exercise import Outcome, outcomes_within

TIME_LIMIT_S = 10.0
IMPOSSIBLE, ORDINARY = 1e-6, 1e-3
"""p-values: below the first chance is no excuse, above the second there is nothing to explain."""

Distribution = tuple[float, ...]
TokensCase = tuple[tuple[int, ...] | int, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """diagnosis: why it is wrong. emits: what the mistake leads to, called as the answer or the truth is."""

    emits: Callable[..., object]
    diagnosis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensExercise(Exercise):
    """The answer is a function of the named arguments, numbers and lists of tokens, that returns a list of tokens.

    cases: ordinary arguments. edges: legal extremes. truth and each mistake take one case. edges_nudge: said
    when only the edges fail.
    """

    truth: Callable[..., Sequence[int]]
    arguments: tuple[str, ...]
    cases: tuple[TokensCase, ...]
    edges: tuple[TokensCase, ...] = ()
    wrong: tuple[Mistake, ...]
    edges_nudge: str = ""

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        if not callable(answer):
            return self.not_it(f"that is of type {type(answer).__name__}; give the function itself, without brackets.")
        everything = self.cases + self.edges
        outcomes = outcomes_within(answer, [_copied(case) for case in everything], TIME_LIMIT_S, read=_as_tokens)
        if early := _no_verdict_yet(self, outcomes, len(everything)):
            return early
        failed = [
            (case, outcome)
            for case, outcome in zip(everything, outcomes, strict=True)
            if outcome.value != tuple(self.truth(*case))
        ]
        if not failed:
            return self.right(f"all {len(everything)} cases agree")
        case, first = failed[0]
        happened = f"{self._at(case)} {first.problem or f'it returns {list(first.value)}.'}"
        if case in self.edges:
            return Verdict("diagnosed", f"not it: all is well elsewhere, but {happened} {self.edges_nudge}")
        if mistakes := [each for each in self.wrong if self._made(each, outcomes)]:
            return diagnosed(mistakes)
        return self.not_it(happened if first.problem else f"{happened} {self.nudge}")

    def _made(self, mistake: Mistake, outcomes: Sequence[Outcome]) -> bool:
        """Whether every ordinary case has what the mistake leads to."""
        return all(
            outcome.value == tuple(mistake.emits(*case)) for outcome, case in zip(outcomes, self.cases, strict=False)
        )

    def _at(self, case: TokensCase) -> str:
        shown = [
            f"{name} = {list(value) if isinstance(value, tuple) else value}"
            for name, value in zip(self.arguments, case, strict=True)
        ]
        return "for " + " and ".join(shown)


def _copied(case: TokensCase) -> tuple[list[int] | int, ...]:
    """The case with lists, which the answer may change."""
    return tuple(list(value) if isinstance(value, tuple) else value for value in case)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionExercise(Exercise):
    """The answer is a function of (token, p_target, p_draft, random) that returns the token emitted in its place.

    pairs: (p_target, p_draft). Each is called ``calls`` times with tokens drawn from p_draft; what is
    emitted has to follow p_target, and to be the drafted token as often as it can be. wrong: ``emits``
    takes (p_target, p_draft) and gives the distribution that the mistake leads to.
    """

    pairs: tuple[tuple[Distribution, Distribution], ...]
    calls: int
    wrong: tuple[Mistake, ...]
    as_seldom_as_match: str

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        if not callable(answer):
            return self.not_it(f"that is of type {type(answer).__name__}; give the function itself, without brackets.")
        random = np.random.default_rng(7)
        cases = [
            (drawn(np.array(p_draft), random), np.array(p_target), np.array(p_draft), random)
            for p_target, p_draft in self.pairs
            for _ in range(self.calls)
        ]
        outcomes = outcomes_within(answer, cases, TIME_LIMIT_S)
        if early := _no_verdict_yet(self, outcomes, len(cases)):
            return early
        if problem := next((outcome.problem for outcome in outcomes if outcome.value is None), None):
            return self.not_it(problem)
        of_pair = [outcomes[i * self.calls :][: self.calls] for i in range(len(self.pairs))]
        if alien := next((o.value for o in outcomes if o.value not in range(len(o.case[1]))), None):
            return self.not_it(f"it returns {alien:g}, which is no token of the {len(self.pairs[0][0])} there are.")
        p_values = [_p_value(found, p_target) for found, (p_target, _) in zip(of_pair, self.pairs, strict=True)]
        if min(p_values) < IMPOSSIBLE:
            if mistakes := [each for each in self.wrong if self._made(each, of_pair)]:
                return diagnosed(mistakes)
            return self.not_it(f"the emitted tokens do not follow p_target (p-value {min(p_values):.1g}). {self.nudge}")
        if not all(self._keeps_enough(found, *pair) for found, pair in zip(of_pair, self.pairs, strict=True)):
            return Verdict("diagnosed", f"not it: {self.as_seldom_as_match}")
        return self.right(f"p-value {min(p_values):.2g} over {len(cases)} draws, and no refusal too many")

    def _made(self, mistake: Mistake, of_pair: Sequence[Sequence[Outcome]]) -> bool:
        return all(
            _p_value(found, mistake.emits(np.array(p_target), np.array(p_draft))) > ORDINARY
            for found, (p_target, p_draft) in zip(of_pair, self.pairs, strict=True)
        )

    @staticmethod
    def _keeps_enough(found: Sequence[Outcome], p_target: Distribution, p_draft: Distribution) -> bool:
        kept = np.mean([outcome.value == outcome.case[0] for outcome in found])
        both = np.array(p_target), np.array(p_draft)
        return bool(kept > (acceptance_of_rejection(*both) + acceptance_of_match(*both)) / 2)


def _p_value(found: Sequence[Outcome], probabilities: Sequence[float]) -> float:
    """Pearson's chi-square test of emitted tokens against a distribution; 0 where something impossible was emitted."""
    expected = np.asarray(probabilities) * len(found)
    counts = np.bincount([int(outcome.value) for outcome in found], minlength=len(expected))
    possible = expected > 0
    if counts[~possible].any():
        return 0.0
    return float(chisquare(counts[possible], expected[possible]).pvalue) if possible.sum() > 1 else 1.0


def _no_verdict_yet(exercise: Exercise, outcomes: Sequence[Outcome], wanted: int) -> Verdict | None:
    """What is said of a function that nobody has written yet, or that does not end; None if it answers."""
    if outcomes and all(outcome.blank for outcome in outcomes):
        return Verdict("unanswered", f"{exercise.unanswered().message} So far {outcomes[0].problem}")
    if len(outcomes) < wanted:
        return exercise.not_it(f"it was still busy when {TIME_LIMIT_S:g} s were over. Does every loop in it end?")
    return None


def _as_tokens(answer: object) -> tuple[int, ...]:
    """The answer as a tuple of whole numbers, or Unreadable."""
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence | np.ndarray):
        raise Unreadable(f"that is of type {type(answer).__name__}; return a list of tokens.")
    numbers = [as_number(each) for each in answer]
    if any(number != int(number) for number in numbers):
        raise Unreadable("a token is a whole number.")
    return tuple(map(int, numbers))
