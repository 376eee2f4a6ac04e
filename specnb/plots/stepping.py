"""One step of a round: text, draft, the target's rows and both caches, cell under cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from .. import messages
from ..render import INK, LiveFigure, exclusive, legible
from ..stepping import TAIL, Cell, Mark, Phase, Step, draft_cache, draft_cells, target_cache, target_cells, text_cells
from .style import (
    AVERAGE_ADVANCE,
    BLUE,
    GREEN,
    GREY,
    MUTED_TEXT,
    ORANGE,
    PALE,
    SMALL,
    VERMILLION,
    WARNING_TEXT,
    axes_of,
    label_of,
    legend_below,
    whole_ticks,
)

HEIGHT_IN, LEFT_IN, RIGHT_IN = 4.8, 1.15, 0.2
TEXT_ROW, DRAFT_ROW, TARGET_ROW, TARGET_CACHE_ROW, DRAFT_CACHE_ROW = 0.0, 1.45, 2.75, 3.95, 4.85
_ROWS = {
    TEXT_ROW: messages.STEP_TEXT_ROW,
    DRAFT_ROW: messages.STEP_DRAFT_ROW,
    TARGET_ROW: messages.STEP_TARGET_ROW,
    TARGET_CACHE_ROW: messages.STEP_TARGET_CACHE_ROW,
    DRAFT_CACHE_ROW: messages.STEP_DRAFT_CACHE_ROW,
}
CELL_WIDTH, CELL_HEIGHT = 0.92, 0.76
PADDING_IN = 0.05
_OUT_OF_VIEW = (-99.0, -99.0)

_LOOKS: Mapping[Mark, dict[str, object]] = {
    Mark.TEXT: {"facecolor": "white", "edgecolor": GREY},
    Mark.PENDING: {"facecolor": "#fdf1d6", "edgecolor": ORANGE, "linewidth": 2.2},
    Mark.DRAFTED: {"facecolor": "white", "edgecolor": BLUE, "linestyle": "--"},
    Mark.KEPT: {"facecolor": "#d6e9f8", "edgecolor": BLUE},
    Mark.REFUSED: {"facecolor": "#fbe3d6", "edgecolor": VERMILLION, "linestyle": "-."},
    Mark.UNTESTED: {"facecolor": PALE, "edgecolor": GREY, "linestyle": ":"},
    Mark.BELOW_P_MIN: {"facecolor": "white", "edgecolor": VERMILLION, "linestyle": ":"},
    Mark.UNREAD: {"facecolor": "white", "edgecolor": GREY, "linestyle": "--"},
    Mark.OWN: {"facecolor": "#d5efe6", "edgecolor": GREEN, "linewidth": 1.8},
    Mark.NOT_LOOKED_AT: {"facecolor": PALE, "edgecolor": GREY, "linestyle": ":"},
    Mark.HELD: {"facecolor": "#e4e4e4", "edgecolor": "#666666"},
    Mark.REMOVED: {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "//"},
    Mark.NOT_FED: {"facecolor": "white", "edgecolor": ORANGE, "linestyle": "--"},
}
_PLAIN = {"linewidth": 1.0, "linestyle": "-", "hatch": None}
_SIGNS = {True: (messages.STEP_SAME, BLUE), False: (messages.STEP_DIFFERENT, WARNING_TEXT)}
_STRUCK = (Mark.REFUSED,)
_FAINT = (Mark.UNTESTED, Mark.NOT_LOOKED_AT, Mark.UNREAD, Mark.REMOVED, Mark.NOT_FED)


@exclusive
def plot_step(step: Step, texts: Mapping[int, str], *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """The round as far as it has come. texts: token -> what it reads as; a token that it lacks is told by its number.

    Cells of one column belong to one place in the text; a target's row stands under the token that it is compared with.
    """
    ax = axes_of(ax, height_in=HEIGHT_IN, left_in=LEFT_IN, right_in=RIGHT_IN, bottom_in=1.2)
    _Stage(ax, max(1, len(step.round.cycle.drafted)), texts, recorded).show(step)
    return ax


@exclusive
def live_step(longest: int, texts: Mapping[int, str], *, recorded: str | None = None) -> LiveFigure:
    """The same for buttons: ``update(step=...)``. longest: tokens of the longest draft that is to fit."""
    ax = axes_of(None, height_in=HEIGHT_IN, left_in=LEFT_IN, right_in=RIGHT_IN, bottom_in=1.2)
    stage = _Stage(ax, longest, texts, recorded)
    return LiveFigure(ax, stage.artists, stage.show)


class _Stage:
    """The cells of every row and place, made once; a step shows some of them."""

    def __init__(self, ax: Axes, longest: int, texts: Mapping[int, str], recorded: str | None) -> None:
        self._texts, self._recorded = texts, recorded
        places = range(-TAIL, longest + 2)
        _frame(ax, places)
        column_in, row_in = _unit_in(ax)
        width_in, height_in = CELL_WIDTH * column_in, CELL_HEIGHT * row_in
        upright = width_in < height_in
        self._characters = int(72.0 * (max(width_in, height_in) - PADDING_IN) / (AVERAGE_ADVANCE * SMALL))
        self._title = ax.set_title("", pad=22.0)
        self._label = ax.annotate(
            "", (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL, color=MUTED_TEXT
        )
        centred = {"ha": "center", "va": "center", "size": SMALL}
        rotation = 90 if upright else 0
        self._cells = {
            (y, place): (_box(ax, place, y), ax.text(place, y, "", zorder=4, rotation=rotation, **centred))
            for y in _ROWS
            for place in places
        }
        strikes = LineCollection([], colors=VERMILLION, linewidths=1.6, zorder=5)
        self._strikes = ax.add_collection(strikes, autolim=False)
        steep = {"rotation": 90, "size": SMALL} if column_in < 0.33 else {"size": SMALL}
        self._confidences = {
            place: ax.text(place, DRAFT_ROW - 0.5, "", ha="center", va="bottom", color=MUTED_TEXT, **steep)
            for place in places
        }
        self._signs = {
            place: ax.text(place, (DRAFT_ROW + TARGET_ROW) / 2, "", **(centred | {"size": 13, "weight": "bold"}))
            for place in places
        }
        self._no_cache = ax.text(
            -TAIL - 0.4, DRAFT_CACHE_ROW, messages.STEP_NO_DRAFT_CACHE, va="center", size=SMALL, color=MUTED_TEXT
        )

    @property
    def artists(self) -> list[Artist]:
        cells = [artist for pair in self._cells.values() for artist in pair]
        told = [self._title, self._label, self._no_cache, *self._confidences.values(), *self._signs.values()]
        return [*cells, *told, self._strikes]

    def show(self, step: Step) -> None:
        self._title.set_text(legible(step_title(step, self._texts)))
        self._label.set_text(_label(step, self._recorded))
        caches = draft_cache(step)
        self._no_cache.set_visible(caches is None)
        self._show_cells(step, {
            TEXT_ROW: text_cells(step), DRAFT_ROW: draft_cells(step), TARGET_ROW: target_cells(step),
            TARGET_CACHE_ROW: target_cache(step), DRAFT_CACHE_ROW: caches or (),
        })  # fmt: skip
        confidences = dict(enumerate((step.round.cycle.confidences or ())[: step.drafted], 1))
        for place, text in self._confidences.items():
            text.set_text(messages.step_confidence(confidences[place]) if place in confidences else "")
        for place, sign in self._signs.items():
            same = place <= step.round.cycle.kept
            sign.set_text("" if not 1 <= place <= step.tested else _SIGNS[same][0])
            sign.set_color(_SIGNS[same][1])

    def _show_cells(self, step: Step, rows: Mapping[float, Sequence[Cell]]) -> None:
        shown = {(y, cell.place): cell for y, cells in rows.items() for cell in cells}
        for where, (box, text) in self._cells.items():
            cell = shown.get(where)
            box.set_visible(cell is not None)
            text.set_visible(cell is not None)
            if cell is not None:
                box.set(**_PLAIN | _LOOKS[cell.mark])
                text.set_text(_shortened(_text(cell, self._texts, step.round.p_min), self._characters))
                text.set_color(MUTED_TEXT if cell.mark in _FAINT else INK)
                text.set_weight("bold" if cell.mark is Mark.PENDING else "normal")
        struck = [(y, place) for (y, place), cell in shown.items() if cell.mark in _STRUCK]
        self._strikes.set_segments([((place - 0.4, y), (place + 0.4, y)) for y, place in struck])


def _frame(ax: Axes, places: range) -> None:
    """What no step changes: rows, places, and what the looks of a cell mean."""
    ax.set_xlim(places[0] - 0.5, places[-1] + 0.5)
    ax.set_ylim(DRAFT_CACHE_ROW + 0.5, TEXT_ROW - 0.5)
    ax.set_yticks(list(_ROWS), list(_ROWS.values()))
    whole_ticks(ax, places)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(messages.STEP_AXIS)
    for mark, name in messages.STEP_MARKS.items():
        ax.add_patch(Rectangle(_OUT_OF_VIEW, 0, 0, label=name, **_LOOKS[Mark(mark)]))
    legend_below(ax, 3)


def _box(ax: Axes, place: int, y: float) -> Rectangle:
    corner = (place - CELL_WIDTH / 2, y - CELL_HEIGHT / 2)
    return ax.add_patch(Rectangle(corner, CELL_WIDTH, CELL_HEIGHT, zorder=2))


def _unit_in(ax: Axes) -> tuple[float, float]:
    """Inches of one column and one row."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    box, (width_in, height_in) = ax.get_position(), ax.figure.get_size_inches()
    return box.width * width_in / (right - left), box.height * height_in / (bottom - top)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def _text(cell: Cell, texts: Mapping[int, str], p_min: float) -> str:
    if cell.token is not None:
        return _read(cell.token, texts)
    if cell.mark is Mark.BELOW_P_MIN:
        return messages.step_below(p_min)
    return messages.STEP_UNREAD if cell.mark is Mark.UNREAD else messages.STEP_NOTHING


