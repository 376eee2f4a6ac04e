"""Checks the machine and the models before a kernel can die of them: ``python -m specnb.doctor``.

Whatever can end a process is tried in a child first (``trial``). Until a child has survived
importing llama.cpp, nothing here imports it.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from .trial import REINSTALL, Trial, try_build, try_model, try_pair

OLDEST_PYTHON = (3, 10)

ROOM_GIB = 1.5
"""Disk for the embedded model in every format and a few layer subsets; memory for the largest, its draft and caches."""

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


def examine(target: str | None = None, draft: str | None = None) -> Report:
    """Looks at Python, packages, processor, memory, disk, and the models; takes some seconds.

    target, draft: what ``models.resolve`` and ``models.resolve_draft`` take. Raises nothing for what it finds.
    """
    return Report(tuple(_examine(target, draft)))


# -- the machine -------------------------------------------------------------------------------


def _examine(target: str | None, draft: str | None) -> Iterator[Finding]:
    yield _python()
    yield from _packages()
    build = try_build()
    yield _finding("llama.cpp", build)
    yield from _processor(build.features)
    if build.ok:
        yield _memory()
        yield _disk()
        yield _quiet()
        yield from _models(target, draft)


def _finding(name: str, trial: Trial) -> Finding:
    return Finding(name, trial.ok, trial.detail, trial.fix)


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
            yield _finding(role, trial)
            if not trial.ok:
                return
            paths.append(path)
    if len(paths) == 2:
        yield _finding("pair", try_pair(*paths))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 when nothing needs fixing, else 1."""
    parser = argparse.ArgumentParser(prog="python -m specnb.doctor", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="?", help="a GGUF file or hub id; the embedded model when left out")
    parser.add_argument("--draft", help="a draft model for it")
    chosen = parser.parse_args(arguments)
    report = examine(chosen.target, chosen.draft)
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
