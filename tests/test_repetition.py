from __future__ import annotations

import numpy as np
import pytest

from specnb.repetition import FEWEST_TOKENS, find_loop


@pytest.mark.parametrize("period", [1, 2, 7, 20])
def test_a_loop_is_found_where_it_is(period):
    text = [*range(100, 130), *(list(range(period)) * (60 // period + 1)), 999]
    loop = find_loop(text)
    assert loop.period == period
    assert loop.start == 30
    assert loop.stop == len(text) - 1
    assert loop.repeats >= 3


def test_copying_a_text_once_is_no_loop():
    passage = list(range(40))
    assert find_loop([*passage, *passage]) is None


def test_three_short_repeats_are_no_loop():
    assert find_loop([1, 2, 3] * 3 + list(range(10, 40))) is None


def test_just_long_enough():
    assert find_loop([5] * FEWEST_TOKENS).period == 1
    assert find_loop([5] * (FEWEST_TOKENS - 1)) is None


def test_ordinary_text_and_no_text():
    assert find_loop(np.random.default_rng(0).integers(0, 1000, 300).tolist()) is None
    assert find_loop([]) is None
