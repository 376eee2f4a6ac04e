"""Where a draft stands among the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .speedups import PLAIN
from .writing import counted, listed, number, percent, ranged, seconds, tokens_per_second

FRONTIER_TITLE = "Alpha against gamma; on a line the best k gives the same speedup"
FRONTIER_GAMMA_AXIS = "gamma: draft time per token / target time per token"
FRONTIER_ALPHA_AXIS = "alpha, live"


LAYER_SEARCH_TITLE = "Layers left out: what is kept of alpha, and of the cost"
LAYERS_KEPT_AXIS = "share of layers kept (gamma is about this)"
RECORDED_ALPHA_AXIS = "alpha, recorded"


def layer_search_alt(sets: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """sets: how layers were chosen -> (share kept, recorded alpha)."""
    told = "; ".join(
        f"{name}: " + listed(f"{number(alpha)} with {percent(share)} of the layers" for share, alpha in points)
        for name, points in sets.items()
    )
    return f"Recorded alpha against the share of layers kept, with lines of equal speedup. {told}."


def wrong_grid(found: Sequence[int], wanted: Sequence[int]) -> str:
    return f"The speedups have shape {tuple(found)}, but there are {wanted[0]} alphas and {wanted[1]} gammas."


def frontier_alt(points: Mapping[str, tuple[float, float]]) -> str:
    """points: drafter -> (alpha, gamma)."""
    told = listed(
        f"{name} at alpha {number(alpha)} and gamma {number(gamma)}" for name, (alpha, gamma) in points.items()
    )
    return f"Alpha against gamma, with lines of equal speedup for the best k of one staircase: {told}."


def chain_of_models(names: Sequence[str]) -> str:
    return (
        f"A chain holds at most one drafter that runs a model, and {listed(names)} all do. Leave one of them, "
        "and put look-ups before it."
    )


RACE_TITLE = "The same text, token by token"
RACE_TIME_AXIS = "seconds of generation"
RACE_TOKENS_AXIS = "tokens so far"


def race_entry(drafter: str, k: int, speed: float) -> str:
    name = PLAIN if drafter == "none" else f"{drafter}, k={k}"
    return f"{name}: {tokens_per_second(speed)}"


def race_alt(rows: Sequence[tuple[str, int, int, float, int]]) -> str:
    """rows: (drafter, k, emitted tokens, seconds, target passes)."""
    told = listed(
        f"{PLAIN if drafter == 'none' else f'{drafter} with k={k}'} {emitted} tokens in {seconds(took)} "
        f"and {passes} target passes"
        for drafter, k, emitted, took, passes in rows
    )
    return f"Tokens over time: {told}."


ADAPTIVE = "adaptive"
ADAPTIVE_TITLE = "What the adaptive policy chose before each pass, and why"
ADAPTIVE_K_AXIS = "k chosen"
ADAPTIVE_ALPHA_AXIS = "running alpha"
ADAPTIVE_TRIED = "tried, not verified"


def adaptive_alt(
    by_drafter: Mapping[str, Sequence[tuple[int, int]]], tried: int, alphas: Sequence[tuple[str, float]]
) -> str:
    """by_drafter: drafter -> (k, passes). alphas: (drafter, running alpha) at the end."""
    passes = sum(count for counts in by_drafter.values() for _, count in counts)
    told = listed(
        f"{PLAIN if drafter == 'none' else drafter} in {sum(count for _, count in counts)}"
        + ("" if drafter == "none" else f" (k = {ranged((counts[0][0], counts[-1][0]), str)})")
        for drafter, counts in by_drafter.items()
    )
    ends = listed(f"{name} {number(alpha)}" for name, alpha in alphas)
    also = f" Drafts of a model that was off, tried without being verified: {tried}." if tried else ""
    over = counted(passes, "pass", "passes")
    return f"Choices of the adaptive policy over {over}: {told}.{also} Alpha at the end: {ends}."
