"""How long a slider move in notebook 02 takes until the new picture is ready, Python's side.

median_ms, p95_ms: from setting a slider's value to the finished PNG, over moves of every slider.
"""

from __future__ import annotations

import random
from time import perf_counter

import numpy as np

from .. import store
from ..widgets import CycleCostExplorer


def run(*, quick: bool) -> dict[str, object]:
    explorer = CycleCostExplorer({"M5 Pro": store.load_m5_pro().curve})
    order = random.Random(0)
    moves = []
    for _ in range(150 if quick else 600):
        slider = order.choice((explorer.alpha, explorer.gamma, explorer.k))
        ticks = round((slider.max - slider.min) / slider.step)
        target = slider.min + slider.step * order.randint(0, ticks)
        before = explorer.picture.value
        start = perf_counter()
        slider.value = target
        if explorer.picture.value is not before:
            moves.append(1e3 * (perf_counter() - start))
    return {
        "median_ms": round(float(np.median(moves)), 2),
        "p95_ms": round(float(np.percentile(moves, 95)), 2),
        "moves": len(moves),
    }


def table(figures: dict[str, object]) -> str:
    return f"{figures['moves']} slider moves: median {figures['median_ms']} ms, 95th percentile {figures['p95_ms']} ms"
