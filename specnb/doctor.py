"""Checks the machine and the models before a kernel can die of them: ``python -m specnb.doctor``.

llama.cpp ends its process when something it relies on does not hold: an instruction the processor
lacks, a damaged file that passes its checks, no memory left. In a notebook that takes the kernel
and everything in it. So whatever can do that is tried in a child process first, and the child's
death is told in words. Until a child has survived importing llama.cpp, nothing here imports it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that ``import specnb`` finds the package in; it may be a checkout that nobody installed."""

OLDEST_PYTHON = (3, 10)

ROOM_GIB = 1.5
"""Disk for the embedded model in every format and a few layer subsets; memory for the largest, its draft and caches."""

SECONDS_PER_GIB = 10.0
"""What a trial may take on top for each GiB of the file: a hard disk reads about 0.1 GiB a second."""

REINSTALL = (
    "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python "
    "llama-cpp-python"
)

CPUINFO = Path("/proc/cpuinfo")

CPUINFO_FLAGS = {
    "SSE3": ("pni",),
    "SSSE3": ("ssse3",),
    "AVX": ("avx",),
    "AVX_VNNI": ("avx_vnni",),
    "AVX2": ("avx2",),
    "F16C": ("f16c",),
    "FMA": ("fma",),
    "BMI2": ("bmi2",),
    "AVX512": ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
    "AVX512_VBMI": ("avx512vbmi",),
    "AVX512_VNNI": ("avx512_vnni",),
    "AVX512_BF16": ("avx512_bf16",),
    "AMX_INT8": ("amx_tile", "amx_int8"),
}
"""What llama.cpp calls a feature (ggml-cpu.cpp, ggml_backend_cpu_get_features), and Linux's flags for it on x86."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. fix: what to do about it; empty where there is nothing to do."""

    name: str
    ok: bool
    detail: str
    fix: str = ""

    def __str__(self) -> str:
        return f"OK  {self.name}: {self.detail}" if self.ok else f"FIX {self.name}: {self.detail} -> {self.fix}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was looked at, one line each as text."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


@dataclass(frozen=True, slots=True)
class Trial:
    """How a child process fared with something that may kill it. detail: what it found, or what it died of."""

    ok: bool
    detail: str
    fix: str = ""
    features: tuple[str, ...] = ()

    def finding(self, name: str) -> Finding:
        return Finding(name, self.ok, self.detail, self.fix)


def examine(target: str | None = None, draft: str | None = None) -> Report:
    """Looks at Python, packages, processor, memory, disk, and the models; takes some seconds.

    target, draft: what ``models.resolve`` and ``models.resolve_draft`` take. Raises nothing for what it finds.
    """
    return Report(tuple(_examine(target, draft)))


def try_model(path: str | Path, timeout_s: float = 60.0) -> Trial:
    """Loads a model in a child process, decodes 1 and 8 tokens there and takes some back.

    timeout_s: seconds allowed, and SECONDS_PER_GIB more for each GiB of the file.
    """
    path = Path(path).absolute()
    size_gib = path.stat().st_size / 2**30 if path.is_file() else 0.0
    return _in_child(("model", str(path)), timeout_s + SECONDS_PER_GIB * size_gib)


def try_pair(target: str | Path, draft: str | Path, timeout_s: float = 60.0) -> Trial:
    """Whether the draft's vocabulary fits the target's, asked in a child process that loads nothing else."""
    return _in_child(("pair", str(Path(target).absolute()), str(Path(draft).absolute())), timeout_s)


def try_build(timeout_s: float = 60.0) -> Trial:
    """Imports the package with llama.cpp in a child process; ``features`` says what llama.cpp was built for."""
    return _in_child(("build",), timeout_s)


def require(path: str | Path) -> None:
    """Raises ``backend.ModelError`` with what happened and what to do when a child cannot use the model."""
    trial = try_model(path)
    if not trial.ok:
        from .backend import ModelError

        raise ModelError(f"{Path(path).name} was tried in a process of its own: {trial.detail} {trial.fix}".rstrip())


# -- the machine -------------------------------------------------------------------------------


def _examine(target: str | None, draft: str | None) -> Iterator[Finding]:
    yield _python()
    yield from _packages()
    build = try_build()
    yield build.finding("llama.cpp")
    yield from _processor(build.features)
    if build.ok:
        yield _memory()
        yield _disk()
        yield _quiet()
        yield from _models(target, draft)


def _python() -> Finding:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding(
        "Python",
        sys.version_info[:2] >= OLDEST_PYTHON,
        platform.python_version(),
        f"make the environment again with Python {oldest} or newer: make lab PYTHON=python{oldest}",
    )


