"""A run taken apart into steps: what a reader has seen of a cycle at each of them.

A cycle is told as a *round*: the pending token, the draft token by token, the target's pass, one comparison after the
other, the target's own token, and the rollback of the caches. Everything comes from the record; what the target would
have said behind a refusal is in no record, because the loop never looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from .records import Cycle, Run, TokenTexts

TAIL = 2
"""Tokens shown before the pending one: a draft's cache may lag by one."""

KEEPS_A_TEXT = ("draft_model", "layer_skip", "distilled")
"""Drafters with a cache that holds the text's tokens and is cut to what it shares with it. (The chain has one too, but
its record does not tell which of its cycles fed it; a head's cache holds the target's states.)"""


class Phase(IntEnum):
    """In the order of a round."""

    START = 0
    DRAFT = 1
    STOP = 2
    PASS = 3
    TEST = 4
    OWN = 5
    ROLLBACK = 6


class Stop(Enum):
    """Why a draft has fewer than k tokens."""

    P_MIN = "p_min"
    ROOM = "room"
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class DraftCache:
    """The draft model's cache in one round.

    behind: tokens of the text, the pending one included, that it lacks when the round begins. fed: how many of the
    drafted tokens went through the draft model; None: it made no pass at all.
    """

    behind: int
    fed: int | None


@dataclass(frozen=True, slots=True)
class Round:
    """One cycle and where it stands. context: the text before it; the last token is pending.

    stop: None for a draft of k tokens. draft_cache: None for a drafter that keeps no text.
    """

    number: int
    of: int
    cycle: Cycle
    context: tuple[int, ...]
    k: int
    p_min: float
    stop: Stop | None
    draft_cache: DraftCache | None

    @property
    def has_own(self) -> bool:
        """Whether the target added a token of its own; not where a kept token ended the text."""
        return len(self.cycle.emitted) > self.cycle.kept

    @property
    def removed(self) -> int:
        """Rows that the target's cache drops at the end of the round."""
        return len(self.cycle.drafted) + 1 - len(self.cycle.emitted)


@dataclass(frozen=True, slots=True)
class Step:
    """What is visible. drafted, tested: tokens drafted and compared so far."""

    round: Round
    phase: Phase
    drafted: int
    tested: int

    @property
    def refuses(self) -> bool:
        """Whether it is at this step that a drafted token is refused."""
        return self.phase is Phase.TEST and self.tested > self.round.cycle.kept

    @property
    def judged(self) -> bool:
        """Whether every comparison of the round has been made."""
        return self.phase >= Phase.TEST and self.tested == self.round.cycle.tested


def steps(run: Run) -> tuple[Step, ...]:
    """Every step of every round, in order. ValueError for a run without a cycle."""
    if not run.cycles:
        raise ValueError(f"This run of {run.drafter} made no target pass, so there is nothing to step through.")
    return tuple(step for each in rounds(run) for step in _steps_of(each))


def rounds(run: Run) -> Iterator[Round]:
    """The cycles of a run, each with the text before it."""
    context = run.prompt_tokens
    held = len(context) - 1
    for number, cycle in enumerate(run.cycles, 1):
        k = max(run.k, len(cycle.drafted))
        stop = _stop(run, cycle, k, room=_room(run, len(context)))
        cache = None
        if cycle.drafter in KEEPS_A_TEXT:
            cache = DraftCache(len(context) - held, _fed(cycle, stop))
            if cache.fed is not None:
                held = len(context) + min(cycle.kept, cache.fed)
        yield Round(number, len(run.cycles), cycle, context, k, run.p_min, stop, cache)
        context += cycle.emitted


def _room(run: Run, n_context: int) -> int | None:
    """Tokens that could still be drafted; None where the text ended before its budget, which no record tells."""
    if run.finish not in ("max_tokens", "context full"):
        return None
    return len(run.prompt_tokens) + run.emitted - n_context - 1


def _stop(run: Run, cycle: Cycle, k: int, room: int | None) -> Stop | None:
    n = len(cycle.drafted)
    if n == k:
        return None
    if n == room:
        return Stop.ROOM
    return Stop.P_MIN if run.p_min > 0.0 and cycle.confidences is not None else Stop.SHORT


