"""Every text that a figure or a widget shows, and how numbers are written in them.

Fixed texts are constants; texts with numbers are functions of those numbers. The formatters have
one meaning each and three significant digits, rounded half up as readers do it by hand.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from statistics import median

from .records import (
    Advice,
    CardAlpha,
    Choice,
    CostCurve,
    Diagnosis,
    Guess,
    Hopeless,
    LedgerCell,
    Loop,
    MachineCard,
    ObservedCounts,
    Run,
    Setting,
    Trial,
)

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
FLOWS_AXIS = "from left to right: what is read, what makes the tokens, the draft, and the pass that verifies it"
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
    return f"gamma {number(gamma, 2)}, alpha {number(alpha)}, k = {k}: {speedup(value)}"


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


# --- the draft-cost floor ---------------------------------------------------------------------

BANDWIDTH_TITLE = "How fast each model's weights come in"
BANDWIDTH_AXIS = "GB of weights per second"
BANDWIDTH_MEASURED = "weights read / time of a pass"
TWO_TERMS_TITLE = "A pass over one token against the weights it reads"
TWO_TERMS_X_AXIS = "weights read per pass, MiB"
TWO_TERMS_Y_AXIS = "milliseconds per pass"
TWO_TERMS_PREDICTED = "what the two terms predict"
CEILING_LINE = "the memory's ceiling"
GAMMA_RATIO_TITLE = "What a draft costs against how small it is"
GAMMA_RATIO_X_AXIS = "parameters, draft / target"
GAMMA_RATIO_Y_AXIS = "gamma: time per token, draft / target"
GAMMA_RATIO_EQUAL = "as cheap as it is small"
SHARES_TITLE = "Where the time of a pass over one token goes"
SHARES_WEIGHTS = "weights, at the memory's ceiling"
SHARES_FIXED = "fixed: as many layers, hardly any weights"
SHARES_REST = "the rest"
SHAPES_TITLE = "Staircases of models that were never downloaded"
SHAPES_N_AXIS = "N: tokens in one pass"


def ceiling(gb_per_s: float) -> str:
    return f"{CEILING_LINE}: {number(gb_per_s)} GB/s"


def gb_per_s(value: float) -> str:
    """Gigabytes (10^9) per second: "172 GB/s"."""
    return f"{number(value)} GB/s"


def bandwidth_alt(rates: Mapping[str, float], ceiling_gb_per_s: float, ceiling_name: str) -> str:
    told = listed(f"{label} {gb_per_s(rate)} ({percent(rate / ceiling_gb_per_s)})" for label, rate in rates.items())
    return f"{BANDWIDTH_TITLE}, and its share of {ceiling_name}, {gb_per_s(ceiling_gb_per_s)}: {told}."


def two_terms_alt(rows: Sequence[tuple[str, float, float, float | None]]) -> str:
    """rows: (label, MiB read, ms measured, ms predicted or None)."""
    told = listed(
        f"{label} reads {number(mib)} MiB in {ms(measured)}"
        + ("" if predicted is None else f", predicted {ms(predicted)} ({change(predicted / measured - 1)})")
        for label, mib, measured, predicted in rows
    )
    return f"{TWO_TERMS_TITLE}: {told}."


def gamma_ratio_alt(points: Mapping[str, tuple[float, float]]) -> str:
    """points: label -> (draft / target parameters, gamma)."""
    told = listed(
        f"{label} with {number(ratio)} of the parameters has gamma {number(gamma)}, {number(gamma / ratio)} times that"
        for label, (ratio, gamma) in points.items()
    )
    return f"{GAMMA_RATIO_TITLE}: {told}."


def shares_alt(shares: Mapping[str, tuple[float, float, float]]) -> str:
    """shares: label -> ms of (weights, fixed, rest)."""
    told = listed(
        f"{label}: {ms(weights)} weights, {ms(fixed)} fixed, {ms(rest)} neither"
        for label, (weights, fixed, rest) in shares.items()
    )
    return f"{SHARES_TITLE}: {told}."


def above_zero(points: Mapping[str, tuple[float, float]]) -> str:
    told = listed(f"{label} {pair}" for label, pair in points.items() if min(pair) <= 0)
    return f"A logarithmic axis needs values above 0; got {told}."


def shapes_alt(curves: Mapping[str, Mapping[int, float]]) -> str:
    """curves: label -> (N -> T(N) / T(1))."""
    told = (
        f"{label}: {listed(f'{speedup(ratio)} at N={n}' for n, ratio in by_n.items())}."
        for label, by_n in curves.items()
    )
    return " ".join([f"{SHAPES_TITLE}: T(N) / T(1).", *told])


def shape_entry(label: str, format: str, timed: int, of: int) -> str:
    """What a staircase was made from: every layer, or some of them and the rest extrapolated."""
    return f"{label} {format}, " + ("all layers timed" if timed == of else f"{timed} of {of} layers timed")


# --- where a draft stands ---------------------------------------------------------------------

FRONTIER_TITLE = "Alpha against gamma; on a line the best k gives the same speedup"
FRONTIER_GAMMA_AXIS = "gamma: draft time per token / target time per token"
FRONTIER_ALPHA_AXIS = "alpha, live"


LAYER_SEARCH_TITLE = "Layers left out: what is kept of alpha, and of the cost"
LAYERS_KEPT_AXIS = "share of layers kept (gamma is at least this)"
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
        + ("" if drafter == "none" else f" (k from {counts[0][0]} to {counts[-1][0]})")
        for drafter, counts in by_drafter.items()
    )
    ends = listed(f"{name} {number(alpha)}" for name, alpha in alphas)
    also = f" Drafts of a model that was off, tried without being verified: {tried}." if tried else ""
    over = counted(passes, "pass", "passes")
    return f"Choices of the adaptive policy over {over}: {told}.{also} Alpha at the end: {ends}."


# --- does it change the text? ------------------------------------------------------------------

ACCEPTANCE_BY_RULE_TITLE = "How often each rule keeps a drafted token"
RULE_TEMPERATURE_AXIS = "temperature, of draft and target"
RECORDED_ALPHA_AXIS = "alpha, recorded"
SAMPLED_REJECTION = "draft drawn, rejection sampling: sum of min(p_target, p_draft)"
SAMPLED_MATCH = "draft drawn, exact match: sum of p_target × p_draft"
GREEDY_EITHER = "greedy draft, either rule: p_target of its token"
RULE_TITLE = "What each rule emits, and what it should"
RULE_SHARE_AXIS = "share of the emitted tokens"
RULE_TOKEN_AXIS = "token"
RULE_TARGET = "the target's probability"
ROUNDING_TITLE = "How far logits move when N tokens share a pass"
ROUNDING_N_AXIS = "N: tokens in one pass (logarithmic)"
ROUNDING_AXIS = "largest change of a logit"
MEDIAN_GAP = "median gap between the two best logits"


def wrong_counts(rule: str, found: int, wanted: int) -> str:
    return f"The rule {rule!r} needs one count for each of {wanted} tokens, not all of them 0; got {found} counts."


def acceptance_by_rule_alt(temperatures: Sequence[float], lines: Mapping[str, Sequence[float]]) -> str:
    """lines: what is drawn -> a share for each temperature."""
    places = [0, len(temperatures) // 2, len(temperatures) - 1]
    told = (
        f"{_capital(name)}: {listed(f'{percent(shares[i])} at T={temperatures[i]:g}' for i in dict.fromkeys(places))}."
        for name, shares in lines.items()
    )
    return " ".join(["Chance that a drafted token is kept, against temperature.", *told])


def rule_counts_alt(probabilities: Mapping[str, float], counts: Mapping[str, Sequence[int]]) -> str:
    """probabilities: token -> the target's. counts: rule -> times each token was emitted."""
    target = listed(f"{name} {percent(share)}" for name, share in probabilities.items())
    told = [f"Share of each token. Target: {target}."]
    for rule, of_rule in counts.items():
        shares = (f"{name} {percent(count / sum(of_rule))}" for name, count in zip(probabilities, of_rule, strict=True))
        told.append(f"{_capital(rule)}: {listed(shares)}.")
    return " ".join(told)


