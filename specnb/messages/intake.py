"""Counts from other tools."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from ..records import ObservedCounts
from .writing import capital, counted, listed, ms, number, percent, ranged, speedup, tokens_per_second

INTAKE_NOTHING = (
    "No counts of speculation were found in this text. Read are llama.cpp's closing block (n_drafted, n_accept), "
    'llama-server\'s line "draft acceptance = …", its JSON timings (draft_n, draft_n_accepted), and the metrics of '
    "llama-server and vLLM (…spec_decode_num_…)."
)
INTAKE_TEXT, INTAKE_HINT = "log or metrics", "Paste the end of a log, a JSON answer, or metrics"
INTAKE_FILE, INTAKE_READ, INTAKE_ASK = "a file", "Read it", "Ask the server"
INTAKE_ADDRESS, INTAKE_ADDRESS_HINT = "or a server", "its address, such as http://localhost:8080/metrics"
INTAKE_K = "k, if not in it (0: not known)"
INTAKE_PLAIN = "plain tokens/s (0: not known)"
INTAKE_NO_STAIRCASE = "none"
INTAKE_READY = "Paste something and read it. An address is asked once, when you press its button."
INTAKE_READING = "Reading …"
INTAKE_WIDGET_ALT = (
    "A box to paste a log into, a button for a file, a field for a server's address, and a report of what they say."
)
INTAKE_PASTED, INTAKE_STDIN = "the pasted text", "standard input"
INTAKE_NO_CREDENTIALS = "The address holds a name or password; none is ever sent. Give it without, or save the text."
INTAKE_TESTED_UNKNOWN = (
    "How many drafted tokens were tested is not in these numbers, so alpha comes from tokens per pass and not from "
    "kept / tested."
)
INTAKE_PASSES_UNKNOWN = (
    "The number of target passes is not in these numbers: tokens per cycle and realised k cannot be had from drafted "
    "and kept alone."
)
INTAKE_K_UNKNOWN = "The longest draft allowed is not in these numbers. Give k, and alpha gets an upper bound."
INTAKE_PASSES_DERIVED = (
    "Passes are derived: tokens, less those kept, less the first one. A stop string that cuts an answer hides a few."
)
INTAKE_ROUNDED = "llama-server prints large counters to six digits, so the counts are off by up to 5 in a million."


def intake_run(number: int) -> str:
    return f"run {number}"


def intake_answer(number: int, task: str) -> str:
    """task: slot and task of a server, "0/17"; "" where it is not told."""
    slot, _, name = task.partition("/")
    return f"answer {number}" + (f" (slot {slot}, task {name})" if name else "")


def intake_stretch(number: int) -> str:
    return f"stretch {number}"


def intake_sum(number: int) -> str:
    return f"sum of {number}"


def intake_no_count(name: str, value: object) -> str:
    return f"{name} = {str(value)[:40]} is no count and no time: a finite number of 0 or more is needed."


def intake_field_missing(tool: str, name: str) -> str:
    return f"{name} is missing in the {tool}; without it nothing can be worked out."


def intake_no_metric(line: str) -> str:
    return f"This line is no Prometheus sample: {line[:80]!r}."


def intake_too_large(source: str, most_bytes: int) -> str:
    return f"{capital(source)} is longer than {most_bytes / 2**20:g} MiB. Cut the log to the runs in question."


def intake_binary(source: str) -> str:
    return f"{capital(source)} is not text. A log, JSON or metrics are needed."


def intake_no_file(name: str, exists: bool) -> str:
    return f"{name} is not a file." if exists else f"There is no file {name}."


def intake_not_read(source: str, reason: str) -> str:
    return f"{source} could not be read: {reason[:200]}."


def intake_timed_out(source: str, limit_s: float) -> str:
    return f"{source} did not answer within {number(limit_s)} s. Is the server up, and is it the right port?"


def intake_bad_address(address: str) -> str:
    return f"{address!r} is no address: it has to begin with http:// or https:// and name a server."


def intake_redirected(code: int, address: str) -> str:
    return f"The server sends on to {address!r} (HTTP {code}). That is not followed: name the address yourself."


def intake_kept_more(kept: int, drafted: int) -> str:
    return f"{kept} tokens accepted of {drafted} drafted: more than there were."


def intake_emitted_less(emitted: int, kept: int) -> str:
    return f"{emitted} tokens generated, but {kept} accepted: every accepted token is generated, and others besides."


def intake_no_passes(drafted: int, emitted: int, kept: int) -> str:
    return f"{emitted} tokens generated and {kept} accepted leave no target pass, but {drafted} tokens were drafted."


def intake_rate_above_one(rate: float) -> str:
    return f"An acceptance of {number(rate)} is above 1: no more than all drafted tokens can be kept."


def intake_rate_mismatch(printed: float, kept: int, drafted: int) -> str:
    return f"The printed acceptance is {number(printed, 5)}, but {kept} of {drafted} is {number(kept / drafted, 5)}."


def intake_k_too_large(k: int, most: int) -> str:
    return f"k = {k} is no draft length: no engine drafts more than {most} tokens for one pass."


def intake_mean_below_one(mean: float) -> str:
    return f"{number(mean)} tokens per pass: a pass always gives the target's own token, so 1 is the least."


def intake_mean_mismatch(mean: float, kept: int, drafted: int) -> str:
    return f"No number of passes makes {number(mean)} tokens per pass of {kept} accepted and {drafted} drafted tokens."


def intake_too_many_tokens(mean: float, k: int) -> str:
    return f"{number(mean)} tokens per pass at k = {k}: no pass can give more than {k + 1}."


def intake_drafts_too_long(drafted: int, passes: int, k: int) -> str:
    return f"{drafted} tokens drafted in {counted(passes, 'pass', 'passes')} at k = {k}: at most {k * passes} could be."


def intake_more_drafts_than_tokens(drafts: int, drafted: int) -> str:
    return f"{drafts} drafts of {drafted} tokens: a draft has at least one."


def intake_position_rises(place: int, before: float, after: float) -> str:
    return (
        f"Position {place + 1} was kept more often ({number(after, 6)}) than position {place} ({number(before, 6)}), "
        "without which it cannot be."
    )


def intake_position_above_drafts(kept: int, drafts: int) -> str:
    return f"Position 1 was kept {kept} times in {drafts} drafts."


def intake_positions_sum(total: int, kept: int) -> str:
    return f"Kept by position add up to {total}, but {kept} tokens were accepted."


def intake_bad_k(k: int, most: int) -> str:
    return f"k is the longest draft allowed, from 1 to {most} tokens; got {k}."


def intake_bad_speed(speed: float) -> str:
    return f"The speed without speculation is in tokens per second, above 0 and below a thousand million; got {speed}."


def intake_bad_draft_ms(draft_ms: float) -> str:
    return f"draft_ms is the time of one drafted token in milliseconds, 0 or more and finite; got {draft_ms}."


def intake_needs_t1(ns: Sequence[int]) -> str:
    return (
        f"A verdict needs a baseline: T(1), which the staircase lacks (measured: {listed(map(str, ns))}), or the speed "
        "without speculation."
    )


def intake_foreign_staircase(left_ms: float, plain_ms: float) -> str:
    """left_ms: what the log's time leaves for a drafted token beside the staircase's passes."""
    why = (
        f"the passes alone would take longer than the whole log did, by {ms(-left_ms)} a drafted token"
        if left_ms < 0.0
        else f"the log's time leaves {ms(left_ms)} for a drafted token, and the target itself takes {ms(plain_ms)}"
    )
    return f"This staircase is of another machine, model, format or load: {why}. Nothing is predicted from it."


def intake_head(counts: ObservedCounts) -> str:
    """One block's counts in a line."""
    parts = [f"{counts.kept} accepted of {counts.drafted} drafted"]
    if counts.emitted is not None:
        parts.append(counted(counts.emitted, "token") + " generated")
    if counts.tokens_per_second is not None:
        parts.append(tokens_per_second(counts.tokens_per_second))
    return f"{counts.tool}, {counts.label}: {listed(parts)}."


