"""The generated text as HTML: every token marked, nothing lost."""

from __future__ import annotations

import html
import re

from specnb.records import Cycle
from specnb.widgets import stream_html

PIECES = {1: b"one", 2: b" <b>", 3: "🙂".encode()[:1], 4: "🙂".encode()[1:], 5: b"\n", 6: "é".encode()[:1]}


def shown(cycles, **options):
    return stream_html(cycles, PIECES.__getitem__, **{"show_refused": True, **options})


def spans(page):
    return [html.unescape(text) for text in re.findall(r"<(?:span|u|s) [^>]*>([^<]*)<", page)]


def test_kept_own_and_refused_tokens_are_marked_apart():
    page = shown([Cycle("d", 0, (1, 1, 5), 2, 1, (1, 2))])
    assert re.findall(r"<(\w+) style", page)[1:] == ["u", "span", "s"], "tags stay where styles are taken away"
    kinds = re.findall(r'<(?:span|u|s) style="([^"]*)"', page)
    assert spans(page) == ["one", " <b>", "one↵"]
    assert "border-bottom" in kinds[0] and "line-through" in kinds[2]
    assert "border-bottom" not in kinds[1] and "line-through" not in kinds[1]


def test_refused_tokens_can_be_left_out():
    assert spans(shown([Cycle("d", 0, (1, 1, 5), 2, 1, (1, 2))], show_refused=False)) == ["one", " <b>"]


def test_a_character_split_over_tokens_and_cycles_comes_out_whole():
    page = shown([Cycle("d", 0, (), 0, 0, (3,)), Cycle("d", 1, (), 0, 0, (4,))])
    assert spans(page) == ["🙂"]


def test_text_is_never_markup():
    assert "<b>" not in re.sub(r"</?(?:span|div|u|s)[^>]*>", "", shown([Cycle("d", 0, (), 0, 0, (2,))]))


def test_half_a_character_and_half_and_a_budget_that_ends_inside_one():
    pieces = {1: "🙂".encode()[:2], 2: "🙂".encode()[2:]}
    whole = Cycle("d", 0, (1, 2), 2, 2, (1, 2))
    assert spans(stream_html([whole], pieces.__getitem__, show_refused=True)) == ["🙂"]
    cut = Cycle("d", 0, (), 0, 0, (1,))
    assert spans(stream_html([cut], pieces.__getitem__, show_refused=True)) == []
