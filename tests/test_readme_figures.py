"""What the README says of the benchmarks is what data/benchmarks holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specnb import drafters
from specnb.bench.__main__ import BENCHMARKS, RECORDS

README = " ".join((Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8").split())


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _below(rows: list[dict]) -> list[str]:
    """Tokens of the answers on which the policy stays below the bar: those outside loops first."""
    below = [row for row in rows if row["vs_best"] < 0.97 and row["kind"] != "defeating"]
    return [str(row["tokens"]) for row in sorted(below, key=lambda row: row["loops"])]


def _winners(rows: list[dict], format: str) -> list[dict]:
    """The best drafter's greedy rows on the four kinds that the README names."""
    greedy = [row for row in rows if row["drafter"] != "none" and (row["format"], row["temperature"]) == (format, 0.0)]
    return [
        max((row for row in greedy if row["kind"] == kind), key=lambda row: row["speedup"])
        for kind in ("chat", "code", "rewrite", "extract")
    ]


def _best(rows: list[dict], format: str) -> str:
    chat, code, rewrite, extract = (f"{row['speedup']:.2f}×" for row in _winners(rows, format))
    return f"{chat} on chat, {code} on code, {rewrite} on rewriting and {extract} on extracting"


def _foretold(rows: list[dict]) -> list[float]:
    """Predicted over measured speedup."""
    return [row["predicted"] / row["speedup"] for row in rows if row["predicted"] is not None]


def _met(rows: list[dict]) -> int:
    return sum(abs(ratio - 1) <= 0.1 for ratio in _foretold(rows))


def _plain(rows: list[dict], format: str) -> float:
    return next(
        r["tokens_per_second"] for r in rows if (r["drafter"], r["format"], r["kind"]) == ("none", format, "all")
    )


TOLD: dict[str, Callable[[dict], tuple[str, ...]]] = {
    "ledger": lambda f: (
        f"{len(f['rows'])} settings on three prompts",
        f"{percent(f['median_error'])} in the median from what each cycle kept",
        f"{percent(f['median_error_of_alpha'])} from alpha alone",
        f"{f['beyond']} of them lay beyond 6 %",
    ),
    "drafters": lambda f: (
        f"On {f['prompts']} held-out prompts",
        f"in F32 the best drafter reached {_best(f['rows'], 'F32')}",
        "from {:.2f}× to {:.2f}× on extracting".format(*_winners(f["rows"], "F32")[-1]["speedup_range"]),
        f"in Q4_0, the fastest format, {_best(f['rows'], 'Q4_0')}",
        f"of {len(_foretold(f['rows']))} speedups foretold that way, {_met(f['rows'])} were met within 10 %",
        f"Plain Q4_0 is {_plain(f['rows'], 'Q4_0') / _plain(f['rows'], 'F32'):.1f} times as fast as plain F32",
    ),
    "advise": lambda f: (
        f"{percent(f['time_share'], 0)} of the time",
        f"{f['share_of_best']:.2f} of the speed of the grid's best setting or more",
    ),
    "adaptive": lambda f: (
        f"{f['worst_vs_plain']:.2f} of plain decoding at worst",
        f"{f['together_vs_best_fixed']:.2f} of the speed of the one fixed setting",
        f"{f['together_vs_best_each']:.2f} of that of the best for each",
        f"{('none', 'one', 'two', 'three')[len(_below(f['rows']))]} of the eight stay below 0.97 of their best "
        f"(an answer of {' tokens, and one that falls into a loop, of '.join(_below(f['rows']))} tokens)",
    ),
    "synthetic": lambda f: (
        f"{percent(f['median_error'])} in the median over N and {percent(f['worst_error'])} at worst",
    ),
    "lossless": lambda f: (
        f"{f['combinations']:,} answers",
        f"{f['identical']:,} were the same token by token",
        f"{f['explained']} (all in BF16, which rounds differently",
    ),
    "hostile": lambda f: (f"{f['files']} damaged files", f"{f['refused']} were refused", f"{f['opened']} are usable"),
    "redraw": lambda f: (
        f"{f['median_ms']:.0f} ms for the explorer",
        f"{f['stepper_median_ms']:.0f} ms for the stepper",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_the_readme_tells_what_was_recorded(name):
    figures = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))["figures"]
    for told in TOLD[name](figures):
        assert told in README, f"{name}: the README should say {told!r}"


def test_the_readme_tells_who_was_best():
    """ "On all four a chain, look-up before the EAGLE head"; in Q4_0 "all by look-up"."""
    rows = json.loads((RECORDS / "drafters.json").read_text(encoding="utf-8"))["figures"]["rows"]
    assert {row["drafter"] for row in _winners(rows, "F32")} == {"ngram_simple,eagle"}
    look_ups = {kind.name for kind in drafters.LOOK_UPS}
    assert {row["drafter"] for row in _winners(rows, "Q4_0")} <= look_ups


def test_every_recording_says_when_where_and_how_it_was_made():
    recorded = sorted(RECORDS.glob("*.json"))
    assert {path.stem for path in recorded} >= TOLD.keys()
    for path in recorded:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["schema"] == "specnb/benchmark/1" and record["recorded_on"] and record["machine"]["name"]
        assert record["command"] == f"python -m specnb.bench {path.stem}" and path.stem in BENCHMARKS
