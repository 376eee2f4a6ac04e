"""The explorer of notebook 02: every control counts, Reset restores, and threads cannot leave an old picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from random import Random
from threading import Event, Thread

import ipywidgets
import pytest

from specnb import messages, plots, store, theory
from specnb.records import CostCurve
from specnb.widgets import CycleCostExplorer

STUDY = store.load_m5_pro()
M5 = STUDY.curve
START = {"alpha": 0.7, "gamma": 0.16, "k": 4, "staircase": "M5 Pro"}


def steep() -> CostCurve:
    """A second staircase: every row costs as much as the first, up to N=5."""
    return replace(M5, label="steep", samples=tuple((n, 10.0 * n) for n in range(1, 6)))


def explorer(**settings: float) -> CycleCostExplorer:
    return CycleCostExplorer({"M5 Pro": M5, "steep": steep()}, **settings)


def standing(shown: CycleCostExplorer) -> dict[str, object]:
    return {name: getattr(shown, name).value for name in START}


def parts(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    """Everything in a widget's view, boxes left out."""
    if isinstance(widget, ipywidgets.Box):
        for child in widget.children:
            yield from parts(child)
    else:
        yield widget


def reset(shown: CycleCostExplorer) -> None:
    buttons = [part for part in parts(shown.view) if isinstance(part, ipywidgets.Button)]
    assert [button.description for button in buttons] == [messages.RESET]
    buttons[0].click()


@pytest.mark.parametrize(("control", "value"), [("alpha", 0.9), ("gamma", 0.5), ("k", 7), ("staircase", "steep")])
def test_each_control_changes_the_picture_and_the_readout(control, value):
    shown = explorer()
    picture, text = shown.picture.value, shown.readout.value
    getattr(shown, control).value = value
    assert shown.picture.value != picture
    assert shown.readout.value != text


def test_everything_is_in_view_once_in_the_order_in_which_it_is_used():
    shown = explorer()
    *first, button, readout, picture = parts(shown.view)
    assert first == [shown.alpha, shown.gamma, shown.k, shown.staircase]
    assert isinstance(button, ipywidgets.Button)
    assert (readout, picture) == (shown.readout, shown.picture)


def test_the_picture_is_a_png_of_the_size_that_is_shown():
    shown = explorer()
    png = bytes(shown.picture.value)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (2 * int(shown.picture.width), 2 * int(shown.picture.height))


def test_reset_restores_values_picture_and_readout():
    shown = explorer()
    picture, text = shown.picture.value, shown.readout.value
    for control, value in {"alpha": 0.2, "gamma": 0.9, "k": 9, "staircase": messages.FLAT_STAIRCASE}.items():
        getattr(shown, control).value = value
    assert shown.picture.value != picture
    reset(shown)
    assert standing(shown) == START
    assert (shown.picture.value, shown.readout.value) == (picture, text)


def test_the_readout_says_what_the_theory_says():
    shown = explorer(alpha=0.62, gamma=0.25, k=3)
    verify_ms = M5.median_ms
    draft_ms, plain_ms = 0.25 * verify_ms[1], verify_ms[1]
    text = shown.readout.value
    assert messages.tokens(theory.expected_tokens(0.62, 3)) in text
    assert f"<b>{messages.speedup(theory.speedup(0.62, 3, draft_ms, verify_ms, plain_ms))}</b>" in text
    assert f"α = {messages.number(theory.break_even_alpha(3, draft_ms, verify_ms, plain_ms))}" in text
    best = theory.best_k(0.62, draft_ms, verify_ms, plain_ms)
    assert best > 0 and f"best: k={best}," in text


def test_the_baseline_is_the_one_given_and_t1_otherwise():
    named = CycleCostExplorer({"M5 Pro": M5}, plain_ms={"M5 Pro": STUDY.plain_ms})
    plain_ms = STUDY.plain_ms
    told = messages.speedup(theory.speedup(0.7, 4, 0.16 * plain_ms, M5.median_ms, plain_ms))
    assert f"<b>{told}</b>" in named.readout.value
    assert f"<b>{told}</b>" not in explorer().readout.value


def test_a_baseline_is_asked_for_where_there_is_none():
    without_t1 = replace(M5, samples=tuple((n, ms) for n, ms in M5.samples if n > 1))
    with pytest.raises(ValueError, match=r"T\(1\) was not measured on M5 Pro"):
        CycleCostExplorer({"M5 Pro": without_t1})
    assert CycleCostExplorer({"M5 Pro": without_t1}, plain_ms={"M5 Pro": 17.0}).picture.value
    with pytest.raises(ValueError, match="plain_ms names M4, but the staircases are M5 Pro"):
        CycleCostExplorer({"M5 Pro": M5}, plain_ms={"M4": 17.0})


