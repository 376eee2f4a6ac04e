"""vLLM's periodic log line on speculation (``vllm/v1/spec_decode/metrics.py``): counts of the last few seconds."""

from __future__ import annotations

import re

from .. import messages
from ..records import ObservedCounts
from .fitting import drafts_that_fit, narrowed
from .llama_cpp import LONGEST_LINE
from .parsed import NotCounts, Parsed, real, whole

TOOL = "vLLM log"

_NUMBER = r"([\d.]{1,24})"
_FIELDS = {
    "mean": re.compile(rf"Mean acceptance length: {_NUMBER}"),
    "kept": re.compile(r"Accepted: (\d{1,15}) tokens"),
    "drafted": re.compile(r"Drafted: (\d{1,15}) tokens"),
    "rate": re.compile(rf"[Dd]raft acceptance rate: {_NUMBER}%"),
    "shares": re.compile(r"Per-position acceptance rate: ([\d., ]{1,2000})"),
}


def parse(text: str) -> Parsed:
    """One block a line; each counts its own stretch of time, so their sum is right."""
    counts, refused = [], []
    for line in text.splitlines():
        if "SpecDecoding metrics" not in line:
            continue
        found = {name: match[1] for name, pattern in _FIELDS.items() if (match := pattern.search(line[:LONGEST_LINE]))}
        try:
            counts.append(_counts(found, len(counts) + 1))
        except NotCounts as reason:
            refused.append(str(reason))
    return Parsed(tuple(counts), tuple(refused))


def _counts(found: dict[str, str], number: int) -> ObservedCounts:
    for needed, spelled in (("drafted", "Drafted"), ("kept", "Accepted")):
        if needed not in found:
            raise NotCounts(messages.intake_field_missing(TOOL, spelled))
    drafted, kept = whole("Drafted", found["drafted"]), whole("Accepted", found["kept"])
    mean = real("Mean acceptance length", found["mean"].rstrip(".")) if "mean" in found else None
    parts = [part.strip(" .") for part in found.get("shares", "").split(",")]
    shares = tuple(real("Per-position acceptance rate", part) for part in parts if part)
    drafts, by_position = None, ()
    if mean is not None and (drafts := drafts_that_fit(kept, drafted, mean)) is not None:
        drafts, by_position = narrowed(kept, drafts, shares)
    return ObservedCounts(
        tool=TOOL,
        label=messages.intake_stretch(number),
        drafted=drafted,
        kept=kept,
        drafts=drafts,
        k=len(shares) or None,
        kept_by_position=by_position,
        per_position=shares,
        acceptance=real("draft acceptance rate", found["rate"]) / 100.0 if "rate" in found and drafted else None,
        mean_length=mean,
        requests=None,
    )
