"""Trained drafters: weights made for one target, checked against it, and joined with its own embeddings.

A shipped file is a GGUF (a format that cannot carry code) that holds what training changed and
nothing the target has already: no embeddings, no tokenizer. ``assemble`` adds those from the
reader's copy of the target, so the drafter is made locally, once, and kept with the other derived
models. The file remembers its target by a fingerprint; a head reads nothing but the states of the
model it was trained on, so any other is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from . import models
from .backend import ModelError
from .models import PairError
from .store import DATA

KINDS = ("distilled", "eagle", "medusa")
"""In the order of ``drafters.names()``."""

TRAINING = ("steps", "rows", "tokens")
"""What a file says of its training, in the order of ``Training``."""

MOST_BYTES = 2**30
"""A larger file is refused unread; the shipped ones have some megabytes."""

LEAST_LIKENESS = 0.9
"""Cosine between the sketches of a target and of the same target in another format: 0.996 for Q4_0, about 0 for
other weights."""
SKETCH_VALUES = 32

EAGLE_INPUTS = 5
"""What EAGLE's layer is fed, each as wide as a state: the state, the embedding, the typical state, two recalled ones.
"""

_TYPE = gguf.GGUFValueType
_SEAL_BYTES = 64


@dataclass(frozen=True)
class Fingerprint:
    """What tells one target from another, whatever its weight format.

    shape: (n_embd, n_layer, n_vocab). tokenizer, norms: hashes of the vocabulary and of the norm
    weights, which every format keeps in float32. sketch: the first values of one matrix a layer.
    """

    shape: tuple[int, int, int]
    tokenizer: str
    norms: str
    sketch: np.ndarray


@dataclass(frozen=True)
class Training:
    """steps: of the optimiser. rows: conversations learnt from. tokens: of their answers, outside repetition loops."""

    steps: int
    rows: int
    tokens: int


@dataclass(frozen=True)
class Weights:
    """A shipped file. longest_k: longest draft trained for (0: any). vocabulary: the target's ids of the output rows.

    digest: SHA-256 of the file, from its seal.
    """

    path: Path
    kind: str
    longest_k: int
    training: Training
    vocabulary: np.ndarray
    target: Fingerprint
    tensors: dict[str, gguf.ReaderTensor]
    digest: str

    def tensor(self, name: str) -> gguf.ReaderTensor:
        """Raises ModelError where the file has none of that name."""
        if name not in self.tensors:
            raise ModelError(
                f"{self.path.name} has no tensor {name!r}; it is of another version of this project. Fetch the file "
                "again from the repository that the code came from."
            )
        return self.tensors[name]

    def matrix(self, name: str) -> np.ndarray:
        """A tensor widened to float32."""
        tensor = self.tensor(name)
        with models.damage_named(self.path):
            return _widened(tensor, slice(None))


class Rows:
    """Rows of a matrix as a file holds it, widened when asked for; the last few hundred are kept."""

    KEPT = 512

    def __init__(self, tensor: gguf.ReaderTensor) -> None:
        self._tensor = tensor
        self._rows: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._tensor.data)

    def __call__(self, numbers: Sequence[int]) -> np.ndarray:
        """float32 of shape (len(numbers), row length)."""
        new = [number for number in dict.fromkeys(numbers) if number not in self._rows]
        if len(self._rows) + len(new) > self.KEPT:
            self._rows.clear()
            new = list(dict.fromkeys(numbers))
        if new:
            self._rows.update(zip(new, _widened(self._tensor, new), strict=True))
        return np.stack([self._rows[number] for number in numbers])


def embedding(source: Path) -> Rows:
    """The target's token embeddings: row t is token t's. Raises ModelError for a format that cannot be widened."""
    rows = Rows(_tensors(_reader(source))["token_embd.weight"])
    with models.damage_named(source):
        rows([0])
    return rows


def path_of(kind: str) -> Path:
    """Where the shipped weights of a kind are."""
    return DATA / "drafters" / f"{kind}.gguf"


def load(path: Path) -> Weights:
    """Reads shipped weights, once while the file stays as it is. A file called as a kind is has to hold that kind.

    Raises ModelError when it is missing, damaged, edited, of another version or of another kind.
    """
    if not path.is_file():
        raise ModelError(f"The trained weights {path} are missing. Fetch the file again from the project's repository.")
    return _load(path)


@models.kept_while_unchanged(len(KINDS))
def _load(path: Path) -> Weights:
    # The seal comes first: a damaged header must not be parsed, its counts may ask for any amount of memory.
    digest = _checked_seal(path)
    weights = _parsed(path, models.read_gguf(path), digest)
    if path.stem in KINDS and path.stem != weights.kind:
        raise ModelError(
            f"{path} holds the weights of the {weights.kind} drafter, not of {path.stem}: it was exchanged or renamed. "
            "Fetch the file again from the project's repository."
        )
    return weights


def _parsed(path: Path, reader: models.Reader, digest: str) -> Weights:
    try:
        kind = str(models.value(reader, "specnb.kind"))
        if kind not in KINDS:  # it becomes part of the name of a file that is written
            raise ValueError(f"its kind is {kind!r}; known are {', '.join(KINDS)}.")
        return Weights(
            path=path,
            kind=kind,
            longest_k=int(models.value(reader, "specnb.longest_k")),
            training=Training(*(int(models.value(reader, f"specnb.training.{name}")) for name in TRAINING)),
            vocabulary=np.array(list(models.value(reader, "specnb.vocabulary")), dtype=np.int64),
            target=Fingerprint(
                shape=_three_sizes(models.value(reader, "specnb.target.shape")),
                tokenizer=str(models.value(reader, "specnb.target.tokenizer")),
                norms=str(models.value(reader, "specnb.target.norms")),
                sketch=np.array(models.value(reader, "specnb.target.sketch"), dtype=np.float32),
            ),
            tensors=_tensors(reader),
            digest=digest,
        )
    except (ModelError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{path.name} holds no trained drafter: {error} Fetch the file again.") from error


def _three_sizes(values: Iterable[int]) -> tuple[int, int, int]:
    """Raises TypeError or ValueError for anything but three numbers."""
    n_embd, n_layer, n_vocab = (int(value) for value in values)
    return n_embd, n_layer, n_vocab


def publish(
    path: Path,
    values: models.Values,
    tensors: Iterable[tuple[str, np.ndarray, gguf.GGMLQuantizationType]],
    target: Path,
) -> Weights:
    """Writes, seals and checks weights beside their place, then puts them there at once.

    Never into the file that is there: a kernel that has it memory-mapped would die of a bus error.
    Raises ModelError, and leaves the old file, when what was written does not fit its target.
    """
    unfinished = path.with_suffix(".part")
    try:
        models.write_gguf(unfinished, "specnb-drafter", values, tensors)
        seal(unfinished)
        check_fits(load(unfinished), target)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return load(path)


def seal(path: Path) -> None:
    """Appends the SHA-256 of a finished file to it. Readers of GGUF ignore what follows the last tensor."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("ab") as file:
        file.write(digest.encode())


