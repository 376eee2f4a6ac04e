"""A llama-shaped model in torch, read from its GGUF: the frozen teacher and the layers the drafters start from.

Weights keep the GGUF's layout (rotary pairs interleaved), so that what is trained here can be
written back without permuting a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gguf import dequantize
from torch import Tensor, nn

from specnb import models

LAYER_TENSORS = (
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
)
"""The nine tensors of a llama layer, as GGUF names them."""


def fastest_product() -> torch.dtype:
    """bfloat16 where the processor multiplies it in hardware; elsewhere it is far slower than float32."""

    def seconds(form: torch.dtype) -> float:
        x, weight = torch.ones(512, 576, dtype=form), torch.ones(1536, 576, dtype=form)
        F.linear(x, weight)
        begin = time.monotonic()
        for _ in range(5):
            F.linear(x, weight)
        return time.monotonic() - begin

    return min((torch.float32, torch.bfloat16), key=seconds)


PRODUCTS = fastest_product()
"""What matrices are multiplied in."""


@dataclass(frozen=True)
class Shape:
    n_embd: int
    n_head: int
    n_head_kv: int
    n_ff: int
    n_layer: int
    epsilon: float
    rope_base: float

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head


class Weights:
    """Every tensor of a GGUF, widened to float32 when asked for."""

    def __init__(self, path: Path) -> None:
        reader = models.read_gguf(path)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

        def value(key: str) -> float:
            return reader.fields[f"llama.{key}"].contents()

        self.shape = Shape(
            n_embd=int(value("embedding_length")),
            n_head=int(value("attention.head_count")),
            n_head_kv=int(value("attention.head_count_kv")),
            n_ff=int(value("feed_forward_length")),
            n_layer=int(value("block_count")),
            epsilon=float(value("attention.layer_norm_rms_epsilon")),
            rope_base=float(value("rope.freq_base")),
        )

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[f"{name}.weight"]
        return torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype(np.float32).copy())

    def layer(self, number: int) -> dict[str, Tensor]:
        return {name: self[f"blk.{number}.{name}"] for name in LAYER_TENSORS}


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotary_tables(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each of shape (length, head_size / 2)."""
    frequency = shape.rope_base ** -(torch.arange(0, shape.head_size, 2).float() / shape.head_size)
    angle = torch.outer(torch.arange(length).float(), frequency)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary position embedding over interleaved pairs. x: (..., length, head_size)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), -1).flatten(-2)


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(queries, keys, values), each (batch, heads, length, head_size) -> the same shape as the queries."""


def causal(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)


class Layer(nn.Module):
    """One llama layer. Products run in ``PRODUCTS``, the residual stream and the norms in float32."""

    def __init__(self, shape: Shape, tensors: dict[str, Tensor]) -> None:
        super().__init__()
        self.shape = shape
        for name, tensor in tensors.items():
            self.register_parameter(name, nn.Parameter(tensor.clone()))

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend = causal) -> Tensor:
        """x: (batch, length, n_embd), float32."""
        normed = rms_norm(x, self.attn_norm, self.shape.epsilon).to(PRODUCTS)
        queries = rotate(self._heads(normed, self.attn_q), *rotary)
        keys = rotate(self._heads(normed, self.attn_k), *rotary)
        attended = attend(queries, keys, self._heads(normed, self.attn_v))
        x = x + _product(attended.transpose(1, 2).flatten(2), self.attn_output)
        normed = rms_norm(x, self.ffn_norm, self.shape.epsilon).to(PRODUCTS)
        gated = F.silu(_product(normed, self.ffn_gate)) * _product(normed, self.ffn_up)
        return x + _product(gated, self.ffn_down)

    def _heads(self, x: Tensor, weight: Tensor) -> Tensor:
        return _product(x, weight).unflatten(-1, (-1, self.shape.head_size)).transpose(1, 2)


def _product(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight.to(PRODUCTS))


class Teacher(nn.Module):
    """The whole target, frozen: tokens in, post-norm hidden states out (what llama.cpp's embeddings are)."""

    def __init__(self, weights: Weights, *, max_length: int) -> None:
        super().__init__()
        self.shape = weights.shape
        self.embedding = weights["token_embd"]
        self.output_norm = weights["output_norm"]
        self.layers = nn.ModuleList(Layer(self.shape, weights.layer(i)) for i in range(self.shape.n_layer))
        self.rotary = tuple(table.to(PRODUCTS) for table in rotary_tables(self.shape, max_length))
        self.to(torch.float32).requires_grad_(False)
        for layer in self.layers:  # products are in this format anyway; converting once saves it in every pass
            for name, tensor in layer.named_parameters():
                if tensor.dim() == 2:
                    layer.register_parameter(name, nn.Parameter(tensor.to(PRODUCTS), requires_grad=False))

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (batch, length), int64. Returns (batch, length, n_embd), float32."""
        x = F.embedding(tokens, self.embedding)
        rotary = tuple(table[: tokens.shape[1]] for table in self.rotary)
        for layer in self.layers:
            x = layer(x, rotary)
        return rms_norm(x, self.output_norm, self.shape.epsilon)
