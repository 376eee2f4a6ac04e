"""Generated text as HTML, every token marked by where it came from."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable

from .. import messages
from ..records import Cycle
from ..text import Assembler

# Marked by more than colour: kept tokens have a line under them, refused ones a line through them. The tags say so
# too, since a code host takes the styles away.
_TAGS = {"kept": "u", "own": "span", "refused": "s"}
_STYLES = {
    "kept": "background:#d6e9f8;color:#10324a;border-bottom:2px solid #0072b2;text-decoration:none",
    "own": "color:#1a1a1a",
    "refused": "color:#8a3b00;text-decoration:line-through",
}
# Fixed ink needs fixed paper: the page's own may be dark.
_PLATE = "background:#fff;color:#1a1a1a;padding:2px 6px"
_BOX = (
    "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;line-height:1.7;white-space:pre-wrap;"
    "background:#fff;color:#1a1a1a;border:1px solid #bbb;border-radius:4px;padding:8px 10px;"
    "overflow-y:auto;"
)


def stream_html(
    cycles: Iterable[Cycle], piece: Callable[[int], bytes], *, show_refused: bool, height_px: int | None = None
) -> str:
    """The text of some cycles.

    piece: bytes of a token; a character split over tokens goes to its last one, and half of one is not shown yet.
    height_px: of a box that keeps its size while the text grows; None: as high as the text.
    """
    height = "" if height_px is None else f"height:{height_px}px"
    text = Assembler(piece)
    parts: list[str] = []
    for cycle in cycles:
        for i, token in enumerate(cycle.emitted):
            parts.append(_span("kept" if i < cycle.kept else "own", text.add(token)))
        if show_refused and cycle.refused:
            refused = b"".join(piece(token) for token in cycle.refused).decode("utf-8", "replace")
            parts.append(_span("refused", refused.replace("\n", "↵")))
    return f'<div style="{_BOX}{height}" role="log" aria-label="{messages.STREAM_LABEL}">{"".join(parts)}</div>'


def legend_html() -> str:
    """What the marks mean."""
    names = {"kept": messages.KEPT_MARK, "own": messages.OWN_MARK, "refused": messages.REFUSED_MARK}
    marks = " &nbsp; ".join(_span(kind, name) for kind, name in names.items())
    return f'<span style="{_PLATE}">{marks}</span>'


def _span(kind: str, text: str) -> str:
    tag = _TAGS[kind]
    return f'<{tag} style="{_STYLES[kind]}">{html.escape(text)}</{tag}>' if text else ""
