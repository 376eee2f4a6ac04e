"""Where a notebook's measurements come from."""

from __future__ import annotations

import pytest

from specnb import notebook
from specnb.records import CostCurve, Machine

CURVE = CostCurve("toy", ((1, 2.0), (2, 3.0)), 8, 1, Machine("a machine"))


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "RUNS", tmp_path)
    monkeypatch.delenv("SPECNB_RECORD", raising=False)
    return tmp_path


def test_live_measures_again_every_time():
    nb, asked = notebook.Notebook("01", lab="a lab"), []
    for _ in range(2):
        assert nb.measure("curve", CostCurve, lambda lab: asked.append(lab) or CURVE) is CURVE
    assert asked == ["a lab", "a lab"]
    assert nb.live and nb.recorded == ""


def test_recording_saves_what_the_page_without_a_model_shows(runs, monkeypatch):
    monkeypatch.setenv("SPECNB_RECORD", "1")
    notebook.Notebook("01", lab="a lab").measure("curve", CostCurve, lambda lab: CURVE)
    assert [file.name for file in runs.iterdir()] == ["01-curve.json"]
    nb = notebook.Notebook("01", lab=None)
    shown = nb.measure("curve", CostCurve, lambda lab: pytest.fail("there is nothing to measure with"))
    assert shown.samples == CURVE.samples
    assert nb.recorded.endswith("on a machine")
    assert not nb.live


def test_each_label_has_its_own_record(runs, monkeypatch):
    monkeypatch.setenv("SPECNB_RECORD", "1")
    found = notebook.Notebook("01", lab="a lab").measure_each("t", CostCurve, ("F32", "Q4_0"), lambda lab, label: CURVE)
    assert list(found) == ["F32", "Q4_0"]
    assert sorted(file.name for file in runs.iterdir()) == ["01-t-f32.json", "01-t-q4_0.json"]


def test_without_a_model_it_says_why_and_goes_on(monkeypatch, capsys):
    monkeypatch.setenv("SPECNB_TARGET", "nowhere.gguf")
    nb = notebook.start("01")
    assert not nb.live
    told = capsys.readouterr().out
    assert all(words in told for words in ("shows recorded runs", "There is no model file at", "nowhere.gguf"))


def test_an_unknown_format_is_the_callers_mistake_not_a_missing_model():
    with pytest.raises(ValueError, match="'Q9' is not offered; choose one of F32"):
        notebook.start("01", format="Q9")


@pytest.mark.model
def test_a_draft_that_cannot_be_used_is_told_at_the_start(embedded, monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("SPECNB_TARGET", raising=False)
    broken = tmp_path / "draft.gguf"
    broken.write_bytes(embedded.read_bytes()[:100_000])
    monkeypatch.setenv("SPECNB_DRAFT", str(broken))
    assert not notebook.start("01").live
    assert "draft.gguf" in capsys.readouterr().out
