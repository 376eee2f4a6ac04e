"""Goes through notebooks in a browser as a reader does: cell by cell, a guess at each prediction, and at each exercise
first a mistake, then a hint, then the worked solution.

    python tests/browser/answer_every_exercise.py [NUMBER…]

Takes numbers of notebooks, 03 for example; all of them where none is given. Needs Chromium and the embedded model.
Prints a line for each exercise and each prediction, and ends with 1 where one of them failed.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where pytest finds these packages, too

from browser import jupyter
from notebooks import answers

GUESS = re.compile(r"^(my_guess|answer) = None", re.MULTILINE)
PREDICTION = re.compile(r'^\s*predict\("([\w-]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the reader met at one place: an exercise, a prediction, or a cell that raised."""

    place: str
    fine: bool
    said: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.fine else 'FAIL'}  {self.place}: {self.said}"


def replies(browser: Browser, lab_url: str, notebook: Path) -> Iterator[Reply]:
    """One for each exercise and prediction of a notebook, in their order, and one for each cell that raised."""
    page = jupyter.open_notebook(browser, lab_url, notebook.name)
    solutions = answers.solutions()
    for index, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        if cell.cell_type != "code":
            continue
        if exercise_id := answers.exercise_of(cell):
            yield _exercise(page, index, cell.source, exercise_id, solutions[exercise_id])
            continue
        if GUESS.search(cell.source):
            jupyter.type_in(page, index, GUESS.sub(r"\1 = 2", cell.source))
        said = jupyter.run_cell(page, index)
        if raised := jupyter.errors(page):
            yield Reply(f"cell {index}", False, " ".join(raised)[-300:])
            break
        if prediction := PREDICTION.search(cell.source):
            yield Reply(prediction[1], "you guessed 2, the answer is" in said, _line_with("you guessed", said))
    page.close()


def _exercise(page: Page, index: int, source: str, exercise_id: str, right: str) -> Reply:
    jupyter.type_in(page, index, answers.answered(source, answers.wrong(exercise_id)))
    mistaken = jupyter.run_cell(page, index)
    hint = jupyter.ask_kernel(page, f'print(hint("{exercise_id}", 1))')
    jupyter.type_in(page, index, answers.answered(source, right))
    solved = jupyter.run_cell(page, index)
    if not answers.is_diagnosed(exercise_id, _line_with("not it", mistaken)):
        return Reply(exercise_id, False, f"the mistake got {mistaken[:300]!r}")
    if not hint.startswith("hint 1 of"):
        return Reply(exercise_id, False, f"the hint said {hint[:300]!r}")
    last = _line_with("right: ", solved)
    return Reply(exercise_id, last.startswith("right: "), f"mistake diagnosed, hint given, then {last[:120]!r}")


def _line_with(words: str, text: str) -> str:
    """The line of a cell's text that has these words, from there on; all of the text where none has."""
    return next((line[line.find(words) :] for line in text.splitlines() if words in line), text.strip())


def main(numbers: list[str]) -> int:
    notebooks = [file for file in answers.WORKBOOKS if not numbers or file.stem[:2] in numbers]
    chromium = jupyter.find_chromium()
    if not notebooks or chromium is None:
        print(jupyter.NO_CHROMIUM if notebooks else f"There is no notebook with a number among {numbers}.")
        return 1
    failed = total = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter.lab(Path(folder)) as url,
        jupyter.browser(chromium) as browser,
    ):
        for notebook in notebooks:
            start = time.monotonic()
            for reply in replies(browser, url, notebook):
                print(reply, flush=True)
                total, failed = total + 1, failed + (not reply.fine)
            print(f"{notebook.name}: {time.monotonic() - start:.0f} s", flush=True)
    print(f"{total - failed} of {total} places were fine.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
