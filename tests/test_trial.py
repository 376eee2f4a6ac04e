"""Trials in a child process: only the child dies, and its death is told in words."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from specnb import backend, trial
from specnb.trial import REINSTALL, Trial


@pytest.fixture
def header(tmp_path) -> Path:
    """A file that a child is asked about: its header is in order and announces nothing."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + bytes(16))
    return path


@pytest.fixture
def child(monkeypatch):
    """Puts a script in the place of the child that loads models."""

    def run_instead(script: str) -> None:
        prelude = "import json, os, signal, sys, time\nsay = lambda **what: print(json.dumps(what), flush=True)\n"
        monkeypatch.setattr(trial, "_command", lambda: [sys.executable, "-c", prelude + script])

    return run_instead


# -- deaths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cause", "fix"),
    [
        ("SIGILL", "instructions that this processor or virtual machine lacks", REINSTALL),
        ("SIGSEGV", "memory that is not its own", "Fetch the file again"),
        ("SIGABRT", "gave up on one of its own checks", "Fetch the file again"),
        ("SIGFPE", "divided by zero", "Fetch the file again"),
        ("SIGBUS", "could not be read", "copy it to another disk"),
        ("SIGKILL", "memory ran out", "smaller model"),
        ("SIGTERM", "something outside ended it", "Try again"),
    ],
)
def test_a_death_is_told_in_words(child, header, name, cause, fix):
    child(f"say(step='decoding 8 tokens')\nos.kill(os.getpid(), signal.{name})\ntime.sleep(30)")
    found = trial.try_model(header)
    assert not found.ok
    assert f"died with {name} while decoding 8 tokens" in found.detail and cause in found.detail
    assert fix in found.fix


def test_the_words_of_an_abort_include_the_check_that_failed(child, header):
    child(
        "say(step='loading the weights')\n"
        "print('ggml.c:12: GGML_ASSERT(n > 0) failed\\nsome more', file=sys.stderr, flush=True)\nos.abort()"
    )
    assert "It said: ggml.c:12: GGML_ASSERT(n > 0) failed" in trial.try_model(header).detail


def test_a_child_that_hangs_is_ended_and_told(child, header, tmp_path):
    written = tmp_path / "pid"
    child(f"open({str(written)!r}, 'w').write(str(os.getpid()))\nsay(step='making a context')\ntime.sleep(600)")
    found = trial.try_model(header, timeout_s=1.5)
    assert not found.ok and "not done after 2 s, while making a context" in found.detail
    assert "smaller model" in found.fix
    assert not psutil.pid_exists(int(written.read_text()))


def test_a_large_file_may_take_longer(child, header):
    child("say(step='x')\ntime.sleep(1.2)\nsay(found='fine')")
    assert not trial.try_model(header, timeout_s=0.1).ok
    with header.open("r+b") as file:
        file.truncate(2**30)  # sparse: takes no room
    assert trial.try_model(header, timeout_s=0.1).ok


def test_a_child_that_takes_memory_without_end_is_ended_and_told(child, header, monkeypatch):
    monkeypatch.setattr(trial, "LEAST_MEMORY", 100 * 2**20)
    child("say(step='loading the weights')\nheld = []\nwhile True: held.append(b'x' * 10**6); time.sleep(0.001)")
    found = trial.try_model(header)
    assert not found.ok and "more than 0.1 GiB of memory while loading the weights" in found.detail


def test_a_step_may_have_a_limit_of_its_own(child, header):
    child("say(step='x', seconds=0.5)\nsay(step='y')\ntime.sleep(1)\nsay(step='z', seconds=0.2)\ntime.sleep(600)")
    found = trial.try_model(header)
    assert not found.ok and "while z" in found.detail


def test_starting_does_not_count(child, header):
    child("say(step='importing llama.cpp')\ntime.sleep(1.2)\nsay(step='x')\nsay(found='fine')")
    assert trial.try_model(header, timeout_s=0.5).ok


TASKS = "\nfor line in sys.stdin:\n    path = json.loads(line)['paths'][0]\n"


