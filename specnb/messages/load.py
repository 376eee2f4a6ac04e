"""Speculation under load."""

from __future__ import annotations

from collections.abc import Mapping

from .speedups import PREDICTED
from .writing import change, counted, listed, speedup, tokens


def foretold(alpha: float) -> str:
    """The label of drafts out of a text that is known beforehand."""
    return f"known text, α = {alpha:g}"


LOAD_TITLE = "What drafting gains when several sequences share each pass"
LOAD_AXIS = "B: sequences decoded together"
LOAD_PRICE_TITLE = "The price of a drafting pass, and what it brings"
LOAD_PRICE_SERIES = "price: its rows against plain decoding's"


def load_price_axis(k: int) -> str:
    return f"T({k + 1} B) / T(B)"


def load_ceiling(k: int) -> str:
    return f"most a cycle can bring: {k + 1} tokens"


def load_worth(alpha: float, value: float) -> str:
    return f"brought at α = {alpha:g}: {tokens(value)}"


def load_predicted(drafter: str) -> str:
    return f"{drafter}: {PREDICTED}"


def load_price_alt(prices: Mapping[int, float], worth: Mapping[str, float], k: int) -> str:
    """prices: sequences -> T of a drafting pass / T of a plain one. worth: label -> tokens per cycle."""
    told = listed(f"{speedup(price)} with {counted(count, 'sequence')}" for count, price in sorted(prices.items()))
    brought = listed(f"{label}" for label in worth)
    return f"Time of a pass over {k + 1} rows a sequence, in passes over one row each: {told}. Lines: {brought}."


def load_alt(measured: Mapping[str, Mapping[int, float]], predicted: Mapping[str, Mapping[int, float]]) -> str:
    """label -> (sequences -> speedup), for both."""
    told = []
    for drafter, gains in measured.items():
        expected = predicted.get(drafter, {})
        points = listed(
            f"{speedup(gain)} with {count}" + (f" (predicted {speedup(expected[count])})" if count in expected else "")
            for count, gain in sorted(gains.items())
        )
        told.append(f"{drafter}: {points}.")
    return " ".join(["Speedup over plain decoding by the number of sequences.", *told])


def load_prices_table(foretold: Mapping[int, float], had: Mapping[int, float]) -> str:
    """A Markdown table. sequences -> price: by T(N) of one sequence, and as the shared passes had it."""
    rows = [
        f"| {count} | {speedup(foretold[count])} | {speedup(had[count])} | {change(foretold[count] / had[count] - 1)} |"
        for count in sorted(had)
    ]
    head = "| sequences | price by T(N) of one | price in the shared passes | T(N) is off by |"
    return "\n".join([head, "|---|---|---|---|", *rows])
