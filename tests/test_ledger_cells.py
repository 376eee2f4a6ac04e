"""Cells of a ledger on a lab that runs nothing: contended pieces again, interrupted ones on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from specnb import cycle_costs, ledger_cells, measure
from specnb.journal import Journal
from specnb.records import Cycle, CycleCosts, CycleSample, Run, Sampling

SAMPLE = CycleSample(3, False, "model", 2, 1, 2, 1, 60, 4.0, 20.0, 0.2, 0.05)
FULL_KEPT = replace(SAMPLE, kept=2, emitted=3, other_ms=0.02)
AFTER_IT = replace(SAMPLE, fed=2, draft_ms=5.0)
REFUSED = replace(SAMPLE, kept=0, emitted=1, sampling_ms=0.1)
FIRST = replace(SAMPLE, changed=True, verify_ms=20.5)
COSTS = CycleCosts("draft_model", (SAMPLE, FULL_KEPT, AFTER_IT, REFUSED, FIRST), (60,), True)

PLAN = ledger_cells.Plan(
    families=(("draft_model",),), ks=(2,), kinds=("rewrite", "chat"), rounds=2, new_tokens=6, n_contexts=2, retries=2
)


class FakeLab:
    """Nothing is opened or run; runs are told apart by their order."""

    embedded, session = True, None
    model = SimpleNamespace(piece=lambda _token: b"x", is_eog=lambda _token: False)

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

    lab.order, lab.contexts = [], []

    def scripted(*_args, contexts, **_kwargs):
        lab.costs += 1
        lab.order.append("cost")
        lab.contexts.append(contexts)
        return COSTS

    def run(*_args, **_kwargs):
        lab.runs += 1
        lab.order.append("run")
        cycle = Cycle("draft_model", 60, (1, 2), 2, 1, (1, 5), (0.9, 0.9), 0.004, 0.0205, 0.0002, 0.00005)
        return Run(tuple(range(50)), (cycle,) * 3, "draft_model", 2, 0, 0.0, Sampling(), 0.1)

    watch = type("Watch", (), {"busy_elsewhere": lambda _self: next(lab.busy, 0.0)})
    monkeypatch.setattr(cycle_costs, "scripted", scripted)
    monkeypatch.setattr(cycle_costs, "runs_a_model", lambda _drafter: True)
    monkeypatch.setattr(cycle_costs, "keeps_drafts", lambda _drafter: True)
    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(ledger_cells.machine, "CoreWatch", watch)
    return lab


def measured(lab, journal=None, rounds=2):
    made = ledger_cells.Experiment(lab, PLAN, journal)
    for number in range(rounds):
        made.measure(("draft_model",), number)
    return made


def test_every_cell_is_measured_once_a_round_with_costs_between_the_runs(lab):
    made = measured(lab)
    assert (lab.costs, lab.runs) == (2 * 3, 2 * 2)
    assert lab.order == "cost run cost run cost".split() * 2
    cells = made.ledger().cells
    assert [(cell.drafter, cell.k, cell.kind, cell.cycles) for cell in cells] == [
        ("draft_model", 2, "rewrite", 6), ("draft_model", 2, "chat", 6)
    ]  # fmt: skip
    assert not any(cell.contended for cell in cells)


def test_the_scripts_of_a_slice_cover_every_context(lab):
    measured(lab, rounds=1)
    assert len({context for contexts in lab.contexts for context in contexts}) == PLAN.n_contexts
    assert all(lab.contexts)


def test_a_contended_run_is_made_again_and_told(lab):
    lab.busy = iter([1.0])
    made = measured(lab, rounds=1)
    assert lab.runs == 3
    runs = [timed for each in made._slices for timed in each.runs]
    assert sorted(timed.tries for timed in runs) == [1, 2]
    assert not any(timed.contended for timed in runs)


def test_a_run_that_stays_contended_is_kept_and_marked(lab):
    lab.busy = iter([1.0] * 100)
    made = measured(lab, rounds=1)
    assert lab.runs == 2 * (1 + PLAN.retries)
    assert all(timed.contended and timed.tries == 3 for each in made._slices for timed in each.runs)
    assert all(cell.contended for cell in made.ledger().cells)


def test_contended_costs_are_measured_again(lab, monkeypatch):
    found = iter([replace(COSTS, contended=True), replace(COSTS, contended=True)])
    monkeypatch.setattr(cycle_costs, "scripted", lambda *_args, **_kwargs: next(found, COSTS))
    assert not any(cell.contended for cell in measured(lab).ledger().cells)


def test_an_interrupted_benchmark_goes_on_and_ends_with_the_same_cells(lab, tmp_path):
    whole = measured(lab).ledger().cells
    path = tmp_path / "journal.jsonl"
    lab.runs = lab.costs = 0
    measured(lab, Journal(path, key="a"), rounds=1)
    with path.open("a") as file:
        file.write('{"key": "cut o')  # killed while writing
    made = measured(lab, Journal(path, key="a"))
    assert (lab.costs, lab.runs) == (6, 4)
    assert made.ledger().cells == whole
    measured(lab, Journal(path, key="a"))
    assert (lab.costs, lab.runs) == (6, 4)


def test_a_look_up_is_tried_up_to_its_longest_draft_and_a_head_to_what_it_was_trained_for():
    assert ledger_cells.longest_k("ngram_simple") == 8
    assert ledger_cells.longest_k("prompt_lookup") == 10
    assert ledger_cells.longest_k("draft_model") == 16
    assert 1 <= ledger_cells.longest_k("medusa") < 16
