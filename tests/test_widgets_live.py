"""The live run, driven without a page: what the buttons do."""

from __future__ import annotations

import time

import pytest

from specnb.lab import Lab
from specnb.widgets import LiveGeneration

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def lab(embedded):
    with Lab(format="Q4_0", n_ctx=512) as opened:
        opened.staircase(precision=10.0, max_seconds=1.0)
        yield opened


@pytest.fixture
def live(lab):
    opened = LiveGeneration(lab, max_tokens=16)
    yield opened
    opened.close()


def finish(live):
    live.wait(120)
    assert not live._worker.busy


def test_run_fills_stream_gauges_and_picture(live):
    before = live.picture.value
    assert live.run()
    finish(live)
    assert live.status.value.startswith("Done")
    assert "border-bottom" in live.stream.value
    assert "×" in live.gauges.value
    assert live.picture.value != before
    plain, speculative = live.runs[-1]
    assert plain.drafter == "none" and speculative.tokens == plain.tokens
    assert live.stop_button.disabled and not live.run_button.disabled


def test_a_second_click_while_running_starts_nothing(live):
    assert live.run()
    assert not live.run()
    finish(live)
    assert len(live.runs) == 1


def test_stop_ends_it_and_the_next_run_is_like_a_fresh_one(live):
    live.prompt.value = "story"
    live.max_tokens.value = 256
    live.run()
    while "<span" not in live.stream.value:
        time.sleep(0.01)
    live.stop()
    finish(live)
    assert live.status.value.startswith("Stopped")
    assert live.runs == []
    live.prompt.value, live.max_tokens.value = "rewrite", 16
    live.run()
    finish(live)
    first = live.runs[-1][1].tokens
    live.run()
    finish(live)
    assert live.runs[-1][1].tokens == first


def test_what_goes_wrong_is_shown(live):
    live.prompt.value = "your own"
    live.run()
    finish(live)
    assert "Type a prompt first" in live.status.value
    live.own_text.value = "Say hello."
    live.run()
    finish(live)
    assert live.status.value.startswith("Done")


def test_a_new_one_takes_over(lab):
    first = LiveGeneration(lab)
    first.max_tokens.value = 256
    first.prompt.value = "story"
    first.run()
    second = LiveGeneration(lab, max_tokens=16)
    assert not first._worker.busy
    second.run()
    finish(second)
    assert second.status.value.startswith("Done")
    second.close()


def test_reset_restores_every_control(live):
    start = [c.value for c in (live.drafter, live.format, live.prompt, live.k, live.p_min, live.temperature)]
    live.k.value, live.p_min.value, live.temperature.value, live.drafter.value = 1, 0.5, 1.0, "none"
    next(b for b in live.view.children[2].children if b.description == "Reset").click()
    assert [c.value for c in (live.drafter, live.format, live.prompt, live.k, live.p_min, live.temperature)] == start
