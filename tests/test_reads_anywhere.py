"""Pages, figures and widgets can be read by all: without colours, without a mouse, in the dark, on paper, aloud."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import ipywidgets
import nbformat
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from test_plots import FIGURES, M5, PACKAGE, run, spoken_literals
from toy_lab import PLAN, ToyLab

from specnb import cards, drafters, messages, render, store, widgets
from specnb.adaptive import Adaptive
from specnb.plots import ledger, style, sweep
from specnb.records import Cycle, Loop, TokenTexts

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(file for file in FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in file.parts)
PAGES = sorted([*FOLDER.rglob("*.md"), *FOLDER.parent.glob("*.md"), *FOLDER.parent.glob("data/**/*.md")])
EACH = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: str(file.relative_to(FOLDER)))

LEAST_CONTRAST, LARGE_CONTRAST = 4.5, 3.0
"""WCAG 2.2, success criterion 1.4.3 (AA); large is from 18 points on, or 14 in bold."""

LEAST_DIFFERENCE = 10.0
"""CIEDE2000 between two colours that nothing else tells apart. One is the least that is seen at all; ten is plain to
see on a marker of a few pixels."""

LEAST_LIGHTNESS = 10.0
"""The same in grey print, in CIE lightness from 0 to 100."""


# --- notebooks --------------------------------------------------------------------------------


@cache
def read(file: Path) -> nbformat.NotebookNode:
    return nbformat.read(file, as_version=4)


def widget_classes() -> list[str]:
    return [name for name in widgets.__all__ if isinstance(getattr(widgets, name), type)]


def alts(output: nbformat.NotebookNode) -> list[str]:
    """The alt text of every picture of an output; "" where one lacks it. Both readers of HTML and of PNG need one."""
    data, metadata = output.get("data", {}), output.get("metadata", {})
    found = [metadata.get(kind, {}).get("alt", "") for kind in data if kind.startswith("image/")]
    return found + images(data.get("text/html", ""))


def images(text: str) -> list[str]:
    return [alt_of.group(1) if (alt_of := re.search(r'\balt="([^"]*)"', tag)) else ""
            for tag in re.findall(r"<img\b[^>]*>", text)]  # fmt: skip


@EACH
def test_a_figure_with_alt_text_stands_before_every_widget_in_its_section(file: Path):
    makes_widget = re.compile(rf"\b({'|'.join(widget_classes())})\(")
    shown = False
    for cell in read(file).cells:
        if cell.cell_type == "markdown" and re.search(r"^#{1,3} ", cell.source, re.MULTILINE):
            shown = False
        if cell.cell_type == "code" and makes_widget.search(cell.source):
            assert shown, f"no figure in its section before the widget of {cell.id}: {cell.source[:80]}"
        pictures = [alt for output in cell.get("outputs", []) for alt in alts(output)]
        shown = shown or (bool(pictures) and all(alt.strip() for alt in pictures))


@EACH
def test_no_widget_is_stored_in_a_notebook(file: Path):
    notebook = read(file)
    assert "widgets" not in notebook.metadata
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert not {kind for kind in kinds if "jupyter.widget" in kind}


@EACH
def test_every_picture_of_a_notebook_has_alt_text(file: Path):
    for cell in read(file).cells:
        for output in cell.get("outputs", []):
            assert all(alt.strip() for alt in alts(output)), cell.id
            assert "image/svg+xml" not in output.get("data", {}), "readers show it without alt text"
        if cell.cell_type == "markdown":
            assert_described(cell.source, cell.id)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_has_alt_text_and_exists(page: Path):
    text = page.read_text(encoding="utf-8")
    assert_described(text, page.name)
    for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text):
        assert (page.parent / target).is_file(), target


def assert_described(text: str, where: str) -> None:
    for alt in [*re.findall(r"!\[([^\]]*)\]\(", text), *images(text)]:
        assert alt.strip(), f"a picture without alt text in {where}"


@pytest.mark.parametrize("page", ["README.md", "notebooks/00_start_here.ipynb"])
def test_every_notebook_is_on_the_map(page: str):
    text = (FOLDER.parent / page).read_text(encoding="utf-8")
    for file in FOLDER.glob("*.ipynb"):
        assert f"{file.name})" in text or page.endswith(file.name), file.name


def test_the_table_of_notebook_04_has_a_row_for_every_drafter():
    tables = [cell.source for cell in read(FOLDER / "04_live_generation.ipynb").cells if "| drafter |" in cell.source]
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in tables[0].splitlines() if "|" in row)))
    assert named == {*drafters.names(), Adaptive.name} - {drafters.NoDrafter.name}


# --- colours ----------------------------------------------------------------------------------

SIMULATED = {
    "everyone": np.eye(3),
    # Machado, Oliveira & Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency",
    # severity 1.0, on linear RGB.
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE_XYZ = TO_XYZ @ np.ones(3)


def linear(colour: object) -> np.ndarray:
    """sRGB -> linear RGB, each from 0 to 1."""
    rgb = np.asarray(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab_of(colour: object, vision: str = "everyone") -> np.ndarray:
    """CIE L*a*b* of a colour as that vision sees it."""
    ratio = TO_XYZ @ np.clip(SIMULATED[vision] @ linear(colour), 0.0, 1.0) / WHITE_XYZ
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(first: np.ndarray, second: np.ndarray) -> float:
    """CIEDE2000 (Sharma, Wu & Dalal 2005) of two L*a*b* colours."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean_c = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    c1, c2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, stretch * a1)) % 360, np.degrees(np.arctan2(b2, stretch * a2)) % 360
    grey = c1 * c2 == 0
    turn = 0.0 if grey else (h2 - h1 + 180) % 360 - 180
    d_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + h2 if grey else (h1 + turn / 2) % 360
    weight = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * weight
    rotate = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    rotate *= np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    d_l, d_c, d_h = (l2 - l1) / s_l, (c2 - c1) / s_c, d_hue / s_h
    return float(np.sqrt(d_l**2 + d_c**2 + d_h**2 + rotate * d_c * d_h))


