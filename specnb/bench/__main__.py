"""The command line of the benchmarks: a table for people, and with ``--json`` one object on the last line."""

from __future__ import annotations

import argparse
import json

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


if __name__ == "__main__":
    main()
