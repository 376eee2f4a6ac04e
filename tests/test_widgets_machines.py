"""The same alpha on many machines, driven without a page."""

from __future__ import annotations

import pytest

from specnb import cards, messages, plots, store
from specnb.widgets import ManyMachines

MACHINES = cards.costs_of_cards([cards.of_study(store.load_m5_pro())]) + cards.costs_of_reports(
    store.load_field_reports()
)


@pytest.fixture
def shown() -> ManyMachines:
    return ManyMachines(MACHINES, alpha=0.7, gamma=0.15, k=3)


def test_it_opens_with_opposite_verdicts(shown):
    assert "<b>faster</b>: Apple M5 Pro, RTX 5090 at 600 W" in shown.readout.value
    assert "<b>slower</b>: M3 Ultra" in shown.readout.value


@pytest.mark.parametrize(("control", "value"), [("alpha", 0.9), ("gamma", 0.6), ("k", 2), ("free", True)])
def test_each_control_changes_the_picture(shown, control, value):
    before = shown.picture.value
    getattr(shown, control).value = value
    assert shown.picture.value != before


def test_free_drafts_are_gamma_zero(shown):
    shown.free.value = True
    free = shown.picture.value
    shown.free.value = False
    shown.gamma.value = 0.0
    assert shown.picture.value == free


def test_a_k_that_a_machine_lacks_is_said(shown):
    shown.k.value = 6
    assert "<b>not measured at this k</b>: M3 Ultra" in shown.readout.value
    assert "RTX 5090 at 600 W" in shown.readout.value.split("</b>")[1]


def test_the_k_slider_ends_where_the_last_machine_does(shown):
    assert (shown.k.min, shown.k.max) == (1, 31)


def test_the_picture_depends_on_the_sliders_alone(shown):
    shown.alpha.value, shown.k.value = 1.0, 6
    rows = cards.verdicts(MACHINES, 1.0, 6, gamma=0.15)
    other = plots.live_machines(rows)
    assert shown.picture.value == other.update(rows=rows, alpha=1.0, k=6, gamma=0.15)


def test_reset_brings_everything_back(shown):
    first = shown.picture.value
    shown.alpha.value, shown.k.value, shown.free.value = 0.2, 5, True
    shown.view.children[1].children[0].click()
    assert (shown.alpha.value, shown.k.value, shown.free.value, shown.picture.value) == (0.7, 3, False, first)


def test_it_needs_machines():
    with pytest.raises(ValueError, match="no machine to compare"):
        ManyMachines([])


def test_on_paper_it_says_what_would_be_here(shown):
    assert shown._repr_mimebundle_()["text/plain"] == messages.MANY_ALT
