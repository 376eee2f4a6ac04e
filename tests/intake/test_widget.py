"""The reader of numbers, driven without a page: what its buttons do."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from specnb import store
from specnb.widgets import IntakeReader

from .test_hostile import plain, server
from .texts import closing_block

CURVE = store.load_m5_pro().curve


@pytest.fixture
def reader() -> IntakeReader:
    return IntakeReader({"M5 Pro": CURVE})


def test_a_pasted_text_is_read_with_what_was_filled_in(reader):
    reader.text.value = closing_block(730, 526, emitted=673, k=5, seconds=12.132)
    reader.plain.value = 32.49
    assert reader.read()
    reader.wait(30)
    assert "Yes, it pays: 1.71×" in reader.shown.value
    assert reader.report.blocks[0].counts.drafted == 730


def test_a_staircase_from_the_menu_gives_a_better_k(reader):
    reader.text.value = closing_block(7000, 2062, emitted=3062, k=7)
    reader.staircase.value = "M5 Pro"
    reader.read()
    reader.wait(30)
    assert "Best k on this staircase" in reader.shown.value or "another machine" in reader.shown.value


def test_a_file_is_read_as_soon_as_it_is_chosen(reader):
    content = closing_block(11, 4, emitted=9).encode("utf-16")
    chosen = {"name": "run.log", "type": "", "size": len(content), "content": memoryview(content)}
    reader.file.value = ({**chosen, "last_modified": datetime(2025, 11, 29, tzinfo=timezone.utc)},)
    reader.wait(30)
    assert "4 accepted of 11 drafted" in reader.shown.value


def test_an_address_is_asked_only_when_its_button_is_pressed(reader):
    with server(plain) as (address, asked):
        reader.address.value = address
        reader.text.value = "nothing"
        reader.read()
        reader.wait(30)
        assert asked == []
        reader.ask()
        reader.wait(30)
    assert asked == ["GET /metrics"] and "1660 accepted of 3000" in reader.shown.value


@pytest.mark.parametrize("text", ["<script>alert(1)</script>\nn_drafted = <img/src=x>\n", "x\0y", ""])
def test_what_cannot_be_read_is_said_and_escaped(reader, text):
    reader.text.value = text
    reader.read()
    reader.wait(30)
    assert "<script" not in reader.shown.value and "<img" not in reader.shown.value
    assert "Reading" not in reader.shown.value


def test_a_bad_address_is_said(reader):
    reader.address.value = "file:///etc/passwd"
    reader.ask()
    reader.wait(30)
    assert "no address" in reader.shown.value
