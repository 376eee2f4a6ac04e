"""Every notebook runs, with a model and without; what is committed reads well anywhere."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from .execute import execute, guesses, illustrated

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
MOST_LINES = 25
LIVE_TWICE = ("00", "04", "07")
"""Executed a second time with the model too: a lab, a widget with a model, and copies of models are left behind."""

EACH = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def texts(notebook: nbformat.NotebookNode) -> str:
    """Everything a reader could see as text, sources and outputs."""
    parts = [cell.source for cell in notebook.cells]
    for output in outputs(notebook):
        parts.append(output.get("text", ""))
        parts += [str(output["data"][kind]) for kind in output.get("data", {}) if kind.startswith("text/")]
    return "\n".join(parts)


def test_there_are_notebooks():
    numbers = [file.stem[:2] for file in NOTEBOOKS]
    assert numbers[0] == "00" and numbers == sorted(set(numbers))


@pytest.mark.notebook
@pytest.mark.model
@EACH
def test_runs_on_the_embedded_model(file: Path, embedded: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SPECNB_TARGET", raising=False)
    execute(file, times=2 if file.stem[:2] in LIVE_TWICE else 1)


@pytest.mark.notebook
@EACH
def test_runs_without_a_model_on_recorded_measurements(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECNB_TARGET", "no-such-model.gguf")
    # Run all a second time in the same kernel: cells must not trip over what they left behind.
    executed = execute(file, times=2)
    if "notebook.start(" in texts(executed):
        assert "this notebook shows recorded runs" in texts(executed)
        assert "measured here, now" not in texts(executed)


@EACH
def test_committed_outputs_are_clean(file: Path):
    notebook = nbformat.read(file, as_version=4)
    assert "widgets" not in notebook.metadata, "widget state is committed; use tests/notebooks/execute.py"
    for output in outputs(notebook):
        assert output.output_type != "error", output.get("evalue")
        assert output.get("name") != "stderr", f"a warning is committed: {output.text}"
        assert "application/vnd.jupyter.widget-view+json" not in output.get("data", {})
    found = re.findall(r"(?<![\w.:/])/(?:home|root|Users|tmp|work|usr|opt|var)/[^\s'\"<]*", texts(notebook))
    assert not found, f"absolute paths are committed: {found}"


@EACH
def test_committed_notebook_was_run_top_to_bottom(file: Path):
    code = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


@EACH
def test_no_answer_is_open_to_see_before_the_guess(file: Path):
    asking = [cell for cell in nbformat.read(file, as_version=4).cells if guesses(cell)]
    assert asking, "it asks for no prediction"
    for cell in asking:
        assert cell.metadata.get("jupyter", {}).get("outputs_hidden"), cell.source


@EACH
def test_cells_are_short(file: Path):
    for cell in nbformat.read(file, as_version=4).cells:
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= MOST_LINES, cell.source[:80]


@EACH
def test_links_lead_to_notebooks_that_exist(file: Path):
    for cell in nbformat.read(file, as_version=4).cells:
        for target in re.findall(r"\]\(([\w./-]+\.ipynb)\)", cell.source):
            assert (file.parent / target).exists(), f"{file.name} links to {target}"


@EACH
def test_opens_with_a_question_and_the_figure_that_answers_it(file: Path, tmp_path: Path):
    notebook = nbformat.read(file, as_version=4)
    before = notebook.cells[0].source
    question = before.split("\n\n")[1]
    assert question.startswith("**The question.**") and "?" in question
    assert "**Time:**" in before and "**Afterwards**" in before
    (tmp_path / "images").mkdir()
    assert illustrated(notebook, tmp_path).cells[0].source == before, "its alt text is not that of the figure"
    name = f"images/{file.stem[:2]}.png"
    assert (tmp_path / name).read_bytes() == (file.parent / name).read_bytes(), "it is not the committed figure"
