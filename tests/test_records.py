"""Records: every rate by its definition, and the values that are refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from specnb.records import (
    CostCurve,
    Cycle,
    DraftCost,
    LearningCurve,
    Limits,
    Machine,
    Penalties,
    PublishedBandwidth,
    PublishedCliff,
    PublishedCounts,
    Run,
    Sampling,
    TrainingStage,
)


def cycle(drafted: int, kept: int, *, tested: int | None = None, ended: bool = False, **seconds: float) -> Cycle:
    """A cycle by its counts; tokens are 100, 101, ... where kept and 200 where the target's own."""
    return Cycle(
        drafter="draft_model",
        context_length=10,
        drafted=tuple(range(100, 100 + drafted)),
        tested=min(kept + 1, drafted) if tested is None else tested,
        kept=kept,
        emitted=tuple(range(100, 100 + kept)) + (() if ended else (200,)),
        **seconds,
    )


def run(*cycles: Cycle, prefill_s: float = 5.0) -> Run:
    return Run(
        prompt_tokens=(1, 2, 3),
        cycles=cycles,
        drafter="draft_model",
        k=4,
        n_min=0,
        p_min=0.0,
        sampling=Sampling(),
        prefill_s=prefill_s,
    )


def curve(*samples: tuple[int, float]) -> CostCurve:
    return CostCurve("here", samples, context_length=0, threads=2, machine=Machine("a machine"))


# --- cycles and runs --------------------------------------------------------------------------


def test_a_cycle_counts_its_rows_its_refused_tokens_and_its_seconds():
    c = cycle(4, 2, draft_s=0.5, verify_s=0.25, sampling_s=0.125, other_s=0.0625)
    assert c.n_rows == 5
    assert c.refused == (102, 103)
    assert c.seconds == 0.9375
    assert cycle(0, 0).n_rows == 1
    assert cycle(0, 0).refused == ()
    assert cycle(3, 3).refused == ()


def test_a_run_adds_its_cycles_up():
    r = run(cycle(4, 4), cycle(0, 0), cycle(4, 1), cycle(2, 0), cycle(3, 2, tested=2, ended=True))
    assert r.tokens == (100, 101, 102, 103, 200, 200, 100, 200, 200, 100, 101)
    assert r.emitted == len(r.tokens) == 11
    assert (r.drafted, r.tested, r.kept) == (13, 4 + 0 + 2 + 1 + 2, 7)
    assert r.target_passes == 5
    assert r.draft_lengths == (4, 0, 4, 2, 3)
    assert r.acceptance_rate == 7 / 13
    assert r.alpha_tested == 7 / 9
    assert r.tokens_per_cycle == 11 / 5
    assert r.mean_draft_length == 13 / 5


def test_rates_that_nothing_defines_are_none():
    empty = run()
    assert (empty.emitted, empty.tokens, empty.decode_s, empty.draft_lengths) == (0, (), 0, ())
    assert empty.acceptance_rate is None
    assert empty.alpha_tested is None
    assert empty.tokens_per_cycle is None
    assert empty.mean_draft_length is None
    assert empty.tokens_per_second is None
    assert empty.kept_by_position() == ()


def test_plain_decoding_has_no_acceptance_rate_but_one_token_per_cycle():
    plain = run(cycle(0, 0), cycle(0, 0))
    assert plain.acceptance_rate is None
    assert plain.alpha_tested is None
    assert plain.tokens_per_cycle == 1.0
    assert plain.mean_draft_length == 0.0
    assert plain.kept_by_position() == ()


def test_an_acceptance_rate_of_zero_is_not_none():
    assert run(cycle(3, 0)).acceptance_rate == 0.0
    assert run(cycle(3, 0)).alpha_tested == 0.0


def test_tokens_per_second_leaves_the_prompt_out():
    r = run(cycle(1, 1, verify_s=0.25), cycle(1, 0, draft_s=0.25, sampling_s=0.125, other_s=0.125), prefill_s=100.0)
    assert r.decode_s == 0.75
    assert r.tokens_per_second == 3 / 0.75


def test_kept_by_position_counts_only_positions_that_were_reached():
    r = run(cycle(4, 4), cycle(4, 1), cycle(0, 0), cycle(2, 0), cycle(3, 2, tested=2, ended=True))
    # Position 3 of the last cycle was drafted but never tested: the text had ended.
    assert r.kept_by_position() == ((3, 4), (2, 3), (1, 1), (1, 1))
    assert sum(kept for kept, _ in r.kept_by_position()) == r.kept
    assert sum(tested for _, tested in r.kept_by_position()) == r.tested


def test_records_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        cycle(1, 1).kept = 0  # type: ignore[misc]


