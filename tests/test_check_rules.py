"""Exercises whose answer is a rule: right ones pass however they are written, known mistakes get their diagnosis."""

from __future__ import annotations

import numpy as np
import pytest

from specnb.check import check, exercises


def accepts(drafted, own):
    out = []
    for i, token in enumerate(drafted):
        out.append(own[i])
        if own[i] != token:
            return out
    return [*out, own[-1]]


def shorter(drafted, own):
    n = next((i for i in range(len(drafted)) if drafted[i] != own[i]), len(drafted))
    return own[: n + 1]


def without_bonus(drafted, own):
    return accepts(drafted, own)[: len(drafted)]


def kept_only(drafted, own):
    return accepts(drafted, own)[:-1]


def drafted_at_refusal(drafted, own):
    out = accepts(drafted, own)
    return out if len(out) > len(drafted) else drafted[: len(out)]


def all_rows(drafted, own):
    return own


def goes_on(drafted, own):
    return [d for d, o in zip(drafted, own, strict=False) if d == o] + [own[-1]]


@pytest.mark.parametrize(
    "answer", [accepts, shorter, lambda d, o: tuple(accepts(d, o)), lambda d, o: np.array(shorter(d, o))]
)
def test_any_right_accept_loop_passes(answer):
    assert check("07-accept-loop", answer).status == "right"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (without_bonus, "its bonus"),
        (kept_only, "kept tokens only"),
        (drafted_at_refusal, "the drafted token"),
        (all_rows, "Rows behind a refusal".lower()),
        (goes_on, "goes on comparing"),
    ],
)
def test_each_mistake_of_the_accept_loop_gets_its_diagnosis(answer, words):
    verdict = check("07-accept-loop", answer)
    assert verdict.status == "diagnosed" and words in verdict.message, verdict


def test_another_mistake_of_the_accept_loop_is_shown_a_case():
    verdict = check("07-accept-loop", lambda drafted, own: [*own, 3])
    assert verdict.status == "not it" and "for drafted = [] and own = [9] it returns [9, 3]" in verdict.message
    assert "whole number" in check("07-accept-loop", lambda *_: [1.5]).message
    assert "list of tokens" in check("07-accept-loop", lambda *_: 7).message


def test_an_answer_that_changes_its_arguments_is_judged_by_what_it_returns():
    def destructive(drafted, own):
        out = accepts(list(drafted), list(own))
        drafted.clear()
        own.clear()
        return out

    assert check("07-accept-loop", destructive).status == "right"


# --- rejection sampling -----------------------------------------------------------------------


def drawn(p, random):
    return random.choice(len(p), p=p / p.sum())


def rejection(token, p_target, p_draft, random):
    if random.random() < p_target[token] / p_draft[token]:
        return token
    return drawn(np.maximum(0, p_target - p_draft), random)


def by_hand(token, p_target, p_draft, random):
    """The same with uniform numbers only."""
    if random.random() * p_draft[token] < p_target[token]:
        return token
    left = [max(0.0, t - d) for t, d in zip(p_target, p_draft, strict=True)]
    at = random.random() * sum(left)
    for i, each in enumerate(left):
        at -= each
        if at < 0:
            return i
    return len(left) - 1


@pytest.mark.parametrize("answer", [rejection, by_hand])
def test_any_right_rejection_sampling_passes(answer):
    verdict = check("07-rejection", answer)
    assert verdict.status == "right", verdict


def ratio(token, p_target, p_draft, random, keep, otherwise):
    return token if random.random() < keep(p_target[token], p_draft[token]) else drawn(otherwise, random)


MISTAKES = [
    (lambda t, p, d, r: ratio(t, p, d, r, lambda a, b: a / b, p), "from all of p_target"),
    (lambda t, p, d, r: t, "the drafter's"),
    (lambda t, p, d, r: ratio(t, p, d, r, lambda a, b: a, np.maximum(0, p - d)), "divide by that"),
    (lambda t, p, d, r: ratio(t, p, d, r, lambda a, b: b / a, np.maximum(0, p - d)), "upside down"),
    (lambda t, p, d, r: ratio(t, p, d, r, lambda a, b: a / b, d), "it draws from p_draft"),
    (lambda t, p, d, r: drawn(p, r), "That is exact match"),
]


@pytest.mark.parametrize(("answer", "words"), MISTAKES)
def test_each_mistake_of_rejection_sampling_gets_its_diagnosis(answer, words):
    verdict = check("07-rejection", answer)
    assert verdict.status == "diagnosed" and words in verdict.message, verdict
    assert verdict.message.count(" Or: ") == 0, "one mistake, one diagnosis"


def test_other_wrong_rules_fail_by_chance_or_by_kind():
    likely = check("07-rejection", lambda t, p, d, r: t if p[t] > 0.25 else drawn(p, r))
    assert likely.status == "not it" and "do not follow p_target" in likely.message
    assert "no token of the 4" in check("07-rejection", lambda *_: 17).message
    assert "raises ZeroDivisionError" in check("07-rejection", lambda *_: 1 / 0).message


@pytest.mark.parametrize("exercise_id", ["07-accept-loop", "07-rejection"])
def test_a_function_that_nobody_wrote_yet_is_unanswered(exercise_id):
    def unwritten(*_):
        raise NotImplementedError

    for answer in (unwritten, lambda *_: None):
        verdict = check(exercise_id, answer)
        assert verdict.status == "unanswered" and exercises()[exercise_id].question in verdict.message
    assert "without brackets" in check(exercise_id, 3).message
