"""The doctor: what it says of a machine and of a model, and that only a child dies."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from specnb import backend, doctor, machine, models
from specnb.doctor import Finding, Report

REINSTALL = (
    "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python "
    "llama-cpp-python"
)


@pytest.fixture
def child(monkeypatch):
    """Puts a script in the place of the child that loads models."""

    def run_instead(script: str) -> None:
        prelude = "import json, os, signal, sys, time\nsay = lambda **what: print(json.dumps(what), flush=True)\n"
        monkeypatch.setattr(doctor, "_command", lambda _arguments: [sys.executable, "-c", prelude + script])

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
def test_a_death_is_told_in_words(child, name, cause, fix):
    child(f"say(step='decoding 8 tokens')\nos.kill(os.getpid(), signal.{name})\ntime.sleep(30)")
    trial = doctor.try_model("model.gguf")
    assert not trial.ok
    assert f"died with {name} while decoding 8 tokens" in trial.detail and cause in trial.detail
    assert fix in trial.fix


def test_the_words_of_an_abort_include_the_check_that_failed(child):
    child(
        "say(step='loading the weights')\n"
        "print('ggml.c:12: GGML_ASSERT(n > 0) failed\\nsome more', file=sys.stderr, flush=True)\nos.abort()"
    )
    assert "It said: ggml.c:12: GGML_ASSERT(n > 0) failed" in doctor.try_model("model.gguf").detail


def test_a_child_that_hangs_is_ended_and_told(child, tmp_path):
    written = tmp_path / "pid"
    child(f"open({str(written)!r}, 'w').write(str(os.getpid()))\nsay(step='making a context')\ntime.sleep(600)")
    trial = doctor.try_model("model.gguf", timeout_s=1.5)
    assert not trial.ok and "not done after 2 s, while making a context" in trial.detail
    assert "smaller model" in trial.fix
    assert not psutil.pid_exists(int(written.read_text()))


def test_a_large_file_may_take_longer(child, tmp_path):
    large = tmp_path / "large.gguf"
    with large.open("wb") as file:
        file.truncate(2**30)  # sparse: takes no room
    child("time.sleep(1.2)\nsay(found='fine')")
    assert doctor.try_model(large, timeout_s=0.1).ok
    assert not doctor.try_model(tmp_path, timeout_s=0.1).ok


def test_a_python_error_in_the_child_is_told(child):
    child("say(step='importing llama.cpp')\nraise OSError('libllama.so: cannot open shared object file')")
    trial = doctor.try_build()
    assert not trial.ok
    assert "failed while importing llama.cpp (exit code 1)" in trial.detail and "libllama.so" in trial.detail
    assert trial.fix == REINSTALL


def test_a_child_that_says_nothing_or_nonsense_has_not_succeeded(child):
    for script in ("", "print('[1, 2]')", "print('{broken')", "sys.exit(3)", "say(step='importing llama.cpp')"):
        child(script)
        assert not doctor.try_model("model.gguf").ok


def test_chatter_between_the_lines_is_left_out(child):
    child("say(step='x')\nprint('native chatter')\nsay(found='fine', features=['AVX'])\nprint('more')")
    assert doctor.try_build() == doctor.Trial(True, "fine", features=("AVX",))


def test_require_raises_with_the_words_of_the_trial(child):
    child("say(step='decoding 1 token')\nos.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(backend.ModelError) as refused:
        doctor.require("folder/mine.gguf")
    words = str(refused.value)
    assert words.startswith("mine.gguf was tried in a process of its own: It died with SIGILL")
    assert words.endswith(REINSTALL)
    child("say(found='fine')")
    doctor.require("folder/mine.gguf")


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
    trial = doctor.try_model("linked.gguf")
    assert trial.ok, trial
    assert "Q4_1, 30 layers" in trial.detail and trial.fix == ""
    doctor.require("linked.gguf")


@pytest.mark.parametrize("content", [None, b"", b"no model", b"GGUF\x03\0\0\0" + b"\xff" * 64])
def test_what_is_no_model_is_refused_in_words(tmp_path, content):
    path = tmp_path / "mine.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(backend.ModelError, match=r"mine\.gguf was tried .*mine\.gguf"):
        doctor.require(path)


@pytest.mark.model
def test_the_build_says_what_it_was_built_for():
    trial = doctor.try_build()
    assert trial.ok and trial.detail == backend.build_info()
    assert trial.features and f"({', '.join(trial.features)})" in trial.detail


@pytest.mark.model
def test_a_pair_is_compared_in_a_child(embedded, tmp_path, monkeypatch):
    assert doctor.try_pair(embedded, embedded).ok
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    refused = doctor.try_pair(embedded, text)
    assert not refused.ok and "text.gguf" in refused.detail and refused.fix


# -- the report --------------------------------------------------------------------------------


def named(report: Report) -> dict[str, Finding]:
    return {finding.name: finding for finding in report.findings}


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    """A machine with nothing to fix, whatever this one is like."""
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPECNB_TARGET", raising=False)
    monkeypatch.delenv("SPECNB_DRAFT", raising=False)
    monkeypatch.setattr(metadata, "requires", lambda _name: ["numpy>=1.26", 'torch>=2; extra == "train"'])
    monkeypatch.setattr(machine, "busy_elsewhere", lambda: 0.0)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * 2**30))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=8 * 2**30))


@pytest.mark.model
def test_a_healthy_machine_is_all_ok(healthy, embedded):
    report = doctor.examine(draft=str(embedded))
    assert report.ok, str(report)
    lines = str(report).splitlines()
    assert len(lines) == len(report.findings) and all(line.startswith("OK  ") for line in lines)
    assert {"Python", "packages", "llama.cpp", "memory", "disk", "cores", "target", "draft", "pair"} <= set(
        named(report)
    )


def test_a_line_is_ok_or_the_fix():
    assert str(Finding("memory", True, "8 GiB free", "close something")) == "OK  memory: 8 GiB free"
    assert str(Finding("memory", False, "0 GiB free", "close something")) == "FIX memory: 0 GiB free -> close something"
    assert not Report((Finding("a", True, "x"), Finding("b", False, "y", "z"))).ok


@pytest.fixture
def no_models(monkeypatch):
    """Leaves the models out: quick."""
    monkeypatch.setattr(doctor, "_models", lambda _target, _draft: iter(()))


@pytest.mark.parametrize(
    ("requirement", "detail", "fix"),
    [
        ("numpy>=99,<100", f"version {metadata.version('numpy')} is outside the tested range; <100,>=99 is needed", ""),
        ("no-such-package>=1", "it is not installed; >=1 is needed", 'pip install "no-such-package>=1"'),
    ],
)
def test_a_package_outside_its_range_is_named_with_the_command(
    healthy, no_models, monkeypatch, requirement, detail, fix
):
    monkeypatch.setattr(metadata, "requires", lambda _name: ["psutil>=1", requirement])
    report = named(doctor.examine())
    finding = report[requirement.partition(">")[0]]
    assert not finding.ok and detail in finding.detail and fix in finding.fix
    assert "packages" not in report


def test_a_package_that_was_never_installed_says_how(healthy, no_models, monkeypatch):
    def absent(_name: str) -> list[str]:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", absent)
    assert "pip install -e ." in named(doctor.examine())["packages"].fix


def test_an_old_python_is_told_which_one_to_take(healthy, no_models, monkeypatch):
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (99, 1))
    finding = named(doctor.examine())["Python"]
    assert not finding.ok and "PYTHON=python99.1" in finding.fix


def test_little_memory_little_disk_and_busy_cores_are_told(healthy, no_models, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**29))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=2**29))
    monkeypatch.setattr(machine, "busy_elsewhere", lambda: 1.3)
    report = named(doctor.examine())
    assert not report["memory"].ok and "0.5 GiB free, 1.5 GiB wanted" in report["memory"].detail
    assert not report["disk"].ok and "SPECNB_CACHE" in report["disk"].fix
    assert not report["cores"].ok and "keep 1.3 busy" in report["cores"].detail


def test_models_already_derived_need_no_more_disk(healthy, no_models, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=2**29))
    folder = models.cache_folder() / "of one model"
    folder.mkdir()
    with (folder / "derived.gguf").open("wb") as file:
        file.truncate(int(1.2 * 2**30))  # sparse: takes no room
    assert named(doctor.examine())["disk"].ok


def cpuinfo(folder: Path, flags: str) -> Path:
    path = folder / "cpuinfo"
    path.write_text(f"processor\t: 0\nmodel name\t: A processor\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    return path


def test_features_that_the_processor_lacks_are_named(healthy, no_models, monkeypatch, tmp_path):
    trial = doctor.Trial(True, "a build", features=("SSE3", "AVX2", "AVX512", "AMX_INT8", "OPENMP"))
    monkeypatch.setattr(doctor, "try_build", lambda: trial)
    monkeypatch.setattr(doctor, "CPUINFO", cpuinfo(tmp_path, "fpu pni avx avx2 avx512f"))
    finding = named(doctor.examine())["processor"]
    assert not finding.ok and "built for AVX512, AMX_INT8, which" in finding.detail
    assert finding.fix == REINSTALL
    flags = "pni avx2 avx512f avx512cd avx512bw avx512dq avx512vl amx_tile amx_int8"
    monkeypatch.setattr(doctor, "CPUINFO", cpuinfo(tmp_path, flags))
    finding = named(doctor.examine())["processor"]
    assert finding.ok and "(SSE3, AVX2, AVX512, AMX_INT8)" in finding.detail


def test_a_processor_that_lists_no_flags_is_not_judged(healthy, no_models, monkeypatch, tmp_path):
    arm = tmp_path / "cpuinfo"
    arm.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    for path in (arm, tmp_path / "absent"):
        monkeypatch.setattr(doctor, "CPUINFO", path)
        assert "processor" not in named(doctor.examine())


def test_a_llama_cpp_that_kills_the_child_is_not_imported_here(healthy, child):
    child("say(step='importing llama.cpp')\nos.kill(os.getpid(), signal.SIGILL)")
    report = doctor.examine()
    assert named(report)["llama.cpp"].fix == REINSTALL
    assert report.findings[-1].name == "llama.cpp"


@pytest.mark.model
def test_bad_models_are_told_with_the_role_they_were_to_play(healthy, embedded, tmp_path):
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    report = named(doctor.examine(target=str(text)))
    assert not report["target"].ok and "text.gguf" in report["target"].detail and "draft" not in report
    report = named(doctor.examine(target="nonsense"))
    assert "neither a file nor a hub id" in report["target"].detail
    report = named(doctor.examine(draft=str(text)))
    assert report["target"].ok and not report["draft"].ok and "pair" not in report


# -- the command -------------------------------------------------------------------------------


def test_the_exit_code_says_whether_something_needs_fixing(monkeypatch, capsys):
    reports = [Report((Finding("a", True, "fine"),)), Report((Finding("a", False, "broken", "mend it"),))]
    asked = []
    monkeypatch.setattr(doctor, "examine", lambda *names: asked.append(names) or reports[len(asked) - 1])
    assert doctor.main(["target.gguf", "--draft", "draft.gguf"]) == 0
    assert doctor.main([]) == 1
    assert asked == [("target.gguf", "draft.gguf"), (None, None)]
    assert capsys.readouterr().out == "OK  a: fine\nFIX a: broken -> mend it\n"


def test_the_command_line_runs(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "specnb.doctor", str(tmp_path / "absent.gguf")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(doctor.PACKAGE_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1 and ended.stderr == ""
    assert "FIX target: " in ended.stdout and "OK  Python: " in ended.stdout


def test_importing_the_doctor_does_not_import_llama_cpp():
    code = "import sys; from specnb import doctor; sys.exit('imported' if 'llama_cpp' in sys.modules else 0)"
    subprocess.run([sys.executable, "-c", code], cwd=doctor.PACKAGE_ROOT, check=True)
