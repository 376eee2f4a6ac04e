"""The stepper in a real browser, walked through with the keyboard alone, and beside it the many machines."""

from __future__ import annotations

import nbformat
import pytest

from . import jupyter

pytestmark = pytest.mark.browser

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
CELLS = [
    "from specnb import cards, store\nfrom specnb.widgets import ManyMachines\n"
    "many = ManyMachines(cards.costs_of_reports(store.load_field_reports()), alpha=0.84, k=3)\nmany",
    "from specnb import notebook, store\nfrom specnb.records import RunSet, TokenTexts\n"
    "from specnb.widgets import RoundStepper\n"
    "runs = store.load(notebook.RUNS / '04-draft-model.json', RunSet)\n"
    "copying = store.load(notebook.RUNS / '04-copy-rewrite.json', RunSet)\n"
    "texts = store.load(notebook.RUNS / '04-texts.json', TokenTexts)",
    "stepper = RoundStepper({'draft model': runs.of('draft_model')[-1], "
    "'look-up': copying.of('ngram_simple')[-1]}, texts)\nstepper",
]


@pytest.fixture(scope="module")
def notebook(browser, lab_url, lab_folder):
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    file = lab_folder / "notebooks" / "stepper.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), file)
    page = jupyter.run_notebook(browser, lab_url, file.name)
    yield page
    page.close()


def press_button(page, name: str, key: str) -> None:
    """Puts the focus on a button and presses a key; the focus must stay there for the next one."""
    button = page.get_by_role("button", name=name).last
    button.focus()
    button.press(key)
    assert page.evaluate("document.activeElement.innerText").strip() == name


def wait_for_words(page, begins: str) -> None:
    page.wait_for_function(
        "begins => [...document.querySelectorAll('.widget-html-content')].some(e => e.innerText.startsWith(begins))",
        arg=begins,
    )


def test_enter_space_and_arrows_walk_through_a_round(notebook):
    page = notebook
    shown = jupyter.picture(page)
    press_button(page, "Forward", "Enter")
    wait_for_words(page, "Step 2 of")
    jupyter.wait_for_new_picture(page, shown)
    press_button(page, "Forward", "Space")
    wait_for_words(page, "Step 3 of")
    press_button(page, "Back", "Space")
    wait_for_words(page, "Step 2 of")
    jupyter.press(jupyter.slider(page, "step"), "ArrowRight", 4)
    wait_for_words(page, "Step 6 of")
    jupyter.wait_for_its_picture(page, "stepper")


def test_jumps_another_run_and_reset(notebook):
    page = notebook
    press_button(page, "Next round", "Enter")
    press_button(page, "Next refusal", "Enter")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.widget-html-content')].some(e => e.innerText.includes('is refused'))"
    )
    jupyter.wait_for_answer(page, "print(stepper.shown.refuses, stepper.shown.round.number)", "True 3")
    jupyter.screenshot(page, "04-stepper")
    press_button(page, "Previous round", "Enter")
    press_button(page, "Previous round", "Enter")
    jupyter.wait_for_answer(page, "print(stepper.shown.round.number, int(stepper.shown.phase))", "2 0")
    refused = jupyter.picture(page)
    jupyter.choose(page, "run", "look-up")
    jupyter.wait_for_new_picture(page, refused)
    wait_for_words(page, "Step 1 of")
    jupyter.press(jupyter.slider(page, "step"), "End")
    page.wait_for_function(
        "() => /^Step (\\d+) of \\1\\./.test([...document.querySelectorAll("
        "'.widget-html-content')].map(e => e.innerText).find(t => t.startsWith('Step'))) "
    )
    press_button(page, "Reset", "Enter")
    wait_for_words(page, "Step 1 of")
    jupyter.wait_for_answer(page, "print(stepper.run.value, stepper.step.value)", "draft model 1")
    assert jupyter.errors(page) == []


def test_the_verdicts_of_many_machines_follow_the_sliders(notebook):
    page = notebook
    wait_for_words(page, "faster: RTX 5090 at 600 W; slower: M3 Ultra.")
    shown = jupyter.picture(page, 0)
    jupyter.press(jupyter.slider(page, "α"), "End")
    jupyter.wait_for_new_picture(page, shown, 0)
    wait_for_words(page, "faster: RTX 5090 at 600 W, M3 Ultra.")
    jupyter.press(jupyter.slider(page, "k, draft"), "End")
    wait_for_words(page, "faster: RTX 5090 at 600 W; not measured at this k: M3 Ultra.")
    page.get_by_label("drafts cost nothing").check()
    page.wait_for_timeout(300)
    jupyter.screenshot(page, "08-machines")
    jupyter.wait_for_answer(page, "print(many.free.value, many.k.value)", "True 6")
    assert jupyter.errors(page) == []