def _packages() -> Iterator[Finding]:
    """One line when every requirement of specnb is met, else one for each that is not."""
    try:
        required = [Requirement(line) for line in metadata.requires("specnb") or ()]
    except metadata.PackageNotFoundError:
        yield Finding(
            "packages",
            False,
            "specnb runs from a folder that was never installed, so nothing says which versions it needs.",
            "pip install -e . in that folder",
        )
        return
    needed = [r for r in required if r.marker is None or r.marker.evaluate({"extra": ""})]
    wrong = [
        (requirement, version)
        for requirement, version in map(_installed, needed)
        if version is None or not requirement.specifier.contains(version, prereleases=True)
    ]
    for requirement, version in wrong:
        found = f"version {version} is outside the tested range" if version else "it is not installed"
        install = f'pip install "{requirement.name}{requirement.specifier}"'
        yield Finding(requirement.name, False, f"{found}; {requirement.specifier} is needed.", install)
    if not wrong:
        yield Finding("packages", True, f"all {len(needed)} are in the tested ranges")


def _installed(requirement: Requirement) -> tuple[Requirement, str | None]:
    try:
        return requirement, metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return requirement, None


def _processor(built_for: Sequence[str]) -> Iterator[Finding]:
    """Only where the system says what the processor has: Linux on x86. Elsewhere the trials have to find out."""
    has = _processor_flags()
    if has is None or not built_for:
        return
    lacking = missing_features(built_for, has)
    if lacking:
        detail = f"llama.cpp was built for {', '.join(lacking)}, which this processor lacks; the kernel would die."
    else:
        detail = f"has all that llama.cpp was built for ({', '.join(f for f in built_for if f in CPUINFO_FLAGS)})"
    yield Finding("processor", not lacking, detail, REINSTALL)


def missing_features(built_for: Sequence[str], flags: AbstractSet[str]) -> tuple[str, ...]:
    """Features of the build (names of CPUINFO_FLAGS, others are no processor features) that the flags do not cover."""
    return tuple(name for name in built_for if not flags.issuperset(CPUINFO_FLAGS.get(name, ())))


def _processor_flags() -> frozenset[str] | None:
    if not CPUINFO.is_file():
        return None
    for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            return frozenset(value.split())
    return None


def _memory() -> Finding:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    fix = "close other programs or other notebooks' kernels"
    return Finding("memory", free >= ROOM_GIB, f"{free:.1f} GiB free, {ROOM_GIB} GiB wanted", fix)


def _disk() -> Finding:
    from .models import cache_folder

    folder = cache_folder()
    kept = sum(file.stat().st_size for file in folder.rglob("*.gguf")) / 2**30
    wanted = max(0.0, ROOM_GIB - kept)
    free = shutil.disk_usage(folder).free / 2**30
    detail = f"{free:.1f} GiB free, {wanted:.1f} GiB wanted for models in other weight formats"
    return Finding("disk", free >= wanted, detail, "free some space, or name a folder on another disk in SPECNB_CACHE")


def _quiet() -> Finding:
    from .machine import busy_elsewhere, usable_cores
    from .measure import CONTENDED_CORES

    busy = busy_elsewhere()
    return Finding(
        "cores",
        busy <= CONTENDED_CORES,
        f"{usable_cores()} to use; other programs keep {busy:.1f} busy",
        "close them before measuring: one busy core can make a pass many times slower",
    )


# -- the models --------------------------------------------------------------------------------


def _models(target: str | None, draft: str | None) -> Iterator[Finding]:
    from . import models
    from .backend import ModelError

    paths: list[Path] = []
    for role, resolve, name, instead in (
        ("target", models.resolve, target, "Leave the target out to use the embedded model."),
        ("draft", models.resolve_draft, draft, "Leave the draft out to use some of the target's own layers."),
    ):
        try:
            path = resolve(name)
        except ModelError as error:
            yield Finding(role, False, str(error), instead)
            return
        if path is not None:
            trial = try_model(path)
            yield trial.finding(role)
            if not trial.ok:
                return
            paths.append(path)
    if len(paths) == 2:
        yield try_pair(*paths).finding("pair")


# -- the child: says before each step what it is about to do ------------------------------------


_IMPORTING = "importing llama.cpp"


def _child(task: str, paths: Sequence[str]) -> None:
    """Runs in the child. One JSON object a line: {"step": ...} before each step, at last {"found": ...} or
    {"error": ...}; a child that dies leaves the step it died in as its last line."""
    _say(step=_IMPORTING)
    from . import backend, measure, models  # noqa: F401 - imported to see whether it can be

    try:
        if task == "build":
            _say(found=backend.build_info(), features=_features(backend.build_info()))
        elif task == "model":
            _say(found=_use(paths[0]))
        else:
            _say(step="reading both vocabularies")
            with (
                backend.Model(paths[0], vocabulary_only=True) as target,
                backend.Model(paths[1], vocabulary_only=True) as draft,
            ):
                models.check_pair(target, draft)
            _say(found="the draft's tokens are the target's")
    except (backend.ModelError, backend.SessionError) as error:
        _say(error=str(error))


