"""What an unfinished benchmark or sweep has measured so far, so that the next start goes on from there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEPT_S = 12 * 3600.0
"""Older entries are measured anew: the machine may have been restarted, cooled or loaded since."""


class Journal:
    """Entries in the order added, one JSON object a line; a line cut short by a kill is skipped.

    key: what else must be the same for an entry to count (build, weights, plan); entries of another
    key are neither given nor touched. Errors of the disk are raised as they are: nothing was lost
    but the entry being added.
    """

    def __init__(self, path: Path, *, key: str) -> None:
        self.path = path
        self._key = key

    def entries(self) -> Iterator[Any]:
        """What was added under this key within the last half day, oldest first."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # it was killed while it wrote this line
            if entry.get("key") == self._key and "entry" in entry and time.time() - entry["at"] < KEPT_S:
                yield entry["entry"]

    def add(self, entry: object) -> None:
        """Keeps one entry: anything that JSON can hold. Tuples come back as lists."""
        line = json.dumps({"key": self._key, "at": time.time(), "entry": entry}, allow_nan=False)
        with self.path.open("a+b") as file:
            file.write(b"" if self._ends_a_line(file) else b"\n")
            file.write(f"{line}\n".encode())

    def end(self) -> None:
        """It is complete: the next one measures everything anew."""
        self.path.unlink(missing_ok=True)

    @staticmethod
    def _ends_a_line(file: Any) -> bool:
        """Whether the next entry would start a line of its own; after a kill it may not."""
        if file.seek(0, 2) == 0:
            return True
        file.seek(-1, 2)
        return file.read(1) == b"\n"
