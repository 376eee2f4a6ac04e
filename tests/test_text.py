"""Text out of tokens: characters split over tokens come out whole, stop strings end the text wherever they fall."""

from __future__ import annotations

from itertools import pairwise

import pytest

from specnb.text import Assembler, ending

EMOJI = "🙂".encode()


def spelled(pieces: list[bytes]) -> list[str]:
    """The characters that each token completes."""
    assembler = Assembler(pieces.__getitem__)
    return [assembler.add(token) for token in range(len(pieces))]


def assembled(pieces: list[bytes], **options) -> Assembler:
    assembler = Assembler(pieces.__getitem__, **options)
    for token in range(len(pieces)):
        assembler.add(token)
    return assembler


@pytest.mark.parametrize("cuts", [(1,), (2,), (3,), (1, 2), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("before", ["", "a", "é"])
def test_an_emoji_split_over_tokens_comes_out_whole_with_its_last_byte(cuts, before):
    parts = [EMOJI[a:b] for a, b in pairwise((0, *cuts, 4))]
    pieces = [before.encode(), *parts, b"!"]
    assert spelled(pieces) == [before, *[""] * (len(parts) - 1), "🙂", "!"]
    assert assembled(pieces).text == f"{before}🙂!"


@pytest.mark.parametrize("held", [1, 2, 3])
def test_a_budget_that_ends_inside_a_character_leaves_one_mark_for_it(held):
    assert assembled([b"ab", EMOJI[:held]]).text == "ab\ufffd"
    assert spelled([b"ab", EMOJI[:held]]) == ["ab", ""]


def test_bytes_that_are_no_character_are_marked_and_lose_nothing_after_them():
    assert assembled([b"a\xff", b"b", EMOJI[:2], b"c"]).text == "a\ufffdb\ufffdc"


def cuts_of(data: bytes) -> list[list[bytes]]:
    """Every way to cut some bytes into tokens."""
    if not data:
        return [[]]
    return [[data[:n], *rest] for n in range(1, len(data) + 1) for rest in cuts_of(data[n:])]


@pytest.mark.parametrize("stop", ["b", "bc", "abcd", "cd", "🙂", "d🙂", "bcd🙂e"])
def test_a_stop_string_is_found_however_tokens_cut_the_text(stop):
    text = "abcd🙂e"
    for pieces in cuts_of(text.encode()):
        assembler, seen = Assembler(pieces.__getitem__, stop=[stop]), b""
        for token, piece in enumerate(pieces):
            assembler.add(token)
            seen += piece
            assert assembler.stopped == (stop.encode() in seen), pieces
            if assembler.stopped:
                break
        assert assembler.text == text[: text.index(stop)], pieces


def test_the_first_of_several_stop_strings_counts():
    assert assembled([b"a", b"bcd"], stop=["d", "c", "x"]).text == "ab"
    assert assembled([b"a", b"bcd"], stop=["x"]).text == "abcd"


def test_what_comes_after_a_stop_string_changes_nothing():
    assembler = assembled([b"ab", b"cc", b"ab"], stop=["b"])
    assert assembler.text == "a" and assembler.stopped


def test_a_token_without_text_is_none():
    assert assembled([b"", b"a", b""], stop=["ab"]).text == "a"


def test_stop_strings_that_cannot_be_meant_are_refused():
    with pytest.raises(ValueError, match="A stop string is empty"):
        Assembler(lambda _: b"", stop=["a", ""])
    with pytest.raises(ValueError, match=r"write \['END'\]"):
        Assembler(lambda _: b"", stop="END")


def test_the_ending_is_a_stop_string_or_the_end_of_the_text():
    pieces = [b"a", b"b", b""]
    ends = ending(Assembler(pieces.__getitem__, stop=["ab"]), lambda token: token == 2)
    assert [ends(0), ends(1)] == [False, True]
    ends = ending(Assembler(pieces.__getitem__), lambda token: token == 2)
    assert [ends(0), ends(1), ends(2)] == [False, False, True]
