"""What every widget that lets a model work has: a button that starts it, Stop, a status line, one background thread."""

from __future__ import annotations

import threading

import ipywidgets

from .. import messages
from ..alone import after_others
from .worker import Worker


class JobWidget:
    """Runs ``_work`` in the worker thread; a subclass sets ``view`` and puts the two buttons and ``status`` into it.

    A new one ends the one of its kind before, so that re-running the cell is safe. Where another thread lets a model
    work, the job waits for its turn, and says so; Stop ends the waiting, too.
    """

    view: ipywidgets.Widget | None = None
    """None until the subclass has built it."""
    _current: JobWidget | None = None
    _taking_over = threading.Lock()

    def __init__(self, start_button: ipywidgets.Button, ready: str) -> None:
        kind, self._worker = type(self), Worker()
        with JobWidget._taking_over:
            if kind._current is not None:
                kind._current.close()
            kind._current = self
        self._start_button = start_button
        self.stop_button = ipywidgets.Button(description=messages.STOP, icon="stop", disabled=True)
        self.status = ipywidgets.HTML(ready)
        start_button.on_click(lambda _button: self._start())
        self.stop_button.on_click(lambda _button: self.stop())

    def stop(self) -> None:
        """What the Stop button does: the job ends after its current step and keeps what it has."""
        self._worker.stop()

    def wait(self, timeout_s: float | None = None) -> None:
        """Blocks until the job under way has ended or stopped: for scripts and tests."""
        self._worker.wait(timeout_s)

    def close(self) -> None:
        """Ends the job under way and lets go of the lab, which stays open."""
        self._worker.stop()
        self._worker.wait(10.0)
        if self.view is not None:
            self.view.close()

    def _start(self) -> bool:
        """False while a job is under way."""
        return self._worker.start(self._job)

    def _job(self) -> None:
        self._start_button.disabled, self.stop_button.disabled = True, False
        ready = self.status.value
        try:
            with after_others(stopped=self._worker.stopped, on_wait=self._say_it_waits) as my_turn:
                if my_turn:
                    self._work()
                else:
                    self.status.value = ready
        except Exception as error:  # the reader sees every failure; a thread would swallow it
            self.status.value = messages.live_failed(str(error))
        finally:
            self._start_button.disabled, self.stop_button.disabled = False, True

    def _say_it_waits(self) -> None:
        self.status.value = messages.JOB_WAITS

    def _work(self) -> None:
        raise NotImplementedError
