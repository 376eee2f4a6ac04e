"""How numbers, ranges and lists are written: one formatter a meaning, three digits, rounded half up as by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal


def number(value: float, digits: int = 3) -> str:
    """``digits`` significant digits without exponent; whole digits are never lost: 18.2, 0.165, 1337."""
    exact = Decimal(str(float(value)))
    if not exact.is_finite() or exact == 0:
        return str(float(value)) if not exact.is_finite() else "0"
    rounded = _at(exact, digits - 1 - exact.adjusted())
    # 9.996 rounds up into another digit: 10.0, not 10.00.
    return f"{_at(rounded, digits - 1 - rounded.adjusted()):f}"


def _at(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-max(0, places)), rounding=ROUND_HALF_UP)


def ms(value: float) -> str:
    """Milliseconds: "18.2 ms"."""
    return f"{number(value)} ms"


def counted(count: int, one: str, many: str = "") -> str:
    """A count and its noun: "1 pass", "3 passes"; the plural takes an s unless given."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def seconds(value: float) -> str:
    """Seconds: "1.25 s"."""
    return f"{number(value)} s"


def tokens(value: float) -> str:
    """A mean amount of tokens: "3.08 tokens"; whole counts are ``counted``."""
    return f"{number(value)} tokens"


def tokens_per_second(value: float) -> str:
    """ "57.6 tokens/s"."""
    return f"{number(value)} tokens/s"


def speedup(value: float) -> str:
    """How many times as fast, always with two decimals: "1.16×", "0.49×"."""
    return f"{_at(Decimal(str(float(value))), 2):f}×"


def percent(share: float) -> str:
    """A share between 0 and 1 as a percentage: "71.4%"."""
    return f"{number(100.0 * share)}%"


def change(share: float) -> str:
    """A relative difference with its sign and one decimal: "+8.8%", "−3.0%"."""
    rounded = _at(Decimal(str(100.0 * share)), 1)
    return f"{'−' if rounded < 0 else '+'}{abs(rounded):f}%"


def at_interval(text: str, low: str, high: str) -> str:
    """An estimate and its interval, all three written already: "1.16× (1.12× to 1.19×)"."""
    return f"{text} ({low} to {high})"


def listed(items: Iterable[str]) -> str:
    return ", ".join(items)


def ranged(ends: tuple[float, float], spoken: Callable[[float], str] = number) -> str:
    low, high = (spoken(end) for end in ends)
    return low if low == high else f"{low} to {high}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
