"""Widgets: what they are called, and what they say while they work."""

from __future__ import annotations

import html
from collections.abc import Callable

from ..records import Loop, Run
from .drafts import ADAPTIVE
from .writing import number, percent, speedup, tokens

RESET = "Reset"
RESET_TIP = "Back to where the sliders started"
RUN = "Run"
RACE = "Race"
RACE_READY = "Ready. Race writes the same answer three ways: plain, under the adaptive policy, and with your setting."
RACE_MEASURING = "Measuring passes, drafts and changes of N for the policy (once for each format, about ten seconds) …"
RACE_TIMING = "Timing the three, interleaved …"
RACE_STOPPED = "Stopped."
RACE_WIDGET_ALT = "Controls for a race of the adaptive policy against plain decoding and one fixed setting."
RACED_DRAFTER_MENU = "fixed drafter"
RACED_K_SLIDER = "fixed k"


def race_done(adaptive: float, fixed: float, drafter: str, k: int) -> str:
    """Both as speedups over plain decoding."""
    return (
        f"Adaptive: <b>{speedup(adaptive)}</b> plain decoding; {html.escape(drafter)}, k={k}: <b>{speedup(fixed)}</b>."
    )


STOP = "Stop"
JOB_WAITS = "Waiting: another cell or widget lets a model work. Stop ends the waiting."
MODEL_BUSY = (
    "A widget is letting a model work, and two at once would time each other. Press its Stop button, or wait until it "
    "is done; then run this cell again."
)
ALPHA_SLIDER = "α, tested → kept"
GAMMA_SLIDER = "γ, draft / target"
K_SLIDER = "k, draft length"
P_MIN_SLIDER = "p_min"
TEMPERATURE_SLIDER = "temperature"
MAX_TOKENS_SLIDER = "new tokens"
STAIRCASE_MENU = "staircase"
DRAFTER_MENU = "drafter"
FORMAT_MENU = "target format"
PROMPT_MENU = "prompt"
FLAT_STAIRCASE = "flat (the textbook)"
SHOW_REFUSED = "show refused tokens"
OWN_PROMPT_LABEL, OWN_PROMPT_HINT = "your prompt", "Write it here"
OWN_PROMPT_EMPTY = "Type a prompt first, or choose one of the others."
EXPLORER_ALT = "Sliders for alpha, gamma and k, and a figure of the predicted speedup over k that follows them."
GAMMA_EXPLORER_ALT = (
    "Sliders for gamma, alpha and k, and a figure of the predicted speedup over gamma that follows them, with measured "
    "drafters as points."
)
LIVE_ALT = "Controls for a live run: its text with every token's origin marked, its figures, and the predicted speedup."
STREAM_LABEL = "generated text"
KEPT_MARK = "drafted and kept"
OWN_MARK = "the target's own"
REFUSED_MARK = "drafted and refused"
LIVE_READY = "Ready. Run writes an answer with the drafter, then times it against plain decoding."
LIVE_LOADING = "Loading the models …"
LIVE_COMPARING = "Timing it against plain decoding, with the page at rest …"
LIVE_STOPPED = "Stopped. The text so far is kept; nothing was compared."
LIVE_MEASURING = "Measuring what passes cost here, for the prediction (once for each format, about ten seconds) …"
NOT_KNOWN = "–"


def live_running(drafter: str, k: int) -> str:
    return f"Speculating with {drafter}, k={k} …" if drafter != ADAPTIVE else "Writing under the adaptive policy …"


def live_failed(reason: str) -> str:
    return f"<b>This did not work:</b> {html.escape(reason)}"


def live_done(finish: str, same_text: bool) -> str:
    compared = (
        "Same text as plain decoding, token by token."
        if same_text
        else "The text differs from plain decoding: passes over one token and over several round differently."
    )
    return f"Done ({finish}). {compared}"


def predicted_at(alpha: float) -> str:
    return f"predicted for α = {number(alpha)}"


def explorer_readout(
    *, k: int, tokens_per_cycle: float, speedup_now: float | None, break_even: float | None, best_k: int, best: float
) -> str:
    """One line under the sliders. speedup_now: None where the pass was not measured; break_even: None if hopeless."""
    parts = [f"k={k}: {tokens(tokens_per_cycle)} per cycle"]
    if speedup_now is None:
        parts.append(f"N={k + 1} was not measured on this staircase, so nothing is predicted")
    else:
        parts.append(f"<b>{speedup(speedup_now)}</b>")
        parts.append("no α can rescue this k" if break_even is None else f"breaks even at α = {number(break_even)}")
    parts.append("best: leave it off" if best_k == 0 else f"best: k={best_k}, {speedup(best)}")
    return " · ".join(parts)


def gauges(plain: Run | None, run: Run | None, loop: Loop | None) -> str:
    """The figures of a run beside its plain twin, as an HTML table; dashes before the first run."""
    faster = run and plain and run.tokens_per_second and plain.tokens_per_second
    cells = (
        ("tokens/s", _known(run and run.tokens_per_second, number)),
        ("plain tokens/s", _known(plain and plain.tokens_per_second, number)),
        ("speedup", _known(run.tokens_per_second / plain.tokens_per_second if faster else None, speedup)),
        ("kept / drafted", _known(run and run.acceptance_rate, percent)),
        ("α, kept / tested", _known(run and run.alpha_tested, number)),
        ("tokens per cycle", _known(run and run.tokens_per_cycle, number)),
        ("realised k", _known(run and run.mean_draft_length, number)),
    )
    boxes = "".join(
        '<div style="border:1px solid #bbb;border-radius:4px;padding:4px 9px;min-width:5.6em;'
        'background:#fff;color:#1a1a1a">'
        f'<div style="font-size:12px;color:#555">{name}</div>'
        f'<div style="font-size:18px;font-weight:600">{value}</div></div>'
        for name, value in cells
    )
    badge = (
        ""
        if loop is None
        else '<div style="margin-top:6px;padding:2px 6px;background:#fff;color:#7a2e00;font-weight:600">'
        "⚠ The text repeats itself every "
        f"{loop.period} tokens from token {loop.start} on. "
        "Loops flatter every drafter: do not trust these figures.</div>"
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px">{boxes}</div>{badge}'


def _known(value: float | None, spoken: Callable[[float], str]) -> str:
    return NOT_KNOWN if value is None else spoken(value)
