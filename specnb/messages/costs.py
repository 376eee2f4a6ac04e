"""What a pass and a cycle cost, and the floor under the draft's cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .writing import capital, change, listed, ms, number, percent, speedup, tokens

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
    return " ".join([*sentences, f"{capital(source)}."])


def relative_curves_alt(title: str, curves: Mapping[str, Mapping[int, float]], source: str) -> str:
    """curves: label -> (N -> T(N) / T(1)), those worth saying aloud."""
    told = [
        f"{label}: {listed(f'{speedup(ratio)} at N={n}' for n, ratio in ratios.items())}."
        for label, ratios in curves.items()
    ]
    return " ".join([f"{title}: T(N) / T(1).", *told, f"{capital(source)}."])


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