def _read(token: int, texts: Mapping[int, str]) -> str:
    return legible(messages.token_shown(texts[token])) if token in texts else messages.token_unknown(token)


def _label(step: Step, recorded: str | None) -> str:
    told = step.round
    where = messages.step_round(told.number, told.of, told.cycle.drafter, told.k, told.p_min)
    return where if recorded is None else f"{where} · {label_of(recorded)}"


def step_title(step: Step, texts: Mapping[int, str]) -> str:
    """What happens at this step, in a sentence without its full stop."""
    cycle, place = step.round.cycle, max(step.tested, 1)
    match step.phase:
        case Phase.START:
            return messages.STEP_START
        case Phase.DRAFT:
            return messages.step_drafted(step.drafted, _read(cycle.drafted[step.drafted - 1], texts))
        case Phase.STOP:
            return messages.step_stopped(step.round.stop.value, step.drafted, step.round.p_min)
        case Phase.PASS:
            return messages.step_pass(cycle.n_rows)
        case Phase.TEST if step.refuses:
            drafted, own = (_read(tokens[place - 1], texts) for tokens in (cycle.drafted, cycle.emitted))
            return messages.step_refused(place, drafted, own)
        case Phase.TEST:
            return messages.step_kept(place, _read(cycle.drafted[place - 1], texts))
        case Phase.OWN if not cycle.drafted:
            return messages.STEP_PLAIN
        case Phase.OWN:
            return messages.STEP_OWN if cycle.kept < len(cycle.drafted) else messages.STEP_BONUS
    return messages.step_rolled_back(step.round.removed, len(cycle.emitted))


