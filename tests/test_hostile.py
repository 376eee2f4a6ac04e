"""Files from strangers: refused with file and reason, whatever is in them, and nothing is written or run for them."""

from __future__ import annotations

import ast
import copy
import json
import os
import random
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import gguf
import numpy as np
import pytest
import tiny_models

from specnb import gguf_header, machine, models, notebook, store, trained, trial
from specnb.backend import Model, ModelError
from specnb.bench import hostile
from specnb.gguf_header import BadFile
from specnb.records import CostCurve, FieldReports, LayerSearch, LearningCurve, Machine, MachineCard, PublishedStudy

PACKAGE = Path(models.__file__).resolve().parent


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "inside" / "cache"
    monkeypatch.setenv("SPECNB_CACHE", str(folder))
    return folder


@pytest.fixture
def sound(tmp_path) -> Path:
    return tiny_models.write(tmp_path / "sound.gguf", "llama", layers=range(2))


# -- many damaged files ------------------------------------------------------------------------


@pytest.mark.model
def test_a_twelfth_of_the_benchmark_neither_kills_nor_hangs_nor_is_badly_told():
    figures = hostile.run(quick=True)
    assert (figures["dead_kernels"], figures["hangs"], figures["badly_told"]) == (0, 0, 0), figures["worst"]
    assert figures["refused"] + figures["opened"] == figures["files"] > 40
    assert figures["refused"] > 3 * figures["opened"] > 0


@pytest.mark.model
def test_the_benchmark_sees_a_kernel_that_dies_and_one_that_hangs(monkeypatch, tmp_path):
    monkeypatch.setattr(hostile, "LIMIT_S", 0.5)
    code = "import os, time\nfrom specnb import trial\ntrial.say(step='x')\nfor request in trial.tasks():\n    "
    for does, end in (
        ("os.abort()", "dead"),
        ("time.sleep(60)", "hung"),
        ("trial.say(found='KeyError: 1')", "badly told"),
    ):
        kernel = trial.Child([hostile.sys.executable, "-c", code + does])
        assert hostile._opened(kernel, "target", tmp_path / "a.gguf", tmp_path)[0] == end
        kernel.end()


def test_the_benchmark_opens_more_than_500_files_the_same_each_time(sound, tmp_path):
    hostile._write_model(sound)
    first, second = list(hostile.cases(sound)), list(hostile.cases(sound))
    assert len(first) >= 500 and [case.name for case in first] == [case.name for case in second]
    assert {case.how for case in first} == set(hostile.OPENINGS)
    for mine, other in list(zip(first, second, strict=True))[::40]:
        if not mine.name.startswith(("embedded", *(name for name, _ in hostile._no_files()))):
            mine.write(tmp_path / "mine"), other.write(tmp_path / "other")
            assert (tmp_path / "mine").read_bytes() == (tmp_path / "other").read_bytes()


# -- the header --------------------------------------------------------------------------------


@pytest.mark.model
def test_the_header_of_the_embedded_model_is_what_the_gguf_package_reads(embedded):
    header, reader = gguf_header.read(embedded), models.read_gguf(embedded)
    assert header.architecture == "llama" and header.version == 3
    for key, (value, kind) in models.reader_values(reader).items():
        if kind == gguf.GGUFValueType.ARRAY:
            assert header.lengths[key] == len(value)
        else:
            assert header.values[key] == value
    assert [(t.name, t.start, t.type) for t in header.tensors] == [
        (t.name, t.data_offset, t.tensor_type) for t in reader.tensors
    ]


def with_number(path: Path, at: int, layout: str, number: int) -> None:
    whole = bytearray(path.read_bytes())
    struct.pack_into(layout, whole, at, number)
    path.write_bytes(whole)


@pytest.mark.parametrize(
    ("at", "layout", "number", "reason"),
    [
        (0, "<I", 0, "begins with b'\\\\x00"),
        (4, "<I", 1, "its version is 1"),
        (4, "<I", 0x03000000, "its version is 50331648"),
        (8, "<Q", 2**63, "announces 9223372036854775808 tensors"),
        (16, "<Q", 2**64 - 1, "announces 18446744073709551615 values"),
        (24, "<Q", 2**40, "a key is 1099511627776 bytes long"),
    ],
)
def test_counts_that_no_file_can_hold_are_named(sound, at, layout, number, reason):
    with_number(sound, at, layout, number)
    with pytest.raises(BadFile, match=rf"sound\.gguf is no readable GGUF file: .*{reason}"):
        gguf_header.read(sound)


def test_a_list_without_end_is_refused_without_memory(sound):
    place = sound.read_bytes().index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens")
    before = machine.resident_mib()
    for number in (2**24, 2**33, 2**63):
        with_number(sound, place + 8, "<Q", number)
        for opened in (gguf_header.read, models.read_gguf, Model):
            with pytest.raises((BadFile, ModelError), match=r"'tokenizer\.ggml\.tokens' is a list of"):
                opened(sound)
    with sound.open("r+b") as file:  # a sparse file has room for it
        file.truncate(2**40)
    with_number_in_place(sound, place, 0, 2**36)
    with pytest.raises(BadFile, match=r"'tokenizer\.ggml\.tokens' is a list of 68719476736"):
        gguf_header.read(sound)
    assert machine.resident_mib() - before < 50


