"""What the tools print, written from counts: the formats of llama.cpp's sources and of vLLM's metrics."""

from __future__ import annotations

import json


def closing_block(drafted: int, kept: int, *, emitted: int | None = None, k: int | None = None, seconds: float = 10.0):
    """The end of llama.cpp's examples; ``accept`` of nothing drafted is a NaN, as in C."""
    rate = f"{100.0 * kept / drafted:.3f}" if drafted else "-nan"
    lines = ["encoded   17 tokens in    0.301 seconds, speed:   56.478 t/s"]
    if emitted is not None:
        lines += [f"decoded {emitted:4d} tokens in {seconds:8.3f} seconds, speed: {emitted / seconds:8.3f} t/s", ""]
    lines += [] if k is None else [f"n_draft   = {k}"]
    lines += [] if emitted is None else [f"n_predict = {emitted}"]
    return "\n".join(
        [*lines, f"n_drafted = {drafted}", f"n_accept  = {kept}", f"accept    = {rate}%", "", "draft:", ""]
    )


def server_lines(
    drafted: int,
    kept: int,
    *,
    drafts: int | None = None,
    emitted: int | None = None,
    ms: float = 2296.72,
    per_position: tuple[float, ...] = (),
    task: int = 0,
) -> str:
    """What llama-server prints after an answer."""
    head = f"0.06.895.998 I slot print_timing: id  1 | task {task} | "
    lines = [
        head + "prompt eval time =     300.11 ms /    20 tokens (   15.01 ms per token,    66.64 tokens per second)"
    ]
    if emitted is not None:
        lines.append(
            head + f"       eval time = {ms:10.2f} ms / {emitted:5d} tokens (    8.97 ms per token,   111.46 t/s)"
        )
    mean = "" if drafts is None else f", mean len = {1 + kept / drafts:5.2f}"
    rate = kept / drafted
    lines.append(head + f"draft acceptance = {rate:0.5f} ({kept:5d} accepted / {drafted:5d} generated){mean}")
    if per_position:
        lines.append(head + f"     acc per pos = ({', '.join(f'{share:.3f}' for share in per_position)})")
    return "\n".join(lines) + "\n"


def statistics_line(name: str, drafts: int, drafted: int, kept: int, draft_ms: float) -> str:
    mean = 1 + kept / drafts
    return (
        f"0.06.896.057 I statistics {name:>16}: #calls(b,g,a) = {1:4d} {drafts:6d} {drafts:6d}, "
        f"#gen drafts = {drafts:6d}, #acc drafts = {drafts:5d}, #gen tokens = {drafted:6d}, "
        f"#acc tokens = {kept:5d}, #mean acc len = {mean:.2f}, "
        f"#acc rate/pos = (), dur(b,g,a) = 0.005, {draft_ms * drafted:.3f}, 0.114 ms\n"
    )


def timings(drafted: int | None, kept: int | None, *, emitted: int, ms: float, prompt_ms: float = 228.522) -> str:
    fields = {"prompt_n": 1, "prompt_ms": prompt_ms, "predicted_n": emitted, "predicted_ms": ms}
    if drafted is not None:
        fields |= {"draft_n": drafted, "draft_n_accepted": kept}
    return json.dumps({"content": "text with { braces", "timings": fields})


def metrics(
    server: str,
    drafts: int,
    drafted: int,
    kept: int,
    by_position: tuple[int, ...] = (),
    labels: str = "",
    shown: str = "{:.1f}",
) -> str:
    """The Prometheus text of vllm or llamacpp. labels: such as ``engine="0"``."""
    lines = []
    for name, value in (("drafts", drafts), ("draft_tokens", drafted), ("accepted_tokens", kept)):
        full = f"{server}:spec_decode_num_{name}_total"
        lines += [f"# HELP {full} Some help.", f"# TYPE {full} counter"]
        lines.append(f"{full}{{{labels}}} {shown.format(value)}" if labels else f"{full} {shown.format(value)}")
    for position, value in enumerate(by_position):
        joined = ",".join(filter(None, [labels, f'position="{position}"']))
        lines.append(f"{server}:spec_decode_num_accepted_tokens_per_pos_total{{{joined}}} {value}")
    return "\n".join(lines) + "\n"
