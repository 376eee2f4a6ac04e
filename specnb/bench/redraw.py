"""How long a slider move takes until the new picture is ready, Python's side: notebook 02's explorer, 04's stepper.

median_ms, p95_ms: from setting a slider's value to the finished PNG, over moves of every slider of the explorer;
stepper_median_ms, stepper_p95_ms: over steps of a recorded run, from any to any other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from time import perf_counter

import ipywidgets
import numpy as np

from .. import store
from ..records import RunSet, TokenTexts
from ..widgets import CycleCostExplorer, RoundStepper

RUNS, TEXTS = store.DATA / "runs" / "04-draft-model.json", store.DATA / "runs" / "04-texts.json"


def run(*, quick: bool) -> dict[str, object]:
    moves = 40 if quick else 600
    explorer = CycleCostExplorer({"M5 Pro": store.load_m5_pro().curve})
    sliders = (explorer.alpha, explorer.gamma, explorer.k)
    of_explorer = list(_moves(sliders, explorer.picture, moves))
    stepper = RoundStepper({"a run": store.load(RUNS, RunSet).runs[-1]}, store.load(TEXTS, TokenTexts))
    of_stepper = list(_moves((stepper.step,), stepper.picture, moves))
    return {
        "median_ms": round(float(np.median(of_explorer)), 2),
        "p95_ms": round(float(np.percentile(of_explorer, 95)), 2),
        "moves": len(of_explorer),
        "stepper_median_ms": round(float(np.median(of_stepper)), 2),
        "stepper_p95_ms": round(float(np.percentile(of_stepper, 95)), 2),
        "steps": len(of_stepper),
    }


def _moves(
    sliders: Sequence[ipywidgets.FloatSlider | ipywidgets.IntSlider], picture: ipywidgets.Image, count: int
) -> Iterator[float]:
    """Milliseconds of each move that made a new picture."""
    order = random.Random(0)
    for _ in range(count):
        slider = order.choice(sliders)
        target = slider.min + slider.step * order.randint(0, round((slider.max - slider.min) / slider.step))
        before, start = picture.value, perf_counter()
        slider.value = target
        if picture.value is not before:
            yield 1e3 * (perf_counter() - start)


def table(figures: dict[str, object]) -> str:
    return (
        f"{figures['moves']} slider moves of the explorer: median {figures['median_ms']} ms, 95th percentile "
        f"{figures['p95_ms']} ms\n"
        f"{figures['steps']} steps of the stepper: median {figures['stepper_median_ms']} ms, 95th percentile "
        f"{figures['stepper_p95_ms']} ms"
    )