def intake_reading(
    *,
    acceptance: float | None,
    per_draft: tuple[float, float] | None,
    per_cycle: tuple[float, float] | None,
    length: tuple[float, float] | None,
    share: tuple[float, float] | None,
    alpha: tuple[float, float] | None,
    interval: tuple[float, float] | None,
    tested: tuple[int, int] | None,
    k: int | None,
) -> list[str]:
    """What the counts say. Each pair is (low, high), equal where exact. tested: (kept, tested)."""
    if alpha is None:
        return []
    parts = [f"acceptance rate {percent(acceptance)}"]
    if per_draft is not None:
        parts.append(f"{ranged(per_draft)} tokens per pass with a draft")
    if per_cycle is not None and per_cycle != per_draft:
        parts.append(f"{ranged(per_cycle)} tokens per cycle, passes without a draft counted")
    if length is not None:
        parts.append(f"realised k {ranged(length)}" + ("" if k is None else f" of at most {k}"))
    if share is not None and share[0] < 0.995:
        parts.append(f"a draft in {ranged(share, percent)} of the passes")
    lines = [f"  {capital('; '.join(parts))}."]
    low, high = alpha
    if tested is not None:
        value = f"α = {number(tested[0] / tested[1])}, counted ({tested[0]} kept of {tested[1]} tested)"
        if abs(high - low) < 1e-3:
            value += f"; {number(low)} solved from tokens per pass"
    elif high - low < 1e-3:
        value = f"α = {number(low)}, solved from tokens per pass"
    elif high >= 1.0:
        value = f"α is at least {number(low)}: what it is if all drafts were equally long"
    else:
        value = f"α lies between {number(low)} (drafts equally long) and {number(high)} (long ones and short ones)"
    return [*lines, f"  {value}. 95% interval: {ranged(interval)}."]


