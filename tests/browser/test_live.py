"""Notebook 04 in a real browser: Run streams tokens, Stop stops, the next run works."""

from __future__ import annotations

import pytest

from . import jupyter

pytestmark = [pytest.mark.browser, pytest.mark.model]

DONE = "() => [...document.querySelectorAll('.widget-html-content')].some(e => /^Done/.test(e.innerText))"

RACED = "() => [...document.querySelectorAll('.widget-html-content')].some(e => /^Adaptive: /.test(e.innerText))"
LIVE_PICTURE, RACE_PICTURE = 0, 2
"""Which widget image of the page is whose; the stepper's is between them."""


@pytest.fixture(scope="module")
def notebook(browser, lab_url):
    """One page for all of these: the notebook takes a minute to run."""
    page = jupyter.run_notebook(browser, lab_url, "04_live_generation.ipynb")
    yield page
    page.close()


def stream_length(page) -> int:
    return len(page.locator(".widget-html-content [role=log]").inner_text())


def run_to_the_end(page) -> None:
    """Run, and wait for the new run's end: the status still tells of the one before for a moment."""
    button(page, "Run").click()
    page.wait_for_function("() => !(" + DONE + ")()")
    page.wait_for_function(DONE, timeout=120_000)


def button(page, name: str):
    """The live view's: the race below it has a Stop of its own."""
    return page.locator("button.jupyter-button", has_text=name).first


def test_run_streams_tokens_and_shows_gauges_and_prediction(notebook):
    page = notebook
    shown = jupyter.picture(page, LIVE_PICTURE)
    jupyter.choose(page, "prompt", "story")
    jupyter.choose(page, "drafter", "draft_model")
    button(page, "Run").click()
    page.wait_for_function("() => document.querySelector('.widget-html-content [role=log]').innerText.length > 0")
    lengths = set()
    for _ in range(40):
        lengths.add(stream_length(page))
        page.wait_for_timeout(100)
    assert len(lengths) > 3, f"the text did not grow while it was generated: lengths seen {sorted(lengths)}"
    page.wait_for_function(DONE, timeout=120_000)
    jupyter.wait_for_new_picture(page, shown, LIVE_PICTURE)
    gauges = page.locator(".widget-html-content", has_text="tokens per cycle").last.inner_text()
    assert "×" in gauges and "–" not in gauges
    page.locator("img.widget-image").nth(LIVE_PICTURE).scroll_into_view_if_needed()
    jupyter.screenshot(page, "04-live")


def test_stop_ends_the_run_and_the_next_one_works(notebook):
    page = notebook
    jupyter.choose(page, "prompt", "story")
    jupyter.press(jupyter.slider(page, "new tokens"), "End")
    button(page, "Run").click()
    page.wait_for_function("() => document.querySelector('.widget-html-content [role=log]').innerText.length > 20")
    button(page, "Stop").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.widget-html-content')].some(e => /^Stopped/.test(e.innerText))"
    )
    stopped = stream_length(page)
    page.wait_for_timeout(700)
    assert stream_length(page) == stopped
    jupyter.press(jupyter.slider(page, "new tokens"), "Home")
    run_to_the_end(page)


def test_dragging_while_the_model_runs_leaves_the_run_as_it_was_set(notebook):
    page = notebook
    jupyter.choose(page, "drafter", "draft_model")
    jupyter.press(jupyter.slider(page, "new tokens"), "End")
    k = jupyter.slider(page, "k")
    asked = int(jupyter.readout(k))
    button(page, "Run").click()
    page.wait_for_function("() => document.querySelector('.widget-html-content [role=log]').innerText.length > 20")
    for key in ("ArrowRight", "ArrowLeft", "ArrowRight") * 10:
        jupyter.press(k, key)
    assert int(jupyter.readout(k)) == asked + 10
    page.wait_for_function(DONE, timeout=120_000)
    assert jupyter.errors(page) == []
    assert jupyter.ask_kernel(page, "print(live.runs[-1][1].k)") == str(asked)
    jupyter.press(k, "ArrowLeft", 10)
    jupyter.press(jupyter.slider(page, "new tokens"), "Home")


def test_refused_tokens_can_be_hidden(notebook):
    page = notebook
    jupyter.choose(page, "drafter", "layer_skip")
    run_to_the_end(page)
    struck = ".widget-html-content [role=log] s"
    assert page.locator(struck).count() > 0
    page.get_by_label("show refused tokens").uncheck()
    page.wait_for_function(f'() => document.querySelectorAll("{struck}").length === 0')


def test_a_race_shows_its_lines_and_the_choices_of_the_policy(notebook):
    page = notebook
    lines, choices = jupyter.picture(page, RACE_PICTURE), jupyter.picture(page)
    button(page, "Race").click()
    page.wait_for_function(RACED, timeout=180_000)
    jupyter.wait_for_new_picture(page, lines, RACE_PICTURE)
    jupyter.wait_for_new_picture(page, choices)
    page.locator("img.widget-image").last.scroll_into_view_if_needed()
    jupyter.screenshot(page, "04-race")