def rounding_alt(changes: Mapping[str, Mapping[int, float]]) -> str:
    """changes: label -> (N -> largest change of a logit)."""
    told = (
        f"{label}: {listed(f'{number(change)} at N={n}' for n, change in by_n.items())}."
        for label, by_n in changes.items()
    )
    return " ".join(["Largest change of a logit against a pass over one token.", *told])


def parted(position: int, plain: str, other: str, gap: float, rounding: float, verdict: str) -> str:
    """Where two texts part, in one line. plain, other: the two tokens' texts."""
    return (
        f"They part at token {position}: {plain!r} in plain decoding, {other!r} with drafts. The two best logits are "
        f"{number(gap)} apart there, and the longer pass moves a logit by up to {number(rounding)}: {verdict}."
    )


# --- widgets ----------------------------------------------------------------------------------

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


# --- one round, step by step -------------------------------------------------------------------

STEP_TEXT_ROW = "text"
STEP_DRAFT_ROW = "draft"
STEP_TARGET_ROW = "target says"
STEP_TARGET_CACHE_ROW = "target's cache"
STEP_DRAFT_CACHE_ROW = "draft's cache"
STEP_AXIS = "place in the text: 0 is the pending token, 1 the first drafted one"
STEP_NO_DRAFT_CACHE = "no cache of its own to show"
STEP_START = "The last token of the text is pending: chosen, not yet fed"
STEP_BONUS = "All kept: the last row gives one more token for free"
STEP_PLAIN = "No draft, so this is a plain pass: one token"
STEP_OWN = "The target's own token takes the refused one's place"
STEP_SAME, STEP_DIFFERENT = "=", "≠"
STEP_UNREAD, STEP_NOTHING = "…", "–"
STEP_MARKS = {
    "kept": "kept",
    "refused": "refused",
    "untested": "never tested or looked at",
    "own": "the target's own",
    "pending": "pending, not yet fed",
    "removed": "removed from the cache",
}
STEP_SLIDER = "step"
STEP_RUN_MENU = "run"
STEP_BACK, STEP_FORWARD = "Back", "Forward"
STEP_PREVIOUS_ROUND, STEP_NEXT_ROUND, STEP_NEXT_REFUSAL = "Previous round", "Next round", "Next refusal"
STEP_NO_RUN = 'There is no run to step through: give at least one, as {"its name": run}.'
STEP_NO_REFUSAL = "No token is refused after this step."
STEPPER_ALT = "Buttons and a slider that step through the rounds of a run, and a figure of the round at each step."


