"""The lossless benchmark: enough combinations, each once, a journal that is trusted, and counts that add up."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from specnb import drafters
from specnb.bench import lossless
from specnb.records import Limits


def test_the_full_plan_has_enough_combinations_and_none_twice():
    plan = lossless._full_plan()
    combinations = [(a.format, a.kind, a.way, a.seed, *s) for a in plan for s in a.settings]
    assert len(set(combinations)) == len(combinations) >= 2000
    assert {name for *_, name, _, _ in combinations} == set(drafters.names()[1:]), "every drafter"
    assert {2, 8, 48} <= {k for *_, k, _ in combinations}
    assert len({a.sampling for a in plan}) >= 20
    assert any(a.sampling.penalties for a in plan) and any(a.sampling.greedy for a in plan)
    for *_, k, p_min in combinations:
        Limits(k=k, p_min=p_min)


ROW = lossless.Row("Q4_0", "code", "greedy", 1, "ngram_simple", 2, 0.0, "identical", 32, 10, 4, 3)
PARTED = replace(
    ROW, format="BF16", verdict="explained", compared=9, position=8, plain_token=5, other_token=6, gap=0.1, rounding=0.2
)


def test_counts_add_up_and_every_divergence_is_listed():
    figures = lossless._figures([ROW, PARTED, replace(PARTED, verdict="unexplained", gap=0.3)])
    assert [figures[key] for key in ("combinations", "identical", "explained", "unexplained")] == [3, 1, 1, 1]
    assert figures["tokens"] == 32 + 9 + 9 and len(figures["divergences"]) == 2
    by_format = {row["format"]: row for row in figures["by_format_and_way"]}
    assert by_format["BF16"]["largest_gap"] == 0.3 and by_format["Q4_0"]["largest_gap"] is None
    printed = lossless.table(figures)
    assert "1 unexplained" in printed and printed.count("UNEXPLAINED") == 1
    json.dumps(figures, allow_nan=False)


def test_an_interrupted_benchmark_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    plan = [
        lossless.Answer("Q4_0", kind, "greedy", 1, (("ngram_simple", 2, 0.0), ("ngram_mod", 4, 0.0)))
        for kind in ("code", "chat")
    ]
    written: list[lossless.Answer] = []

    def rows_of(answers):
        for answer in answers:
            if len(written) == 1:
                raise KeyboardInterrupt
            written.append(answer)
            yield [replace(ROW, kind=answer.kind, drafter=name, k=k) for name, k, _ in answer.settings]

    monkeypatch.setattr(lossless, "_full_plan", lambda: plan)
    monkeypatch.setattr(lossless, "_written", rows_of)
    monkeypatch.setattr(lossless.models, "cache_folder", lambda: tmp_path)
    with pytest.raises(KeyboardInterrupt):
        lossless.run(quick=False)
    kept = [json.loads(line)["entry"] for line in (tmp_path / "bench-lossless.jsonl").read_text().splitlines() if line]
    assert kept == [[asdict(replace(ROW, drafter=name, k=k)) for name, k in (("ngram_simple", 2), ("ngram_mod", 4))]]
    monkeypatch.setattr(
        lossless,
        "_written",
        lambda answers: ([replace(ROW, kind=a.kind, drafter=n, k=k) for n, k, _ in a.settings] for a in answers),
    )
    assert lossless.run(quick=False)["combinations"] == 4
    assert not (tmp_path / "bench-lossless.jsonl").exists(), "complete: the next one starts anew"


def test_a_worker_ends_when_its_benchmark_was_killed(monkeypatch):
    """While the parent lives, and in no worker at all, every setting is asked for."""
    settings = (("ngram_simple", 2, 0.0), ("ngram_mod", 4, 0.0))
    assert tuple(lossless._while_wanted(settings)) == settings
    alive = iter((True, False))
    monkeypatch.setattr(lossless, "parent_process", lambda: SimpleNamespace(is_alive=lambda: next(alive)))
    wanted = lossless._while_wanted(settings)
    assert next(wanted) == settings[0]
    with pytest.raises(SystemExit):
        next(wanted)
