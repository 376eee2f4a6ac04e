"""What llama.cpp's programs print: the closing block of its examples, and the server's lines for each answer.

The lines are those of ``examples/speculative-simple``, ``examples/lookup`` and ``tools/server/server-context.cpp``
(``print_timings``), and the statistics of ``common/speculative.cpp``; spellings of older builds are read as well.
All patterns are literals with numbers between them, so the time to match a line is proportional to its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .. import messages
from ..records import ObservedCounts
from .fitting import drafts_that_fit, narrowed
from .parsed import NotCounts, Parsed, real, whole

EXAMPLE, SERVER, STATISTICS = "llama.cpp example", "llama-server log", "llama.cpp drafter statistics"

LONGEST_LINE = 4000

_WORDS = ("accept", "acc per pos", "eval time", "n_draft", "n_predict", "decoded", "t_draft", "statistics")
"""Every line that matters holds one of these; a server's log is mostly others."""

_VALUE = r"([^\s,;|()%]{1,40})"
_EXAMPLE_FIELD = re.compile(rf"\b(n_draft|n_predict|n_drafted|n_accept|accept) {{0,12}}= {{0,12}}{_VALUE}")
_DECODED = re.compile(rf"\bdecoded {{1,8}}{_VALUE} tokens in {{1,12}}{_VALUE} seconds")
_DRAFT_TIME = re.compile(rf"\bt_draft {{0,12}}= {{0,12}}{_VALUE} ms")
_TASK = re.compile(r"\bid {1,4}(-?\d{1,9}) \| task (-?\d{1,12}) \|")
_EVAL = re.compile(rf"(?<!prompt )\beval time {{0,4}}= {{0,14}}{_VALUE} ms / {{0,8}}{_VALUE} (?:tokens|runs)")
_ACCEPTANCE = re.compile(
    rf"\bdraft acceptance(?: rate)? {{0,4}}= {{0,4}}{_VALUE} "
    rf"\( {{0,10}}{_VALUE} accepted / {{0,10}}{_VALUE} generated\)"
)
_MEAN = re.compile(rf"\bmean (?:acceptance )?len(?:gth)? {{0,4}}= {{0,8}}{_VALUE}")
_PER_POSITION = re.compile(
    r"(?:\bacc per pos|\bacceptance rate per position|#acc rate/pos) {0,4}= {0,4}\(([\d., ]{0,2000})\)"
)
_STATISTICS = re.compile(
    r"\bstatistics {1,24}(\S{1,40}): #calls\(b,g,a\) = {0,10}(\d{1,15}) {1,10}(\d{1,15}) {1,10}(\d{1,15}), "
    r"#gen drafts = {0,10}(\d{1,15}), #acc drafts = {0,10}(\d{1,15}), "
    r"#gen tokens = {0,10}(\d{1,15}), #acc tokens = {0,10}(\d{1,15})"
)
_DURATION = re.compile(rf"dur\(b,g,a\) = {{0,8}}{_VALUE}, {{0,8}}{_VALUE}, {{0,8}}{_VALUE} ms")


def parse(text: str) -> Parsed:
    """Every closing block and every line on draft acceptance; drafter statistics where there is nothing else."""
    lines = [line[:LONGEST_LINE] for line in text.splitlines() if any(word in line for word in _WORDS)]
    statistics = _statistics(lines)
    examples, bad_examples = _kept_or_refused(_example_blocks(lines), _example)
    answers, bad_answers = _kept_or_refused(_answers(lines), _answer)
    refused = bad_examples + bad_answers
    if not examples and not answers:
        alone, bad = _kept_or_refused(iter(statistics.values()), _of_statistics)
        return Parsed(alone, refused + bad)
    # The statistics count all answers of a server so far; of one example's run there is one set of them.
    draft_ms = _draft_ms(statistics.values())
    examples = tuple(_joined(each, statistics) if len(examples) == 1 else each for each in examples)
    return Parsed(
        tuple(each if each.draft_ms is not None else replace(each, draft_ms=draft_ms) for each in examples + answers),
        refused,
    )


