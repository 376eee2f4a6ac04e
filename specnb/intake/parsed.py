"""What the parsers hand over, and how they take a number out of a stranger's text."""

from __future__ import annotations

from dataclasses import dataclass

from .. import messages
from ..records import ObservedCounts

MOST_BLOCKS = 10_000
"""A text with more blocks than this is a whole server's history: read its metrics instead."""

MOST_REFUSED = 100
"""Blocks that are no counts: after so many, the text is not what it seems."""

LARGEST_COUNT, SMALLEST_TIME = 10**15, 1e-9
LONGEST_K = 4096
"""No engine drafts more than this in one pass, and longer sums would only cost time."""


class NotCounts(ValueError):
    """A block whose numbers are no counts. The message names them."""


@dataclass(frozen=True)
class Parsed:
    """counts: blocks, in the order found. refused: why others were not read."""

    counts: tuple[ObservedCounts, ...] = ()
    refused: tuple[str, ...] = ()


def whole(name: str, value: object) -> int:
    """A count of 0 or more. NotCounts naming the number for anything else."""
    number = real(name, value)
    if number != int(number):
        raise NotCounts(messages.intake_no_count(name, value))
    return int(number)


def real(name: str, value: object) -> float:
    """A number of 0 or more that a count, a share or a time can be; NotCounts naming it for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise NotCounts(messages.intake_no_count(name, value)) from None
    if isinstance(value, bool) or not (number == 0.0 or SMALLEST_TIME <= number <= LARGEST_COUNT):
        raise NotCounts(messages.intake_no_count(name, value))
    return number
