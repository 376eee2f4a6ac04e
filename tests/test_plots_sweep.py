"""Heat maps of a sweep: what stands in the cells, what is framed, and what the alt text says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import toy_lab
from matplotlib.patches import Rectangle

from specnb import messages, plots, render, sweep


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        toy_lab.quiet(patch)
        return sweep.Sweeper(toy_lab.ToyLab(), toy_lab.PLAN).run()


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if "×" in text.get_text()]


def frames(ax) -> int:
    return sum(isinstance(patch, Rectangle) for patch in ax.patches)


def test_every_cell_of_k_and_p_min_has_its_number_and_measured_ones_a_frame(found):
    ax = plots.plot_sweep(found, "draft_model", "copy", recorded="")
    assert len(texts(ax)) == 4 * 2
    measured = [s for s in found.measured("copy") if s.drafter == "draft_model"]
    assert frames(ax) == len(measured) > 0
    (starred,) = [text for text in texts(ax) if text.startswith("★")]
    alt = plots.describe_sweep(found, "draft_model", "copy")
    assert starred.removeprefix("★ ") in alt and alt.count("(forecast)") == 8 - len(measured)
    assert render.png(ax).startswith(b"\x89PNG")


def test_a_drafter_without_p_min_has_one_row(found):
    ax = plots.plot_sweep(found, "ngram_simple", "free")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0"]
    assert len(texts(ax)) == 4


def test_drafters_by_kind_show_the_best_cell_of_each_and_one_star_a_kind(found):
    ax = plots.plot_drafters_by_kind(found, recorded="2025-11-29 on a toy")
    assert len(texts(ax)) == 3 * len(found.kinds)
    assert sum(text.startswith("★") for text in texts(ax)) == len(found.kinds)
    assert all("k=" in text for text in texts(ax))
    alt = plots.describe_drafters_by_kind(found)
    assert all(name in alt for name in ("ngram_simple", "draft_model", "layer_skip", *found.kinds))


def test_without_forecasts_all_cells_are_measured(found):
    only = replace(found, forecasts=())
    ax = plots.plot_drafters_by_kind(only)
    assert frames(ax) == len(texts(ax)) > 0
    assert "forecast" not in plots.describe_drafters_by_kind(only)


def test_nothing_to_show_is_said(found):
    with pytest.raises(ValueError, match="no points of 'eagle' on 'copy'"):
        plots.plot_sweep(found, "eagle", "copy")
    with pytest.raises(ValueError, match="no points of 'eagle' on 'copy'"):
        plots.describe_sweep(found, "eagle", "copy")
    with pytest.raises(ValueError, match="nothing to plot"):
        plots.plot_drafters_by_kind(replace(found, trials=(), forecasts=()))


@pytest.mark.parametrize(("seconds", "text"), [(40.4, "40 s"), (95, "2 min"), (5340, "89 min"), (7500, "2 h 5 min")])
def test_times_to_wait_are_written_for_people(seconds, text):
    assert messages.duration(seconds) == text
