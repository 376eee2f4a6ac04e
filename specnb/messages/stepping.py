"""One round, step by step."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .writing import counted, listed

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
