"""The long sweep, driven without a page: what the buttons do."""

from __future__ import annotations

import time

import pytest
import toy_lab
from toy_lab import PLAN, ToyLab

from specnb import store, sweep
from specnb.records import Sweep
from specnb.widgets import LongSweep


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    toy_lab.quiet(monkeypatch)
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))


@pytest.fixture
def widgets():
    opened: list[LongSweep] = []

    def make(lab: ToyLab) -> LongSweep:
        opened.append(LongSweep(lab, PLAN))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def stopped_half_way(long: LongSweep) -> None:
    assert long.start()
    while long.bar.value < 0.2:
        time.sleep(0.001)
    assert not long.start(), "it is under way"
    long.stop()
    long.wait(60)


def test_start_sweeps_to_the_end_and_shows_and_saves_what_it_found(widgets):
    long = widgets(ToyLab())
    assert long.start()
    long.wait(60)
    assert long.status.value.startswith("Done:") and long.bar.value == 1.0
    assert long.answer.value.startswith("<b>Yes:") and len(long.picture.children) == 1
    assert long.result.complete and store.load(long.saved, Sweep).trials == long.result.trials
    assert not long.start_button.disabled and long.stop_button.disabled


def test_stop_keeps_what_is_done_and_start_goes_on_also_in_another_session(widgets):
    lab = ToyLab(seconds=0.01)
    long = widgets(lab)
    stopped_half_way(long)
    assert long.status.value.startswith("Stopped with")
    assert not long.result.complete
    other = ToyLab()
    again = widgets(other)
    again.start()
    again.wait(60)
    alone = ToyLab()
    sweep.Sweeper(alone, PLAN).run()
    assert again.result.complete and lab.runs + other.runs <= alone.runs + 1


def test_after_the_end_start_measures_anew(widgets):
    lab = ToyLab()
    long = widgets(lab)
    for rounds in (1, 2):
        long.start()
        long.wait(60)
        assert lab.runs % rounds == 0
    assert lab.runs > 1.9 * len(long.result.trials)


def test_what_goes_wrong_is_shown_with_its_reason(widgets, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path / "file" / "cache"))
    long = widgets(ToyLab())
    long.start()
    long.wait(60)
    assert "This did not work" in long.status.value and "file" in long.status.value


def test_a_page_without_widgets_says_what_would_be_here(widgets):
    assert widgets(ToyLab())._repr_mimebundle_()["text/plain"].startswith("Buttons to start and stop a sweep")
