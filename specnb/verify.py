"""Verification: which drafted tokens are kept, and which token comes next.

One rule here, llama.cpp's (common/sampling.cpp, common_sampler_sample_and_accept_n): at every
position the target draws its own token as it always would, and the drafted token is kept only
when it is that very token. What is emitted is always the target's own draw, so the text cannot
depend on the drafter; only the speed can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """kept: drafted tokens accepted. tested: those looked at. emitted: kept tokens, then the target's own."""

    kept: int
    tested: int
    emitted: tuple[int, ...]


def exact_match(
    drafted: Sequence[int], draw: Callable[[int], int], ends_text: Callable[[int], bool] = lambda _token: False
) -> Verdict:
    """Compares the draft with the target's draws, row by row, up to the first difference.

    drafted:   the proposed tokens, n of them; the pass had n+1 rows.
    draw:      row -> the target's token there (row 0 follows the pending token). It is called once
               for every emitted token and never otherwise, so a sampler's state advances with the text.
    ends_text: whether a token ends the generation. Nothing is emitted after such a token.
               (llama.cpp emits one more when the ending was the last drafted token; nobody reads it.)

    When every drafted token is kept, row n holds the target's next token already: the bonus token.
    """
    emitted: list[int] = []
    for row, proposal in enumerate(drafted):
        own = draw(row)
        emitted.append(own)
        if own != proposal:
            return Verdict(kept=row, tested=row + 1, emitted=tuple(emitted))
        if ends_text(own):
            return Verdict(kept=row + 1, tested=row + 1, emitted=tuple(emitted))
    emitted.append(draw(len(drafted)))
    return Verdict(kept=len(drafted), tested=len(drafted), emitted=tuple(emitted))
