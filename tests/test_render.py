"""Pixels: of fixed size, the same every time, safe from threads, and never without words."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import matplotlib
import numpy as np
import pytest
from PIL import Image

from specnb import messages, render


def drawing(seed: int = 0):
    """A figure with text, lines, markers and a legend: whatever threads could break."""
    with render.lock:
        ax = render.new_figure(height_in=3.0).add_subplot()
        points = np.random.default_rng(seed).random(20)
        ax.plot(points, "o-", label=f"series {seed}")
        ax.set_title(f"α × N, $seed$ {seed}")
        ax.legend()
    return ax


def live() -> render.LiveFigure:
    ax = drawing(99)
    (line,) = ax.plot([], [], "s")
    text = ax.text(0.5, 0.5, "", transform=ax.transAxes)

    def move(*, x: float) -> None:
        line.set_data([x], [0.5])
        text.set_text(messages.number(x))

    return render.LiveFigure(ax, [line, text], move)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_a_png_holds_exactly_what_was_drawn():
    ax = drawing()
    expected = np.asarray(ax.figure.canvas.buffer_rgba()) if render.png(ax) else None
    assert np.array_equal(pixels(render.png(ax)), expected[:, :, :3])
    assert Image.open(io.BytesIO(render.png(ax))).format == "PNG"


def test_a_png_is_twice_as_large_as_it_is_shown():
    ax = drawing()
    assert render.size_css_px(ax) == render.size_css_px(ax.figure) == (720, 300)
    assert pixels(render.png(ax.figure)).shape == (600, 1440, 3)


def test_the_same_figure_gives_the_same_bytes():
    ax = drawing()
    assert render.png(ax) == render.png(ax.figure) == render.png(drawing())
    assert render.png(ax) != render.png(drawing(1))


def test_the_style_of_the_reader_changes_nothing():
    plain = render.png(drawing_in_style())
    with matplotlib.rc_context({"font.size": 20.0, "axes.facecolor": "black", "lines.linewidth": 9.0}):
        assert render.png(drawing_in_style()) == plain


@render.exclusive
def drawing_in_style():
    return drawing()


def test_pictures_that_are_stored_are_small_and_look_the_same():
    ax = drawing()
    small = render._small_png(ax)
    assert len(small) < len(render.png(ax)) / 2
    difference = np.abs(pixels(small).astype(int) - pixels(render.png(ax)))
    assert difference.max() <= 8 and difference.mean() < 0.5
    assert (pixels(small)[0, 0] == 255).all()


class Shown:
    """Stands in for IPython's display and keeps what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(render, "display", self)

    def __call__(self, data: dict, *, raw: bool, metadata: dict) -> None:
        assert raw
        self.data, self.metadata = data, metadata


def test_what_is_shown_has_its_alt_text_in_every_form(monkeypatch):
    shown = Shown(monkeypatch)
    render.show(drawing(), 'T(N): 18.2 ms at N=1, "cheap" & <flat>')
    assert shown.data["text/plain"] == 'T(N): 18.2 ms at N=1, "cheap" & <flat>'
    assert shown.metadata["image/png"]["alt"] == shown.data["text/plain"]
    assert 'alt="T(N): 18.2 ms at N=1, &quot;cheap&quot; &amp; &lt;flat&gt;"' in shown.data["text/html"]
    assert 'width="720" height="300"' in shown.data["text/html"]
    assert shown.metadata["image/png"]["width"] == 720
    assert pixels(base64.b64decode(shown.data["image/png"])).shape == (600, 1440, 3)
    assert shown.data["image/png"] in shown.data["text/html"]


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_a_figure_without_alt_text_is_refused(monkeypatch, alt):
    Shown(monkeypatch)
    with pytest.raises(ValueError, match="needs an alt text"):
        render.show(drawing(), alt)


def test_a_live_figure_depends_on_its_values_alone():
    figure = live()
    first = figure.update(x=3.0)
    assert figure.update(x=5.0) != first
    assert figure.update(x=3.0) == first == live().update(x=3.0)
    assert figure.size_css_px == (720, 300)


def test_a_live_figure_draws_what_a_whole_drawing_would():
    figure = live()
    fast = figure.update(x=3.0)
    for artist in figure._moving:
        artist.set_animated(False)
    difference = np.abs(pixels(render.png(figure.figure)).astype(int) - pixels(fast))
    assert (difference > 0).mean() < 0.001  # the moving ones lie on top, so an overlap may differ


def test_an_error_in_a_redraw_frees_the_lock():
    with pytest.raises(TypeError):
        live().update(unknown=1)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(render.png, drawing()).result(timeout=30)


def test_eight_threads_draw_while_a_slider_is_dragged():
    """As JupyterLab does it: widget messages on threads, a cell drawing meanwhile."""
    expected = [render.png(drawing(seed)) for seed in range(8)]
    places = [float(x) for x in range(10)]
    figure = live()
    expected_live = {x: figure.update(x=x) for x in places}
    done = Event()

    def draw(seed: int) -> int:
        return sum(render.png(drawing(seed)) == expected[seed] for _ in range(20))

    def drag() -> int:
        moves = 0
        while not done.is_set():
            x = places[moves % len(places)]
            assert figure.update(x=x) == expected_live[x]
            moves += 1
        return moves

    with ThreadPoolExecutor(9) as threads:
        dragged = threads.submit(drag)
        try:
            assert list(threads.map(draw, range(8))) == [20] * 8
        finally:
            done.set()
        assert dragged.result() > 0


def test_characters_that_the_font_lacks_are_left_out():
    assert render.legible("Lei阅读, α × 8→9 ²…") == "Lei, α × 8→9 ²…"


def test_rendering_never_imports_pyplot():
    script = (
        "import sys; from specnb import plots, render; "
        "assert render.png(plots.plot_cycle(3, 1.0, 9.0)); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
