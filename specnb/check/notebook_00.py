"""Exercises of the first notebook: the counts of one run."""

from __future__ import annotations

from ..records import PublishedStudy, Run
from .exercise import Exercise, NumberExercise, WrongAnswer


def quotient(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def exercises(_study: PublishedStudy) -> tuple[Exercise, ...]:
    return (
        NumberExercise(
            id="00-tokens-per-cycle",
            question="how many tokens came out per target pass in your run?",
            why="Plain decoding gets 1 token per pass, so what lies above 1 is all that speculation can gain you.",
            nudge="Count every token that came out, whoever proposed it, and count how often the target ran.",
            hints=(
                "The costly thing is a target pass. What did the passes bring, all together?",
                "A cycle emits the drafted tokens that were kept and then one of the target's own, unless a kept one "
                "ends the text.",
                "Both counts are in the run: run.emitted and run.target_passes.",
            ),
            facts=("run",),
            truth=lambda run: run.tokens_per_cycle,
            unit="tokens",
            unmeasured="the run has no cycles.",
            wrong=(
                WrongAnswer(
                    lambda run: quotient(run.emitted, run.kept),
                    "that is emitted / kept. A pass is paid for however many drafted tokens it keeps, so the "
                    "number to divide by is not that of kept tokens.",
                ),
                WrongAnswer(
                    lambda run: quotient(run.kept, run.target_passes),
                    "that is kept / passes, and the target's own token is missing: a pass adds one even when "
                    "the whole draft is refused.",
                ),
                WrongAnswer(
                    lambda run: quotient(run.kept, run.drafted),
                    "that is kept / drafted, the acceptance rate: a share of the drafts, and not "
                    "an amount of text per pass.",
                ),
            ),
        ),
        NumberExercise(
            id="00-acceptance",
            question="what is the acceptance rate of your run, as a fraction?",
            why="This is the figure that llama.cpp prints; keep in mind that it counts drafted tokens that "
            "nobody ever looked at.",
            nudge="It is a share between 0 and 1. Which tokens were proposed, and which of those survived?",
            hints=(
                "Only proposed tokens count, above and below the line.",
                "The target's own tokens were never proposed by anyone.",
                "Both counts are in the run: run.kept and run.drafted.",
            ),
            facts=("run",),
            truth=lambda run: run.acceptance_rate,
            unmeasured="nothing was drafted in this run.",
            wrong=(
                WrongAnswer(
                    lambda run: quotient(run.kept, run.tested),
                    "that is kept / tested, which estimates alpha. The acceptance rate also counts the drafted "
                    "tokens after the first refusal, which nobody tested.",
                ),
                WrongAnswer(
                    lambda run: quotient(run.emitted, run.drafted),
                    "that is emitted / drafted. Among the emitted tokens are the target's own, and those were "
                    "never drafted.",
                ),
                WrongAnswer(_per_cent, "the counts are the right ones, but that is per cent: give it as a fraction."),
            ),
        ),
    )


def _per_cent(run: Run) -> float | None:
    share = quotient(run.kept, run.drafted)
    return None if share is None else 100 * share