def test_many_trials_share_a_child_until_it_dies_of_one(child, header, tmp_path):
    deadly = tmp_path / "deadly.gguf"
    deadly.write_bytes(header.read_bytes())
    child(TASKS + "    os.abort() if 'deadly' in path else say(found=str(os.getpid()))")
    with trial.one_child_for_many():
        pids = [trial.try_model(path).detail for path in (header, header, deadly, header, header)]
    assert pids[0] == pids[1] and "SIGABRT" in pids[2] and pids[3] == pids[4] != pids[0]
    assert not any(psutil.pid_exists(int(pid)) for pid in (pids[0], pids[3]))
    assert trial.try_model(header).detail != trial.try_model(header).detail


def test_what_has_passed_is_tried_again_only_when_it_changes(child, header):
    child("say(found='fine')")
    trial.require(header)
    child("os.abort()")
    trial.require(header)
    os.utime(header, ns=(1, 1))
    with pytest.raises(backend.ModelError, match="SIGABRT"):
        trial.require(header)


def test_an_interrupt_leaves_no_child(child, header, monkeypatch, tmp_path):
    written = tmp_path / "pid"
    child(f"say(step='x')\nopen({str(written)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")

    def interrupted(_child: object) -> int:
        if written.exists() and written.read_text():
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(trial.Child, "_resident", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trial.try_model(header)
    assert not psutil.pid_exists(int(written.read_text()))


def test_a_python_error_in_the_child_is_told(child):
    child("say(step='importing llama.cpp')\nraise OSError('libllama.so: cannot open shared object file')")
    found = trial.try_build()
    assert not found.ok
    assert "failed while importing llama.cpp (exit code 1)" in found.detail and "libllama.so" in found.detail
    assert found.fix == REINSTALL


def test_a_child_that_says_nothing_or_nonsense_has_not_succeeded(child, header):
    for script in ("", "print('[1, 2]')", "print('{broken')", "sys.exit(3)", "say(step='importing llama.cpp')"):
        child(script)
        assert not trial.try_model(header).ok


def test_chatter_between_the_lines_is_left_out(child):
    child("say(step='x')\nprint('native chatter')\nsay(found='fine', features=['AVX'])\nprint('more')")
    assert trial.try_build() == Trial(True, "fine", features=("AVX",))


def test_require_raises_with_the_words_of_the_trial(child, header):
    child("say(step='decoding 1 token')\nos.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(backend.ModelError) as refused:
        trial.require(header)
    words = str(refused.value)
    assert words.startswith("model.gguf was tried in a process of its own: It died with SIGILL")
    assert words.endswith(REINSTALL)
    child("say(found='fine')")
    trial.require(header)


# -- real children -----------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize("safe_path", ["", "1"])
def test_the_embedded_model_passes_from_any_folder(embedded, tmp_path, monkeypatch, safe_path):
    # A reader's folder may hold files that are named like modules, and the package may not be installed.
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')")
    (tmp_path / "linked.gguf").symlink_to(embedded)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", safe_path)
    found = trial.try_model("linked.gguf")
    assert found.ok, found
    assert "Q4_1, 30 layers" in found.detail and found.fix == ""
    trial.require("linked.gguf")


@pytest.mark.parametrize("content", [None, b"", b"no model", b"GGUF\x03\0\0\0" + b"\xff" * 64])
def test_what_is_no_model_is_refused_in_words(tmp_path, content):
    path = tmp_path / "mine.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(backend.ModelError, match=r"mine\.gguf.* Leave the file out"):
        trial.require(path)


@pytest.mark.model
def test_the_build_says_what_it_was_built_for():
    found = trial.try_build()
    assert found.ok and found.detail == backend.build_info()
    assert found.features and f"({', '.join(found.features)})" in found.detail


@pytest.mark.model
def test_a_pair_is_compared_in_a_child(embedded, tmp_path):
    assert trial.try_pair(embedded, embedded).ok
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    refused = trial.try_pair(embedded, text)
    assert not refused.ok and "text.gguf" in refused.detail and refused.fix
