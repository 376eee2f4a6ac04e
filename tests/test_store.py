"""The store: what is saved comes back, what is damaged is refused by name, what is published is as published."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from pathlib import Path

import pytest

from specnb import records, store
from specnb.records import (
    AcceptanceByRule,
    AdaptiveRun,
    Advice,
    CardAlpha,
    Choice,
    Comparison,
    ComparisonSet,
    Context,
    CostCurve,
    Cycle,
    CycleCosts,
    CycleParts,
    CycleSample,
    Diagnosis,
    Divergence,
    Draft,
    DraftCost,
    DrafterScore,
    DrafterScores,
    DraftMemory,
    DraftPrice,
    FieldReports,
    Forecast,
    Guess,
    Guesses,
    Hopeless,
    LayerSearch,
    LayerSet,
    LayerwiseCost,
    LearningCurve,
    Ledger,
    LedgerCell,
    Limits,
    LoadRun,
    LoadSweep,
    Loop,
    Machine,
    MachineCard,
    MemoryBandwidth,
    ModelInfo,
    ObservedCounts,
    PassCost,
    PassCosts,
    Penalties,
    Pick,
    PublishedBandwidth,
    PublishedCliff,
    PublishedCounts,
    PublishedKernel,
    PublishedLedgerRow,
    PublishedPoint,
    PublishedRepeat,
    PublishedRun,
    PublishedStudy,
    PublishedSweep,
    Rehearsal,
    Rounding,
    Run,
    RunSet,
    Sampling,
    Setting,
    SharedPass,
    Sweep,
    SweepCosts,
    TokenTexts,
    TrainingStage,
    Trial,
    Trials,
)

DAY = date(2025, 11, 29)
MACHINE = Machine(name="Test CPU", cores=2, memory_gib=7.6, os="Linux x86_64", backend="CPU", build="b1234")
MODEL = ModelInfo(
    name="Tiny",
    architecture="llama",
    format="Q4_0",
    n_parameters=134_515_008,
    weight_bytes=91_700_000,
    n_layer=30,
    n_embd=576,
    n_vocab=49_152,
    n_ctx_train=8_192,
)
CURVE = CostCurve(
    label="Tiny, „quoted“ 模型",
    samples=((1, 10.5), (2, 11.25), (1, 10.75), (9, 40.125)),
    context_length=128,
    threads=2,
    machine=MACHINE,
    model=MODEL,
    seconds=1.5,
    drift=-0.02,
    contended=True,
    recorded="2025-11-29 on Test CPU",
)
PLAIN = Cycle("none", 7, (), 0, 0, (42,), None, 0.0, 0.0105, 0.0001, 0.00002)
SPECULATIVE = Cycle("draft-model", 8, (3, 4, 5), 2, 1, (3, 9), (0.9, 0.5, 0.25), 0.004, 0.02, 0.0002, 0.0003)
RUN = Run(
    prompt_tokens=(1, 2, 3),
    cycles=(PLAIN, SPECULATIVE),
    drafter="draft-model",
    k=3,
    n_min=0,
    p_min=0.75,
    sampling=Sampling(temperature=0.8, seed=7),
    prefill_s=0.25,
    target="Tiny",
    text="Hello\n世界 \u2028 \x00 😀",
    finish="length",
    in_llama_s=0.03,
)
DRAFT_COST = DraftCost("Tiny drafts", (2.5, 2.75, 2.625), 4, 128)
COUNTS = PublishedCounts("a", "owner/name#1", drafted=10, kept=4, k=3, cycles=4, kept_by_position=(0.5, 0.25, 0.25))
SWEEP = PublishedSweep("s", "owner/name#2", "k", (PublishedPoint(20.5, k=1), PublishedPoint(21.0, k=2, drafted=0)))
STUDY = PublishedStudy(
    title="Study",
    provenance="Somebody, somewhere",
    machine=MACHINE,
    curve=CURVE,
    rerun=CURVE,
    unlisted=CURVE,
    throughput={1: 55.5, 12: 151.5},
    runs=(PublishedRun(1, 66.5, 0.75, 1.25, (67.0, 66.5)), PublishedRun(2, 59.5, 0.5, 1.0)),
    ledger=(PublishedLedgerRow(1, 1.75, 2.5, 20.5, 72.5, 66.5),),
    cliffs=(),
    kernels=(PublishedKernel(1, "mul_mv", 1),),
    bandwidth=(PublishedBandwidth("m", 24, 462.5, 2.75),),
    draft_ms=2.5,
    target_ms=17.5,
    plain_tokens_per_second=57.5,
    plain_repeats=(57.0, 58.0),
    facts={"list": (1, 2.5, None, True, "text"), "nested": {"loss": -0.5}},
)
REPORTS = FieldReports("Reports", "Several people", (CURVE,), (COUNTS,), (COUNTS, COUNTS), (SWEEP,))

SCORE = DrafterScore(
    "eagle", "F32", "code", 0.0, 2, 0.5, 1.75, 1.125, 55.5, 0.5, 4,
    alpha=0.5, alpha_first=0.5625, gamma=0.03125, predicted=1.0625,
    speedup_range=(0.75, 1.5), speedup_ci=(1.0, 1.25),
)  # fmt: skip
LAYERWISE = LayerwiseCost(
    "llama-8B",
    "Q4_0",
    1,
    4,
    32,
    8,
    4,
    4,
    ((1, 10.5, 22.5), (2, 11.5, 24.5)),
    context_length=16,
    threads=2,
    contended=False,
)
PASS_COST = PassCost("ten layers", "Q8_0", 10, 70, 75, (2.5, 2.75))
BANDWIDTH = MemoryBandwidth(((1, 9.5), (2, 12.5)), 512.0, True)

PICK = Pick("eagle", 3, tried=False, alphas=(("ngram_simple", 0.5), ("eagle", 0.625)), purse_ms=-1.5)

OBSERVED = ObservedCounts("llama-server log", "answer 1", 259, 167, (87, 87), (88, 88), 256, 1, 3, (70, 55, 42), (0.5,))

REPEAT = PublishedRepeat("a server", "somebody#1", 46.5, 167.5, "a warm cache")
DIAGNOSIS = Diagnosis("too long", 7, "Text.", alpha=0.75, acceptance=0.5, speedup=0.75, better_k=3, better_speedup=1.25)
SHARED_PASS = SharedPass(4, 16, 12, 10, 8, 12, 0.0, 0.0625, 0.001)
LOAD_RUN = LoadRun(4, "a drafter", 3, 320, (SHARED_PASS, SHARED_PASS))

CARD_ALPHA = CardAlpha("eagle", "code", 2, 0.5, 0.5, 0.25, 0.75, kept=20, drafted=80)
CARD = MachineCard(
    "Test CPU, 2 cores",
    MACHINE,
    "Measured on 2025-11-29",
    "Tiny Q4_0",
    (CURVE,),
    {"draft_model": "Tinier"},
    (DraftPrice("eagle", 1.5, 0.5),),
    (CARD_ALPHA, CardAlpha("mtp", "", 1, 0.875, 0.875)),
    (Choice("code", "on", Setting("eagle", 2), 1.25, (1.125, 1.5)), Choice("", "off", None, None)),
)

CYCLE_SAMPLE = CycleSample(3, True, "model", 2, 1, 2, 1, 60, 4.5, 20.25, 0.125, 0.0625)
PARTS = CycleParts(4.5, 0.5, 20.25, 0.25, 0.125, -0.03125, 0.0625)
LEDGER_CELL = LedgerCell("eagle", 2, "code", 40, 1.75, 0.5, 12.5, 12.25, 12.75, (0.9375, 1.0625), PARTS, PARTS, tries=2)

PARTED = Divergence(position=9, plain_token=7, other_token=None, gap=0.125, rounding=0.25, reproduced=True)

SETTING = Setting("eagle", 2, 0.5)
TRIAL = Trial("eagle", 2, 0.5, "code", "final", 0, emitted=20, passes=10, drafted=18, kept=10, seconds=0.5)
FORECAST = Forecast("eagle", 2, 0.5, "code", ms_per_token=4.5, tokens_per_cycle=2.0)
PRICE = DraftPrice("eagle", 0.5, 0.4)
SWEEP_COSTS = SweepCosts(CURVE, (PRICE,))
TUNING = Sweep(
    MACHINE, "a model Q4_0", "racing", ("code",), (Setting("none", 0), SETTING), 48, SWEEP_COSTS, (TRIAL,), 9.5, True,
    forecasts=(FORECAST,), rerun=(dataclasses.replace(TRIAL, contended=True),),
)  # fmt: skip
CHOICE = Choice("code", "on", SETTING, 1.25, (1.2, 1.5), ties=(Setting("eagle", 3),))
HOPELESS = Hopeless("eagle", 6, ms_per_token_at_best=12.5, plain_ms=10.0)
EVERY_RECORD = [
    Trials((TRIAL, dataclasses.replace(TRIAL, repeat=1))),
    DraftPrice("eagle", 1.0, 0.5, 0.2),
    CYCLE_SAMPLE,
    CycleCosts("eagle", (CYCLE_SAMPLE, CYCLE_SAMPLE), (60, 120), True, (CYCLE_SAMPLE,), contended=True),
    PARTS,
    LEDGER_CELL,
    Ledger((LEDGER_CELL, dataclasses.replace(LEDGER_CELL, drafter="none", k=0, alpha=None, interval=None))),
    CARD_ALPHA,
    CARD,
    OBSERVED,
    ObservedCounts("vLLM log", "1", 5, 0, acceptance=0.0, mean_length=1.0, seconds=2.5, requests=None, rounded=True),
    Limits(k=4, n_min=1, p_min=0.75, room=9),
    Limits(k=4),
    Draft((1, 2), (0.5, 0.25)),
    Draft(),
    PLAIN,
    SPECULATIVE,
    Sampling(),
    Penalties(repeat=1.25, frequency=-0.5, presence=0.25, last_n=32),
    Sampling(penalties=Penalties()),
    PARTED,
    Comparison("ngram_simple", 4, 10, PARTED),
    Comparison("ngram_simple", 4, 64),
    ComparisonSet((Comparison("ngram_simple", 4, 64), Comparison("eagle", 2, 10, PARTED))),
    Rounding("Q4_0", 12, 37.5, ((1, 0.0, 0), (8, 0.25, 12)), (0.125, 2.5)),
    AcceptanceByRule("distilled", 96, (0.0, 1.0), (0.5, 0.75), (0.5, 0.25), (0.5, 0.375)),
    MODEL,
    MACHINE,
    RUN,
    dataclasses.replace(RUN, cycles=()),
    CURVE,
    DRAFT_COST,
    DraftMemory("eagle", 9_000_000, 1536.0, 2048),
    SCORE,
    DrafterScores((SCORE, dataclasses.replace(SCORE, alpha=None, alpha_first=None, speedup_ci=None)), 24),
    LAYERWISE,
    PASS_COST,
    PassCosts((PASS_COST, PASS_COST), 32, 2, False),
    BANDWIDTH,
    RunSet((RUN, RUN)),
    Rehearsal((3, 198), (Draft((198,), (0.5,)), Draft()), 2, rereads=True),
    TokenTexts({3: " the", 198: "\n"}),
    PICK,
    AdaptiveRun(RUN, (PICK, PICK)),
    Guess("01-t8", 2.0, 3.7),
    Guesses((Guess("01-t8", 2.0, 3.7), Guess("02-k11", -1.5, 0.5)), "by hand"),
    Loop(start=3, stop=40, period=4),
    LayerSet((0, 2, 3), 0.75, 384),
    TrainingStage(100, 8, (0.3, 0.2)),
    LearningCurve("eagle", (TrainingStage(100, 8, (0.3, 0.2)), TrainingStage(300, 8, (0.4, 0.3)))),
    LayerSearch("tiny.gguf", "by hand", (LayerSet((0, 2, 3), 0.75, 384), LayerSet((0, 3), 0.5, 384))),
    LayerSearch("tiny.gguf", "by hand", (), early_exits=(LayerSet((0, 1, 2), 0.5, 384), LayerSet((0, 1), 0.25, 384))),
    STUDY.runs[0],
    STUDY.ledger[0],
    PublishedCliff("m", 44.5, 79.0),
    STUDY.kernels[0],
    STUDY.bandwidth[0],
    STUDY,
    COUNTS,
    SWEEP.points[0],
    SWEEP,
    REPORTS,
    dataclasses.replace(REPORTS, repeats=(REPEAT,)),
    REPEAT,
    DIAGNOSIS,
    SHARED_PASS,
    LOAD_RUN,
    LoadSweep((LOAD_RUN, dataclasses.replace(LOAD_RUN, drafter="none", k=0, passes=()))),
    SETTING,
    TRIAL,
    FORECAST,
    PRICE,
    SWEEP_COSTS,
    TUNING,
    CHOICE,
    HOPELESS,
    Advice(MACHINE, "a model Q4_0", (CHOICE,), CHOICE, hopeless=(HOPELESS,), rerun=(TRIAL,)),
]


def saved(record: object, path: Path) -> Path:
    names = {field.name for field in dataclasses.fields(record)}
    return store.save(record, path, machine=None if names & {"machine", "provenance"} else MACHINE, recorded_on=DAY)


# --- There and back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("record", EVERY_RECORD, ids=lambda record: type(record).__name__)
def test_every_record_comes_back_as_it_was(record, tmp_path):
    path = saved(record, tmp_path / "record.json")
    assert store.load(path, type(record)) == record


def test_the_round_trips_cover_every_result_record():
    defined = {each for each in vars(records).values() if isinstance(each, type) and dataclasses.is_dataclass(each)}
    # A Context is what a drafter sees while it drafts, never a result.
    assert defined - {Context} <= {type(record) for record in EVERY_RECORD}


@pytest.mark.parametrize("record", EVERY_RECORD, ids=lambda record: type(record).__name__)
def test_the_same_record_gives_the_same_bytes(record, tmp_path):
    first = saved(record, tmp_path / "first.json")
    second = saved(store.load(first, type(record)), tmp_path / "second.json")
    assert first.read_bytes() == second.read_bytes()
    first.read_bytes().decode("utf-8")


@pytest.mark.parametrize("record", [STUDY, REPORTS, RUN, CURVE], ids=lambda record: type(record).__name__)
def test_loaded_records_are_immutable_all_the_way_down(record, tmp_path):
    def check(value):
        assert not isinstance(value, list | dict | set)
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                check(getattr(value, field.name))
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, dataclasses.fields(value)[0].name, None)
        elif isinstance(value, tuple):
            for each in value:
                check(each)
        elif hasattr(value, "values"):
            for each in value.values():
                check(each)

    check(store.load(saved(record, tmp_path / "record.json"), type(record)))


def test_the_named_pairs_of_functions(tmp_path):
    assert store.load_curve(store.save_curve(CURVE, tmp_path / "curve.json")) == CURVE
    assert store.load_run(store.save_run(RUN, tmp_path / "run.json", MACHINE)) == RUN
    assert store.load_draft_cost(store.save_draft_cost(DRAFT_COST, tmp_path / "cost.json", MACHINE)) == DRAFT_COST


def test_a_model_that_was_not_sure_of_anything_is_not_taken_for_a_look_up(tmp_path):
    """No confidences, because its first token was refused, are not the confidences that a look-up lacks."""
    unsure, look_up = (Cycle("eagle", 9, (), 0, 0, (1,), confidences) for confidences in ((), None))
    for cycles in ((unsure, unsure), (look_up, look_up), (unsure, look_up)):
        run = Run((1, 2, 3), cycles, "eagle", 3, 0, 0.5, Sampling(), 0.25)
        path = store.save(run, tmp_path / "run.json", machine=MACHINE)
        assert store.load_run(path).cycles == cycles


def test_floats_keep_six_significant_digits_and_numpy_numbers_become_plain(tmp_path):
    numpy = pytest.importorskip("numpy")
    samples = ((numpy.int64(1), numpy.float32(10.5)), (2, 1234567.891), (3, 1.23456789e-5))
    curve = dataclasses.replace(CURVE, samples=samples)
    loaded = store.load_curve(store.save_curve(curve, tmp_path / "curve.json"))
    assert loaded.samples == ((1, 10.5), (2, 1234570.0), (3, 1.23457e-5))
    assert type(loaded.samples[0][0]) is int


def test_the_cycles_of_a_run_take_one_line_each(tmp_path):
    run = dataclasses.replace(RUN, cycles=(SPECULATIVE,) * 500)
    path = store.save_run(run, tmp_path / "run.json", MACHINE)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum(line.lstrip().startswith('["draft-model", 8, [3, 4, 5]') for line in lines) == 500
    assert path.stat().st_size < 500 * 120


def test_schema_names_are_pinned():
    assert store.schema_of(CostCurve) == "specnb/cost-curve/1"
    assert store.schema_of(Run) == "specnb/run/1"
    assert store.schema_of(PublishedStudy) == "specnb/published-study/1"


# --- Provenance ---------------------------------------------------------------------------------------


def test_a_file_begins_with_its_schema_day_and_machine(tmp_path):
    document = json.loads(saved(RUN, tmp_path / "run.json").read_text(encoding="utf-8"))
    assert list(document)[:3] == ["schema", "recorded_on", "machine"]
    assert document["recorded_on"] == "2025-11-29"
    assert document["machine"]["name"] == "Test CPU"


def test_a_run_is_not_saved_without_its_machine_nor_a_curve_with_a_second_one(tmp_path):
    with pytest.raises(ValueError, match="A Run does not say where it was made"):
        store.save(RUN, tmp_path / "run.json")
    with pytest.raises(ValueError, match="A CostCurve says itself where it comes from"):
        store.save(CURVE, tmp_path / "curve.json", machine=MACHINE)
    with pytest.raises(TypeError, match=r"dataclasses of specnb\.records"):
        store.save({"k": 1}, tmp_path / "dict.json")
    assert not list(tmp_path.iterdir())


def test_a_fresh_curve_comes_back_labelled_with_day_and_machine(tmp_path):
    fresh = dataclasses.replace(CURVE, recorded="")
    path = store.save_curve(fresh, tmp_path / "curve.json", recorded_on=DAY)
    assert store.load_curve(path).recorded == "2025-11-29 on Test CPU"
    today = store.save_curve(fresh, tmp_path / "today.json")
    assert store.load_saved(today, CostCurve).recorded_on == date.today()


def test_saving_a_loaded_curve_again_keeps_its_day(tmp_path):
    first = store.save_curve(dataclasses.replace(CURVE, recorded=""), tmp_path / "first.json", recorded_on=DAY)
    again = store.save_curve(store.load_curve(first), tmp_path / "again.json")
    assert store.load_saved(again, CostCurve).recorded_on == DAY


def test_a_published_curve_saved_alone_claims_no_day(tmp_path):
    path = store.save_curve(store.load_m5_pro().curve, tmp_path / "curve.json")
    loaded = store.load_saved(path, CostCurve)
    assert loaded.recorded_on is None
    assert "Lei阅读" in loaded.recorded


def test_saved_tells_day_and_machine_of_a_run(tmp_path):
    loaded = store.load_saved(saved(RUN, tmp_path / "run.json"), Run)
    assert (loaded.recorded_on, loaded.machine) == (DAY, MACHINE)
    assert loaded.recorded == "2025-11-29 on Test CPU"


# --- Writing is all or nothing ---------------------------------------------------------------------------


def test_a_record_that_cannot_be_loaded_again_is_not_written_and_the_old_file_stays(tmp_path):
    path = saved(RUN, tmp_path / "run.json")
    before = path.read_bytes()
    with pytest.raises(store.BadRecord, match=r"run\.json was not written: prefill_s is NaN; expected a finite number"):
        store.save_run(dataclasses.replace(RUN, prefill_s=float("nan")), path, MACHINE)
    with pytest.raises(store.BadRecord, match=r"cycles\[0\]\.verify_s is -1\.0; expected 0 or more"):
        store.save_run(dataclasses.replace(RUN, cycles=(dataclasses.replace(PLAIN, verify_s=-1.0),)), path, MACHINE)
    with pytest.raises(store.BadRecord, match="lone surrogate"):
        store.save_run(dataclasses.replace(RUN, text="\ud83d"), path, MACHINE)
    with pytest.raises(store.BadRecord, match=r"facts\.thing is .*expected text"):
        store.save(dataclasses.replace(STUDY, facts={"thing": object()}), path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_a_failing_replace_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    path = saved(RUN, tmp_path / "run.json")
    before = path.read_bytes()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(store.os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        saved(dataclasses.replace(RUN, k=9), path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_missing_folders_are_made(tmp_path):
    assert saved(RUN, tmp_path / "a" / "b" / "run.json").is_file()


# --- Hostile files -----------------------------------------------------------------------------------------


def curve_file(**changes: object) -> dict[str, object]:
    document: dict[str, object] = {
        "schema": "specnb/cost-curve/1",
        "recorded_on": "2025-11-29",
        "label": "c",
        "samples": [[1, 10.5], [2, 11], [3, 12.5], [4, 13.5]],
        "context_length": 0,
        "threads": None,
        "machine": {"name": "Test CPU"},
        "seconds": 0.0,
        "drift": 0.0,
        "contended": False,
    }
    return {name: value for name, value in {**document, **changes}.items() if value is not ...}


def run_file(columns: object = None, rows: object = None, **changes: object) -> dict[str, object]:
    all_columns = "drafter context_length drafted tested kept emitted confidences draft_s verify_s sampling_s other_s"
    document: dict[str, object] = {
        "schema": "specnb/run/1",
        "recorded_on": "2025-11-29",
        "machine": {"name": "Test CPU"},
        "prompt_tokens": [1],
        "cycles": {
            "columns": all_columns.split() if columns is None else columns,
            "rows": [["d", 0, [5, 6], 2, 1, [5, 7], None, 0.1, 0.2, 0.3, 0.4]] if rows is None else rows,
        },
        "drafter": "d",
        "k": 2,
        "n_min": 0,
        "p_min": 0.0,
        "sampling": {"temperature": 0.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "seed": 1},
        "prefill_s": 0.0,
        "in_llama_s": 0.0,
    }
    return {name: value for name, value in {**document, **changes}.items() if value is not ...}


def row(**changes: object) -> list[object]:
    cells = dict(zip(run_file()["cycles"]["columns"], run_file()["cycles"]["rows"][0], strict=True))
    return list({**cells, **changes}.values())


def test_the_files_damaged_below_are_sound(tmp_path):
    path = tmp_path / "sound.json"
    path.write_text(json.dumps(curve_file()), encoding="utf-8")
    assert store.load_curve(path).median_ms == {1: 10.5, 2: 11.0, 3: 12.5, 4: 13.5}
    path.write_text(json.dumps(run_file()), encoding="utf-8")
    assert store.load_run(path).kept == 1


SAMPLES = [[1, 10.5], [2, 11], [3, 12.5]]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (curve_file(schema=...), 'schema is missing; expected "specnb/cost-curve/1"'),
        (curve_file(schema="specnb/run/1"), 'schema is "specnb/run/1"; expected "specnb/cost-curve/1"'),
        (curve_file(schema="specnb/cost-curve/2"), "written by a newer specnb: update"),
        (curve_file(schema="specnb/cost-curve/0"), "Record it again"),
        (curve_file(schema="specnb/cost-curve/²"), "Record it again"),
        (curve_file(schema="specnb/cost-curve/" + "9" * 5000), "this specnb reads"),
        (curve_file(schema=["specnb/cost-curve/1"]), 'schema is ["specnb/cost-curve/1"]; expected'),
        (curve_file(recorded_on=...), "recorded_on is missing: a recording must say when"),
        (curve_file(recorded_on=None), "recorded_on is null; expected a day"),
        (curve_file(recorded_on="yesterday"), 'recorded_on is "yesterday"; expected a day such as 2025-11-29'),
        (curve_file(recorded_on="20251129"), 'recorded_on is "20251129"'),
        (curve_file(recorded_on="2025-02-30"), 'recorded_on is "2025-02-30"'),
        (curve_file(machine=...), "machine is missing"),
        (curve_file(machine={}), "machine.name is missing"),
        (curve_file(machine={"name": "  "}), "machine.name is empty: a recording must say where"),
        (curve_file(machine="Test CPU"), 'machine is "Test CPU"; expected an object with the fields of a Machine'),
        (curve_file(machine={"name": "x", "host": "y"}), "machine.host is no field of a Machine"),
        (curve_file(machine={"name": "x", "cores": 2.0}), "machine.cores is 2.0; expected a whole number"),
        (curve_file(label=...), "label is missing; a CostCurve needs it"),
        (curve_file(label=None), "label is null; expected text"),
        (curve_file(label="\ud800"), 'label is "\\ud800", which holds half a character'),
        (curve_file(seconds=...), "seconds is missing"),
        (curve_file(seconds=-1), "seconds is -1.0; expected 0 or more"),
        (curve_file(contended=0), "contended is 0; expected true or false"),
        (curve_file(threads="2"), 'threads is "2"; expected a whole number'),
        (curve_file(threads=-2), "threads is -2; expected 0 or more"),
        (curve_file(context_length=True), "context_length is true; expected a whole number"),
        (curve_file(context_length=10**30), "context_length is a whole number of more than 64 bits"),
        (curve_file(smooth=True), "smooth is no field of a CostCurve; those are label, samples"),
        (curve_file(**{"__class__\n": 1}), '["__class__\\n"] is no field of a CostCurve'),
        (curve_file(**{"z" * 100_000: 1}), "zzz…] is no field of a CostCurve"),
        (curve_file(samples=...), "samples is missing"),
        (curve_file(samples={"1": 10.5}), 'samples is {"1": 10.5}; expected a list'),
        (curve_file(samples=[]), "holds no valid CostCurve: The cost curve 'c' holds no samples"),
        (curve_file(samples=[[0, 1.0]]), "impossible sample: N=0"),
        (curve_file(samples=[[1, 0.0]]), "impossible sample: N=1, 0.0 ms"),
        (curve_file(samples=[*SAMPLES, [4, -2.0]]), "samples[3].ms is -2.0; expected 0 or more"),
        (curve_file(samples=[*SAMPLES, [4, float("nan")]]), "samples[3].ms is NaN; expected a finite number"),
        (curve_file(samples=[*SAMPLES, [4, float("-inf")]]), "samples[3].ms is -Infinity; expected a finite"),
        (curve_file(samples=[*SAMPLES, [4, 10**400]]), "samples[3].ms is Infinity; expected a finite number"),
        (curve_file(samples=[*SAMPLES, [4, "12"]]), 'samples[3].ms is "12"; expected a number'),
        (curve_file(samples=[*SAMPLES, [4, True]]), "samples[3].ms is true; expected a number"),
        (curve_file(samples=[*SAMPLES, [4, None]]), "samples[3].ms is null; expected a number"),
        (curve_file(samples=[*SAMPLES, [4.0, 2.0]]), "samples[3].n is 4.0; expected a whole number"),
        (curve_file(samples=[*SAMPLES, [4]]), "samples[3] is [4]; expected a list of 2 values: n, ms"),
        (curve_file(samples=[*SAMPLES, [4, 5.0, 6.0]]), "samples[3] is [4, 5.0, 6.0]; expected a list of 2"),
        (curve_file(samples=[*SAMPLES, 4]), "samples[3] is 4; expected a list"),
        (curve_file(model={"name": "m"}), "model.architecture is missing; a ModelInfo needs it"),
        ([], "holds []; expected one JSON object"),
        (None, "holds null; expected one JSON object"),
        ("specnb/cost-curve/1", "expected one JSON object"),
    ],
)
def test_a_damaged_curve_is_refused_by_file_field_and_value(document, message, tmp_path):
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(store.BadRecord) as refused:
        store.load_curve(path)
    assert str(refused.value).startswith("hostile.json: ")
    assert message in str(refused.value)
    assert len(str(refused.value)) < 400
    str(refused.value).encode("utf-8")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (run_file(machine=...), "machine is missing: a recording must say where it was made"),
        (run_file(machine={"name": ""}), "machine.name is empty"),
        (run_file(prompt_tokens=[1, -2]), "prompt_tokens[1] is -2; expected 0 or more"),
        (run_file(prompt_tokens="12"), 'prompt_tokens is "12"; expected a list'),
        (run_file(sampling={"temperature": 0.0}), "sampling.top_k is missing"),
        (
            run_file(sampling={"temperature": 0.0, "top_k": 40, "top_p": 1.5, "min_p": 0.05, "seed": 1}),
            "sampling holds no valid Sampling: top_p is a probability between 0 and 1; got 1.5",
        ),
        (run_file(cycles=[]), "cycles is []; expected a table: an object with columns and rows"),
        (run_file(cycles={"rows": []}), "expected a table"),
        (run_file(columns="kept"), 'cycles.columns is "kept"; expected a list'),
        (run_file(columns=[["kept"]]), "cycles.columns[0] is"),
        (run_file(columns=["kept", "kept"]), "cycles.columns is ['kept', 'kept']".replace("'", '"')),
        (run_file(columns=["drafter", "rate"]), "cycles.columns.rate is no field of a Cycle"),
        (run_file(columns=["drafter"], rows=[]), "cycles.columns.context_length is missing; a Cycle needs it"),
        (run_file(rows={}), "cycles.rows is {}; expected a list"),
        (run_file(rows=[row(), row()[:-1]]), "cycles[1] is"),
        (run_file(rows=[row(), 7]), "cycles[1] is 7; expected a list of 11 values, one a column"),
        (run_file(rows=[row(verify_s=-0.5)]), "cycles[0].verify_s is -0.5; expected 0 or more"),
        (run_file(rows=[row(), row(verify_s=float("inf"))]), "cycles[1].verify_s is Infinity; expected a finite"),
        (run_file(rows=[row(drafted=[5, "6"])]), 'cycles[0].drafted[1] is "6"; expected a whole number'),
        (run_file(rows=[row(kept=2, tested=1)]), "cycles[0] holds no valid Cycle: 2 kept of 1 tested of 2 drafted"),
        (run_file(rows=[row(tested=3)]), "1 kept of 3 tested of 2 drafted"),
        (run_file(rows=[row(confidences=[0.5])]), "1 confidences for 2 drafted tokens"),
    ],
)
def test_a_damaged_run_is_refused_by_file_field_and_value(document, message, tmp_path):
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(store.BadRecord) as refused:
        store.load_run(path)
    assert str(refused.value).startswith("hostile.json: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not valid JSON"),
        (b'{"schema": "specnb/cost-curve/1", ', "is not valid JSON"),
        (b"{} {}", "is not valid JSON"),
        (b"\xff\xfe\x00", "is not UTF-8 text (invalid start byte at byte 0)"),
        (b"\xef\xbb\xbf{}", "is not valid JSON"),
        (b"\x80\x04\x95pickle.", "is not UTF-8 text"),
        (b'{"label": "a", "label": "b"}', 'holds the field "label" twice in one object'),
        (b"[" * 200_000, "nested too deeply"),
        (b"9" * 10_000, "is not valid JSON"),
    ],
    ids=["empty", "cut", "two", "utf-16", "bom", "pickle", "twice", "deep", "digits"],
)
def test_a_file_that_is_no_json_is_refused(content, message, tmp_path):
    path = tmp_path / "hostile.json"
    path.write_bytes(content)
    with pytest.raises(store.BadRecord) as refused:
        store.load_curve(path)
    assert str(refused.value).startswith("hostile.json: ")
    assert message in str(refused.value)


def test_a_deeply_nested_fact_is_refused(tmp_path):
    path = saved(STUDY, tmp_path / "study.json")
    deep = "[" * 900 + "]" * 900
    path.write_text(path.read_text(encoding="utf-8").replace('"list": ', f'"deep": {deep}, "list": '), encoding="utf-8")
    with pytest.raises(store.BadRecord, match="nested too deeply"):
        store.load(path, PublishedStudy)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"provenance": "Somebody, somewhere"', '"provenance": " "', "provenance is empty"),
        ('"12": 151.5', '"twelve": 151.5', 'throughput has the key "twelve"; expected whole numbers'),
        ('"12": 151.5', '"012": 151.5', 'throughput has the key "012"'),
        ('"12": 151.5', '"12": -151.5', "throughput.12 is -151.5; expected 0 or more"),
        ('"loss": -0.5', '"loss": NaN', "facts.nested.loss is NaN; expected a finite number"),
        ("[1, 2.5, null", "[1, 1e999, null", "facts.list[1] is Infinity; expected a finite number"),
    ],
)
def test_damaged_published_work_is_refused(old, new, message, tmp_path):
    path = saved(STUDY, tmp_path / "study.json")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(store.BadRecord) as refused:
        store.load(path, PublishedStudy)
    assert message in str(refused.value)


def test_a_file_above_the_limit_is_refused_unread(tmp_path, monkeypatch):
    path = saved(RUN, tmp_path / "big.json")
    monkeypatch.setattr(store, "MAX_BYTES", 1024)
    path.write_bytes(path.read_bytes() + b" " * 1024)
    with pytest.raises(store.BadRecord, match=r"big\.json: is larger than 0\.000976562 MiB"):
        store.load_run(path)


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path):
    with pytest.raises(store.BadRecord, match="is not a file"):
        store.load_curve(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no result file .*absent\.json"):
        store.load_curve(tmp_path / "absent.json")


def test_a_missing_data_folder_says_how_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "DATA", tmp_path / "data")
    with pytest.raises(FileNotFoundError, match=r"pip install -e \."):
        store.load_m5_pro()


# --- The published figures -----------------------------------------------------------------------------------


def test_the_m5_pro_staircase_is_the_articles():
    study = store.load_m5_pro()
    assert study.curve.ns == (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32)
    milliseconds = study.curve.median_ms
    assert (milliseconds[1], milliseconds[8], milliseconds[9], milliseconds[32]) == (18.15, 44.77, 78.98, 79.59)
    assert milliseconds[4] < milliseconds[3]
    assert study.rerun.median_ms == {3: 27.81, 4: 26.78, 8: 44.44, 9: 81.95}
    assert study.verify_ms[17] == 81.56
    for n, tokens_per_second in study.throughput.items():
        assert 1000 * n / tokens_per_second == pytest.approx(milliseconds[n], abs=0.006)


def test_the_m5_pro_runs_and_costs_are_the_articles():
    study = store.load_m5_pro()
    runs = {run.k: run for run in study.runs}
    assert list(runs) == [1, 2, 3, 4, 5, 7, 11, 16]
    assert runs[2].repeats == (59.9, 58.7, 56.6)
    assert (runs[11].tokens_per_second, runs[11].acceptance_rate, runs[11].speedup) == (28.2, 0.21, 0.49)
    assert study.plain_tokens_per_second == 57.6
    assert study.plain_repeats == (56.9, 57.9, 57.4, 57.8)
    assert (study.draft_ms, study.target_ms) == (2.817, 17.074)
    assert study.gamma == pytest.approx(study.facts["gamma"], abs=0.0005)
    for run in study.runs:
        assert run.tokens_per_second / study.plain_tokens_per_second == pytest.approx(run.speedup, abs=0.006)
    assert [row.k for row in study.ledger] == [1, 3, 5, 7, 11, 16]
    for line in study.ledger:
        assert line.verify_ms == study.verify_ms[line.k + 1]
        assert line.draft_ms == pytest.approx(line.k * study.draft_ms, abs=0.02)
    assert study.facts["alpha_check"]["tokens"] == 197
    assert study.facts["mrope_failure"]["n_accept"] == 1


def test_what_the_records_compute_is_what_the_article_prints():
    study = store.load_m5_pro()
    assert [cliff.model for cliff in study.cliffs] == [
        "Qwen2.5-7B Q4_K_M",
        "Qwen3.5-4B Q4_K_M",
        "Qwen3.5-0.8B Q4_K_M",
        "Qwen2.5-0.5B Q4_K_M",
    ]
    for cliff in study.cliffs:
        assert cliff.ratio == pytest.approx(study.facts["cliff_ratios_as_published"][cliff.model], abs=0.006)
    for computed, printed in zip(study.bandwidth, study.facts["bandwidth_as_published"], strict=True):
        assert computed.model == printed["model"]
        assert computed.gb_per_s == pytest.approx(printed["gb_per_s"], abs=0.1)


def test_the_field_reports_hold_curves_counts_and_sweeps():
    reports = store.load_field_reports()
    curves = {curve.machine.source: curve for curve in reports.curves}
    assert curves["ggml-org/llama.cpp#4624"].median_ms[2] == pytest.approx(1000 * 2 / 25.92, rel=1e-5)
    assert curves["ggml-org/llama.cpp#3726"].median_ms[32] == pytest.approx(1000 * 32 / 2133.05, rel=1e-5)
    assert curves["waybarrios/vllm-mlx#763"].median_ms[8] == 28.13
    assert (len(reports.counts), len(reports.summaries), len(reports.sweeps)) == (11, 6, 4)
    first = reports.counts[0]
    assert (first.cycles, first.drafted, first.kept, first.emitted) == (87, 259, 167, 256)
    assert first.tokens_per_cycle == pytest.approx(1 + sum(first.kept_by_position), abs=0.002)
    assert reports.counts[0].source == "ggml-org/llama.cpp#24536"
    summary = {row.source: row for row in reports.summaries}["ggml-org/llama.cpp#10455"]
    assert (summary.k, summary.drafted, summary.kept, summary.draft_ms) == (16, 912, 313, 10.3)
    desktop = reports.sweeps[0]
    assert [point.k for point in desktop.points] == [1, 2, 3, 4, 5, 6]
    assert (desktop.plain_tokens_per_second, desktop.points[3].tokens_per_second) == (74.8, 162.1)


def test_published_counts_add_up():
    """Emitted = cycles + kept (+ plain passes, + the first token, - what the ends of requests cut off)."""
    for counts in store.load_field_reports().counts:
        assert counts.kept <= counts.drafted <= counts.k * counts.cycles
        if counts.emitted is not None:
            surplus = counts.emitted - (counts.cycles + counts.kept + (counts.plain_passes or 0))
            assert surplus == -212 or 0 <= surplus <= 2, counts.label


# --- Every data file --------------------------------------------------------------------------------------------

RECORD_OF_SCHEMA = {
    store.schema_of(each): each
    for each in vars(records).values()
    if isinstance(each, type) and dataclasses.is_dataclass(each)
}
DATA_FILES = sorted(
    path for folder in ("published", "runs", "machines") for path in (store.DATA / folder).rglob("*.json")
)


@pytest.mark.parametrize("path", DATA_FILES, ids=lambda path: path.name)
def test_every_data_file_loads_names_its_source_and_is_laid_out_by_the_store(path, tmp_path):
    document = json.loads(path.read_text(encoding="utf-8"))
    loaded = store.load_saved(path, RECORD_OF_SCHEMA[document["schema"]])
    assert loaded.recorded.strip()
    assert loaded.recorded_on is not None or document.get("provenance") or document.get("recorded")
    record = loaded.record
    if "recorded_on" in document and hasattr(record, "recorded") and "recorded" not in document:
        record = dataclasses.replace(record, recorded="")  # the label that loading filled in
    machine = None if "provenance" in document or hasattr(record, "machine") else loaded.machine
    again = store.save(record, tmp_path / path.name, machine=machine, recorded_on=loaded.recorded_on)
    assert again.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("load", [store.load_m5_pro, store.load_field_reports])
def test_nothing_published_lacks_a_source(load):
    def check(value):
        if isinstance(value, CostCurve):
            assert value.recorded.startswith("published in ")
            assert value.machine.source
        if isinstance(value, PublishedCounts | PublishedSweep):
            assert "#" in value.source or " at " in value.source
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                check(getattr(value, field.name))
        elif isinstance(value, tuple):
            for each in value:
                check(each)

    published = load()
    assert published.provenance
    check(published)


def test_both_published_files_are_among_the_data_files():
    assert {path.name for path in DATA_FILES} >= {"m5_pro.json", "field_reports.json"}
