"""One thread at a time lets a model work: cells are refused, widgets wait, and neither touches the other's memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ipywidgets
import pytest
from toy_lab import ToyLab

from specnb import alone as alone_module
from specnb import messages, notebook
from specnb.alone import BusyError, after_others, alone
from specnb.records import Run
from specnb.widgets.job import JobWidget


@contextmanager
def another_thread_works() -> Iterator[None]:
    working, done = threading.Event(), threading.Event()

    def work() -> None:
        with alone():
            working.set()
            done.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    assert working.wait(30)
    try:
        yield
    finally:
        done.set()
        thread.join(30)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(alone_module, "PATIENCE_S", 0.05)


class Counting(JobWidget):
    def __init__(self, *, fails: bool = False) -> None:
        self.start_button, self.done = ipywidgets.Button(), 0
        super().__init__(self.start_button, "ready")
        if fails:
            raise AttributeError("no such model")
        self.view = ipywidgets.VBox([self.start_button, self.stop_button, self.status])

    def _work(self) -> None:
        self.done += 1
        self.status.value = "done"


def test_a_thread_may_nest_its_own_work():
    with alone(), alone(), after_others(stopped=lambda: True, on_wait=pytest.fail) as mine:
        assert mine


def test_a_cell_is_refused_while_another_thread_works_and_not_afterwards():
    @alone()
    def cell() -> str:
        return "ran"

    with another_thread_works(), pytest.raises(BusyError, match="Stop button"):
        cell()
    assert cell() == "ran"


def test_a_measurement_is_refused_before_it_touches_the_lab():
    def touches(_lab: object) -> Run:
        pytest.fail("it touched the lab")

    with another_thread_works(), pytest.raises(BusyError):
        notebook.Notebook("00", ToyLab()).measure("speed", Run, touches)


def test_an_error_inside_lets_the_next_one_in():
    with pytest.raises(ZeroDivisionError), alone():
        raise ZeroDivisionError
    with another_thread_works():
        pass


def test_a_widget_waits_says_so_and_then_works():
    widget = Counting()
    with another_thread_works():
        assert widget._start()
        while widget.status.value != messages.JOB_WAITS:
            pass
        assert widget.done == 0 and widget.start_button.disabled and not widget.stop_button.disabled
    widget.wait(30)
    assert (widget.done, widget.status.value) == (1, "done")
    assert not widget.start_button.disabled and widget.stop_button.disabled
    widget.close()


def test_stop_ends_the_waiting_of_a_widget():
    widget = Counting()
    with another_thread_works():
        widget._start()
        while widget.status.value != messages.JOB_WAITS:
            pass
        widget.stop()
        widget.wait(30)
        assert (widget.done, widget.status.value) == (0, "ready")
        assert not widget.start_button.disabled and widget.stop_button.disabled
    widget.close()


def test_a_widget_that_could_not_be_built_does_not_stand_in_the_way_of_the_next():
    with pytest.raises(AttributeError, match="no such model"):
        Counting(fails=True)
    widget = Counting()
    assert widget._start()
    widget.wait(30)
    assert widget.done == 1
    widget.close()
