"""Verification: exact match against its rule, written down a second time; rejection sampling against chance."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from specnb.verify import (
    Verdict,
    acceptance_of_greedy,
    acceptance_of_match,
    acceptance_of_rejection,
    drawn,
    exact_match,
    rejection_sampling,
    residual,
    softmax,
)


def noting(endings: Collection[int]) -> tuple[Callable[[int], bool], list[int]]:
    """(whether a token is an ending, the tokens it was asked about)."""
    asked: list[int] = []
    return (lambda token: asked.append(token) or token in endings), asked


class Target:
    """Answers row i with the i-th of the given tokens and notes which rows were asked for."""

    def __init__(self, own: tuple[int, ...]) -> None:
        self.own = own
        self.asked: list[int] = []

    def draw(self, row: int) -> int:
        self.asked.append(row)
        return self.own[row]


@pytest.mark.parametrize(
    ("drafted", "own", "expected"),
    [
        ((), (5,), Verdict(kept=0, tested=0, emitted=(5,))),
        ((7,), (5, 6), Verdict(kept=0, tested=1, emitted=(5,))),
        ((5,), (5, 6), Verdict(kept=1, tested=1, emitted=(5, 6))),
        ((5, 6, 7), (5, 6, 7, 8), Verdict(kept=3, tested=3, emitted=(5, 6, 7, 8))),
        ((5, 0, 7), (5, 6, 7, 8), Verdict(kept=1, tested=2, emitted=(5, 6))),
        # Right again after a wrong one: that row's context was the wrong one, so it is not looked at.
        ((0, 6, 7), (5, 6, 7, 8), Verdict(kept=0, tested=1, emitted=(5,))),
    ],
)
def test_hand_worked_verdicts(drafted, own, expected):
    assert exact_match(drafted, Target(own).draw) == expected


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (5, Verdict(kept=1, tested=1, emitted=(5,), ended=True)),  # first drafted position
        (6, Verdict(kept=2, tested=2, emitted=(5, 6), ended=True)),  # in the middle
        (7, Verdict(kept=3, tested=3, emitted=(5, 6, 7), ended=True)),  # last drafted position: no bonus after the end
        (8, Verdict(kept=3, tested=3, emitted=(5, 6, 7, 8), ended=True)),  # the bonus token itself
        (9, Verdict(kept=3, tested=3, emitted=(5, 6, 7, 8))),  # nowhere
    ],
)
def test_nothing_is_emitted_after_the_end_of_the_text(ending, expected):
    target = Target((5, 6, 7, 8))
    assert exact_match((5, 6, 7), target.draw, lambda token: token == ending) == expected
    assert target.asked == list(range(len(expected.emitted)))


def test_a_drafted_ending_that_the_target_refuses_ends_nothing():
    # The ending is the drafter's opinion only; the target's own token, 5, goes on.
    verdict = exact_match((9, 6), Target((5, 6, 7)).draw, lambda token: token == 9)
    assert verdict == Verdict(kept=0, tested=1, emitted=(5,))


def test_a_refusal_by_an_ending_emits_the_ending():
    verdict = exact_match((5, 6), Target((5, 9, 7)).draw, lambda token: token == 9)
    assert verdict == Verdict(kept=1, tested=2, emitted=(5, 9), ended=True)


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("endings", [(), (2,), (1, 2)])
def test_every_draft_over_three_tokens(n, endings):
    """All 3^n drafts against all 3^(n+1) answers of the target."""
    for drafted, own in product(product(range(3), repeat=n), product(range(3), repeat=n + 1)):
        target = Target(own)
        ends_text, asked = noting(endings)
        verdict = exact_match(drafted, target.draw, ends_text)
        agreeing = next((i for i in range(n) if drafted[i] != own[i]), n)
        ended = next((i for i in range(n + 1) if own[i] in endings), n)
        emitted = min(agreeing, ended) + 1
        # A kept ending is the last emitted token and was drafted; otherwise the last one is the target's own.
        kept = emitted if ended < agreeing else agreeing
        assert verdict.emitted == own[:emitted]
        assert verdict.kept == kept
        # Every emitted token was compared with a drafted one, but for the bonus.
        assert verdict.tested == min(emitted, n)
        # One draw per emitted token, in order: a sampler's random state moves on with the text alone.
        assert target.asked == list(range(emitted))
        # Endings are asked for once a token, too, and say whether it was the last one.
        assert tuple(asked) == verdict.emitted
        assert verdict.ended == (verdict.emitted[-1] in endings)


# --- rejection sampling -----------------------------------------------------------------------

P_TARGET = np.array([[0.50, 0.30, 0.15, 0.05, 0.00], [0.10, 0.20, 0.30, 0.00, 0.40], [0.25, 0.25, 0.20, 0.20, 0.10]])
P_DRAFT = np.array([[0.20, 0.40, 0.25, 0.05, 0.10], [0.10, 0.10, 0.60, 0.10, 0.10]])
CYCLES = 10_000
ALMOST_NEVER = 1e-4
"""A right rule gives a p-value below this once in ten thousand seeds; the seeds here are fixed."""


def by_match(drafted, p_draft, p_target, random):
    return exact_match(drafted, lambda row: drawn(p_target[row], random))


def if_likely(drafted, p_draft, p_target, random):
    """Wrong on purpose: a drafted token that the target finds likely enough is kept without a draw."""
    for row, token in enumerate(drafted):
        if p_target[row][token] < 0.2:
            return Verdict(row, row + 1, (*drafted[:row], drawn(p_target[row], random)))
    return Verdict(len(drafted), len(drafted), (*drafted, drawn(p_target[-1], random)))


def without_residual(drafted, p_draft, p_target, random):
    """Wrong on purpose: after a refusal it draws from the target's whole distribution."""
    for row, token in enumerate(drafted):
        if random.random() * p_draft[row][token] >= p_target[row][token]:
            return Verdict(row, row + 1, (*drafted[:row], drawn(p_target[row], random)))
    return Verdict(len(drafted), len(drafted), (*drafted, drawn(p_target[-1], random)))


