"""Numbers as figures write them: three digits, rounded as readers round, one meaning each."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from specnb import messages
from specnb.records import CostCurve, Machine


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (18.15, "18.2"),  # half up; the double lies a little below
        (78.98, "79.0"),
        (0.165, "0.165"),
        (9.996, "10.0"),
        (99.96, "100"),
        (0.09996, "0.100"),
        (1337, "1337"),
        (1336.6, "1337"),
        (-3.456, "-3.46"),
        (0, "0"),
        (1e-7, "0.000000100"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_has_three_significant_digits_and_no_exponent(value, text):
    assert messages.number(value) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (messages.ms(44.77), "44.8 ms"),
        (messages.seconds(1.254), "1.25 s"),
        (messages.tokens_per_second(57.6), "57.6 tokens/s"),
        (messages.speedup(1.157), "1.16×"),
        (messages.speedup(0.49), "0.49×"),
        (messages.speedup(12.345), "12.35×"),
        (messages.percent(0.7143), "71.4%"),
        (messages.percent(0.00075), "0.0750%"),
        (messages.change(0.088), "+8.8%"),
        (messages.change(-0.03), "−3.0%"),
        (messages.tokens(1), "1.00 tokens"),
        (messages.tokens(3.078), "3.08 tokens"),
        (messages.counted(1, "pass", "passes"), "1 pass"),
        (messages.counted(2, "token"), "2 tokens"),
    ],
)
def test_each_unit_is_written_in_one_way(written, text):
    assert written == text


@pytest.mark.parametrize(
    ("recorded", "label"),
    [
        ("", "measured here, now"),
        ("2025-11-29 on Apple M3 Max", "recorded on 2025-11-29, Apple M3 Max"),
        ("published in the M5 Pro article", "recorded: published in the M5 Pro article"),
    ],
)
def test_the_label_says_recorded_or_measured_here(recorded, label):
    assert messages.recorded_label(recorded) == label


def test_a_curve_states_its_conditions():
    curve = CostCurve("c", ((1, 5.0),), 128, 2, Machine("Ryzen 7"), contended=True)
    assert messages.curve_label(curve) == (
        "measured here, now · Ryzen 7 · context 128 tokens · 2 threads · other programs were running"
    )
    recorded = replace(curve, recorded="2025-11-29 on Ryzen 7", context_length=0, threads=None, contended=False)
    assert messages.curve_label(recorded) == "recorded on 2025-11-29, Ryzen 7"
    assert messages.curve_labels([curve, curve]) == messages.curve_label(curve)
    assert messages.curve_label(replace(curve, threads=1, contended=False)).endswith("1 thread")
    assert messages.curve_labels([curve, recorded]) == "1 of 2 measured here, now; the rest recorded"
    assert messages.curve_labels([curve, replace(curve, threads=4)]) == messages.MEASURED_HERE


def test_the_quality_of_a_measurement_is_told_in_sentences():
    good = messages.measurement_quality(23, 0.041, -0.012, contended=False).splitlines()
    assert good == [
        "Each N was timed 23 times; the 95% intervals reach at most 4.10% from the median.",
        "Drift: −1.2% from the first half to the second, too little to matter.",
        "No other program was using the processor to speak of.",
    ]


@pytest.mark.parametrize("drift", [0.08, -0.08])
def test_drift_and_contention_say_to_measure_again(drift):
    _, drifted, contended = messages.measurement_quality(7, 0.2, drift, contended=True).splitlines()
    assert messages.change(drift) in drifted and "measure again" in drifted
    assert "Other programs" in contended and "measure again" in contended


def test_no_name_is_given_twice_or_it_would_mean_the_last_one():
    """All modules of the package are gathered in one namespace."""
    given = Counter(
        name
        for file in sorted(Path(messages.__file__).parent.glob("*.py"))
        for statement in ast.parse(file.read_text(encoding="utf-8")).body
        for name in names_bound_by(statement)
    )
    assert {name for name, times in given.items() if times > 1} == set()


def names_bound_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in stored}
