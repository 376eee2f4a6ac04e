"""Exercises of the notebook on the ledger: what a cycle brings, costs, and when it pays."""

from __future__ import annotations

from .. import theory
from ..records import PublishedStudy
from .exercise import Exercise, NumberExercise, WrongAnswer

ALPHA, K = 0.7, 4
BREAK_EVEN_K = 7


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_expected(), _cycle_ms(study), _speed(study), _break_even(study))


def _expected() -> Exercise:
    return NumberExercise(
        id="02-expected",
        question=f"how many tokens does a cycle emit on average at alpha = {ALPHA} and k = {K}?",
        why=f"A draft of {K} tokens falls well short of {K + 1} tokens per cycle, because the first refusal ends it.",
        nudge="Add up the chances that the first, second, ... token of the cycle comes out; the first is certain.",
        hints=(
            "The j-th drafted token is kept only if all before it were kept: what is the probability of that?",
            "The target's own token always comes out, and counts as well.",
            "1 + alpha + alpha² + ... up to alpha to the power k, or the quotient with k + 1 in the exponent.",
        ),
        truth=lambda: theory.expected_tokens(ALPHA, K),
        unit="tokens",
        wrong=(
            WrongAnswer(
                lambda: theory.expected_tokens(ALPHA, K) - 1,
                "those are the kept tokens only. The target adds a token of its own in each cycle.",
            ),
            WrongAnswer(
                lambda: K * ALPHA,
                "k · alpha counts every drafted token as if it were tested, but none after the first refusal is; "
                "and the target's own token is missing. (If you rounded, give a digit more.)",
            ),
            WrongAnswer(
                lambda: K * ALPHA + 1,
                "k · alpha counts every drafted token as if it were tested, but none after the first refusal is.",
            ),
            WrongAnswer(
                lambda: theory.expected_tokens(ALPHA, K - 1),
                "the sum is one term short: k stands in the exponent where the whole cycle belongs, the k drafted "
                "tokens and the target's own.",
            ),
        ),
    )


def _cycle_ms(study: PublishedStudy) -> Exercise:
    draft, verify = study.draft_ms, study.verify_ms
    return NumberExercise(
        id="02-cycle-ms",
        question=f"how many milliseconds is a cycle with k = {K} on the M5 Pro, at {draft:g} ms per drafted token?",
        why="A cycle is paid in full whether its draft is kept or refused.",
        nudge="Two things are paid: the drafted tokens one after the other, and one target pass over all rows.",
        hints=(
            "The drafter runs once for each drafted token.",
            "The target's pass holds the draft and the pending token.",
            "k times the draft time, and the staircase read at N = k + 1.",
        ),
        truth=lambda: theory.cycle_ms(K, draft, verify),
        unit="ms",
        wrong=(
            WrongAnswer(
                lambda: K * draft + verify[K],
                f"that reads the staircase at T({K}). The pending token needs a row, too.",
            ),
            WrongAnswer(
                lambda: draft + verify[K + 1], "the draft is counted once, but the drafter runs for each of its tokens."
            ),
            WrongAnswer(
                lambda: (K + 1) * draft + verify[K + 1],
                "one token too many is drafted. The target's own token costs the drafter nothing.",
            ),
            WrongAnswer(lambda: verify[K + 1], "that is the target's pass alone. Drafting takes time as well."),
        ),
    )


def _speed(study: PublishedStudy) -> Exercise:
    cycle = theory.cycle_ms(K, study.draft_ms, study.verify_ms)
    tokens = theory.expected_tokens(ALPHA, K)
    measured = next(run for run in study.runs if run.k == K)
    return NumberExercise(
        id="02-speed",
        question=f"how many tokens/s does that cycle give at alpha = {ALPHA}?",
        why=f"That is {1000 * tokens / cycle * study.plain_ms / 1000:.2f}× the article's plain decoding; it measured "
        f"{measured.speedup:.2f}× at k = {K}, and the ledger leaves out sampling and rollback.",
        nudge="Divide what the cycle brings by the time it takes, and mind the units.",
        hints=(
            "You have both parts from the two exercises before.",
            "Tokens per cycle / milliseconds per cycle gives tokens per millisecond.",
            "A second has 1000 milliseconds.",
        ),
        truth=lambda: 1000 * tokens / cycle,
        unit="tokens/s",
        wrong=(
            WrongAnswer(
                lambda: cycle / tokens, "that is milliseconds per token. The question is for tokens per second."
            ),
            WrongAnswer(lambda: 1000 / cycle, "that is cycles per second. Each of them brings more than one token."),
            WrongAnswer(
                lambda: tokens / cycle, "that is tokens per millisecond. The question is for tokens per second."
            ),
        ),
    )


def _break_even(study: PublishedStudy) -> Exercise:
    k, draft, verify = BREAK_EVEN_K, study.draft_ms, study.verify_ms
    seen = study.facts["alpha_check"]
    measured = next(run for run in study.runs if run.k == k)
    return NumberExercise(
        id="02-break-even",
        question=f"at which alpha does k = {k} break even on the M5 Pro, against plain decoding at "
        f"{study.plain_tokens_per_second:g} tokens/s?",
        why=f"The article's alpha at k = {k} is {seen['alpha']:g}, on the losing side: "
        f"it measured {measured.speedup:.2f}×.",
        nudge="How many tokens would plain decoding make in the time of one cycle? Find the alpha that makes as many.",
        hints=(
            "Break-even: the cycle emits as many tokens as plain decoding does in the same time.",
            "The plain time per token is 1000 / (tokens/s); the cycle's is known from its k.",
            "theory.solve_alpha(tokens_needed, k) turns tokens per cycle into alpha.",
        ),
        truth=lambda: theory.break_even_alpha(k, draft, verify, study.plain_ms),
        tolerance=0.0005,  # the mistake with T(k) is only 0.2% away
        wrong=(
            WrongAnswer(
                lambda: theory.break_even_alpha(k, draft, verify, verify[1]),
                "that compares with T(1), a benchmark pass over one token. What speculation must beat is plain "
                "generation as it really ran.",
            ),
            WrongAnswer(
                lambda: theory.break_even_alpha(k, draft, verify | {k + 1: verify[k]}, study.plain_ms),
                f"that pays for a pass over {k} rows. The draft fills that many; the pending token needs one more.",
            ),
        ),
    )
