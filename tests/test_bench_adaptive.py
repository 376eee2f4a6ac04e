"""What the adaptive benchmark makes of its rounds: no model, no clock."""

from __future__ import annotations

import pytest

from specnb.bench import adaptive


def answers(**ms: float) -> dict[str, dict[str, object]]:
    names = {"a3": "ngram_simple, k=3", "again": "plain again"}
    return {
        names.get(arm, arm): {"ms": each, "disturbed": 1, "tokens": 64, "passes": 32, "loops": False}
        for arm, each in ms.items()
    }


def test_a_row_tells_a_loss_only_where_the_whole_interval_does():
    steady = [answers(none=10.0 + i, again=10.0 + i, a3=20.0, adaptive=10.5 + i) for i in range(6)]
    row = adaptive._row(8, steady)
    assert row["lost"] and row["vs_plain"] == pytest.approx(75 / 78)
    noisy = [answers(none=10.0, again=10.0, a3=12.0, adaptive=9.7 + 0.5 * (i % 3)) for i in range(6)]
    assert not adaptive._row(8, noisy)["lost"]
    assert row["best_fixed"] == "none" and row["kind"] == "defeating" and row["tokens_per_cycle"] == 2.0
    assert row["control"] == 1.0 and row["disturbed"] / row["cycles"] == pytest.approx(1 / 32)


def test_the_best_setting_does_not_flatter_itself():
    """Each half of the rounds has another lucky setting; on the other half neither is ahead."""
    times = {"lucky first": [8.0, 10.0] * 3, "lucky second": [10.0, 8.0] * 3, "none": [11.0] * 6}
    assert adaptive.against_best([10.0] * 6, times) == pytest.approx(1.0)
    assert adaptive.against_best([10.0] * 6, {"none": [9.7] * 6}) == pytest.approx(0.97)
