"""What a diagnosis says."""

from __future__ import annotations

from collections.abc import Callable

from ..records import Diagnosis
from .writing import counted, number, speedup, tokens


def impossible_acceptance(acceptance: float) -> str:
    return f"An acceptance rate is kept / drafted, a share between 0 and 1; got {acceptance}. Percent? Divide by 100."


def diagnosis(found: Diagnosis) -> str:
    """A diagnosis in two or three sentences: what it is, the figures that say so, what to do."""
    said: dict[str, Callable[[Diagnosis], str]] = {
        "nothing drafted": lambda _: (
            "Nothing was drafted, so speculation did nothing. A look-up needs text that repeats; a draft model needs "
            "a p_min that it can reach and a vocabulary that fits."
        ),
        "structural": lambda d: (
            f"Alpha is {number(d.alpha)}: next to no tested token is kept. That is not a poor draft but something "
            "incompatible: a cache that cannot take tokens back (M-RoPE, recurrent layers), another tokenizer, drafts "
            "shifted by a place. Tuning cannot help; look for errors in the log, or turn it off."
        ),
        "too few tokens": lambda d: (
            f"Alpha is {number(d.alpha)}, but of {counted(d.tested, 'tested token')} only. That may be chance: draft "
            "more before you look for an error."
        ),
        "looped text": lambda d: (
            f"The text repeats itself, and inside a loop every guess is right: alpha {number(d.alpha)} is flattered. "
            "Measure on a text without loops before you conclude anything."
        ),
        "costs unknown": lambda d: (
            f"The counts are sound: alpha {number(d.alpha)}, so a full draft brings {tokens(d.tokens_per_cycle)} a "
            f"cycle. Were drafts and further rows free, that would be {speedup(d.tokens_per_cycle)}; what it is takes "
            "T(N), or plain decoding timed on the same prompt."
        ),
        "fine": lambda d: f"k={d.k} is predicted at {speedup(d.speedup)}, and no other k is notably better.",
        "over a cliff": lambda d: (
            f"k={d.k} needs passes over {d.k + 1} rows, beyond the cliff at N={d.cliff_n}: {speedup(d.speedup)}. "
            f"{_better(d)} Alpha {number(d.alpha)} is not to blame."
        ),
        "in a notch": lambda d: (
            f"k={d.k} is predicted at {speedup(d.speedup)}, and one token fewer or more would both do better: a pass "
            f"over {counted(d.k + 1, 'row')} is dear for its size here. {_better(d)}"
        ),
        "too long": lambda d: (
            f"k={d.k} is predicted at {speedup(d.speedup)}: its last tokens are seldom reached and always paid. "
            f"{_better(d)}"
        ),
        "too short": lambda d: f"k={d.k} is predicted at {speedup(d.speedup)}. {_better(d)}",
        "dear draft": lambda d: (
            f"No k pays; k={d.k} is predicted at {speedup(d.speedup)}. The draft is too dear: one of the same alpha "
            f"{number(d.alpha)} that cost nothing would reach {speedup(d.free_speedup)}. Take a cheaper drafter, or "
            "leave it off."
        ),
        "dear passes": lambda d: (
            f"No k pays; k={d.k} is predicted at {speedup(d.speedup)}, and even a draft that cost nothing would reach "
            f"only {speedup(d.free_speedup)} at alpha {number(d.alpha)}. Further rows are too dear here: leave it off."
        ),
    }
    return said[found.name](found)


def _better(found: Diagnosis) -> str:
    return f"k={found.better_k} would reach {speedup(found.better_speedup)}."
