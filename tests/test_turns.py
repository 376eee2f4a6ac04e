"""Texts in turns: who writes next, and what is left of a pass that something held up. No model, no clock."""

from __future__ import annotations

import pytest

from specnb import turns
from specnb.records import Cycle, Run, Sampling


def cycle(emitted: int, verify_s: float = 0.01) -> Cycle:
    """One that kept all it drafted."""
    drafted = tuple(range(emitted - 1))
    return Cycle("d", 10, drafted, len(drafted), len(drafted), tuple(range(emitted)), verify_s=verify_s)


def text(cycles, log=None, label=""):
    """A generation that emits these cycles and notes that it was its turn."""
    for each in cycles:
        if log is not None:
            log.append(label)
        yield each
    return Run((1,), tuple(cycles), "d", 3, 0, 0.0, Sampling(), 0.0)


def test_the_next_cycle_goes_to_the_shortest_text():
    log: list[str] = []
    timed = turns.race({"plain": text([cycle(1)] * 8, log, "plain"), "fast": text([cycle(4)] * 2, log, "fast")})
    assert [each.run.emitted for each in timed.values()] == [8, 8]
    assert list(timed) == ["plain", "fast"]
    second = [i for i, label in enumerate(log) if label == "fast"][1]
    assert log[:second].count("plain") in (4, 5), "four tokens each before either goes on"


def test_equals_are_drawn_by_lot():
    def order(seed):
        log: list[str] = []
        turns.race({label: text([cycle(1)] * 20, log, label) for label in "ab"}, seed=seed)
        return "".join(log)

    assert order(1) != order(2) and order(1) == order(1)
    pairs = {order(1)[i : i + 2] for i in range(0, 40, 2)}
    assert pairs == {"ab", "ba"}


def test_what_held_up_a_pass_is_left_out_wherever_it_hit():
    calm = [cycle(1)] * 9
    held_up = [*calm, cycle(1, verify_s=0.5)]
    timed = turns.race({"a": text([*calm, cycle(1)]), "b": text(held_up)})
    assert timed["a"].ms == pytest.approx(10.0) == timed["b"].ms
    assert (timed["a"].disturbed, timed["b"].disturbed) == (0, 1)


def test_a_longer_pass_over_more_rows_is_no_disturbance():
    timed = turns.race({"plain": text([cycle(1)] * 9), "fast": text([cycle(3, verify_s=0.02)] * 3)})
    assert timed["fast"].ms == pytest.approx(20.0 / 3) and not timed["fast"].disturbed


def test_noise_that_comes_and_goes_favours_no_text():
    """On a machine that is nearly half as slow again for a while, each text alone would meet more or less of that."""
    made = 0

    def writing():
        nonlocal made
        cycles = []
        for _ in range(60):
            made += 1
            cycles.append(cycle(1, verify_s=0.014 if made // 15 % 2 else 0.01))
            yield cycles[-1]
        return Run((1,), tuple(cycles), "d", 0, 0, 0.0, Sampling(), 0.0)

    for seed in range(20):
        timed = turns.race({"a": writing(), "b": writing()}, seed=seed)
        assert timed["a"].ms / timed["b"].ms == pytest.approx(1.0, abs=0.04)


def test_a_text_that_was_stopped_before_its_first_token_has_no_time():
    timed = turns.race({"a": text([]), "b": text([cycle(1)])})
    assert timed["a"].ms is None and timed["b"].ms == pytest.approx(10.0)
