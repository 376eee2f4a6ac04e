"""Sweeps: the points that are measured, that none is lost, and that the way round the grid leads to the same place."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import toy_lab
from toy_lab import PLAN, ToyLab

from specnb import advise, drafters, store, sweep
from specnb.journal import Journal
from specnb.prompts import Prompt
from specnb.records import PLAIN, Setting

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("racing", "exhaustive")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    toy_lab.quiet(monkeypatch)


def swept(method: str = "racing", *, lab: ToyLab | None = None, journal: Journal | None = None, plan=PLAN, **run):
    return sweep.Sweeper(lab or ToyLab(), plan, method=method, journal=journal).run(**run)


def test_an_exhaustive_sweep_measures_every_setting_on_every_kind_as_often_as_asked():
    found = swept("exhaustive")
    settings = 1 + 4 + 2 * 4 * 2  # plain; a look-up has no p_min; two models with four k and two p_min
    assert len(found.settings) == settings and found.complete
    points = Counter((trial.setting, trial.kind) for trial in found.trials)
    assert len(points) == settings * 3 and set(points.values()) == {PLAN.repeats}


def test_a_racing_sweep_forecasts_every_setting_and_measures_few_in_rounds_of_their_own():
    found = swept()
    assert {(f.setting, f.kind) for f in found.forecasts} == {(s, k) for s in found.settings for k in found.kinds}
    for kind in found.kinds:
        finals = Counter(trial.setting for trial in found.trials if trial.kind == kind and trial.stage == "final")
        assert 2 <= len(finals) <= 1 + PLAN.finalists + 1 and set(finals.values()) == {PLAN.rounds}
        assert PLAIN in finals
    everywhere = [s for s in found.settings if all(found.of(s, kind) for kind in found.kinds)]
    assert len(everywhere) >= 2, "plain decoding and one setting for all kinds"


@pytest.mark.parametrize("seed", range(3))
def test_the_race_ends_near_the_best_cell_of_the_whole_grid(seed):
    racing, grid = swept(lab=ToyLab(noise=0.02)), swept("exhaustive")
    for choice in advise.advise(racing).by_kind:
        best = min(trial.ms_per_token for trial in grid.trials if trial.kind == choice.kind)
        (chosen, *_rest) = [t for t in grid.trials if t.kind == choice.kind and t.setting == choice.advised]
        assert best / chosen.ms_per_token >= 0.97
    assert len(racing.trials) < 0.5 * len(grid.trials)


def test_look_ups_and_draft_models_are_forecast_exactly_on_the_toy():
    """Its costs have no noise. What is left is the price of a draft that the end of the text cuts short."""
    grid = {(t.setting, t.kind): t for t in swept("exhaustive").trials}
    for forecast in swept().forecasts:
        measured = grid[forecast.setting, forecast.kind]
        assert forecast.ms_per_token == pytest.approx(measured.ms_per_token, rel=0.02)
        if forecast.drafter in ("none", "ngram_simple"):
            assert forecast.ms_per_token == pytest.approx(measured.ms_per_token, rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_stopped_it_gives_what_there_is_and_goes_on_from_there(method, tmp_path):
    whole = swept(method)
    journal, lab = Journal(tmp_path / "sweep.jsonl", key="toy"), ToyLab()
    part = sweep.Sweeper(lab, PLAN, method=method, journal=journal).run(stopped=lambda: lab.runs > 20)
    assert not part.complete and len(part.trials) < len(whole.trials)
    assert store.from_json(type(part), store.to_json(part)).trials == part.trials
    rest = ToyLab()
    found = swept(method, lab=rest, journal=Journal(tmp_path / "sweep.jsonl", key="toy"))
    assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)
    of_a_round = 1 if method == "exhaustive" else 1 + PLAN.finalists + 1
    made_twice = lab.runs + rest.runs - whole_runs(method)
    assert 1 <= made_twice <= of_a_round, "what was cut off, and nothing else, is made twice"


def whole_runs(method: str) -> int:
    lab = ToyLab()
    swept(method, lab=lab)
    return lab.runs


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("method", METHODS)
def test_killed_at_any_point_it_resumes_and_ends_with_the_same_table(method, tmp_path):
    path, moments = tmp_path / "killed.jsonl", random.Random(method)
    command = [sys.executable, str(Path(toy_lab.__file__))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def start(file: Path) -> subprocess.Popen:
        return subprocess.Popen(
            [*command, str(file), method], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )

    kills = 0
    while kills < 4:
        process, before = start(path), path.stat().st_size if path.exists() else 0
        # Only once it measures: a machine may need seconds to import the package.
        while process.poll() is None and (path.stat().st_size if path.exists() else 0) <= before:
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.25))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        kills += 1
        if kills == 2:
            with path.open("ab") as file:
                file.write(b'{"key": "toy", "at": 17')  # as if it had been killed while it wrote
    assert kills >= 2, "it was never killed half way"
    resumed = start(path).communicate()[0]
    assert resumed == start(tmp_path / "whole.jsonl").communicate()[0] != ""
    names = [entry["name"] for entry in Journal(path, key="toy").entries()]
    assert len(names) == len(set(names)), "a finished point was measured a second time"


def test_a_disk_that_fills_up_is_named_and_costs_no_finished_point(tmp_path):
    class Full(Journal):
        room = 12

        def add(self, entry):
            if self.room == 0:
                raise OSError(28, "No space left on device")
            Full.room -= 1
            super().add(entry)

    path = tmp_path / "sweep.jsonl"
    lab = ToyLab()
    sweeper = sweep.Sweeper(lab, PLAN, journal=Full(path, key="toy"))
    with pytest.raises(sweep.NotSaved, match=r"sweep\.jsonl cannot be written: No space left on device.* 13 finished"):
        sweeper.run()
    Full.room, before = 1000, lab.runs
    assert replace(sweeper.run(), seconds=0.0) == replace(swept(), seconds=0.0)
    assert lab.runs - before == whole_runs("racing") - before
    assert replace(swept(journal=Journal(path, key="toy")), seconds=0.0) == replace(swept(), seconds=0.0)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    sweeper = sweep.Sweeper(ToyLab(), PLAN, journal=Journal(tmp_path / "no" / "such" / "s.jsonl", key="toy"))
    with pytest.raises(sweep.NotSaved, match=r"s\.jsonl cannot be written: No such file or directory"):
        sweeper.run()


def test_no_cache_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(sweep.NotSaved, match="cannot be made: Not a directory"):
        sweep.journal_for(ToyLab(), PLAN, "racing")


def test_journals_of_other_plans_weights_and_methods_are_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))
    first = sweep.journal_for(ToyLab(), PLAN, "racing").path
    assert sweep.journal_for(ToyLab(), PLAN, "racing").path == first
    others = [
        sweep.journal_for(ToyLab(), PLAN, "exhaustive").path,
        sweep.journal_for(ToyLab(), replace(PLAN, max_tokens=41), "racing").path,
        sweep.journal_for(ToyLab(), replace(PLAN, drafters=("ngram_simple",)), "racing").path,
    ]
    assert len({first, *others}) == 4


def test_points_under_contention_are_measured_again_at_the_end_and_listed(monkeypatch):
    seen = []

    def busy(_watch):
        seen.append(1)
        return 1.0 if len(seen) in (30, 31) else 0.0

    monkeypatch.setattr(sweep.machine.CoreWatch, "busy_elsewhere", busy)
    found = swept("exhaustive")
    assert len(found.rerun) == 2 and all(trial.contended for trial in found.rerun)
    assert not any(trial.contended for trial in found.trials)
    assert len({(t.setting, t.kind, t.repeat) for t in found.trials}) == len(found.trials)
    told = " ".join(sweep.messages.advice_reasons(advise.advise(found)))
    assert "Measured again" in told and found.rerun[0].kind in told


def test_on_a_machine_that_stays_busy_it_gives_up_and_says_so(monkeypatch):
    monkeypatch.setattr(sweep.machine.CoreWatch, "busy_elsewhere", lambda _watch: 1.0)
    found = swept("exhaustive")
    assert len(found.rerun) == sweep.MOST_DISTURBED
    assert all(trial.contended for trial in found.trials)
    assert "all the while" in " ".join(sweep.messages.advice_reasons(advise.advise(found)))


def test_progress_counts_up_to_what_is_expected_and_tells_the_time_left():
    told = []
    swept("exhaustive", on_progress=told.append)
    assert [progress.done for progress in told] == list(range(1, told[-1].expected + 1))
    assert told[-1].seconds_left == 0.0 and all(progress.seconds_left >= 0 for progress in told)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drafters": ()}, "at least one drafter"),
        ({"ks": (0, 2)}, "k starts at 1; got 0"),
        ({"prompts": (Prompt("a", "", "1"), Prompt("a", "", "2"))}, "one prompt of each kind; got a, a"),
    ],
)
def test_a_plan_that_is_none_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        replace(PLAN, **change)


@pytest.mark.model
def test_a_sweep_of_the_embedded_model(embedded, monkeypatch, tmp_path):
    from specnb.lab import Lab
    from specnb.prompts import PROMPTS

    monkeypatch.undo()
    monkeypatch.setenv("SPECNB_CACHE", os.environ.get("SPECNB_CACHE", ""))
    plan = sweep.Plan(("ngram_simple", "eagle"), (1, 2), (PROMPTS["rewrite"],), max_tokens=12, rounds=3, curve_s=1.0)
    with Lab(format="Q4_0", n_ctx=512, threads=1) as lab:
        found = sweep.Sweeper(lab, plan, journal=Journal(tmp_path / "j.jsonl", key="k")).run()
    assert found.complete and found.target.endswith("Q4_0")
    assert {trial.emitted for trial in found.trials} == {12}
    assert found.costs.price("eagle").first_ms > 0 and found.costs.price("ngram_simple").first_ms == 0
    assert Setting("eagle", 2, 0.5) in found.settings
    (choice,) = advise.advise(found).by_kind
    assert choice.speedup > 0 and choice.interval is not None


def test_a_plan_whose_drafts_no_drafter_makes_is_refused_before_anything_is_measured(monkeypatch):
    lab = ToyLab()
    monkeypatch.setattr(drafters.DraftModel, "longest_k", 4, raising=False)
    with pytest.raises(ValueError, match=r"drafts of k = 6, 8: draft_model up to 4\. Take a smaller k"):
        sweep.Sweeper(lab, replace(PLAN, drafters=("draft_model",), ks=(6, 8)))
    assert lab.runs == 0


def test_a_p_min_that_floats_cannot_say_is_found_again_in_what_was_stored():
    plan = replace(PLAN, p_mins=(0.1 * 3, 1 / 3))
    assert swept(plan=plan).complete


def test_a_drafter_with_a_model_rehearses_each_kind_once_for_all_its_settings():
    sweeper = sweep.Sweeper(ToyLab(), PLAN)
    sweeper.run()
    rehearsals = [name for name in sweeper._pieces if name.startswith("rehearsal")]
    wanted = [f"rehearsal {name} {kind}" for name in ("draft_model", "layer_skip") for kind in PLAN.kinds]
    assert rehearsals == wanted
