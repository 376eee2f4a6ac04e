"""The files that set the workbook up agree with each other, and the Makefile does what they promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it on 3.10

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def split_requirement(requirement: str) -> tuple[str, frozenset[str]]:
    """``"jupyterlab>=4.4,<5"`` -> ``("jupyterlab", {">=4.4", "<5"})``, the name in PyPI's normal form."""
    name, ranges = re.fullmatch(r"([A-Za-z0-9._-]+)\s*(.*)", requirement.strip()).groups()
    return re.sub(r"[-_.]+", "-", name).lower(), frozenset(filter(None, re.split(r"[,\s]+", ranges)))


def environment_requirements() -> tuple[dict[str, frozenset[str]], list[str]]:
    """(every requirement of environment.yml by name, the pip entries that are no requirement)."""
    entries = re.findall(r"^\s+- (.+?)\s*$", (ROOT / "environment.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert "pip:" in entries, "environment.yml has no pip section for what conda-forge lacks"
    requirements = [entry for entry in entries if entry not in ("pip", "pip:", "conda-forge") and entry[0] != "-"]
    return dict(map(split_requirement, requirements)), [entry for entry in entries if entry[0] == "-"]


def makefile_variable(name: str) -> str:
    return re.search(rf"^{name} :?\??= (.+)$", MAKEFILE, re.MULTILINE).group(1)


def test_conda_and_pip_install_the_same():
    conda, other = environment_requirements()
    assert conda.pop("python") == {PROJECT["requires-python"]}
    assert conda == dict(map(split_requirement, PROJECT["dependencies"]))
    assert other == ["-e ."], "the pip section installs the workbook itself, and nothing else that is unnamed"


def test_every_dependency_states_a_lower_and_an_upper_bound():
    extras = [r for extra in PROJECT["optional-dependencies"].values() for r in extra]
    for requirement in PROJECT["dependencies"] + extras:
        name, ranges = split_requirement(requirement)
        operators = {re.match(r"[<>=!~]+", r).group() for r in ranges}
        assert operators >= {">=", "<"} or operators == {"=="}, f"{name} is unbounded: {requirement}"


def test_the_python_minimum_is_the_same_everywhere():
    minimum = PROJECT["requires-python"].removeprefix(">=")
    assert makefile_variable("PYTHON_MINIMUM") == minimum
    stated = set(re.findall(r"Python (3\.\d+) or newer", README))
    assert stated == {minimum}, f"README.md says {stated or 'nothing'}, pyproject.toml says {minimum}"


def test_readme_names_only_make_targets_that_exist():
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE).group(1).split()
    used = set(re.findall(r"^(?:\w+=\S+ )*make (\w+)|`make (\w+)", README, re.MULTILINE))
    named = {target for pair in used for target in pair if target}
    assert {"lab", "test"} <= named, f"README.md shows only these commands: {sorted(named)}"
    assert named <= set(phony), f"README.md names targets that the Makefile lacks: {sorted(named - set(phony))}"
    for target in phony:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) or target == "FORCE"


def test_readme_maps_every_notebook():
    for notebook in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        assert notebook.stem[:2] in README, f"README.md's map of notebooks misses {notebook.name}"


def test_continuous_integration_forbids_skipping():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK), ".ci/run is not executable: chmod +x .ci/run"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert "export SPECNB_REQUIRE_ALL=1" in lines
    assert lines[-1] == "make test", "pytest's summary must be the last thing CI prints"


# What make really does, with a stand-in for Python that writes down how it was called.

FAKE_PYTHON = """#!/bin/sh
# Answers `-c` checks by file names, makes a "virtual environment" out of itself, logs everything else.
here={here}
case "$*" in
  --version) echo "Python 3.$(cat $here/minor).0" ;;
  "-c import sys;"*) [ "$(cat $here/minor)" -ge 10 ] ;;
  "-c import pip;"*) true ;;
  "-c import venv, ensurepip") [ ! -e $here/no_venv ] ;;
  "-m venv --clear "*) echo "venv" >>$here/log; mkdir -p "$4/bin"; rm -f "$4/bin/python"; cp "$0" "$4/bin/python" ;;
  *--dry-run*) [ -e $here/llama_fits ] ;;
  *) echo "CMAKE_ARGS=${{CMAKE_ARGS-unset}} $*" >>$here/log; [ ! -e $here/fail ] ;;
esac
"""


TOOLS = ("cat", "cp", "make", "mkdir", "rm", "sed", "sh", "touch")


