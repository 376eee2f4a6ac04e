"""Exact-match verification against its rule, written down a second time."""

from __future__ import annotations

from itertools import product

import pytest

from specnb.verify import Verdict, exact_match


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
        (5, Verdict(kept=1, tested=1, emitted=(5,))),  # first drafted position
        (6, Verdict(kept=2, tested=2, emitted=(5, 6))),  # in the middle
        (7, Verdict(kept=3, tested=3, emitted=(5, 6, 7))),  # last drafted position: no bonus after the end
        (8, Verdict(kept=3, tested=3, emitted=(5, 6, 7, 8))),  # the bonus token itself
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
    assert verdict == Verdict(kept=1, tested=2, emitted=(5, 9))


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("endings", [(), (2,), (1, 2)])
def test_every_draft_over_three_tokens(n, endings):
    """All 3^n drafts against all 3^(n+1) answers of the target."""
    for drafted, own in product(product(range(3), repeat=n), product(range(3), repeat=n + 1)):
        target = Target(own)
        verdict = exact_match(drafted, target.draw, lambda token: token in endings)
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