def token_shown(text: str) -> str:
    """A token as a figure writes it: blanks and line ends can be seen."""
    return text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")


def token_unknown(token: int) -> str:
    return f"#{token}"


def step_drafted(place: int, text: str) -> str:
    return f"Draft: token {place} is “{text}”"


def step_stopped(reason: str, drafted: int, p_min: float) -> str:
    """reason: a value of ``stepping.Stop``."""
    if reason == "p_min":
        return f"The next token is less sure than p_min = {p_min:g}: the draft stops"
    if reason == "room":
        return "The draft ends: the budget has no room for more"
    return "The drafter has nothing to propose" if not drafted else "The drafter has nothing more to propose"


def step_pass(rows: int) -> str:
    if rows == 1:
        return "One target pass over the pending token alone"
    return f"One target pass over {rows} rows: pending and drafted tokens"


def step_kept(place: int, text: str) -> str:
    return f"Row {place}: the target says “{text}” too, so it is kept"


def step_refused(place: int, drafted: str, own: str) -> str:
    return f"Row {place}: the target says “{own}”, so “{drafted}” is refused"


def step_rolled_back(removed: int, gained: int) -> str:
    cut = f"Roll back {counted(removed, 'row')}" if removed else "Nothing to roll back"
    return f"{cut}; the text is {counted(gained, 'token')} longer"


def step_round(number: int, of: int, drafter: str, k: int, p_min: float) -> str:
    setting = f", k={k}" if k else ""
    stopping = f", p_min={p_min:g}" if p_min else ""
    return f"round {number} of {of} · {drafter}{setting}{stopping}"


def step_confidence(value: float) -> str:
    """Two decimals, rounded down: what is below p_min must not look like it."""
    return f"{int(100 * value) / 100:.2f}"


def step_below(p_min: float) -> str:
    return f"<{p_min:g}"


def step_readout(at: int, of: int, title: str, told: str) -> str:
    """Under the slider, as HTML."""
    return f"Step {at} of {of}. <b>{html.escape(title)}.</b> {html.escape(told)}"


def step_so_far(before: str, added: str) -> str:
    """The text around a round, as HTML: what stood there before, and underlined what the round has added."""
    shown = [html.escape(part.replace("\n", "↵")) for part in (before, added)]
    return f'<br><span style="white-space: pre-wrap">… {shown[0]}<u>{shown[1]}</u></span>'


def step_alt(title: str, label: str, told: str) -> str:
    return f"{title} ({label}). {told}"


