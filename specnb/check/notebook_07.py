"""Exercises of the notebook on equal texts: the accept loop, the sampler's state, the papers' rule, the worst case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from .. import theory, verify
from ..records import PublishedStudy
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer
from .rule_exercise import DistributionExercise, Mistake, TokensExercise

P_TARGET, P_DRAFT = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3)
PAIRS = (((0.35, 0.3, 0.25, 0.1), (0.1, 0.2, 0.3, 0.4)), ((0.05, 0.15, 0.3, 0.5), (0.4, 0.3, 0.2, 0.1)))
WORST_K = 4


def exercises(study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_accept_loop(), _state(), _sums(), _rejection(), _worst(study))


def _accept_loop() -> Exercise:
    tokens = (1, 2)
    return TokensExercise(
        id="07-accept-loop",
        question="write emitted(drafted, own), which returns the tokens of one cycle as a list.",
        why="Whatever is emitted is the target's own choice, so the drafter can change the number of tokens in a cycle "
        "and nothing else.",
        nudge="Walk along both lists until they differ; what does the target say where the walk ends?",
        hints=(
            "own[i] is what the target says after the first i drafted tokens; own is one longer than drafted.",
            "As long as drafted[i] == own[i], emit it and go on.",
            "Where they differ, emit the target's token and stop. If they never differ, own has one token left.",
        ),
        truth=lambda drafted, own: verify.exact_match(drafted, own.__getitem__).emitted,
        arguments=("drafted", "own"),
        cases=tuple(
            (drafted, own) for n in range(4) for drafted in product(tokens, repeat=n) for own in _answers(n, tokens)
        ),
        wrong=(
            Mistake(
                lambda drafted, own: verify.exact_match(drafted, own.__getitem__).emitted[: len(drafted)],
                "when the whole draft is kept, the target's last row holds one more token, its bonus: the pass has "
                "already paid for it.",
            ),
            Mistake(
                lambda drafted, own: drafted[: _agreeing(drafted, own)],
                "that emits the kept tokens only. The target's own token is known as well, at the refusal or behind "
                "the draft; without it a cycle that keeps nothing would emit nothing, for ever.",
            ),
            Mistake(
                lambda drafted, own: (
                    (*drafted[: _agreeing(drafted, own) + 1], *own[len(drafted) :])
                    if _agreeing(drafted, own) == len(drafted)
                    else drafted[: _agreeing(drafted, own) + 1]
                ),
                "at the refusal it emits the drafted token. That is the one the target did not choose.",
            ),
            Mistake(
                lambda drafted, own: own,
                "rows behind a refusal were computed after a token that is not in the text: what they say is no "
                "continuation of it.",
            ),
            Mistake(
                lambda drafted, own: tuple(d for d, o in zip(drafted, own, strict=False) if d == o) + own[-1:],
                "it goes on comparing behind a refusal. An agreement there is luck: the target was looking at another "
                "text.",
            ),
        ),
    )


def _answers(n: int, tokens: Sequence[int]) -> list[tuple[int, ...]]:
    """What the target may say on n + 1 rows; the last one is a token of its own, to tell bonus from draft."""
    return [(*own, 9) for own in product(tokens, repeat=n)]


def _agreeing(drafted: Sequence[int], own: Sequence[int]) -> int:
    return next((i for i, token in enumerate(drafted) if token != own[i]), len(drafted))


def _state() -> Exercise:
    return ChoiceExercise(
        id="07-state",
        question='which tokens may move the sampler on (its random numbers, its penalties): "drafted", "tested", '
        '"kept" or "emitted"?',
        why="Plain decoding moves it on once a token of the text, and so must speculation: then the same seed gives "
        "the same text, at any k.",
        nudge="Compare with plain decoding: which of these counts is the same in both?",
        hints=(
            "Plain decoding draws one random number for each token of the text.",
            "A refused token is not in the text; the token that stands in its place is.",
            "Which of the four sets is exactly the text?",
        ),
        truth=lambda: "emitted",
        options=("drafted", "tested", "kept", "emitted"),
        diagnoses={
            "drafted": "then a longer draft would use up more random numbers for the same text, and penalties would "
            "count words that were never said.",
            "tested": "close: there is one draw a tested token. But a draft that is kept whole is followed by a bonus, "
            "which was never a tested token and is drawn all the same.",
            "kept": "the token at a refusal is the target's own draw: it used up a random number, and it stands in the "
            "text.",
        },
    )


def _sums() -> Exercise:
    p_target, p_draft = np.array(P_TARGET), np.array(P_DRAFT)
    return NumberExercise(
        id="07-sums",
        question=f"p_target = {P_TARGET}, p_draft = {P_DRAFT}, the draft is drawn from p_draft: how often does "
        "rejection sampling keep it?",
        why="The overlap of two distributions is the most that any rule can keep without changing the text's "
        "distribution.",
        nudge="For each token: how much probability do the two have in common?",
        hints=(
            "Token x is drafted with p_draft(x) and then kept with min(1, p_target(x) / p_draft(x)).",
            "Multiply the two: that is min(p_target(x), p_draft(x)).",
            "Add it up over the three tokens.",
        ),
        truth=lambda: float(verify.acceptance_of_rejection(p_target, p_draft)),
        wrong=(
            WrongAnswer(
                lambda: float(verify.acceptance_of_match(p_target, p_draft)),
                "that is the sum of the products: how often two independent draws agree, which is exact match.",
            ),
            WrongAnswer(
                lambda: float(verify.acceptance_of_greedy(p_target, p_draft)),
                "that is what a greedy draft gets: p_target of the drafter's best token. This draft is drawn.",
            ),
            WrongAnswer(
                lambda: float(np.minimum(1.0, p_target / p_draft).mean()),
                "that is the mean of the ratios over tokens. Tokens are not drafted equally often: weigh each with "
                "p_draft.",
            ),
        ),
    )


def _rejection() -> Exercise:
    return DistributionExercise(
        id="07-rejection",
        question="write verified(token, p_target, p_draft, random), which returns the token to emit: the drafted one "
        "or another.",
        why="The drafter now has a say in which tokens come, and still none in how often each of them comes.",
        nudge="Where the draft proposes a token too often, keep it less often; what it proposes too seldom has to come "
        "from the refusals.",
        hints=(
            "random.random() is below x with probability x, so one comparison keeps a token as often as the rule says.",
            "After a refusal, draw from what is left of p_target where it is larger than p_draft.",
            "np.maximum(0, differences) sets the negative ones to 0; random.choice wants probabilities that sum to 1.",
        ),
        pairs=PAIRS,
        calls=4000,
        as_seldom_as_match="the tokens follow p_target, but drafted ones are kept no more often than two independent "
        "draws agree. That is exact match: no mistake in the text, and none of the gain.",
        wrong=(
            Mistake(
                lambda p_target, p_draft: (
                    np.minimum(p_target, p_draft) + (1 - np.minimum(p_target, p_draft).sum()) * p_target
                ),
                "after a refusal it draws from all of p_target. Tokens that the draft proposes often enough come "
                "twice then: once kept, once more here. Draw from what is left over.",
            ),
            Mistake(
                lambda p_target, p_draft: p_draft,
                "it emits every drafted token, so the text is the drafter's.",
            ),
            Mistake(
                lambda p_target, p_draft: _kept_or_left(p_draft * p_target, p_target, p_draft),
                "it keeps a drafted token with p_target of it. That is right for a greedy draft; one that was drawn "
                "has already been thinned by p_draft, so divide by that.",
            ),
            Mistake(
                lambda p_target, p_draft: _kept_or_left(p_draft * np.minimum(1, p_draft / p_target), p_target, p_draft),
                "the ratio is upside down: what the target likes more than the draft is now refused.",
            ),
            Mistake(
                lambda p_target, p_draft: (
                    np.minimum(p_target, p_draft) + (1 - np.minimum(p_target, p_draft).sum()) * p_draft
                ),
                "after a refusal it draws from p_draft, where the target has the last word.",
            ),
        ),
    )


def _kept_or_left(kept: np.ndarray, p_target: np.ndarray, p_draft: np.ndarray) -> np.ndarray:
    """The distribution emitted where each token is drafted and kept so often, and the rest drawn from what is left."""
    return kept + (1 - kept.sum()) * verify.residual(p_target, p_draft)


def _worst(study: PublishedStudy) -> Exercise:
    verify_ms: Mapping[int, float] = study.verify_ms
    draft_ms, plain_ms = study.draft_ms, study.plain_ms
    return NumberExercise(
        id="07-worst",
        question=f"on the M5 Pro, with k = {WORST_K}: if the target never keeps anything, how many times as fast as "
        "plain decoding is it?",
        why="The worst case is bounded: a cycle always emits one token, so speculation can cost time, but never more "
        "than one cycle a token.",
        nudge="What does a cycle cost, and how many tokens does it emit when nothing is kept?",
        hints=(
            "Nothing kept is alpha = 0: every cycle emits the target's own token and no other.",
            f"A cycle drafts {WORST_K} tokens and makes one pass over {WORST_K + 1} rows.",
            "Divide plain decoding's time per token by the cycle's.",
        ),
        truth=lambda: theory.speedup(0.0, WORST_K, draft_ms, verify_ms, plain_ms),
        wrong=(
            WrongAnswer(
                lambda: theory.speedup(0.0, WORST_K, 0.0, verify_ms, plain_ms),
                "that leaves out the drafts. They are paid for, kept or not.",
            ),
            WrongAnswer(
                lambda: theory.cycle_ms(WORST_K, draft_ms, verify_ms) / plain_ms,
                "that is how many times as *slow*: turn it over.",
            ),
            WrongAnswer(
                lambda: 0.0,
                "a cycle that keeps nothing still emits one token, the target's own, so it is never 0.",
            ),
            WrongAnswer(
                lambda: 1.0,
                "it would be 1 if drafts were free and a pass over several rows cost what a pass over one does.",
            ),
        ),
    )
