"""One background thread for model work, so that a long run blocks neither the page nor other cells."""

from __future__ import annotations

import threading
from collections.abc import Callable

_one_job = threading.Lock()


class Worker:
    """Runs one job at a time, of all workers: two would share the cores, and perhaps the model, and time each other.

    ``stopped`` is the question the job asks between its steps.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stopped(self) -> bool:
        return self._stop.is_set()

    def start(self, job: Callable[[], None]) -> bool:
        """Starts the job and returns True, or returns False while another one runs."""
        # Two clicks may arrive on two threads at once.
        with self._starting:
            if self.busy:
                return False
            self._stop.clear()
            self._thread = threading.Thread(target=self._alone, args=(job,), name="specnb-worker", daemon=True)
            self._thread.start()
            return True

    def _alone(self, job: Callable[[], None]) -> None:
        while not _one_job.acquire(timeout=0.1):
            if self.stopped():
                return
        try:
            job()
        finally:
            _one_job.release()

    def stop(self) -> None:
        """Asks the job to end after its current step."""
        self._stop.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Blocks until the job under way has ended, at most ``timeout_s`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout_s)
