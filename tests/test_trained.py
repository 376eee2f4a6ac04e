"""Trained drafters' files: which target they fit, what is refused, and what is assembled from both.

Most tests use a made-up target, small enough to write in every test, and drafters made of its own
layers: those have to say what the target says.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import gguf
import numpy as np
import pytest

from specnb import models, store, trained
from specnb.backend import Model, ModelError, Session, VectorSession
from specnb.models import PairError
from specnb.records import LearningCurve
from specnb.trained import Rows, Weights

F32, F16, Q8_0 = (gguf.GGMLQuantizationType[name] for name in ("F32", "F16", "Q8_0"))
TYPE = gguf.GGUFValueType
Tensors = dict[str, np.ndarray]

N_EMBD, N_FF, N_HEAD, N_LAYER = 64, 96, 4, 2
EPSILON = 1e-5
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *(f"word{i}" for i in range(341))]
VOCABULARY = np.random.default_rng(9).permutation(len(TOKENS))[:40]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder for derived models."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECNB_CACHE", str(folder))
    return folder


def files(cache: Path) -> list[Path]:
    """Everything kept in a cache folder, whole or not."""
    return [path for path in cache.rglob("*") if path.is_file()]


def random_tensors(*, n_embd: int = N_EMBD, n_layer: int = N_LAYER, n_vocab: int = len(TOKENS)) -> Tensors:
    """Weights of a llama-shaped model, by name, each the same whatever else the model has."""
    shapes = {"token_embd": (n_vocab, n_embd), "output_norm": (n_embd,)}
    for layer in range(n_layer):
        named = {
            "attn_norm": (n_embd,),
            "attn_q": (n_embd, n_embd),
            "attn_k": (n_embd // 2, n_embd),
            "attn_v": (n_embd // 2, n_embd),
            "attn_output": (n_embd, n_embd),
            "ffn_norm": (n_embd,),
            "ffn_gate": (N_FF, n_embd),
            "ffn_up": (N_FF, n_embd),
            "ffn_down": (n_embd, N_FF),
        }
        shapes.update({f"blk.{layer}.{name}": shape for name, shape in named.items()})
    tensors = {}
    for name, shape in shapes.items():
        random = np.random.default_rng(list(name.encode()))
        values = 1 + 0.1 * random.normal(size=shape) if len(shape) == 1 else 0.3 * random.normal(size=shape)
        tensors[f"{name}.weight"] = values.astype(np.float32)
    return tensors


def write_target(path: Path, tensors: Tensors | None = None, *, tokens: Sequence[str] = TOKENS) -> Path:
    """A llama-shaped GGUF in F32 with a vocabulary that llama.cpp accepts."""
    tensors = random_tensors() if tensors is None else tensors
    n_embd = len(tensors["output_norm.weight"])
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)]  # unknown, control, byte, normal
    values: models.Values = {
        "general.file_type": (0, TYPE.UINT32),
        "llama.context_length": (256, TYPE.UINT32),
        "llama.embedding_length": (n_embd, TYPE.UINT32),
        "llama.block_count": (sum("attn_norm" in name for name in tensors), TYPE.UINT32),
        "llama.feed_forward_length": (N_FF, TYPE.UINT32),
        "llama.attention.head_count": (N_HEAD, TYPE.UINT32),
        "llama.attention.head_count_kv": (N_HEAD // 2, TYPE.UINT32),
        "llama.attention.layer_norm_rms_epsilon": (EPSILON, TYPE.FLOAT32),
        "llama.rope.dimension_count": (n_embd // N_HEAD, TYPE.UINT32),
        "llama.rope.freq_base": (10000.0, TYPE.FLOAT32),
        "tokenizer.ggml.model": ("llama", TYPE.STRING),
        "tokenizer.ggml.tokens": (list(tokens), TYPE.ARRAY),
        "tokenizer.ggml.scores": ([-float(i) for i in range(len(tokens))], TYPE.ARRAY),
        "tokenizer.ggml.token_type": (kinds, TYPE.ARRAY),
    }
    models.write_gguf(path, "llama", values, [(name, data, F32) for name, data in tensors.items()])
    return path


@pytest.fixture
def target(tmp_path) -> Path:
    return write_target(tmp_path / "target.gguf")


def shipped_values(kind: str, source: Path, vocabulary: Sequence[int], longest_k: int) -> models.Values:
    """The header of a shipped file."""
    of = trained.fingerprint(source)
    return {
        "specnb.kind": (kind, TYPE.STRING),
        "specnb.longest_k": (longest_k, TYPE.UINT32),
        **{f"specnb.training.{name}": (1, TYPE.UINT32) for name in trained.TRAINING},
        "specnb.vocabulary": ([int(token) for token in vocabulary], TYPE.ARRAY),
        "specnb.target.shape": (list(of.shape), TYPE.ARRAY),
        "specnb.target.tokenizer": (of.tokenizer, TYPE.STRING),
        "specnb.target.norms": (of.norms, TYPE.STRING),
        "specnb.target.sketch": ([float(x) for x in of.sketch], TYPE.ARRAY),
    }


def write_shipped(path: Path, values: models.Values, tensors: Tensors) -> Path:
    """A sealed file; layers' matrices in Q8_0, other matrices in F16, vectors in F32."""
    stored = []
    for name, data in tensors.items():
        if name.startswith("blk.") and data.ndim == 2:
            stored.append((name, gguf.quantize(data, Q8_0), Q8_0))
        else:
            stored.append((name, data.astype(np.float16), F16) if data.ndim > 1 else (name, data, F32))
    path.unlink(missing_ok=True)  # never written over: weights that are loaded are memory-mapped
    models.write_gguf(path, "specnb-drafter", values, stored)
    trained.seal(path)
    return path


