"""The exercises of notebook 03 in a real browser; ``answer_every_exercise.py`` does the same for all, by hand."""

from __future__ import annotations

import pytest

from .answer_every_exercise import replies
from .jupyter import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.model]


def test_a_reader_gets_a_diagnosis_a_hint_and_a_right_answer(browser, lab_url):
    found = list(replies(browser, lab_url, ROOT / "notebooks" / "03_solve_alpha.ipynb"))
    assert all(reply.fine for reply in found), "\n".join(map(str, found))
    places = [reply.place for reply in found]
    assert places == ["03-implied-acceptance", "03-solve-alpha", "03-k11", "03-why", "03-own-k3"]
