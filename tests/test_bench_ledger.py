"""What the ledger benchmark makes of its cells."""

from __future__ import annotations

import json

import pytest

from specnb.bench import ledger as bench
from specnb.records import CycleParts, LedgerCell


def cell(measured_ms, predicted_ms, of_alpha_ms=10.0, **more):
    settings = {
        "drafter": "eagle", "k": 2, "kind": "chat", "cycles": 5, "tokens_per_cycle": 2.0, "alpha": 0.5,
        "interval": (predicted_ms / measured_ms - 0.01, predicted_ms / measured_ms + 0.01),
        "predicted": CycleParts(draft=4.0, catch_up=1.0, verify=20.0), "measured": CycleParts(draft=5.5, verify=19.5),
    }  # fmt: skip
    return LedgerCell(
        **settings | {"measured_ms": measured_ms, "predicted_ms": predicted_ms, "of_alpha_ms": of_alpha_ms} | more
    )


CELLS = (cell(10.0, 10.1, tries=2), cell(10.0, 9.0, k=3), cell(10.0, 10.2, 12.0, kind="code", contended=True))


def test_errors_are_sizes_and_beyond_counts_intervals_that_exclude_the_bound():
    found = bench.summary(CELLS)
    assert found["median_error"] == pytest.approx(0.02)
    assert found["max_error"] == pytest.approx(0.1)
    assert (found["median_error_of_alpha"], found["max_error_of_alpha"]) == pytest.approx((0.0, 0.2))
    assert found["beyond"] == 1
    assert [row["beyond"] for row in found["rows"]] == [False, True, False]
    json.dumps(found, allow_nan=False)


def test_what_is_left_over_is_told_by_part():
    rest = bench.summary(CELLS)["rows"][0]["rest"]
    assert rest == pytest.approx({"drafting": 0.5 / 25.0, "passing": -0.5 / 25.0, "sampling": 0.0, "other": 0.0})


def test_the_table_names_what_was_measured_again_and_what_is_not_to_be_trusted():
    told = bench.table({**bench.summary(CELLS), "format": "Q4_0", "seconds": 3.0, "beyond_at_first": 2})
    assert "Measured again, because another process held a core: eagle k=2 chat." in told
    assert "Still contended after that, so not to be trusted: eagle k=2 code." in told
    assert "-10.0%" in told and "1 cell(s) wholly beyond 6.0 % (2 before their drafters' second round)" in told