def ship(
    source: Path, kind: str, tensors: Tensors, *, vocabulary: Sequence[int] = VOCABULARY, longest_k: int = 4
) -> Weights:
    """Weights for a target, written and loaded."""
    path = source.with_name(f"shipped-{kind}.gguf")
    return trained.load(write_shipped(path, shipped_values(kind, source, vocabulary, longest_k), tensors))


def layers_of(tensors: Tensors, keep: Sequence[int]) -> Tensors:
    """Some layers, renumbered, and the output norm: a drafter that thinks as its target does."""
    kept = {"output_norm.weight": tensors["output_norm.weight"]}
    for new, old in enumerate(keep):
        start = f"blk.{old}."
        kept.update({name.replace(start, f"blk.{new}."): data for name, data in tensors.items() if start in name})
    return kept


def medusa_tensors() -> Tensors:
    random = np.random.default_rng(4)
    return {
        "blocks.weight": random.normal(size=(3, N_EMBD, N_EMBD)).astype(np.float32),
        "output_norm.weight": (1 + 0.1 * random.normal(size=N_EMBD)).astype(np.float32),
    }


def eagle_tensors() -> Tensors:
    random = np.random.default_rng(5)
    return {
        **layers_of(random_tensors(), [1]),
        "projection.weight": random.normal(size=(N_EMBD, 5 * N_EMBD)).astype(np.float32),
        "typical.weight": random.normal(size=(len(VOCABULARY), N_EMBD)).astype(np.float32),
    }


TENSORS: Mapping[str, Callable[[], Tensors]] = {
    "distilled": lambda: layers_of(random_tensors(), [0, 1]),
    "eagle": eagle_tensors,
    "medusa": medusa_tensors,
}


def of(path: Path) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in models.read_gguf(path).tensors}


def dequantized(tensor: gguf.ReaderTensor) -> np.ndarray:
    return gguf.dequantize(tensor.data, tensor.tensor_type)


# -- what is in a file -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", trained.KINDS)
def test_a_shipped_file_holds_what_was_written(target, kind):
    tensors = TENSORS[kind]()
    weights = ship(target, kind, tensors, longest_k=5)
    assert (weights.kind, weights.longest_k, weights.path.name) == (kind, 5, f"shipped-{kind}.gguf")
    assert weights.vocabulary.tolist() == VOCABULARY.tolist()
    assert set(weights.tensors) == set(tensors)
    for name, data in tensors.items():
        read = weights.matrix(name)
        assert read.dtype == np.float32 and read.shape == data.shape
        np.testing.assert_allclose(read, data, atol=0.02)
    trained.check_fits(weights, target)


@pytest.mark.parametrize("missing", ["projection.weight", "typical.weight"])
def test_weights_of_another_version_are_refused_by_name(target, missing):
    tensors = eagle_tensors()
    del tensors[missing]
    weights = ship(target, "eagle", tensors)
    for ask in (weights.tensor, weights.matrix):
        with pytest.raises(ModelError, match=f"shipped-eagle.gguf has no tensor '{missing}'.* Fetch the file again"):
            ask(missing)


@pytest.mark.parametrize("token", [-1, len(TOKENS), 10**6])
@pytest.mark.parametrize("kind", trained.KINDS)
@pytest.mark.parametrize("use", [trained.check_fits, trained.assemble])
def test_output_tokens_that_the_target_does_not_have_are_refused(target, cache, kind, token, use):
    vocabulary = [*VOCABULARY[1:].tolist(), token]
    weights = ship(target, kind, TENSORS[kind](), vocabulary=vocabulary)
    words = rf"shipped-{kind}\.gguf names output tokens from {min(vocabulary)} to {max(vocabulary)}, .* 0 to 599 only"
    with pytest.raises(ModelError, match=words):
        use(weights, target)
    assert files(cache) == []