def _kept_or_refused(blocks: Iterator, read) -> tuple[tuple[ObservedCounts, ...], tuple[str, ...]]:
    kept, refused = [], []
    for number, block in enumerate(blocks, 1):
        try:
            kept.append(read(block, number))
        except NotCounts as reason:
            refused.append(str(reason))
    return tuple(kept), tuple(refused)


# --- the closing block of the examples ------------------------------------------------------------------


def _example_blocks(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The fields of each block as text. A field that comes again begins another block."""
    block: dict[str, str] = {}
    for line in lines:
        found: list[tuple[str, str]] = []
        if match := _DECODED.search(line):
            found += [("decoded", match[1]), ("seconds", match[2])]
        if match := _DRAFT_TIME.search(line):
            found.append(("t_draft", match[1]))
        found += _EXAMPLE_FIELD.findall(line)
        for name, value in found:
            if name in block:
                yield from _complete(block)
                block = {}
            block[name] = value
    yield from _complete(block)


def _complete(block: dict[str, str]) -> Iterator[dict[str, str]]:
    """A settings line of its own, such as ``n_predict = -1``, is no block."""
    if "n_drafted" in block or "n_accept" in block:
        yield block


def _example(block: dict[str, str], number: int) -> ObservedCounts:
    """Every pass gives one token of the target's own: passes = n_predict - n_accept, those without a draft counted."""
    for needed in ("n_drafted", "n_accept"):
        if needed not in block:
            raise NotCounts(messages.intake_field_missing(EXAMPLE, needed))
    drafted, kept = whole("n_drafted", block["n_drafted"]), whole("n_accept", block["n_accept"])
    emitted = whole("n_predict", block["n_predict"]) if "n_predict" in block else None
    if emitted is None and "decoded" in block:
        emitted = whole("decoded", block["decoded"])
    passes = None if emitted is None or emitted < kept else (emitted - kept, emitted - kept)
    draft_s = real("t_draft", block["t_draft"]) if "t_draft" in block else None
    return ObservedCounts(
        tool=EXAMPLE,
        label=messages.intake_run(number),
        drafted=drafted,
        kept=kept,
        passes=passes,
        emitted=emitted,
        first_tokens=0,
        k=whole("n_draft", block["n_draft"]) or None if "n_draft" in block else None,
        acceptance=_percent(block.get("accept"), drafted),
        seconds=real("seconds", block["seconds"]) if "seconds" in block else None,
        draft_ms=None if draft_s is None or not drafted else draft_s / drafted,
    )


def _percent(printed: str | None, drafted: int) -> float | None:
    if printed is None or (drafted == 0 and "nan" in printed.lower()):  # 0 / 0, which the program does print
        return None
    return real("accept", printed) / 100.0


# --- the server's lines ---------------------------------------------------------------------------------


@dataclass
class _Answer:
    task: str
    rate: str
    kept: str
    drafted: str
    mean: str | None = None
    per_position: str | None = None
    ms: str | None = None
    tokens: str | None = None


def _answers(lines: Iterable[str]) -> Iterator[_Answer]:
    """One for each line on draft acceptance, with the time of its task and the shares by position."""
    times: dict[str, tuple[str, str]] = {}
    last: dict[str, _Answer] = {}
    found: list[_Answer] = []
    for line in lines:
        # Older servers name the task in a line of its own and then print lines without a name.
        match = _TASK.search(line)
        task = f"{match[1]}/{match[2]}" if match else ""
        if match := _EVAL.search(line):
            times[task] = (match[1], match[2])
        if match := _ACCEPTANCE.search(line):
            answer = _Answer(task, *match.groups())
            answer.ms, answer.tokens = times.pop(task, None) or times.pop("", (None, None))
            mean = _MEAN.search(line)
            answer.mean = mean[1] if mean else None
            last[task] = answer
            found.append(answer)
        if "statistics" not in line and (match := _PER_POSITION.search(line)) and task in last:
            last[task].per_position = match[1]
    yield from found


def _answer(answer: _Answer, number: int) -> ObservedCounts:
    """The mean is printed with two digits; how many passes that can be is worked out."""
    drafted, kept = whole("generated", answer.drafted), whole("accepted", answer.kept)
    mean = None if answer.mean is None else real("mean len", answer.mean)
    shares = _shares(answer.per_position)
    drafts, by_position = None, ()
    if mean is not None and (drafts := drafts_that_fit(kept, drafted, mean)) is not None:
        drafts, by_position = narrowed(kept, drafts, shares)
    emitted = None if answer.tokens is None else whole("tokens", answer.tokens)
    return ObservedCounts(
        tool=SERVER,
        label=messages.intake_answer(number, answer.task),
        drafted=drafted,
        kept=kept,
        drafts=drafts,
        passes=passes_of_one_answer(emitted, kept, drafts),
        emitted=emitted,
        first_tokens=1,
        k=len(shares) or None,
        kept_by_position=by_position,
        per_position=shares,
        acceptance=None if drafted == 0 else real("draft acceptance", answer.rate),
        mean_length=mean,
        seconds=None if answer.ms is None else real("eval time", answer.ms) / 1e3,
    )


def passes_of_one_answer(
    emitted: int | None, kept: int, drafts: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """Target passes after the prompt: each gives one token of its own, and the prompt's pass gave the first one.

    An answer that a stop string cut short emits less than was kept, so there are never fewer passes than drafts.
    """
    if emitted is None or emitted - 1 - kept < 0:
        return None
    own = emitted - 1 - kept
    return tuple(max(own, end) for end in drafts or (0, 0))


def _shares(printed: str | None) -> tuple[float, ...]:
    parts = [part.strip() for part in (printed or "").split(",")]
    return tuple(real("acceptance by position", part) for part in parts if part)


# --- the drafters' statistics -----------------------------------------------------------------------------


def _statistics(lines: Iterable[str]) -> dict[str, tuple[re.Match[str], str]]:
    """The last line of each drafter: they count from the program's start on."""
    return {match[1]: (match, line) for line in lines if "statistics" in line and (match := _STATISTICS.search(line))}


def _draft_ms(statistics: Iterable[tuple[re.Match[str], str]]) -> float | None:
    """Milliseconds per drafted token, over all drafters; None where no time was printed."""
    timed = [(match, duration) for match, line in statistics if (duration := _DURATION.search(line))]
    drafted = sum(int(match[7]) for match, _ in timed)
    try:
        return sum(real("dur", duration[2]) for _, duration in timed) / drafted if drafted else None
    except NotCounts:
        return None


def _of_statistics(found: tuple[re.Match[str], str], _number: int) -> ObservedCounts:
    match, line = found
    begun, accepted, drafts, drafted, kept = (int(match[i]) for i in (2, 4, 5, 7, 8))
    # Examples report every cycle as a draft, empty ones as well; then mean and shares are of another total.
    comparable = accepted == drafts
    mean, per_position = _MEAN_OF_STATISTICS.search(line), _PER_POSITION.search(line)
    shares = _shares(per_position[1]) if per_position and comparable else ()
    exact = (drafts, drafts)
    return ObservedCounts(
        tool=STATISTICS,
        label=match[1],
        drafted=drafted,
        kept=kept,
        drafts=exact,
        k=len(shares) or None,
        kept_by_position=narrowed(kept, exact, shares)[1],
        per_position=shares,
        mean_length=real("#mean acc len", mean[1]) if mean and comparable else None,
        draft_ms=_draft_ms([found]),
        requests=begun or None,
    )


_MEAN_OF_STATISTICS = re.compile(rf"#mean acc len {{0,4}}= {{0,8}}{_VALUE}")


def _joined(block: ObservedCounts, statistics: dict[str, tuple[re.Match[str], str]]) -> ObservedCounts:
    """A closing block with the number of drafts from the statistics printed under it, where they count the same."""
    drafted = sum(int(match[7]) for match, _ in statistics.values())
    if not statistics or drafted != block.drafted:
        return block
    drafts = sum(int(match[5]) for match, _ in statistics.values())
    return replace(block, drafts=(drafts, drafts))
