"""What a drafter would have done at another k or p_min, told from text that is known already. No model runs.

With the same prompt and sampling the target writes the same text whatever is drafted: drafts change
how many passes it takes, never what it says. So one text, and for drafters with a model one pilot
run with long drafts, tell the cycles of every shorter setting:

* a look-up drafts from the text alone, so the loop is run again over the known text: exact;
* a drafter that was asked at every place while the text was written plainly (``Rehearsal``) has told all its drafts
  of every shorter setting: exact as well, for heads too;
* of a drafter with a model the pilot tells, for nearly every place of the text, which token it would
  draft there and how sure it would be: the next places of a draft that is kept are read from the same tokens as
  a draft that starts there would. The confidences say where a higher p_min would have stopped. Not known
  is the place after a draft that was kept whole; such a draft is taken to go on. For heads all this is an
  estimate: they would start from a real state, not from a guessed one, and be surer. So a head needs a pilot at
  each p_min.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Literal

from . import decoder
from .drafters import Drafter
from .policy import Fixed
from .records import Cycle, Draft, DraftPrice, Limits, Run


@dataclass(frozen=True, slots=True)
class Step:
    """One replayed cycle. computed: tokens to be paid for, the one that p_min throws away among them.

    None are where a chain's look-up drafts. missed: tokens that the drafter's model has to read before it can draft;
    told by rehearsals only.
    """

    drafted: int
    computed: int
    emitted: int
    missed: int = 0


def of_look_up(drafter: Drafter, prompt: Sequence[int], text: Sequence[int], k: int) -> tuple[Step, ...]:
    """The cycles of a drafter without a model on a known continuation. ValueError for an empty text."""
    if not text:
        raise ValueError("There is no text to replay: it is empty.")
    target = _KnownText(prompt, text, k)
    policy = Fixed(drafter, Limits(k=k))
    decoder.prefill(target, policy, prompt)
    cycles = decoder.decode(target, policy, target, prompt, max_tokens=len(text))
    return tuple(Step(len(cycle.drafted), len(cycle.drafted), len(cycle.emitted)) for cycle in cycles)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A text that was written plainly, and what a drafter would have drafted at each of its places.

    drafts: one for each token of the text, of at most k tokens, made without any p_min. rereads: a head drafts, which
    reads what was kept of its draft once more, now from real states.
    """

    text: tuple[int, ...]
    drafts: tuple[Draft, ...]
    k: int
    rereads: bool

    def __post_init__(self) -> None:
        if len(self.drafts) != len(self.text) or not self.text:
            raise ValueError(f"A rehearsal has a draft for each token; got {len(self.drafts)} for {len(self.text)}.")


def of_rehearsal(rehearsal: Rehearsal, k: int, p_min: float = 0.0) -> tuple[Step, ...]:
    """The cycles of a drafter whose drafts hang on the text alone. ValueError for a k beyond the rehearsal's."""
    if k > rehearsal.k:
        raise ValueError(f"A rehearsal at k={rehearsal.k} cannot tell what k={k} would do.")
    text, steps, at, missed = rehearsal.text, [], 0, 0
    while at < len(text):
        draft = rehearsal.drafts[at]
        # As in the loop: a cycle emits one token more than it keeps, so the draft leaves room for that one.
        drafted, computed = _held_to(draft, min(k, len(text) - at - 1), p_min)
        right = (token == said for token, said in zip(draft.tokens[:drafted], text[at:], strict=False))
        kept = sum(1 for _ in takewhile(bool, right))
        steps.append(Step(drafted, computed, kept + 1, missed if computed else 0))
        at += kept + 1
        if computed:  # its model has read the pending token, and of the draft what it read to draft on
            missed = kept if rehearsal.rereads else max(0, kept - (computed - 1))
        else:
            missed += kept + 1
    return tuple(steps)


def _held_to(draft: Draft, longest: int, p_min: float) -> tuple[int, int]:
    """(tokens drafted, tokens computed) of a draft cut to a length and a p_min, which a look-up's knows nothing of."""
    if draft.confidences is None:
        return min(longest, len(draft.tokens)), 0
    confidences = draft.confidences[:longest]
    sure = sum(1 for _ in takewhile(lambda confidence: confidence >= p_min, confidences))
    return sure, min(sure + 1, len(confidences))