def _fed(cycle: Cycle, stop: Stop | None) -> int | None:
    """A draft model feeds each drafted token to get the next; only p_min makes it stop after feeding the last."""
    if stop is Stop.P_MIN:
        return len(cycle.drafted)
    return len(cycle.drafted) - 1 if cycle.drafted else None


def _steps_of(each: Round) -> Iterator[Step]:
    n, tested = len(each.cycle.drafted), each.cycle.tested
    yield Step(each, Phase.START, 0, 0)
    yield from (Step(each, Phase.DRAFT, i, 0) for i in range(1, n + 1))
    if each.stop is not None:
        yield Step(each, Phase.STOP, n, 0)
    yield Step(each, Phase.PASS, n, 0)
    yield from (Step(each, Phase.TEST, n, i) for i in range(1, tested + 1))
    if each.has_own:
        yield Step(each, Phase.OWN, n, tested)
    yield Step(each, Phase.ROLLBACK, n, tested)


# --- going about -------------------------------------------------------------------------------


def next_refusal(steps: Sequence[Step], at: int) -> int | None:
    """Index of the first step behind ``at`` that refuses a token; None when there is none."""
    return next((i for i in range(at + 1, len(steps)) if steps[i].refuses), None)


def next_round(steps: Sequence[Step], at: int) -> int | None:
    """Index of the next round's first step; None in the last round."""
    return next((i for i in range(at + 1, len(steps)) if steps[i].phase is Phase.START), None)


def previous_round(steps: Sequence[Step], at: int) -> int | None:
    """Index of this round's first step, from there of the one before; None at the very first."""
    return next((i for i in range(at - 1, -1, -1) if steps[i].phase is Phase.START), None)


# --- what stands where -------------------------------------------------------------------------


class Mark(Enum):
    """What is said of a cell by its looks."""

    TEXT = "text"
    PENDING = "pending"
    DRAFTED = "drafted"
    KEPT = "kept"
    REFUSED = "refused"
    UNTESTED = "untested"
    BELOW_P_MIN = "below p_min"
    UNREAD = "unread"
    OWN = "own"
    NOT_LOOKED_AT = "not looked at"
    HELD = "held"
    REMOVED = "removed"
    NOT_FED = "not fed"


@dataclass(frozen=True, slots=True)
class Cell:
    """place: 0 is the pending token's, 1 the first drafted one's, -1 the last token before. token: None: unknown."""

    place: int
    token: int | None
    mark: Mark


def text_cells(step: Step) -> tuple[Cell, ...]:
    """The end of the text and what the round has added to it so far."""
    cycle, context = step.round.cycle, step.round.context
    shown = len(cycle.emitted) if step.phase >= Phase.OWN else min(step.tested, cycle.kept)
    cells = [Cell(place, token, Mark.TEXT) for place, token in _before(context)]
    cells.append(Cell(0, context[-1], Mark.PENDING if step.phase < Phase.PASS else Mark.TEXT))
    for place, token in enumerate(cycle.emitted[:shown], 1):
        last = place == len(cycle.emitted) and step.phase is Phase.ROLLBACK
        mark = Mark.PENDING if last else Mark.KEPT if place <= cycle.kept else Mark.OWN
        cells.append(Cell(place, token, mark))
    return tuple(cells)


def draft_cells(step: Step) -> tuple[Cell, ...]:
    """The draft as far as it is known, each token with what became of it."""

    def mark(place: int) -> Mark:
        if place <= step.tested:
            return Mark.KEPT if place <= step.round.cycle.kept else Mark.REFUSED
        return Mark.UNTESTED if step.judged else Mark.DRAFTED

    drafted = step.round.cycle.drafted[: step.drafted]
    cells = [Cell(place, token, mark(place)) for place, token in enumerate(drafted, 1)]
    if step.phase is Phase.STOP and step.round.stop is Stop.P_MIN:
        cells.append(Cell(len(drafted) + 1, None, Mark.BELOW_P_MIN))
    return tuple(cells)