def _checked_seal(path: Path) -> str:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ModelError(
            f"{path.name} is no trained drafter: it has {size / 2**30:.1f} GiB and none has more than "
            f"{MOST_BYTES / 2**30:.1f}. Fetch the file again."
        )
    digest, left = hashlib.sha256(), max(0, size - _SEAL_BYTES)
    with path.open("rb") as file:
        while block := file.read(min(left, 1 << 20)):
            digest.update(block)
            left -= len(block)
        seal, found = file.read(_SEAL_BYTES), digest.hexdigest()
    if seal != found.encode():
        raise ModelError(
            f"{path.name} is no trained drafter as it was made: its seal does not fit, so it is incomplete or was "
            "changed. Fetch the file again."
        )
    return found


@models.kept_while_unchanged(8)
def fingerprint(source: Path) -> Fingerprint:
    """Of a llama- or qwen2-shaped target. Raises ModelError for files without the tensors it looks at."""
    with models.damage_named(source):
        return _fingerprint(source)


def _fingerprint(source: Path) -> Fingerprint:
    reader = _reader(source)
    tensors = _tensors(reader)
    architecture = str(models.value(reader, "general.architecture"))
    n_layer = int(models.value(reader, f"{architecture}.block_count"))
    norms, sketch = hashlib.sha256(), []
    try:
        for layer in range(n_layer):
            for name in ("attn_norm", "ffn_norm"):
                norms.update(_widened(tensors[f"blk.{layer}.{name}.weight"], slice(None)).tobytes())
            sketch.append(_widened(tensors[f"blk.{layer}.ffn_down.weight"], [0])[0, :SKETCH_VALUES])
        n_vocab = len(tensors["token_embd.weight"].data)
    except KeyError as missing:
        raise ModelError(
            f"{source.name} ({architecture}) has no tensor {missing}, so no trained drafter fits it."
        ) from None
    vocabulary = "\0".join(models.value(reader, "tokenizer.ggml.tokens"))
    return Fingerprint(
        shape=(int(models.value(reader, f"{architecture}.embedding_length")), n_layer, n_vocab),
        tokenizer=hashlib.sha256(vocabulary.encode("utf-8", "replace")).hexdigest()[:16],
        norms=norms.hexdigest()[:16],
        sketch=np.concatenate(sketch),
    )


