"""The arithmetic, against closed forms, simulation and published measurements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from specnb import theory

# Published by Lei阅读, the M5 Pro article: M5 Pro, Metal, Qwen2.5-7B-Instruct Q4_K_M with a 0.5B draft, greedy.
M5_VERIFY_MS = {
    1: 18.15, 2: 20.93, 3: 28.11, 4: 27.23, 5: 29.01, 6: 37.86, 7: 44.43, 8: 44.77,
    9: 78.98, 12: 79.46, 16: 80.11, 24: 79.15, 32: 79.59,
}  # fmt: skip
M5_DRAFT_MS = 2.817
M5_TARGET_MS = 17.074
M5_PLAIN_MS = 1000 / 57.6
M5_ACCEPTANCE = {1: 0.7143, 2: 0.6163, 3: 0.5200, 4: 0.4565, 5: 0.3818, 7: 0.2946, 11: 0.2100, 16: 0.1498}
# k, tokens per cycle, draft ms per cycle, verify ms, tokens/s recomputed from these rounded inputs.
M5_LEDGER = [
    (1, 1.72, 2.82, 20.93, 72.4),
    (3, 2.57, 8.45, 27.23, 72.0),
    (5, 2.92, 14.09, 37.86, 56.2),
    (7, 3.08, 19.72, 44.77, 47.8),
    (11, 3.33, 30.99, 79.46, 30.1),
    (16, 3.41, 45.08, 81.56, 26.9),
]

# llama-bench tokens/s at N, published in ggml-org/llama.cpp #4624: M3 Max, 7B Q4_0.
M3_MAX_TPS = {1: 63.62, 2: 25.92, 3: 38.87, 4: 51.93, 5: 64.29, 6: 77.4, 7: 89.91, 8: 102.94}
M3_MAX_VERIFY_MS = {n: 1000 * n / tps for n, tps in M3_MAX_TPS.items()}

ALPHAS = [0.0, 0.05, 0.3, 0.5, 0.69, 0.9, 0.99, 0.999999, 1.0]
KS = [1, 2, 3, 5, 8, 16, 64]


# --- tokens -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, *KS])
def test_expected_tokens_is_the_papers_quotient(k):
    for alpha in (0.0, 0.05, 0.3, 0.69, 0.9):
        assert theory.expected_tokens(alpha, k) == pytest.approx((1 - alpha ** (k + 1)) / (1 - alpha), rel=1e-13)


@pytest.mark.parametrize("k", [0, *KS])
def test_expected_tokens_at_its_ends_is_exact(k):
    assert theory.expected_tokens(0.0, k) == 1.0
    assert theory.expected_tokens(1.0, k) == k + 1


def test_expected_tokens_keeps_its_digits_next_to_one():
    # To first order k + 1 - (1 - alpha) k (k + 1) / 2; the quotient is off by 1e-4 here.
    below = 1e-12
    assert theory.expected_tokens(1.0 - below, 8) == pytest.approx(9 - 36 * below, abs=1e-14)


def test_expected_tokens_takes_arrays_and_gives_floats_for_scalars():
    alphas = np.array([[0.0, 0.5], [0.9, 1.0]])
    tokens = theory.expected_tokens(alphas, 3)
    assert tokens.shape == alphas.shape
    assert tokens.tolist() == [[theory.expected_tokens(a, 3) for a in row] for row in alphas.tolist()]
    assert type(theory.expected_tokens(0.5, 3)) is float
    assert type(theory.expected_tokens(np.float64(0.5), np.int64(3))) is float


def test_expected_tokens_agrees_with_simulated_cycles():
    rng = np.random.default_rng(20230)
    cycles = 100_000
    for alpha, k in [(0.3, 2), (0.69, 7), (0.95, 16)]:
        kept_before_refusal = np.cumprod(rng.random((cycles, k)) < alpha, axis=1).sum(axis=1)
        emitted = kept_before_refusal + 1
        standard_error = emitted.std() / math.sqrt(cycles)
        assert abs(emitted.mean() - theory.expected_tokens(alpha, k)) < 4 * standard_error
        shares = np.bincount(emitted, minlength=k + 2)[1:] / cycles
        assert np.abs(shares - theory.tokens_per_cycle_distribution(alpha, k)).max() < 4 * math.sqrt(0.25 / cycles)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("k", [0, *KS])
def test_distribution_sums_to_one_and_has_the_expected_mean(alpha, k):
    probabilities = theory.tokens_per_cycle_distribution(alpha, k)
    assert probabilities.shape == (k + 1,)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities @ np.arange(1, k + 2) == pytest.approx(theory.expected_tokens(alpha, k))


def test_acceptance_rate_falls_with_k_while_alpha_stands_still():
    rates = [theory.acceptance_rate_from_alpha(0.7, k) for k in (1, 2, 4, 8, 16)]
    assert rates[0] == pytest.approx(0.7)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.15


# --- alpha ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("k", KS)
def test_solving_undoes_expecting(alpha, k):
    assert theory.solve_alpha(theory.expected_tokens(alpha, k), k) == pytest.approx(alpha, abs=1e-9)


@pytest.mark.parametrize("k", KS)
def test_the_ends_solve_exactly(k):
    assert theory.solve_alpha(1.0, k) == 0.0
    assert theory.solve_alpha(k + 1, k) == 1.0


@pytest.mark.parametrize("tokens", [0.99, 4.01, 0.0, -1.0, math.inf, math.nan])
def test_impossible_tokens_per_cycle_are_refused_with_the_numbers(tokens):
    with pytest.raises(ValueError, match=f"^{tokens} tokens per cycle.*between 1 and 4"):
        theory.solve_alpha(tokens, 3)
    with pytest.raises(ValueError, match=f"^{tokens} tokens per cycle.*between 1 and 3"):
        theory.solve_alpha_mixed(tokens, [0, 1, 5])


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.69, 1.0])
def test_mixed_is_plain_when_all_lengths_are_equal(alpha, k):
    tokens = theory.expected_tokens(alpha, k)
    assert theory.solve_alpha_mixed(tokens, [k] * 7) == pytest.approx(theory.solve_alpha(tokens, k), abs=1e-10)


def test_mixed_undoes_the_mean_over_lengths_in_any_order():
    lengths = [0, 3, 8, 1, 0, 5, 5, 16]
    for alpha in (0.0, 0.2, 0.69, 0.97, 1.0):
        tokens = sum(theory.expected_tokens(alpha, k) for k in lengths) / len(lengths)
        assert theory.solve_alpha_mixed(tokens, lengths) == pytest.approx(alpha, abs=1e-9)
        assert theory.solve_alpha_mixed(tokens, lengths[::-1]) == theory.solve_alpha_mixed(tokens, lengths)


def test_mixed_takes_a_perfect_run_at_any_count():
    # emitted / cycles is not a round number here; the upper bound must still be reached, not overstepped.
    for cycles in range(1, 200):
        lengths = [7] * cycles + [0, 2]
        assert theory.solve_alpha_mixed((sum(lengths) + len(lengths)) / len(lengths), lengths) == 1.0


@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0]])
def test_without_drafts_alpha_cannot_be_known(lengths):
    with pytest.raises(ValueError, match=f"in {len(lengths)} cycle.*alpha cannot be known"):
        theory.solve_alpha_mixed(1.0, lengths)


def test_solve_alpha_without_a_draft_cannot_be_known():
    with pytest.raises(ValueError, match="alpha cannot be known"):
        theory.solve_alpha(1.0, 0)


@pytest.mark.parametrize(("kept", "tested"), [(0, 5), (5, 5), (1, 2), (47, 132), (3562, 4960)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_interval_is_wilsons(kept, tested, confidence):
    ours = theory.alpha_interval(kept, tested, confidence)
    scipys = binomtest(kept, tested).proportion_ci(confidence, method="wilson")
    assert ours == pytest.approx((scipys.low, scipys.high), abs=1e-12)
    assert 0.0 <= ours[0] <= kept / tested <= ours[1] <= 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 0), "tested=0"), ((3, 2), "kept=3 of tested=2"), ((-1, 2), "kept=-1"), ((1, 2, 1.0), "got 1.0")],
)
def test_interval_refuses_impossible_counts(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.alpha_interval(*arguments)


# --- time -------------------------------------------------------------------------------------


def test_cycle_is_drafts_and_one_pass_over_one_row_more():
    assert theory.cycle_ms(3, 2.0, {4: 30.0}, other_ms=0.5) == 36.5
    assert theory.cycle_ms(0, 2.0, {1: 20.0}) == 20.0


def test_unmeasured_n_is_named_and_never_filled_in():
    with pytest.raises(KeyError, match=r"N=10; measured: 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32"):
        theory.cycle_ms(9, M5_DRAFT_MS, M5_VERIFY_MS)
    with pytest.raises(KeyError, match="N=17"):
        theory.speedup(0.7, 16, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS)
    with pytest.raises(KeyError, match="measured: nothing"):
        theory.cycle_ms(0, 1.0, {})


@pytest.mark.parametrize("gamma", [0.02, 0.165, 0.5])
def test_flat_passes_give_the_papers_speedup(gamma):
    # Leviathan et al. 2023, theorem 3.8, and corollary 3.9: alpha > c means that some k pays, k = 1 among them.
    flat = dict.fromkeys(range(1, 20), 40.0)
    for alpha in (0.1, 0.69, 0.95):
        for k in (1, 4, 9):
            papers = (1 - alpha ** (k + 1)) / ((1 - alpha) * (gamma * k + 1))
            assert theory.speedup(alpha, k, gamma * 40.0, flat, 40.0) == pytest.approx(papers)
        assert (theory.best_k(alpha, gamma * 40.0, flat, 40.0) > 0) == (alpha > gamma)
    assert theory.break_even_alpha(1, gamma * 40.0, flat, 40.0) == pytest.approx(gamma)


def test_speedup_without_a_draft_is_plain_over_t1_and_not_one():
    assert theory.speedup(0.3, 0, 5.0, {1: 20.0}, 16.0) == pytest.approx(0.8)
    assert theory.speedup(0.9, 0, 5.0, {1: 20.0}, 16.0, other_ms=5.0) == pytest.approx(0.64)


def test_speedup_takes_arrays_of_alpha():
    alphas = np.linspace(0.0, 1.0, 5)
    many = theory.speedup(alphas, 3, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS)
    assert many == pytest.approx([theory.speedup(a, 3, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) for a in alphas])
    assert (np.diff(many) > 0).all()


def test_best_k_leaves_it_off_when_nothing_wins():
    assert theory.best_k(0.7, 1.0, M3_MAX_VERIFY_MS, M3_MAX_VERIFY_MS[1]) == 0
    assert theory.best_k(0.9, 1.0, M3_MAX_VERIFY_MS, M3_MAX_VERIFY_MS[1]) == 7  # flat behind its cliff at N=2
    # No better than plain is not better: T(2) twice T(1) with a free, perfect draft.
    assert theory.best_k(1.0, 0.0, {1: 10.0, 2: 20.0}, 10.0) == 0


def test_best_k_only_considers_what_was_measured():
    assert theory.best_k(0.99, 0.1, {1: 10.0, 2: 11.0, 6: 12.0}, 10.0) == 5
    assert theory.best_k(0.99, 0.1, {2: 11.0}, 10.0) == 1
    with pytest.raises(ValueError, match=r"only at N=\[1\]"):
        theory.best_k(0.9, 0.1, {1: 10.0}, 10.0)


def test_break_even_is_where_the_speedup_is_one():
    for k in (1, 2, 3, 4, 5, 7, 8, 11, 15, 31):
        alpha = theory.break_even_alpha(k, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS)
        assert theory.speedup(alpha, k, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) == pytest.approx(1.0)


def test_break_even_at_its_ends():
    assert theory.break_even_alpha(2, 1.0, {3: 8.0}, 10.0) == 0.0  # the cycle costs one plain token
    assert theory.break_even_alpha(2, 1.0, {3: 7.0}, 10.0) == 0.0  # or less
    assert theory.break_even_alpha(2, 1.0, {3: 28.0}, 10.0) == 1.0  # three plain tokens for three tokens
    assert theory.break_even_alpha(2, 1.0, {3: 28.1}, 10.0) is None


def test_no_alpha_rescues_one_draft_on_the_m3_max():
    # ggml-org/llama.cpp #4624: two rows cost almost five times one row.
    assert theory.break_even_alpha(1, 1.0, M3_MAX_VERIFY_MS, M3_MAX_VERIFY_MS[1]) is None
    assert theory.speedup(1.0, 1, 1.0, M3_MAX_VERIFY_MS, M3_MAX_VERIFY_MS[1]) < 1.0
    assert 0.8 < theory.break_even_alpha(7, 1.0, M3_MAX_VERIFY_MS, M3_MAX_VERIFY_MS[1]) < 1.0


# --- the staircase ----------------------------------------------------------------------------


def test_only_a_step_that_no_alpha_pays_back_is_a_cliff():
    slope = {n: 10.0 * n for n in range(2, 12)} | {1: 10.5}
    assert theory.cliffs(slope) == ()
    assert theory.longest_cheap_draft(slope) is None
    assert theory.cliffs({4: 10.0, 5: 14.0}) == (theory.Cliff(4, 5, 10.0, 14.0, 1.4),)
    assert theory.cliffs({4: 10.0, 5: 13.9}) == ()
    assert [cliff.at_n for cliff in theory.cliffs({4: 10.0, 5: 13.9}, ratio=1.3)] == [5]


def test_a_cliff_is_worse_with_the_row_at_every_alpha_and_draft_cost():
    cliff = theory.cliffs(M5_VERIFY_MS)[0]
    for draft_ms in (0.0, 1.0, M5_DRAFT_MS, 30.0):
        for alpha in ALPHAS:
            without = theory.ms_per_token(alpha, cliff.after_n - 1, draft_ms, M5_VERIFY_MS)
            assert theory.ms_per_token(alpha, cliff.at_n - 1, draft_ms, M5_VERIFY_MS) > without


def test_steps_over_unmeasured_n_are_neither_cliffs_nor_dips():
    gaps = {1: 10.0, 3: 90.0, 5: 20.0, 6: 21.0}
    assert theory.cliffs(gaps) == ()
    assert theory.dips(gaps) == ()


def test_the_largest_of_several_cliffs_bounds_the_draft():
    two = {1: 10.0, 2: 11.0, 3: 20.0, 4: 20.0, 5: 21.0, 6: 60.0, 7: 60.0}
    assert [cliff.at_n for cliff in theory.cliffs(two)] == [3, 6]
    assert theory.longest_cheap_draft(two) == 4


def test_the_cliff_at_two_rows_leaves_no_room_for_a_draft():
    assert theory.cliffs(M3_MAX_VERIFY_MS)[0].at_n == 2
    assert theory.longest_cheap_draft(M3_MAX_VERIFY_MS) == 0


def test_marginal_ms_spreads_a_step_over_its_rows():
    assert theory.marginal_ms({2: 12.0, 1: 10.0, 6: 20.0, 7: 19.0}) == {(1, 2): 2.0, (2, 6): 2.0, (6, 7): -1.0}


def test_context_lies_between_measured_curves():
    curves = {1024: {1: 20.0, 4: 26.0}, 0: {1: 10.0, 4: 12.0}, 4096: {1: 50.0}}
    assert theory.verify_ms_at_context(curves, 4, 0) == 12.0
    assert theory.verify_ms_at_context(curves, 4, 256) == pytest.approx(15.5)
    assert theory.verify_ms_at_context(curves, 4, 1024) == 26.0  # the curve without N=4 is not needed here
    assert theory.verify_ms_at_context(curves, 1, 2560) == pytest.approx(35.0)
    with pytest.raises(KeyError, match="N=4; measured: 1"):
        theory.verify_ms_at_context(curves, 4, 1025)
    for beyond in (-1, 4097, math.nan):
        with pytest.raises(ValueError, match=f"{beyond} tokens.*from 0 to 4096 tokens"):
            theory.verify_ms_at_context(curves, 1, beyond)
    with pytest.raises(ValueError, match="at no context length"):
        theory.verify_ms_at_context({}, 1, 0)


# --- refused inputs ---------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-0.01, 1.01, math.nan, math.inf])
def test_alpha_outside_zero_to_one_is_refused(alpha):
    for call in (
        lambda: theory.expected_tokens(alpha, 3),
        lambda: theory.expected_tokens(np.array([0.5, alpha]), 3),
        lambda: theory.tokens_per_cycle_distribution(alpha, 3),
        lambda: theory.acceptance_rate_from_alpha(alpha, 3),
        lambda: theory.speedup(alpha, 3, 1.0, {4: 2.0}, 1.0),
        lambda: theory.best_k(alpha, 1.0, {4: 2.0}, 1.0),
    ):
        with pytest.raises(ValueError, match=f"alpha.*got {alpha}"):
            call()


@pytest.mark.parametrize("k", [-1, 2.5, 3.0, math.nan])
def test_k_must_count(k):
    for call in (
        lambda: theory.expected_tokens(0.5, k),
        lambda: theory.tokens_per_cycle_distribution(0.5, k),
        lambda: theory.solve_alpha(1.5, k),
        lambda: theory.solve_alpha_mixed(1.5, [2, k]),
        lambda: theory.cycle_ms(k, 1.0, {4: 2.0}),
    ):
        with pytest.raises(ValueError, match=f"got {k}"):
            call()


def test_where_a_draft_is_needed_k_zero_is_refused():
    with pytest.raises(ValueError, match="1 or more; got 0"):
        theory.acceptance_rate_from_alpha(0.5, 0)
    with pytest.raises(ValueError, match="1 or more; got 0"):
        theory.break_even_alpha(0, 1.0, {1: 2.0}, 1.0)


@pytest.mark.parametrize("ms", [-0.1, math.nan, math.inf])
def test_impossible_times_are_refused(ms):
    for name, call in {
        "draft_ms": lambda: theory.cycle_ms(3, ms, {4: 2.0}),
        r"T\(4\)": lambda: theory.cycle_ms(3, 1.0, {4: ms}),
        "other_ms": lambda: theory.cycle_ms(3, 1.0, {4: 2.0}, other_ms=ms),
        "plain_ms": lambda: theory.speedup(0.5, 3, 1.0, {4: 2.0}, ms),
        "target_ms": lambda: theory.gamma(1.0, ms),
    }.items():
        with pytest.raises(ValueError, match=f"{name}.*got {ms}"):
            call()


def test_a_target_pass_takes_time():
    for call in (lambda: theory.cycle_ms(3, 0.0, {4: 0.0}), lambda: theory.gamma(0.0, 0.0)):
        with pytest.raises(ValueError, match="above 0"):
            call()
    assert theory.gamma(0.0, 10.0) == 0.0


# --- replays: the M5 Pro article --------------------------------------------------------------


def test_m5_alpha_from_197_tokens_in_64_cycles():
    assert round(theory.solve_alpha(3.078, 7), 3) == 0.692
    assert round(theory.solve_alpha(197 / 64, 7), 3) == 0.692
    implied = theory.acceptance_rate_from_alpha(theory.solve_alpha(3.078, 7), 7)
    assert round(100 * implied, 2) == 29.69


def test_m5_alpha_stands_still_while_the_acceptance_rate_falls_fivefold():
    alphas = [theory.solve_alpha(1 + k * rate, k) for k, rate in M5_ACCEPTANCE.items()]
    assert min(alphas) >= 0.69
    assert max(alphas) <= 0.72
    assert max(M5_ACCEPTANCE.values()) / min(M5_ACCEPTANCE.values()) > 4.7


@pytest.mark.parametrize(("k", "tokens", "draft_ms", "verify_ms", "tokens_per_s"), M5_LEDGER)
def test_m5_ledger(k, tokens, draft_ms, verify_ms, tokens_per_s):
    alpha = theory.solve_alpha(tokens, k)
    predicted = 1000 / theory.ms_per_token(alpha, k, draft_ms / k, {k + 1: verify_ms})
    assert predicted == pytest.approx(tokens_per_s, abs=0.06)


@pytest.mark.parametrize(("k", "tokens", "ms", "times"), [(3, 2.573, 10.58, 1.64), (4, 2.841, 10.21, 1.70)])
def test_m5_free_draft(k, tokens, ms, times):
    alpha = theory.solve_alpha(tokens, k)
    assert round(theory.ms_per_token(alpha, k, 0.0, M5_VERIFY_MS), 2) == ms
    assert round(theory.speedup(alpha, k, 0.0, M5_VERIFY_MS, M5_PLAIN_MS), 2) == times


def test_m5_gamma_is_twice_the_parameter_ratio():
    assert round(theory.gamma(M5_DRAFT_MS, M5_TARGET_MS), 3) == 0.165
    assert round(theory.gamma(M5_DRAFT_MS, M5_TARGET_MS) / (0.63 / 7.62), 2) == 2.00


def test_m5_best_k():
    # At the measured alpha one drafted token is best, as in the article's table of runs.
    assert theory.best_k(0.70, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) == 1
    # A free draft moves it to the end of the cheap stretch before T(6).
    assert theory.best_k(0.70, 0.0, M5_VERIFY_MS, M5_PLAIN_MS) == 4
    assert theory.best_k(0.90, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) == 4
    # Past the cliff the pass is flat to 32: a perfect draft should run to the end of the plateau.
    assert theory.best_k(1.0, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) == 31
    assert theory.best_k(0.2, M5_DRAFT_MS, M5_VERIFY_MS, M5_PLAIN_MS) == 0


def test_m5_staircase():
    assert theory.cliffs(M5_VERIFY_MS) == (theory.Cliff(8, 9, 44.77, 78.98, 78.98 / 44.77),)
    assert round(theory.cliffs(M5_VERIFY_MS)[0].ratio, 2) == 1.76
    assert theory.dips(M5_VERIFY_MS) == (4,)
    assert theory.longest_cheap_draft(M5_VERIFY_MS) == 7
    assert theory.marginal_ms(M5_VERIFY_MS)[8, 9] == pytest.approx(34.21)


# --- replays: counts people published in issue threads -----------------------------------------


def test_lcp24536_two_estimators_of_alpha_agree():
    # ggml-org/llama.cpp #24536: k=3, 87 cycles, 259 drafted, 167 kept; by position 80.5 %, 63.2 %, 48.3 %.
    cycles, kept = 87, 167
    kept_at = [round(cycles * share) for share in (0.805, 0.632, 0.483)]
    assert sum(kept_at) == kept
    tested = cycles + kept_at[0] + kept_at[1]
    alpha = theory.solve_alpha(1 + kept / cycles, 3)
    low, high = theory.alpha_interval(kept, tested)
    assert low < alpha < high
    assert alpha == pytest.approx(kept / tested, abs=0.01)
    # The law of one alpha also tells the shares at each position, to within counting noise.
    assert [alpha, alpha**2, alpha**3] == pytest.approx([0.805, 0.632, 0.483], abs=0.03)


def test_llamadart344_acceptance_says_twice_as_bad_and_alpha_says_the_same():
    # leehack/llamadart #344: k=2: 60 cycles, 119 drafted, 66 kept; k=9: 46 cycles, 398 drafted, 81 kept.
    short, long = theory.solve_alpha(1 + 66 / 60, 2), theory.solve_alpha(1 + 81 / 46, 9)
    assert (66 / 119) / (81 / 398) > 2.7
    assert short == pytest.approx(long, abs=0.03)


def test_vllm24344_cycles_without_a_draft_leave_alpha_alone():
    # vllm-project/vllm #24344, n-gram, k=5: 993 cycles, 4960 drafted, 3562 kept, 821 steps undrafted, 5376 emitted.
    lengths = [5] * 992  # taken as 992 full drafts (4960 tokens) and one empty one
    assert 993 + 3562 + 821 == 5376
    with_plain = theory.solve_alpha_mixed(5376 / (993 + 821), lengths + [0] * 822)
    drafted_only = theory.solve_alpha((992 + 3562) / 992, 5)
    assert with_plain == pytest.approx(drafted_only, abs=1e-9)
    assert theory.acceptance_rate_from_alpha(with_plain, 5) == pytest.approx(3562 / 4960)


def test_higgs161_with_one_drafted_token_alpha_is_the_acceptance_rate():
    # panbanda/higgs #161: k=1, 35 cycles, 35 drafted, 29 kept, 64 emitted.
    alpha = theory.solve_alpha(64 / 35, 1)
    assert alpha == pytest.approx(29 / 35)
    assert theory.acceptance_rate_from_alpha(alpha, 1) == pytest.approx(alpha)


def test_the_speedup_of_the_best_k_is_best_ks_where_one_pays_and_below_one_elsewhere():
    verify_ms = {1: 10.0, 2: 14.0, 3: 15.0, 5: 30.0}
    alphas = np.linspace(0.0, 1.0, 11)
    highest = theory.speedup_of_best_k(alphas, 0.5, verify_ms, 10.0)
    for alpha, found in zip(alphas, highest, strict=True):
        k = theory.best_k(alpha, 0.5, verify_ms, 10.0)
        assert (found > 1.0) == (k > 0)
        if k:
            assert found == pytest.approx(theory.speedup(alpha, k, 0.5, verify_ms, 10.0))
    assert highest[0] == pytest.approx(10.0 / 14.5)
    with pytest.raises(ValueError, match="measured only at N=\\[1\\]"):
        theory.speedup_of_best_k(0.5, 0.5, {1: 10.0}, 10.0)


def test_alpha_bounds_meet_where_all_drafts_are_equally_long():
    for k in (1, 4, 9):
        for alpha in (0.0, 0.3, 0.8, 1.0):
            bounds = theory.alpha_bounds(theory.expected_tokens(alpha, k), float(k), k)
            assert bounds == pytest.approx((alpha, alpha), abs=1e-9)


def test_alpha_bounds_hold_the_alpha_of_any_lengths_with_that_mean():
    chance = np.random.default_rng(5)
    for _ in range(200):
        longest, shortest = int(chance.integers(2, 12)), int(chance.integers(0, 2))
        lengths = chance.integers(shortest, longest + 1, size=40)
        if not lengths.any():
            continue
        alpha = float(chance.uniform(0.05, 0.95))
        tokens = float(np.mean([theory.expected_tokens(alpha, int(length)) for length in lengths]))
        low, high = theory.alpha_bounds(tokens, float(lengths.mean()), longest, shortest=shortest)
        assert low - 1e-9 <= alpha <= high + 1e-9
        assert (low, high) != (0.0, 1.0)


def test_alpha_bounds_are_those_of_the_two_extreme_runs():
    low, _ = theory.alpha_bounds(2.0, 2.5, 5)
    assert low == pytest.approx(theory.solve_alpha_mixed(2.0, (2, 3)))
    _, high = theory.alpha_bounds(2.0, 2.5, 5)
    assert high == pytest.approx(theory.solve_alpha_mixed(2.0, (0, 5)))
    _, high = theory.alpha_bounds(2.0, 3.0, 5, shortest=1)
    assert high == pytest.approx(theory.solve_alpha_mixed(2.0, (1, 5)))


@pytest.mark.parametrize(
    ("tokens", "mean", "longest", "number"),
    [(0.9, 2.0, 4, "0.9"), (3.1, 2.0, 4, "3.1"), (float("nan"), 2.0, 4, "nan"), (1.5, 5.0, 4, "5"), (1.0, 0.0, 4, "0")],
)
def test_alpha_bounds_refuse_impossible_numbers_by_name(tokens, mean, longest, number):
    with pytest.raises(ValueError, match=number):
        theory.alpha_bounds(tokens, mean, longest)


# --- several sequences ------------------------------------------------------------------------------


def test_with_one_sequence_load_is_the_ordinary_speedup():
    for alpha, k, draft_ms, other_ms in ((0.7, 3, 2.0, 0.0), (0.3, 1, 0.0, 1.5)):
        alone = theory.speedup(alpha, k, draft_ms, FLAT_LOAD, FLAT_LOAD[1] + other_ms, other_ms=other_ms)
        assert theory.speedup_under_load(alpha, k, 1, draft_ms, FLAT_LOAD, other_ms=other_ms) == pytest.approx(alone)


def test_a_flat_staircase_is_as_good_under_load_and_a_serial_one_never_is():
    serial = {n: 10.0 * n for n in FLAT_LOAD}
    for sequences in (1, 2, 4, 8):
        assert theory.speedup_under_load(0.5, 1, sequences, 0.0, FLAT_LOAD) == pytest.approx(1.5)
        assert theory.speedup_under_load(0.5, 1, sequences, 0.0, serial) == pytest.approx(0.75)
    # Drafts are made one after the other, so under load they cost what they would alone, times the sequences.
    assert theory.speedup_under_load(1.0, 1, 4, 2.0, FLAT_LOAD) == pytest.approx(2 * 10 / 18)


def test_load_needs_both_passes_and_a_sequence():
    with pytest.raises(KeyError, match="N=6"):
        theory.speedup_under_load(0.5, 1, 3, 0.0, {3: 10.0})
    with pytest.raises(ValueError, match="got 0"):
        theory.speedup_under_load(0.5, 1, 0, 0.0, FLAT_LOAD)


FLAT_LOAD = dict.fromkeys(range(1, 33), 10.0)
