from __future__ import annotations

import pytest

from specnb import predict, theory
from specnb.records import Cycle, Run, Sampling

VERIFY_MS = {1: 10.0, 2: 11.0, 3: 12.0, 5: 15.0, 9: 30.0}


def drafted(length, kept, *, by_model=True):
    sure = (0.9,) * length if by_model and length else None
    return Cycle("d", 10, tuple(range(length)), min(length, kept + 1), kept, tuple(range(kept + 1)), sure)


def run_of(lengths_and_kept):
    """A run whose cycles had these (draft length, kept) pairs, drafted by a model."""
    cycles = tuple(drafted(length, kept) for length, kept in lengths_and_kept)
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
    lengths = [(4, 4), (4, 1), (4, 2), (4, 0)]
    always = predict.from_run(run_of(lengths), draft_ms=0.0, verify_ms=VERIFY_MS)
    half = predict.from_run(run_of([*lengths, *[(0, 0)] * 4]), draft_ms=0.0, verify_ms=VERIFY_MS)
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


def test_of_a_chain_only_the_model_s_drafts_cost():
    cycles = (drafted(4, 4), drafted(4, 1, by_model=False), drafted(4, 2, by_model=False), drafted(4, 0))
    run = Run((1,), cycles, "chain", 4, 0, 0.0, Sampling(), 0.0)
    prediction = predict.from_run(run, draft_ms=2.0, verify_ms=VERIFY_MS)
    assert prediction.speedup_by_k[4] == pytest.approx(theory.speedup(prediction.alpha, 4, 1.0, VERIFY_MS, 10.0))


def test_a_draft_may_cost_what_k_and_alpha_say():
    run = run_of([(4, 4), (4, 1), (4, 2), (4, 0)])
    asked = []

    def draft_ms(k, alpha):
        asked.append((k, alpha))
        return 3.0 + k  # a first pass that is dearer than the others

    prediction = predict.from_run(run, draft_ms=draft_ms, verify_ms=VERIFY_MS)
    assert asked == [(k, prediction.alpha) for k in (1, 2, 4, 8)]
    assert prediction.speedup_by_k[8] == pytest.approx(theory.speedup(prediction.alpha, 8, 11.0 / 8, VERIFY_MS, 10.0))


def test_nothing_drafted_predicts_nothing():
    prediction = predict.from_run(run_of([(0, 0), (0, 0)]), draft_ms=1.0, verify_ms=VERIFY_MS)
    assert prediction.alpha is None
    assert prediction.speedup_by_k == {}


def test_a_text_that_ends_inside_its_draft():
    ended = Cycle("d", 10, (1, 2, 3), 1, 1, (1,))
    run = Run((1,), (ended,), "d", 3, 0, 0.0, Sampling(), 0.0)
    assert predict.from_run(run, draft_ms=1.0, verify_ms=VERIFY_MS).alpha == 0.0
