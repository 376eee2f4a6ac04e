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
from .drafters import Drafter, heads
from .records import Context, Cycle, Draft, Limits


class Target(Protocol):
    """What the loop needs of a session (``backend.Session``, ``toy.ToySession``)."""

    n_ctx: int
    n_batch: int

    @property
    def n_tokens(self) -> int: ...
    @property
    def states(self) -> Sequence[Sequence[float]] | None: ...
    def extend(self, tokens: Sequence[int], *, rows: Literal["all", "last", "none"] = "all") -> None: ...
    def rewind(self, n_keep: int) -> None: ...


class Sampler(Protocol):
    def draw(self, session: Target, row: int) -> int: ...


class Policy(Protocol):
    """Chooses who drafts and how much before each cycle (``policy``)."""

    @property
    def drafters(self) -> Sequence[Drafter]: ...
    @property
    def longest_k(self) -> int: ...
    def choose(self, room: int) -> tuple[Drafter, Limits]: ...


class DraftError(RuntimeError):
    """A drafter proposed something that is no draft."""


def prefill(session: Target, policy: Policy, prompt: Sequence[int]) -> None:
    """Brings target and drafters up to the prompt, all but its last token, which stays pending.

    Everything from an earlier run is dropped first, so two runs share nothing. Raises ValueError
    for an empty prompt, one that does not fit, a k that does not fit one pass, and a head that
    cannot draft here: the session keeps no states, or k is longer than the head was trained for.
    """
    if not prompt:
        raise ValueError("The prompt is empty: there is no token to continue from.")
    if len(prompt) > session.n_ctx:
        raise ValueError(
            f"The prompt has {len(prompt)} tokens and the context holds {session.n_ctx}. Shorten it or raise n_ctx."
        )
    if policy.longest_k + 1 > session.n_batch:
        raise ValueError(
            f"k = {policy.longest_k} needs a pass over {policy.longest_k + 1} tokens, but a pass holds "
            f"{session.n_batch} (n_batch). Use a smaller k or a larger n_batch."
        )
    for head in heads(policy.drafters):
        if session.states is None:
            raise ValueError(
                f"{head.name} drafts from the target's hidden states, and this session keeps none. Open it with "
                "keep_states=True."
            )
        if policy.longest_k > head.longest_k:
            raise ValueError(
                f"k = {policy.longest_k} is more than {head.name} was trained for: {head.longest_k} tokens. Use "
                f"k = {head.longest_k} or less."
            )
    session.rewind(0)
    if len(prompt) > 1:
        session.extend(prompt[:-1], rows="none")
    for drafter in policy.drafters:
        drafter.begin(prompt)
    for head in heads(policy.drafters):
        head.catch_up(Context(prompt, session.states))


def decode(
    session: Target,
    policy: Policy,
    sampler: Sampler,
    prompt: Sequence[int],
    *,
    max_tokens: int,
    ends_text: Callable[[int], bool] = lambda _token: False,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Cycle]:
    """Yields one Cycle per target pass until the text ends, max_tokens, the context or ``stopped`` says so.

    Call ``prefill`` with the same prompt first. ``max_tokens`` is reached exactly unless the text
    or the context ends earlier. ``stopped`` is asked between cycles.
    """
    context = list(prompt)
    left = max_tokens
    while left > 0 and len(context) <= session.n_ctx and not stopped():
        if session.n_tokens != len(context) - 1:
            raise RuntimeError(
                f"The loop's invariant is broken: the target holds {session.n_tokens} tokens, the context has "
                f"{len(context)} of which the last is pending. Was the session used by something else?"
            )
        start = clock()
        # A cycle emits one token more than it keeps, so the draft leaves room for that one; and the
        # pass feeds the pending token too, so the draft must fit beside it.
        drafter, limits = policy.choose(min(left - 1, session.n_ctx - len(context)))
        draft = _within(drafter.propose(Context(context, session.states), limits), limits)
        drafted_at = clock()
        session.extend([context[-1], *draft.tokens])
        verified_at = clock()
        verdict = verify.exact_match(draft.tokens, lambda row: sampler.draw(session, row), ends_text)
        sampled_at = clock()
        cycle = Cycle(
            drafter=drafter.name,
            context_length=len(context) - 1,
            drafted=draft.tokens,
            tested=verdict.tested,
            kept=verdict.kept,
            emitted=verdict.emitted,
            confidences=draft.confidences,
            draft_s=drafted_at - start,
            verify_s=verified_at - drafted_at,
            sampling_s=sampled_at - verified_at,
        )
        # The cache keeps the pending token and the kept ones; the last emitted token is the next pending one.
        context.extend(verdict.emitted)
        session.rewind(len(context) - 1)
        for each in policy.drafters:
            each.observe(cycle, mine=each is drafter)
        left -= len(verdict.emitted)
        yield replace(cycle, other_s=clock() - sampled_at)
        if ends_text(verdict.emitted[-1]):
            return


def _within(draft: Draft, limits: Limits) -> Draft:
    """The draft cut to what is allowed; cleared when that leaves fewer than n_min tokens."""
    if draft.confidences is not None and len(draft.confidences) != len(draft.tokens):
        raise DraftError(f"A draft of {len(draft.tokens)} tokens came with {len(draft.confidences)} confidences.")
    if len(draft.tokens) > limits.longest:
        confidences = None if draft.confidences is None else draft.confidences[: limits.longest]
        draft = Draft(draft.tokens[: limits.longest], confidences)
    return draft if len(draft.tokens) >= limits.n_min else Draft()
