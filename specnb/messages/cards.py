"""Machine cards."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from ..records import CardAlpha, Choice, MachineCard
from .writing import at_interval, counted, listed, number, ranged, speedup

CARD_MTP, CARD_MTP_TARGET = "mtp", "a model with prediction heads of its own"
CARD_STAIRCASE_TITLE = "What a pass costs"
CARD_ALPHA_TITLE = "How good drafts are (live alpha)"
CARD_ALPHA_LEGEND = "filled: from runs, with its 95% interval · hollow: replayed or published, no interval"
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
    return kind, setting, f"{gain}, a small gain" if choice.small_gain else gain


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
        rows = (
            f"{card_alpha_row(each)} {ranged((each.low, each.high))}" + ("" if each.has_interval else " (no interval)")
            for each in card.alphas
        )
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
