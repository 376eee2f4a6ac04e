"""The explorer of notebook 06: gamma to zero, on every staircase, with the measured drafters as points."""

from __future__ import annotations

import re

import pytest

from specnb import messages, store, theory
from specnb.widgets import GammaExplorer

STUDY = store.load_m5_pro()
ARTICLE = next(row for row in STUDY.facts["free_draft"] if row["k"] == 4)
ALPHA = theory.solve_alpha(ARTICLE["tokens_per_cycle"], 4)


def explorer(**settings: float) -> GammaExplorer:
    start = {"alpha": ALPHA, "gamma": STUDY.gamma, "k": 4} | settings
    measured = {"M5 Pro": {"its draft model": (STUDY.gamma, 1.11)}}
    return GammaExplorer({"M5 Pro": STUDY.curve}, measured, plain_ms={"M5 Pro": STUDY.plain_ms}, **start)


def told(shown: GammaExplorer) -> list[str]:
    return re.findall(r"<b>([\d.]+×)</b>", shown.readout.value)


def test_like_for_like_a_free_draft_takes_the_article_from_122_to_170():
    # Its gamma is draft time over the target's own 17.074 ms, the explorer's unit is a plain token: 17.361 ms.
    now, free = told(explorer(gamma=STUDY.draft_ms / STUDY.plain_ms))
    assert (now, free) == ("1.22×", "1.70×")


@pytest.mark.parametrize(("control", "value"), [("alpha", 0.9), ("gamma", 0.5), ("k", 3)])
def test_each_control_changes_the_picture_and_the_readout(control, value):
    shown = explorer()
    picture, text = shown.picture.value, shown.readout.value
    getattr(shown, control).value = value
    assert shown.picture.value != picture
    assert shown.readout.value != text


def test_where_even_a_free_draft_loses_it_says_so():
    assert "no draft, however cheap, pays" in explorer(alpha=0.1).readout.value


def test_a_pass_that_was_not_measured_is_said_and_not_guessed():
    shown = explorer()
    shown.k.value = 10
    assert "T(11) was not measured" in shown.readout.value
    assert told(shown) == []


def test_a_staircase_without_a_plain_speed_is_refused():
    with pytest.raises(ValueError, match="plain_ms names other"):
        GammaExplorer({"M5 Pro": STUDY.curve}, {}, plain_ms={"other": 1.0}, alpha=0.5, gamma=0.1, k=2)


def test_on_paper_it_says_what_would_be_here():
    assert explorer()._repr_mimebundle_()["text/plain"] == messages.GAMMA_EXPLORER_ALT
