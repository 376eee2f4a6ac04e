"""Exercises of the notebook on alpha: solving for it, and why the acceptance rate is something else."""

from __future__ import annotations

from .. import theory
from ..records import PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer
from .function_exercise import FunctionExercise

INNER_ALPHAS = (0.1, 0.3, 0.5, 0.69, 0.9)
DRAFT_LENGTHS = (1, 2, 4, 7)


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_solve_alpha(), _implied_acceptance(study), _why())


def _solve_alpha() -> Exercise:
    return FunctionExercise(
        id="03-solve-alpha",
        question="write solve(tokens_per_cycle, k), which returns alpha.",
        why="Tokens per cycle depend on k and alpha does not, so alpha from one run predicts runs not made yet.",
        nudge="Find the alpha whose expected tokens are the tokens per cycle.",
        hints=(
            "More alpha, more tokens: expected_tokens(alpha, k) only grows: one comparison shows the side.",
            "Keep a lower and an upper bound for alpha, 0 and 1; look at the middle; move one bound there; repeat.",
            "60 halvings are more than enough; return the middle of what is left.",
        ),
        truth=theory.solve_alpha,
        arguments=("tokens_per_cycle", "k"),
        cases=tuple((theory.expected_tokens(alpha, k), k) for k in DRAFT_LENGTHS for alpha in INNER_ALPHAS),
        edges=tuple((tokens, k) for k in DRAFT_LENGTHS for tokens in (1.0, k + 1.0)),
        tolerance=1e-3,
        edges_nudge="Nothing kept and everything kept are legal, and each has an alpha.",
        endless_nudge="Does each step make the interval smaller, and does the loop end without an exact hit?",
        put_back=_put_back,
        wrong=(
            WrongAnswer(
                lambda tokens, k: (tokens - 1) / k,
                "that returns (tokens per cycle − 1) / k, the acceptance rate. It counts drafted tokens that were "
                "never tested; alpha is about the tested ones.",
            ),
            WrongAnswer(
                _one_term_short,
                "the sum of expected tokens is one term short: k stands where k + 1 belongs. A cycle can emit the "
                "whole draft and the target's own token.",
            ),
            WrongAnswer(
                lambda tokens, k: 1 - 1 / tokens,
                "that is right for a draft without end: 1 / (1 − alpha) tokens per cycle. This one stops after k.",
            ),
        ),
    )


def _one_term_short(tokens: float, k: int) -> float | None:
    """With k terms, the most tokens is k; what an answer does beyond that differs."""
    return theory.solve_alpha(tokens, k - 1) if tokens < k else None


def _put_back(alpha: float, tokens: float, k: int) -> str:
    if not 0.0 <= alpha <= 1.0:
        return "Alpha is a probability, between 0 and 1."
    gives = theory.expected_tokens(alpha, k)
    return f"Put back into expected_tokens, that gives {gives:.4g} tokens per cycle and not {tokens:.4g}."


def _implied_acceptance(study: PublishedStudy) -> Exercise:
    seen = study.facts["alpha_check"]
    tokens, k = seen["tokens_per_cycle"], seen["k"]
    return NumberExercise(
        id="03-implied-acceptance",
        question=f"{tokens:g} tokens per cycle at k = {k}: which acceptance rate does that imply, as a fraction?",
        why=f"llama.cpp printed {100 * seen['reported_acceptance']:g}% for that run, whose alpha was "
        f"{seen['alpha']:g}: two figures for one drafter.",
        nudge="How many of a cycle's tokens were drafted ones, and how many were drafted in all?",
        hints=(
            "One token of each cycle is the target's own.",
            "The rest was drafted and kept.",
            "Acceptance rate = kept / drafted, and each cycle drafts k.",
        ),
        truth=lambda: (tokens - 1) / k,
        wrong=(
            WrongAnswer(
                lambda: tokens / k,
                "that counts the target's own token as a kept draft. Nobody drafted it.",
            ),
            WrongAnswer(
                lambda: tokens / (k + 1),
                "that is the share of the most tokens a cycle could emit. The target's own token is in it, above and "
                "below the line, and nobody drafted it.",
            ),
            WrongAnswer(
                lambda: theory.solve_alpha(tokens, k),
                "that is alpha, the chance of a tested token. The acceptance rate divides by all drafted ones.",
            ),
        ),
    )


def _why() -> Exercise:
    return ChoiceExercise(
        id="03-why",
        question='which stays nearly the same when k grows: "alpha", "acceptance" or "tokens per cycle"?',
        why="It is a property of drafter, target and text, so it can be carried from one k to another.",
        nudge="Think of the tokens after the first refusal.",
        hints=(
            "Draft 16 tokens where 4 would do: which of the three counts notice the 12 more?",
            "Tokens after the first refusal are drafted, but neither tested nor kept.",
            "Which of the three asks only about tokens that were tested?",
        ),
        truth=lambda: "alpha",
        options=("alpha", "acceptance", "tokens per cycle"),
        diagnoses={
            "acceptance": "it divides by all drafted tokens, and a longer draft has more of them behind the first "
            "refusal, where none can be kept: it falls.",
            "tokens per cycle": "a longer draft can only add tokens to a cycle, each with a smaller chance: it grows, "
            "towards a ceiling.",
        },
    )
