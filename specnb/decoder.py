"""The loop, once: draft, verify in one target pass, roll back, emit. Plain decoding is the same loop.

The one invariant: before each cycle the last token of the context is *pending*. It has been
chosen but not yet fed to the target, so the session holds exactly ``len(context) - 1`` tokens.
A cycle feeds the pending token and the draft together; row i of that pass is the target's
opinion of what follows the i-th of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Literal, Protocol

from . import verify
from .drafters import Drafter, Head, heads
from .records import Context, Cycle, Draft, Limits


class Target(Protocol):
    """What the loop needs of a session (``backend.Session``, ``toy.ToySession``)."""

    n_ctx: int
    n_batch: int
    n_vocab: int

    @property
    def n_tokens(self) -> int: ...
    @property
    def states(self) -> Sequence[Sequence[float]] | None: ...
    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None: ...
    def rewind(self, n_keep: int) -> None: ...


class Sampler(Protocol):
    def draw(self, session: Target, row: int) -> int: ...


class Policy(Protocol):
    """Chooses who drafts and how much before each cycle (``policy``, ``adaptive``)."""

    @property
    def drafters(self) -> Sequence[Drafter]: ...

    def longest_k(self, drafter: Drafter) -> int:
        """The longest draft that this drafter may be asked for."""

    def draft(self, context: Context, room: int) -> tuple[Drafter, Limits, Draft]:
        """Who drafts in this cycle, the limits that the loop is to hold the draft to, and what was proposed.

        room: tokens that may still be drafted before the budget or the context is full.
        """

    def observe(self, cycle: Cycle) -> None:
        """What came of it; ``other_s`` is not known yet."""


class DraftError(RuntimeError):
    """A drafter proposed something that is no draft."""


def prefill(session: Target, policy: Policy, prompt: Sequence[int]) -> None:
    """Brings target and drafters up to the prompt, all but its last token, which stays pending.

    Everything from an earlier run is dropped first, so two runs share nothing. Raises ValueError
    for an empty prompt, one that does not fit, a token that the target does not have, a k that does
    not fit one pass, and a head that cannot draft here: the session keeps no states, or k is longer
    than the head was trained for. (Of a head in a chain k is no promise: it drafts as far as it can.)
    """
    if not prompt:
        raise ValueError("The prompt is empty: there is no token to continue from.")
    # The pending token is fed later, by then together with a draft.
    if not 0 <= prompt[-1] < session.n_vocab:
        raise ValueError(
            f"The last token of the prompt is {prompt[-1]}, but the target has the tokens 0 to {session.n_vocab - 1}."
        )
    if len(prompt) > session.n_ctx:
        raise ValueError(
            f"The prompt has {len(prompt)} tokens and the context holds {session.n_ctx}. Shorten it or raise n_ctx."
        )
    for drafter in policy.drafters:
        k = policy.longest_k(drafter)
        if k + 1 > session.n_batch:
            raise ValueError(
                f"k = {k} needs a pass over {k + 1} tokens, but a pass of this session holds "
                f"{session.n_batch}. Use a smaller k."
            )
        for head in heads((drafter,)):
            if session.states is None:
                raise ValueError(
                    f"{head.name} drafts from the target's hidden states, and this session keeps none. Open it with "
                    "keep_states=True."
                )
        if isinstance(drafter, Head) and k > drafter.longest_k:
            raise ValueError(
                f"k = {k} is more than {drafter.name} was trained for: {drafter.longest_k} tokens. Use "
                f"k = {drafter.longest_k} or less."
            )
    session.rewind(0)
    if len(prompt) > 1:
        session.extend(prompt[:-1], rows="none")
    for drafter in policy.drafters:
        drafter.begin(prompt)
    for head in heads(policy.drafters):
        head.catch_up(Context(prompt, session.states))


class Text:
    """One text under way: what the loop does before and after each target pass, whoever makes the pass.

    ``propose`` gives the tokens that the next pass is to evaluate after those the session holds;
    ``settle`` verifies, rolls back and emits. The session is only read and rewound here, so a pass
    may be shared with other texts (``concurrency``). The session holds the prompt but for its last
    token (``prefill``). ``left``: tokens it may still emit.
    """

    def __init__(
        self,
        session: Target,
        policy: Policy,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        ends_text: Callable[[int], bool] = lambda _token: False,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.left = max_tokens
        self._session = session
        self._policy = policy
        self._context = list(prompt)
        self._ends_text = ends_text
        self._clock = clock
        self._ended = False

    @property
    def finished(self) -> bool:
        """Whether the text has ended, or max_tokens or the context is used up."""
        return self._ended or self.left <= 0 or len(self._context) > self._session.n_ctx

    def propose(self) -> list[int]:
        """The pending token and a draft: the rows of the next pass."""
        session, context = self._session, self._context
        if session.n_tokens != len(context) - 1:
            raise RuntimeError(
                f"The loop's invariant is broken: the target holds {session.n_tokens} tokens, the context has "
                f"{len(context)} of which the last is pending. Was the session used by something else?"
            )
        self._started_at = self._clock()
        # A cycle emits one token more than it keeps, so the draft leaves room for that one; and the
        # pass feeds the pending token too, so the draft must fit beside it.
        room = min(self.left - 1, session.n_ctx - len(context))
        self._drafter, limits, proposed = self._policy.draft(Context(context, session.states), room)
        self._draft = _within(proposed, limits, room)
        self._drafted_at = self._clock()
        return [context[-1], *self._draft.tokens]

    def settle(self, draw: Callable[[int], int], *, pass_s: float | None = None) -> Cycle:
        """What came of the draft. draw: row of this text's part of the pass -> the target's token there.

        pass_s: seconds of the pass; None when nothing else happened between draft and now.
        """
        verified_at = self._clock()
        verdict = verify.exact_match(self._draft.tokens, draw, self._ends_text)
        sampled_at = self._clock()
        cycle = Cycle(
            drafter=self._drafter.name,
            context_length=len(self._context) - 1,
            drafted=self._draft.tokens,
            tested=verdict.tested,
            kept=verdict.kept,
            emitted=verdict.emitted,
            confidences=self._draft.confidences,
            draft_s=self._drafted_at - self._started_at,
            verify_s=verified_at - self._drafted_at if pass_s is None else pass_s,
            sampling_s=sampled_at - verified_at,
        )
        # The cache keeps the pending token and the kept ones; the last emitted token is the next pending one.
        self._context.extend(verdict.emitted)
        self._session.rewind(len(self._context) - 1)
        for each in self._policy.drafters:
            each.observe(cycle, mine=each is self._drafter)
        self._policy.observe(cycle)
        self.left -= len(verdict.emitted)
        self._ended = verdict.ended
        return replace(cycle, other_s=self._clock() - sampled_at)


def decode(
    session: Target,
    policy: Policy,
    sampler: Sampler,
    prompt: Sequence[int],
    *,
    max_tokens: int,
    ends_text: Callable[[int], bool] = lambda _token: False,
    stopped: Callable[[], bool] = lambda: False,
    exact: bool = False,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Cycle]:
    """Yields one Cycle per target pass until the text ends, max_tokens, the context or ``stopped`` says so.

    Call ``prefill`` with the same prompt first. ``max_tokens`` is reached exactly unless the text
    or the context ends earlier. ``stopped`` is asked between cycles. ``ends_text`` is asked once of
    every emitted token, in order, so it may keep a state (a stop string that spans tokens).
    exact: verify by passes over one token, as plain decoding makes them. The text is then plain
    decoding's on any machine, however passes over more tokens round, and nothing is ever gained:
    it exists to prove equality. (All passes but the draft count as sampling in the cycle's seconds.)
    """
    text = Text(session, policy, prompt, max_tokens=max_tokens, ends_text=ends_text, clock=clock)
    while not text.finished and not stopped():
        rows = text.propose()
        if exact:
            yield text.settle(_row_by_row(session, sampler, rows))
        else:
            session.extend(rows)
            yield text.settle(lambda row: sampler.draw(session, row))


def _row_by_row(session: Target, sampler: Sampler, rows: Sequence[int]) -> Callable[[int], int]:
    """row -> the target's token there, by a pass over that row alone; what follows a refusal is never fed."""

    def draw(row: int) -> int:
        session.extend([rows[row]])
        return sampler.draw(session, 0)

    return draw


def _within(draft: Draft, limits: Limits, room: int) -> Draft:
    """The draft cut to what is allowed and fits; one of a model is cleared when that leaves fewer than n_min tokens.

    A look-up's draft, which has no confidences, has no n_min in llama.cpp either (common/speculative.cpp).
    """
    if draft.confidences is not None and len(draft.confidences) != len(draft.tokens):
        raise DraftError(f"A draft of {len(draft.tokens)} tokens came with {len(draft.confidences)} confidences.")
    if draft.confidences is not None and not all(0.0 <= each <= 1.0 for each in draft.confidences):
        wrong = next(each for each in draft.confidences if not 0.0 <= each <= 1.0)
        raise DraftError(f"A drafter's confidence is a probability between 0 and 1; this draft came with {wrong}.")
    longest = max(0, min(limits.longest, room))
    if len(draft.tokens) > longest:
        confidences = None if draft.confidences is None else draft.confidences[:longest]
        draft = Draft(draft.tokens[:longest], confidences)
    return draft if draft.confidences is None or len(draft.tokens) >= limits.n_min else Draft()
