"""Cells of a ledger on a lab that runs nothing: contended pieces again, interrupted ones on."""

from __future__ import annotations

from contextlib import nullcontext
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
    drafters=("draft_model",), ks=(2,), kinds=("rewrite", "chat"), rounds=2, new_tokens=6, retries=2
)


class FakeLab:
    """Nothing is opened or run; runs and twins are told apart by their order."""

    embedded, session = True, None
    model = SimpleNamespace(piece=lambda _token: b"x", is_eog=lambda _token: False)

    def __init__(self):
        self.order = []

    def drafter(self, name):
        return type("Opened", (), {"name": name})()

    def prompt(self, prompt):
        return tuple(range(50))

    def second(self, name):
        return nullcontext((None, self.drafter(name)))


@pytest.fixture
def lab(monkeypatch):
    """Costs and runs as above; ``busy`` says of each twin whether other processes took a core meanwhile."""
    lab = FakeLab()
    lab.busy = iter(())

    class Twin:
        def __init__(self, _session, _drafter, _sampler, *, k, contexts, ends_text):
            lab.order.append(("twin", k, contexts))

        def follow(self, cycle):
            lab.order.append("follows")

        def costs(self):
            return replace(COSTS, contended=next(lab.busy, False))

    def run(*_args, on_cycle, **_kwargs):
        lab.order.append("run")
        cycle = Cycle("draft_model", 60, (1, 2), 2, 1, (1, 5), (0.9, 0.9), 0.004, 0.0205, 0.0002, 0.00005)
        for _ in range(3):
            on_cycle(cycle)
        return Run(tuple(range(50)), (cycle,) * 3, "draft_model", 2, 0, 0.0, Sampling(), 0.1)

    monkeypatch.setattr(cycle_costs, "Twin", Twin)
    monkeypatch.setattr(cycle_costs, "looks_up", lambda _drafter: False)
    monkeypatch.setattr(cycle_costs, "keeps_drafts", lambda _drafter: True)
    monkeypatch.setattr(measure, "run", run)
    return lab


def measured(lab, journal=None, rounds=2):
    made = ledger_cells.Experiment(lab, PLAN, journal)
    for number in range(rounds):
        made.measure("draft_model", number)
    return made


def test_every_run_has_a_twin_that_follows_it_cycle_by_cycle(lab):
    made = measured(lab)
    assert lab.order == [("twin", 2, (49, 52)), "run", "follows", "follows", "follows"] * 4
    cells = made.ledger().cells
    assert [(cell.drafter, cell.k, cell.kind, cell.cycles) for cell in cells] == [
        ("draft_model", 2, "rewrite", 6), ("draft_model", 2, "chat", 6)
    ]  # fmt: skip
    assert not any(cell.contended for cell in cells)


def test_all_cells_of_a_plan_are_measured(lab):
    assert len(ledger_cells.measured(lab, PLAN).cells) == 2
    assert lab.order.count("run") == 2 * PLAN.rounds


def test_a_contended_run_is_made_again_with_a_new_twin_and_told(lab):
    lab.busy = iter([True])
    made = measured(lab, rounds=1)
    assert lab.order.count("run") == 3
    assert sorted(timed.tries for timed in made._timed) == [1, 2]
    assert not any(timed.costs.contended for timed in made._timed)


def test_a_run_that_stays_contended_is_kept_and_marked(lab):
    lab.busy = iter([True] * 100)
    made = measured(lab, rounds=1)
    assert lab.order.count("run") == 2 * (1 + PLAN.retries)
    assert all(timed.tries == 3 for timed in made._timed)
    assert all(cell.contended for cell in made.ledger().cells)


def test_a_contended_round_does_not_count_where_another_was_quiet(lab):
    lab.busy = iter([True] * 2 * (1 + PLAN.retries))
    cells = measured(lab, rounds=2).ledger().cells
    assert [(cell.contended, cell.cycles, cell.tries) for cell in cells] == [(False, 3, 3)] * 2


def test_an_interrupted_benchmark_goes_on_and_ends_with_the_same_cells(lab, tmp_path):
    whole = measured(lab).ledger().cells
    path = tmp_path / "journal.jsonl"
    lab.order.clear()
    measured(lab, Journal(path, key="a"), rounds=1)
    with path.open("a") as file:
        file.write('{"key": "cut o')  # killed while writing
    made = measured(lab, Journal(path, key="a"))
    assert lab.order.count("run") == 4
    assert made.ledger().cells == whole
    measured(lab, Journal(path, key="a"))
    assert lab.order.count("run") == 4


def test_a_look_up_is_tried_up_to_its_longest_draft_and_a_head_to_what_it_was_trained_for():
    assert ledger_cells.longest_k("ngram_simple") == 8
    assert ledger_cells.longest_k("prompt_lookup") == 10
    assert ledger_cells.longest_k("draft_model") == 16
    assert 1 <= ledger_cells.longest_k("medusa") < 16
