"""The whole way from a text to what it says, as records and as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

from .. import messages
from ..records import CostCurve, ObservedCounts
from . import llama_cpp, metrics, sources, timings, vllm_log
from .contradictions import contradictions
from .parsed import LONGEST_K, MOST_BLOCKS
from .reading import Reading, read, total
from .verdict import Verdict, judge

PARSERS = (llama_cpp.parse, timings.parse, metrics.parse, vllm_log.parse)

MOST_TOLD = 12
"""More blocks of one tool than this are summed, and only the first ones told one by one."""


@dataclass(frozen=True)
class Block:
    """One set of counts; its contradictions, if it has any, forbid a reading. costs: what ``judge`` takes.

    Reading and verdict are worked out when asked for: a log may hold thousands of blocks.
    """

    counts: ObservedCounts
    contradictions: tuple[str, ...] = ()
    costs: Mapping[str, object] = field(default_factory=dict, repr=False)

    @cached_property
    def reading(self) -> Reading | None:
        return None if self.contradictions else read(self.counts)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Raises what ``judge`` does for costs that are none."""
        return None if self.reading is None else judge(self.reading, **self.costs)


@dataclass(frozen=True)
class Intake:
    """blocks: every set of counts in the text. sums: one for each tool with several. refused: what was not read."""

    blocks: tuple[Block, ...]
    sums: tuple[Block, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def best(self) -> Block | None:
        """The block that says most: the largest sum, or the only block; None where nothing could be read."""
        sound = [block for block in (*self.sums, *self.blocks) if not block.contradictions]
        return max(sound, key=lambda block: block.counts.drafted, default=None)

    @property
    def lines(self) -> tuple[str, ...]:
        """The report for people, a sentence or two a line."""
        return tuple(_lines(self))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def from_text(
    text: str,
    *,
    k: int | None = None,
    staircase: CostCurve | Mapping[int, float] | None = None,
    plain_tokens_per_second: float | None = None,
    draft_ms: float | None = None,
) -> Intake:
    """Reads every format it finds in the text. Raises ``sources.Unreadable`` for a text that is none or too long.

    k: the longest draft allowed, for tools that do not print it. The others are ``verdict.judge``'s.
    """
    if k is not None and not 1 <= k <= LONGEST_K:
        raise ValueError(messages.intake_bad_k(k, LONGEST_K))
    text = sources.from_paste(text)
    costs = {
        "staircase": staircase.median_ms if isinstance(staircase, CostCurve) else staircase,
        "plain_tokens_per_second": plain_tokens_per_second,
        "draft_ms": draft_ms,
    }
    found = [parse(text) for parse in PARSERS]
    counts = [each for parsed in found for each in parsed.counts][:MOST_BLOCKS]
    return Intake(
        blocks=tuple(_block(each, k, costs) for each in counts),
        sums=tuple(_sums(counts, k, costs)),
        refused=tuple(reason for parsed in found for reason in parsed.refused)[:MOST_BLOCKS],
    )


def from_file(path: str | Path, **costs: object) -> Intake:
    """``from_text`` of a file, or of standard input for "-"."""
    return from_text(sources.from_file(path), **costs)


def from_bytes(content: bytes, name: str, **costs: object) -> Intake:
    """``from_text`` of a file's content, as a page hands it over."""
    return from_text(sources.from_bytes(content, name), **costs)


def from_address(address: str, **costs: object) -> Intake:
    """``from_text`` of what a server answers to one GET within five seconds; only ever called with a named address."""
    return from_text(sources.from_address(address), **costs)


def of_counts(counts: ObservedCounts, *, k: int | None = None, **costs: object) -> Block:
    """The same for counts that are no text: somebody's table."""
    return _block(counts, k, costs)


def _block(counts: ObservedCounts, k: int | None, costs: Mapping[str, object]) -> Block:
    if k is not None and counts.k is None:
        counts = replace(counts, k=k)
    return Block(counts, contradictions(counts), costs)


def _sums(counts: list[ObservedCounts], k: int | None, costs: Mapping[str, object]) -> list[Block]:
    """One sum a tool, never across tools: a server's log, JSON and metrics tell of the same answers."""
    sums = []
    for _tool, group in groupby(sorted(counts, key=lambda each: each.tool), key=lambda each: each.tool):
        sound = [each for each in group if not contradictions(each)]
        if len(sound) > 1:
            sums.append(_block(total(sound), k, costs))
    return sums


def _lines(intake: Intake) -> list[str]:
    if not intake.blocks and not intake.refused:
        return [messages.INTAKE_NOTHING]
    lines: list[str] = []
    for block in intake.blocks[:MOST_TOLD]:
        lines += _told(block)
    if len(intake.blocks) > MOST_TOLD:
        lines.append(messages.intake_not_told(len(intake.blocks) - MOST_TOLD))
    for block in intake.sums:
        lines += _told(block)
    told = (*intake.blocks[:MOST_TOLD], *intake.sums)
    notes = dict.fromkeys(note for block in told if not block.contradictions for note in block.reading.unknown)
    lines += [messages.intake_note(note) for note in notes]
    return lines + [messages.intake_refused(reason) for reason in intake.refused[:MOST_TOLD]]


def _told(block: Block) -> list[str]:
    counts = block.counts
    lines = [messages.intake_head(counts)]
    if block.contradictions:
        return lines + [messages.intake_contradiction(each) for each in block.contradictions]
    reading, verdict = block.reading, block.verdict
    lines += messages.intake_reading(
        acceptance=reading.acceptance_rate,
        per_draft=reading.tokens_per_draft,
        per_cycle=reading.tokens_per_cycle,
        length=reading.draft_length,
        share=reading.drafted_share,
        alpha=reading.alpha,
        interval=reading.alpha_interval,
        tested=None if reading.tested is None else (counts.kept, reading.tested),
        k=counts.k,
    )
    return lines + messages.intake_verdict(
        says=verdict.says,
        measured=verdict.measured,
        against_t1=verdict.against_t1,
        predicted=verdict.predicted,
        best=verdict.best,
        draft_ms=verdict.draft_ms,
        draft_source=verdict.draft_source,
        hopeless=verdict.hopeless,
        problem=verdict.problem,
        diagnosis=None if verdict.diagnosis is None else verdict.diagnosis.text,
        sometimes=reading.drafted_share is not None and reading.drafted_share[1] < 0.995,
    )