def step_told(
    draft: Sequence[tuple[str, str]],
    target: Sequence[tuple[str, str]],
    unread: int,
    not_looked_at: int,
    caches: Sequence[tuple[str, int, int]],
) -> str:
    """In words what the cells show. draft, target: (text, mark). caches: (whose, tokens held, cells removed).

    unread, not_looked_at: rows of the target's pass still to be read, and those that never will be.
    """
    rows = [[f"“{text}” ({mark})" if mark else f"“{text}”" for text, mark in cells] for cells in (draft, target)]
    rows[1] += [f"{counted(unread, 'row')} not read yet"] if unread else []
    rows[1] += [f"{counted(not_looked_at, 'row')} never looked at"] if not_looked_at else []
    parts = [(STEP_DRAFT_ROW, listed(rows[0])), (STEP_TARGET_ROW, listed(rows[1]))]
    for whose, held, removed in caches:
        parts.append((whose, f"{counted(held, 'token')} held" + (f", {removed} removed" if removed else "")))
    return " ".join(f"{row[0].upper()}{row[1:]}: {told}." for row, told in parts if told)


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
        "too few tokens": lambda d: (
            f"Alpha is {number(d.alpha)}, but of {counted(d.tested, 'tested token')} only. That may be chance: draft "
            "more before you look for an error."
        ),
        "looped text": lambda d: (
            f"The text repeats itself, and inside a loop every guess is right: alpha {number(d.alpha)} is flattered. "
            "Measure on a text without loops before you conclude anything."
        ),
        "costs unknown": lambda d: (
            f"The counts are sound: alpha {number(d.alpha)}, so a full draft brings {tokens(d.tokens_per_cycle)} a "
            f"cycle. Were drafts and further rows free, that would be {speedup(d.tokens_per_cycle)}; what it is takes "
            "T(N), or plain decoding timed on the same prompt."
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


# --- sweeps -----------------------------------------------------------------------------------

SWEEP_TITLE = "Times as fast as plain decoding"
SWEEP_K_AXIS = "k"
SWEEP_P_MIN_AXIS = "p_min"
SWEEP_KIND_AXIS = "prompt kind"
SWEEP_LEGEND = "times as fast · framed: run, else forecast · ★ fastest"
SWEEP_LEGEND_MEASURED = "times as fast · all cells run · ★ fastest"
SWEEP_READY = "Ready. Start measures what is left; Stop keeps what is done."
SWEEP_START = "Start"
SWEEP_OPENING = "Opening the drafters …"
SWEEP_ALT = "Buttons to start and stop a sweep, how far it is, and the advice once it is done."
SWEEP_NOTHING_YET = "Stopped before the costs were measured; nothing to show yet."


def sweep_title(drafter: str, kind: str) -> str:
    return f"{drafter} on {kind}"


def drafter_kind_title() -> str:
    return "The best setting of each drafter, by prompt kind"


def sweep_progress(done: int, expected: int, seconds_left: float, what: str) -> str:
    return f"{done} of about {expected} pieces · about {duration(seconds_left)} left · {html.escape(what)}"


def duration(value: float) -> str:
    """A time for people to wait: "40 s", "3 min", "2 h 5 min"."""
    if value < 90:
        return f"{round(value)} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def sweep_stopped(done: int, where: str) -> str:
    return (
        f"Stopped with {counted(done, 'run')} to compare; Start goes on from there, in another session too: what is "
        f"done is in {html.escape(where)} for half a day."
    )


def sweep_done(measured: int, looked_at: int, seconds_taken: float, where: str) -> str:
    return (
        f"Done: {counted(measured, 'run')} measured for {counted(looked_at, 'setting')} on each kind, "
        f"in {duration(seconds_taken)}. Saved as {html.escape(where)}."
    )


def sweep_alt(
    title: str, cells: Sequence[tuple[str, float, bool]], fastest: tuple[str, float] | None, source: str | None
) -> str:
    """cells: (place, speedup, measured)."""
    told = listed(f"{place} {speedup(value)}{'' if measured else ' (forecast)'}" for place, value, measured in cells)
    best = "" if fastest is None else f" Fastest: {fastest[0]}, {speedup(fastest[1])}."
    return f"{title}: {told}.{best}" + (f" {_capital(source)}." if source else "")


def no_cells(drafter: str, kind: str) -> str:
    return f"The sweep has no points of {drafter!r} on {kind!r} to plot."


# --- advice -----------------------------------------------------------------------------------


def setting_name(setting: Setting) -> str:
    """ "ngram_simple with k = 6", "eagle with k = 2 and p_min = 0.5", "plain decoding"."""
    if setting.plain:
        return PLAIN
    p_min = f" and p_min = {setting.p_min:g}" if setting.p_min else ""
    return f"{setting.drafter} with k = {setting.k}{p_min}"


def settings_in_turns(settings: Sequence[Setting]) -> str:
    """What a sweep is measuring: "eagle with k = 2", "4 settings in turns"."""
    return setting_name(settings[0]) if len(settings) == 1 else f"{len(settings)} settings in turns"


def advice_answer(advice: Advice) -> str:
    """The whole answer in one or two plain sentences."""
    on = [choice for choice in advice.by_kind if choice.verdict == "on"]
    off = [choice.kind for choice in advice.by_kind if choice.verdict == "off"]
    unclear = [choice.kind for choice in advice.by_kind if choice.verdict == "unclear"]
    if not on:
        if not unclear:
            return "No: leave it off. Nothing that was tried is faster than plain decoding here."
        told = f"No gain can be shown here: leave it off. On {_and(unclear)} the difference is not distinguishable"
        told += f" from none; on {_and(off)} speculation is slower." if off else " from none."
        overall = advice.overall
        if overall is not None and overall.verdict == "on":
            told += f" Only over all kinds together {setting_name(overall.setting)} gains: {speedup(overall.speedup)}."
        return told
    told = f"Yes: {_gains(on)} here"
    told += f"; leave it off for {_and(off)}." if off else "."
    if unclear:
        told += f" Not distinguishable from plain decoding: {_and(unclear)}. Leave it off there, too."
    return told


def _gains(on: Sequence[Choice]) -> str:
    """ "ngram_simple with k = 6 makes rewrite 1.69× and extract 1.48× as fast", one clause a setting."""
    by_setting: dict[Setting, list[Choice]] = {}
    for choice in on:
        by_setting.setdefault(choice.advised, []).append(choice)
    return _and(
        [
            f"{setting_name(setting)} makes {_and([f'{c.kind} {speedup(c.speedup)}' for c in choices])} as fast"
            for setting, choices in by_setting.items()
        ]
    )


def advice_table(advice: Advice) -> str:
    """A Markdown table: a row a kind, then all kinds together."""
    rows = [_advice_row(choice, choice.kind) for choice in advice.by_kind]
    if advice.overall is not None:
        rows.append(_advice_row(advice.overall, "all kinds, one setting"))
    return "\n".join(["| prompt kind | set | fastest tried | speedup (95% interval) |", "|---|---|---|---|", *rows])


def _advice_row(choice: Choice, name: str) -> str:
    if choice.setting is None:
        return f"| {name} | off | nothing tried | – |"
    ends = "too few repeats" if choice.interval is None else " to ".join(map(speedup, choice.interval))
    set_to = {"on": "**on**", "off": "off", "unclear": "off (not distinguishable)"}[choice.verdict]
    return f"| {name} | {set_to} | {setting_name(choice.setting)} | {speedup(choice.speedup)} ({ends}) |"


def advice_reasons(advice: Advice) -> tuple[str, ...]:
    """One sentence for each thing that the table leaves out."""
    told = []
    for choice in advice.by_kind:
        if choice.ties and choice.setting is not None:
            tied = listed(setting_name(setting) for setting in choice.ties)
            fastest = setting_name(choice.setting)
            told.append(f"On {choice.kind}, {fastest} is not distinguishable from {tied}: take any.")
    told += [_hopeless(group) for group in _by_drafter(advice.hopeless)]
    if looped := [choice.kind for choice in advice.by_kind if choice.looped]:
        told.append(f"The answer to {_and(looped)} repeats itself, which flatters every drafter: do not trust its row.")
    if advice.rerun:
        cells = listed(dict.fromkeys(_trial_name(trial) for trial in advice.rerun))
        told.append(f"Measured again, because other programs were using the processor: {cells}.")
    if disturbed := [choice.kind for choice in advice.by_kind if choice.contended]:
        told.append(
            f"Other programs were using the processor all the while on {_and(disturbed)}: close them and sweep again."
        )
    if not advice.complete:
        told.append("The sweep was stopped early: kinds and settings may be missing.")
    return tuple(told)


def _by_drafter(hopeless: Sequence[Hopeless]) -> list[list[Hopeless]]:
    groups: dict[str, list[Hopeless]] = {}
    for each in hopeless:
        groups.setdefault(each.drafter, []).append(each)
    return list(groups.values())


def _hopeless(group: Sequence[Hopeless]) -> str:
    ks = _and([str(each.k) for each in group])
    closest = min(group, key=lambda each: each.ms_per_token_at_best)
    return (
        f"No alpha can rescue {group[0].drafter} at k = {ks}: even if every token were kept, one would cost "
        f"{ms(closest.ms_per_token_at_best)} (at k = {closest.k}), and a plain one costs {ms(closest.plain_ms)}."
    )


def _trial_name(trial: Trial) -> str:
    return f"{setting_name(trial.setting)} on {trial.kind}"


def advice(found: Advice, flags: str = "") -> str:
    """Answer, table and reasons in Markdown; ``flags`` as they are, at the end."""
    reasons = "\n".join(f"* {reason}" for reason in advice_reasons(found))
    return "\n\n".join(filter(None, [f"**{advice_answer(found)}**", advice_table(found), reasons, flags]))


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


# --- llama.cpp's flags ------------------------------------------------------------------------

FLAGS_OFF = "This is llama.cpp's default, said in so many words."
FLAGS_DRAFT_AGAIN = (
    "llama.cpp feeds every verified batch to the draft model a second time, one pass over k + 1 tokens in each cycle, "
    "so expect somewhat less than was measured here."
)
FLAGS_OLDER = "Older builds spell them --draft-max, --draft-min and --draft-p-min."
FLAGS_LAYER_SKIP = (
    "llama.cpp cannot skip layers of its target. The nearest is to load a file with the layers left out "
    "(models.layer_subset writes one) as the draft model."
)
FLAGS_DISTILLED = (
    "The small model over part of the vocabulary is ours. The nearest in llama.cpp is an ordinary draft model: for the "
    "embedded model, the same layers with the whole vocabulary, which is draft_model here."
)
FLAGS_EAGLE = (
    "Our head has the shape of the first EAGLE and cannot be loaded by llama.cpp. The nearest is its draft-eagle3, "
    "with an EAGLE-3 head that was trained for your target."
)
FLAGS_MEDUSA = (
    "llama.cpp has no Medusa heads. The nearest is draft-mtp, for models that come with layers that predict several "
    "tokens."
)


def flags_length(k: int, m: int) -> str:
    return f"Drafts of {k} are not to be had with this drafter there: it takes up to {counted(m, 'token')} instead."


def flags_fixed_length(k: int, fixed: int) -> str:
    return f"Its draft length is fixed at {fixed} tokens in llama.cpp; {k} was measured here, and no option sets it."


def flags_short_match(n: int) -> str:
    return f"llama.cpp warns about patterns under 16 tokens; {n} is what was measured here."


def flags_prompt_lookup(n: int, k: int) -> str:
    return (
        "llama.cpp has no prompt look-up; the nearest is ngram-simple, which takes the latest place, not the earliest. "
        f"llama-cpp-python has it: LlamaPromptLookupDecoding(max_ngram_size={n}, num_pred_tokens={k})."
    )


def flags_block(kinds: Sequence[str], setting: Setting, line: str, notes: Iterable[str]) -> str:
    """A line to paste, in Markdown, and what to know about it."""
    head = f"For {_and(kinds)} ({setting_name(setting)}):"
    return "\n".join([head, "", "```", line, "```", "", *(f"* {note}" for note in notes)])


# --- numbers you already have -----------------------------------------------------------------

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
    return f"{_capital(source)} is longer than {most_bytes / 2**20:g} MiB. Cut the log to the runs in question."


def intake_binary(source: str) -> str:
    return f"{_capital(source)} is not text. A log, JSON or metrics are needed."


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
        parts.append(f"{_ranged(per_draft)} tokens per pass with a draft")
    if per_cycle is not None and per_cycle != per_draft:
        parts.append(f"{_ranged(per_cycle)} tokens per cycle, passes without a draft counted")
    if length is not None:
        parts.append(f"realised k {_ranged(length)}" + ("" if k is None else f" of at most {k}"))
    if share is not None and share[0] < 0.995:
        parts.append(f"a draft in {_ranged(share, percent)} of the passes")
    lines = [f"  {_capital('; '.join(parts))}."]
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
    return [*lines, f"  {value}. 95% interval: {_ranged(interval)}."]


def _ranged(ends: tuple[float, float], spoken: Callable[[float], str] = number) -> str:
    low, high = (spoken(end) for end in ends)
    return low if low == high else f"{low} to {high}"


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
    gain = _ranged(predicted[high], speedup)
    if low == high:
        return f"Best k on this staircase: {high}, predicted {gain}."
    return f"Best k on this staircase: {low} to {high} over alpha's interval (0: off); k = {high} is predicted {gain}."


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


# --- under load -------------------------------------------------------------------------------


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


# --- temperature, p_min -----------------------------------------------------------------------

TEMPERATURE_TITLE = "What is left of alpha when the target samples hotter"
TEMPERATURE_AXIS = "temperature of the target's sampling"
P_MIN_TITLE = "p_min: what it does to the acceptance rate, and to the speed"
P_MIN_AXIS = "p_min: confidence below which a draft stops"
P_MIN_SPEED_SERIES = "tokens per second"


def p_min_axis(first: float) -> str:
    return f"in units of the value at p_min = {number(first, 2)}"


def temperature_alt(rows: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """drafter -> (temperature, alpha), ascending."""
    told = [
        f"{name}: {listed(f'{number(alpha)} at {number(temperature, 2)}' for temperature, alpha in points)}."
        for name, points in rows.items()
    ]
    return " ".join(["Live alpha by temperature.", *told])


def p_min_alt(rows: Sequence[tuple[float, float, float]]) -> str:
    """(p_min, acceptance rate, tokens/s), ascending."""
    told = listed(
        f"p_min {number(p_min, 2)} {percent(rate)} and {tokens_per_second(speed)}" for p_min, rate, speed in rows
    )
    return f"Acceptance rate and speed by p_min: {told}."


# --- machine cards ----------------------------------------------------------------------------

CARD_MTP, CARD_MTP_TARGET = "mtp", "a model with prediction heads of its own"
CARD_STAIRCASE_TITLE = "What a pass costs"
CARD_ALPHA_TITLE = "How good drafts are (live alpha)"
CARD_BEST_TITLE = "What to set"
CARD_NO_STAIRCASE = "no staircase on this card"
CARD_NO_ALPHA = "no alpha on this card"
CARD_NO_BEST = "no setting on this card"
CARD_OFF = "leave it off"
CARD_BEST_K = "at the best k"
CARD_ALL_KINDS = "all kinds"
SAME_ALPHA_TITLE = "The same drafter on every machine"
CARDS_TITLE = "The same staircase on every machine, each in units of its T(1)"


def card_provenance(on: str, method: str, trials: int) -> str:
    """on: a day and a place."""
    return f"Measured on {on}: a {method} sweep of {counted(trials, 'run')}."


def card_recorded(first: str, last: str, files: int) -> str:
    days = first if first == last else f"{first} to {last}"
    return f"Recorded on {days} by the workbook's notebooks: {counted(files, 'recording')}."


def card_published(source: str) -> str:
    return f"published in {source}"


def card_no_staircase(folder: str) -> str:
    return f"No cost curve of a known model was recorded in {folder}; a card needs one."


def card_head(card: MachineCard) -> list[str]:
    """What stands at the top of the page: the machine, the target, where the figures come from."""
    machine = card.machine
    memory = None if machine.memory_gib is None else f"{number(machine.memory_gib)} GiB"
    cores = None if machine.cores is None else counted(machine.cores, "core")
    known = [machine.name, cores, memory, machine.os, machine.backend, machine.build]
    return [listed(each for each in known if each), f"Target: {card.target}.", card.provenance]


def card_choice(choice: Choice) -> tuple[str, str, str]:
    """One row of "what to set": the kind, the setting, what it brings."""
    kind = choice.kind or CARD_ALL_KINDS
    if choice.setting is None or choice.speedup is None:
        return kind, CARD_OFF, ""
    setting = f"{choice.setting.drafter}, k={choice.setting.k}"
    if choice.setting.p_min:
        setting += f", p_min={number(choice.setting.p_min)}"
    gain = speedup(choice.speedup)
    if choice.interval is None:
        return kind, setting, f"{gain}; no interval is known"
    gain = at_interval(gain, *map(speedup, choice.interval))
    if choice.verdict != "on":  # what is not surely faster is not advised either
        return kind, CARD_OFF, f"best other: {setting}, {gain}"
    return kind, setting, gain


def card_alpha_row(alpha: CardAlpha) -> str:
    return f"{alpha.drafter}, {alpha.kind}" if alpha.kind else f"{alpha.drafter}, k={alpha.k}"


def card_not_shown(count: int) -> str:
    return f"and {count} more"


def card_alt(card: MachineCard, costs: Mapping[int, float]) -> str:
    """costs: N -> T(N) / T(1), those worth saying aloud."""
    told = [f"Machine card. {' '.join(each if each.endswith('.') else each + '.' for each in card_head(card))}"]
    if costs:
        told.append(f"T(N) / T(1): {listed(f'{speedup(ratio)} at N={n}' for n, ratio in costs.items())}.")
    if card.alphas:
        rows = (f"{card_alpha_row(each)} {_ranged((each.low, each.high))}" for each in card.alphas)
        told.append(f"Live alpha: {listed(rows)}.")
    rows = (f"{kind}: {setting}" + (f", {gain}" if gain else "") for kind, setting, gain in map(card_choice, card.best))
    if card.best:
        told.append(f"What to set: {'; '.join(rows)}.")
    return " ".join(told)


def same_alpha_label(alpha: float, gamma: float) -> str:
    return f"α = {number(alpha)}, {'free drafts' if gamma == 0.0 else f'gamma = {number(gamma)}'}"


def same_alpha_entry(k: int, gain: float) -> str:
    return CARD_OFF if k == 0 else f"k={k}: {speedup(gain)}"


def same_alpha_alt(alpha: float, gamma: float, rows: Sequence[tuple[str, int, float]]) -> str:
    """rows: (card's label, best k, speedup)."""
    told = listed(f"{label} {same_alpha_entry(k, gain)}" for label, k, gain in rows)
    label = same_alpha_label(alpha, gamma)
    return f"{SAME_ALPHA_TITLE}: {label}. Speedup over plain decoding at the best k: {told}."


MANY_TITLE = "The same alpha on many machines"
MANY_OWN_PRICE = "its own draft's price included"
MANY_UNMEASURED = "not measured at this k"
MANY_FASTER, MANY_SLOWER, MANY_EVEN = "faster", "slower", "no difference"
MANY_FREE = "drafts cost nothing"
MANY_ALT = (
    "Sliders for alpha, gamma and k, a box for free drafts, and a figure that says on which machines that is faster "
    "than plain decoding and on which slower."
)
MANY_NONE = "There is no machine to compare: give at least one with a staircase or with whole cycles."


def many_label(alpha: float, k: int, gamma: float) -> str:
    price = "free drafts" if gamma == 0.0 else f"gamma = {number(gamma)}"
    return f"α = {number(alpha)}, k = {k}, {price} where a price can be chosen"


def many_verdict(gain: float | None) -> str:
    """A speedup over plain decoding and what to call it; None: not measured."""
    if gain is None:
        return MANY_UNMEASURED
    told = speedup(gain)
    if told == speedup(1.0):
        return f"{MANY_EVEN}: {told}"
    return f"{MANY_FASTER if gain > 1.0 else MANY_SLOWER}: {told}"


def many_told(faster: Sequence[str], slower: Sequence[str], unmeasured: Sequence[str]) -> str:
    """Under the sliders, as HTML. The names of machines with each verdict."""
    parts = [(MANY_FASTER, faster), (MANY_SLOWER, slower), (MANY_UNMEASURED, unmeasured)]
    return "; ".join(f"<b>{verdict}</b>: {html.escape(listed(names))}" for verdict, names in parts if names) + "."


def many_alt(alpha: float, k: int, gamma: float, rows: Sequence[tuple[str, float | None]]) -> str:
    """rows: (machine, speedup)."""
    told = "; ".join(f"{label} {many_verdict(gain)}" for label, gain in rows)
    return f"{MANY_TITLE}: {many_label(alpha, k, gamma)}. Speedup over plain decoding: {told}."


def no_cards() -> str:
    return "There is no machine card with a staircase to plot."


# --- the ledger, part by part ------------------------------------------------------------------

PARTS_TITLE = "Where every millisecond of a cycle goes"
PART_NAMES = {
    "draft": "draft",
    "catch_up": "catching up",
    "verify": "target pass",
    "rebuild": "new graph",
    "sampling": "sampling",
    "rollback": "rollback",
    "bookkeeping": "bookkeeping",
}
"""What the fields of ``CycleParts`` are called."""

ERRORS_TITLE = "How far the ledger is off"
MS_PER_TOKEN_AXIS = "measured milliseconds per token"
ERROR_AXIS = "predicted / measured − 1, percent"
OF_KEPT = "from what was kept"
OF_ALPHA = "from alpha alone"


def wrong_count(count: int, most: int) -> str:
    return f"Between 1 and {most} cells fit this figure; got {count}. Choose the ones to compare."


def cell_of_two_bars(cell: LedgerCell) -> str:
    return f"{cell.drafter}, k={cell.k}\npredicted, measured"


def cycle_parts_alt(cells: Sequence[LedgerCell]) -> str:
    told = []
    for cell in cells:
        parts = listed(f"{name} {ms(getattr(cell.predicted, field))}" for field, name in PART_NAMES.items())
        told.append(
            f"{cell.drafter} at k={cell.k} on {cell.kind}: predicted {ms(cell.predicted.ms)} a cycle ({parts}), "
            f"measured {ms(cell.measured.ms)}."
        )
    return " ".join([f"{PARTS_TITLE}.", *told])


def ledger_errors_alt(cells: Sequence[LedgerCell]) -> str:
    """One sentence a drafter: median and largest error from what was kept, median error from alpha alone."""
    told = []
    for drafter in dict.fromkeys(cell.drafter for cell in cells):
        own = [cell for cell in cells if cell.drafter == drafter]
        largest = max((cell.error for cell in own), key=abs)
        told.append(
            f"{drafter}, {counted(len(own), 'cell')}: from what was kept {change(median(cell.error for cell in own))} "
            f"in the median and {change(largest)} at most; from alpha alone "
            f"{change(median(cell.error_of_alpha for cell in own))} in the median."
        )
    return " ".join([f"{ERRORS_TITLE}, predicted over measured time per token.", *told])


# --- guesses ----------------------------------------------------------------------------------

GUESSED = {
    "00-speedup": ("n-gram drafts on the rewriting task: speedup over plain decoding", "×"),
    "01-t8": ("T(8) in units of T(1)", "×"),
    "01-f32-t8": ("T(8) in units of T(1), in F32", "×"),
    "02-k11": ("the article's speedup at k = 11", "×"),
    "02-free": ("speedup of a free draft at k = 4, on the article's machine", "×"),
    "03-k11": ("the article's alpha at k = 11", ""),
    "03-own-k3": ("acceptance rate at k = 3, from alpha at k = 6", ""),
    "04-draft-model": ("the draft model's speedup at k = 4", "×"),
    "04-adaptive": ("the adaptive policy's speedup on a story", "×"),
    "05-hollow": ("time of a hollow model, in percent of the full one's", "%"),
    "06-trained": ("best speedup of a trained drafter at k = 2", "×"),
    "07-different": ("tokens that differ from plain decoding, of 48", ""),
    "07-gain": ("kept by rejection sampling, in units of exact match", "×"),
    "08-kinds": ("kinds of prompt where a setting wins beyond doubt, of 4", ""),
    "08-m5": ("best speedup of a free draft with alpha 0.7 on the M5 Pro", "×"),
    "09-load": ("gain of a free draft with alpha 0.8, sixteen sequences a pass", "×"),
    "09-temperature": ("alpha at temperature 1.3", ""),
    "09-exam": ("speedup of eagle at k = 3 on the chat prompt, never run before", "×"),
}
"""Every prediction of the notebooks, in their order -> what is guessed, and its unit."""

TOO_HIGH, TOO_LOW = "guess too high", "guess too low"
MEDIAN_OF_HALF = "median of the first half, of the second"
MISS_AXIS = "miss, of the truth"
PREDICTION_AXIS = "prediction"
MISSES_TITLE = "Your guesses, notebook by notebook"


def miss_tick(share: float) -> str:
    return f"{100 * share:g}%"


def guess_title(miss: float | None) -> str:
    if miss is None:
        return "Your guess and the answer"
    if miss == 0.0:
        return "Your guess is exactly right"
    return f"Your guess is {percent(abs(miss))} too {'high' if miss > 0 else 'low'}"


def truth_told(truth: float, unit: str) -> str:
    return f"the answer: {number(truth)}{unit}"


def guess_told(guess: float, unit: str) -> str:
    return f"your guess: {number(guess)}{unit}"


def guess_alt(made: Guess) -> str:
    what, unit = GUESSED[made.name]
    return f"{guess_title(made.miss)}. {what}: guessed {number(made.guess)}{unit}, in truth {number(made.truth)}{unit}."


def misses_alt(guesses: Sequence[Guess]) -> str:
    """guesses: with a miss, in the order of the notebooks."""
    told = [f"{made.name} {change(made.miss)}" for made in guesses]
    return f"{MISSES_TITLE}: {listed(told)}."


def misses_told(guesses: Sequence[Guess]) -> str:
    """What the figure of all misses says, in words; what to do when there is none."""
    if not guesses:
        return 'No guess has been kept yet. Put a number in place of None where a notebook says "Predict first".'
    half = len(guesses) // 2
    count = f"{counted(len(guesses), 'guess', 'guesses')} of {len(GUESSED)}"
    if not half:
        return f"{count}, off by {percent(abs(guesses[0].miss))}."
    first, second = (median(abs(made.miss) for made in part) for part in (guesses[:half], guesses[half:]))
    return (
        f"{count}. Median miss of the first {half}: {percent(first)}; of the last {len(guesses) - half}: "
        f"{percent(second)}."
    )
