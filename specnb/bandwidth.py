"""The memory's ceiling: how fast this machine streams bytes that it does not have in a cache.

A pass over one token reads every weight once and does little with it, so no model can decode faster
than its bytes divided by this rate. It is measured with dot products, which read two arrays in
order and keep nothing, on several threads at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import threadpoolctl

from . import machine
from .measure import CONTENDED_CORES
from .records import MemoryBandwidth

BUFFER_MIB = 512
"""Far above the last cache of a desktop processor (2026: up to 128 MiB), so that hardly a line is found there again."""

SPANS = 8

_PIECE = 1 << 20
"""Values in one dot product: long enough to hide the call, short enough that every thread keeps working."""


def measure(threads: int | None = None, *, buffer_mib: int = BUFFER_MIB, repeats: int = 5) -> MemoryBandwidth:
    """Reads the buffer ``repeats`` times with 1, 2, 4, ... threads, up to ``threads`` (the physical cores).

    Each time whole, so that starting the threads is nothing beside the reading, and in eighths, of which one is over
    before another program takes a core away.
    """
    most = threads or machine.usable_cores()
    counts = sorted({*(2**i for i in range(most.bit_length()) if 2**i < most), most})
    values = np.ones(buffer_mib * 2**18, np.float32)  # ones and not zeros: untouched zero pages are all the same page
    spans = [values, *np.array_split(values, SPANS)]
    samples, watch = [], machine.CoreWatch()
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):  # the threads are ours, not NumPy's
        for _ in range(repeats):
            samples += [(count, _fastest(spans, count)) for count in counts]
    return MemoryBandwidth(tuple(samples), float(buffer_mib), watch.busy_elsewhere() > CONTENDED_CORES)


def _fastest(spans: Sequence[np.ndarray], threads: int) -> float:
    """GB/s of the fastest of the spans, each read once in order and shared out among threads."""
    fastest = 0.0
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(_stream, [spans[0][:_PIECE]] * threads))  # the threads exist before the clock starts
        for span in spans:
            shares = np.array_split(span, threads)
            start = perf_counter()
            list(pool.map(_stream, shares))
            fastest = max(fastest, span.nbytes / 1e9 / (perf_counter() - start))
    return fastest


def _stream(values: np.ndarray) -> float:
    half = len(values) // 2
    first, second = values[:half], values[half : 2 * half]
    return sum(float(first[i : i + _PIECE] @ second[i : i + _PIECE]) for i in range(0, half, _PIECE))