@cache
def verdicts(rule: Callable[..., Verdict], *, greedy: bool) -> list[Verdict]:
    """Cycles of one rule; rows do not depend on earlier tokens, so each position's law is P_TARGET's row."""
    random = np.random.default_rng(0)
    p_draft = one_hot(P_DRAFT) if greedy else P_DRAFT
    return [rule(tuple(drawn(row, random) for row in p_draft), p_draft, P_TARGET, random) for _ in range(CYCLES)]


def p_value(found: list[Verdict], position: int) -> float:
    """Of Pearson's chi-square test that the tokens emitted at a position follow the target."""
    counts = np.bincount([v.emitted[position] for v in found if len(v.emitted) > position], minlength=5)
    possible = P_TARGET[position] > 0
    if counts[~possible].any():
        return 0.0
    return chisquare(counts[possible], counts.sum() * P_TARGET[position][possible]).pvalue


def one_hot(p_draft):
    return np.eye(5)[p_draft.argmax(axis=1)]


@pytest.mark.parametrize("greedy", [False, True], ids=["draft drawn", "draft greedy"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_both_rules_leave_the_distribution_as_it_is_and_wrong_ones_do_not(greedy, position):
    for rule in (by_match, rejection_sampling):
        assert p_value(verdicts(rule, greedy=greedy), position) > ALMOST_NEVER, rule
    if position < 2:  # the bonus is drawn alike by all
        for rule in (if_likely, without_residual):
            assert p_value(verdicts(rule, greedy=greedy), position) < ALMOST_NEVER, rule


@pytest.mark.parametrize("greedy", [False, True])
def test_rules_keep_as_often_as_their_sums_say(greedy):
    p_draft = one_hot(P_DRAFT) if greedy else P_DRAFT
    chances = {
        by_match: acceptance_of_greedy(P_TARGET[:2], P_DRAFT) if greedy else acceptance_of_match(P_TARGET[:2], P_DRAFT),
        rejection_sampling: acceptance_of_rejection(P_TARGET[:2], p_draft),
    }
    for rule, chance in chances.items():
        found = verdicts(rule, greedy=greedy)
        assert np.mean([v.kept > 0 for v in found]) == pytest.approx(chance[0], abs=0.025)
        reached = [v for v in found if v.kept > 0]
        assert np.mean([v.kept > 1 for v in reached]) == pytest.approx(chance[1], abs=0.045)


def test_acceptance_by_hand():
    p_target, p_draft = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    assert acceptance_of_rejection(p_target, p_draft) == pytest.approx(0.2 + 0.3 + 0.2)
    assert acceptance_of_match(p_target, p_draft) == pytest.approx(0.1 + 0.15 + 0.06)
    assert acceptance_of_greedy(p_target, p_draft) == pytest.approx(0.3)


def test_for_a_greedy_draft_both_rules_have_the_same_chance_and_rejection_is_never_the_worse_one():
    random = np.random.default_rng(3)
    p_target, p_draft = (softmax(3 * random.normal(size=(200, 40)), 1.0) for _ in range(2))
    assert (acceptance_of_match(p_target, p_draft) <= acceptance_of_rejection(p_target, p_draft) + 1e-12).all()
    on_one = np.eye(40)[p_draft.argmax(axis=-1)]
    for rule in (acceptance_of_match, acceptance_of_rejection):
        assert rule(p_target, on_one) == pytest.approx(acceptance_of_greedy(p_target, p_draft))
    assert acceptance_of_rejection(p_target, p_target) == pytest.approx(1.0)


def test_a_draft_that_equals_the_target_is_kept_whole():
    p_target = P_TARGET
    for seed in range(200):
        random = np.random.default_rng(seed)
        drafted = tuple(drawn(row, random) for row in p_target[:2])
        verdict = rejection_sampling(drafted, p_target[:2], p_target, random)
        assert verdict.kept == 2 and verdict.emitted[:2] == drafted and len(verdict.emitted) == 3


def test_a_refused_token_is_never_emitted_in_its_place_when_the_target_wants_less_of_it():
    left = residual(P_TARGET[0], P_DRAFT[0])
    assert left == pytest.approx(np.array([0.3, 0, 0, 0, 0]) / 0.3)
    assert residual(P_TARGET[0], P_TARGET[0]) == pytest.approx(P_TARGET[0])


@pytest.mark.parametrize("ending", range(5))
def test_rejection_sampling_emits_nothing_after_the_end(ending):
    for seed in range(200):
        random = np.random.default_rng(seed)
        drafted = tuple(drawn(row, random) for row in P_DRAFT)
        ends_text, asked = noting((ending,))
        verdict = rejection_sampling(drafted, P_DRAFT, P_TARGET, random, ends_text)
        assert tuple(asked) == verdict.emitted and 1 <= len(verdict.emitted) <= 3
        assert verdict.ended == (verdict.emitted[-1] == ending) and ending not in verdict.emitted[:-1]
        assert verdict.emitted[: verdict.kept] == drafted[: verdict.kept]
        assert verdict.kept <= verdict.tested <= 2


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="2 drafted tokens need as many rows of p_draft and one more"):
        rejection_sampling((0, 1), P_DRAFT, P_TARGET[:2], np.random.default_rng(0))


def test_softmax_at_zero_is_the_best_token_and_hot_is_flat():
    logits = np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 0.0]])
    assert softmax(logits, 0.0).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert softmax(logits, 1.0).sum(axis=1) == pytest.approx([1, 1])
    assert softmax(logits, 1e6) == pytest.approx(1 / 3, abs=1e-5)
