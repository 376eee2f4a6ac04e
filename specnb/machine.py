"""What this machine is and whether something else is using it. Never a host name or a path."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

import psutil

from .records import Machine


def this_machine(build: str, *, gpu: bool) -> Machine:
    """This computer in a few words. build, gpu: what ``backend.build_info`` and ``backend.gpu_offload`` say."""
    return Machine(
        name=_processor_name(),
        cores=usable_cores(),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        os=f"{platform.system()} {platform.machine()}",
        backend="GPU" if gpu else "CPU",
        build=build,
    )


def usable_cores() -> int:
    """Physical cores this process may use; the thread count that decodes fastest on most machines."""
    allowed = usable_processors()
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def usable_processors() -> int:
    """Processors this process may use, as the system counts them: a core that runs two threads is two."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class CoreWatch:
    """Watches, from its creation on, how many cores other processes keep busy.

    llama.cpp's threads meet at spinning barriers after every operation. When another process
    holds one of their cores, a pass can take a hundred times as long, so measuring has to know.
    Time stolen by a virtual machine's host counts as busy elsewhere.
    """

    def __init__(self) -> None:
        self._start = self._now()

    def busy_elsewhere(self) -> float:
        """Cores busy with other work since the creation, on average. Needs some milliseconds to have passed."""
        wall, idle, own = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return max(0.0, (psutil.cpu_count() or 1) - (idle + own) / wall) if wall > 0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float, float]:
        times = psutil.cpu_times()
        return time.perf_counter(), times.idle + getattr(times, "iowait", 0.0), time.process_time()


def busy_elsewhere(seconds: float = 0.2) -> float:
    """Cores that other processes keep busy while this one sleeps for ``seconds``."""
    watch = CoreWatch()
    time.sleep(seconds)
    return watch.busy_elsewhere()


def resident_mib() -> float:
    """Memory this process holds now, in MiB."""
    return psutil.Process().memory_info().rss / 2**20


def _processor_name() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Hardware")):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