def intake_verdict(
    *,
    says: str,
    measured: float | None,
    against_t1: bool,
    predicted: Mapping[int, tuple[float, float]] | None,
    best: tuple[int, int] | None,
    draft_ms: float | None,
    draft_source: str,
    hopeless: Sequence[int],
    problem: str,
    diagnosis: str | None,
    sometimes: bool,
) -> list[str]:
    """The verdict, what is predicted, the diagnosis. sometimes: some passes had no draft, and it is of the others."""
    lines = []
    if measured is not None:
        answer = {"pays": "Yes, it pays", "loses": "No, it loses"}.get(says, "Not distinguishable from plain decoding")
        how = "against T(1) of the staircase" if against_t1 else "one run each way; repeat both to be sure"
        lines.append(f"{answer}: {speedup(measured)}, measured ({how}).")
    elif says in ("pays", "loses"):
        lines.append(f"{'Yes, it should pay' if says == 'pays' else 'No, it should lose'}; predicted, not measured.")
    elif says == "not distinguishable":
        lines.append("Whether it pays cannot be told from these numbers: the prediction holds both.")
    if problem:
        lines.append(problem)
    elif measured is not None and not predicted:
        lines.append("Which k would be better takes a staircase: T(N) of the machine that wrote these numbers.")
    if best is not None and predicted:
        lines.append(_intake_best(best, predicted))
        lines.append(
            {
                "given": f"With {ms(draft_ms)} per drafted token, as given.",
                "printed": f"With {ms(draft_ms)} per drafted token, as the log prints.",
                "inferred": f"With {ms(draft_ms)} per drafted token: what the log's time leaves beside the passes.",
                "free": "The draft's price is not known and was taken as 0: this is the best case.",
            }[draft_source]
        )
        if hopeless:
            lines.append(f"No alpha can rescue k = {listed(map(str, hopeless))}.")
    if diagnosis:
        lines.append(f"In passes with a draft: {diagnosis}" if sometimes else diagnosis)
    return [f"  {line}" for line in lines]


def _intake_best(best: tuple[int, int], predicted: Mapping[int, tuple[float, float]]) -> str:
    low, high = min(best), max(best)
    if high == 0:
        return "No k is predicted to pay here: leave it off."
    gain = ranged(predicted[high], speedup)
    if low == high:
        return f"Best k on this staircase: {high}, predicted {gain}."
    at_low, at_high = (f"{k}" if k else "0 (off)" for k in best)
    return (
        f"Best k on this staircase: {at_low} at the low end of alpha's interval, {at_high} at the high end; "
        f"k = {high} is predicted {gain}."
    )


def intake_not_told(count: int) -> str:
    return f"… and {counted(count, 'more block')}."


def intake_contradiction(text: str) -> str:
    return f"  These numbers contradict each other: {text}"


def intake_note(text: str) -> str:
    return f"Note: {text}"


def intake_shown(lines: Iterable[str]) -> str:
    """A report as HTML, every character of a stranger's text escaped."""
    text = html.escape("\n".join(lines))
    return (
        '<div role="status" style="white-space:pre-wrap;line-height:1.5;background:#fff;color:#1a1a1a;'
        f'border:1px solid #bbb;border-radius:4px;padding:8px 10px;max-width:60em">{text}</div>'
    )


def intake_refused(text: str) -> str:
    return f"Not read: {text}"
