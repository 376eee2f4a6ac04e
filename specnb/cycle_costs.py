"""Measures what the parts of a cycle cost: the loop itself, run on scripts in place of a text.

A script says how long each draft is and how much of it is kept, so that every situation comes up
often and none depends on what a model thinks. Drafter, target pass, sampling and rollback follow each
other as in a real run, so caches and threads are in the state a real run finds them in.

What a pass takes wanders by a tenth from one second to the next on a shared machine. ``scripted`` measures
costs to predict with, and has to live with that; a ``Twin`` measures them in turn with a run, cycle by cycle,
so that what is left between the two is the ledger's and not the machine's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from . import decoder, ledger, machine
from .drafters import LOOK_UPS, Chain, Drafter, DraftModel, NoDrafter
from .measure import CONTENDED_CORES
from .records import Context, Cycle, CycleCosts, CycleSample, Draft, Limits

PATTERNS = ((True, False, True), (True, True, False))
"""Whether each draft of a script is kept. Over both, a model finds one token to read as often as more."""

LONG_CATCH_UPS = (3, 5, 9, 17, 33, 65)
"""Tokens that the model of a chain may have to read after a stretch of look-ups."""

CHAIN_K = 4
"""Draft length of the cycles that time those; what is read before a draft does not depend on its length."""


class Session(decoder.Target, Protocol):
    """What scripts need of a target besides (``backend.Session``, ``toy.ToySession``)."""

    n_vocab: int

    @property
    def tokens(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class _Step:
    """One scripted cycle. kept: how many tokens of the draft. own: drafted by the drafter, not made up."""

    k: int
    kept: int
    own: bool


def scripted(
    session: Session,
    drafter: Drafter,
    sampler: decoder.Sampler,
    *,
    ks: Sequence[int],
    contexts: Sequence[int],
    ends_text: Callable[[int], bool] = lambda _token: False,
    seed: int = 0,
    clock: Callable[[], float] = perf_counter,
) -> CycleCosts:
    """The parts of cycles of every k in ``ks``, begun at each of these context lengths, all in random order.

    A drafter with a model drafts, and of a chain its model the longest of ``ks``; drafts of look-ups depend on the
    text, so theirs and a chain's shorter ones are made up (``recited`` times the look-up). sampler, ends_text: asked
    as in a run, and then the script is followed. Empties the session. Raises what ``decoder.prefill`` raises for a
    drafter that cannot draft here.
    """
    order = random.Random(seed)
    watch = machine.CoreWatch()
    found: list[CycleSample] = []
    for context_length in order.sample(list(contexts), len(contexts)):
        prompt = _filler(session.n_vocab, context_length + 1)
        script = _Script(session, drafter, sampler, _heard(ends_text), clock, longest_k=max(ks))
        decoder.prefill(session, script, prompt)
        scripts = _scripts(drafter, ks) + (_long_catch_ups() if isinstance(drafter, Chain) else [])
        # Each k comes up at several moments: what slows the machine for a tenth of a second then hits many a little.
        found += script.play_all(order.sample(scripts, len(scripts)), prompt)
    session.rewind(0)
    return CycleCosts(
        drafter=drafter.name,
        samples=tuple(found),
        contexts=tuple(sorted(contexts)),
        keeps_drafts=keeps_drafts(drafter),
        contended=watch.busy_elsewhere() > CONTENDED_CORES,
    )


class Twin:
    """A text of its own beside a run, made to have the same cycles as the run: for what they cost at that moment.

    For every cycle of the run (``follow``) it has one with as many tokens drafted and kept, at the same context
    length, its draft made by the same kind of drafter; only the tokens mean nothing. Before the first it plays some
    scripts, so that every part has a price. session, drafter: not the run's own. contexts: lengths at which prices are
    kept apart; the first is where the run's first cycle begins. Raises what ``scripted`` raises.
    """

    def __init__(
        self,
        session: Session,
        drafter: Drafter,
        sampler: decoder.Sampler,
        *,
        k: int,
        contexts: Sequence[int],
        ends_text: Callable[[int], bool] = lambda _token: False,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        prompt = _filler(session.n_vocab, contexts[0] + 1)
        self._session, self._drafter, self._contexts = session, drafter, tuple(contexts)
        self._script = _Script(session, drafter, sampler, _heard(ends_text), clock, longest_k=k)
        self._watch = machine.CoreWatch()
        decoder.prefill(session, self._script, prompt)
        self._scripted = self._script.play_all(_scripts(drafter, sorted({0, k} if looks_up(drafter) else {k})), prompt)
        session.rewind(contexts[0])
        self._decoding = self._script.decode(prompt, stopped=lambda: False)
        self._cycles: list[Cycle] = []
        self._ahead: list[Cycle] = []
        self._coin = random.Random(0)

    def follow(self, cycle: Cycle) -> None:
        """One cycle in the situation of this one, now or after the next: strict turns could fall in with a rhythm."""
        self._ahead.append(cycle)
        if self._coin.random() < 0.5:
            self._catch_up()

    def costs(self) -> CycleCosts:
        """What all its cycles took. Empties its session."""
        self._catch_up()
        self._session.rewind(0)
        keeps = keeps_drafts(self._drafter)
        return CycleCosts(
            drafter=self._drafter.name,
            samples=(*self._scripted, *ledger.samples(self._cycles, keeps_drafts=keeps)),
            contexts=self._contexts,
            keeps_drafts=keeps,
            contended=self._watch.busy_elsewhere() > CONTENDED_CORES,
        )

    def _catch_up(self) -> None:
        for cycle in self._ahead:
            own = cycle.confidences is not None or not cycle.drafted
            self._script.push(_Step(len(cycle.drafted), cycle.kept, own))
            self._cycles.append(next(self._decoding))
        self._ahead.clear()


def recited(
    session: Session,
    drafter: Drafter,
    sampler: decoder.Sampler,
    prompt: Sequence[int],
    text: Sequence[int],
    *,
    k: int = 8,
    ends_text: Callable[[int], bool] = lambda _token: False,
    clock: Callable[[], float] = perf_counter,
) -> CycleCosts:
    """What a look-up takes while the target is made to say ``text``, which repeats some of the prompt (``recited``).

    The text should have stretches that repeat nothing as well, for cycles without a draft. Empties the session.
    """
    watch = machine.CoreWatch()
    script = _Recital(drafter, sampler, text, k)
    decoder.prefill(session, script, prompt)
    cycles = list(
        decoder.decode(session, script, script, prompt, max_tokens=len(text), ends_text=_heard(ends_text), clock=clock)
    )
    session.rewind(0)
    return CycleCosts(
        drafter=drafter.name,
        samples=(),
        contexts=(),
        keeps_drafts=keeps_drafts(drafter),
        recited=ledger.samples(cycles, keeps_drafts=keeps_drafts(drafter)),
        contended=watch.busy_elsewhere() > CONTENDED_CORES,
    )


def _heard(ends_text: Callable[[int], bool]) -> Callable[[int], bool]:
    """Asks it, since that takes time, and lets no text end."""
    return lambda token: ends_text(token) and False


def runs_a_model(drafter: Drafter) -> bool:
    return not isinstance(drafter, (*LOOK_UPS, NoDrafter))


def looks_up(drafter: Drafter) -> bool:
    """Whether drafts differ in length, or there may be none, whatever k is."""
    return not runs_a_model(drafter) or isinstance(drafter, Chain)


def keeps_drafts(drafter: Drafter) -> bool:
    """Whether its model, or a chain's, keeps in its cache what it drafted."""
    return any(isinstance(each, DraftModel) for each in getattr(drafter, "drafters", (drafter,)))


