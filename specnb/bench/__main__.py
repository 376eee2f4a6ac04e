"""The command line of the benchmarks: a table for people, and with ``--json`` one object on the last line.

With SPECNB_RECORD=1 the figures also go into data/benchmarks, with the day, the command and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from datetime import date

from .. import backend, machine, store
from . import adaptive, advise, curve, drafters, hostile, ledger, lossless, overhead, redraw, synthetic

BENCHMARKS = {
    "adaptive": adaptive,
    "advise": advise,
    "curve": curve,
    "drafters": drafters,
    "hostile": hostile,
    "ledger": ledger,
    "lossless": lossless,
    "overhead": overhead,
    "redraw": redraw,
    "synthetic": synthetic,
}
"""Each module has ``run(quick) -> figures`` (for JSON) and ``table(figures) -> str``; its docstring is the help."""

RECORDS = store.DATA / "benchmarks"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m specnb.bench", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name, module in BENCHMARKS.items():
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0], description=module.__doc__)
        command.add_argument("--quick", action="store_true", help="end within 50 s on two cores")
        command.add_argument(
            "--json", action="store_true", help="print the figures as one JSON object on the last line"
        )
    chosen = parser.parse_args(arguments)
    module = BENCHMARKS[chosen.name]
    figures = module.run(quick=chosen.quick)
    print(module.table(figures))
    if chosen.json:
        print(json.dumps(figures, allow_nan=False))
    if os.environ.get("SPECNB_RECORD") == "1" and not chosen.quick:
        record(chosen.name, figures)


def record(name: str, figures: dict[str, object]) -> None:
    """Keeps the figures of a benchmark in data/benchmarks, in place of those kept before."""
    RECORDS.mkdir(exist_ok=True)
    here = machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())
    document = {
        "schema": "specnb/benchmark/1",
        "recorded_on": date.today().isoformat(),
        "command": f"python -m specnb.bench {name}",
        "machine": asdict(here),
        "figures": _shortened(figures),
    }
    (RECORDS / f"{name}.json").write_text(_lines(document) + "\n", encoding="utf-8")


def _lines(value: object, depth: int = 0) -> str:
    """JSON with a line for each figure and each row of a table."""
    if isinstance(value, dict) and depth < 2:
        return (
            "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(each, depth + 1)}" for key, each in value.items()) + "\n}"
        )
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(each, allow_nan=False) for each in value) + "\n]"
    return json.dumps(value, allow_nan=False)


def _shortened(figures: object) -> object:
    """Floats with six significant digits, as in all recordings."""
    if isinstance(figures, dict):
        return {key: _shortened(each) for key, each in figures.items()}
    if isinstance(figures, (list, tuple)):
        return [_shortened(each) for each in figures]
    return float(f"{figures:.6g}") if isinstance(figures, float) else figures


if __name__ == "__main__":
    main()
