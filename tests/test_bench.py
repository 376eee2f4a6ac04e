"""The command line of the benchmarks: keys and shape; figures are for people to read."""

from __future__ import annotations

import json

import pytest

from specnb.bench.__main__ import BENCHMARKS, main

KEYS = {
    "curve": {"seconds", "points", "max_ci_rel"},
    "overhead": {"share_in_llama", "peak_mib"},
    "redraw": {"median_ms", "p95_ms"},
}


def test_every_benchmark_is_listed_here():
    assert KEYS.keys() == BENCHMARKS.keys()


@pytest.mark.model
@pytest.mark.parametrize("name", KEYS)
def test_prints_a_table_and_one_json_object_on_the_last_line(name, capsys):
    main([name, "--quick", "--json"])
    lines = capsys.readouterr().out.strip().splitlines()
    figures = json.loads(lines[-1])
    assert KEYS[name] <= figures.keys()
    assert len(lines) >= 2


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "invalid choice: 'speed'" in capsys.readouterr().err
