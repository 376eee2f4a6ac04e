"""What readers do to notebooks, in a real browser: run them twice, restart, jump about, drag wildly, delete files.

On a short notebook of its own with a tiny random model, so that it takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import tiny_models

from . import jupyter

pytestmark = [pytest.mark.browser, pytest.mark.model]

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
CELLS = [
    "from specnb import plots, store\nfrom specnb.lab import Lab\n"
    "from specnb.widgets import CycleCostExplorer, LiveGeneration\ncurve = store.load_m5_pro().curve",
    "plots.show(plots.plot_cost_curve(curve), 'a staircase')",
    "explorer = CycleCostExplorer({'M5 Pro': curve})\nexplorer",
    "lab = Lab({model!r}, threads=1)",
    "live = LiveGeneration(lab, max_tokens=16)\nlive.prompt.value, live.own_text.value = 'your own', 'abc'\nlive",
]
LIVE_RUN = "live.run()\nlive.wait(60)\nprint(live.status.value, len(live.runs))"
WORKERS = "import threading\nprint(sum(t.name == 'specnb-worker' for t in threading.enumerate()))"


@pytest.fixture(scope="module")
def model(lab_folder) -> Path:
    return tiny_models.write(lab_folder / "tiny.gguf", "llama", layers=range(9))


@pytest.fixture(scope="module")
def notebook(browser, lab_url, lab_folder, model):
    """One page with the short notebook, run once."""
    cells = [nbformat.v4.new_code_cell(cell.replace("{model!r}", repr(str(model)))) for cell in CELLS]
    for name in ("faults.ipynb", "faults_beside.ipynb"):
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), lab_folder / "notebooks" / name)
    page = jupyter.run_notebook(browser, lab_url, "faults.ipynb")
    yield page
    page.close()


def run_again(page) -> None:
    page.evaluate("async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    jupyter.wait_for_the_end(page)
    assert jupyter.errors(page) == []


def test_running_all_twice_leaves_one_widget_and_no_thread(notebook):
    page = notebook
    assert jupyter.ask_kernel(page, LIVE_RUN).startswith("Done")
    run_again(page)
    jupyter.wait_for_its_picture(page, "explorer")
    assert jupyter.ask_kernel(page, WORKERS) == "0"
    assert jupyter.ask_kernel(page, "print(LiveGeneration._current is live)") == "True"


def test_restarting_and_running_out_of_order_is_told_and_mended_by_running_all(notebook):
    page = notebook
    jupyter.restart(page)
    for cell in (CELLS[4], CELLS[2]):
        assert jupyter.ask_kernel(page, cell).startswith("NameError")
    run_again(page)
    assert jupyter.ask_kernel(page, LIVE_RUN).startswith("Done")


def test_a_slider_dragged_a_hundred_times_in_a_second_ends_with_the_right_picture(notebook):
    page = notebook
    alpha = jupyter.slider(page, "α")
    handle = alpha.locator(".noUi-handle")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drawing = "ok = all(plots.png(plots.plot_cost_curve(curve)) == first for _ in range(20)); print(ok)"
    jupyter.ask_kernel(page, "first = plots.png(plots.plot_cost_curve(curve))")
    # A cell draws meanwhile: slider moves come on threads of their own.
    page.evaluate(
        """code => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            window.drawn = '';
            const future = kernel.requestExecute({code});
            future.onIOPub = m => { if (m.header.msg_type === 'stream') window.drawn += m.content.text; };
            window.drawing = future.done;
        }""",
        drawing,
    )
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(100):
        page.mouse.move(x - 60 + (i * 37) % 90, y)
    page.mouse.move(x - 45, y)
    page.mouse.up()
    assert page.evaluate("window.drawing.then(() => window.drawn.trim())") == "True"
    shown = float(jupyter.readout(alpha))
    jupyter.wait_for_answer(page, f"print(explorer.alpha.value == {shown})", "True")
    jupyter.wait_for_its_picture(page, "explorer")
    assert shown != 0.7


def test_two_notebooks_at_once_on_one_model_file(notebook, browser, lab_url):
    beside = jupyter.open_notebook(browser, lab_url, "faults_beside.ipynb")
    pages = (notebook, beside)
    for page in pages:
        jupyter.run_all(page)
    for page in pages:
        page.wait_for_function("() => document.querySelectorAll('img.widget-image').length > 1")
        jupyter.wait_for_the_end(page)
        assert jupyter.errors(page) == []
    text = "print(lab.run('abc', 'layer_skip', max_tokens=20).tokens == lab.run('abc', max_tokens=20).tokens)"
    for page in pages:
        page.evaluate(
            "code => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}) }",
            "live.run()",
        )
    for page in pages:
        assert jupyter.ask_kernel(page, "live.wait(60); print(live.status.value)").startswith("Done")
        assert jupyter.ask_kernel(page, text) == "True"
    beside.close()


def test_a_model_file_deleted_in_the_middle_costs_no_result(notebook, model):
    page = notebook
    before = jupyter.ask_kernel(page, LIVE_RUN)
    assert before.startswith("Done")
    jupyter.ask_kernel(page, "kept = live.runs[-1]")
    model.unlink()
    after = jupyter.ask_kernel(page, LIVE_RUN)
    assert after.startswith("Done") and jupyter.ask_kernel(page, "print(kept in live.runs)") == "True"
    refused = jupyter.ask_kernel(page, "lab.run('abc', 'layer_skip')\nlab.use_format('Q8_0')")
    assert refused.startswith("ModelError") and "tiny.gguf" in refused
    again = jupyter.ask_kernel(page, f"Lab({str(model)!r})")
    assert again.startswith("ModelError: There is no model file at") and "tiny.gguf" in again
    assert jupyter.ask_kernel(page, "print(lab.run('abc', max_tokens=5).emitted)") == "5"
    assert jupyter.ask_kernel(page, WORKERS) == "0"
