from __future__ import annotations

import pytest

from specnb import predict, theory
from specnb.records import Cycle, Run, Sampling

VERIFY_MS = {1: 10.0, 2: 11.0, 3: 12.0, 5: 15.0, 9: 30.0}


def run_of(lengths_and_kept):
    """A run whose cycles had these (draft length, kept) pairs."""
    cycles = tuple(
        Cycle("d", 10, tuple(range(length)), min(length, kept + 1), kept, tuple(range(kept + 1)))
        for length, kept in lengths_and_kept
    )
    return Run((1,), cycles, "d", 4, 0, 0.0, Sampling(), 0.0)


def test_with_a_draft_in_every_cycle_it_is_the_ledger():
    run = run_of([(4, 4), (4, 1), (4, 2), (4, 0)])
    prediction = predict.from_run(run, draft_ms=2.0, verify_ms=VERIFY_MS)
    alpha = theory.solve_alpha(run.tokens_per_cycle, 4)
    assert prediction.alpha == pytest.approx(alpha)
    assert prediction.drafted_share == 1.0
    assert list(prediction.speedup_by_k) == [1, 2, 4, 8]
    for k, speedup in prediction.speedup_by_k.items():
        assert speedup == pytest.approx(theory.speedup(alpha, k, 2.0, VERIFY_MS, 10.0))


def test_cycles_without_a_draft_are_plain_ones():
    drafted = [(4, 4), (4, 1), (4, 2), (4, 0)]
    always = predict.from_run(run_of(drafted), draft_ms=0.0, verify_ms=VERIFY_MS)
    half = predict.from_run(run_of([*drafted, *[(0, 0)] * 4]), draft_ms=0.0, verify_ms=VERIFY_MS)
    assert half.alpha == pytest.approx(always.alpha)
    assert half.drafted_share == 0.5
    tokens = (theory.expected_tokens(always.alpha, 4) + 1) / 2
    assert half.speedup_by_k[4] == pytest.approx(tokens * 10.0 / ((15.0 + 10.0) / 2))


def test_time_beside_the_passes_dampens_both_sides():
    run = run_of([(4, 4), (4, 4)])
    without = predict.from_run(run, draft_ms=0.0, verify_ms=VERIFY_MS)
    slow = predict.from_run(run, draft_ms=0.0, verify_ms=VERIFY_MS, other_ms=1000.0)
    # With passes that cost next to nothing beside the rest, only the number of cycles counts.
    assert slow.speedup_by_k[4] == pytest.approx(5.0, rel=0.01)
    assert without.speedup_by_k[4] == pytest.approx(5 * 10.0 / 15.0)


def test_nothing_drafted_predicts_nothing():
    prediction = predict.from_run(run_of([(0, 0), (0, 0)]), draft_ms=1.0, verify_ms=VERIFY_MS)
    assert prediction.alpha is None
    assert prediction.speedup_by_k == {}


def test_a_text_that_ends_inside_its_draft():
    ended = Cycle("d", 10, (1, 2, 3), 1, 1, (1,))
    run = Run((1,), (ended,), "d", 3, 0, 0.0, Sampling(), 0.0)
    assert predict.from_run(run, draft_ms=1.0, verify_ms=VERIFY_MS).alpha == 0.0
