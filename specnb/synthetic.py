"""Models of a named shape with random weights: what a pass costs, without a download.

What a pass costs depends on the shapes and types of the tensors and not on their values. So a file
with the dimensions of a published model and random weights has that model's cost staircase, and a
few of its layers tell what one more layer costs. It has no tokenizer and writes no text.

Which type each tensor gets in a weight format, and the bytes that the type's blocks are made of,
come from llama.cpp itself: it quantises a miniature that has the model's header, tensor names and
layer count (on which its choice depends) but only a few columns and rows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from pathlib import Path

import gguf
import numpy as np

from . import backend, gguf_header, machine, models
from .backend import ModelError

_KIND = gguf.GGUFValueType
_F32 = gguf.GGMLQuantizationType.F32

CONTEXT_LENGTH = 4096
MOST_LAYERS = 512
"""LLAMA_MAX_LAYERS of llama.cpp (src/llama-hparams.h), which ends the process where a file has more."""

_NARROW = 32

_SPREAD = 0.02
"""Standard deviation of the weights, GPT-2's at the start of training; keeps the stream finite at every width."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of a llama or qwen2 model.

    n_ff: feed-forward width. n_head, n_head_kv: attention heads, and those of keys and values.
    head_size: columns of one head. tied: the output matrix is the embedding matrix.
    """

    name: str
    architecture: str
    n_layer: int
    n_embd: int
    n_ff: int
    n_head: int
    n_head_kv: int
    head_size: int
    n_vocab: int
    tied: bool
    rope_base: float

    def __post_init__(self) -> None:
        if self.architecture not in ("llama", "qwen2"):
            raise ValueError(f"A synthetic model is llama or qwen2; {self.architecture!r} is not built.")
        sizes = (self.n_layer, self.n_embd, self.n_ff, self.n_head, self.n_head_kv, self.head_size, self.n_vocab)
        if min(sizes) < 1 or self.n_head % self.n_head_kv or self.n_layer > MOST_LAYERS:
            raise ValueError(f"The shape {self.name!r} has impossible dimensions: {sizes}.")

    @property
    def n_parameters(self) -> int:
        """All weights, a tied matrix once."""
        return sum(rows * columns for rows, columns in self.tensors().values())

    def tensors(self) -> dict[str, tuple[int, int]]:
        """Name -> (rows, columns) of every tensor, in the order of a file; a vector has 1 row.

        Names and order as in llama.cpp (src/llama-arch.cpp) and gguf's constants.
        """
        shapes = {"token_embd.weight": (self.n_vocab, self.n_embd), "output_norm.weight": (1, self.n_embd)}
        if not self.tied:
            shapes["output.weight"] = (self.n_vocab, self.n_embd)
        for layer in range(self.n_layer):
            shapes |= {f"blk.{layer}.{name}": size for name, size in self._layer().items()}
        return shapes

    def _layer(self) -> dict[str, tuple[int, int]]:
        queries, keys = self.n_head * self.head_size, self.n_head_kv * self.head_size
        shapes = {
            "attn_norm.weight": (1, self.n_embd),
            "attn_q.weight": (queries, self.n_embd),
            "attn_k.weight": (keys, self.n_embd),
            "attn_v.weight": (keys, self.n_embd),
            "attn_output.weight": (self.n_embd, queries),
            "ffn_norm.weight": (1, self.n_embd),
            "ffn_gate.weight": (self.n_ff, self.n_embd),
            "ffn_up.weight": (self.n_ff, self.n_embd),
            "ffn_down.weight": (self.n_embd, self.n_ff),
        }
        if self.architecture == "qwen2":
            shapes |= {"attn_q.bias": (1, queries), "attn_k.bias": (1, keys), "attn_v.bias": (1, keys)}
        return shapes


def _named(*shapes: Shape) -> dict[str, Shape]:
    return {shape.name: shape for shape in shapes}


# Dimensions from the config.json of each repository on the Hugging Face hub, in the order
# num_hidden_layers, hidden_size, intermediate_size, num_attention_heads, num_key_value_heads,
# head size (hidden_size / heads unless head_dim says otherwise), vocab_size, tie_word_embeddings, rope_theta.
SHAPES = _named(
    # Qwen/Qwen2.5-0.5B-Instruct
    Shape("qwen2-0.5B", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, True, 1e6),
    # Qwen/Qwen2.5-1.5B-Instruct
    Shape("qwen2-1.5B", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, True, 1e6),
    # Qwen/Qwen2.5-3B-Instruct
    Shape("qwen2-3B", "qwen2", 36, 2048, 11008, 16, 2, 128, 151936, True, 1e6),
    # Qwen/Qwen2.5-7B-Instruct
    Shape("qwen2-7B", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, False, 1e6),
    # Qwen/Qwen2.5-14B-Instruct
    Shape("qwen2-14B", "qwen2", 48, 5120, 13824, 40, 8, 128, 152064, False, 1e6),
    # HuggingFaceTB/SmolLM2-135M-Instruct, the embedded model
    Shape("llama-135M", "llama", 30, 576, 1536, 9, 3, 64, 49152, True, 1e5),
    # meta-llama/Llama-3.2-1B-Instruct
    Shape("llama-1B", "llama", 16, 2048, 8192, 32, 8, 64, 128256, True, 5e5),
    # meta-llama/Llama-3.2-3B-Instruct
    Shape("llama-3B", "llama", 28, 3072, 8192, 24, 8, 128, 128256, True, 5e5),
    # meta-llama/Llama-2-7b-hf
    Shape("llama-7B", "llama", 32, 4096, 11008, 32, 32, 128, 32000, False, 1e4),
    # meta-llama/Llama-3.1-8B-Instruct
    Shape("llama-8B", "llama", 32, 4096, 14336, 32, 8, 128, 128256, False, 5e5),
    # meta-llama/Llama-3.1-70B-Instruct
    Shape("llama-70B", "llama", 80, 8192, 28672, 64, 8, 128, 128256, False, 5e5),
)


def shape_named(name: str) -> Shape:
    """A published shape. Raises ModelError naming those there are."""
    if name not in SHAPES:
        raise ModelError(f"There is no shape {name!r}; there are {', '.join(SHAPES)}.")
    return SHAPES[name]


def hollow(shape: Shape) -> Shape:
    """As many layers of the same kind, but hardly any weights: what is left of a pass is its fixed cost.

    The same operations in the same order, on the narrowest matrices that llama.cpp takes. What grows with the width
    (norms, attention, sampling over the vocabulary) is as good as gone as well, so it is the least fixed cost there is.
    """
    return replace(
        shape,
        name=f"{shape.name} hollow",
        n_embd=_NARROW,
        n_ff=_NARROW,
        n_head=1,
        n_head_kv=1,
        head_size=_NARROW,
        n_vocab=_NARROW,
        tied=True,
    )


def shape_of(path: Path) -> Shape:
    """The shape of a model file, for a copy of it with random weights. Raises ModelError for other architectures."""
    try:
        header = gguf_header.read(path)

        def number(key: str, *default: float) -> float:
            return float(header.values.get(f"{header.architecture}.{key}", *default) or 0)

        rows = {tensor.name: tensor.shape[-1] for tensor in header.tensors}
        n_embd, n_head = number("embedding_length"), number("attention.head_count")
        return Shape(
            name=backend.name_without_format(path),
            architecture=header.architecture,
            n_layer=int(number("block_count")),
            n_embd=int(n_embd),
            n_ff=int(number("feed_forward_length")),
            n_head=int(n_head),
            n_head_kv=int(number("attention.head_count_kv", n_head)),
            head_size=int(number("attention.key_length", n_embd / max(1.0, n_head))),
            n_vocab=rows["token_embd.weight"],
            tied="output.weight" not in rows,
            rope_base=number("rope.freq_base", 1e4),
        )
    except (KeyError, ValueError) as error:
        raise ModelError(f"No synthetic copy of {path.name} can be made: {error}") from error


# --- what a format makes of a shape -------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A shape in a weight format. types: the type of each tensor. blocks: some bytes of each type's blocks.

    file_type: llama.cpp's number for the format.
    """

    shape: Shape
    format: str
    file_type: int
    types: dict[str, gguf.GGMLQuantizationType]
    blocks: dict[gguf.GGMLQuantizationType, np.ndarray]

    def tensor_bytes(self) -> dict[str, int]:
        """Name -> bytes of each tensor of the whole model."""
        return {
            name: rows * _row_bytes(columns, self.types[name]) for name, (rows, columns) in self.shape.tensors().items()
        }

    @property
    def weight_bytes(self) -> int:
        """Of all tensors, what llama.cpp prints as the model's size."""
        return sum(self.tensor_bytes().values())

    @property
    def bytes_per_pass(self) -> int:
        """What a pass over one token reads: everything, but of an untied embedding matrix a single row."""
        sizes = self.tensor_bytes()
        return sum(sizes.values()) - (0 if self.shape.tied else sizes["token_embd.weight"])

    def layer_bytes(self) -> list[int]:
        """Bytes of each layer; they differ where a format gives some layers more bits."""
        sizes = [0] * self.shape.n_layer
        for name, size in self.tensor_bytes().items():
            if name.startswith("blk."):
                sizes[int(name.split(".")[1])] += size
        return sizes

    @property
    def head_bytes(self) -> int:
        """Bytes of what is no layer: embedding and output."""
        return self.weight_bytes - sum(self.layer_bytes())