def tell_step(step: Step, texts: Mapping[int, str]) -> str:
    """What the cells show, in words."""
    target = target_cells(step)
    draft, said = (
        [(_read(cell.token, texts), messages.STEP_MARKS.get(cell.mark.value, "")) for cell in cells]
        for cells in (_known(draft_cells(step)), _known(target))
    )
    left = [sum(cell.mark is mark for cell in target) for mark in (Mark.UNREAD, Mark.NOT_LOOKED_AT)]
    caches = ((messages.STEP_TARGET_CACHE_ROW, target_cache(step)), (messages.STEP_DRAFT_CACHE_ROW, draft_cache(step)))
    told = [(whose, _held(step, cells), _removed(cells)) for whose, cells in caches if cells is not None]
    return messages.step_told(draft, said, *left, told)


def _known(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.token is not None]


def _held(step: Step, cells: Sequence[Cell]) -> int:
    """Tokens in a cache, those before the cells included: a cache has no gaps."""
    behind = 1 if step.round.draft_cache is None else step.round.draft_cache.behind
    last = max((cell.place for cell in cells if cell.mark is Mark.HELD), default=-behind)
    return max(0, len(step.round.context) + last)


def _removed(cells: Sequence[Cell]) -> int:
    return sum(cell.mark is Mark.REMOVED for cell in cells)


def describe_step(step: Step, texts: Mapping[int, str]) -> str:
    """Alt text for ``plot_step``."""
    return messages.step_alt(step_title(step, texts), _label(step, None), tell_step(step, texts))
