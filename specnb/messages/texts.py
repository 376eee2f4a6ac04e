"""Whether drafting changes the text; temperature and p_min."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .writing import capital, listed, number, percent, tokens_per_second

ACCEPTANCE_BY_RULE_TITLE = "How often each rule keeps a drafted token"
RULE_TEMPERATURE_AXIS = "temperature, of draft and target"
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
        f"{capital(name)}: {listed(f'{percent(shares[i])} at T={temperatures[i]:g}' for i in dict.fromkeys(places))}."
        for name, shares in lines.items()
    )
    return " ".join(["Chance that a drafted token is kept, against temperature.", *told])


def rule_counts_alt(probabilities: Mapping[str, float], counts: Mapping[str, Sequence[int]]) -> str:
    """probabilities: token -> the target's. counts: rule -> times each token was emitted."""
    target = listed(f"{name} {percent(share)}" for name, share in probabilities.items())
    told = [f"Share of each token. Target: {target}."]
    for rule, of_rule in counts.items():
        shares = (f"{name} {percent(count / sum(of_rule))}" for name, count in zip(probabilities, of_rule, strict=True))
        told.append(f"{capital(rule)}: {listed(shares)}.")
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