@lru_cache(maxsize=32)
def plan(shape: Shape, format: str) -> Plan:
    """What llama.cpp makes of a shape in any of its weight formats; ModelError for a format it does not have."""
    with tempfile.TemporaryDirectory() as folder:
        plain, quantised = Path(folder) / "miniature.gguf", Path(folder) / "quantised.gguf"
        random = np.random.default_rng(0)
        tensors = [
            (name, random.normal(0.0, _SPREAD, size).astype(np.float32), _F32)
            for name, size in _miniature(shape).items()
        ]
        models.write_gguf(plain, shape.architecture, _values(shape, gguf.LlamaFileType.ALL_F32), tensors)
        backend.quantize(plain, quantised, format, threads=machine.usable_cores())
        reader = models.read_gguf(quantised)
        types, samples = {}, {}
        for tensor in reader.tensors:
            types[tensor.name] = tensor.tensor_type
            if len(tensor.shape) > 1:
                samples.setdefault(tensor.tensor_type, []).append(np.array(tensor.data).view(np.uint8).ravel())
        file_type = int(models.value(reader, "general.file_type"))
    return Plan(shape, format, file_type, types, {kind: np.concatenate(parts) for kind, parts in samples.items()})


def _miniature(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Tensor sizes from which llama.cpp chooses as from the real ones.

    Besides name, layer and header it looks at the columns only: whether whole blocks of 256, or of
    32, fit into a row. Vectors stay float32 in every format.
    """
    return {
        name: (columns,) if rows == 1 else (32, 256 if columns % 256 == 0 else 32 if columns % 32 == 0 else columns)
        for name, (rows, columns) in shape.tensors().items()
    }


def _row_bytes(columns: int, kind: gguf.GGMLQuantizationType) -> int:
    block, size = gguf.GGML_QUANT_SIZES[kind]
    return columns // block * size


def bytes_per_pass(path: Path) -> int:
    """Weights that a pass over one token reads from a model file: as ``Plan.bytes_per_pass``, for any file.

    Raises ``gguf_header.BadFile`` for what is no model file.
    """
    sizes = {
        tensor.name: prod(tensor.shape[1:]) * _row_bytes(tensor.shape[0], gguf.GGMLQuantizationType(tensor.type))
        for tensor in gguf_header.read(path).tensors
    }
    return sum(sizes.values()) - (sizes["token_embd.weight"] if "output.weight" in sizes else 0)


# --- files ----------------------------------------------------------------------------------------


def layers_within(plan: Plan, budget_bytes: float, *, most: int = 4) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(few, many): the layers of two models that fit into a budget together, so that both can be timed side by side.

    All layers and a fifth of them where that fits; else the first-to-last spread of 1 and of up to
    ``most``. Raises ModelError with the least budget that would do.
    """
    sizes, head, n_layer = plan.layer_bytes(), plan.head_bytes, plan.shape.n_layer

    def together(few: int, many: int) -> int:
        return 2 * head + sum(sizes[i] for part in _spread(sizes, few, many) for i in part)

    whole = (max(1, n_layer // 5), n_layer)
    choices = [whole] if n_layer > 1 else []
    choices += [(1, many) for many in range(min(most, n_layer), 1, -1)]
    for few, many in choices:
        if together(few, many) <= budget_bytes:
            return _spread(sizes, few, many)
    least = together(1, 2) if n_layer > 1 else 2 * (head + sizes[0])
    raise ModelError(
        f"Even two layers of {plan.shape.name} in {plan.format}, and one beside them, need {least / 2**30:.2f} GiB; "
        f"the budget is {budget_bytes / 2**30:.2f} GiB. Give a larger budget_gib, or choose a smaller format."
    )


def _spread(sizes: Sequence[int], few: int, many: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(few, many) layers, the few among the many; those added have the mean size of all as nearly as a pick can.

    Layers sorted by size are sampled evenly: in a format that gives half of them more bits, half of the added
    ones have more bits, so what they add in time is the mean of all layers.
    """
    ordered = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    chosen = [ordered[int((j + 0.5) * len(ordered) / few)] for j in range(few)]
    rest = [i for i in ordered if i not in chosen]
    added = [rest[int((j + 0.5) * len(rest) / (many - few))] for j in range(many - few)]
    return tuple(sorted(chosen)), tuple(sorted(chosen + added))


@contextmanager
def model_file(plan: Plan, layers: Sequence[int] | None = None) -> Iterator[Path]:
    """A GGUF of some of the plan's layers (all unless given), removed at the end of the block.

    It lies in the cache folder and is as large as its weights; nothing is kept, because writing it
    again takes no longer than reading it. Raises ModelError where the disk has no room for it.
    """
    kept = tuple(range(plan.shape.n_layer)) if layers is None else tuple(layers)
    with models.scratch("synthetic") as place:
        sizes = plan.layer_bytes()
        needed, free = plan.head_bytes + sum(sizes[i] for i in kept), shutil.disk_usage(place).free
        if needed > free:
            raise ModelError(
                f"{len(kept)} layers of {plan.shape.name} in {plan.format} need {needed / 2**30:.2f} GiB on disk for "
                f"the time of the measurement; the cache folder has {free / 2**30:.2f} GiB left. Make room, name "
                "another folder in SPECNB_CACHE, or give a smaller budget_gib."
            )
        path = place / f"{plan.shape.name}-{plan.format}.gguf"
        _write(plan, kept, path)
        yield path


def _write(plan: Plan, layers: Sequence[int], path: Path) -> None:
    whole = plan.shape.tensors()
    renumbered = {name: name for name in whole if not name.startswith("blk.")}
    for new, old in enumerate(layers):
        renumbered |= {f"blk.{new}.{name.split('.', 2)[2]}": name for name in whole if name.startswith(f"blk.{old}.")}
    # Tensors of one size and type share one array until they are written.
    drawn: dict[tuple[int, int, gguf.GGMLQuantizationType], np.ndarray] = {}
    tensors = []
    for new, old in renumbered.items():
        (rows, columns), kind = whole[old], plan.types[old]
        if rows == 1:
            data = np.ones(columns, np.float32) if new.endswith("norm.weight") else np.zeros(columns, np.float32)
        elif (rows, columns, kind) in drawn:
            data = drawn[rows, columns, kind]
        else:
            data = np.resize(plan.blocks[kind], (rows, _row_bytes(columns, kind)))
            drawn[rows, columns, kind] = data
        tensors.append((new, data, kind))
    shape = replace(plan.shape, n_layer=len(layers))
    models.write_gguf(path, shape.architecture, _values(shape, plan.file_type), tensors)


def _values(shape: Shape, file_type: int) -> models.Values:
    """The header. The vocabulary has a size and no words: tokenizer model "none"."""
    prefix = shape.architecture
    whole = {
        "block_count": shape.n_layer,
        "context_length": CONTEXT_LENGTH,
        "embedding_length": shape.n_embd,
        "feed_forward_length": shape.n_ff,
        "attention.head_count": shape.n_head,
        "attention.head_count_kv": shape.n_head_kv,
        "attention.key_length": shape.head_size,
        "attention.value_length": shape.head_size,
        "rope.dimension_count": shape.head_size,
        "vocab_size": shape.n_vocab,
    }
    values: models.Values = {f"{prefix}.{key}": (number, _KIND.UINT32) for key, number in whole.items()}
    values[f"{prefix}.attention.layer_norm_rms_epsilon"] = (1e-5, _KIND.FLOAT32)
    values[f"{prefix}.rope.freq_base"] = (shape.rope_base, _KIND.FLOAT32)
    values["general.name"] = (f"{shape.name} with random weights", _KIND.STRING)
    values["general.file_type"] = (int(file_type), _KIND.UINT32)
    values["tokenizer.ggml.model"] = ("none", _KIND.STRING)
    return values
