"""Heat maps of a sweep: what stands in the cells, what is framed, and what the alt text says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import toy_lab
from matplotlib.patches import Rectangle

from specnb import advise, messages, plots, render, sweep
from specnb.records import PLAIN, CostCurve, Forecast, Machine, Setting, Sweep, SweepCosts, Trial


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
    run = [s for s in found.run_speedups("copy") if s.drafter == "draft_model"]
    assert frames(ax) == len(run) > 0
    (starred,) = [text for text in texts(ax) if text.startswith("★")]
    alt = plots.describe_sweep(found, "draft_model", "copy")
    assert starred.removeprefix("★ ") in alt and alt.count("(forecast") == 8 - len(run)
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


LOOK_UP, EAGLE = Setting("ngram_simple", 6), Setting("eagle", 1, 0.5)
MACHINE = Machine("a machine")


def raced(*points: tuple[Setting, str, float], forecast: dict[Setting, float] | None = None) -> Sweep:
    """One kind. points: (setting, stage, ms per token). forecast: the same for every setting; 10 for plain decoding."""
    repeats: dict[tuple[Setting, str], int] = {}
    trials = []
    for setting, stage, ms in points:
        repeat = repeats[setting, stage] = repeats.get((setting, stage), -1) + 1
        trials.append(
            Trial(setting.drafter, setting.k, setting.p_min, "rewrite", stage, repeat, 20, 20, 0, 0, ms * 20 / 1e3)
        )
    told = {PLAIN: 10.0, LOOK_UP: 6.0, EAGLE: 9.0} if forecast is None else forecast
    forecasts = tuple(Forecast(s.drafter, s.k, s.p_min, "rewrite", ms, 1.5) for s, ms in told.items())
    costs = SweepCosts(CostCurve("here", tuple((n, 9.0 + n) for n in range(1, 8)), 0, 2, MACHINE))
    return Sweep(
        MACHINE,
        "a model",
        "racing",
        ("rewrite",),
        (PLAIN, LOOK_UP, EAGLE),
        20,
        costs,
        tuple(trials),
        1.0,
        True,
        forecasts,
    )


SCREENED_FASTER = raced(
    (EAGLE, "screen", 5.0), (LOOK_UP, "screen", 5.5), (PLAIN, "final", 12.0), (LOOK_UP, "final", 8.0)
)  # fmt: skip
"""The machine was faster while it screened: eagle's one run there looks 2.4 times as fast as plain decoding's final."""


def test_a_screening_run_is_not_held_against_plain_decoding_of_the_final_rounds():
    ax = plots.plot_drafters_by_kind(SCREENED_FASTER)
    assert sorted(texts(ax)) == ["○ 1.11×\nk=1\np_min=0.5", "★ 1.50×\nk=6"]
    assert frames(ax) == 1
    assert plots.describe_drafters_by_kind(SCREENED_FASTER).endswith(
        "eagle on rewrite at k=1, p_min=0.5 1.11× (forecast, screened once), ngram_simple on rewrite at k=6 1.50×."
    )


def test_where_nothing_was_run_beside_plain_decoding_nothing_is_the_fastest():
    ax = plots.plot_sweep(SCREENED_FASTER, "eagle", "rewrite")
    assert texts(ax) == ["○ 1.11×"] and frames(ax) == 0
    assert "Fastest" not in plots.describe_sweep(SCREENED_FASTER, "eagle", "rewrite")
    assert plots.describe_sweep(SCREENED_FASTER, "ngram_simple", "rewrite").endswith("Fastest run: k=6, 1.50×.")


def test_a_forecast_never_has_the_star_however_fast():
    dreamt = raced((PLAIN, "final", 10.0), (LOOK_UP, "final", 9.0), forecast={PLAIN: 10.0, LOOK_UP: 5.0, EAGLE: 2.0})
    assert sorted(texts(plots.plot_drafters_by_kind(dreamt))) == ["5.00×\nk=1\np_min=0.5", "★ 1.11×\nk=6"]


def test_a_sweep_that_was_stopped_before_its_final_rounds_has_forecasts_only():
    stopped = raced((EAGLE, "screen", 5.0), (LOOK_UP, "screen", 5.5))
    assert stopped.run_speedups("rewrite") == {}
    assert sorted(texts(plots.plot_drafters_by_kind(stopped))) == ["○ 1.11×\nk=1\np_min=0.5", "○ 1.67×\nk=6"]
    with pytest.raises(ValueError, match="nothing to plot"):
        plots.plot_drafters_by_kind(replace(stopped, forecasts=()))


def test_a_grid_is_run_beside_its_own_plain_decoding():
    grid = raced((PLAIN, "grid", 12.0), (LOOK_UP, "grid", 8.0), (EAGLE, "grid", 6.0), forecast={})
    assert grid.run_speedups("rewrite") == {LOOK_UP: pytest.approx(1.5), EAGLE: pytest.approx(2.0)}
    assert sorted(texts(plots.plot_drafters_by_kind(grid))) == ["1.50×\nk=6", "★ 2.00×\nk=1\np_min=0.5"]


def test_the_picture_says_the_speedup_of_the_advice(found):
    for choice in advise.advise(found).by_kind:
        assert found.run_speedups(choice.kind)[choice.setting] == pytest.approx(choice.speedup)
    turns = raced(*((s, "final", ms * slow) for slow in (1, 2, 4) for s, ms in ((PLAIN, 10.0 + slow), (LOOK_UP, 8.0))))
    (choice,) = advise.advise(turns).by_kind
    assert turns.run_speedups("rewrite")[LOOK_UP] == pytest.approx(choice.speedup)


@pytest.mark.parametrize(("seconds", "text"), [(40.4, "40 s"), (95, "2 min"), (5340, "89 min"), (7500, "2 h 5 min")])
def test_times_to_wait_are_written_for_people(seconds, text):
    assert messages.duration(seconds) == text