def with_number_in_place(path: Path, at: int, kind: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(struct.pack("<IIQ", 9, kind, length))


def test_a_cut_anywhere_is_refused(sound):
    whole = sound.read_bytes()
    order = random.Random(0)
    for length in [*range(0, 200), *order.sample(range(len(whole)), 200), len(whole) - 1]:
        sound.write_bytes(whole[:length])
        with pytest.raises(BadFile, match=r"sound\.gguf is no readable GGUF file: "):
            gguf_header.read(sound)


@pytest.mark.parametrize("make", [name for name, _ in hostile._no_files() if name not in ("device", "absent")])
def test_what_is_no_file_is_refused_at_once(make, tmp_path):
    path = tmp_path / f"{make}.gguf"
    dict(hostile._no_files())[make](path)
    began = time.monotonic()
    for opened in (gguf_header.read, Model, models.read_gguf, models.resolve, trained.load):
        try:
            opened(path if opened is not models.resolve else str(path))
        except (BadFile, ModelError) as refused:
            assert path.name in str(refused)
        else:
            assert opened is models.resolve and path.is_file()  # it only finds files
    assert time.monotonic() - began < 5


@pytest.mark.model
def test_the_gguf_package_sees_nothing_that_has_not_survived_a_trial(sound, cache, monkeypatch):
    monkeypatch.setattr(models, "Reader", lambda _path: pytest.fail("parsed"))
    monkeypatch.setattr(trial, "try_model", lambda _path: trial.Trial(False, "it died"))
    for use in (lambda: models.layer_subset(sound, (0,)), lambda: models.in_format(sound, "Q8_0")):
        with pytest.raises(ModelError, match=r"sound\.gguf was tried in a process of its own: it died"):
            use()


def test_an_alignment_of_its_own_is_kept(sound, tmp_path):
    reader = models.read_gguf(sound)
    values = models.reader_values(reader) | {"general.alignment": (128, gguf.GGUFValueType.UINT32)}
    aligned = tmp_path / "aligned.gguf"
    models.write_gguf(aligned, "llama", values, [(t.name, t.data, t.tensor_type) for t in reader.tensors])
    again = models.read_gguf(aligned)
    assert all(tensor.data_offset % 128 == 0 for tensor in again.tensors)
    for before, after in zip(reader.tensors, again.tensors, strict=True):
        np.testing.assert_array_equal(before.data, after.data)
    subset = tmp_path / "subset.gguf"
    models.write_layer_subset(again, [1], subset)
    with Model(subset) as model:
        assert model.n_layer == 1 and model.metadata("general.alignment") == "128"


def test_a_model_without_tokenizer_or_ending_token_ends_no_process(tmp_path):
    path = tmp_path / "mute.gguf"
    kind = gguf.GGUFValueType
    nothing: models.Values = {"tokenizer.ggml.model": ("no_vocab", kind.STRING), "llama.vocab_size": (98, kind.UINT32)}
    hostile._write_model(path, nothing)
    with Model(path) as model:
        assert model.text([1, 2]) == "" and model.token_text(1) == ""
        for speak in (model.tokenize, model.chat_prompt):
            with pytest.raises(ModelError, match=r"mute\.gguf has no tokenizer"):
                speak("Hello.")
    hostile._write_model(path)
    with Model(path) as model:
        assert model.token_text(-1) == "" == model.token_text(model.n_vocab)


@pytest.mark.parametrize("template", ["{{ 1 // 0 }}", "{% for %}", "{{ raise_exception('no') }}"])
def test_a_chat_template_that_fails_is_told_with_its_file(tmp_path, template):
    path = tmp_path / "chatty.gguf"
    hostile._write_model(path, {"tokenizer.chat_template": (template, gguf.GGUFValueType.STRING)})
    with Model(path) as model, pytest.raises(ModelError, match=r"The chat template of chatty\.gguf cannot be used: "):
        model.chat_prompt("Hello.")


# -- nothing is written elsewhere, nothing is run ----------------------------------------------


@pytest.mark.parametrize("kind", ["../../../outside", "/tmp/outside", "medusa/../../outside", ""])
def test_the_kind_of_a_drafter_cannot_lead_out_of_the_cache(tmp_path, cache, kind):
    path = tmp_path / "drafter.gguf"
    models.write_gguf(
        path,
        "specnb-drafter",
        {"specnb.kind": (kind, gguf.GGUFValueType.STRING)},
        [("output_norm.weight", np.ones(8, np.float32), gguf.GGMLQuantizationType.F32)],
    )
    trained.seal(path)
    with pytest.raises(ModelError, match=r"drafter\.gguf holds no trained drafter: its kind is"):
        trained.load(path)


def test_what_is_derived_lies_in_the_cache_whatever_a_file_is_called(cache, sound, monkeypatch):
    monkeypatch.setattr(trial, "try_model", lambda _path: trial.Trial(True, "fine"))
    for name in ("..gguf", "x" * 250, "%2e%2e%2f.gguf", "a;b $(touch c).gguf", "-rf.gguf", "ü🙂.gguf"):
        path = sound.with_name(name)
        path.write_bytes(sound.read_bytes())
        made = models.layer_subset(path, (0,))
        assert cache in made.resolve().parents and made.is_file()
    assert {path.name for path in sound.parent.iterdir() if path.is_dir()} == {"inside"}


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/b", "..", "a\\b", "", "a\0b"])
def test_a_recording_cannot_be_called_anything_that_leads_out_of_its_folder(name):
    with pytest.raises(ValueError, match="name"):
        notebook.Notebook("01", lab=None).measure(name, CostCurve, lambda _lab: None)


FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}


