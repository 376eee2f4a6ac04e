"""Contradictions are named with their numbers; hostile texts, files and servers neither hang nor raise anything odd."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from specnb import intake
from specnb.intake import sources
from specnb.intake.__main__ import main
from specnb.records import ObservedCounts

from .texts import closing_block, metrics, server_lines, timings


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (closing_block(5, 9), ("9", "5")),
        (closing_block(100, 40, emitted=30), ("30", "40")),
        (closing_block(100, 40).replace("40.000%", "140.000%"), ("1.4",)),
        (closing_block(100, 40).replace("40.000%", "45.000%"), ("0.45", "40 of 100")),
        (closing_block(100, 90, emitted=100, k=4), ("100", "10", "40")),
        (server_lines(100, 40, drafts=20).replace("0.40000", "1.40000"), ("1.4",)),
        (server_lines(100, 40, drafts=20).replace("mean len =  3.00", "mean len =  0.50"), ("0.5",)),
        (server_lines(100, 40, drafts=20).replace("mean len =  3.00", "mean len = 90.00"), ("90",)),
        (server_lines(100, 60, drafts=30, per_position=(0.5, 0.9, 0.6)), ("0.9", "0.5")),
        (timings(10, 40, emitted=200, ms=1000.0), ("40", "10")),
        (metrics("vllm", 10, 30, 40), ("40", "30")),
        (metrics("vllm", 10, 45, 20, (9, 7, 4)), ("45", "10", "30")),
        (metrics("vllm", 10, 30, 20, (7, 9, 4)), ("9", "7")),
        (metrics("vllm", 10, 30, 20, (12, 5, 3)), ("12", "10")),
        (metrics("vllm", 10, 30, 20, (9, 5, 3)), ("17", "20")),
    ],
)
def test_a_contradiction_is_named_with_its_numbers_and_nothing_is_derived(text, numbers):
    (block,) = intake.from_text(text).blocks
    assert block.contradictions and block.reading is None and block.verdict is None
    told = " ".join(block.contradictions)
    assert all(number in told for number in numbers), told


def test_more_tokens_a_cycle_than_k_and_one():
    told = intake.contradictions(ObservedCounts("tool", "", 60, 60, drafts=(10, 10), k=4))
    assert any("7.00 tokens per pass at k = 4" in each for each in told)


@pytest.mark.parametrize("value", ["nan", "inf", "-5", "1.5", "1e400", "NaN", "-0.5", "twelve", "0x10", "9" * 39])
def test_what_is_no_count_is_refused_by_name_and_number(value):
    for text in (
        closing_block(100, 40).replace("n_drafted = 100", f"n_drafted = {value}"),
        metrics("vllm", 10, 30, 20).replace(" 30.0", f" {value}"),
        server_lines(100, 40).replace("  100 generated", f" {value} generated"),
    ):
        found = intake.from_text(text)
        assert not found.blocks and found.refused, text
        told = " ".join(found.refused).lower()
        assert any(sign in told for sign in (value[:15].lower(), "= inf", "= 1e+39", "no prometheus sample")), told


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-7", "1.5", '"many"', "null", "true", "[1]"])
def test_json_that_is_no_count_is_refused(value):
    found = intake.from_text(timings(347, 65, emitted=200, ms=1000.0).replace("347", value))
    assert not found.blocks and "draft_n" in found.refused[0]


def test_a_missing_half_is_named():
    assert "n_accept" in intake.from_text("n_drafted = 12\n").refused[0]
    assert "draft_n_accepted" in intake.from_text('{"draft_n": 3, "predicted_n": 4}').refused[0]
    text = metrics("vllm", 10, 30, 20).replace("accepted_tokens", "other")
    assert "accepted" in intake.from_text(text).refused[0]


def test_a_contradictory_block_is_left_out_of_the_sum():
    found = intake.from_text(closing_block(10, 4, emitted=9) + closing_block(5, 9) + closing_block(10, 6, emitted=9))
    assert [bool(block.contradictions) for block in found.blocks] == [False, True, False]
    assert found.sums[0].counts.drafted == 20
    assert "contradict" in str(found)


BAIT = (
    "draft acceptance = ",
    "draft acceptance = 0.5 (" + " " * 200,
    "#acc rate/pos = (" + "0.1, " * 3000,
    "statistics " + " " * 30,
    "id 1 | task ",
    "n_drafted" + " " * 50,
    "n_accept = ",
    "accept = ",
    '{"draft_n":',
    '{"predicted_n": {',
    '"timings": {"draft_n": 1, ',
    "vllm:spec_decode_num_drafts_total{" + '"\\' * 400,
    "vllm:spec_decode_num_draft_tokens_total{a=" + "\\" * 1500,
    "llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=",
    "SpecDecoding metrics: " + "Accepted: " * 100,
    "decoded " + " " * 40,
)


@pytest.mark.parametrize("bait", BAIT)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_text_made_to_stall_a_pattern_takes_little_time(bait, end):
    text = ((bait + end) * (1 + 2_000_000 // len(bait + end)))[:2_000_000]
    start = time.perf_counter()
    str(intake.from_text(text))
    assert time.perf_counter() - start < 20.0


def test_mangled_logs_only_ever_give_reports():
    chance = random.Random(7)
    whole = (
        closing_block(730, 526, emitted=673, k=5)
        + server_lines(259, 167, drafts=87, emitted=256, per_position=(0.805, 0.632, 0.483))
        + timings(347, 65, emitted=200, ms=1000.0)
        + metrics("vllm", 1000, 3000, 1660, (710, 530, 420), labels='engine="0"')
    )
    for _ in range(300):
        text = list(whole)
        for _ in range(chance.randint(1, 12)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 3)] = chance.choice(["9", "-", "", "\n", "0", ".", "nan", "e9", "{", "\t"])
        str(intake.from_text("".join(text), k=chance.choice([None, 1, 5]), staircase={1: 5.0, 2: 6.0, 6: 9.0}))


def test_many_blocks_are_summed_and_not_all_told():
    found = intake.from_text("".join(closing_block(10, 4, emitted=9, k=3) for _ in range(500)))
    assert found.sums[0].counts.drafted == 5000
    assert len(found.lines) < 150 and "488 more blocks" in str(found)


# --- texts and files -------------------------------------------------------------------------------------


def test_texts_that_are_none_or_too_long_are_refused():
    with pytest.raises(intake.Unreadable, match="16 MiB"):
        intake.from_text("x" * (sources.MOST_BYTES + 1))
    with pytest.raises(intake.Unreadable, match="not text"):
        intake.from_text("n_drafted = 1\0")


def test_files_are_read_and_others_refused(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(closing_block(10, 4, emitted=9), encoding="utf-8")
    assert intake.from_file(log).blocks[0].counts.drafted == 10
    log.write_text(closing_block(11, 4, emitted=9), encoding="utf-16")  # what PowerShell's ">" writes
    assert intake.from_file(log).blocks[0].counts.drafted == 11
    log.write_bytes(b"caf\xe9 " + closing_block(12, 4).encode())
    assert intake.from_file(log).blocks[0].counts.drafted == 12
    log.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(intake.Unreadable, match=r"[Ss]erver\.log is not text"):
        intake.from_file(log)
    log.write_bytes(b"GGUF\x03\x80\x90" * 1000)
    with pytest.raises(intake.Unreadable, match="not text"):
        intake.from_file(log)
    for path in (tmp_path, tmp_path / "absent.log", "\0", tmp_path / ("x" * 5000)):
        with pytest.raises(intake.Unreadable):
            intake.from_file(path)


# --- addresses -------------------------------------------------------------------------------------------


@contextmanager
def server(answer) -> Iterator[tuple[str, list[str]]]:
    """A server on this machine, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(f"{self.command} {self.path}")
            answer(self)

        def log_message(self, *_arguments):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/metrics", asked
    finally:
        running.shutdown()
        running.server_close()


