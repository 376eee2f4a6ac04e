"""The doctor: what it says of a machine and of its models."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from specnb import doctor, machine, models, trial
from specnb.doctor import Finding, Report
from specnb.trial import REINSTALL, Trial

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
    build = Trial(True, "a build", features=("SSE3", "AVX2", "AVX512", "AMX_INT8", "OPENMP"))
    monkeypatch.setattr(doctor, "try_build", lambda: build)
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


def test_a_llama_cpp_that_kills_the_child_is_not_imported_here(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "try_build", lambda: Trial(False, "It died with SIGILL.", REINSTALL))
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
        env=os.environ | {"PYTHONPATH": str(trial.PACKAGE_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1 and ended.stderr == ""
    assert "FIX target: " in ended.stdout and "OK  Python: " in ended.stdout


def test_importing_the_doctor_does_not_import_llama_cpp():
    code = "import sys; from specnb import doctor; sys.exit('imported' if 'llama_cpp' in sys.modules else 0)"
    subprocess.run([sys.executable, "-c", code], cwd=trial.PACKAGE_ROOT, check=True)