def test_nothing_in_the_package_can_run_what_a_file_holds():
    """No unpickling, no eval or exec, no arrays of objects."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.partition(".")[0] for alias in node.names} | {getattr(node, "module", None)}
                assert not names & FORBIDDEN, where
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
                owner = getattr(getattr(node.func, "value", None), "id", "")
                assert called not in ("eval", "exec") or owner, where
                assert (owner, called) not in (("np", "load"), ("numpy", "load"), ("torch", "load")), where


# -- result files ------------------------------------------------------------------------------

STRANGE = [
    None, True, -1, 0, 10**30, 1e308, "", "x" * 10_000, "\ud800", "../../etc/passwd", "<img src=x onerror=alert(1)>",
    [], {}, [[]], {"a": 1}, [None], {"columns": [], "rows": []}, {"columns": ["n"], "rows": [[1, 2]]},
]  # fmt: skip


def documents(tmp_path: Path) -> list[tuple[type, object]]:
    """A record of each kind that lies in data/, a curve, and a card of its machine."""
    curve = CostCurve("toy", ((1, 2.0), (2, 3.0)), 8, 1, Machine("a machine"))
    path = store.save_curve(curve, tmp_path / "curve.json", recorded_on=date(2025, 1, 1))
    made = replace(curve, recorded="2025-01-01 on a machine")
    card = MachineCard(label="a machine", machine=made.machine, provenance="made up", target="toy", staircases=(made,))
    named = {
        CostCurve: path,
        MachineCard: store.save(card, tmp_path / "card.json"),
        PublishedStudy: store.DATA / "published" / "m5_pro.json",
        FieldReports: store.DATA / "published" / "field_reports.json",
        LayerSearch: store.DATA / "drafters" / "layer_sets.json",
        LearningCurve: store.DATA / "drafters" / "eagle.curve.json",
    }
    return [(kind, json.loads(path.read_text(encoding="utf-8"))) for kind, path in named.items()]


def spoilt(document: object, order: random.Random) -> object:
    """The document with one value, found by a random walk, replaced, removed or doubled."""
    changed = copy.deepcopy(document)
    place, key = changed, None
    while isinstance(place, dict | list) and place and (key is None or order.random() < 0.8):
        parent, key = place, order.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = parent[key]
    deed = order.randrange(4)
    if deed == 0:
        del parent[key]
    elif deed == 1 and isinstance(parent, dict):
        parent[order.choice(["schema", "machine", "__class__", "x" * 500])] = place
    else:
        parent[key] = order.choice(STRANGE)
    return changed


def test_result_files_are_loaded_or_refused_by_name_and_nothing_else(tmp_path):
    order, refused = random.Random(4), 0
    path = tmp_path / "result.json"
    kinds = documents(tmp_path)
    for i in range(500):
        kind, document = kinds[i % len(kinds)]
        path.write_text(json.dumps(spoilt(document, order)), encoding="utf-8")
        try:
            store.load_saved(path, kind)
        except store.BadRecord as error:
            refused += 1
            assert "result.json: " in str(error) and len(str(error)) < 3000
    assert refused > 250
    assert {p.name for p in tmp_path.iterdir()} == {"card.json", "curve.json", "result.json"}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[" * 200_000, b'{"a":' * 50_000, b"\xff\xfe", b"null", b"1e999999", b"9" * 6000, b"NaN",
        b'{"schema": NaN}', b'{"schema": "specnb/cost-curve/1", "schema": 1}', b"\0" * 1000, b"-" * 1000,
        b'{"schema": "specnb/cost-curve/' + b"9" * 5000 + b'"}',
    ],
)  # fmt: skip
def test_text_that_is_no_record_is_refused_by_name(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(store.BadRecord, match=r"result\.json: "):
        store.load(path, CostCurve)


def test_result_files_that_are_no_files_are_refused_at_once(tmp_path):
    makers: dict[str, Callable[[Path], object]] = {
        "folder": Path.mkdir,
        "loop": lambda path: path.symlink_to(path.name),
    }
    if hasattr(os, "mkfifo"):
        makers["pipe"] = os.mkfifo
    for name, make in makers.items():
        path = tmp_path / f"{name}.json"
        make(path)
        with pytest.raises((store.BadRecord, FileNotFoundError), match=path.name):
            store.load(path, CostCurve)
