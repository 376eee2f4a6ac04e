"""The ``timings`` object in llama-server's JSON answers (``tools/server``), bare, inside an answer, or in a stream."""

from __future__ import annotations

import json
import re

from .. import messages
from ..records import ObservedCounts
from .llama_cpp import passes_of_one_answer
from .parsed import MOST_BLOCKS, NotCounts, Parsed, real, whole

TOOL = "llama-server JSON"

LONGEST_OBJECT = 4000
"""Characters of the object, which holds about a dozen numbers and no other object."""

_NEEDED = re.compile(r'"(?:draft_n|predicted_n)"')


def parse(text: str) -> Parsed:
    """One block for each answer. In a stream every chunk repeats its answer's counts so far: the last one counts."""
    answers: list[dict[str, object]] = []
    end = 0
    for number, match in enumerate(_NEEDED.finditer(text)):
        if number >= 4 * MOST_BLOCKS or len(answers) >= MOST_BLOCKS:
            break
        if match.start() < end:  # another key of the object just read
            continue
        start = text.rfind("{", max(end, match.start() - LONGEST_OBJECT), match.start())
        close = text.find("}", match.start(), match.start() + LONGEST_OBJECT)
        if start < 0 or close < 0:
            continue
        try:
            timings = json.loads(text[start : close + 1])
        except ValueError:  # a log line that merely mentions the name
            continue
        end = close
        if answers and _continues(answers[-1], timings):
            answers.pop()
        answers.append(timings)
    counts, refused = [], []
    for number, timings in enumerate(answers, 1):
        try:
            counts.append(_counts(timings, number))
        except NotCounts as reason:
            refused.append(str(reason))
    return Parsed(tuple(counts), tuple(refused))


def _continues(before: dict[str, object], after: dict[str, object]) -> bool:
    """Whether two chunks belong to one answer: the same prompt, timed to the microsecond, and more tokens."""
    same = all(before.get(name) == after.get(name) for name in ("prompt_n", "prompt_ms", "cache_n"))
    known = before.get("prompt_ms") is not None
    numbers = [each.get("predicted_n") for each in (before, after)]
    return same and known and all(isinstance(n, int) for n in numbers) and numbers[1] >= numbers[0]


def _counts(timings: dict[str, object], number: int) -> ObservedCounts:
    if ("draft_n" in timings) != ("draft_n_accepted" in timings):
        missing = "draft_n_accepted" if "draft_n" in timings else "draft_n"
        raise NotCounts(messages.intake_field_missing(TOOL, missing))
    # The server leaves both out when nothing was drafted.
    drafted = whole("draft_n", timings.get("draft_n", 0))
    kept = whole("draft_n_accepted", timings.get("draft_n_accepted", 0))
    emitted = whole("predicted_n", timings["predicted_n"]) if "predicted_n" in timings else None
    return ObservedCounts(
        tool=TOOL,
        label=messages.intake_answer(number, ""),
        drafted=drafted,
        kept=kept,
        passes=passes_of_one_answer(emitted, kept),
        emitted=emitted,
        first_tokens=1,
        seconds=real("predicted_ms", timings["predicted_ms"]) / 1e3 if "predicted_ms" in timings else None,
    )