def seen_apart(first: object, second: object) -> float:
    """The smallest difference over all visions."""
    return min(difference(lab_of(first, vision), lab_of(second, vision)) for vision in SIMULATED)


def lightness_apart(first: object, second: object) -> float:
    return float(abs(lab_of(first)[0] - lab_of(second)[0]))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_are_those_of_the_published_test_pairs(first, second, expected):
    assert difference(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


def test_the_palette_is_told_apart_by_every_colour_vision():
    palette = [*(look.colour for look in style.SERIES), style.GREY]
    apart = {pair: seen_apart(*pair) for pair in combinations(palette, 2)}
    close = {pair: value for pair, value in apart.items() if value < LEAST_DIFFERENCE}
    assert not close, close


def test_no_two_series_share_a_marker_or_a_colour():
    assert len({look.marker for look in style.SERIES}) == len({look.colour for look in style.SERIES}) == 7
    assert [look for look in style.looks(9)][7:] == [*style.SERIES[:2]]


def mark(handle: Artist) -> tuple[object, ...]:
    """What else than colour tells an entry of a legend: marker, line, hatching, outline, and whether it is hollow."""
    if hasattr(handle, "get_marker"):
        hollow = handle.get_markerfacecolor() in ("none", "white")
        return handle.get_marker(), handle.get_linestyle(), hollow
    patch = handle.patches[0] if hasattr(handle, "patches") and handle.patches else handle
    hatch = patch.get_hatch() if hasattr(patch, "get_hatch") else None
    outline = (patch.get_linestyle(), patch.get_linewidth()) if isinstance(patch, Patch) else ()
    return type(handle).__name__, hatch or "", *outline


def colour_of(handle: Artist) -> object:
    if hasattr(handle, "get_color"):  # a line
        colour = handle.get_color()
        return colour[0] if np.ndim(colour) == 2 else colour
    patch = handle.patches[0] if hasattr(handle, "patches") and handle.patches else handle
    colour = patch.get_facecolor() if hasattr(patch, "get_facecolor") else "black"
    return colour[0] if np.ndim(colour) == 2 else colour


def entries(figure: Figure) -> Iterator[list[tuple[str, object, tuple[object, ...]]]]:
    """The entries of each legend: name, colour, mark."""
    for ax in all_axes(figure):
        if ax.get_legend() is not None:
            handles, names = ax.get_legend_handles_labels()
            yield [(name, colour_of(each), mark(each)) for name, each in zip(names, handles, strict=True)]


def all_axes(figure: Figure) -> list[Axes]:
    return [ax for each in figure.axes for ax in (each, *each.child_axes)]


@pytest.mark.parametrize("name", FIGURES)
def test_entries_of_a_legend_differ_by_more_than_colour_or_clearly_by_it(name: str):
    for legend in entries(FIGURES[name][0]().figure):
        for (one, colour, marked), (other, colour_2, marked_2) in combinations(legend, 2):
            if marked == marked_2:
                assert seen_apart(colour, colour_2) >= LEAST_DIFFERENCE, (one, other)
                assert lightness_apart(colour, colour_2) >= LEAST_LIGHTNESS, f"{one} and {other}, in grey print"


def test_parts_of_a_cycle_that_touch_can_be_told_apart_in_grey():
    for parts in (ledger.PARTS, ledger.CLOCKED):
        for (one, colour, hatch), (other, colour_2, hatch_2) in combinations(parts, 2):
            apart = seen_apart(colour, colour_2), lightness_apart(colour, colour_2)
            assert hatch != hatch_2 or apart >= (LEAST_DIFFERENCE, LEAST_LIGHTNESS), (one, other)


# --- contrast ---------------------------------------------------------------------------------


def luminance(colour: object) -> float:
    return float(TO_XYZ[1] @ linear(colour))


def contrast(first: object, second: object) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_the_published_one():
    assert contrast("white", "black") == pytest.approx(21.0)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", FIGURES)
def test_every_text_of_a_figure_stands_out_from_what_is_behind_it(name: str, monkeypatch: pytest.MonkeyPatch):
    """The figure is drawn without its ink; then each text is held against the pixels where it would be."""
    drawn: list[tuple[Text, Bbox]] = []

    def only_its_plate(text: Text, renderer: RendererBase) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn.append((text, text.get_window_extent(renderer)))
            if text.get_bbox_patch() is not None:
                text.update_bbox_position_size(renderer)
                text.get_bbox_patch().draw(renderer)

    figure = FIGURES[name][0]().figure
    figure.set_dpi(50)
    with render.lock:
        monkeypatch.setattr(Text, "draw", only_its_plate)
        figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3] / 255.0  # from the bottom, as boxes count
    assert drawn
    for text, box in drawn:
        left, right, low, high = np.clip([box.x0, box.x1, box.y0, box.y1], 0, None).round().astype(int)
        behind = np.median(pixels[low : high + 1, left : right + 1].reshape(-1, 3), axis=0)
        size, bold = text.get_fontsize(), text.get_fontweight() in ("bold", 700)
        least = LARGE_CONTRAST if size >= 18 or (size >= 14 and bold) else LEAST_CONTRAST
        assert contrast(text.get_color(), behind) >= least, text.get_text()


