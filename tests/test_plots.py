"""Every figure: drawn from the published M5 Pro numbers, from little data, and described in words."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes

from specnb import cards, floor, messages, plots, render, stepping, store, theory
from specnb.records import (
    PLAIN,
    AcceptanceByRule,
    AdaptiveRun,
    CostCurve,
    Cycle,
    CycleParts,
    Forecast,
    Guess,
    LayerwiseCost,
    LedgerCell,
    LoadRun,
    LoadSweep,
    Machine,
    ModelInfo,
    PassCost,
    Pick,
    PublishedLedgerRow,
    Rounding,
    Run,
    Sampling,
    Setting,
    SharedPass,
    Sweep,
    SweepCosts,
    Trial,
)

# Published by Lei阅读, the M5 Pro article: M5 Pro, Metal, Qwen2.5-7B-Instruct Q4_K_M with a 0.5B draft, greedy.
M5_MS = {
    1: 18.15, 2: 20.93, 3: 28.11, 4: 27.23, 5: 29.01, 6: 37.86, 7: 44.43, 8: 44.77,
    9: 78.98, 12: 79.46, 16: 80.11, 24: 79.15, 32: 79.59,
}  # fmt: skip
M5 = CostCurve(
    "Qwen2.5-7B Q4_K_M on M5 Pro",
    tuple(M5_MS.items()),
    context_length=0,
    threads=None,
    machine=Machine("Apple M5 Pro", backend="Metal"),
    recorded="published in the M5 Pro article by Lei阅读, llama.cpp build 8ed274ef4",
)
CLIFFS, DIPS = theory.cliffs(M5_MS), theory.dips(M5_MS)
PLAIN_MS = 1000 / 57.6
ACCEPTANCE = {1: 0.7143, 2: 0.6163, 3: 0.5200, 4: 0.4565, 5: 0.3818, 7: 0.2946, 11: 0.2100, 16: 0.1498}
MEASURED = [(1, 1.16, (1.12, 1.17)), (2, 1.03, None), (3, 1.13, None), (7, 0.73, None), (11, 0.49, None)]
LEDGER = [
    PublishedLedgerRow(1, 1.72, 2.82, 20.93, 72.6, 66.7),
    PublishedLedgerRow(7, 3.08, 19.72, 44.77, 47.7, 42.3),
    PublishedLedgerRow(16, 3.41, 45.08, 81.56, 27.0, 25.2),
]


PLAIN_PICKS = (Pick("none", 0, False, (("ngram_simple", 0.5), ("eagle", 0.4)), 5.5),) * 3


def adaptive_run(passes: int) -> AdaptiveRun:
    def pick(i: int) -> Pick:
        alphas = (("ngram_simple", 0.5 + 0.4 * np.sin(i / 9) ** 2), ("eagle", 0.6))
        drafter, k = (("none", 0), ("ngram_simple", 4 + i % 5), ("eagle", 2))[i // 3 % 3]
        return Pick(drafter, k, i % 17 == 0 and k == 0, alphas, 10.0)

    return AdaptiveRun(run(passes), tuple(pick(i) for i in range(passes)))


def repeated(fmt: str, slope: float) -> CostCurve:
    """A curve with eight samples of each N, measured here."""
    noise = np.random.default_rng(int(slope * 10))
    samples = [(n, float((10 + slope * n) * noise.lognormal(0, 0.03))) for _ in range(8) for n in range(1, 34)]
    model = ModelInfo("SmolLM2", "llama", fmt, 1, 1, 1, 1, 1, 1)
    return CostCurve(f"SmolLM2 {fmt}", tuple(samples), 128, 2, Machine("Ryzen 7"), model)


def bisection(target: float, k: int, count: int) -> list[tuple[float, float, float, float]]:
    low, high, steps = 0.0, 1.0, []
    for _ in range(count):
        mid = (low + high) / 2
        value = theory.expected_tokens(mid, k)
        steps.append((low, high, mid, value))
        low, high = (mid, high) if value < target else (low, mid)
    return steps


def run(count: int, *, timed: bool = True, k: int = 5) -> Run:
    random = np.random.default_rng(1)
    cycles = []
    for i in range(count):
        drafted = int(random.integers(0, k + 1))
        kept = min(drafted, int(random.integers(0, k + 1)))
        times = (0.003 * drafted, 0.02, 0.001, 0.0) if timed else (0.0,) * 4
        emitted = tuple(range(kept + 1))
        cycles.append(Cycle("ngram", i, tuple(range(drafted)), min(drafted, kept + 1), kept, emitted, None, *times))
    return Run((1,), tuple(cycles), "ngram", k, 0, 0.0, Sampling(), 0.1)


def speedups(draft_ms: float) -> dict[int, float]:
    return {n - 1: theory.speedup(0.69, n - 1, draft_ms, M5_MS, PLAIN_MS) for n in M5_MS if n > 1}


def ledger_cell(drafter: str, k: int, error: float, interval: tuple[float, float] | None = None) -> LedgerCell:
    parts = CycleParts(0.9 * k, 0.4, 5.0 + 2.2 * k, 0.3, 0.15, 0.012, 0.02)
    clocked = CycleParts(draft=0.95 * k + 0.4, verify=5.1 + 2.3 * k, sampling=0.14, bookkeeping=0.04)
    measured = clocked.ms / 1.8
    predicted, of_alpha = (1 + error) * measured, (1 - 2 * error) * measured
    return LedgerCell(drafter, k, "code", 40, 1.8, 0.45, measured, predicted, of_alpha, interval, parts, clocked)


CELLS = [
    ledger_cell("draft_model", 4, -0.013, (0.97, 1.01)),
    ledger_cell("eagle", 2, 0.02, (1.0, 1.04)),
    ledger_cell("ngram_simple", 8, 0.004),
    ledger_cell("layer_skip", 16, -0.05, (0.93, 0.96)),
]


DRAFTERS = {"eagle": (0.48, 0.04), "distilled": (0.35, 0.07), "layer_skip": (0.7, 0.8), "ngram_simple": (0.6, 0.0)}
ALPHAS, GAMMAS = np.linspace(0.0, 1.0, 21), np.linspace(0.0, 1.0, 11)
SPEEDUPS = (1.0 + ALPHAS[:, None]) / (1.2 + GAMMAS)


MINE = repeated("Q4_0", 2.0)
KEPT_BY_POSITION = [(142, 200), (96, 142), (0, 1), (0, 0)]
INTERVALS = [theory.alpha_interval(kept, tested) if tested else None for kept, tested in KEPT_BY_POSITION]
COUNTS, EXPECTED = [58, 46, 26, 70], theory.tokens_per_cycle_distribution(0.69, 3)
ROWS = [(k, rate, theory.solve_alpha(1 + k * rate, k)) for k, rate in ACCEPTANCE.items()]

RATES = {"7B Q4_K_M": 256.0, "0.5B Q4_K_M": 139.1, "0.5B Q8_0": 172.5}
PASSES = tuple(
    PassCost(f"{n} layers, {f}", f, n, 1, bytes_read, (ms, ms))
    for n, f, bytes_read, ms in (
        (10, "Q4_0", 4.8e7, 2.4), (30, "Q4_0", 9e7, 6.1), (10, "Q8_0", 6.7e7, 2.9), (30, "Q8_0", 1.4e8, 7.0)
    )
)  # fmt: skip
TWO_TERMS_SAY = {"10 layers, Q8_0": 3.6, "30 layers, Q8_0": 9.0}
SIZES = {"the article's 0.5B for a 7B": (0.083, 0.165), "10 of 30 layers": (0.48, 0.4), "0.5B for 7B": (0.065, 0.11)}
SHARES = {"135M": floor.Shares(4.2, 1.5, 0.9), "0.5B": floor.Shares(15.0, 1.2, 6.0)}
WHOLE = LayerwiseCost(
    "qwen2-0.5B", "Q4_0", 4, 24, 24, 1, 1, 1,
    tuple((n, 5.0, 20.0 + 6.0 * n + i) for n in (1, 2, 3, 4, 8) for i in range(4)), 16, 2, False,
)  # fmt: skip
PARTLY = LayerwiseCost(
    "qwen2-7B", "Q4_0", 1, 4, 28, 1, 1, 1, tuple((n, 50.0, 80.0 + 30.0 * n + i) for n in (1, 2, 4) for i in (0, 3)),
    16, 2, False,
)  # fmt: skip

# name -> draws, and describes the same data. Published numbers first, then as little as there can be.
RULES = AcceptanceByRule("layer_skip", 48, (0.0, 0.5, 1.0), (0.5, 0.6, 0.7), (0.5, 0.4, 0.3), (0.5, 0.45, 0.4))
ROUNDING = Rounding("Q4_0", 64, 37.0, ((1, 0.0, 0), (8, 0.0, 0), (64, 0.5, 64)), (0.1, 1.5, 3.0))
LAYER_SETS = {"first layers only": [(0.9, 0.5), (0.8, 0.4)], "least missed": [(0.9, 0.8)]}
CARDS = tuple(cards.shelf().cards.values())
SAME_ALPHA = cards.same_alpha(CARDS, 0.7, gamma=0.1)

MANY = cards.costs_of_cards(CARDS[:3]) + cards.costs_of_reports(store.load_field_reports())
VERDICTS = cards.verdicts(MANY, 0.7, 3, gamma=0.15)
UNMEASURED = cards.verdicts(MANY, 1.0, 7)
WORDS = {i: f" token {i}" for i in range(20)}
STEPS, LONG_STEPS = stepping.steps(run(12)), stepping.steps(run(5, k=16))

FIGURES: dict[str, tuple[Callable[..., Axes], Callable[[], str]]] = {
    "machine_cards": (lambda **ax: plots.plot_cards(CARDS, **ax), lambda: plots.describe_cards(CARDS)),
    "same_alpha": (
        lambda **ax: plots.plot_same_alpha(SAME_ALPHA, 0.7, gamma=0.1, **ax),
        lambda: plots.describe_same_alpha(SAME_ALPHA, 0.7, gamma=0.1),
    ),
    "guess": (
        lambda **ax: plots.plot_guess(Guess("01-t8", 2.0, 3.7), **ax),
        lambda: plots.describe_guess(Guess("01-t8", 2.0, 3.7)),
    ),
    "misses": (
        lambda **ax: plots.plot_misses((Guess("01-t8", 2.0, 3.7), Guess("09-load", 1.1, 1.0)), **ax),
        lambda: plots.describe_misses((Guess("01-t8", 2.0, 3.7), Guess("09-load", 1.1, 1.0))),
    ),
    "cost_m5": (
        lambda **ax: plots.plot_cost_curve(M5, cliffs=CLIFFS, dips=DIPS, **ax),
        lambda: plots.describe_cost_curve(M5, CLIFFS, DIPS),
    ),
    "cost_measured": (
        lambda **ax: plots.plot_cost_curve(MINE, **ax),
        lambda: plots.describe_cost_curve(MINE),
    ),
    "cost_relative": (
        lambda **ax: plots.plot_cost_curve([M5, MINE], relative=True, cliffs=CLIFFS, **ax),
        lambda: plots.describe_cost_curve([M5, MINE], relative=True),
    ),
    "cost_one_sample": (
        lambda **ax: plots.plot_cost_curve(CostCurve("one", ((4, 5.0),), 0, None, Machine("m")), **ax),
        lambda: plots.describe_cost_curve(CostCurve("one", ((4, 5.0),), 0, None, Machine("m"))),
    ),
    "formats": (
        lambda **ax: plots.plot_formats([MINE, repeated("F16", 0.9), M5], **ax),
        lambda: plots.describe_formats([MINE, repeated("F16", 0.9), M5]),
    ),
    "effective_bandwidth": (
        lambda **ax: plots.plot_effective_bandwidth(RATES, 307.0, ceiling_name="nominal", recorded="", **ax),
        lambda: plots.describe_effective_bandwidth(RATES, 307.0, ceiling_name="nominal"),
    ),
    "effective_bandwidth_beyond": (
        lambda **ax: plots.plot_effective_bandwidth({"in the cache": 30.0}, 12.0, **ax),
        lambda: plots.describe_effective_bandwidth({"in the cache": 30.0}, 12.0),
    ),
    "two_terms": (
        lambda **ax: plots.plot_two_terms(PASSES, TWO_TERMS_SAY, 20.0, recorded="", **ax),
        lambda: plots.describe_two_terms(PASSES, TWO_TERMS_SAY),
    ),
    "two_terms_one": (
        lambda **ax: plots.plot_two_terms(PASSES[:1], {}, 20.0, **ax),
        lambda: plots.describe_two_terms(PASSES[:1], {}),
    ),
    "gamma_against_size": (
        lambda **ax: plots.plot_gamma_against_size(SIZES, recorded="", **ax),
        lambda: plots.describe_gamma_against_size(SIZES),
    ),
    "time_shares": (
        lambda **ax: plots.plot_time_shares(SHARES, recorded="", **ax),
        lambda: plots.describe_time_shares(SHARES),
    ),
    "shape_staircases": (
        lambda **ax: plots.plot_shape_staircases([WHOLE, PARTLY], recorded="", **ax),
        lambda: plots.describe_shape_staircases([WHOLE, PARTLY]),
    ),
    "machines": (
        lambda **ax: plots.plot_compare_machines(M5, MINE, **ax),
        lambda: plots.describe_compare_machines(M5, MINE),
    ),
    "cycle": (
        lambda **ax: plots.plot_cycle(7, 2.817, 44.77, 1.8, plain=(3.08, PLAIN_MS), recorded=M5.recorded, **ax),
        lambda: plots.describe_cycle(7, 2.817, 44.77, 1.8, plain=(3.08, PLAIN_MS)),
    ),
    "cycle_plain": (lambda **ax: plots.plot_cycle(0, 0.0, 18.15, **ax), lambda: plots.describe_cycle(0, 0.0, 18.15)),
    "ledger": (
        lambda **ax: plots.plot_ledger(LEDGER, plain=57.6, recorded=M5.recorded, **ax),
        lambda: plots.describe_ledger(LEDGER, plain=57.6),
    ),
    "ledger_one": (lambda **ax: plots.plot_ledger(LEDGER[:1], **ax), lambda: plots.describe_ledger(LEDGER[:1])),
    "speedup": (
        lambda **ax: plots.plot_speedup_over_k(
            {"α = 0.69": speedups(2.817), "free drafts": speedups(0.0)}, measured=MEASURED, recorded="", **ax
        ),
        lambda: plots.describe_speedup_over_k({"α = 0.69": speedups(2.817)}, measured=MEASURED),
    ),
    "speedup_empty": (lambda **ax: plots.plot_speedup_over_k({}, **ax), lambda: plots.describe_speedup_over_k({})),
    "speedup_measured": (
        lambda **ax: plots.plot_speedup_over_k({}, measured=[(4, 0.7, None)], **ax),
        lambda: plots.describe_speedup_over_k({}, measured=[(4, 0.7, None)]),
    ),
    "bisection": (
        lambda **ax: plots.plot_alpha_bisection(bisection(3.078, 7, 12), 3.078, 7, theory.expected_tokens, **ax),
        lambda: plots.describe_alpha_bisection(bisection(3.078, 7, 12), 3.078, 7),
    ),
    "bisection_one": (
        lambda **ax: plots.plot_alpha_bisection(bisection(1.5, 1, 1), 1.5, 1, theory.expected_tokens, **ax),
        lambda: plots.describe_alpha_bisection(bisection(1.5, 1, 1), 1.5, 1),
    ),
    "acceptance": (
        lambda **ax: plots.plot_acceptance_and_alpha(ROWS, recorded=M5.recorded, **ax),
        lambda: plots.describe_acceptance_and_alpha(ROWS),
    ),
    "acceptance_one": (
        lambda **ax: plots.plot_acceptance_and_alpha(ROWS[:1], **ax),
        lambda: plots.describe_acceptance_and_alpha(ROWS[:1]),
    ),
    "position": (
        lambda **ax: plots.plot_position_acceptance(KEPT_BY_POSITION, 0.69, intervals=INTERVALS, recorded="", **ax),
        lambda: plots.describe_position_acceptance(KEPT_BY_POSITION, 0.69),
    ),
    "position_untested": (
        lambda **ax: plots.plot_position_acceptance([(0, 0)], **ax),
        lambda: plots.describe_position_acceptance([(0, 0)]),
    ),
    "kept": (
        lambda **ax: plots.plot_kept_distribution(COUNTS, EXPECTED, alpha=0.69, **ax),
        lambda: plots.describe_kept_distribution(COUNTS, EXPECTED),
    ),
    "kept_none": (
        lambda **ax: plots.plot_kept_distribution([0], [1.0], **ax),
        lambda: plots.describe_kept_distribution([0], [1.0]),
    ),
    "frontier": (
        lambda **ax: plots.plot_frontier(DRAFTERS, ALPHAS, GAMMAS, SPEEDUPS, recorded="", **ax),
        lambda: plots.describe_frontier(DRAFTERS),
    ),
    "parts": (
        lambda **ax: plots.plot_cycle_parts(CELLS, recorded="", **ax),
        lambda: plots.describe_cycle_parts(CELLS),
    ),
    "parts_one": (lambda **ax: plots.plot_cycle_parts(CELLS[:1], **ax), lambda: plots.describe_cycle_parts(CELLS[:1])),
    "errors": (
        lambda **ax: plots.plot_ledger_errors(CELLS, recorded="", **ax),
        lambda: plots.describe_ledger_errors(CELLS),
    ),
    "errors_one": (
        lambda **ax: plots.plot_ledger_errors(CELLS[2:3], **ax),
        lambda: plots.describe_ledger_errors(CELLS[2:3]),
    ),
    "load_price": (
        lambda **ax: plots.plot_load_price({1: 1.7, 4: 1.8, 16: 2.8}, {"α = 0.8": 2.95}, k=3, recorded="", **ax),
        lambda: plots.describe_load_price({1: 1.7, 4: 1.8, 16: 2.8}, {"α = 0.8": 2.95}, k=3),
    ),
    "load": (
        lambda **ax: plots.plot_load(SWEEP, {"known text": {1: 1.5, 16: 0.9}}, recorded="", **ax),
        lambda: plots.describe_load(SWEEP, {"known text": {1: 1.5, 16: 0.9}}),
    ),
    "load_unpredicted": (lambda **ax: plots.plot_load(SWEEP, **ax), lambda: plots.describe_load(SWEEP)),
    "temperature": (
        lambda **ax: plots.plot_alpha_by_temperature(BY_TEMPERATURE, recorded="", **ax),
        lambda: plots.describe_alpha_by_temperature(BY_TEMPERATURE),
    ),
    "p_min": (
        lambda **ax: plots.plot_p_min([(0.0, 0.6, 129.8), (0.85, 0.89, 96.1)], recorded="", **ax),
        lambda: plots.describe_p_min([(0.0, 0.6, 129.8), (0.85, 0.89, 96.1)]),
    ),
    "p_min_one": (
        lambda **ax: plots.plot_p_min([(0.0, 0.6, 129.8)], **ax),
        lambda: plots.describe_p_min([(0.0, 0.6, 129.8)]),
    ),
    "flows": (lambda **ax: plots.plot_flows(**ax), plots.describe_flows),
    "layer_search": (
        lambda **ax: plots.plot_layer_search(LAYER_SETS, ALPHAS, GAMMAS, SPEEDUPS, recorded="", **ax),
        lambda: plots.describe_layer_search(LAYER_SETS),
    ),
    "speedup_over_gamma": (
        lambda **ax: plots.plot_speedup_over_gamma([0, 0.5, 1], [1.7, 1, 0.6], {"a": (0.2, 1.1)}, alpha=0.7, k=4, **ax),
        lambda: plots.describe_speedup_over_gamma([0, 0.5, 1], [1.7, 1, 0.6], {"a": (0.2, 1.1)}, alpha=0.7, k=4),
    ),
    "adaptive": (
        lambda **ax: plots.plot_adaptive(adaptive_run(40), recorded="", **ax),
        lambda: plots.describe_adaptive(adaptive_run(40)),
    ),
    "adaptive_all_plain": (
        lambda **ax: plots.plot_adaptive(AdaptiveRun(run(3), PLAIN_PICKS), **ax),
        lambda: plots.describe_adaptive(AdaptiveRun(run(3), PLAIN_PICKS)),
    ),
    "acceptance_by_rule": (
        lambda **ax: plots.plot_acceptance_by_rule(RULES, recorded="", **ax),
        lambda: plots.describe_acceptance_by_rule(RULES),
    ),
    "rule_counts": (
        lambda **ax: plots.plot_rule_counts((0.5, 0.3, 0.2), {"right": (50, 30, 20), "wrong": (10, 80, 10)}, **ax),
        lambda: plots.describe_rule_counts((0.5, 0.3, 0.2), {"right": (50, 30, 20), "wrong": (10, 80, 10)}),
    ),
    "rounding": (
        lambda **ax: plots.plot_rounding([ROUNDING], recorded="", **ax),
        lambda: plots.describe_rounding([ROUNDING]),
    ),
    "sweep": (
        lambda **ax: plots.plot_sweep(TUNING, "layer_skip", "translate", recorded="", **ax),
        lambda: plots.describe_sweep(TUNING, "layer_skip", "translate"),
    ),
    "sweep_one_row": (
        lambda **ax: plots.plot_sweep(TUNING, "ngram_map_k4v", "extract", recorded=M5.recorded, **ax),
        lambda: plots.describe_sweep(TUNING, "ngram_map_k4v", "extract"),
    ),
    "drafters_by_kind": (
        lambda **ax: plots.plot_drafters_by_kind(TUNING, recorded="2025-11-29 on a machine with a long name", **ax),
        lambda: plots.describe_drafters_by_kind(TUNING),
    ),
    "race": (
        lambda **ax: plots.plot_race([run(30), run(20)], recorded="", **ax),
        lambda: plots.describe_race([run(30), run(20)]),
    ),
    "many_machines": (
        lambda **ax: plots.plot_machines(VERDICTS, 0.7, 3, gamma=0.15, **ax),
        lambda: plots.describe_machines(VERDICTS, 0.7, 3, gamma=0.15),
    ),
    "many_machines_unmeasured": (
        lambda **ax: plots.plot_machines(UNMEASURED, 1.0, 7, gamma=0.0, **ax),
        lambda: plots.describe_machines(UNMEASURED, 1.0, 7, gamma=0.0),
    ),
    "step_refused": (
        lambda **ax: plots.plot_step(STEPS[-1], WORDS, recorded="", **ax),
        lambda: plots.describe_step(STEPS[-1], WORDS),
    ),
    "step_begins": (
        lambda **ax: plots.plot_step(STEPS[0], {}, **ax),
        lambda: plots.describe_step(STEPS[0], {}),
    ),
    "step_long": (
        lambda **ax: plots.plot_step(LONG_STEPS[-1], WORDS, **ax),
        lambda: plots.describe_step(LONG_STEPS[-1], WORDS),
    ),
    "timeline": (lambda **ax: plots.plot_run_timeline(run(30), **ax), lambda: plots.describe_run_timeline(run(30))),
    "timeline_long": (
        lambda **ax: plots.plot_run_timeline(run(300), **ax),
        lambda: plots.describe_run_timeline(run(300)),
    ),
    "timeline_untimed": (
        lambda **ax: plots.plot_run_timeline(run(1, timed=False), **ax),
        lambda: plots.describe_run_timeline(run(1, timed=False)),
    ),
}


def load_run(drafter: str, sequences: int, seconds: float) -> LoadRun:
    kept = 0 if drafter == "none" else 2 * sequences
    one = SharedPass(sequences, kept + sequences, kept, kept, kept, kept + sequences, 0.0, seconds, 0.0)
    return LoadRun(sequences, drafter, 2, 60 * sequences, (one, one))


SWEEP = LoadSweep(
    tuple(
        load_run(drafter, sequences, seconds * (1 + repeat / 50))
        for sequences, plain in ((1, 0.02), (16, 0.06))
        for drafter, seconds in (("none", plain), ("known text", plain * 2.0), ("prompt_lookup", plain * 3.5))
        for repeat in range(3)
    )
)
BY_TEMPERATURE = {
    "distilled": [(1.3, 0.3, (0.2, 0.4)), (0.0, 0.6, (0.5, 0.7))],
    "eagle": [(0.0, 0.65, None), (1.3, 0.25, None)],
}


def tuning() -> Sweep:
    """Six kinds; a look-up, and two drafters with a p_min; a measured cell a kind."""
    kinds = ("code", "rewrite", "extract", "translate", "story", "chat")
    settings = [Setting("ngram_map_k4v", k) for k in (1, 4, 16)]
    settings += [Setting(name, k, p) for name in ("draft_model", "layer_skip") for k in (1, 4, 16) for p in (0.0, 0.75)]
    measured = [(PLAIN, 10.0), (settings[1], 3.0), (settings[-1], 40.0)]
    trials = [
        Trial(s.drafter, s.k, s.p_min, kind, "final", 0, 30, 30, 30 * s.k, 0, ms * 30 / 1e3)
        for kind in kinds
        for s, ms in measured
    ]
    forecasts = [
        Forecast(s.drafter, s.k, s.p_min, kind, 10.0 + s.k * i / 8 - 0.4 * s.k, 1.5)
        for i, kind in enumerate(kinds)
        for s in (PLAIN, *settings)
    ]
    return Sweep(
        M5.machine, "a model", "racing", kinds, (PLAIN, *settings), 30, SweepCosts(M5), tuple(trials), 9.0, True,
        forecasts=tuple(forecasts),
    )  # fmt: skip


TUNING = tuning()


def every_figure() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("draw", "describe"), FIGURES.values(), ids=FIGURES)


@every_figure()
@pytest.mark.filterwarnings("error")
def test_every_figure_renders_with_its_axes_named(draw, describe):
    ax = draw()
    assert isinstance(ax, Axes)
    assert render.png(ax).startswith(b"\x89PNG")
    assert ax.get_title(loc="left") and ax.get_xlabel()
    assert ax.get_ylabel() or [tick.get_text() for tick in ax.get_yticklabels()] != [""]
    width, height = render.size_css_px(ax)
    assert width == 720 and 200 <= height <= 480


@every_figure()
def test_every_figure_is_described_in_words(draw, describe):
    text = describe()
    assert len(text) > 25 and text.rstrip().endswith(".")
    assert "nan" not in text.lower() and "None" not in text


@every_figure()
def test_every_figure_draws_into_axes_that_it_is_given(draw, describe):
    with render.lock:
        figure = render.new_figure(10.0, 4.0)
        left, right = figure.subplots(1, 2)
    assert draw(ax=right) is right
    assert right.get_title(loc="left") and not left.has_data()
    assert render.png(figure)


@every_figure()
def test_no_text_leaves_the_figure_or_is_too_small(draw, describe):
    ax = draw()
    render.png(ax)
    figure = ax.figure
    renderer = figure.canvas.get_renderer()
    legend = ax.get_legend()
    texts = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
    texts += [] if legend is None else legend.get_texts()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        texts += [label for place, label in ticks if low <= place <= high]  # matplotlib keeps more than it draws
    for text in texts:
        if not text.get_text().strip() or not text.get_visible():
            continue
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text
        assert text.get_fontsize() >= 9.0, text


def test_every_plot_is_among_the_figures_tested_here():
    tested = {name for draw, _ in FIGURES.values() for name in draw.__code__.co_names}
    assert {name for name in plots.__all__ if name.startswith("plot_")} <= tested


def test_every_plot_has_a_description_that_takes_the_same_record():
    nouns = {name.removeprefix("plot_") for name in plots.__all__ if name.startswith("plot_")}
    assert nouns == {name.removeprefix("describe_") for name in plots.__all__ if name.startswith("describe_")}
    for noun in nouns:
        plotted = inspect.signature(getattr(plots, f"plot_{noun}")).parameters
        described = inspect.signature(getattr(plots, f"describe_{noun}")).parameters
        assert next(iter(plotted)) == next(iter(described)), noun
        assert set(described) <= set(plotted), noun
        assert plotted["ax"].default is None, noun


def test_a_curve_says_what_it_shows_and_where_it_comes_from():
    text = plots.describe_cost_curve(M5, CLIFFS, DIPS)
    assert "18.2 ms at N=1" in text and "44.8 at 8, 79.0 at 9" in text
    assert "Cliff from N=8 to 9: 1.76× the time." in text
    assert "Dips, where one token more is cheaper, at N=4." in text
    assert "published in the M5 Pro article by Lei阅读" in text
    assert "Measured here, now · Ryzen 7 · context 128 tokens" in plots.describe_cost_curve(MINE)


def test_a_long_curve_is_described_by_the_n_that_matter():
    text = plots.describe_cost_curve(MINE, [theory.Cliff(20, 21, 50.0, 52.0, 1.04)])
    assert " at 20," in text and " at 21," in text and " at 32," in text
    assert " at 19," not in text


def test_the_floor_is_told_in_shares_factors_and_misses():
    text = plots.describe_effective_bandwidth(RATES, 307.0, ceiling_name="nominal")
    assert "0.5B Q4_K_M 139 GB/s (45.3%)" in text and "nominal, 307 GB/s" in text
    assert "gamma 0.165, 1.99 times that" in plots.describe_gamma_against_size(SIZES)
    assert "in 7.00 ms, predicted 9.00 ms (+28.6%)" in plots.describe_two_terms(PASSES, TWO_TERMS_SAY)
    assert "1.50 ms fixed" in plots.describe_time_shares(SHARES)


def test_an_extrapolated_staircase_says_so():
    text = plots.describe_shape_staircases([WHOLE, PARTLY])
    assert "qwen2-0.5B Q4_0, all layers timed" in text and "qwen2-7B Q4_0, 4 of 28 layers timed" in text


def test_nothing_and_impossible_sizes_are_refused():
    for empty in (
        lambda: plots.plot_effective_bandwidth({}, 1.0),
        lambda: plots.plot_two_terms([], {}, 1.0),
        lambda: plots.plot_gamma_against_size({}),
        lambda: plots.plot_time_shares({}),
        lambda: plots.plot_shape_staircases([]),
    ):
        with pytest.raises(ValueError, match="nothing to plot"):
            empty()
    with pytest.raises(ValueError, match="above 0; got free"):
        plots.plot_gamma_against_size({"free": (0.1, 0.0)})


def lines_of(ax: Axes) -> list[tuple[float, float]]:
    """(from x, to x) of every line that joins two points of a staircase."""
    segments = (segment for part in ax.collections if hasattr(part, "get_segments") for segment in part.get_segments())
    return [(segment[0][0], segment[1][0]) for segment in segments if segment[0][0] != segment[1][0]]


def test_no_line_crosses_an_n_that_was_not_measured():
    joined = lines_of(plots.plot_cost_curve(M5))
    assert joined == [(n, n + 1) for n in range(1, 9)]
    assert lines_of(plots.plot_speedup_over_k({"": speedups(2.817)}))[-1] == (7, 8)


def test_the_points_are_the_medians_and_nothing_else():
    ax = plots.plot_cost_curve(MINE)
    xs, ys = ax.lines[0].get_data()
    assert dict(zip(xs, ys, strict=True)) == MINE.median_ms


def test_single_samples_have_no_interval_bars_and_repeated_ones_have():
    assert not plots.plot_cost_curve(M5).containers
    assert plots.plot_cost_curve(MINE).containers


def test_cliff_and_dip_are_named_in_the_figure():
    texts = [text.get_text() for text in plots.plot_cost_curve(M5, cliffs=CLIFFS, dips=DIPS).texts]
    assert "cliff 8→9: 1.76×" in texts and "dip at 4" in texts


@pytest.mark.parametrize("recorded", ["", "2025-11-29 on Ryzen 7"])
def test_figures_carry_the_label_of_their_data(recorded):
    ax = plots.plot_ledger(LEDGER, recorded=recorded)
    assert messages.recorded_label(recorded) in [text.get_text() for text in ax.texts]


def test_a_relative_curve_without_t1_says_what_to_measure():
    curve = CostCurve("late start", ((2, 5.0), (3, 6.0)), 0, None, Machine("m"))
    for draw in (lambda: plots.plot_formats([curve]), lambda: plots.describe_compare_machines(M5, curve)):
        with pytest.raises(ValueError, match=r"'late start' lacks \(measured: 2, 3\)"):
            draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.plot_cost_curve([]),
        lambda: plots.plot_ledger([]),
        lambda: plots.plot_ledger_errors([]),
        lambda: plots.plot_alpha_bisection([], 2.0, 3, theory.expected_tokens),
        lambda: plots.plot_acceptance_and_alpha([]),
        lambda: plots.plot_position_acceptance([]),
        lambda: plots.plot_kept_distribution([], []),
        lambda: plots.plot_run_timeline(run(0)),
        lambda: plots.plot_kept_distribution([1, 2], [1.0]),
        lambda: plots.plot_load_price({}, {}, k=3),
        lambda: plots.plot_load(LoadSweep(())),
        lambda: plots.plot_alpha_by_temperature({"distilled": []}),
        lambda: plots.plot_p_min([]),
    ],
)
def test_data_that_cannot_be_plotted_are_refused_in_words(draw):
    with pytest.raises(ValueError, match=r"There is n|must both run"):
        draw()


# --- sliders ----------------------------------------------------------------------------------

CYCLE = {"draft_ms": 2.8, "verify_ms": 44.8, "other_ms": 1.0, "tokens": 3.08, "plain_ms": 17.4}


def test_every_live_figure_moves_and_comes_back():
    speedup = plots.live_speedup_over_k(range(1, 32), measured=MEASURED)
    cycle, tokens = plots.live_cycle(140), plots.live_expected_tokens(theory.expected_tokens)
    cases = (
        (speedup, {"predicted": speedups(2.817), "k": 3}, {"predicted": {}, "k": 3}),
        (speedup, {"predicted": speedups(2.817), "k": 3}, {"predicted": speedups(0.0), "k": 10}),
        (cycle, {"k": 7, **CYCLE}, {"k": 0, **CYCLE}),
        (tokens, {"alpha": 0.69, "k": 7}, {"alpha": 1.0, "k": 16}),
    )
    for figure, here, there in cases:
        first = figure.update(**here)
        assert figure.update(**there) != first
        assert figure.update(**here) == first


def test_the_live_speedup_leaves_gaps_and_says_what_was_not_measured():
    figure = plots.live_speedup_over_k(range(1, 32))
    figure.update(predicted=speedups(2.817), k=9)
    line, readout = figure._moving[0], figure._moving[-1]
    assert np.isnan(dict(zip(*line.get_data(), strict=True))[9])
    assert readout.get_text() == "k=9: N=10 was not measured"
    figure.update(predicted=speedups(2.817), k=1)
    assert readout.get_text() == f"k=1: {messages.speedup(speedups(2.817)[1])}"


def test_figures_are_the_same_from_any_thread_while_a_slider_is_dragged():
    names = ("cost_m5", "formats", "cycle", "ledger", "speedup", "bisection", "acceptance", "timeline")
    expected = {name: render.png(FIGURES[name][0]()) for name in names}
    live = plots.live_expected_tokens(theory.expected_tokens)
    alphas = np.linspace(0.1, 0.9, 160)
    expected_live = [live.update(alpha=alpha, k=7) for alpha in alphas[:5]]

    def draw(name: str) -> list[bool]:
        return [render.png(FIGURES[name][0]()) == expected[name] for _ in range(3)]

    with ThreadPoolExecutor(9) as threads:
        dragged = threads.submit(lambda: [live.update(alpha=alpha, k=7) for alpha in alphas])
        drawn = list(threads.map(draw, names))
        assert all(all(same) for same in drawn)
        assert dragged.result()[:5] == expected_live


# --- the rules --------------------------------------------------------------------------------


def test_the_reader_s_matplotlib_style_changes_nothing():
    draw = FIGURES["speedup"][0]
    plain = render.png(draw())
    with matplotlib.rc_context({"font.size": 20.0, "axes.facecolor": "black", "legend.frameon": True}):
        assert render.png(draw()) == plain


def test_no_figure_needs_pyplot():
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import test_plots
for draw, _ in test_plots.FIGURES.values():
    test_plots.render.png(draw())
test_plots.test_every_live_figure_moves_and_comes_back()
sys.exit("matplotlib.pyplot" in sys.modules)
"""
    tests = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", script, tests], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PACKAGE = Path(plots.__file__).resolve().parent.parent
