"""Exercises of the notebook on the draft-cost floor: gamma against size, a bandwidth beyond the memory's."""

from __future__ import annotations

from .. import floor
from ..records import PublishedBandwidth, PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer

MIB = 2**20


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_times_dearer(study), _marginal(study), _possible())


def _times_dearer(study: PublishedStudy) -> Exercise:
    target = study.facts["target_parameters"]
    as_filed = study.facts["draft_parameters"] / target
    return NumberExercise(
        id="05-times-dearer",
        question="how many times as dear is the article's draft model as its share of the parameters, each matrix "
        "counted once?",
        why="So much of its time does not follow its parameters; the next sections ask what it follows.",
        nudge="Put the share of the time over the share of the parameters.",
        hints=(
            "Gamma is the share of the time: draft time per token / target time per token.",
            "The share of the parameters: the draft's count with that matrix in it once, over 7.62 billion.",
            "If time were in proportion to parameters, the answer would be 1.",
        ),
        facts=("draft_parameters",),
        truth=lambda draft_parameters: study.gamma / (draft_parameters / target),
        tolerance=0.01,
        wrong=(
            WrongAnswer(
                lambda **_: study.gamma, "that is gamma itself. Compare it with the share that the parameters promise."
            ),
            WrongAnswer(
                lambda **_: study.gamma / as_filed,
                "that takes the article's count, in which one matrix stands twice. Count it once.",
            ),
            WrongAnswer(
                lambda draft_parameters: draft_parameters / target,
                "that is the share of the parameters, without the time.",
            ),
            WrongAnswer(
                lambda draft_parameters: draft_parameters / target / study.gamma,
                "that is upside down: it is how much of gamma the parameters explain.",
            ),
        ),
    )


def _marginal(study: PublishedStudy) -> Exercise:
    small, large = (_row(study, model) for model in ("0.5B Q4_K_M", "0.5B Q8_0"))
    more_mib, more_ms = large.weights_mib - small.weights_mib, large.ms_per_token - small.ms_per_token
    return NumberExercise(
        id="05-marginal",
        question="at how many GB/s would the extra bytes of the Q8_0 draft have come in the extra time?",
        why=f"The memory of that machine delivers {study.facts['nominal_gb_per_s']} GB/s at best, so the time of the "
        "smaller file was not spent on its bytes, and the two-term model's second term means nothing.",
        nudge="Extra bytes over extra time, and mind the units: MiB are 2^20 bytes, GB are 10^9.",
        hints=(
            "Only what differs counts: subtract the sizes, and subtract the times.",
            "One MiB is 1048576 bytes, one GB is 10^9 bytes.",
            "A byte per nanosecond is a GB per second; a millisecond has a million nanoseconds.",
        ),
        truth=lambda: floor.marginal_gb_per_s(
            small.weights_mib * MIB, small.ms_per_token, large.weights_mib * MIB, large.ms_per_token
        ),
        tolerance=0.004,  # the article rounds the time first and prints 811
        unit="GB/s",
        wrong=(
            WrongAnswer(
                lambda: more_mib / more_ms, "that is MiB per millisecond. Turn both into bytes and seconds first."
            ),
            WrongAnswer(
                lambda: more_mib / more_ms / 1.024,
                "that is GiB per second, binary ones. A GB has 10^9 bytes.",
            ),
            WrongAnswer(
                lambda: large.gb_per_s,
                "that is all bytes over all time, the effective bandwidth of the larger file. The question is for "
                "what was added.",
            ),
            WrongAnswer(
                lambda: small.gb_per_s,
                "that is the effective bandwidth of the smaller file. The question is for what was added.",
            ),
        ),
    )


def _row(study: PublishedStudy, model: str) -> PublishedBandwidth:
    return next(row for row in study.bandwidth if row.model == model)


def _possible() -> Exercise:
    return ChoiceExercise(
        id="05-possible",
        question='could this machine\'s memory have delivered the extra bytes in the extra time: "yes" or "no"?',
        why="Where the answer is no, the two-term model is refuted on this machine; where it is yes, this pair alone "
        "does not refute it, and the other predictions decide.",
        nudge="Compare the marginal bandwidth with the ceiling that was measured.",
        hints=(
            "The ceiling is the fastest read that was seen here.",
            "Extra bytes cannot arrive faster than that, unless a cache held them.",
            "A marginal bandwidth above the ceiling, or an infinite one, is impossible.",
        ),
        facts=("marginal", "ceiling"),
        truth=lambda marginal, ceiling: "yes" if marginal <= ceiling else "no",
        options=("yes", "no"),
        diagnoses={
            "yes": "the marginal bandwidth is above the ceiling: no memory here is that fast.",
            "no": "the marginal bandwidth is at or below the ceiling, so the memory could have done it.",
        },
    )