# --- limits and sampling ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "room", "longest"), [(4, None, 4), (4, 9, 4), (4, 4, 4), (4, 3, 3), (4, 0, 0), (4, -2, 0), (0, 9, 0)]
)
def test_the_longest_draft_is_k_or_the_room(k, room, longest):
    assert Limits(k=k, room=room).longest == longest


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"k": -1}, "^k is .* cannot be -1"),
        ({"k": 1, "n_min": -3}, "^n_min is .* cannot be -3"),
        ({"k": 1, "p_min": 1.25}, "^p_min is .* cannot be 1.25"),
        ({"k": 1, "p_min": -0.5}, "^p_min is .* cannot be -0.5"),
        ({"k": 1, "p_min": float("nan")}, "^p_min is .* cannot be nan"),
        ({"k": 2.0}, "^k counts tokens.* cannot be 2.0"),
        ({"k": 2, "n_min": 1.5}, "^n_min counts tokens.* cannot be 1.5"),
    ],
)
def test_impossible_limits_are_refused_by_name(values, said):
    with pytest.raises(ValueError, match=said):
        Limits(**values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"temperature": -0.1}, "temperature .* got -0.1"),
        ({"temperature": float("nan")}, "temperature .* got nan"),
        ({"temperature": float("inf")}, "temperature .* got inf"),
        ({"top_k": -1}, "top_k .* got -1"),
        ({"top_p": 1.5}, "top_p .* got 1.5"),
        ({"min_p": -0.5}, "min_p .* got -0.5"),
        ({"seed": -1}, "seed .* got -1.* another seed each time"),
        ({"seed": 2**32 - 1}, "seed .* got 4294967295"),
    ],
)
def test_impossible_sampling_is_refused_by_name(values, said):
    with pytest.raises(ValueError, match=said):
        Sampling(**values)


def test_temperature_zero_is_greedy():
    assert Sampling().greedy
    assert not Sampling(temperature=0.01).greedy


# --- cost curves ------------------------------------------------------------------------------


def test_a_cost_curve_takes_the_median_of_every_n_in_ascending_order():
    c = curve((4, 9.0), (1, 3.0), (4, 7.0), (1, 1.0), (4, 8.0), (2, 5.0), (1, 100.0))
    assert c.ns == (1, 2, 4)
    assert list(c.median_ms.items()) == [(1, 3.0), (2, 5.0), (4, 8.0)]
    # An even number of samples: the mean of the middle two.
    assert curve((1, 2.0), (1, 4.0)).median_ms == {1: 3.0}


def test_a_cost_curve_keeps_the_order_in_which_samples_were_measured():
    assert curve((4, 9.0), (1, 3.0), (4, 7.0), (4, 8.0)).samples_ms(4) == (9.0, 7.0, 8.0)


def test_nothing_is_filled_in_between_measured_ns():
    c = curve((1, 1.0), (3, 3.0))
    assert 2 not in c.median_ms
    with pytest.raises(KeyError, match="N=2 was not measured in 'here'; measured: 1, 3"):
        c.samples_ms(2)


def test_a_cost_curve_without_samples_is_refused():
    with pytest.raises(ValueError, match="'here' holds no samples"):
        curve()


@pytest.mark.parametrize("sample", [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -1.0), (1, float("inf")), (1, float("nan"))])
def test_an_impossible_sample_is_refused_with_its_values(sample):
    with pytest.raises(ValueError, match=f"impossible sample: N={sample[0]}, {sample[1]} ms"):
        curve((1, 1.0), sample)


def test_draft_cost_is_the_median_of_its_samples():
    assert DraftCost("here", (3.0, 1.0, 50.0), k=4, context_length=128).ms_per_token == 3.0


# --- published measurements -------------------------------------------------------------------


def test_published_counts_have_the_same_rates_as_our_runs():
    counts = PublishedCounts("a run", "a/repository#1", drafted=20, kept=5, cycles=10)
    assert counts.acceptance_rate == 0.25
    assert counts.tokens_per_cycle == 1.5
    assert PublishedCounts("nothing drafted", "a/repository#1", drafted=0, kept=0).acceptance_rate is None
    assert PublishedCounts("cycles not stated", "a/repository#1", drafted=20, kept=5).tokens_per_cycle is None


def test_a_cliff_is_the_ratio_of_its_sides():
    assert PublishedCliff("a model", ms_8=40.0, ms_9=70.0).ratio == 1.75


def test_bandwidth_is_weights_over_time_in_decimal_gigabytes():
    # 1000 MiB in 10 ms: 1,048,576,000 bytes / 0.01 s.
    assert PublishedBandwidth("a model", 28, weights_mib=1000.0, ms_per_token=10.0).gb_per_s == pytest.approx(104.8576)


# --- penalties and comparisons ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"repeat": 0.0}, "repeat must be above 0 and finite"),
        ({"repeat": float("inf")}, "repeat must be above 0 and finite"),
        ({"repeat": float("nan")}, "repeat must be above 0 and finite"),
        ({"frequency": float("nan")}, "frequency must be a finite number"),
        ({"presence": float("-inf")}, "presence must be a finite number"),
        ({"last_n": 0}, "last_n counts tokens, 1 or more; got 0"),
    ],
)
def test_impossible_penalties_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Penalties(**values)


def test_penalties_leave_sampling_greedy_or_not():
    assert Sampling(penalties=Penalties()).greedy
    assert not Sampling(temperature=0.5, penalties=Penalties()).greedy


@pytest.mark.parametrize("steps", [(400, 100), (100, 100), (0, 100)])
def test_stages_of_training_come_one_after_the_other(steps):
    with pytest.raises(ValueError, match="each after the last"):
        LearningCurve("eagle", tuple(TrainingStage(each, 8, (0.3,)) for each in steps))