def check_fits(weights: Weights, source: Path) -> None:
    """Raises PairError unless the file is the target these weights were trained on, in any weight format.

    Raises ModelError where the weights contradict themselves, whatever the target.
    """
    _check_sizes(weights)
    made_for, found = weights.target, fingerprint(source)

    def refuse(what: str, wanted: object, there: object) -> None:
        raise PairError(
            f"The {weights.kind} drafter was trained for another model than {source.name}: {what} differs (trained "
            f"for {wanted}, found {there}). It reads that model's hidden states or embeddings and nothing else; use "
            "draft_model, layer_skip or a look-up with this one."
        )

    for i, what in enumerate(("the hidden size", "the number of layers", "the vocabulary size")):
        if made_for.shape[i] != found.shape[i]:
            refuse(what, made_for.shape[i], found.shape[i])
    if made_for.tokenizer != found.tokenizer:
        refuse("the tokenizer", made_for.tokenizer, found.tokenizer)
    if made_for.norms != found.norms:
        refuse("the weights of its norms", made_for.norms, found.norms)
    norms = np.linalg.norm(made_for.sketch) * np.linalg.norm(found.sketch)
    likeness = float(made_for.sketch @ found.sketch / norms) if made_for.sketch.shape == found.sketch.shape else 0.0
    if not likeness >= LEAST_LIKENESS:  # NaN is no likeness either
        refuse("a sample of its weights", f"a likeness of at least {LEAST_LIKENESS}", f"{likeness:.2f}")


def _check_sizes(weights: Weights) -> None:
    """Raises ModelError unless ids and matrices have the sizes that the drafters will take for granted."""
    ids, path, n_vocab = weights.vocabulary, weights.path, weights.target.shape[2]
    if not len(ids):
        raise ModelError(f"{path.name} names no output tokens, so it can draft none. Fetch the file again.")
    if ids.min() < 0 or ids.max() >= n_vocab:
        raise ModelError(
            f"{path.name} names output tokens from {ids.min()} to {ids.max()}, and its target has those from 0 to "
            f"{n_vocab - 1} only. Fetch the file again."
        )
    for name, wanted in _head_shapes(weights).items():
        found = _shape(weights.tensor(name))
        if found != wanted:
            raise ModelError(
                f"{path.name} has a tensor {name!r} of shape {found} where {wanted} is needed; it is of another "
                "version of this project. Fetch the file again from the repository that the code came from."
            )


def _head_shapes(weights: Weights) -> dict[str, tuple[int, ...]]:
    """Of the matrices that numpy multiplies; llama.cpp looks at those of the layers."""
    n_embd = weights.target.shape[0]
    if weights.kind == "eagle":
        n_ids = len(weights.vocabulary)
        return {"projection.weight": (n_embd, EAGLE_INPUTS * n_embd), "typical.weight": (n_ids, n_embd)}
    if weights.kind == "medusa":
        n_heads = _shape(weights.tensor("blocks.weight"))[0]
        return {"blocks.weight": (n_heads, n_embd, n_embd)}
    return {}


def assemble(weights: Weights, source: Path) -> Path:
    """The drafter as a llama GGUF over ``weights.vocabulary``, fed by vectors; made once and kept.

    llama.cpp refuses a model without layers, so Medusa's, which is an output norm and output rows,
    gets one that adds nothing: its weights are zero.
    """
    check_fits(weights, source)
    label = f"{weights.kind}-{weights.digest[:10]}"
    return models.derived(source, label, lambda path: _write_reduced(weights, source, path))


def assemble_full(weights: Weights, source: Path) -> Path:
    """The distilled layers as an ordinary draft model with all of the target's vocabulary, for any tool; kept."""
    check_fits(weights, source)
    if weights.kind != "distilled":
        raise ModelError(f"Only a draft model makes sense alone; {weights.path.name} holds a {weights.kind} head.")
    label = f"{weights.kind}-full-{weights.digest[:10]}"
    return models.derived(source, label, lambda path: _write_full(weights, source, path))


