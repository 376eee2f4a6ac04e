"""Every exercise has one worked solution; all of them run without a model, and none stands in a workbook notebook."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from specnb.check import exercises

from .answers import (
    SOLUTIONS,
    WORKBOOKS,
    WRONG,
    answer_in,
    answered,
    exercise_cells,
    exercise_of,
    is_diagnosed,
    solutions,
    wrong,
)

MOST_LINES = 14
SHORTEST_GIVEAWAY = 12
"""Characters: shorter pieces of code stand in any text about tokens."""
EACH = pytest.mark.parametrize("file", SOLUTIONS, ids=lambda file: file.stem)
TO_REPLY = "execute_result"


def reply(cell: nbformat.NotebookNode) -> str:
    """What the check at the end of a cell said."""
    return next(each.data["text/plain"] for each in cell.outputs if each.output_type == TO_REPLY)


@pytest.fixture(scope="module")
def executed() -> list[nbformat.NotebookNode]:
    """The cells of all solutions, each exercise also with its wrong answer, run in one kernel without a model.

    One kernel because starting and importing takes longer than everything else; names are deleted between notebooks.
    """
    cells = []
    for file in SOLUTIONS:
        cells.append(nbformat.v4.new_code_cell("%reset -f"))
        for cell in nbformat.read(file, as_version=4).cells:
            if cell.cell_type != "code":
                continue
            if exercise_id := exercise_of(cell):
                source = answered(cell.source, wrong(exercise_id))
                cells.append(nbformat.v4.new_code_cell(source, metadata={"wrong": exercise_id}))
            cells.append(nbformat.v4.new_code_cell(cell.source))
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(SOLUTIONS[0].parent)}}).execute()
    return notebook.cells


def test_every_exercise_is_asked_once_and_solved_once():
    asked = [exercise_id for file in WORKBOOKS for exercise_id, _ in exercise_cells(file)]
    solved = [exercise_id for file in SOLUTIONS for exercise_id, _ in exercise_cells(file)]
    assert Counter(asked) == Counter(list(exercises()))
    assert solved == asked, "each solution stands in the order of the exercises"
    assert set(WRONG) == set(exercises())


@pytest.mark.notebook
def test_every_solution_is_right(executed):
    right = [cell for cell in executed if exercise_of(cell) and "wrong" not in cell.metadata]
    assert len(right) == len(exercises())
    for cell in right:
        assert reply(cell).startswith("right: "), (exercise_of(cell), reply(cell))


@pytest.mark.notebook
def test_every_wrong_answer_is_diagnosed(executed):
    mistaken = [cell for cell in executed if "wrong" in cell.metadata]
    assert len(mistaken) == len(exercises())
    for cell in mistaken:
        assert is_diagnosed(exercise_of(cell), reply(cell)), (exercise_of(cell), reply(cell))


@EACH
def test_the_committed_solutions_were_run_and_are_right(file: Path):
    code = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for exercise_id, cell in exercise_cells(file):
        assert reply(cell).startswith("right: "), (exercise_id, reply(cell))
        assert reply(cell).endswith(exercises()[exercise_id].why), f"{exercise_id} says something else by now: run it"
    kinds = {output.get("name", output.output_type) for cell in code for output in cell.outputs}
    assert kinds <= {"stdout", TO_REPLY}


@EACH
def test_a_solution_repeats_the_question_and_is_short(file: Path):
    cells = nbformat.read(file, as_version=4).cells
    for before, cell, after in zip(cells, cells[1:], cells[2:], strict=False):
        if exercise_id := exercise_of(cell):
            question = exercises()[exercise_id].question.rstrip(".").casefold()
            assert question in before.source.casefold(), exercise_id
            assert after.cell_type == "markdown", f"{exercise_id}: nothing is said about what the answer means"
            assert len(cell.source.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("file", WORKBOOKS, ids=lambda file: file.stem)
def test_a_workbook_notebook_asks_and_does_not_tell(file: Path):
    sources = [cell.source for cell in nbformat.read(file, as_version=4).cells]
    right = solutions()
    for exercise_id, cell in exercise_cells(file):
        assert reply(cell).startswith("not answered yet: "), (exercise_id, reply(cell))
        lines = answer_in(cell.source).splitlines()
        blank = ("answer = None", "raise NotImplementedError", "...")
        assert lines[-1].strip().startswith(blank), f"{exercise_id} is answered: {lines[-1]}"
        assert not any(right[exercise_id] in source for source in sources), f"{exercise_id} is solved in the notebook"
        assert all(f'hint("{exercise_id}"' not in source or f'hint("{exercise_id}", 1)' in source for source in sources)
        assert any(f'hint("{exercise_id}", 1)' in source for source in sources), f"{exercise_id} offers no hint"


def test_no_hint_holds_a_line_of_the_solution():
    for exercise_id, solution in solutions().items():
        lines = [re.sub(r"^(answer = |return |if )|:$", "", line.strip()) for line in solution.splitlines()]
        for text in (exercises()[exercise_id].nudge, *exercises()[exercise_id].hints):
            told = [line for line in lines if len(line) >= SHORTEST_GIVEAWAY and line in text]
            assert not told, f"{exercise_id}: {text!r} says {told}"


def test_notebook_and_solutions_link_to_each_other():
    assert [file.name for file in SOLUTIONS] == [file.name for file in WORKBOOKS]
    for workbook, solution in zip(WORKBOOKS, SOLUTIONS, strict=True):
        asking, solving = (nbformat.read(file, as_version=4).cells for file in (workbook, solution))
        links = [i for i, cell in enumerate(asking) if f"(solutions/{solution.name})" in cell.source]
        last = max(i for i, cell in enumerate(asking) if exercise_of(cell))
        assert len(links) == 1 and links[0] > last, f"{workbook.name} links to its solutions behind the last exercise"
        assert f"](../{workbook.name})" in solving[0].source
