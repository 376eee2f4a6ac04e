"""Machine cards: made from sweeps, recordings and publications; dropped in or refused; compared in units of T(1)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest
from matplotlib.text import Text

from specnb import cards, plots, render, store, theory
from specnb.records import (
    CardAlpha,
    Choice,
    CostCurve,
    DraftPrice,
    Forecast,
    Machine,
    MachineCard,
    Setting,
    Sweep,
    SweepCosts,
    Trial,
)

MACHINE = Machine("Test CPU", cores=4, memory_gib=16.0, backend="CPU", build="b1")
CURVE = CostCurve(
    "Tiny Q4_0",
    tuple((n, 10.0 + 0.5 * n + 0.01 * i) for i in range(5) for n in range(1, 9)),
    128,
    4,
    MACHINE,
    recorded="2025-11-29 on Test CPU",
)


def trial(setting: Setting, kind: str, repeat: int, ms: float, *, passes: int = 40, kept: int = 20) -> Trial:
    plain = setting.plain
    emitted = passes + (0 if plain else kept)
    drafted = 0 if plain else setting.k * passes
    return Trial(
        setting.drafter, setting.k, setting.p_min, kind, "final", repeat, emitted, passes, drafted,
        0 if plain else kept, ms * emitted / 1e3,
    )  # fmt: skip


def sweep() -> Sweep:
    plain, eagle, copy = Setting("none", 0), Setting("eagle", 2), Setting("ngram_simple", 5)
    ms = {"code": {plain: 10.0, eagle: 7.0, copy: 9.9}, "chat": {plain: 10.0, eagle: 12.0, copy: 15.0}}
    return Sweep(
        machine=MACHINE,
        target="Tiny Q4_0",
        method="racing",
        kinds=("code", "chat"),
        settings=(plain, eagle, copy),
        max_tokens=64,
        costs=SweepCosts(replace(CURVE, recorded=""), (DraftPrice("eagle", 1.0, 0.5),)),
        trials=tuple(
            trial(setting, kind, repeat, value + 0.02 * repeat)
            for kind, each in ms.items()
            for setting, value in each.items()
            for repeat in range(4)
        ),
        seconds=30.0,
        complete=True,
    )


CARD = cards.make(sweep(), recorded="2025-11-29 on Test CPU")


def test_a_card_is_made_from_a_sweep_with_its_advice():
    assert (CARD.label, CARD.target) == ("Test CPU", "Tiny Q4_0")
    assert CARD.staircase.recorded == "2025-11-29 on Test CPU"
    assert CARD.prices == (DraftPrice("eagle", 1.0, 0.5),)
    code, chat, overall = CARD.best
    assert (code.kind, code.verdict, code.setting) == ("code", "on", Setting("eagle", 2))
    assert (chat.kind, chat.verdict) == ("chat", "off") and overall.kind == ""
    (alpha,) = (each for each in CARD.alphas if (each.drafter, each.kind) == ("eagle", "code"))
    assert alpha.low == alpha.high == pytest.approx(theory.solve_alpha(1.5, 2))
    assert alpha.interval_low < alpha.low < alpha.interval_high
    assert (alpha.kept, alpha.drafted) == (20, 80)


def test_a_drafter_that_was_only_forecast_has_the_alpha_of_its_replay():
    """Only if it runs a model: a look-up's drafts are of any length, so its forecast gives no alpha."""
    tokens = theory.expected_tokens(0.6, 4)
    forecasts = tuple(Forecast(name, 4, 0.0, "chat", 9.0, tokens) for name in ("medusa", "ngram_mod", "eagle"))
    costs = replace(sweep().costs, prices=(*sweep().costs.prices, DraftPrice("medusa", 1.0, 0.0)))
    card = cards.make(replace(sweep(), costs=costs, forecasts=forecasts))
    found = {(alpha.drafter, alpha.kind): alpha for alpha in card.alphas}
    assert found["medusa", "chat"].low == pytest.approx(0.6) and found["medusa", "chat"].interval_low is None
    assert ("ngram_mod", "chat") not in found
    assert found["eagle", "chat"].drafted == 80  # it was run


def test_a_card_comes_back_from_its_file_and_is_named_after_its_label(tmp_path):
    path = store.save(CARD, tmp_path / cards.file_name(CARD))
    assert path.name == "test-cpu.json"
    once = store.load(path, MachineCard)
    assert once.best[0].speedup == pytest.approx(CARD.best[0].speedup, rel=1e-5)  # six digits are kept
    assert store.load(store.save(once, tmp_path / "again.json"), MachineCard) == once


