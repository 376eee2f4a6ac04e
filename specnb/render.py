"""The one place that turns a figure into pixels, and the one place that shows it.

JupyterLab delivers widget messages on threads while a cell runs, and matplotlib is not
thread-safe (pyplot's state, the math-text parser, font caches, tight bounding boxes). So: figures
are plain objects on an Agg canvas without pyplot, text is never parsed as math, margins are fixed
instead of fitted, and building and drawing both happen under ``lock``. Whatever a reader's own
matplotlib style is, these figures look the same.
"""

from __future__ import annotations

import base64
import html
import io
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache, wraps
from threading import RLock
from typing import ParamSpec, TypeVar

import matplotlib
import numpy as np
from IPython.display import display
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image

from . import messages

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

WIDTH_IN = 7.2
CSS_PX_PER_INCH = 100
"""An inch of a figure is 100 CSS pixels wide on the page: 7.2 inches fill JupyterLab's column."""

DPI = 2 * CSS_PX_PER_INCH
"""Two pixels for each CSS pixel, for screens that have them."""

INK = "#1a1a1a"
FONT = "DejaVu Sans"
"""Comes with matplotlib, so that a figure has the same pixels everywhere."""

_STYLE = {
    "figure.facecolor": "white",
    "font.family": FONT,
    "font.size": 10.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "axes.labelsize": 10.0,
    "axes.titlesize": 12.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 24.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "legend.borderaxespad": 0.0,
    "hatch.linewidth": 0.8,
    "lines.markersize": 6.0,
}
# Settings that are about windows and back ends are nobody's style, and setting them has effects.
_NOT_STYLE = ("backend", "interactive", "webagg", "tk.", "toolbar", "date.", "docstring", "timezone")
_RC = {
    **{name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_NOT_STYLE)},
    **_STYLE,
}

lock = RLock()
"""Held while anything is built or drawn; a plot may call another one."""


def exclusive(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Runs a function that builds or draws: alone, and in the package's style."""

    @wraps(function)
    def alone(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with lock, matplotlib.rc_context(_RC):
            return function(*args, **kwargs)

    return alone


@exclusive
def new_figure(
    width_in: float = WIDTH_IN,
    height_in: float = 4.0,
    *,
    left_in: float = 0.75,
    right_in: float = 0.3,
    top_in: float = 0.78,
    bottom_in: float = 0.6,
) -> Figure:
    """An empty figure of fixed size and fixed margins (inches) on an Agg canvas; pyplot never hears of it."""
    figure = Figure(figsize=(width_in, height_in), dpi=DPI)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(
        left=left_in / width_in,
        right=1.0 - right_in / width_in,
        top=1.0 - top_in / height_in,
        bottom=bottom_in / height_in,
    )
    return figure


@exclusive
def png(drawing: Figure | Axes) -> bytes:
    """The whole figure as PNG, encoded for speed: the same figure always gives the same bytes."""
    return _encoded(_drawn(drawing))


def show(drawing: Figure | Axes, alt: str) -> None:
    """Displays the figure in a notebook with ``alt``, a text that says what the figure shows.

    JupyterLab and nbconvert's template for it drop the ``alt`` metadata of an ``image/png`` output
    but keep the ``<img alt>`` of a ``text/html`` one, in untrusted notebooks as well, and prefer
    HTML. Readers that skip HTML take the ``image/png`` (some with its ``alt`` metadata), terminals
    the ``text/plain``. So the output holds all three; what is stored twice is kept small by a
    palette of 256 colours.
    """
    if not alt.strip():
        raise ValueError(messages.NO_ALT)
    data = base64.b64encode(_small_png(drawing)).decode("ascii")
    width, height = size_css_px(drawing)
    image = (
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{html.escape(alt)}" '
        f'style="max-width: 100%; height: auto">'
    )
    display(
        {"image/png": data, "text/html": image, "text/plain": alt},
        raw=True,
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
    )


def size_css_px(drawing: Figure | Axes) -> tuple[int, int]:
    """(width, height) on the page in CSS pixels: half the PNG's, so that it is sharp on dense screens."""
    width_in, height_in = drawing.figure.get_size_inches()
    return round(width_in * CSS_PX_PER_INCH), round(height_in * CSS_PX_PER_INCH)


class LiveFigure:
    """A figure that is built once and redrawn often, for sliders.

    drawing: the figure, limits and labels final. moving: the artists that change. move: called with
    ``update``'s keyword arguments; moves them in place, and must set everything it ever sets, so
    that a picture depends on the values alone. Everything else is drawn once and kept as a
    background; moving artists therefore lie above all others.
    """

    @exclusive
    def __init__(self, drawing: Figure | Axes, moving: Sequence[Artist], move: Callable[..., None]) -> None:
        self.figure: Figure = drawing.figure
        self._moving = sorted(moving, key=lambda artist: artist.get_zorder())
        self._move = move
        for artist in self._moving:
            artist.set_animated(True)
        canvas = self.figure.canvas
        canvas.draw()
        self._background = canvas.copy_from_bbox(self.figure.bbox)

    @exclusive
    def update(self, **values: object) -> bytes:
        """The figure with these values as PNG bytes; any thread may call it."""
        self._move(**values)
        canvas = self.figure.canvas
        canvas.restore_region(self._background)
        for artist in self._moving:
            self.figure.draw_artist(artist)
        return _encoded(np.asarray(canvas.buffer_rgba()))

    @property
    def size_css_px(self) -> tuple[int, int]:
        """(width, height) for the image that shows it."""
        return size_css_px(self.figure)


def legible(text: str) -> str:
    """The text without characters that the figures' font lacks, which would be drawn as boxes."""
    return "".join(character for character in text if character.isspace() or _has_glyph(character))


@cache
def _has_glyph(character: str) -> bool:
    with lock:
        return get_font(findfont(FontProperties(family=FONT))).get_char_index(ord(character)) != 0


def _drawn(drawing: Figure | Axes) -> np.ndarray:
    """Pixels, shape (height, width, 4); a view that the next drawing overwrites."""
    canvas = drawing.figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _encoded(rgba: np.ndarray) -> bytes:
    """PNG (RFC 2083), 8-bit RGB, no row filter, fastest deflate.

    Written here because a redraw is mostly encoding: half of Pillow's time at its fastest setting,
    a fifth of matplotlib's, for the same size within a tenth.
    """
    height, width, _ = rgba.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = rgba[:, :, :3].reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


@exclusive
def _small_png(drawing: Figure | Axes) -> bytes:
    """The figure as PNG with a palette, a third of the size: for pictures that are stored."""
    colours = Image.fromarray(_drawn(drawing)[:, :, :3].copy()).quantize(256, Image.Quantize.MAXCOVERAGE, dither=0)
    stored = io.BytesIO()
    colours.save(stored, "png", optimize=True)
    return stored.getvalue()
