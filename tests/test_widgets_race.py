"""The race of the adaptive policy, driven without a page."""

from __future__ import annotations

import pytest

from specnb.adaptive import Costs
from specnb.lab import LIVE_NS, Lab
from specnb.records import DraftPrice
from specnb.widgets import AdaptiveRace, LiveGeneration

pytestmark = pytest.mark.model

COSTS = Costs(
    {n: 4.0 + n for n in LIVE_NS},
    {"ngram_simple": DraftPrice("ngram_simple", 0.0, 0.0), "eagle": DraftPrice("eagle", 0.5, 0.5)},
    switch_ms=0.4,
)


@pytest.fixture(scope="module")
def lab(embedded):
    with pytest.MonkeyPatch.context() as patch, Lab(format="Q4_0", threads=1, n_ctx=512) as opened:
        # Measured where the reader races; here it would only take time.
        patch.setattr(opened, "adaptive_costs", lambda _text: COSTS)
        yield opened


def finish(widget):
    widget.wait(180)
    assert not widget._worker.busy


def test_a_race_times_three_ways_and_shows_the_choices(lab):
    race = AdaptiveRace(lab, max_tokens=24)
    lines, choices = race.lines.value, race.choices.value
    race.k.value = 7
    assert race.run()
    assert not race.run(), "one race at a time"
    finish(race)
    assert race.status.value.startswith("Adaptive: <b>")
    runs, found = race.races[-1]
    assert {(run.drafter, run.k) for run in runs.runs} == {("none", 0), ("ngram_simple", 7), ("adaptive", 16)}
    assert len({run.tokens for run in runs.runs}) == 1, "the same text, whoever drafts"
    assert len(found.picks) == found.run.target_passes
    assert race.lines.value != lines and race.choices.value != choices
    race.close()


def test_another_widget_waits_for_the_race_to_end(lab):
    race, live = AdaptiveRace(lab, max_tokens=24), LiveGeneration(lab, max_tokens=16)
    live.drafter.value = "adaptive"
    assert race.run() and live.run()
    finish(race)
    finish(live)
    assert race.status.value.startswith("Adaptive: <b>")
    assert live.status.value.startswith("Done")
    assert live.runs[-1][1].drafter == "adaptive"
    race.close()
    live.close()


def test_stop_ends_a_race_and_what_goes_wrong_is_shown(lab):
    race = AdaptiveRace(lab, max_tokens=256)
    race.run()
    race._worker.stop()
    finish(race)
    assert race.status.value in (
        "Stopped.",
        "Ready. Race writes the same answer three ways: plain, under the adaptive policy, and with your setting.",
    )
    race.drafter.value, race.k.value = "eagle", 16
    race.run()
    finish(race)
    assert "trained for" in race.status.value and not race.race_button.disabled
    race.close()