def test_numbers_on_a_heat_map_stand_out_at_every_shade():
    for shade in colormaps[sweep.PALETTE](np.linspace(0.0, 1.0, 256)):
        assert contrast(style.ink_on(shade), shade[:3]) >= LEAST_CONTRAST, shade


class Painted(HTMLParser):
    """Collects (text, ink, paper) of every text whose ink is fixed; paper None is the page's own."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str, str | None]] = []
        self._open: list[tuple[str | None, str | None]] = [(None, None)]
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        ink, paper = self._open[-1]
        for declaration in (dict(attributes).get("style") or "").split(";"):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            ink, paper = (value if name == "color" else ink), (value if name == "background" else paper)
            assert name != "opacity", "it thins the ink; choose a colour instead"
        if tag not in ("br", "img", "hr"):
            self._open.append((ink, paper))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        ink, paper = self._open[-1]
        if data.strip() and ink is not None:
            self.texts.append((data, ink, paper))


def painted_pages() -> dict[str, str]:
    """Everything that is shown as HTML with colours of its own."""
    cycle = Cycle("ngram_simple", 4, (1, 2, 3), 2, 1, (1, 4), None, 0.001, 0.02, 0.0, 0.0)
    return {
        "stream": widgets.stream_html([cycle], lambda token: b"word ", show_refused=True),
        "legend": widgets.legend_html(),
        "gauges": messages.gauges(None, None, Loop(start=10, stop=50, period=4)),
        "intake": messages.intake_shown(["a line"]),
    }


INK_ON_PAPER = re.compile(r"(?<![\w-])color:\s*(#[0-9a-fA-F]{3,6})")


@pytest.mark.parametrize("name", painted_pages())
def test_coloured_words_stand_out_on_paper_of_their_own(name: str):
    texts = Painted(painted_pages()[name]).texts
    assert texts
    for text, ink, paper in texts:
        assert paper is not None, f"{text!r} has a fixed colour on whatever the page has, which may be dark"
        assert contrast(ink, paper) >= LEAST_CONTRAST, (text, ink, paper)


def test_every_colour_written_into_html_is_among_those_pages():
    shown = {ink.lower() for page in painted_pages().values() for ink in INK_ON_PAPER.findall(page)}
    for file in [PACKAGE / "notebook.py", *PACKAGE.glob("messages/*.py"), *PACKAGE.glob("widgets/*.py")]:
        written = {ink.lower() for ink in INK_ON_PAPER.findall(file.read_text(encoding="utf-8"))}
        assert written <= shown, f"{file.name}: {written - shown}"


# --- widgets ----------------------------------------------------------------------------------


def toy_lab() -> ToyLab:
    lab = ToyLab()
    lab.embedded, lab.format = True, "F32"
    lab.model = SimpleNamespace(info=lab.model.info, piece=lambda token: b"x")
    return lab


BUILD = {
    "AdaptiveRace": lambda: widgets.AdaptiveRace(toy_lab()),
    "CycleCostExplorer": lambda: widgets.CycleCostExplorer({"M5 Pro": M5}),
    "GammaExplorer": lambda: widgets.GammaExplorer({"M5 Pro": M5}, {}, alpha=0.7, gamma=0.1, k=4),
    "IntakeReader": lambda: widgets.IntakeReader({"M5 Pro": M5}),
    "LiveGeneration": lambda: widgets.LiveGeneration(toy_lab()),
    "LongSweep": lambda: widgets.LongSweep(toy_lab(), PLAN),
    "ManyMachines": lambda: widgets.ManyMachines(
        cards.costs_of_reports(store.load_field_reports()), alpha=0.7, gamma=0.1, k=4
    ),
    "RoundStepper": lambda: widgets.RoundStepper({"a run": run(3)}, TokenTexts({1: "word"})),
}


def parts_of(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts_of(child)


def controls_of(name: str) -> list[ipywidgets.DOMWidget]:
    """What a reader sets or presses; pictures, texts and progress bars are only looked at."""
    looked_at = (ipywidgets.Box, ipywidgets.HTML, ipywidgets.Image, ipywidgets.Label, ipywidgets.FloatProgress)
    return [part for part in parts_of(BUILD[name]().view) if not isinstance(part, looked_at)]


def test_every_widget_is_built_here():
    assert sorted(BUILD) == sorted(widget_classes())


@pytest.mark.parametrize("name", BUILD)
def test_every_control_has_a_name_and_the_keyboard_reaches_it(name: str):
    found = controls_of(name)
    assert found
    for control in found:
        assert control.description.strip(), f"{type(control).__name__} has no label"
        assert control.tabbable is not False, f"{control.description} cannot be reached with Tab"
        if "lider" in type(control).__name__:
            assert control.readout and not control.disabled, f"{control.description} has no readout to type into"
    names = [control.description for control in found]
    assert len(set(names)) == len(names), f"two controls of one name: {names}"


@pytest.mark.parametrize("name", BUILD)
def test_a_widget_with_sliders_can_be_reset_and_says_in_words_what_it_is(name: str):
    widget = BUILD[name]()
    if any("lider" in type(part).__name__ for part in parts_of(widget.view)):
        buttons = [part for part in parts_of(widget.view) if isinstance(part, ipywidgets.Button)]
        assert messages.RESET in [button.description for button in buttons]
    assert len(widget._repr_mimebundle_()["text/plain"].split()) >= 8


# --- words ------------------------------------------------------------------------------------

SHOWING_CALLS = {"HTML", "Label", "Text", "Textarea", "Checkbox", "Button", "Dropdown", "ToggleButtons",
                 "menu", "float_slider", "int_slider", "text_box", "text_line"}  # fmt: skip
SHOWN_ATTRIBUTES = {"value", "description", "tooltip", "placeholder", "options"}


def shown_literals(source: str) -> Iterator[str]:
    """Words written into a widget's module: given to what shows them, or assigned to what is shown."""
    yield from spoken_literals(source)
    for node in ast.walk(ast.parse(source)):
        values: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in SHOWING_CALLS:
            values = node.args[:1]
        elif isinstance(node, ast.Assign):
            shown = [target for target in node.targets if getattr(target, "attr", "") in SHOWN_ATTRIBUTES]
            values = [node.value] if shown else []
        for part in (part for value in values for part in ast.walk(value)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                if re.search(r"[^\W\d_]{2}", re.sub(r"<[^>]*>", "", part.value)):
                    yield f"line {part.lineno}: {part.value!r}"


@pytest.mark.parametrize("file", sorted(PACKAGE.glob("widgets/*.py")), ids=lambda file: file.stem)
def test_widgets_take_their_words_from_messages(file: Path):
    assert list(shown_literals(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    ['ipywidgets.HTML("Ready")', 'self.status.value = "Done"', 'controls.menu("drafter", names, None)',
     'ipywidgets.Button(tooltip="Start it")', 'self.answer.value = f"<b>Best: {name}</b>"'],
)  # fmt: skip
def test_a_word_in_a_widget_is_found(source):
    assert len(list(shown_literals(source))) >= 1
