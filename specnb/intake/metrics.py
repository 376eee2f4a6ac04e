"""Prometheus metrics of llama-server and vLLM, read with the parser of ``prometheus_client``.

Counters run from the server's start, over all its answers. vLLM has a set for each model and engine.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice

from prometheus_client.parser import text_string_to_metric_families

from .. import messages
from ..records import ObservedCounts
from .parsed import LONGEST_K, MOST_REFUSED, NotCounts, Parsed, real, whole

TOOLS = {"llamacpp": "llama-server metrics", "vllm": "vLLM metrics"}

LONGEST_LINE, MOST_LINES = 2000, 20_000
"""Of the lines that hold a counter of speculation; a server has one for each model, engine and position."""

_WANTED = re.compile(
    r"\s{0,8}(llamacpp|vllm):(spec_decode_num_\w{1,60}|tokens_predicted_total|tokens_predicted_seconds_total"
    r"|generation_tokens_total)[ {\t]"
)
_NAMES = {
    "spec_decode_num_drafts": "drafts",
    "spec_decode_num_draft_tokens": "drafted",
    "spec_decode_num_accepted_tokens": "kept",
    "tokens_predicted": "emitted",
    "tokens_predicted_seconds": "seconds",
    "generation_tokens": "emitted",
}
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"
SIX_DIGITS = 10**6
"""llama-server prints its counters through a C++ stream: six digits, so 1234567 arrives as 1.23457e+06."""

_Group = tuple[str, tuple[tuple[str, str], ...]]


def parse(text: str) -> Parsed:
    """One block for each model and engine. Of a counter that comes twice the later value counts."""
    fields: dict[_Group, dict[str, float]] = defaultdict(dict)
    positions: dict[_Group, dict[int, float]] = defaultdict(dict)
    refused: list[str] = []
    wanted = (
        (line, match) for line in text.splitlines() if len(line) <= LONGEST_LINE and (match := _WANTED.match(line))
    )
    for line, match in islice(wanted, MOST_LINES):
        if len(refused) >= MOST_REFUSED:
            break
        try:
            _take(match[1], line, fields, positions)
        except NotCounts as reason:
            refused.append(str(reason))
        except ValueError:
            refused.append(messages.intake_no_metric(line.strip()))
    counts = []
    for group, found in fields.items():
        try:
            if not found.keys().isdisjoint({"drafts", "drafted", "kept"}):
                counts.append(_counts(group, found, positions.get(group, {})))
        except NotCounts as reason:
            refused.append(str(reason))
    return Parsed(tuple(counts), tuple(refused))


def _take(server: str, line: str, fields: dict, positions: dict) -> None:
    for family in text_string_to_metric_families(line.strip() + "\n"):
        for sample in family.samples:
            name = sample.name.partition(":")[2].removesuffix("_total")
            labels = dict(sample.labels)
            place = labels.pop("position", None) or labels.pop("pos", None)
            group = (server, tuple(sorted(labels.items())))
            if name == _PER_POSITION:
                positions[group][_position(place)] = whole(f"{name} at position {place}", sample.value)
            elif name in _NAMES:
                fields[group][_NAMES[name]] = real(name, sample.value)


def _position(label: str | None) -> int:
    """Both servers number positions from 0."""
    number = whole("position", label)
    if number >= LONGEST_K:
        raise NotCounts(messages.intake_no_count("position", label))
    return number


def _counts(group: _Group, found: dict[str, float], positions: dict[int, float]) -> ObservedCounts:
    server, labels = group
    for needed in ("drafted", "kept"):
        if needed not in found:
            spelled = next(name for name, field in _NAMES.items() if field == needed)
            raise NotCounts(messages.intake_field_missing(TOOLS[server], f"{server}:{spelled}_total"))
    drafts = whole("num_drafts", found["drafts"]) if "drafts" in found else None
    by_position = tuple(int(positions.get(i, 0)) for i in range(max(positions) + 1)) if positions else ()
    drafted, kept = whole("num_draft_tokens", found["drafted"]), whole("num_accepted_tokens", found["kept"])
    rounded = server == "llamacpp" and max(drafted, kept, drafts or 0) >= SIX_DIGITS
    return ObservedCounts(
        tool=TOOLS[server],
        label=messages.listed(value for name, value in labels if name in ("model_name", "engine")) or "all answers",
        drafted=drafted,
        kept=kept,
        drafts=None if drafts is None else (drafts, drafts),
        emitted=whole("tokens predicted", found["emitted"]) if "emitted" in found else None,
        k=len(by_position) or None,
        kept_by_position=by_position,
        seconds=found.get("seconds"),
        requests=None,
        rounded=rounded,
    )
