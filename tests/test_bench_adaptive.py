"""What the adaptive benchmark makes of its rounds: no model, no clock."""

from __future__ import annotations

import pytest

from specnb.bench import adaptive


def answers(**speeds: float) -> list[dict[str, object]]:
    names = {"a3": "ngram_simple, k=3", "a7": "ngram_simple, k=7"}
    return [
        {"arm": names.get(arm, arm), "speed": speed, "tokens": 64, "passes": 32, "loops": False}
        for arm, speed in speeds.items()
    ]


def test_a_row_tells_a_loss_only_where_the_whole_interval_does():
    steady = [answers(none=100.0 + i, a3=90.0, adaptive=95.0 + i) for i in range(6)]
    row = adaptive._row(8, steady)
    assert row["lost"] and row["vs_plain"] == pytest.approx(0.951, abs=0.002)
    noisy = [answers(none=100.0, a3=90.0, adaptive=95.0 + 4 * (i % 3)) for i in range(6)]
    assert not adaptive._row(8, noisy)["lost"]
    assert row["best_fixed"] == "none" and row["kind"] == "defeating" and row["tokens_per_cycle"] == 2.0


def test_the_best_setting_does_not_flatter_itself():
    """Each half of the repeats has another lucky setting; on the other half neither is ahead."""
    speeds = {"lucky first": [120.0, 100.0] * 3, "lucky second": [100.0, 120.0] * 3, "none": [90.0] * 6}
    assert adaptive.against_best([100.0] * 6, speeds) == pytest.approx(1.0)
    assert adaptive.against_best([97.0] * 6, {"none": [100.0] * 6}) == pytest.approx(0.97)
