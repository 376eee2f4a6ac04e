"""The recorded answer to a prediction: folded away on opening, in sight once its cell was run."""

from __future__ import annotations

import nbformat
import pytest
from notebooks.execute import guesses

from .jupyter import ROOT, open_notebook, run_all, wait_for_the_end

pytestmark = [pytest.mark.browser, pytest.mark.model]

NAME = "00_start_here.ipynb"
TOLD = "The answer is"


def test_an_answer_is_folded_until_its_cell_is_run(browser, lab_url):
    cells = nbformat.read(ROOT / "notebooks" / NAME, as_version=4).cells
    (index,) = (i for i, cell in enumerate(cells) if guesses(cell))
    page = open_notebook(browser, lab_url, NAME)
    answer = page.locator(".jp-Notebook .jp-Cell").nth(index)
    assert TOLD not in answer.inner_text()
    assert answer.locator(".jp-OutputPlaceholder").is_visible()
    run_all(page)
    wait_for_the_end(page)
    assert TOLD in answer.inner_text()
    page.close()