def plain(handler: BaseHTTPRequestHandler) -> None:
    body = metrics("vllm", 1000, 3000, 1660).encode()
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(body)


def test_an_address_is_asked_once_and_read():
    with server(plain) as (address, asked):
        assert intake.from_address(address).blocks[0].counts.drafted == 3000
    assert asked == ["GET /metrics"]


def test_a_redirection_is_named_and_not_followed():
    with server(plain) as (elsewhere, asked_elsewhere):

        def redirect(handler):
            handler.send_response(302)
            handler.send_header("Location", elsewhere)
            handler.end_headers()

        with server(redirect) as (address, _), pytest.raises(intake.Unreadable, match="302"):
            intake.from_address(address)
    assert asked_elsewhere == []


def test_a_server_that_trickles_is_given_up_in_time():
    def trickle(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.05)

    with server(trickle) as (address, _):
        start = time.perf_counter()
        with pytest.raises(intake.Unreadable, match="within"):
            sources.from_address(address, timeout_s=0.6)
        assert time.perf_counter() - start < 3.0


def test_a_server_that_never_stops_is_cut_off(monkeypatch):
    monkeypatch.setattr(sources, "MOST_BYTES", 2**20)

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    with server(endless) as (address, _), pytest.raises(intake.Unreadable, match="longer than 1 MiB"):
        intake.from_address(address)


def test_errors_of_a_server_are_told():
    with server(lambda handler: handler.send_error(503)) as (address, _):
        with pytest.raises(intake.Unreadable, match="503"):
            intake.from_address(address)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(intake.Unreadable, match=r"127\.0\.0\.1"):
            intake.from_address(f"http://127.0.0.1:{taken.getsockname()[1]}/metrics")


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "http://",
        "http://ho st/",
        "http://h\nX: y/",
        "http://h:99999/",
        "http://[::1",
        "x",
    ],
)
def test_other_addresses_are_refused_unasked(address):
    with pytest.raises(intake.Unreadable, match="no address"):
        intake.from_address(address)


def test_credentials_in_an_address_are_refused():
    with pytest.raises(intake.Unreadable, match="password") as caught:
        intake.from_address("http://me:secret@127.0.0.1:1/metrics")
    assert "secret" not in str(caught.value)


# --- the command line ------------------------------------------------------------------------------------


def test_the_command_line_prints_the_report(tmp_path, capsys):
    log = tmp_path / "run.log"
    log.write_text(closing_block(730, 526, emitted=673, k=5, seconds=12.132), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-m", "specnb.intake", "-", "--plain", "32.49"],
        input=log.read_bytes(),
        capture_output=True,
        timeout=60,
    )
    assert told.returncode == 0 and "Yes, it pays: 1.71×" in told.stdout.decode()
    assert main([str(log)]) == 0 and "526 accepted of 730 drafted" in capsys.readouterr().out
    assert main([str(tmp_path / "no.log")]) == 1 and "There is no file" in capsys.readouterr().err
    assert main([str(log), "--plain", "-3"]) == 1 and "-3" in capsys.readouterr().err
    assert main([str(log), "--k", "-3"]) == 1 and "-3" in capsys.readouterr().err