def _use(path: str) -> str:
    from .backend import Model, Session

    _say(step="loading the weights")
    with Model(path) as model:
        _say(step="making a context")
        # One thread: two would wait for each other by spinning, up to a minute where something else holds a core.
        with Session(model, threads=1) as session:
            for n in (1, 8):
                _say(step=f"decoding {n} token{'s' * (n > 1)}")
                session.extend([0] * n)
                session.logits(-1)
            _say(step="taking tokens back")
            session.probe_rollback()
        info = model.info
        return (
            f"{info.name} ({info.format}, {info.n_layer} layers, {info.weight_bytes / 2**20:.0f} MiB) "
            "loads, decodes and takes tokens back"
        )


def _features(build_info: str) -> list[str]:
    """``backend.build_info`` ends with the features in parentheses."""
    return build_info[build_info.rfind("(") + 1 :].rstrip(")").split(", ")


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


# -- the parent --------------------------------------------------------------------------------

_FETCH_AGAIN = (
    "Fetch the file again, it may be damaged; if that changes nothing, use another model or another version of "
    "llama-cpp-python."
)

# Names, because not every system has every signal: (what it means, what to do).
_DEATHS = {
    "SIGILL": ("llama.cpp was built for instructions that this processor or virtual machine lacks", REINSTALL),
    "SIGSEGV": ("llama.cpp read memory that is not its own", _FETCH_AGAIN),
    "SIGABRT": ("llama.cpp gave up on one of its own checks", _FETCH_AGAIN),
    "SIGFPE": ("llama.cpp divided by zero", _FETCH_AGAIN),
    "SIGBUS": ("a part of the file could not be read", "Fetch the file again, or copy it to another disk."),
    "SIGKILL": (
        "the system ended it, most likely because memory ran out",
        "Close other programs, or use a smaller model or weight format.",
    ),
}


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "specnb.doctor", "--child", *arguments]


def _in_child(arguments: Sequence[str], timeout_s: float) -> Trial:
    """Runs ``_child`` in a process of its own and puts its end into words. Never raises for how it ends."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")))),
        "GGML_NO_BACKTRACE": "1",  # an abort would otherwise start a debugger, and wait for it
    }
    try:
        # In the package's own folder: with -m, a file in the reader's folder could be imported in a module's place.
        ended = subprocess.run(
            _command(arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            cwd=PACKAGE_ROOT,
            env=environment,
        )
    except subprocess.TimeoutExpired as late:
        return Trial(
            False,
            f"It was not done after {timeout_s:.0f} s, while {_step(late.stdout)}.",
            "Try again when nothing else uses the cores or the disk; if that changes nothing, use a smaller model.",
        )
    last = (_lines(ended.stdout) or [{}])[-1]
    if ended.returncode < 0:
        name = _signal_name(-ended.returncode)
        cause, fix = _DEATHS.get(name, ("something outside ended it", "Try again."))
        return Trial(False, f"It died with {name} while {_step(ended.stdout)}: {cause}.{_complaint(ended.stderr)}", fix)
    if "found" in last:
        return Trial(True, last["found"], features=tuple(last.get("features", ())))
    if "error" in last:
        return Trial(False, last["error"], "Leave the file out to use the embedded model, or name another one.")
    step = _step(ended.stdout)
    fix = REINSTALL if step == _IMPORTING else _FETCH_AGAIN
    return Trial(False, f"It failed while {step} (exit code {ended.returncode}).{_complaint(ended.stderr)}", fix)


def _lines(output: bytes | None) -> list[dict[str, object]]:
    """The child's whole JSON lines; what native code may have printed between them is left out."""
    found = []
    for line in (output or b"").decode("utf-8", "replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _step(output: bytes | None) -> str:
    return next((str(line["step"]) for line in reversed(_lines(output)) if "step" in line), "starting Python")


def _complaint(errors: bytes) -> str:
    """The line in which llama.cpp says what did not hold, else the last one; as a sentence, or nothing."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    said = next((line for line in lines if "GGML_ASSERT" in line), lines[-1] if lines else "")
    return f" It said: {said}" if said else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 when nothing needs fixing, else 1."""
    parser = argparse.ArgumentParser(prog="python -m specnb.doctor", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="?", help="a GGUF file or hub id; the embedded model when left out")
    parser.add_argument("--draft", help="a draft model for it")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        _child(chosen.child[0], chosen.child[1:])
        return 0
    report = examine(chosen.target, chosen.draft)
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
