"""Which run of ``train.py`` a checkpoint belongs to: only the same one may go on from it. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

Terms = dict[str, object]
"""What makes two runs the same one: the plan, and the weights that training began from."""


def take_up(checkpoint: Path, terms: Terms, read: Callable[[Path], Mapping]) -> Mapping | None:
    """What was saved on these terms; None where nothing was. A checkpoint of another run is kept under another name.

    Or a finished run would be taken for the beginning of the next one, which would then learn nothing.
    """
    if not checkpoint.exists():
        return None
    saved = read(checkpoint)
    theirs = saved.get("terms")
    if theirs == terms:
        return saved
    kept = _set_aside(checkpoint)
    print(
        f"{checkpoint.name} is of another run ({_differences(theirs, terms)}). It is kept as {kept.name}, and training "
        "begins anew.",
        flush=True,
    )
    return None


def _differences(theirs: Terms | None, ours: Terms) -> str:
    if theirs is None:
        return "it does not say of which"
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return ", ".join(f"{name} {theirs.get(name)!r} there and {ours.get(name)!r} here" for name in names)


def _set_aside(path: Path) -> Path:
    """Gives a file the first free name of ``eagle.1.pt``, ``eagle.2.pt``, ..."""
    free = next(name for i in count(1) if not (name := path.with_name(f"{path.stem}.{i}{path.suffix}")).exists())
    return path.rename(free)
