"""Notebook 02 in a real browser: sliders move from the keyboard, the picture follows."""

from __future__ import annotations

import pytest

from . import jupyter

pytestmark = [pytest.mark.browser, pytest.mark.model]


@pytest.fixture(scope="module")
def notebook(browser, lab_url):
    """One page for all of these: the notebook takes a minute to run."""
    page = jupyter.run_notebook(browser, lab_url, "02_cycle_cost.ipynb")
    yield page
    page.close()


def test_sliders_from_the_keyboard_change_readout_text_and_picture(notebook):
    page = notebook
    text = page.locator(".widget-html-content", has_text="per cycle").last
    for label in ("α", "γ", "k"):
        slider = jupyter.slider(page, label)
        before, told, shown = jupyter.readout(slider), text.inner_text(), jupyter.picture(page)
        jupyter.press(slider, "ArrowRight", 2)
        jupyter.wait_for_new_picture(page, shown)
        assert jupyter.readout(slider) != before
        page.wait_for_function(
            "told => [...document.querySelectorAll('.widget-html-content')].every(e => e.innerText !== told)", arg=told
        )
    jupyter.screenshot(page, "02-explorer")


def test_another_staircase_and_reset(notebook):
    page = notebook
    page.get_by_role("button", name="Reset").last.click()
    page.wait_for_timeout(1000)
    first = jupyter.picture(page)
    alpha = jupyter.slider(page, "α")
    start = jupyter.readout(alpha)
    jupyter.choose(page, "staircase", "flat (the textbook)")
    jupyter.wait_for_new_picture(page, first)
    flat = jupyter.picture(page)
    jupyter.press(alpha, "ArrowRight", 3)
    jupyter.wait_for_new_picture(page, flat)
    page.get_by_role("button", name="Reset").last.click()
    page.wait_for_function(
        "start => [...document.querySelectorAll('.widget-readout')].some(e => e.innerText === start)", arg=start
    )
    assert jupyter.readout(alpha) == start


def test_dragging_while_a_cell_draws_leaves_every_picture_whole(notebook):
    """Widget messages run on threads beside the running cell; matplotlib would not survive that unguarded."""
    page = notebook
    page.evaluate(
        """async () => {
            const notebook = window.jupyterapp.shell.currentWidget;
            const kernel = notebook.sessionContext.session.kernel;
            window.drawing = kernel.requestExecute({code: `
from specnb import plots, store
_curve = store.load_m5_pro().curve
_first = plots.png(plots.plot_cost_curve(_curve))
_same = all(plots.png(plots.plot_cost_curve(_curve)) == _first for _ in range(60))
print("whole" if _same else "corrupt")
`}).done;
        }"""
    )
    shown = jupyter.picture(page)
    for key in ("ArrowRight", "ArrowLeft") * 10:
        jupyter.press(jupyter.slider(page, "α"), key, 5)
    jupyter.press(jupyter.slider(page, "α"), "ArrowRight", 4)
    jupyter.wait_for_new_picture(page, shown)
    reply = page.evaluate("window.drawing.then(m => m.content.status)")
    assert reply == "ok"
    assert jupyter.ask_kernel(page, "print(_same)") == "True"
    jupyter.wait_for_its_picture(page, "explorer")