@pytest.mark.parametrize(
    ("kind", "name", "shape", "wanted"),
    [
        ("eagle", "projection.weight", (N_EMBD, 4 * N_EMBD), (N_EMBD, 5 * N_EMBD)),
        ("eagle", "typical.weight", (len(VOCABULARY) - 1, N_EMBD), (len(VOCABULARY), N_EMBD)),
        ("eagle", "typical.weight", (len(VOCABULARY), N_EMBD // 2), (len(VOCABULARY), N_EMBD)),
        ("medusa", "blocks.weight", (3, N_EMBD, N_EMBD // 2), (3, N_EMBD, N_EMBD)),
        ("medusa", "blocks.weight", (3, N_EMBD), (3, N_EMBD, N_EMBD)),
    ],
)
def test_matrices_of_another_size_are_refused_before_any_text(target, cache, kind, name, shape, wanted):
    weights = ship(target, kind, TENSORS[kind]() | {name: np.ones(shape, np.float32)})
    with pytest.raises(ModelError, match="another version of this project") as refused:
        trained.assemble(weights, target)
    assert f"shipped-{kind}.gguf has a tensor {name!r} of shape {shape} where {wanted}" in str(refused.value)
    assert files(cache) == []


@pytest.mark.parametrize("shape", [(N_EMBD, N_LAYER), (N_EMBD, N_LAYER, len(TOKENS), 1)])
def test_a_target_has_three_sizes(target, tmp_path, shape):
    values = shipped_values("medusa", target, VOCABULARY, 4) | {"specnb.target.shape": (list(shape), TYPE.ARRAY)}
    odd = write_shipped(tmp_path / "odd.gguf", values, medusa_tensors())
    assert "odd.gguf holds no trained drafter: " in refusal(odd)


def test_a_file_called_as_another_kind_than_it_holds_is_refused(target, tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "DATA", tmp_path)
    (tmp_path / "drafters").mkdir()
    for kind, held in (("distilled", "eagle"), ("eagle", "eagle")):
        write_shipped(trained.path_of(kind), shipped_values(held, target, VOCABULARY, 4), TENSORS[held]())
    assert trained.load(trained.path_of("eagle")).kind == "eagle"
    words = refusal(trained.path_of("distilled"))
    assert "distilled.gguf holds the weights of the eagle drafter, not of distilled" in words


def test_weights_lie_with_the_projects_data():
    assert [trained.path_of(kind).name for kind in trained.KINDS] == ["distilled.gguf", "eagle.gguf", "medusa.gguf"]
    assert {trained.path_of(kind).parent.name for kind in trained.KINDS} == {"drafters"}


@pytest.mark.parametrize(
    "path", sorted(trained.path_of("eagle").parent.glob("*.curve.json")), ids=lambda path: path.name
)
def test_a_learning_curve_ends_at_the_weights_that_ship(path):
    curve = store.load(path, LearningCurve)
    weights = trained.load(trained.path_of(curve.drafter))
    assert curve.stages[-1].steps == weights.training.steps
    assert f"{weights.training.steps} steps" in weights.path.with_suffix(".md").read_text(encoding="utf-8")


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.gguf are missing\. Fetch the file again"):
        trained.load(tmp_path / "absent.gguf")


@pytest.fixture
def shipped(target) -> Path:
    return ship(target, "medusa", medusa_tensors()).path


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as refused:
        trained.load(path)
    assert path.name in str(refused.value) and "again" in str(refused.value)
    return str(refused.value)


def test_a_truncated_file_is_refused_at_every_length(shipped, tmp_path):
    whole = shipped.read_bytes()
    first_tensor = min(tensor.data_offset for tensor in models.read_gguf(shipped).tensors)
    lengths = {0, 1, 4, 23, 24, first_tensor, first_tensor + 1, len(whole) // 2, len(whole) - 1}
    short = tmp_path / "short.gguf"
    for length in sorted(lengths | set(range(0, len(whole), 997))):
        short.write_bytes(whole[:length])
        refusal(short)


def test_a_flipped_byte_anywhere_is_refused_before_anything_is_parsed(shipped, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "read_gguf", lambda _path: pytest.fail("parsed a damaged file"))
    whole, flipped = shipped.read_bytes(), tmp_path / "flipped.gguf"
    for place in (*range(0, 400, 7), *range(400, len(whole), 991), len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        flipped.write_bytes(damaged)
        assert "flipped.gguf is no trained drafter as it was made" in refusal(flipped)


@pytest.mark.parametrize(
    "key", ["kind", "longest_k", "training.steps", "training.tokens", "vocabulary", "target.shape", "target.sketch"]
)
def test_a_file_without_a_value_is_no_trained_drafter_and_the_value_is_named(shipped, key):
    reader = models.read_gguf(shipped)
    values = models.reader_values(reader)
    del values[f"specnb.{key}"]
    edited = shipped.with_name("edited.gguf")
    models.write_gguf(edited, "specnb-drafter", values, [(t.name, t.data, t.tensor_type) for t in reader.tensors])
    trained.seal(edited)
    words = refusal(edited)
    assert "edited.gguf holds no trained drafter" in words and f"specnb.{key}" in words


def test_an_ordinary_model_is_no_trained_drafter(target):
    assert "target.gguf is no trained drafter" in refusal(target)
    trained.seal(target)
    assert "target.gguf holds no trained drafter" in refusal(target)


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    assert "no trained drafter" in refusal(text)
    trained.seal(text)
    assert "no readable GGUF" in refusal(text)


# -- shipped -----------------------------------------------------------------------------------


def published(path: Path, target: Path, vocabulary: Sequence[int]) -> Weights:
    tensors = [(name, data, F32) for name, data in medusa_tensors().items()]
    return trained.publish(path, shipped_values("medusa", target, vocabulary, 4), tensors, target)


def test_new_weights_are_put_in_place_of_old_ones_that_a_kernel_has_mapped(target, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", lambda *_: pytest.fail("written over"))  # sealing, too
    path = tmp_path / "medusa.gguf"
    before = published(path, target, VOCABULARY)
    whole = path.read_bytes()
    with path.open("rb") as of_another_process:
        after = published(path, target, VOCABULARY[:30])
        assert of_another_process.read() == whole
    assert after.path == path and after.digest == trained.load(path).digest != before.digest
    assert len(after.vocabulary) == 30
    assert {each.name for each in tmp_path.glob("medusa*")} == {"medusa.gguf"}


def test_weights_that_do_not_fit_their_target_leave_the_old_ones(target, tmp_path):
    path = tmp_path / "medusa.gguf"
    published(path, target, VOCABULARY)
    whole = path.read_bytes()
    with pytest.raises(ModelError, match="names output tokens from"):
        published(path, target, [1, 2, 10**6])
    with pytest.raises(ModelError, match="holds the weights of the medusa drafter, not of eagle"):
        published(tmp_path / "eagle.gguf", target, VOCABULARY)
    assert path.read_bytes() == whole
    assert {each.name for each in tmp_path.glob("*.*")} == {"medusa.gguf", "target.gguf"}


# -- whose target ------------------------------------------------------------------------------


def test_a_fingerprint_is_the_same_in_every_format(target, cache):
    wanted = trained.fingerprint(target)
    assert wanted.shape == (N_EMBD, N_LAYER, len(TOKENS))
    assert wanted.sketch.shape == (N_LAYER * trained.SKETCH_VALUES,)
    weights = ship(target, "medusa", medusa_tensors())
    for format in models.FORMATS:
        other = models.in_format(target, format)
        found = trained.fingerprint(other)
        assert (found.shape, found.tokenizer, found.norms) == (wanted.shape, wanted.tokenizer, wanted.norms)
        cosine = found.sketch @ wanted.sketch / np.linalg.norm(found.sketch) / np.linalg.norm(wanted.sketch)
        assert cosine > 0.98
        trained.check_fits(weights, other)


@pytest.fixture(scope="module")
def small(embedded, tmp_path_factory) -> Path:
    """Two layers of the embedded model."""
    path = tmp_path_factory.mktemp("small") / "small.gguf"
    models.write_layer_subset(models.read_gguf(embedded), [0, 29], path)
    return path


@pytest.mark.model
def test_layers_of_the_embedded_model_keep_their_fingerprint(embedded, small):
    whole, wanted = trained.fingerprint(embedded), trained.fingerprint(small)
    assert wanted.shape == (576, 2, 49152)
    assert wanted.tokenizer == whole.tokenizer and wanted.norms != whole.norms
    for format in ("F32", "Q4_0", "Q8_0"):
        found = trained.fingerprint(models.in_format(small, format))
        assert (found.shape, found.tokenizer, found.norms) == (wanted.shape, wanted.tokenizer, wanted.norms)
        cosine = found.sketch @ wanted.sketch / np.linalg.norm(found.sketch) / np.linalg.norm(wanted.sketch)
        assert cosine > 0.98


def other_targets() -> dict[str, tuple[Callable[[Path], Path], str]]:
    """What is different -> (how to write it, what the refusal says)."""
    tokens = [*TOKENS[:-1], "another"]

    def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], Path]:
        def write(path: Path) -> Path:
            tensors = random_tensors()
            tensors[name] = change(tensors[name])
            return write_target(path, tensors)

        return write

    def matrices(path: Path) -> Path:
        return write_target(path, {n: d[:, ::-1].copy() if d.ndim == 2 else d for n, d in random_tensors().items()})

    def swapped(path: Path) -> Path:
        tensors = random_tensors()
        first, second = (f"blk.{layer}.ffn_down.weight" for layer in (0, 1))
        tensors[first], tensors[second] = tensors[second], tensors[first]
        return write_target(path, tensors)

    def shape(**options: int) -> Callable[[Path], Path]:
        return lambda path: write_target(path, random_tensors(**options), tokens=TOKENS[: options.get("n_vocab", 600)])

    return {
        "hidden size": (shape(n_embd=128), r"the hidden size differs \(trained for 64, found 128\)"),
        "layers": (shape(n_layer=3), r"the number of layers differs \(trained for 2, found 3\)"),
        "vocabulary size": (shape(n_vocab=500), r"the vocabulary size differs \(trained for 600, found 500\)"),
        "tokenizer": (lambda path: write_target(path, tokens=tokens), r"the tokenizer differs \(trained for \w{16}, f"),
        "an attn_norm": (changed("blk.0.attn_norm.weight", lambda x: x * 1.001), r"the weights of its norms differs"),
        "the last ffn_norm": (
            changed("blk.1.ffn_norm.weight", lambda x: x * 1.001),
            r"the weights of its norms differs",
        ),
        "all matrices": (
            matrices,
            r"a sample of its weights differs \(trained for a likeness of at least 0\.9, found ",
        ),
        "layers' order": (swapped, r"a sample of its weights differs"),
        "one ffn_down": (changed("blk.1.ffn_down.weight", np.negative), r"a sample of its weights differs"),
    }


@pytest.mark.parametrize("difference", other_targets())
@pytest.mark.parametrize("check", [trained.check_fits, trained.assemble, trained.assemble_full])
def test_another_target_is_refused_and_the_difference_named(target, cache, tmp_path, difference, check):
    write, words = other_targets()[difference]
    other = write(tmp_path / "other.gguf")
    weights = ship(target, "distilled", TENSORS["distilled"]())
    with pytest.raises(PairError, match=words) as refused:
        check(weights, other)
    assert "The distilled drafter was trained for another model than other.gguf" in str(refused.value)
    assert "use draft_model, layer_skip or a look-up" in str(refused.value)
    assert files(cache) == []


def test_a_model_without_the_tensors_looked_at_fits_no_drafter(target, tmp_path):
    tensors = {name: data for name, data in random_tensors().items() if "blk.1.ffn_down" not in name}
    other = write_target(tmp_path / "other.gguf", tensors)
    with pytest.raises(ModelError, match=r"other\.gguf \(llama\) has no tensor 'blk\.1\.ffn_down\.weight'"):
        trained.check_fits(ship(target, "medusa", medusa_tensors()), other)


def with_unwidenable(path: Path, target: Path, name: str) -> Path:
    """The target with one matrix in Q8_1, which llama.cpp keeps for itself and gguf cannot widen."""
    reader, odd = models.read_gguf(target), gguf.GGMLQuantizationType.Q8_1
    tensors = []
    for tensor in reader.tensors:
        values, size = gguf.GGML_QUANT_SIZES[odd]
        n_bytes = int(tensor.shape[0]) // values * size
        data = np.zeros((len(tensor.data), n_bytes), np.uint8) if tensor.name == name else tensor.data
        tensors.append((tensor.name, data, odd if tensor.name == name else tensor.tensor_type))
    models.write_gguf(path, "llama", models.reader_values(reader), tensors)
    return path


def test_a_target_in_a_format_that_cannot_be_widened_is_told_wherever_it_is_widened(target, cache, tmp_path):
    words = r"odd\.gguf has weights in a format that cannot be widened .*Q8_1"
    weights = ship(target, "medusa", medusa_tensors())
    odd = with_unwidenable(tmp_path / "odd.gguf", target, "blk.0.ffn_down.weight")
    with pytest.raises(ModelError, match=words):
        trained.fingerprint(odd)
    odd = with_unwidenable(tmp_path / "odd.gguf", target, "token_embd.weight")
    for use in (trained.embedding, lambda source: trained.assemble(weights, source)):
        with pytest.raises(ModelError, match=words):
            use(odd)
    assert files(cache) == []


# -- assembled ---------------------------------------------------------------------------------


def assert_like(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal up to what eight bits for weights, and for the numbers they are multiplied by, round away."""
    assert found.shape == wanted.shape
    assert float(np.abs(found - wanted).max()) < 0.08 * float(wanted.max() - wanted.min())
    assert float(found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted)) > 0.99


def logits_of_tokens(path: Path, tokens: Sequence[int]) -> np.ndarray:
    with Model(path) as model, Session(model, n_ctx=64, threads=1) as session:
        session.extend(list(tokens))
        return session.logits(-1).copy()


def logits_of_vectors(path: Path, vectors: np.ndarray) -> np.ndarray:
    """Of every row; the vectors go in one by one."""
    with Model(path) as model, VectorSession(model, n_ctx=64, threads=1) as session:
        rows = []
        for vector in vectors:
            session.extend(vector[None])
            rows.append(session.logits(-1).copy())
        return np.array(rows)


SOME_TOKENS = (5, 300, 301, 599, 7, 5, 420)


def test_a_distilled_drafter_of_all_the_targets_layers_is_the_target(target):
    """Fed embedding rows it says what the target says of the tokens, for the tokens of its vocabulary, in its order."""
    weights = ship(target, "distilled", TENSORS["distilled"]())
    embedding = trained.embedding(target)
    found = logits_of_vectors(trained.assemble(weights, target), embedding(SOME_TOKENS))
    assert found.shape == (len(SOME_TOKENS), len(VOCABULARY))
    for n in range(1, len(SOME_TOKENS) + 1):
        assert_like(found[n - 1], logits_of_tokens(target, SOME_TOKENS[:n])[VOCABULARY])


def test_one_layer_of_the_target_opens_as_eagle(target, tmp_path):
    alone = tmp_path / "alone.gguf"
    models.write_layer_subset(models.read_gguf(target), [1], alone)
    path = trained.assemble(ship(target, "eagle", eagle_tensors()), target)
    with Model(path) as model:
        assert (model.n_layer, model.n_embd, model.n_vocab) == (1, N_EMBD, len(VOCABULARY))
    found = logits_of_vectors(path, trained.embedding(target)(SOME_TOKENS))
    assert_like(found[-1], logits_of_tokens(alone, SOME_TOKENS)[VOCABULARY])


def test_medusas_layer_adds_nothing(target):
    """Its logits are the target's rows times the normed input, whatever was fed before."""
    tensors = medusa_tensors()
    path = trained.assemble(ship(target, "medusa", tensors), target)
    vectors = (5 * np.random.default_rng(2).normal(size=(6, N_EMBD))).astype(np.float32)
    rows = random_tensors()["token_embd.weight"][VOCABULARY]
    for vector, logits in zip(vectors, logits_of_vectors(path, vectors), strict=True):
        normed = vector / np.sqrt(np.mean(vector**2) + EPSILON) * tensors["output_norm.weight"]
        assert_like(logits, rows @ normed)


def test_a_target_with_output_rows_of_its_own_lends_those(tmp_path):
    tensors = random_tensors()
    tensors["output.weight"] = tensors["token_embd.weight"][::-1].copy()
    untied = write_target(tmp_path / "untied.gguf", tensors)
    weights = ship(untied, "distilled", TENSORS["distilled"]())
    wanted = logits_of_tokens(untied, SOME_TOKENS)
    assert_like(
        logits_of_vectors(trained.assemble(weights, untied), trained.embedding(untied)(SOME_TOKENS))[-1],
        wanted[VOCABULARY],
    )
    assert_like(logits_of_tokens(trained.assemble_full(weights, untied), SOME_TOKENS), wanted)


@pytest.mark.parametrize("kind", trained.KINDS)
def test_a_drafter_is_assembled_once(target, cache, monkeypatch, kind):
    weights = ship(target, kind, TENSORS[kind]())
    first = trained.assemble(weights, target)
    monkeypatch.setattr(models, "write_gguf", lambda *_: pytest.fail("written again"))
    assert trained.assemble(weights, target) == first
    assert files(cache) == [first]


def test_other_weights_or_another_format_of_the_target_are_another_file(target, cache):
    weights = [
        ship(target, "medusa", medusa_tensors()),
        ship(target, "medusa", medusa_tensors(), vocabulary=VOCABULARY[:30]),
        ship(target, "eagle", eagle_tensors()),
    ]
    in_eight_bits = models.in_format(target, "Q8_0")
    paths = {trained.assemble(each, source) for each in weights for source in (target, in_eight_bits)}
    assert len(paths) == 6 and len(files(cache)) == 7


@pytest.mark.parametrize("format", ["F32", "Q8_0", "Q4_0"])
def test_the_full_draft_fits_the_target_and_is_it(target, format):
    source = models.in_format(target, format)
    path = trained.assemble_full(ship(target, "distilled", TENSORS["distilled"]()), source)
    with Model(source) as of_target, Model(path) as draft:
        models.check_pair(of_target, draft)
        assert draft.n_vocab == len(TOKENS) and draft.n_layer == 2
        assert draft.tokenize("word1 word2") == of_target.tokenize("word1 word2")
    kept, whole = of(path)["token_embd.weight"], of(source)["token_embd.weight"]
    assert kept.tensor_type == whole.tensor_type and (kept.data == whole.data).all()
    if format == "F32":
        assert_like(logits_of_tokens(path, SOME_TOKENS), logits_of_tokens(source, SOME_TOKENS))


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_a_head_alone_is_no_draft_model(target, cache, kind):
    with pytest.raises(ModelError, match=rf"shipped-{kind}\.gguf holds a {kind} head"):
        trained.assemble_full(ship(target, kind, TENSORS[kind]()), target)
    assert files(cache) == []


@pytest.mark.model
def test_layers_of_the_embedded_model_as_a_drafter_of_themselves(small):
    """The real tokenizer and shapes: a full draft that fits, and a reduced one that says the same."""
    tensors = {
        name: dequantized(tensor).astype(np.float32) for name, tensor in of(small).items() if "token" not in name
    }
    vocabulary = np.arange(100, 1100)
    weights = ship(small, "distilled", tensors, vocabulary=vocabulary, longest_k=0)
    full, reduced = trained.assemble_full(weights, small), trained.assemble(weights, small)
    with Model(small) as of_target, Model(full) as draft:
        models.check_pair(of_target, draft)
        tokens = of_target.tokenize("The capital of France is")
    wanted = logits_of_tokens(small, tokens)
    assert_like(logits_of_tokens(full, tokens), wanted)
    assert_like(logits_of_vectors(reduced, trained.embedding(small)(tokens))[-1], wanted[vocabulary])


# -- the target's embeddings -------------------------------------------------------------------


@pytest.mark.parametrize("format", ["F32", "Q8_0", "Q4_0"])
def test_embeddings_are_the_files_rows(target, format):
    source = models.in_format(target, format)
    rows, embedding = dequantized(of(source)["token_embd.weight"]), trained.embedding(source)
    assert len(embedding) == len(TOKENS)
    for tokens in ([3], [0, 599, 3, 3, 7], [7, 3], tuple(range(20))):
        found = embedding(tokens)
        assert found.dtype == np.float32 and found.shape == (len(tokens), N_EMBD)
        np.testing.assert_array_equal(found, rows[list(tokens)])


def test_embeddings_stay_right_when_more_are_asked_for_than_are_kept(target):
    rows, embedding = random_tensors()["token_embd.weight"], trained.embedding(target)
    random = np.random.default_rng(1)
    every = random.permutation(len(TOKENS)).tolist()
    assert len(every) > Rows.KEPT
    np.testing.assert_array_equal(embedding(every), rows[every])
    for _ in range(200):
        tokens = random.integers(len(TOKENS), size=random.integers(1, 40)).tolist()
        np.testing.assert_array_equal(embedding(tokens), rows[tokens])


def test_few_embeddings_are_kept(target):
    embedding = trained.embedding(target)
    for token in range(len(TOKENS)):
        embedding([token])
    assert 0 < len(embedding._rows) <= Rows.KEPT


def test_writing_over_a_row_changes_no_later_answer(target):
    embedding = trained.embedding(target)
    first = embedding([3, 4])
    wanted = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(embedding([3, 4]), wanted)


# -- the scripts that make them ----------------------------------------------------------------

SCRIPTS = trained.path_of("eagle").parent / "training"
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture
def script(tmp_path, monkeypatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a script that trains, with an empty folder of work. Where torch is not installed, most cannot be."""
    names = {path.stem for path in SCRIPTS.glob("*.py")}
    monkeypatch.setenv("SPECNB_TRAINING", str(tmp_path / "work"))
    monkeypatch.syspath_prepend(SCRIPTS)
    if not HAS_TORCH:  # enough of it to import dataset.py
        torch = ModuleType("torch")
        torch.Tensor = object
        monkeypatch.setitem(sys.modules, "torch", torch)
    before = set(sys.modules)
    yield importlib.import_module
    for name in names & (set(sys.modules) - before):
        del sys.modules[name]


def some_tokens(rows: int, length: int = 48) -> np.ndarray:
    return np.random.default_rng(rows).integers(len(TOKENS), size=(rows, length)).astype(np.uint16)


@pytest.mark.parametrize("noted", [True, False])
def test_states_belong_to_one_corpus_those_from_before_it_was_noted_to_the_next_that_opens_them(script, noted):
    dataset, tokens = script("dataset"), some_tokens(8)
    dataset.States(tokens, 4)
    if not noted:
        (dataset.WORK / "states.corpus").unlink()
    dataset.States(tokens, 4)
    for others in (some_tokens(9), tokens[::-1], tokens.reshape(16, -1)):
        with pytest.raises(SystemExit, match=r"states\.bf16 holds the states of another corpus .* run states\.py and"):
            dataset.States(others, 4)
    dataset.States(tokens, 4)


def test_unnoted_states_of_another_number_of_rows_are_not_taken_over(script):
    dataset = script("dataset")
    dataset.States(some_tokens(98), 4)
    (dataset.WORK / "states.corpus").unlink()
    np.save(dataset.WORK / "states.done.npy", np.ones(98, dtype=bool))
    with pytest.raises(SystemExit, match="another corpus"):
        dataset.States(some_tokens(99), 4)
    (dataset.WORK / "states.bf16").unlink()  # what remains says nothing about states to come
    assert len(dataset.States(some_tokens(99), 4).missing(0)) == 99


def test_the_script_that_makes_missing_typical_states_is_named(script):
    dataset = script("dataset")
    dataset.WORK.mkdir()
    with pytest.raises(SystemExit, match=r"no typical states at .*typical\.npy; run typical\.py first"):
        dataset.load_typical()
    np.save(dataset.TYPICAL, np.ones((2, 3)))
    assert dataset.load_typical().shape == (2, 3)


def test_only_the_same_run_goes_on_from_a_checkpoint(script, tmp_path, capsys):
    checkpoints, path = script("checkpoints"), tmp_path / "eagle.pt"

    def take_up(terms: dict[str, object]) -> Mapping | None:
        return checkpoints.take_up(path, terms, lambda of: json.loads(of.read_text()))

    terms = {"steps": 1150, "rate": 0.0015, "further": 0, "shipped": ""}
    assert take_up(terms) is None
    saved = {"step": 1150, "terms": terms}
    path.write_text(json.dumps(saved))
    assert take_up(dict(terms)) == saved and path.exists() and capsys.readouterr().out == ""

    assert take_up(terms | {"steps": 950, "further": 950}) is None
    assert json.loads((tmp_path / "eagle.1.pt").read_text()) == saved and not path.exists()
    words = capsys.readouterr().out
    assert "eagle.pt is of another run (steps 1150 there and 950 here, further 0 there and 950 here)" in words
    assert "kept as eagle.1.pt, and training begins anew" in words

    path.write_text(json.dumps({"step": 7}))  # from before terms were saved
    assert take_up(terms) is None and (tmp_path / "eagle.2.pt").exists() and (tmp_path / "eagle.1.pt").exists()
    assert "another run (it does not say of which)" in capsys.readouterr().out


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: pip install -e '.[train]'")
def test_training_goes_on_only_from_its_own_checkpoint_and_ships_it(script, target, tmp_path, monkeypatch, capsys):
    import torch

    train, export, dataset = script("train"), script("export"), script("dataset")
    monkeypatch.setattr(trained, "DATA", tmp_path)
    monkeypatch.setattr(store, "DATA", tmp_path)
    monkeypatch.setattr(models, "embedded", lambda: target)
    (tmp_path / "drafters").mkdir()
    tokens = some_tokens(dataset.HELD_OUT_ROWS + 16)
    everywhere = np.ones(tokens.shape, dtype=bool)
    for module in (train, export):
        monkeypatch.setattr(module, "load_corpus", lambda: dataset.Corpus(tokens, everywhere, everywhere))
    dataset.States(tokens, N_EMBD).write(np.arange(len(tokens)), torch.randn(*tokens.shape, N_EMBD))

    def run(module: ModuleType, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["script", "medusa", *arguments])
        module.main()
        return capsys.readouterr().out

    def steps(n: int) -> None:
        monkeypatch.setitem(train.PLANS, "medusa", replace(train.PLANS["medusa"], steps=n))

    steps(2)
    assert "from step 0 of 2" in run(train)
    assert "from step 2 of 2" in run(train)
    run(export)
    shipped = trained.load(trained.path_of("medusa"))
    assert shipped.training.steps == 2 and shipped.matrix("blocks.weight").shape == (4, N_EMBD, N_EMBD)
    words = run(train, "--further", "3")
    assert "steps 2 there and 3 here" in words and f"shipped '' there and '{shipped.digest}' here" in words
    assert "from step 0 of 3" in words and (dataset.WORK / "medusa.1.pt").exists()
    assert "from step 3 of 3" in run(train, "--further", "3")
    run(export)
    assert trained.load(trained.path_of("medusa")).training.steps == 5
    assert "from step 0 of 3" in run(train, "--further", "3")
    assert "from step 0 of 2" in run(train)
    saved = torch.load(dataset.WORK / "medusa.pt", weights_only=True)
    torch.save({key: each for key, each in saved.items() if key != "terms"}, dataset.WORK / "medusa.pt")
    run(export)  # a checkpoint from before
    assert "from step 0 of 2" in run(train)
