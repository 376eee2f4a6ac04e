from __future__ import annotations

import socket
import subprocess
import sys
import time

import psutil
import pytest

from specnb import machine


def test_the_machine_is_named_without_host_or_path():
    here = machine.this_machine("build 1", gpu=False)
    assert here.build == "build 1"
    assert here.backend == "CPU"
    assert machine.this_machine("build 1", gpu=True).backend == "GPU"
    assert 1 <= here.cores <= (psutil.cpu_count() or 1)
    assert socket.gethostname() not in repr(here)


def test_a_busy_neighbour_is_noticed():
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        busy = machine.busy_elsewhere(0.5)
    finally:
        spinner.kill()
        spinner.wait()
    assert busy > 0.3


def test_own_work_is_not_somebody_elses(monkeypatch):
    """One core of this process's time and the rest idle leaves nothing for others."""
    readings = iter([(0.0, 0.0, 0.0), (1.0, machine.psutil.cpu_count() - 1.0, 1.0)])
    monkeypatch.setattr(machine.CoreWatch, "_now", staticmethod(lambda: next(readings)))
    assert machine.CoreWatch().busy_elsewhere() == pytest.approx(0.0)