@pytest.mark.parametrize("label", ["../../etc/passwd", "a/b\\c", "机器", "..", "x" * 500])
def test_no_label_makes_a_file_outside_the_folder(label, tmp_path):
    name = cards.file_name(replace(CARD, label=label))
    assert (tmp_path / name).resolve().parent == tmp_path.resolve() and len(name) < 80


# --- the shelf ---------------------------------------------------------------------------------------------


def test_every_card_of_the_project_loads_and_is_named_after_its_label():
    shelf = cards.shelf()
    assert not shelf.refused
    assert {stem: cards.file_name(card) for stem, card in shelf.cards.items()} == {
        stem: f"{stem}.json" for stem in shelf.cards
    }


def test_a_card_dropped_into_the_folder_appears(tmp_path):
    cards.remake(tmp_path)
    before = set(cards.shelf(tmp_path).cards)
    store.save(replace(CARD, label="Made elsewhere"), tmp_path / "elsewhere.json")
    after = cards.shelf(tmp_path)
    assert set(after.cards) - before == {"elsewhere"} and not after.refused
    rows = cards.same_alpha(after.cards.values(), 0.7)
    assert "Made elsewhere" in {row.label for row in rows}


def _without(name):
    return lambda document: document.pop(name)


def _set(path, value):
    def change(document):
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_without("machine"), ("machine", "missing")),
        (_without("label"), ("label", "missing")),
        (_without("provenance"), ("provenance", "missing")),
        (_without("schema"), ("schema", "missing")),
        (_set(["schema"], "specnb/machine-card/9"), ("schema", "machine-card/9")),
        (_set(["label"], "  "), ("label",)),
        (_set(["provenance"], ""), ("provenance",)),
        (_set(["colour"], "blue"), ("colour",)),
        (_set(["staircases", 0, "samples", 3], [4, -12.5]), ("samples", "-12.5")),
        (_set(["staircases", 0, "samples", 3], [4, 0.0]), ("0.0",)),
        (_set(["staircases", 0, "samples", 3], [4, float("nan")]), ("NaN",)),
        (_set(["staircases", 0, "samples", 3], [4, 1e999]), ("Infinity",)),
        (_set(["staircases", 0, "samples"], [[2, 5.0], [3, 6.0]]), ("N=1", "2, 3")),
        (_set(["staircases", 0, "samples"], []), ("no samples",)),
        (_set(["prices"], {"columns": ["drafter", "first_ms", "further_ms"], "rows": [["e", -1.0, 1.0]]}), ("-1.0",)),
        (_set(["alphas", "rows", 0, 3], 1.25), ("1.25",)),
        (_set(["alphas", "rows", 0, 3], "high"), ("high",)),
        (_set(["best", 0, "speedup"], -2.0), ("best", "speedup", "-2.0")),
        (_set(["best", 0, "speedup"], float("nan")), ("speedup", "NaN")),
        (_set(["best", 0, "setting", "k"], -3), ("k", "-3")),
        (_set(["machine", "memory_gib"], -8.0), ("memory_gib", "-8.0")),
    ],
)
def test_a_malformed_card_is_refused_with_its_field_and_number_and_the_others_load(change, named, tmp_path):
    good = store.save(CARD, tmp_path / "good.json")
    document = json.loads(good.read_text(encoding="utf-8"))
    change(document)
    (tmp_path / "bad.json").write_text(json.dumps(document), encoding="utf-8")
    found = cards.shelf(tmp_path)
    assert list(found.cards) == ["good"]
    (reason,) = found.refused.values()
    assert all(each in reason for each in ("bad.json", *named)), reason


def test_what_is_no_card_at_all_is_refused_and_the_others_load(tmp_path):
    store.save(CARD, tmp_path / "good.json")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    (tmp_path / "folder.json").mkdir()
    store.save_curve(CURVE, tmp_path / "curve.json")
    found = cards.shelf(tmp_path)
    assert list(found.cards) == ["good"] and len(found.refused) == 5


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (lambda: CardAlpha("d", "code", 4, 0.8, 0.6), "0.8"),
        (lambda: CardAlpha("d", "code", 4, float("nan"), 0.6), "nan"),
        (lambda: CardAlpha("d", "code", 4, 0.5, 0.6, -0.1, 0.9), "-0.1"),
        (lambda: CardAlpha("d", "code", 4, 0.5, 0.6, kept=9, drafted=5), "9"),
        (lambda: replace(CARD, best=(Choice("code", "on", Setting("d", 2), 1.2, (1.3, 1.1)),)), "1.3"),
        (lambda: replace(CARD, best=(Choice("code", "on", Setting("d", 2), float("inf")),)), "inf"),
        (lambda: replace(CARD, plain_ms=0.0), r"0\.0 ms"),
    ],
)
def test_a_record_with_an_impossible_number_names_it(make, number):
    with pytest.raises(ValueError, match=number):
        make()