class FakeMachine:
    """A folder that plays the machine: `python3`, `uname` and a C++ compiler are scripts in ``bin``.

    Nothing else is on the PATH but a few tools, so no test can reach a real Python and compile.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        (folder / "minor").write_text("12")
        self.script("python3", FAKE_PYTHON.format(here=folder))
        self.script("c++", "#!/bin/sh\n")
        self.is_a("Linux", "x86_64")
        shutil.copy(ROOT / "Makefile", folder)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def is_a(self, system: str, processor: str) -> None:
        self.script("uname", f'#!/bin/sh\ncase "$1" in -s) echo {system} ;; -m) echo {processor} ;; esac\n')

    def make(self, *arguments: str, fails: bool = False, **environment: str) -> tuple[str, list[str]]:
        """(what make printed, the calls of Python it caused)."""
        log = self.folder / "log"
        log.write_text("")
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("MAKE", "MFLAGS", "CMAKE", "CXX", "PYTEST_ARGS", "LAB_ARGS"))
        }
        clean |= {"PATH": str(self.bin), **environment}
        done = subprocess.run(
            [self.bin / "make", "PYTHON=python3", *arguments],
            cwd=self.folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout, log.read_text().splitlines()


@pytest.fixture
def fake_machine(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    return FakeMachine(tmp_path)


def compiled_with(calls: list[str]) -> list[str]:
    """CMAKE_ARGS of each build of llama-cpp-python among the calls."""
    builds = [c for c in calls if "--no-binary llama-cpp-python" in c]
    return [re.match(r"CMAKE_ARGS=(.*?) -m pip", c).group(1) for c in builds]


def test_make_test_builds_llama_first_then_installs_then_tests(fake_machine):
    printed, calls = fake_machine.make("test")
    (pin,) = (r for r in PROJECT["dependencies"] if r.startswith("llama-cpp-python"))
    (build,) = (c for c in calls if "--no-binary llama-cpp-python" in c)
    assert build.endswith(f"--no-cache-dir --no-binary llama-cpp-python {pin}")
    order = [calls.index(build), *(i for i, c in enumerate(calls) if c.endswith(("-e .", "-e .[test]", "-m pytest")))]
    assert len(order) == 4 and order == sorted(order)
    assert "from source" in printed and "5-6 minutes on two cores" in printed


def test_a_second_make_does_nothing_but_open_the_workbook(fake_machine):
    fake_machine.make("test")
    _, calls = fake_machine.make("lab")
    assert [c.partition(" ")[2] for c in calls] == ["-m jupyterlab notebooks/00_start_here.ipynb"]


def test_an_edit_of_pyproject_reinstalls_without_compiling_when_the_version_fits(fake_machine):
    fake_machine.make("lab")
    (fake_machine.folder / "llama_fits").touch()
    newer = os.stat(fake_machine.folder / ".venv/.specnb/lab").st_mtime + 5
    os.utime(fake_machine.folder / "pyproject.toml", (newer, newer))
    printed, calls = fake_machine.make("lab")
    assert not compiled_with(calls) and "keeping" in printed
    assert any(c.endswith("-e .") for c in calls)


def test_a_failed_build_is_tried_again(fake_machine):
    (fake_machine.folder / "fail").touch()
    fake_machine.make("lab", fails=True)
    (fake_machine.folder / "fail").unlink()
    _, calls = fake_machine.make("lab")
    assert compiled_with(calls) == ["-DGGML_NATIVE=OFF"]


@pytest.mark.parametrize(
    ("system", "processor", "expected"),
    [
        ("Linux", "x86_64", "-DGGML_NATIVE=OFF"),
        ("Linux", "aarch64", "unset"),
        ("Darwin", "arm64", "unset"),
        ("Darwin", "x86_64", "unset"),
    ],
)
def test_only_x86_64_outside_macos_gives_up_the_native_build(fake_machine, system, processor, expected):
    fake_machine.is_a(system, processor)
    _, calls = fake_machine.make("lab")
    assert compiled_with(calls) == [expected]


def test_cmake_args_of_the_user_win_and_stay(fake_machine):
    _, calls = fake_machine.make("lab")
    assert compiled_with(calls) == ["-DGGML_NATIVE=OFF"]
    (fake_machine.folder / "llama_fits").touch()
    _, calls = fake_machine.make("lab", CMAKE_ARGS="-DGGML_CUDA=on")
    assert compiled_with(calls) == ["-DGGML_CUDA=on"], "asking for a GPU build rebuilds"
    _, calls = fake_machine.make("lab", CMAKE_ARGS="-DGGML_CUDA=on")
    assert compiled_with(calls) == [], "asking for the build that is there does not"
    _, calls = fake_machine.make("lab")
    assert compiled_with(calls) == [], "and leaving CMAKE_ARGS out keeps it"


def test_a_virtual_environment_whose_python_is_gone_is_made_anew(fake_machine):
    fake_machine.make("lab")
    python = fake_machine.folder / ".venv/bin/python"
    python.unlink()
    python.symlink_to("removed-by-an-upgrade")  # what an upgrade of the system's Python leaves behind
    _, calls = fake_machine.make("lab")
    assert "venv" in calls


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (lambda m: (m.folder / "minor").write_text("9"), "Python 3.10 or newer is needed"),
        (lambda m: (m.folder / "no_venv").touch(), "apt-get install python3-venv"),
    ],
    ids=["old Python", "no venv"],
)
def test_an_unfit_python_is_refused_with_the_way_out(fake_machine, break_it, expected):
    break_it(fake_machine)
    printed, calls = fake_machine.make("lab", fails=True)
    assert expected in printed and not calls


def test_a_missing_python_or_compiler_is_named(fake_machine):
    printed, _ = fake_machine.make("lab", "PYTHON=python-nowhere", fails=True)
    assert "there is no 'python-nowhere' here" in printed
    printed, _ = fake_machine.make("lab", CXX="c++-nowhere", fails=True)
    assert "no C++ compiler 'c++-nowhere'" in printed
