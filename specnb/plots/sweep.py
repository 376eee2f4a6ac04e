"""Heat maps of a sweep: k against p_min of one drafter on one kind, and drafters against kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle

from .. import messages
from ..records import Setting, Sweep
from ..render import exclusive
from .style import SMALL, axes_of, head, ink_on, label_of

PALETTE = "PuOr_r"
"""Orange is faster than plain decoding, violet slower, white the same: told apart by every colour vision, and by number
in any case."""

WIDEST = (1 / 3, 3.0)
"""Speedups at which the colours end; beyond them only the number grows."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """speedup: of the setting on the kind. how: "run" beside plain decoding; else the speedup is a forecast, which
    "screened" ones share with "forecast" ones: their single run had no plain decoding beside it."""

    setting: Setting
    speedup: float
    how: Literal["run", "screened", "forecast"]


@exclusive
def plot_sweep(sweep: Sweep, drafter: str, kind: str, *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """k x p_min of one drafter on one prompt kind: times as fast as plain decoding.

    Cells run beside plain decoding are framed, and the fastest of them has a star; the others are forecasts.
    ValueError where the sweep has no point of them.
    """
    cells = [cell for cell in _cells(sweep, kind) if cell.setting.drafter == drafter]
    if not cells:
        raise ValueError(messages.no_cells(drafter, kind))
    ks = sorted({cell.setting.k for cell in cells})
    p_mins = sorted({cell.setting.p_min for cell in cells})
    ax = axes_of(ax, height_in=1.75 + 0.45 * len(p_mins), left_in=1.0, bottom_in=0.85)
    placed = {(p_mins.index(cell.setting.p_min), ks.index(cell.setting.k)): cell for cell in cells}
    _draw(ax, placed, (len(p_mins), len(ks)), starred=[_fastest_run(cells)])
    ax.set_xticks(range(len(ks)), [str(k) for k in ks])
    ax.set_yticks(range(len(p_mins)), [f"{p_min:g}" for p_min in p_mins])
    ax.set_xlabel(messages.SWEEP_K_AXIS)
    ax.set_ylabel(messages.SWEEP_P_MIN_AXIS)
    head(ax, messages.sweep_title(drafter, kind), _label(sweep, recorded))
    return ax


def describe_sweep(sweep: Sweep, drafter: str, kind: str) -> str:
    """Alt text for ``plot_sweep``."""
    cells = [cell for cell in _cells(sweep, kind) if cell.setting.drafter == drafter]
    if not cells:
        raise ValueError(messages.no_cells(drafter, kind))
    told = [(_of_k(cell.setting), cell.speedup, cell.how) for cell in cells]
    best = _fastest_run(cells)
    fastest = None if best is None else (_of_k(best.setting), best.speedup)
    return messages.sweep_alt(messages.sweep_title(drafter, kind), told, fastest, None)


@exclusive
def plot_drafters_by_kind(sweep: Sweep, *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Each drafter's best cell on each kind, with its k.

    Cells run beside plain decoding are framed, and the fastest of them on a kind has a star; the others are forecasts.
    ValueError for a sweep without points.
    """
    names, best = _best_of_each(sweep)
    if not best:
        raise ValueError(messages.no_rows("trials"))
    ax = axes_of(ax, height_in=1.75 + 0.62 * len(names), left_in=1.45, bottom_in=0.85)
    placed = {(names.index(name), sweep.kinds.index(kind)): cell for (name, kind), cell in best.items()}
    starred = [_fastest_run([cell for (_, of), cell in best.items() if of == kind]) for kind in sweep.kinds]
    _draw(ax, placed, (len(names), len(sweep.kinds)), starred=starred, with_k=True)
    ax.set_xticks(range(len(sweep.kinds)), sweep.kinds)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel(messages.SWEEP_KIND_AXIS)
    head(ax, messages.drafter_kind_title(), _label(sweep, recorded))
    return ax


def describe_drafters_by_kind(sweep: Sweep) -> str:
    """Alt text for ``plot_drafters_by_kind``."""
    _names, best = _best_of_each(sweep)
    told = [
        (f"{name} on {kind} at {_of_k(cell.setting)}", cell.speedup, cell.how) for (name, kind), cell in best.items()
    ]
    return messages.sweep_alt(messages.drafter_kind_title(), told, None, None)


def _cells(sweep: Sweep, kind: str) -> list[_Cell]:
    """Every speculative setting on a kind: by runs beside plain decoding where there are any, else by its forecast."""
    run, forecast, tried = sweep.run_speedups(kind), sweep.forecast_speedups(kind), set(sweep.measured(kind))
    found = []
    for setting in sweep.settings:
        if setting in run:
            found.append(_Cell(setting, run[setting], "run"))
        elif setting in forecast:
            found.append(_Cell(setting, forecast[setting], "screened" if setting in tried else "forecast"))
    return found


def _fastest_run(cells: Sequence[_Cell]) -> _Cell | None:
    return max((cell for cell in cells if cell.how == "run"), key=lambda cell: cell.speedup, default=None)


def _rank(cell: _Cell) -> tuple[bool, float, bool]:
    """Cells that were run before forecast ones, then the faster; of equal forecasts the one that was screened."""
    return cell.how == "run", cell.speedup, cell.how == "screened"


def _best_of_each(sweep: Sweep) -> tuple[list[str], dict[tuple[str, str], _Cell]]:
    """(drafters, (drafter, kind) -> its best cell, one that was run where there is any)."""
    names = list(dict.fromkeys(setting.drafter for setting in sweep.settings if not setting.plain))
    best: dict[tuple[str, str], _Cell] = {}
    for kind in sweep.kinds:
        for cell in sorted(_cells(sweep, kind), key=_rank):
            best[cell.setting.drafter, kind] = cell
    return names, best


def _draw(
    ax: Axes,
    placed: dict[tuple[int, int], _Cell],
    shape: tuple[int, int],
    *,
    starred: Sequence[_Cell | None],
    with_k: bool = False,
) -> None:
    values = np.full(shape, np.nan)
    for place, cell in placed.items():
        values[place] = np.log2(cell.speedup)
    low, high = np.log2(WIDEST)
    image = ax.imshow(np.clip(values, low, high), cmap=PALETTE, norm=TwoSlopeNorm(0.0, low, high), aspect="auto")
    for (row, column), cell in placed.items():
        ink = ink_on(image.to_rgba(np.clip(np.log2(cell.speedup), low, high)))
        star = any(cell is each for each in starred)
        mark = "★ " if star else "○ " if cell.how == "screened" else ""
        of_k = "\n" + _of_k(cell.setting).replace(", ", "\n") if with_k else ""
        text = f"{mark}{messages.speedup(cell.speedup)}{of_k}"
        ax.text(
            column, row, text, ha="center", va="center", fontsize=SMALL, color=ink,
            fontweight="bold" if star else "normal",
        )  # fmt: skip
        if cell.how == "run":
            frame = Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, fill=False, edgecolor=ink, linewidth=1.4)
            ax.add_patch(frame)
    ax.grid(False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _label(sweep: Sweep, recorded: str | None) -> str:
    legend = messages.SWEEP_LEGEND if sweep.forecasts else messages.SWEEP_LEGEND_MEASURED
    return " · ".join(filter(None, [label_of(recorded), legend]))


def _of_k(setting: Setting) -> str:
    return f"k={setting.k}" + (f", p_min={setting.p_min:g}" if setting.p_min else "")