# --- the project's own -------------------------------------------------------------------------------------


def test_the_projects_cards_are_what_the_command_makes(tmp_path):
    """They are made from the recordings and the publications, never typed. Recordings are made anew now and then."""
    recorded = cards.file_name(cards.of_recordings())
    for path in cards.remake(tmp_path):
        there = cards.FOLDER / path.name
        assert there.exists(), f"python -m specnb.cards makes {path.name}, which is missing"
        assert path.name == recorded or path.read_bytes() == there.read_bytes(), f"python -m specnb.cards: {path.name}"


def test_the_m5_pro_card_holds_the_articles_figures():
    study = store.load_m5_pro()
    card = cards.of_study(study)
    assert card.staircase.median_ms == study.curve.median_ms
    assert {alpha.k for alpha in card.alphas} == {run.k for run in study.runs}
    assert all(0.6 < alpha.low < 0.75 for alpha in card.alphas)
    (best,) = card.best
    assert (best.setting.k, best.speedup, best.verdict) == (1, 1.16, "unclear")


def test_the_recordings_make_a_card_with_a_staircase_and_alphas():
    card = cards.of_recordings()
    assert card.machine.cores and card.staircase is not None
    counted = [alpha for alpha in card.alphas if alpha.kept is not None]
    assert counted and all(alpha.interval_low <= alpha.low <= alpha.high <= alpha.interval_high for alpha in counted)


def test_a_recorded_sweep_is_the_card_of_the_recordings(tmp_path):
    store.save(sweep(), tmp_path / "08-sweep.json", recorded_on=date(2025, 11, 29))
    model = store.load_curve(store.DATA / "runs" / "01-staircase.json").model
    store.save_curve(replace(CURVE, model=replace(model, name="Tiny", format="Q4_0")), tmp_path / "01-staircase.json")
    card = cards.of_recordings(tmp_path)
    assert [choice.setting for choice in card.best] == [choice.setting for choice in CARD.best]
    assert card.target == "Tiny Q4_0" and "2025-11-29" in card.provenance


def test_of_several_staircases_the_undisturbed_and_fullest_is_taken(tmp_path):
    first = store.load_curve(store.DATA / "runs" / "01-staircase.json")
    few = tuple(pair for pair in first.samples if pair[0] <= 2)
    for name, curve in {
        "01-disturbed": replace(first, contended=True),
        "02-short": replace(first, samples=few, contended=False),
        "03-one-thread": replace(first, threads=1, contended=False),
    }.items():
        store.save_curve(curve, tmp_path / f"{name}.json")
    (chosen,) = cards.of_recordings(tmp_path).staircases
    assert chosen.ns == (1, 2) and not chosen.contended
    store.save_curve(replace(first, contended=False), tmp_path / "04-full.json")
    (chosen,) = cards.of_recordings(tmp_path).staircases
    assert chosen.ns == first.ns and chosen.threads == first.threads


def test_recordings_without_a_staircase_are_no_card(tmp_path):
    with pytest.raises(ValueError, match="No cost curve"):
        cards.of_recordings(tmp_path)


# --- side by side ------------------------------------------------------------------------------------------


def test_one_alpha_on_every_staircase_is_the_theorys_best_k():
    study = store.load_m5_pro()
    m5 = cards.of_study(study)
    rows = {row.label: row for row in cards.same_alpha([m5, CARD], 0.7, gamma=0.15)}
    plain = study.plain_ms
    k = theory.best_k(0.7, 0.15 * plain, study.curve.median_ms, plain)
    assert rows[m5.label].k == k
    assert rows[m5.label].speedup == theory.speedup(0.7, k, 0.15 * plain, study.curve.median_ms, plain)


