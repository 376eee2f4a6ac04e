"""The figure of a step: what it says in cells, titles and words, and that a live one shows the same."""

from __future__ import annotations

import pytest

from specnb import messages, plots, render, stepping
from specnb.records import Cycle, Run, Sampling
from specnb.stepping import Phase, Step

PROMPT = (1, 2, 3, 4)
TEXTS = {1: "<|im_start|>", 2: "assistant", 3: "\n", 4: "The", 10: " cat", 11: " sat", 12: " down", 50: " slept"}
CYCLES = (
    Cycle("draft_model", 3, (10, 11, 12), 2, 1, (10, 50), (0.996, 0.51, 0.6)),
    Cycle("draft_model", 5, (10, 11), 2, 2, (10, 11, 12), (0.9, 0.8)),
)
STEPS = stepping.steps(Run(PROMPT, CYCLES, "draft_model", 3, 0, 0.5, Sampling(), 0.0))


def at(phase: Phase, number: int = 1, tested: int | None = None) -> Step:
    return next(
        each for each in STEPS if each.phase is phase and each.round.number == number and tested in (None, each.tested)
    )


def texts_in(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_visible() and text.get_text()]


@pytest.mark.parametrize(
    ("step", "title"),
    [
        (at(Phase.START), "The last token of the text is pending"),
        (at(Phase.DRAFT), "Draft: token 1 is “␣cat”"),
        (at(Phase.STOP, 2), "The next token is less sure than p_min = 0.5"),
        (at(Phase.PASS), "One target pass over 4 rows"),
        (at(Phase.TEST, tested=1), "Row 1: the target says “␣cat” too"),
        (at(Phase.TEST, tested=2), "Row 2: the target says “␣slept”, so “␣sat” is refused"),
        (at(Phase.OWN), "The target's own token takes the refused one's place"),
        (at(Phase.OWN, 2), "All kept: the last row gives one more token"),
        (at(Phase.ROLLBACK), "Roll back 2 rows; the text is 2 tokens longer"),
        (at(Phase.ROLLBACK, 2), "Nothing to roll back; the text is 3 tokens longer"),
    ],
)
def test_the_title_says_what_happens(step, title):
    assert plots.plot_step(step, TEXTS).get_title(loc="left").startswith(title)
    assert plots.describe_step(step, TEXTS).startswith(title)


def test_confidences_stand_over_the_draft_and_are_never_rounded_up():
    told = texts_in(plots.plot_step(at(Phase.PASS), TEXTS))
    assert {"0.99", "0.51", "0.60"} <= set(told)


def test_signs_stand_between_what_was_compared_and_nowhere_else():
    told = texts_in(plots.plot_step(at(Phase.ROLLBACK), TEXTS))
    assert told.count(messages.STEP_SAME) == 1 and told.count(messages.STEP_DIFFERENT) == 1
    assert told.count(messages.STEP_NOTHING) == 2, "two rows that nobody looked at"


def test_words_say_what_became_of_the_draft_and_of_the_caches():
    told = plots.describe_step(at(Phase.ROLLBACK), TEXTS)
    assert "“␣cat” (kept), “␣sat” (refused), “␣down” (never tested or looked at)" in told
    assert "Target's cache: 5 tokens held, 2 removed." in told
    assert "Draft's cache: 5 tokens held, 1 removed." in told


def test_a_token_without_a_text_is_told_by_its_number():
    assert "“#10”" in plots.plot_step(at(Phase.DRAFT), {}).get_title(loc="left")


def test_the_live_figure_shows_what_the_still_one_shows_whatever_came_before():
    live = plots.live_step(3, TEXTS)
    first = [live.update(step=each) for each in STEPS]
    assert [live.update(step=each) for each in reversed(STEPS)] == first[::-1]
    assert len(set(first)) == len(STEPS), "no two steps look alike"
    still = plots.plot_step(at(Phase.ROLLBACK), TEXTS)
    assert render.size_css_px(still) == live.size_css_px
    assert render.png(still) == first[STEPS.index(at(Phase.ROLLBACK))]
