"""Where a notebook's measurements come from: this machine, now, or the recorded run when there is no model.

A notebook starts with ``nb = notebook.start("01")`` and asks ``nb.measure(...)`` for what it shows.
Re-running a cell measures again. With SPECNB_RECORD=1 every live measurement is also saved under
data/runs/, which is how the recorded runs are made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from . import backend, machine, models, store
from .alone import alone
from .backend import ModelError, SessionError
from .lab import Lab
from .measure import CONTENDED_CORES

Record = TypeVar("Record")

RUNS = store.DATA / "runs"


class Notebook:
    """number: "01". lab: the open target, or None when no model can be used here; then everything is recorded.

    recorded: what plots take as ``recorded``: "" for figures measured here and now, else when and where.
    """

    def __init__(self, number: str, lab: Lab | None) -> None:
        self.number = number
        self.lab = lab
        self.recorded = ""

    @property
    def live(self) -> bool:
        return self.lab is not None

    def measure(self, name: str, kind: type[Record], experiment: Callable[[Lab], Record]) -> Record:
        """What ``experiment`` measures on the lab, or the recorded run of that name.

        Raises BusyError while a widget lets a model work.
        """
        path = self._path(name)
        if self.lab is None:
            saved = store.load_saved(path, kind)
            self.recorded = saved.recorded
            return saved.record
        with alone():
            record = experiment(self.lab)
        if os.environ.get("SPECNB_RECORD") == "1":
            owner = (
                None
                if hasattr(record, "machine")
                else machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())
            )
            store.save(record, path, machine=owner)
        return record

    def measure_each(
        self, name: str, kind: type[Record], labels: Iterable[str], experiment: Callable[[Lab, str], Record]
    ) -> dict[str, Record]:
        """One measurement per label, e.g. per weight format."""
        return {
            label: self.measure(f"{name}-{label.lower()}", kind, lambda lab, label=label: experiment(lab, label))
            for label in labels
        }

    def _path(self, name: str) -> Path:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise ValueError(f"A recording's name is letters, digits, dots and dashes; got {name!r}.")
        return RUNS / f"{self.number}-{name}.json"


def start(
    number: str,
    *,
    target: str | None = None,
    draft: str | None = None,
    format: str | None = None,
    threads: int | None = None,
    n_ctx: int = 2048,
) -> Notebook:
    """Opens the target for one notebook and says in one line what it works with.

    target, draft: a GGUF path or a hub id of yours; left out, SPECNB_TARGET and SPECNB_DRAFT, then
    the embedded model. format: a weight format to derive, for the embedded model only. threads:
    as many as there are physical cores unless given. n_ctx: the most tokens of prompt and answer.
    Raises ValueError for an unknown format.
    """
    if format is not None and format not in models.FORMATS:
        raise ValueError(f"{format!r} is not offered; choose one of {', '.join(models.FORMATS)}.")
    try:
        lab = Lab(target, draft=draft, threads=threads, n_ctx=n_ctx)
        if models.resolve_draft(draft):
            lab.drafter("draft_model")  # a draft that does not fit is told here, not in a later cell
        if format and lab.embedded:
            lab.use_format(format)
    except (ModelError, SessionError) as reason:
        print(f"No model can be used here, so this notebook shows recorded runs. {reason}")
        return Notebook(number, None)
    info = lab.model.info
    print(
        f"Target: {info.name}, {info.format}, {info.n_parameters / 1e6:.0f} million parameters, "
        f"{info.weight_bytes / 2**20:.0f} MiB of weights, {lab.threads} threads. Figures are measured here, now."
    )
    busy = machine.busy_elsewhere()
    if busy > CONTENDED_CORES:
        print(
            f"Other programs keep {busy:.1f} cores busy, so the figures below will be wrong, by a lot where threads "
            "wait for each other. Close them and run again, or use fewer threads: notebook.start(..., threads=1)."
        )
    return Notebook(number, lab)