def target_cells(step: Step) -> tuple[Cell, ...]:
    """The rows of the target's pass, each under the drafted token that it is compared with."""
    if step.phase < Phase.PASS:
        return ()
    cycle, own = step.round.cycle, step.round.has_own
    read = len(cycle.emitted) if step.phase >= Phase.OWN else step.tested

    def cell(place: int) -> Cell:
        if place <= read:
            return Cell(place, cycle.emitted[place - 1], Mark.KEPT if place <= cycle.kept else Mark.OWN)
        to_come = not step.judged or (own and place == len(cycle.emitted))
        return Cell(place, None, Mark.UNREAD if to_come else Mark.NOT_LOOKED_AT)

    return tuple(cell(place) for place in range(1, len(cycle.drafted) + 2))


def target_cache(step: Step) -> tuple[Cell, ...]:
    """What the target holds; between rounds everything but the pending token."""
    cycle, n = step.round.cycle, len(step.round.cycle.drafted)
    if step.phase < Phase.PASS:
        return _cache(step, held=-1, until=-1, text_ends=0)
    if step.phase < Phase.ROLLBACK:
        return _cache(step, held=n, until=n, text_ends=n)
    return _cache(step, held=len(cycle.emitted) - 1, until=n, text_ends=len(cycle.emitted))


def draft_cache(step: Step) -> tuple[Cell, ...] | None:
    """What the draft model holds; None for a drafter that keeps no text. It is cut when the next draft begins."""
    cache, cycle = step.round.draft_cache, step.round.cycle
    if cache is None:
        return None
    if step.phase is Phase.START or cache.fed is None:
        text_ends = len(cycle.emitted) if step.phase is Phase.ROLLBACK else 0
        return _cache(step, held=-cache.behind, until=-cache.behind, text_ends=text_ends)
    if step.phase is Phase.DRAFT:
        return _cache(step, held=step.drafted - 1, until=step.drafted - 1, text_ends=0)
    if step.phase < Phase.ROLLBACK:
        return _cache(step, held=cache.fed, until=cache.fed, text_ends=0)
    return _cache(step, held=min(cycle.kept, cache.fed), until=cache.fed, text_ends=len(cycle.emitted))


def _cache(step: Step, *, held: int, until: int, text_ends: int) -> tuple[Cell, ...]:
    """Held up to one place, removed up to another; what the text has behind that is not fed yet."""
    cycle, context = step.round.cycle, step.round.context
    drafted = dict(enumerate(cycle.drafted, 1))
    text = dict(_before(context)) | {0: context[-1]} | dict(enumerate(cycle.emitted, 1))
    places = range(min(text), max(until, text_ends) + 1)

    def cell(place: int) -> Cell:
        if place > until:
            return Cell(place, text[place], Mark.NOT_FED)
        token = drafted[place] if place > 0 else text[place]
        return Cell(place, token, Mark.HELD if place <= held else Mark.REMOVED)

    return tuple(cell(place) for place in places)


def _before(context: Sequence[int]) -> list[tuple[int, int]]:
    """(place, token) of the last tokens before the pending one."""
    first = max(0, len(context) - 1 - TAIL)
    return [(i - len(context) + 1, context[i]) for i in range(first, len(context) - 1)]


# --- what tokens read as -----------------------------------------------------------------------


class Vocabulary(Protocol):
    """What is needed of a model (``backend.Model``)."""

    def piece(self, token: int) -> bytes: ...
    def token_text(self, token: int) -> str: ...


def texts_of(runs: Iterable[Run], vocabulary: Vocabulary) -> TokenTexts:
    """The text of every token in these runs, drafted ones included."""
    tokens: set[int] = set()
    for run in runs:
        tokens.update(run.prompt_tokens, run.tokens, *(cycle.drafted for cycle in run.cycles))
    return TokenTexts({token: _text(token, vocabulary) for token in sorted(tokens)})


def _text(token: int, vocabulary: Vocabulary) -> str:
    """Special tokens have no bytes, only a spelling; bytes that are part of a character are told by number."""
    data = vocabulary.piece(token)
    try:
        return data.decode("utf-8") or vocabulary.token_text(token)
    except UnicodeDecodeError:
        return "".join(f"<{byte:02X}>" for byte in data)
