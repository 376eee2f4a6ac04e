"""The command line of the benchmarks: keys and shape; figures are for people to read."""

from __future__ import annotations

import json

import pytest

from specnb.bench.__main__ import BENCHMARKS, main

KEYS = {
    "curve": {"seconds", "points", "max_ci_rel"},
    "drafters": {"rows"},
    "overhead": {"share_in_llama", "peak_mib"},
    "redraw": {"median_ms", "p95_ms"},
}


def test_every_benchmark_is_listed_here():
    assert KEYS.keys() == BENCHMARKS.keys()


ROW = {"drafter", "format", "kind", "k", "alpha", "gamma", "tokens_per_cycle", "speedup", "speedup_ci"}


def check_drafter_rows(rows: list[dict[str, object]]) -> None:
    """Plain decoding first, then a row for every drafter and kind."""
    assert all(ROW <= row.keys() for row in rows)
    assert rows[0]["drafter"] == "none" and rows[0]["speedup"] == 1.0
    others = rows[1:]
    assert {row["drafter"] for row in others} == {"ngram_simple", "eagle"}
    assert all(row["speedup"] > 0 and 1 <= row["tokens_per_cycle"] <= row["k"] + 1 for row in others)
    assert all(row["k"] <= 6 for row in others if row["drafter"] == "eagle")


@pytest.mark.model
@pytest.mark.parametrize("name", KEYS)
def test_prints_a_table_and_one_json_object_on_the_last_line(name, capsys):
    main([name, "--quick", "--json"])
    lines = capsys.readouterr().out.strip().splitlines()
    figures = json.loads(lines[-1])
    assert KEYS[name] <= figures.keys()
    assert len(lines) >= 2
    if name == "drafters":
        check_drafter_rows(figures["rows"])


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "invalid choice: 'speed'" in capsys.readouterr().err
