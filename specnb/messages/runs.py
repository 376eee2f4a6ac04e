"""One run, and several against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .writing import counted, number, seconds, speedup, tokens, tokens_per_second

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
        "eagle",
        "target's states\nand pending token",
        ("one layer,\na step a token",),
        "reads its own state and token",
        True,
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
