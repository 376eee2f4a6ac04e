"""The ledger benchmark's own work: contended pieces again, interrupted ones on, and what is made of cells."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specnb import cycle_costs, measure
from specnb.bench import ledger as bench
from specnb.journal import Journal
from specnb.records import Cycle, CycleCosts, CycleParts, CycleSample, LedgerCell, Run, Sampling

SAMPLE = CycleSample(3, False, "model", 2, 1, 2, 1, 60, 4.0, 20.0, 0.2, 0.05)
FULL_KEPT = replace(SAMPLE, kept=2, emitted=3, other_ms=0.02)
AFTER_IT = replace(SAMPLE, fed=2, draft_ms=5.0)
REFUSED = replace(SAMPLE, kept=0, emitted=1, sampling_ms=0.1)
FIRST = replace(SAMPLE, changed=True, verify_ms=20.5)
COSTS = CycleCosts("draft_model", (SAMPLE, FULL_KEPT, AFTER_IT, REFUSED, FIRST), (60,), True)

PLAN = replace(bench.QUICK, families=(("draft_model",),), ks=(2,), kinds=("rewrite", "chat"), rounds=2, retries=2)


class FakeLab:
    """Nothing is opened or run; runs are told apart by their order."""

    embedded, session = True, None

    def __init__(self):
        self.runs = 0

    def drafter(self, name):
        return type("Opened", (), {"name": name})()

    def prompt(self, prompt):
        return tuple(range(50))


@pytest.fixture
def lab(monkeypatch):
    """Costs and runs as above; ``busy`` gives each watched piece what other processes took of the cores."""
    lab = FakeLab()
    lab.busy = iter(())
    lab.costs = 0

    def scripted(*_args, **_kwargs):
        lab.costs += 1
        return COSTS

    def run(*_args, **_kwargs):
        lab.runs += 1
        cycle = Cycle("draft_model", 60, (1, 2), 2, 1, (1, 5), (0.9, 0.9), 0.004, 0.0205, 0.0002, 0.00005)
        return Run(tuple(range(50)), (cycle,) * 3, "draft_model", 2, 0, 0.0, Sampling(), 0.1)

    watch = type("Watch", (), {"busy_elsewhere": lambda _self: next(lab.busy, 0.0)})
    monkeypatch.setattr(cycle_costs, "scripted", scripted)
    monkeypatch.setattr(cycle_costs, "runs_a_model", lambda _drafter: True)
    monkeypatch.setattr(cycle_costs, "keeps_drafts", lambda _drafter: True)
    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(bench.machine, "CoreWatch", watch)
    return lab


def measured(lab, journal=None, rounds=2):
    made = bench._Bench(lab, PLAN, journal)
    for number in range(rounds):
        made.measure(("draft_model",), number)
    return made


def test_every_cell_is_measured_once_a_round_beside_its_costs(lab):
    made = measured(lab)
    assert (lab.costs, lab.runs) == (2, 4)
    cells = made.cells()
    assert [(cell.drafter, cell.k, cell.kind, cell.cycles) for cell in cells] == [
        ("draft_model", 2, "rewrite", 6), ("draft_model", 2, "chat", 6)
    ]  # fmt: skip
    assert not any(cell.contended for cell in cells)


def test_a_contended_run_is_made_again_and_told(lab):
    lab.busy = iter([1.0])
    made = measured(lab, rounds=1)
    assert lab.runs == 3
    assert sorted(timed.tries for timed in made.timed) == [1, 2]
    assert not any(timed.contended for timed in made.timed)


def test_a_run_that_stays_contended_is_kept_and_marked(lab):
    lab.busy = iter([1.0] * 100)
    made = measured(lab, rounds=1)
    assert lab.runs == 2 * (1 + PLAN.retries)
    assert all(timed.contended and timed.tries == 3 for timed in made.timed)
    assert all(cell.contended for cell in made.cells())


def test_contended_costs_are_measured_again(lab, monkeypatch):
    found = iter([replace(COSTS, contended=True), replace(COSTS, contended=True)])
    monkeypatch.setattr(cycle_costs, "scripted", lambda *_args, **_kwargs: next(found, COSTS))
    assert not any(cell.contended for cell in measured(lab).cells())


def test_an_interrupted_benchmark_goes_on_and_ends_with_the_same_cells(lab, tmp_path):
    whole = measured(lab).cells()
    path = tmp_path / "journal.jsonl"
    lab.runs = lab.costs = 0
    measured(lab, Journal(path, key="a"), rounds=1)
    with path.open("a") as file:
        file.write('{"key": "cut o')  # killed while writing
    made = measured(lab, Journal(path, key="a"))
    assert (lab.costs, lab.runs) == (2, 4)
    assert made.cells() == whole
    measured(lab, Journal(path, key="a"))
    assert (lab.costs, lab.runs) == (2, 4)


# --- what is made of cells --------------------------------------------------------------------


def cell(measured_ms, predicted_ms, of_alpha_ms=10.0, **more):
    settings = {
        "drafter": "eagle", "k": 2, "kind": "chat", "cycles": 5, "tokens_per_cycle": 2.0, "alpha": 0.5,
        "interval": (predicted_ms / measured_ms - 0.01, predicted_ms / measured_ms + 0.01),
        "predicted": CycleParts(draft=4.0, catch_up=1.0, verify=20.0), "measured": CycleParts(draft=5.5, verify=19.5),
    }  # fmt: skip
    return LedgerCell(
        **settings | {"measured_ms": measured_ms, "predicted_ms": predicted_ms, "of_alpha_ms": of_alpha_ms} | more
    )


CELLS = (cell(10.0, 10.1), cell(10.0, 9.0, k=3), cell(10.0, 10.2, 12.0, kind="code", contended=True))


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
    rerun = [{"drafter": "eagle", "k": 2, "kind": "chat"}]
    told = bench.table({**bench.summary(CELLS), "rerun": rerun, "format": "Q4_0", "seconds": 3.0})
    assert "Measured again, because another process held a core: eagle k=2 chat." in told
    assert "Still contended after that, so not to be trusted: eagle k=2 code." in told
    assert "-10.0%" in told and "beyond" in told


def test_a_look_up_is_tried_up_to_its_longest_draft_and_a_head_to_what_it_was_trained_for():
    assert bench._longest_k("ngram_simple") == 8
    assert bench._longest_k("prompt_lookup") == 10
    assert bench._longest_k("draft_model") == 16
    assert 1 <= bench._longest_k("medusa") < 16
