"""Synthetic GGUF models: the shapes of llama and qwen2, random weights, a tokenizer of single bytes.

Every tensor is drawn from a seed of its own, so the same layer has the same weights in every model made here.
That makes a model without some layers one that no code under test has cut. The files are written with the
gguf package alone, for the same reason. Tensor names: gguf's constants (TENSOR_NAMES, MODEL_TENSORS).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from pathlib import Path

import gguf
import numpy as np

ARCHITECTURES = ("llama", "qwen2")

N_EMBD, N_FF, N_HEAD, N_HEAD_KV = 64, 128, 4, 2
N_HEAD_SIZE = N_EMBD // N_HEAD
N_CTX = 512


def write(path: Path, architecture: str, *, layers: Sequence[int] = range(5), idle: Collection[int] = ()) -> Path:
    """Writes a model and returns its path.

    architecture: "llama" or "qwen2"; qwen2 adds biases to queries, keys and values.
    layers: which of the endless row of random layers it has, in order; most often range(n).
    idle: layers among them that add nothing to the stream, so that leaving them out changes no logits.
    """
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(len(layers))
    writer.add_context_length(N_CTX)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, "qwen2" if architecture == "qwen2" else "gpt-2")
    writer.add_tensor("token_embd.weight", _normal("token_embd", len(_VOCABULARY), N_EMBD))
    writer.add_tensor("output_norm.weight", np.ones(N_EMBD, np.float32))
    writer.add_tensor("output.weight", _normal("output", len(_VOCABULARY), N_EMBD))
    for place, layer in enumerate(layers):
        for name, data in _layer(layer, architecture, loudness=0.0 if layer in idle else 1.0).items():
            writer.add_tensor(f"blk.{place}.{name}", data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _layer(layer: int, architecture: str, *, loudness: float) -> dict[str, np.ndarray]:
    """Tensors of one layer by name. loudness: factor on what it adds to the stream."""

    def matrix(name: str, rows: int, columns: int) -> np.ndarray:
        return _normal(f"{layer}.{name}", rows, columns) / np.float32(columns**0.5)

    n_kv = N_HEAD_KV * N_HEAD_SIZE
    tensors = {
        "attn_norm.weight": np.ones(N_EMBD, np.float32),
        "attn_q.weight": matrix("attn_q", N_EMBD, N_EMBD),
        "attn_k.weight": matrix("attn_k", n_kv, N_EMBD),
        "attn_v.weight": matrix("attn_v", n_kv, N_EMBD),
        "attn_output.weight": matrix("attn_output", N_EMBD, N_EMBD) * np.float32(loudness),
        "ffn_norm.weight": np.ones(N_EMBD, np.float32),
        "ffn_gate.weight": matrix("ffn_gate", N_FF, N_EMBD),
        "ffn_up.weight": matrix("ffn_up", N_FF, N_EMBD),
        "ffn_down.weight": matrix("ffn_down", N_EMBD, N_FF) * np.float32(loudness),
    }
    if architecture == "qwen2":
        for name, size in (("attn_q", N_EMBD), ("attn_k", n_kv), ("attn_v", n_kv)):
            tensors[f"{name}.bias"] = _normal(f"{layer}.{name}.bias", size)
    return tensors


def _normal(name: str, *shape: int) -> np.ndarray:
    """Standard normal float32, the same each time for the same name."""
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, dtype=np.float32)


def _byte_characters() -> tuple[str, ...]:
    """The character that stands for each byte in a byte-level vocabulary (GPT-2's bytes_to_unicode), by byte."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return tuple(chr(byte) if byte in printable else chr(next(spare)) for byte in range(256))


_VOCABULARY = (*_byte_characters(), "th", "<|endoftext|>")


def _add_tokenizer(writer: gguf.GGUFWriter, splits_like: str) -> None:
    """splits_like: whose rule for cutting a text into words llama.cpp applies."""
    normal, control = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splits_like)
    writer.add_token_list(_VOCABULARY)
    writer.add_token_types([*[normal] * (len(_VOCABULARY) - 1), control])
    writer.add_token_merges(["t h"])  # llama.cpp refuses a vocabulary of this kind without any
    end = len(_VOCABULARY) - 1
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)