SPEAKING_CALLS = {
    "set_title", "set_xlabel", "set_ylabel", "text", "annotate", "set_text", "suptitle", "legend", "head", "note",
}  # fmt: skip
SPEAKING_KEYWORDS = {"label", "title", "description", "tooltip", "placeholder", "options", "labels"}


def spoken_literals(source: str) -> Iterator[str]:
    """Words given as literals to calls that put text on a figure or a widget."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        values = [*call.args] if name in SPEAKING_CALLS else []
        values += [keyword.value for keyword in call.keywords if keyword.arg in SPEAKING_KEYWORDS]
        for part in (part for value in values for part in ast.walk(value)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and any(map(str.isalpha, part.value)):
                yield f"line {call.lineno}: {name}: {part.value!r}"


def test_figures_take_their_words_from_messages():
    for file in [*sorted((PACKAGE / "plots").rglob("*.py")), PACKAGE / "render.py"]:
        assert list(spoken_literals(file.read_text(encoding="utf-8"))) == [], file.name


@pytest.mark.parametrize(
    "source",
    ['ax.set_title("Speed")', 'ax.plot(x, label=f"k={k}")', 'ax.text(0, 0, "a" + b)', 'IntSlider(description="k")'],
)
def test_a_literal_word_is_found(source):
    assert len(list(spoken_literals(source))) >= 1


def test_the_frontier_refuses_speedups_that_do_not_fit_their_axes_and_no_drafters():
    with pytest.raises(ValueError, match=r"shape \(11, 21\), but there are 21 alphas and 11 gammas"):
        plots.plot_frontier(DRAFTERS, ALPHAS, GAMMAS, SPEEDUPS.T)
    with pytest.raises(ValueError, match="nothing to plot"):
        plots.plot_frontier({}, ALPHAS, GAMMAS, SPEEDUPS)


@pytest.mark.parametrize("count", [0, 6])
def test_bars_of_no_cell_or_of_too_many_are_refused(count):
    with pytest.raises(ValueError, match=f"Between 1 and 5 cells fit this figure; got {count}"):
        plots.plot_cycle_parts(CELLS[:1] * count)


def test_a_cell_s_bars_end_where_its_parts_and_its_clock_end():
    ax = plots.plot_cycle_parts(CELLS[:1])
    ends = {}
    for bar in ax.patches:
        ends[bar.get_y()] = max(ends.get(bar.get_y(), 0.0), bar.get_x() + bar.get_width())
    upper, lower = (end for end in ends.values() if end > 0)
    assert (upper, lower) == pytest.approx((CELLS[0].predicted.ms, CELLS[0].measured.ms))


def test_a_guess_and_its_truth_are_both_drawn_and_said():
    made = Guess("01-t8", 2.0, 3.7)
    ax = plots.plot_guess(made)
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [3.7, 2.0]
    assert plots.describe_guess(made) == (
        "Your guess is 45.9% too low. T(8) in units of T(1): guessed 2.00×, in truth 3.70×."
    )
    assert "exactly right" in plots.describe_guess(Guess("08-kinds", 2.0, 2.0))
    plots.plot_guess(Guess("07-different", 0.0, 0.0))  # nothing to scale by


def test_misses_are_drawn_in_the_order_of_the_notebooks_with_both_medians():
    made = [Guess("09-load", 1.1, 1.0), Guess("00-speedup", 3.0, 1.0), Guess("07-different", 2.0, 0.0)]
    ax = plots.plot_misses(made)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["00-speedup", "09-load"]
    assert [text.get_text().strip() for text in ax.texts if "%" in text.get_text()] == ["200%", "10.0%"]
    assert "00-speedup +200.0%" in plots.describe_misses(made)
    assert messages.misses_told(made[:1]) == f"1 guess of {len(messages.GUESSED)}, off by 10.0%."
    with pytest.raises(ValueError, match="No guess"):
        plots.plot_misses(made[2:])