def _write_reduced(weights: Weights, source: Path, path: Path) -> None:
    reader = _reader(source)
    there = _tensors(reader)
    with models.damage_named(source):
        rows = _widened(there.get("output.weight", there["token_embd.weight"]), weights.vocabulary)
    output = gguf.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
    layers = [
        (name, tensor.data, tensor.tensor_type)
        for name, tensor in weights.tensors.items()
        if name.startswith("blk.") or name == "output_norm.weight"
    ]
    values: models.Values = {
        key: value for key, value in models.reader_values(reader).items() if key.startswith("llama.")
    }
    if weights.kind == "medusa":
        layers += _empty_layer(weights.target.shape[0])
        values.update(_EMPTY_LAYER_SHAPE)
    values["llama.block_count"] = (_n_layer(name for name, _, _ in layers), _TYPE.UINT32)
    values["llama.vocab_size"] = (len(weights.vocabulary), _TYPE.UINT32)
    values["tokenizer.ggml.model"] = ("none", _TYPE.STRING)
    values["general.name"] = (f"{weights.kind} drafter for {source.name}", _TYPE.STRING)
    tensors = [("token_embd.weight", output, gguf.GGMLQuantizationType.Q8_0), *layers]
    models.write_gguf(path, "llama", values, tensors)


def _write_full(weights: Weights, source: Path, path: Path) -> None:
    reader = _reader(source)
    values = models.reader_values(reader)
    values["llama.block_count"] = (_n_layer(weights.tensors), _TYPE.UINT32)
    values["general.name"] = (f"distilled draft for {source.name}", _TYPE.STRING)
    kept = [tensor for tensor in reader.tensors if tensor.name in ("token_embd.weight", "output.weight")]
    tensors = [(t.name, t.data, t.tensor_type) for t in (*kept, *weights.tensors.values())]
    models.write_gguf(path, "llama", values, tensors)


_EMPTY_HEAD, _EMPTY_FFN = 32, 32
_EMPTY_LAYER_SHAPE: models.Values = {
    "llama.attention.head_count": (1, _TYPE.UINT32),
    "llama.attention.head_count_kv": (1, _TYPE.UINT32),
    "llama.attention.key_length": (_EMPTY_HEAD, _TYPE.UINT32),
    "llama.attention.value_length": (_EMPTY_HEAD, _TYPE.UINT32),
    "llama.rope.dimension_count": (_EMPTY_HEAD, _TYPE.UINT32),
    "llama.feed_forward_length": (_EMPTY_FFN, _TYPE.UINT32),
}


def _empty_layer(n_embd: int) -> list[tuple[str, np.ndarray, gguf.GGMLQuantizationType]]:
    """A layer as small as llama.cpp allows whose attention and feed-forward both add zero."""
    shapes = {
        "attn_norm": (n_embd,),
        "attn_q": (_EMPTY_HEAD, n_embd),
        "attn_k": (_EMPTY_HEAD, n_embd),
        "attn_v": (_EMPTY_HEAD, n_embd),
        "attn_output": (n_embd, _EMPTY_HEAD),
        "ffn_norm": (n_embd,),
        "ffn_gate": (_EMPTY_FFN, n_embd),
        "ffn_up": (_EMPTY_FFN, n_embd),
        "ffn_down": (n_embd, _EMPTY_FFN),
    }
    return [
        (f"blk.0.{name}.weight", np.zeros(shape, np.float32), gguf.GGMLQuantizationType.F32)
        for name, shape in shapes.items()
    ]


def _n_layer(names: Iterable[str]) -> int:
    return len({name.split(".")[1] for name in names if name.startswith("blk.")})


def _shape(tensor: gguf.ReaderTensor) -> tuple[int, ...]:
    """Of the values, slowest dimension first; ``tensor.data`` has that of the bytes."""
    return tuple(reversed(tensor.shape.tolist()))


def _tensors(reader: gguf.GGUFReader) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in reader.tensors}


def _widened(tensor: gguf.ReaderTensor, rows: object) -> np.ndarray:
    """Some rows of a tensor as float32."""
    return gguf.dequantize(tensor.data[rows], tensor.tensor_type).astype(np.float32, copy=False)


@models.kept_while_unchanged(2)
def _reader(source: Path) -> models.Reader:
    """A target's reader: parsing the header of a large vocabulary takes a second."""
    return models.read_gguf(source)
