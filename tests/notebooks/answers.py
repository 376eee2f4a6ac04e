"""What a reader could type at each exercise: a mistake that the check knows, and the worked solution."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import nbformat

from specnb.check import exercises

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
WORKBOOKS = sorted(NOTEBOOKS.glob("*.ipynb"))
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))

CHECK = re.compile(r'^check\(\s*"([\w-]+)"', re.MULTILINE)
ANSWER = re.compile(r"^(?:answer =|def )", re.MULTILINE)

WRONG = {
    "00-tokens-per-cycle": "answer = ngram.kept / ngram.target_passes",
    "00-acceptance": "answer = ngram.kept / ngram.tested",
    "01-pass-ms": "answer = 1000 / 113.95",
    "01-cliff": "answer = 8",
    "01-longest-draft": "answer = 9",
    "01-dip": "answer = 3",
    "02-cycle-ms": "answer = 4 * study.draft_ms + verify_ms[4]",
    "02-expected": "answer = 1 + 4 * 0.7",
    "02-speed": "answer = (4 * study.draft_ms + verify_ms[5]) / 2.773",
    "02-break-even": "answer = theory.solve_alpha((7 * study.draft_ms + verify_ms[7]) / study.plain_ms, 7)",
    "03-implied-acceptance": "answer = 3.078 / 7",
    "03-solve-alpha": """
        def solve(tokens_per_cycle, k):
            return (tokens_per_cycle - 1) / k
        """,
    "03-why": 'answer = "acceptance"',
    "04-alpha": "answer = run.acceptance_rate",
    "04-best-k": "answer = max(staircase.median_ms) - 1",
    "04-verdict": 'answer = "on"',
    "04-look-up": """
        def looked_up(tokens, n, m):
            for place in range(len(tokens) - n):
                if tokens[place : place + n] == tokens[-n:]:
                    return tokens[place + n : place + n + m]
            return []
        """,
    "05-times-dearer": "answer = study.gamma",
    "05-marginal": "answer = (small_q8.weights_mib - small.weights_mib) / (small_q8.ms_per_token - small.ms_per_token)",
    "05-possible": 'answer = "no" if extra <= ceiling else "yes"',
    "06-gamma": 'answer = verify_ms[1] / draft_ms["eagle"]',
    "06-free-draft": "answer = verify_ms[2] / verify_ms[1]",
    "06-free-on-m5": "answer = (1000 / 57.6) * 2.841 / (4 * 2.817 + 29.01)",
    "06-second-head": 'answer = "capacity"',
    "07-accept-loop": """
        def emitted(drafted, own):
            for i, token in enumerate(drafted):
                if own[i] != token:
                    return drafted[:i] + [own[i]]
            return drafted
        """,
    "07-worst": "answer = (4 * 2.817 + 29.01) / (1000 / 57.6)",
    "07-state": 'answer = "tested"',
    "07-sums": "answer = 0.5 * 0.2 + 0.3 * 0.5 + 0.2 * 0.3",
    "07-rejection": """
        def verified(token, p_target, p_draft, random):
            if random.random() < p_target[token] / p_draft[token]:
                return token
            return random.choice(len(p_target), p=p_target)
        """,
    "08-tie": 'answer = "first"',
    "08-mixture": "answer = 0.8 * 0.95 + 0.2 * 2",
    "08-no-rescue": """
        dearer = [n - 1 for n, ms in verify_ms.items() if (n - 1) * draft_ms + ms > verify_ms[1]]
        answer = min(dearer)
        """,
    "08-same-draft": "answer = yours[8] / theirs[8]",
    "08-passes": "answer = 730 / 5",
    "09-load": "answer = next((b for b in sorted(prices) if prices[b] > K + 1), 0)",
    "09-band": "answer = 0.1498",
    "09-structural": 'answer = "k"',
    "09-p-min": "answer = max(row[2] for row in rows)",
}
"""Exercise -> a wrong answer, typed by hand, that reads the same names as the right one."""


def wrong(exercise_id: str) -> str:
    return dedent(WRONG[exercise_id]).strip()


def exercise_of(cell: nbformat.NotebookNode) -> str | None:
    """The exercise that a cell checks."""
    found = CHECK.search(cell.source) if cell.cell_type == "code" else None
    return found[1] if found else None


def exercise_cells(file: Path) -> list[tuple[str, nbformat.NotebookNode]]:
    cells = nbformat.read(file, as_version=4).cells
    return [(exercise_id, cell) for cell in cells if (exercise_id := exercise_of(cell))]


def answer_in(source: str) -> str:
    """The part of an exercise's cell before its check, without what the notebook prepares for it."""
    return source[: CHECK.search(source).start()].strip()


def solutions() -> dict[str, str]:
    """Exercise -> the worked solution, its check left out."""
    return {exercise_id: answer_in(cell.source) for file in SOLUTIONS for exercise_id, cell in exercise_cells(file)}


def answered(source: str, answer: str) -> str:
    """An exercise's cell with this answer in place of the blank one."""
    begins, ends = ANSWER.search(source).start(), CHECK.search(source).start()
    gap = "\n\n" if answer.startswith("def ") else "\n"
    return source[:begins] + answer + gap + source[ends:]


def is_diagnosed(exercise_id: str, message: str) -> bool:
    """Whether the message names a mistake that the exercise knows."""
    exercise = exercises()[exercise_id]
    known = [*getattr(exercise, "diagnoses", {}).values(), *(each.diagnosis for each in getattr(exercise, "wrong", ()))]
    return message.startswith("not it: ") and any(diagnosis in message for diagnosis in known)
