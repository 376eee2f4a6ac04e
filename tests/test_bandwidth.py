"""The memory's ceiling: what is returned, and that all of the buffer is read."""

from __future__ import annotations

import numpy as np
import pytest

from specnb import bandwidth


def test_every_thread_count_up_to_the_most_is_tried_each_time():
    found = bandwidth.measure(3, buffer_mib=2, repeats=2)
    assert [threads for threads, _ in found.samples] == [1, 2, 3] * 2
    assert found.buffer_mib == 2.0
    assert found.ceiling_gb_per_s == max(rate for _, rate in found.samples) > 0


@pytest.mark.parametrize("count", [2, 10, 3 * bandwidth._PIECE, 5 * bandwidth._PIECE + 6])
def test_a_stream_reads_every_value(count):
    """Each value meets one of the other half: the sum of products is the sum over pairs."""
    values = np.arange(count, dtype=np.float32) % 7
    half = count // 2
    expected = float(values[:half].astype(np.float64) @ values[half:].astype(np.float64))
    assert bandwidth._stream(values) == pytest.approx(expected, rel=1e-3)
