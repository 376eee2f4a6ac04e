"""Executes notebooks in place and keeps their outputs clean: no widget state, no timestamps.

The picture with which a notebook opens is one of its own: the figure of the cell tagged "opening".

    python tests/notebooks/execute.py notebooks [--record]

Takes notebook files or folders. --record also saves every live measurement under data/runs/.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import sys
from datetime import date
from pathlib import Path
from time import perf_counter

import nbformat
from nbclient import NotebookClient

from specnb import messages
from specnb.machine import this_machine

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600
OPENING = "opening"
MADE_ON = "specnb_made_on"
"""Notebook metadata: on what, and on which day, the committed outputs were made."""
CAPTION = "From the outputs below, made on"


def notebooks(paths: list[Path]) -> list[Path]:
    """The notebook files named, and those in the folders named."""
    return [file for path in paths for file in (sorted(path.glob("*.ipynb")) if path.is_dir() else [path])]


def execute(file: Path, *, times: int = 1) -> nbformat.NotebookNode:
    """A fresh copy of the notebook, run top to bottom in a new kernel (``times`` over, in the same kernel)."""
    notebook = nbformat.read(file, as_version=4)
    client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(file.parent)}})
    client.store_widget_state = False
    with client.setup_kernel():
        for _ in range(times):
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
    return cleaned(notebook)


def guesses(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell compares the reader's guess with the answer, and so tells the answer."""
    return cell.cell_type == "code" and re.search(r"^predict\(", cell.source, re.MULTILINE) is not None


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what only this execution knows (widget models, timings of cells); answers to guesses folded away.

    JupyterLab unfolds the output of a cell that is run.
    """
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if guesses(cell):
            cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True
        for output in cell.get("outputs", []):
            # A widget view without its model shows an error box; the static figure before it stays.
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    return notebook


def illustrated(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Puts the figure of the cell tagged "opening" into the first cell, by way of ``folder``/images/<number>.png.

    Solutions have no such cell and stay as they are.
    """
    tagged = next((cell for cell in notebook.cells if OPENING in cell.metadata.get("tags", ())), None)
    if tagged is None:
        return notebook
    (figure,) = (output for output in tagged.outputs if "image/png" in output.get("data", {}))
    first = notebook.cells[0]
    number = first.source[2:4]
    picture = folder / "images" / f"{number}.png"
    picture.write_bytes(base64.b64decode(figure.data["image/png"]))
    alt = figure.metadata["image/png"]["alt"].translate(str.maketrans("[]", "()"))
    caption = f"*{CAPTION} {notebook.metadata[MADE_ON]}. What is measured live comes out differently elsewhere.*"
    paragraphs = [each for each in first.source.split("\n\n") if not each.startswith(("![", f"*{CAPTION}"))]
    paragraphs[2:2] = [f"![{alt}](images/{picture.name})", caption]  # after the title and the question
    first.source = "\n\n".join(paragraphs)
    return notebook


def made_on() -> str:
    machine = this_machine("", gpu=False)
    cores = messages.counted(machine.cores, "core")
    return f"{machine.name} ({cores}), {date.today():%Y-%m-%d}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--record", action="store_true", help="save live measurements under data/runs/")
    arguments = parser.parse_args()
    if arguments.record:
        os.environ["SPECNB_RECORD"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    for file in notebooks(arguments.paths):
        start = perf_counter()
        notebook = execute(file)
        notebook.metadata[MADE_ON] = made_on()
        nbformat.write(illustrated(notebook, file.parent), file)
        print(f"{file.name}: {perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
