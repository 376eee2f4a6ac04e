"""The widgets that need no model of the reader's, together on one short page, used with mouse and keyboard."""

from __future__ import annotations

import nbformat
import pytest

from . import jupyter

pytestmark = pytest.mark.browser

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
CELLS = [
    "import sys\nsys.path.insert(0, {tests!r})\n"
    "import toy_lab\nfrom specnb import store\nfrom specnb.widgets import GammaExplorer, IntakeReader, LongSweep\n"
    "toy_lab.quiet()\nstudy = store.load_m5_pro()",
    "gamma = GammaExplorer({{'M5 Pro': study.curve}}, {{}}, plain_ms={{'M5 Pro': study.plain_ms}}, alpha=0.7, "
    "gamma=0.2, k=4)\ngamma",
    "reader = IntakeReader({{'M5 Pro': study.curve}})\nreader",
    "long = LongSweep(toy_lab.ToyLab(seconds=0.02), toy_lab.PLAN)\nlong",
]
LOG = "draft acceptance = 0.50000 (50 accepted / 100 generated)"


@pytest.fixture(scope="module")
def notebook(browser, lab_url, lab_folder):
    tests = str(jupyter.ROOT / "tests")
    cells = [nbformat.v4.new_code_cell(cell.format(tests=tests)) for cell in CELLS]
    file = lab_folder / "notebooks" / "widgets.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), file)
    page = jupyter.run_notebook(browser, lab_url, file.name)
    yield page
    page.close()


def said(page, text: str) -> str:
    """A JavaScript condition: some text of a widget contains this."""
    return f"() => [...document.querySelectorAll('.widget-html-content')].some(e => e.innerText.includes({text!r}))"


def test_gamma_goes_to_zero_from_the_keyboard(notebook):
    page = notebook
    shown = jupyter.picture(page, 0)
    jupyter.press(jupyter.slider(page, "γ"), "Home")
    jupyter.wait_for_new_picture(page, shown, 0)
    jupyter.wait_for_its_picture(page, "gamma")
    jupyter.wait_for_answer(page, "print(gamma.gamma.value)", "0.0")


def test_a_pasted_log_is_read_and_a_contradiction_named(notebook):
    page = notebook
    box = page.locator(".widget-textarea textarea").first
    box.fill(LOG)
    page.get_by_role("button", name="Read it").click()
    page.wait_for_function(said(page, "alpha"))
    jupyter.screenshot(page, "08-intake")
    box.fill(LOG.replace("50 accepted", "500 accepted"))
    page.get_by_role("button", name="Read it").click()
    page.wait_for_function(said(page, "500"))
    assert jupyter.errors(page) == []


def test_a_sweep_is_stopped_and_gone_on_with(notebook):
    page = notebook
    start = page.locator("button.jupyter-button", has_text="Start").first
    start.click()
    page.wait_for_function("() => [...document.querySelectorAll('.progress-bar')].some(e => e.offsetWidth > 20)")
    page.locator("button.jupyter-button", has_text="Stop").first.click()
    page.wait_for_function(said(page, "Stopped with"))
    start.click()
    page.wait_for_function(said(page, "Done:"), timeout=60_000)
    page.wait_for_function("() => document.querySelectorAll('img.widget-image').length > 1")
    jupyter.screenshot(page, "08-sweep")
