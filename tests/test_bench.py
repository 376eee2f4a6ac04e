"""The command line of the benchmarks: keys and shape; figures are for people to read."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from specnb import replay
from specnb.bench import __main__ as bench_main
from specnb.bench import drafters as drafters_bench
from specnb.bench.__main__ import BENCHMARKS, main
from specnb.records import Draft, DraftPrice, Rehearsal

KEYS = {
    "adaptive": {"worst_vs_plain", "worst_vs_best_fixed"},
    "advise": {"share_of_best", "time_share", "rows"},
    "curve": {"seconds", "points", "max_ci_rel"},
    "drafters": {"rows"},
    "hostile": {"files", "dead_kernels", "hangs"},
    "ledger": {"median_error", "max_error", "rows"},
    "lossless": {"combinations", "identical", "explained", "unexplained"},
    "overhead": {"share_in_llama", "peak_mib"},
    "redraw": {"median_ms", "p95_ms", "stepper_p95_ms"},
    "synthetic": {"worst_error", "median_error", "rows"},
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


def test_recorded_figures_keep_six_digits_and_say_where_they_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_main, "RECORDS", tmp_path / "benchmarks")
    bench_main.record(
        "curve", {"seconds": 1.23456789, "rows": [{"n": 1, "ms": 2.0}, {"n": 2, "ms": None}], "ci": (1, 2)}
    )
    text = (tmp_path / "benchmarks" / "curve.json").read_text()
    recorded = json.loads(text)
    assert recorded["figures"] == {
        "seconds": 1.23457,
        "rows": [{"n": 1, "ms": 2.0}, {"n": 2, "ms": None}],
        "ci": [1, 2],
    }
    assert recorded["command"] == "python -m specnb.bench curve" and recorded["machine"]["cores"] > 0
    assert '\n{"n": 1, "ms": 2.0},\n' in text


ANSWER = drafters_bench.Answer("F32", 0.0, 3, "eagle", 2, 0.5, 128, 70, 90, 58, 60, 40, 1.5, False, predicted=1.1)


def test_loops_stand_apart_and_speedups_are_medians_over_prompts_of_the_same_format():
    plain = [replace(ANSWER, drafter="none", prompt=i, k=0, seconds=2.0) for i in (0, 1, 2, 4)]
    fast = [replace(ANSWER, drafter="none", format="Q4_0", prompt=0, seconds=0.5)]
    eagle = [replace(ANSWER, prompt=i, seconds=s, loops=i == 2) for i, s in ((0, 1.0), (1, 4.0), (2, 0.1), (4, 2.0))]
    costs = {format: drafters_bench.Costs({1: 10.0}, {"eagle": 0.5}, {}, 0.0) for format in ("F32", "Q4_0")}
    rows = drafters_bench._rows([*plain, *fast, *eagle], costs)
    assert [(row.drafter, row.format) for row in rows[:2]] == [("none", "F32"), ("none", "Q4_0")]
    by_kind = {row.kind: row for row in rows[2:]}
    assert set(by_kind) == {"chat", "code", "loops"}
    assert by_kind["chat"].speedup == (2.0 + 0.5) / 2 and by_kind["loops"].speedup == 20.0
    assert by_kind["chat"].gamma == 0.05 and by_kind["chat"].alpha == 58 / 90
    assert by_kind["chat"].speedup_range == (0.5, 2.0)
    assert by_kind["code"].against_fastest_plain == 0.25


def test_a_gain_above_temperature_zero_is_one_over_plain_decoding_there():
    plain = [replace(ANSWER, drafter="none", k=0, temperature=t, seconds=s) for t, s in ((0.0, 1.0), (0.7, 4.0))]
    warm = replace(ANSWER, temperature=0.7, seconds=2.0)
    costs = {"F32": drafters_bench.Costs({1: 10.0}, {"eagle": 0.5}, {}, 0.0)}
    rows = drafters_bench._rows([*plain, warm], costs)
    assert [row.against_fastest_plain for row in rows] == [1.0, 1.0, 2.0]


def test_the_setting_of_the_fastest_replay_is_taken_and_loops_are_left_aside():
    def pilot(loops: bool, surest: float) -> drafters_bench.Pilot:
        """Drafts of two tokens: both are kept where they are as sure as ``surest``, elsewhere none is."""
        text = (7, 7, 1, 2) * 3
        drafts = tuple(Draft((7, 7), (surest, surest) if i % 4 == 0 else (0.2, 0.2)) for i in range(len(text)))
        return drafters_bench.Pilot(partial(replay.of_rehearsal, Rehearsal(text, drafts, 6, rereads=False)), loops)

    verify_ms, price = {n: 9.0 + n for n in range(1, 12)}, DraftPrice("distilled", 0.1, 0.1)
    setting, speedup = drafters_bench._best("distilled", [pilot(False, 0.9), pilot(True, 0.2)], price, verify_ms, 0.2)
    assert (setting.k, setting.p_min) == (2, 0.3)
    # Three times a pass over 3 rows and a plain one; a draft was begun before each but the last, which has no room.
    # Every pass but the first is over another N than the one before it.
    assert speedup == pytest.approx(12 * 10.0 / (3 * 12.0 + 3 * 10.0 + (3 * 2 + 2) * 0.1 + 5 * 0.2))