def _scripts(drafter: Drafter, ks: Sequence[int]) -> list[tuple[_Step, ...]]:
    """All that are to be played at one context length, each from there."""
    own, chain = runs_a_model(drafter), isinstance(drafter, Chain)

    def drafts(k: int) -> bool:
        """Whether it makes that draft itself. In a chain shorter ones than its model's are a look-up's."""
        return k == 0 or (own and not (chain and k < max(ks)))

    return [tuple(_Step(k, k if kept else 0, drafts(k)) for kept in pattern) for k in ks for pattern in PATTERNS]


def _long_catch_ups() -> list[tuple[_Step, ...]]:
    """What was made up and kept, and the target's own token, the chain's model has to read."""
    refused = _Step(CHAIN_K, 0, True)
    return [(refused, _Step(fed - 2, fed - 2, False), refused) for fed in LONG_CATCH_UPS]


def _filler(n_vocab: int, count: int, start: int = 0) -> list[int]:
    """Some ordinary tokens, none of them twice in a row of hundreds; which ones does not matter to the cost.

    The last quarter is left alone: a draft model's vocabulary may end a little before the target's.
    """
    first = min(1000, n_vocab // 2)
    span = max(1, (n_vocab - first) * 3 // 4)
    return [first + (i * 7919) % span for i in range(start, start + count)]


class _MadeUp:
    """A drafter without cost: drafts tokens that mean nothing."""

    name = ledger.FILLER

    def __init__(self, n_vocab: int) -> None:
        self._n_vocab = n_vocab

    def begin(self, prompt: Sequence[int]) -> None:
        pass

    def propose(self, context: Context, limits: Limits) -> Draft:
        return Draft(tuple(_filler(self._n_vocab, limits.longest, start=len(context.tokens))))

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass


class _Script:
    """Policy and sampler in one: who drafts how much, and what the target is made to say to it."""

    def __init__(
        self,
        session: Session,
        drafter: Drafter,
        sampler: decoder.Sampler,
        ends_text: Callable[[int], bool],
        clock: Callable[[], float],
        *,
        longest_k: int,
    ) -> None:
        self._session = session
        self._drafter = drafter
        self._made_up = _MadeUp(session.n_vocab)
        self._sampler = sampler
        self._ends_text = ends_text
        self._clock = clock
        self._longest_k = longest_k
        self._steps: list[_Step] = []
        self._said = 0

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self._drafter,)

    def longest_k(self, drafter: Drafter) -> int:
        return self._longest_k

    def push(self, step: _Step) -> None:
        """The next cycle's."""
        self._steps.append(step)

    def play_all(self, scripts: Sequence[Sequence[_Step]], prompt: Sequence[int]) -> list[CycleSample]:
        """Each of them from the prompt's end."""
        found: list[CycleSample] = []
        n_before = None
        for steps in scripts:
            self._session.rewind(len(prompt) - 1)
            self._steps = list(reversed(steps))
            cycles = list(self.decode(prompt, stopped=lambda: not self._steps))
            found += ledger.samples(cycles, keeps_drafts=keeps_drafts(self._drafter), n_before=n_before)
            n_before = cycles[-1].n_rows
        return found

    def decode(self, prompt: Sequence[int], *, stopped: Callable[[], bool]) -> Iterator[Cycle]:
        yield from decoder.decode(
            self._session,
            self,
            self,
            prompt,
            max_tokens=self._session.n_ctx,
            ends_text=self._ends_text,
            stopped=stopped,
            clock=self._clock,
        )

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        step = self._steps.pop()
        self._kept, self._n_before = step.kept, self._session.n_tokens
        drafter = self._drafter if step.own else self._made_up
        limits = Limits(k=step.k, room=room)
        return drafter, limits, drafter.propose(context, limits)

    def draw(self, session: Session, row: int) -> int:
        self._sampler.draw(session, row)
        place = self._n_before + 1 + row
        drafted = session.tokens[place] if place < session.n_tokens else None
        if row < self._kept and drafted is not None:
            return drafted
        self._said += 1
        token = _filler(session.n_vocab, 1, start=session.n_ctx + 2 * self._said)[0]
        return token if token != drafted else _filler(session.n_vocab, 1, start=session.n_ctx + 2 * self._said + 1)[0]

    def observe(self, cycle: Cycle) -> None:
        pass


class _Recital:
    """Policy and sampler in one: the target says a given text, whatever is drafted."""

    def __init__(self, drafter: Drafter, sampler: decoder.Sampler, text: Sequence[int], k: int) -> None:
        self._drafter = drafter
        self._sampler = sampler
        self._left = list(reversed(text))
        self._k = k

    @property
    def drafters(self) -> Sequence[Drafter]:
        return (self._drafter,)

    def longest_k(self, drafter: Drafter) -> int:
        return self._k

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        limits = Limits(k=self._k, room=room)
        return self._drafter, limits, self._drafter.propose(context, limits)

    def draw(self, session: Session, row: int) -> int:
        self._sampler.draw(session, row)
        return self._left.pop()

    def observe(self, cycle: Cycle) -> None:
        pass
