"""A background thread for one job at a time, so that a long run blocks neither the page nor other cells."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker:
    """``stopped`` is the question the job asks between its steps."""

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
        """Starts the job and returns True, or returns False while this worker's last one runs."""
        # Two clicks may arrive on two threads at once.
        with self._starting:
            if self.busy:
                return False
            self._stop.clear()
            self._thread = threading.Thread(target=job, name="specnb-worker", daemon=True)
            self._thread.start()
            return True

    def stop(self) -> None:
        """Asks the job to end after its current step."""
        self._stop.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Blocks until the job under way has ended, at most ``timeout_s`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout_s)