def of_pilot(pilot: Run, k: int, p_min: float = 0.0) -> tuple[Step, ...]:
    """The cycles of a pilot run, had its drafts been at most ``k`` long and stopped at ``p_min``.

    A draft without confidences is not stopped by a p_min. ValueError for a longer k or a lower p_min than the pilot's,
    and for a pilot without cycles.
    """
    if k > pilot.k or p_min < pilot.p_min:
        raise ValueError(
            f"A pilot at k={pilot.k} and p_min={pilot.p_min:g} cannot tell what k={k} and p_min={p_min:g} would do."
        )
    places = [place for cycle in pilot.cycles for place in _places(cycle, ended=len(cycle.drafted) < pilot.k)]
    if not places:
        raise ValueError("There is no text to replay: the pilot run has no cycles.")
    steps: list[Step] = []
    at = 0
    while at < len(places):
        # As in the loop: a cycle emits one token more than it keeps, so the draft leaves room for that one.
        step = _draft(places, at, min(k, len(places) - at - 1), p_min)
        steps.append(step)
        at += step.emitted
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class _Place:
    """What the drafter would draft at one place of the text.

    right: the token that stands there. confidence: of it; 0 where a p_min ended the pilot's draft, None where it had
    no draft at all. after: where it is wrong, the confidences of what it would draft behind the wrong token, with the
    same 0. looked_up: the draft there is a look-up's (the pilot is a chain's), and no model makes it.
    """

    right: bool
    confidence: float | None
    after: tuple[float, ...] = ()
    looked_up: bool = False


def _places(cycle: Cycle, *, ended: bool) -> list[_Place]:
    """One for each token that the cycle emitted. ended: its draft is shorter than its k."""
    looked_up = bool(cycle.drafted) and cycle.confidences is None
    confidences = cycle.confidences or (1.0,) * len(cycle.drafted)
    found = [_Place(True, confidence, looked_up=looked_up) for confidence in confidences[: cycle.kept]]
    if len(cycle.emitted) > cycle.kept:
        if cycle.kept < len(cycle.drafted):
            behind = confidences[cycle.kept + 1 :] + ((0.0,) if ended else ())
            found.append(_Place(False, confidences[cycle.kept], behind, looked_up))
        elif ended:  # by a p_min, by the end of the text, or because there was nothing to look up
            found.append(_Place(False, 0.0 if cycle.confidences is not None else None, looked_up=looked_up))
        else:
            found.append(_Place(True, confidences[-1] if confidences else None, looked_up=looked_up))
    return found


def _draft(places: Sequence[_Place], at: int, longest: int, p_min: float) -> Step:
    """The cycle that starts at a place, with a draft of at most ``longest`` tokens.

    In a chain whoever drafts there makes the whole draft: a look-up's costs no model anything.
    """
    step = _drafted_by_one(places, at, longest, p_min)
    return replace(step, computed=0) if places[at].looked_up else step


def _drafted_by_one(places: Sequence[_Place], at: int, longest: int, p_min: float) -> Step:
    kept = 0
    for place in places[at : at + longest]:
        if place.confidence is None:
            return Step(kept, kept, kept + 1)
        if place.confidence < p_min:
            return Step(kept, kept + 1, kept + 1)
        if not place.right:
            return _past_the_error(place, kept, longest, p_min)
        kept += 1
    return Step(kept, kept, kept + 1)


def _past_the_error(place: _Place, kept: int, longest: int, p_min: float) -> Step:
    """The draft goes on behind its first wrong token, which only verification can know; all of that is for nothing."""
    for number, confidence in enumerate(place.after[: longest - kept - 1], kept + 1):
        if confidence < p_min:
            return Step(number, number + 1, kept + 1)
    return Step(longest, longest, kept + 1)


def ms_per_token(
    steps: Sequence[Step],
    verify_ms: Mapping[int, float],
    price: DraftPrice,
    *,
    other_ms: float = 0.0,
    switch_ms: float = 0.0,
) -> float:
    """Milliseconds per emitted token of replayed cycles.

    verify_ms: N -> ms. other_ms: sampling and bookkeeping of each cycle. switch_ms: of a pass over another N than the
    one before (``measure.switch_ms``). KeyError where a cycle's N was not measured.
    """
    spent = switch_ms * sum(step.drafted != before.drafted for before, step in pairwise(steps))
    for step in steps:
        n = step.drafted + 1
        if n not in verify_ms:
            raise KeyError(f"T(N) was not measured at N={n}, which these cycles need.")
        spent += price.ms(step.computed, step.missed) + verify_ms[n] + other_ms
    return spent / sum(step.emitted for step in steps)


def tokens_per_cycle(steps: Sequence[Step]) -> float:
    return sum(step.emitted for step in steps) / len(steps)


class _KnownText:
    """A target and sampler in one that always says the given text, whatever it is fed."""

    states = None

    def __init__(self, prompt: Sequence[int], text: Sequence[int], k: int) -> None:
        self._all = [*prompt, *text]
        # A draft may run past the end of the text, where it is cut by the budget but still has to fit.
        self.n_ctx = len(self._all) + 1
        self.n_batch = max(self.n_ctx, k + 1)
        self.n_vocab = max(self._all) + 1
        self.n_tokens = 0
        self._before_pass = 0

    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None:
        self._before_pass = self.n_tokens
        self.n_tokens += len(tokens)

    def rewind(self, n_keep: int) -> None:
        self.n_tokens = n_keep

    def draw(self, _session: object, row: int) -> int:
        return self._all[self._before_pass + row + 1]
