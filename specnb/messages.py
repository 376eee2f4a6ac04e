"""Every text that a figure or a widget shows, and how numbers are written in them.

Fixed texts are constants; texts with numbers are functions of those numbers. The formatters have
one meaning each and three significant digits, rounded half up as readers do it by hand.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from .records import CostCurve, Diagnosis, Loop, Run

# --- numbers ----------------------------------------------------------------------------------


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


# --- where numbers come from ------------------------------------------------------------------

MEASURED_HERE = "measured here, now"


def recorded_label(recorded: str) -> str:
    """The label of every figure, from what ``CostCurve.recorded`` says ("": measured here and now)."""
    if not recorded:
        return MEASURED_HERE
    if recorded[0].isdigit():  # a day, and maybe a place: "2025-11-29 on Apple M3 Max"
        return f"recorded on {recorded.replace(' on ', ', ', 1)}"
    return f"recorded: {recorded}"


def curve_label(curve: CostCurve) -> str:
    """Where a curve comes from and under what conditions, in one line."""
    parts = [recorded_label(curve.recorded)]
    if not curve.recorded:
        parts.append(curve.machine.name)
    if curve.context_length:  # 0: an empty context, or one that the source does not state
        parts.append(f"context {curve.context_length} tokens")
    if curve.threads:
        parts.append(counted(curve.threads, "thread"))
    if curve.contended:
        parts.append("other programs were running")
    return " · ".join(parts)


def curve_labels(curves: Sequence[CostCurve]) -> str:
    """One line for several curves: the label they share, or how many were recorded and measured."""
    different = list(dict.fromkeys(curve_label(curve) for curve in curves))
    if len(different) == 1:
        return different[0]
    here = sum(not curve.recorded for curve in curves)
    if here == len(curves):
        return MEASURED_HERE
    return "all recorded" if here == 0 else f"{here} of {len(curves)} {MEASURED_HERE}; the rest recorded"


# --- the cost curve ---------------------------------------------------------------------------

COST_TITLE = "What one target pass over N tokens costs"
COST_N_AXIS = "N: tokens in one pass (logarithmic)"
COST_MS_AXIS = "T(N): milliseconds per pass"
COST_RELATIVE_AXIS = "T(N) / T(1)"
FORMATS_TITLE = "How the cost of N tokens grows, by weight format"
FORMATS_SERIAL = "no gain: N passes of one token"
FORMATS_FREE = "further tokens free"
MACHINES_TITLE = "The same staircase on two machines, each in units of its T(1)"


def cliff(after_n: int, at_n: int, ratio: float) -> str:
    return f"cliff {after_n}→{at_n}: {speedup(ratio)}"


def dip(n: int) -> str:
    return f"dip at {n}"


def needs_t1(label: str, ns: Sequence[int]) -> str:
    return (
        f"Costs relative to T(1) need a measured N=1, which {label!r} lacks (measured: {listed(map(str, ns))}). "
        "Measure N=1, or plot milliseconds."
    )


def no_curves() -> str:
    return "There is no cost curve to plot: pass one, or a list of at least one."


NOTABLE_DRIFT = 0.05
"""A change of more than this between the halves of a measurement is worth measuring again."""


def measurement_quality(rounds: int, widest: float, drift: float, contended: bool) -> str:
    """How far a cost curve can be trusted, one sentence a line.

    rounds: samples of each N. widest: the widest 95 % interval, relative to its median
    (``measure.widest_interval``). drift, contended: as in ``CostCurve``.
    """
    told = [f"Each N was timed {rounds} times; the 95% intervals reach at most {percent(widest)} from the median."]
    if abs(drift) <= NOTABLE_DRIFT:
        told.append(f"Drift: {change(drift)} from the first half to the second, too little to matter.")
    else:
        told.append(
            f"Drift: {change(drift)} from the first half to the second. Something changed: let the machine settle "
            "and measure again."
        )
    told.append(
        "Other programs were using the processor: close them, and measure again before you trust a step."
        if contended
        else "No other program was using the processor to speak of."
    )
    return "\n".join(told)


def cost_curve_alt(
    label: str, costs: Mapping[int, float], cliffs: Sequence[tuple[int, int, float]], dips: Sequence[int], source: str
) -> str:
    """costs: N -> ms, those worth saying aloud. cliffs: (after_n, at_n, ratio)."""
    spoken = [f"{number(value)} at {n}" for n, value in costs.items()]
    first_n, first_ms = next(iter(costs.items()))
    spoken[0] = f"{ms(first_ms)} at N={first_n}"
    sentences = [f"T(N) of {label}: {listed(spoken)}."]
    sentences += [f"Cliff from N={after} to {at}: {speedup(ratio)} the time." for after, at, ratio in cliffs]
    if dips:
        sentences.append(f"Dips, where one token more is cheaper, at N={listed(map(str, dips))}.")
    return " ".join([*sentences, f"{_capital(source)}."])


def relative_curves_alt(title: str, curves: Mapping[str, Mapping[int, float]], source: str) -> str:
    """curves: label -> (N -> T(N) / T(1)), those worth saying aloud."""
    told = [
        f"{label}: {listed(f'{speedup(ratio)} at N={n}' for n, ratio in ratios.items())}."
        for label, ratios in curves.items()
    ]
    return " ".join([f"{title}: T(N) / T(1).", *told, f"{_capital(source)}."])


# --- one cycle --------------------------------------------------------------------------------

CYCLE_TITLE = "Where the time of one draft-verify cycle goes"
CYCLE_AXIS = "milliseconds"
CYCLE_DRAFT = "draft, by token"
CYCLE_VERIFY = "target pass"
CYCLE_OTHER = "other"
CYCLE_PLAIN = "plain decoding, by token"
CYCLE_ROW = "one cycle"
CYCLE_PLAIN_ROW = "plain decoding\nof as many tokens"


def verify_bar(n: int, value_ms: float) -> str:
    return f"verify {n} rows\n{ms(value_ms)}"


def draft_bar(k: int, value_ms: float) -> str:
    return f"draft {k}\n{ms(value_ms)}"


def cycle_total(value_ms: float) -> str:
    return ms(value_ms)


def cycle_alt(k: int, draft_ms: float, verify_ms: float, other_ms: float, plain: tuple[float, float] | None) -> str:
    """draft_ms: per token. plain: (tokens per cycle, ms per plain token)."""
    total = k * draft_ms + verify_ms + other_ms
    text = (
        f"One cycle of {ms(total)}: {k} drafted tokens of {ms(draft_ms)} each ({ms(k * draft_ms)}), "
        f"one target pass over {k + 1} rows ({ms(verify_ms)}), other work {ms(other_ms)}."
    )
    if plain is not None:
        amount, each = plain
        text += f" Plain decoding takes {ms(amount * each)} for the same {tokens(amount)}"
        text += f": {speedup(amount * each / total)}."
    return text


# --- the ledger and the speedup ---------------------------------------------------------------

LEDGER_TITLE = "The ledger: predicted and measured speed by draft length"
SPEED_AXIS = "tokens per second"
K_AXIS = "k: tokens drafted per cycle"
PREDICTED = "predicted"
MEASURED = "measured"
MEASURED_INTERVAL = "measured, 95% interval"
PLAIN = "plain decoding"
SPEEDUP_TITLE = "Speedup by draft length"
SPEEDUP_AXIS = "times as fast as plain decoding"
PLAIN_LINE = "plain decoding, 1.0×"
BEST_OFF = "no k is predicted to pay: leave it off"
SLOWER = "slower than plain decoding"


def best_prediction(k: int, value: float) -> str:
    return f"best predicted: k={k}, {speedup(value)}"


def live_speedup(k: int, value: float) -> str:
    return f"k={k}: {speedup(value)}"


def live_speedup_unmeasured(k: int) -> str:
    return f"k={k}: N={k + 1} was not measured"


def ledger_alt(rows: Sequence[tuple[int, float, float]], plain: float | None) -> str:
    """rows: (k, predicted tokens/s, measured tokens/s)."""
    told = listed(
        f"k={k} {number(predicted)} predicted, {number(measured)} measured ({change(predicted / measured - 1)})"
        for k, predicted, measured in rows
    )
    baseline = "" if plain is None else f" Plain decoding: {tokens_per_second(plain)}."
    return f"Tokens per second by draft length: {told}.{baseline}"


def speedup_alt(
    predicted: Mapping[str, Mapping[int, float]], measured: Sequence[tuple[int, float, tuple[float, float] | None]]
) -> str:
    told = [
        f"{label}: {listed(f'{speedup(value)} at k={k}' for k, value in sorted(by_k.items()))}."
        for label, by_k in predicted.items()
    ]
    if measured:
        points = (
            f"{speedup(value) if ends is None else at_interval(speedup(value), *map(speedup, ends))} at k={k}"
            for k, value, ends in measured
        )
        told.append(f"{_capital(MEASURED)}: {listed(points)}.")
    return " ".join(["Speedup over plain decoding.", *told])


# --- alpha ------------------------------------------------------------------------------------

BISECTION_TITLE = "Solving for alpha: halve the bracket until it fits"
ALPHA_AXIS = "α: probability that a tested token is kept"
TOKENS_AXIS = "expected tokens per cycle"
BISECTION_BRACKETS = "brackets, first on top"
ACCEPTANCE_TITLE = "Acceptance rate falls with k although alpha does not"
SHARE_AXIS = "percent"
ACCEPTANCE_SERIES = "acceptance rate (kept / drafted)"
ALPHA_SERIES = "alpha (solved from tokens per cycle)"
POSITION_TITLE = "How often a tested token is kept, by its position in the draft"
POSITION_AXIS = "position in the draft"
POSITION_SHARE_AXIS = "kept / tested, percent"
POSITION_OBSERVED = "observed"
POSITION_OBSERVED_INTERVAL = "observed, 95% interval"
KEPT_TITLE = "How many drafted tokens a cycle keeps"
KEPT_AXIS = "drafted tokens kept in a cycle"
CYCLES_AXIS = "share of cycles, percent"
OBSERVED = "observed"
LIVE_TOKENS_TITLE = "Expected tokens per cycle"


def expected_tokens_curve(k: int) -> str:
    return f"E[tokens] at k={k}"


def target_line(value: float) -> str:
    return f"observed: {tokens(value)} per cycle"


def solved_alpha(alpha: float) -> str:
    return f"α = {number(alpha)}"


def alpha_line(alpha: float) -> str:
    return f"α = {number(alpha)} at every position"


def geometric(alpha: float | None) -> str:
    return "expected from alpha" if alpha is None else f"expected from α = {number(alpha)}"


def tested_count(count: int) -> str:
    return f"n={count}"


def live_tokens(alpha: float, value: float) -> str:
    return f"α = {number(alpha)}: {tokens(value)} per cycle"


def no_rows(what: str) -> str:
    return f"There is nothing to plot: {what} is empty."


def bisection_alt(steps: Sequence[tuple[float, float, float, float]], target: float, k: int) -> str:
    """steps: (low, high, mid, expected tokens at mid)."""
    told = listed(f"α {number(mid)} gives {number(value)}" for _, _, mid, value in steps)
    low, high, mid, _ = steps[-1]
    return (
        f"Expected tokens per cycle against alpha at k={k}. Bisection for {tokens(target)} per cycle in "
        f"{len(steps)} steps: {told}. Last bracket {number(low)} to {number(high)}; α is about {number(mid)}."
    )


def acceptance_alt(rows: Sequence[tuple[int, float, float]]) -> str:
    """rows: (k, acceptance rate, alpha)."""
    told = listed(f"k={k} {percent(rate)} with alpha {number(alpha)}" for k, rate, alpha in rows)
    return f"Acceptance rate and alpha by draft length: {told}."


def position_alt(kept_by_position: Sequence[tuple[int, int]], alpha: float | None) -> str:
    told = listed(
        f"position {i}: {kept} of {tested}" + (f" ({percent(kept / tested)})" if tested else "")
        for i, (kept, tested) in enumerate(kept_by_position, 1)
    )
    line = "" if alpha is None else f" The line is alpha, {percent(alpha)} at every position."
    return f"Drafted tokens kept of those tested. {_capital(told)}.{line}"


def kept_alt(counts: Sequence[int], probabilities: Sequence[float]) -> str:
    total = sum(counts)
    told = listed(
        f"{kept} kept {percent(count / total) if total else 'never observed'}, expected {percent(probability)}"
        for kept, (count, probability) in enumerate(zip(counts, probabilities, strict=True))
    )
    return f"Tokens kept per cycle over {total} cycles: {told}."


def lengths_differ(counts: int, probabilities: int) -> str:
    return (
        f"Observed counts and expected probabilities must both run from 0 kept to k kept; "
        f"got {counts} counts and {probabilities} probabilities."
    )


# --- one run ----------------------------------------------------------------------------------

TIMELINE_TITLE = "A run, cycle by cycle: width is time, height is tokens"
TIMELINE_AXIS = "seconds since the prompt was processed"
TIMELINE_CYCLE_AXIS = "target pass"
TIMELINE_TOKENS_AXIS = "tokens of the cycle"
TIMELINE_KEPT = "kept from the draft"
TIMELINE_OWN = "the target's own token"
TIMELINE_REFUSED = "refused"


def run_label(drafter: str, k: int, emitted: int, passes: int, speed: float | None) -> str:
    rate = "" if speed is None else f" · {tokens_per_second(speed)}"
    return f"{drafter}, k={k} · {counted(emitted, 'token')} in {counted(passes, 'pass', 'passes')}{rate}"


def timeline_alt(drafter: str, k: int, cycles: int, emitted: int, kept: int, drafted: int, decode_s: float) -> str:
    time = f" in {seconds(decode_s)}" if decode_s > 0 else ""
    per_cycle = f", {tokens(emitted / cycles)} per cycle" if cycles else ""
    return (
        f"Run with drafter {drafter} at k={k}: {counted(emitted, 'token')} from "
        f"{counted(cycles, 'target pass', 'target passes')}{time}{per_cycle}. "
        f"{kept} of {drafted} drafted tokens were kept."
    )


# --- showing ----------------------------------------------------------------------------------

NO_ALT = "A figure needs an alt text: say in words what it shows (each plot_<noun> has a describe_<noun>)."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- races ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flow:
    """How one drafter comes by its tokens. makes: what makes them, several where they work at the same time.

    then: how the next one comes. again: whether what was made is fed back.
    """

    drafter: str
    reads: str
    makes: tuple[str, ...]
    then: str = ""
    again: bool = False


FLOWS = (
    Flow("ngram_simple", "the text so far", ("copies what followed\nthe same tokens",), "all at once, no model"),
    Flow("distilled\n(Two-Model)", "the text so far", ("a small model,\na pass a token",), "reads its own token", True),
    Flow(
        "eagle", "target's last state\nand pending token", ("one layer,\na step a token",), "reads its own state", True
    ),
    Flow("medusa", "target's last state", ("head 1", "head 2", "head 3"), "all in one product"),
    Flow("layer_skip", "the text so far", ("some target layers,\na pass a token",), "reads its own token", True),
)
FLOWS_TITLE = "Five ways to a draft, one way to verify it"
FLOW_TARGET = "target:\none pass\nover\nk + 1 rows\n\nkeeps or\nrefuses,\nadds one\nof its own"


def drafted_token(place: int) -> str:
    return f"d{place}"


def flows_alt(flows: Iterable[Flow]) -> str:
    told = (
        f"{_in_a_line(flow.drafter)} reads {_in_a_line(flow.reads)}; {_in_a_line(', '.join(flow.makes))}: "
        f"{_in_a_line(flow.then)}"
        for flow in flows
    )
    return f"Diagram. {'. '.join(told)}. All drafts go into one target pass over k + 1 rows."


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


GAMMA_TITLE = "What a cheaper draft would bring"


def gamma_curve(alpha: float, k: int) -> str:
    return f"ledger at alpha {number(alpha)}, k = {k}"


def free_draft(value: float) -> str:
    return f"a free draft: {speedup(value)}"


def measured_point(name: str) -> str:
    return f"{name}, measured"


def gamma_readout(gamma: float, value: float, alpha: float, k: int) -> str:
    return f"gamma {number(gamma)}, alpha {number(alpha)}, k = {k}: {speedup(value)}"


def gamma_told(k: int, now: float, free: float) -> str:
    """Under the sliders: what is left to gain by a cheaper draft."""
    verdict = (
        "no draft, however cheap, pays at this alpha and k" if free <= 1.0 else "that is all a cheaper draft can add"
    )
    return f"k = {k}: <b>{speedup(now)}</b> now, <b>{speedup(free)}</b> with a draft that costs nothing; {verdict}."


def gamma_unmeasured(k: int) -> str:
    return f"T({k + 1}) was not measured on this staircase, so k = {k} cannot be judged. Choose another k."


def gamma_alt(
    gammas: Sequence[float], speedups: Sequence[float], points: Mapping[str, tuple[float, float]], alpha: float, k: int
) -> str:
    told = "".join(f" Measured: {name} at gamma {number(g)}, {speedup(s)}." for name, (g, s) in points.items())
    return (
        f"Predicted speedup over gamma at alpha {number(alpha)} and k = {k}: {speedup(speedups[0])} at gamma "
        f"{number(gammas[0])}, falling to {speedup(speedups[-1])} at gamma {number(gammas[-1])}.{told}"
    )


FRONTIER_TITLE = "Alpha against gamma; on a line the best k gives the same speedup"
FRONTIER_GAMMA_AXIS = "gamma: draft time per token / target time per token"
FRONTIER_ALPHA_AXIS = "alpha, live"


def wrong_grid(found: Sequence[int], wanted: Sequence[int]) -> str:
    return f"The speedups have shape {tuple(found)}, but there are {wanted[0]} alphas and {wanted[1]} gammas."


def frontier_alt(points: Mapping[str, tuple[float, float]]) -> str:
    """points: drafter -> (alpha, gamma)."""
    told = listed(
        f"{name} at alpha {number(alpha)} and gamma {number(gamma)}" for name, (alpha, gamma) in points.items()
    )
    return f"Alpha against gamma, with lines of equal speedup for the best k of one staircase: {told}."


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


# --- widgets ----------------------------------------------------------------------------------

RESET = "Reset"
RESET_TIP = "Back to where the sliders started"
RUN = "Run"
STOP = "Stop"
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
OWN_PROMPT_HINT = "Your own prompt"
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
    return f"Speculating with {drafter}, k={k} …"


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
        else '<div style="margin-top:6px;color:#7a2e00;font-weight:600">⚠ The text repeats itself every '
        f"{loop.period} tokens from token {loop.start} on. "
        "Loops flatter every drafter: do not trust these figures.</div>"
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px">{boxes}</div>{badge}'


def _known(value: float | None, spoken: Callable[[float], str]) -> str:
    return NOT_KNOWN if value is None else spoken(value)


# --- diagnoses --------------------------------------------------------------------------------


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
        "looped text": lambda d: (
            f"The text repeats itself, and inside a loop every guess is right: alpha {number(d.alpha)} is flattered. "
            "Measure on a text without loops before you conclude anything."
        ),
        "costs unknown": lambda d: (
            f"The counts are sound: alpha {number(d.alpha)}, {tokens(d.tokens_per_cycle)} per cycle. Were drafts and "
            f"further rows free, that would be {speedup(d.tokens_per_cycle)}; what it is takes T(N), or plain decoding "
            "timed on the same prompt."
        ),
        "fine": lambda d: f"k={d.k} is predicted at {speedup(d.speedup)}, and no other k is notably better.",
        "over a cliff": lambda d: (
            f"k={d.k} needs passes over {d.k + 1} rows, beyond the cliff at N={d.cliff_n}: {speedup(d.speedup)}. "
            f"{_better(d)} Alpha {number(d.alpha)} is not to blame."
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
