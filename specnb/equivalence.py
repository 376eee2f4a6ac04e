"""Does speculation change the text? Two runs side by side, and a control that tells rounding from a fault.

A pass over several tokens may use other kernels than a pass over one and round differently. Where
that turns a choice, two texts part though nothing is wrong. So where they part the same tokens are
evaluated twice more, with no drafter, no draft and no refusal: in passes over one token, and in
passes as long as the run's. If the same sampler makes the two choices from those two rows, rounding
did it; if not, something else did, and that is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .backend import Sampler, Session
from .records import Comparison, Divergence, Rounding, Run


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Index of the first token that differs, the end of the shorter text included; None for equal texts."""
    shortest = min(len(one), len(other))
    at = next((i for i in range(shortest) if one[i] != other[i]), shortest)
    return None if at == len(one) == len(other) else at


def compare(session: Session, plain: Run, other: Run) -> Comparison:
    """Holds a run against plain decoding; runs the control where they differ, which empties the session.

    session: the one both ran on, or one that computes alike. Raises ValueError for runs of different
    prompts or sampling: they have no reason to agree.
    """
    if plain.prompt_tokens != other.prompt_tokens or plain.sampling != other.sampling:
        raise ValueError("Only runs of the same prompt and the same sampling can be compared.")
    if plain.drafted:
        raise ValueError(f"The first run is to be plain decoding; this one drafted, with {plain.drafter}.")
    at = first_difference(plain.tokens, other.tokens)
    if at is None:
        return Comparison(other.drafter, other.k, plain.emitted)
    return Comparison(other.drafter, other.k, at + 1, _divergence(session, plain, other, at))


def _divergence(session: Session, plain: Run, other: Run, at: int) -> Divergence:
    one, sampler = _alone(session, plain, at)
    several = _row_of_passes_like(session, plain, other, at)
    ours, theirs = (run.tokens[at] if at < run.emitted else None for run in (plain, other))
    second, best = np.partition(one, -2)[-2:]
    return Divergence(
        position=at,
        plain_token=ours,
        other_token=theirs,
        gap=float(best - second),
        rounding=float(np.abs(one - several).max()),
        reproduced=sampler is not None and (sampler.choice(one), sampler.choice(several)) == (ours, theirs),
    )


def _begin(session: Session, prompt: Sequence[int]) -> None:
    """The prompt as the loop feeds it: all but its last token, in passes of the batch's length."""
    session.rewind(0)
    if len(prompt) > 1:
        session.extend(prompt[:-1], rows="none")


def _alone(session: Session, plain: Run, at: int) -> tuple[np.ndarray, Sampler | None]:
    """Logits that decide the token at that position, every token after the prompt evaluated alone; and the sampler.

    The sampler is as it was before that token; None where drawing again gives another text.
    """
    sampler, same = Sampler(plain.sampling, prompt=plain.prompt_tokens), True
    _begin(session, plain.prompt_tokens)
    session.extend(plain.prompt_tokens[-1:])
    for token in plain.tokens[:at]:
        same = sampler.draw(session, 0) == token and same
        session.extend([token])
    return session.logits(0).copy(), sampler if same else None


def _row_of_passes_like(session: Session, plain: Run, other: Run, at: int) -> np.ndarray:
    """The same row out of passes of the other run's lengths, fed with plain decoding's text instead of drafts.

    Rows behind the one in question hold what may follow; they cannot reach it, but a pass has its length.
    """
    text = (*plain.prompt_tokens, *plain.tokens)
    _begin(session, plain.prompt_tokens)
    emitted = 0
    for cycle in other.cycles:
        fed = list(text[cycle.context_length :][: cycle.n_rows])
        session.extend(fed + [text[-1]] * (cycle.n_rows - len(fed)))
        if at < emitted + len(cycle.emitted):
            return session.logits(at - emitted).copy()
        emitted += len(cycle.emitted)
        session.rewind(cycle.context_length + len(cycle.emitted))
    # The other text ended here: its next pass would have been over the pending token alone.
    session.extend([text[len(plain.prompt_tokens) + at - 1]])
    return session.logits(0).copy()


def rounding(session: Session, tokens: Sequence[int], ns: Sequence[int], *, n_prompt: int, label: str = "") -> Rounding:
    """How far the logits of ``tokens[n_prompt:]`` move when those are evaluated N in a pass instead of one.

    n_prompt: tokens before them, fed alike every time. The last pass is shorter where N does not
    divide their number. Empties the session. Raises ValueError where an N could not fill one pass.
    """
    rest = len(tokens) - n_prompt
    if not ns or max(ns) > rest:
        raise ValueError(f"{rest} tokens after the prompt cannot fill a pass of N={max(ns, default=0)}; give more.")
    alone = _rows(session, tokens, n_prompt, 1)
    pairs = np.partition(alone, -2, axis=1)[:, -2:]
    changes = []
    for n in ns:
        moved = np.abs(_rows(session, tokens, n_prompt, n) - alone).max(axis=1)
        changes.append((n, float(moved.max()), int((moved > 0).sum())))
    session.rewind(0)
    return Rounding(
        label=label or session.model.format,
        positions=rest,
        logit_range=float(np.ptp(alone, axis=1).mean()),
        changes=tuple(changes),
        gaps=tuple(sorted((pairs[:, 1] - pairs[:, 0]).tolist())),
    )


def _rows(session: Session, tokens: Sequence[int], n_prompt: int, n: int) -> np.ndarray:
    """Logits after each token behind the prompt, shape (len(tokens) - n_prompt, n_vocab), n tokens a pass."""
    session.rewind(0)
    if n_prompt:
        session.extend(tokens[:n_prompt], rows="none")
    rows = np.empty((len(tokens) - n_prompt, session.n_vocab), dtype=np.float32)
    for start in range(n_prompt, len(tokens), n):
        part = tokens[start : start + n]
        session.extend(part)
        for i in range(len(part)):
            rows[start - n_prompt + i] = session.logits(i)
    return rows
