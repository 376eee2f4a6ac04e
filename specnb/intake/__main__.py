"""The command line of ``intake``: reads a log, JSON or metrics and prints the report."""

from __future__ import annotations

import argparse
import sys

from .. import store
from . import Unreadable, from_address, from_file, is_address


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 with a report, 1 where nothing could be read, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m specnb.intake", description=__doc__)
    parser.add_argument("source", help="a file, - for standard input, or an http(s) address such as .../metrics")
    parser.add_argument("--k", type=int, help="the longest draft allowed, where the tool does not print it")
    parser.add_argument("--plain", type=float, metavar="TOKENS_PER_S", help="speed without speculation, same prompts")
    parser.add_argument("--draft-ms", type=float, metavar="MS", help="time of one drafted token")
    parser.add_argument("--staircase", metavar="FILE", help="a cost curve saved by this package, of the same machine")
    chosen = parser.parse_args(arguments)
    read = from_address if is_address(chosen.source) else from_file
    try:
        curve = None if chosen.staircase is None else store.load_curve(chosen.staircase)
        report = read(
            chosen.source, k=chosen.k, staircase=curve, plain_tokens_per_second=chosen.plain, draft_ms=chosen.draft_ms
        )
        told = str(report)
    except (Unreadable, ValueError, KeyError, FileNotFoundError) as reason:
        print(reason.args[0] if reason.args else reason, file=sys.stderr)
        return 1
    print(told)
    return 0 if report.blocks else 1


if __name__ == "__main__":
    sys.exit(main())
