"""One piece of model work at a time in this process.

Two would share the cores and time each other, and two threads on one ``Lab`` share its memory: the one may release a
session while the other is inside llama.cpp with it, which no exception survives. A cell and a widget's background
thread are two threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import messages

_turn = threading.RLock()

PATIENCE_S = 5.0
"""A run that was just stopped ends within this."""

ASK_AGAIN_S = 0.1


class BusyError(RuntimeError):
    """Another thread lets a model work."""


@contextmanager
def alone() -> Iterator[None]:
    """For what a cell calls, as a context or as a decorator. Raises BusyError where another thread still works."""
    if not _turn.acquire(timeout=PATIENCE_S):
        raise BusyError(messages.MODEL_BUSY)
    try:
        yield
    finally:
        _turn.release()


@contextmanager
def after_others(*, stopped: Callable[[], bool], on_wait: Callable[[], None]) -> Iterator[bool]:
    """For a background thread: waits as long as it takes, and says so once. False: stopped while it waited."""
    mine = _turn.acquire(blocking=False)
    if not mine:
        on_wait()
    while not mine and not stopped():
        mine = _turn.acquire(timeout=ASK_AGAIN_S)
    try:
        yield mine
    finally:
        if mine:
            _turn.release()