def test_a_card_with_a_plain_speed_tells_speedups_over_it_and_others_over_t1():
    """The same machine, alpha and k gain as much on its card as in the ledger of the article."""
    study = store.load_m5_pro()
    (m5,) = cards.same_alpha([cards.of_study(study)], 0.7)
    assert m5.k == 4 and m5.speedup == theory.speedup(0.7, 4, 0.0, study.verify_ms, study.plain_ms)
    assert cards.of_study(study).baseline_ms == study.plain_ms != study.verify_ms[1]
    assert CARD.plain_ms is None and CARD.baseline_ms == CARD.staircase.median_ms[1]
    assert replace(CARD, staircases=()).baseline_ms is None


def test_the_unit_is_t1_so_a_machine_twice_as_slow_is_the_same():
    slow = replace(CARD.staircase, samples=tuple((n, 2 * ms) for n, ms in CARD.staircase.samples))
    both = cards.same_alpha([CARD, replace(CARD, label="slow", staircases=(slow,))], 0.6, gamma=0.1)
    assert both[0].k == both[1].k and both[0].speedup == pytest.approx(both[1].speedup)


def test_where_nothing_pays_the_answer_is_off():
    (row,) = cards.same_alpha([CARD], 0.0)
    assert (row.k, row.speedup) == (0, 1.0)
    assert cards.same_alpha([replace(CARD, staircases=())], 0.5) == ()
    with pytest.raises(ValueError, match=r"1\.5"):
        cards.same_alpha([CARD], 1.5)


# --- pictures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "card",
    [
        CARD,
        replace(CARD, staircases=()),
        replace(CARD, alphas=(), best=()),
        replace(CARD, alphas=CARD.alphas * 12, best=CARD.best * 9),
        replace(CARD, label="$\\frac{1}{2}$ 机器 " + "long " * 40, provenance="p " * 300),
    ],
)
def test_a_card_is_one_page_with_an_alt_text(card):
    figure = plots.card_page(card)
    assert render.png(figure).startswith(b"\x89PNG")
    told = plots.card_page_alt(card)
    assert card.target in told and ("eagle" in told) == bool(card.alphas)


def words(figure) -> list[Text]:
    """All that stands on a page; its canvas then knows where."""
    figure.canvas.draw()
    return figure.findobj(Text)


def test_no_line_of_a_page_runs_over_its_edge():
    off = Choice("chat", "off", Setting("layer_skip", 16, 0.75), 0.95, (0.91, 0.98))
    figure = plots.card_page(replace(CARD, best=(off, replace(off, verdict="on"), *CARD.best)))
    for text in words(figure):
        assert text.get_window_extent().x1 <= figure.bbox.x1, text.get_text()


def test_an_alpha_without_interval_is_hollow_and_said():
    known = CardAlpha("eagle", "code", 2, 0.5, 0.5, 0.4, 0.6)
    card = replace(CARD, alphas=(known, replace(known, kind="chat", interval_low=None, interval_high=None)))
    dots = [line for ax in plots.card_page(card).axes for line in ax.lines if line.get_linewidth() == 5.0]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert "eagle, code 0.500, eagle, chat 0.500 (no interval)" in plots.card_page_alt(card)


def test_a_staircase_just_measured_is_labelled_so_in_figures_and_dated_in_the_file():
    shown = cards.as_shown(CARD, "")
    assert any("measured here, now" in text.get_text() for text in words(plots.card_page(shown)))
    assert plots.describe_cards([shown, cards.of_study(store.load_m5_pro())]).endswith(
        "1 of 2 measured here, now; the rest recorded."
    )
    assert CARD.staircase.recorded and cards.as_shown(CARD, CARD.staircase.recorded) == CARD


def test_cards_side_by_side_are_drawn_in_units_of_t1():
    shelf = list(cards.shelf().cards.values())
    ax = plots.plot_cards([CARD, *shelf])
    assert ax.get_ylabel() == "T(N) / T(1)"
    assert CARD.label in plots.describe_cards([CARD, *shelf])
    rows = cards.same_alpha([CARD, *shelf], 0.7)
    assert render.png(plots.plot_same_alpha(rows, 0.7)).startswith(b"\x89PNG")
    told = plots.describe_same_alpha(rows, 0.7)
    assert all(row.label in told for row in rows) and "leave it off" in told


def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="no machine card"):
        plots.plot_cards([replace(CARD, staircases=())])
    with pytest.raises(ValueError, match="no machine card"):
        plots.plot_same_alpha([], 0.5)