def test_alpha_0_keeps_one_token_a_cycle_and_says_to_leave_it_off():
    shown = explorer()
    shown.alpha.value = 0.0
    assert "1.00 tokens per cycle" in shown.readout.value
    assert "leave it off" in shown.readout.value


def test_alpha_1_keeps_everything():
    shown = explorer()
    shown.alpha.value = 1.0
    assert "5.00 tokens per cycle" in shown.readout.value
    assert "leave it off" not in shown.readout.value


def test_k_goes_from_1_to_the_longest_draft_that_was_measured():
    shown = explorer()
    assert (shown.k.min, shown.k.max) == (1, max(M5.ns) - 1)
    for k in (shown.k.min, shown.k.max):
        shown.k.value = k
        assert shown.readout.value.startswith(f"k={k}: ")
        assert re.search(r"<b>\d+\.\d\d×</b>", shown.readout.value)


def test_a_pass_that_was_not_measured_is_said_and_not_invented():
    shown = explorer()
    shown.k.value = 9
    assert "N=10 was not measured" in shown.readout.value
    assert "<b>" not in shown.readout.value
    shown.k.value = 31
    shown.staircase.value = "steep"
    assert "N=32 was not measured" in shown.readout.value


def test_a_hopeless_k_is_called_so():
    shown = explorer(gamma=0.5)
    shown.staircase.value = "steep"
    assert "no α can rescue this k" in shown.readout.value


def test_the_textbook_staircase_is_flat_and_has_no_gaps():
    shown = explorer(gamma=0.0)
    shown.staircase.value = messages.FLAT_STAIRCASE
    for k in (4, 9, 31):
        shown.k.value = k
        free = theory.expected_tokens(0.7, k)  # with free drafts and a flat staircase a pass costs one plain token
        assert f"<b>{messages.speedup(free)}</b>" in shown.readout.value


def test_where_widgets_cannot_be_shown_the_page_says_what_would_be_there():
    bundle = explorer()._repr_mimebundle_()
    assert bundle["text/plain"] == messages.EXPLORER_ALT
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_threads_that_drag_while_another_draws_leave_every_picture_whole():
    shown = explorer()
    done = Event()
    other = plots.png(plots.plot_cost_curve(M5))
    others = []

    def draw_other_figures() -> None:
        while not done.wait(0.005):  # a lock is not fair: without a pause this thread would keep it
            others.append(plots.png(plots.plot_cost_curve(M5)))

    def drag(seed: int) -> None:
        random = Random(seed)
        for _ in range(4):
            shown.alpha.value = random.randrange(101) / 100
            shown.gamma.value = random.randrange(101) / 100
            shown.k.value = random.randint(shown.k.min, shown.k.max)
            shown.staircase.value = random.choice(shown.staircase.options)

    drawing = Thread(target=draw_other_figures)
    drawing.start()
    with ThreadPoolExecutor(8) as pool:
        drags = [pool.submit(drag, seed) for seed in range(8)]
        wait(drags)
    done.set()
    drawing.join()

    for finished in drags:
        finished.result()
    assert others and set(others) == {other}
    fresh = explorer(alpha=shown.alpha.value, gamma=shown.gamma.value, k=shown.k.value)
    fresh.staircase.value = shown.staircase.value
    assert standing(shown) == standing(fresh)
    assert (shown.picture.value, shown.readout.value) == (fresh.picture.value, fresh.readout.value)


def test_the_last_picture_is_of_the_last_values_however_slow_an_earlier_one_was(monkeypatch):
    """Two sliders move at once; the first callback is held up between reading the values and showing the picture."""
    shown = explorer()
    drawn, go_on = Event(), Event()
    redraw = shown.redraw

    def held_up() -> bytes:
        picture = redraw()
        if not drawn.is_set():
            drawn.set()
            go_on.wait(1.0)  # long enough for the second slider, had it nothing to wait for
        return picture

    monkeypatch.setattr(shown, "redraw", held_up)
    first = Thread(target=lambda: setattr(shown.alpha, "value", 0.2))
    second = Thread(target=lambda: (setattr(shown.k, "value", 7), go_on.set()))
    first.start()
    assert drawn.wait(10)
    second.start()
    first.join()
    second.join()
    assert shown.picture.value == explorer(alpha=0.2, k=7).picture.value
