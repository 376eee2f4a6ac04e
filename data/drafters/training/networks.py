"""The three drafters that are trained, each as a torch module that predicts hidden states the target's rows can read.

All of them end in the target's own embedding rows (SmolLM2 ties its output to them), which stay
frozen: a prediction is a state, and its logits are that state's products with the rows.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from smollm import PRODUCTS, Layer, Teacher, Weights, causal, rms_norm, rotary_tables
from torch import Tensor, nn

DISTILLED_LAYERS = (0, 1, 2, 29)
"""Where the draft's layers start from: the first three read the text, the last one writes states."""
EAGLE_LAYER = 29
EAGLE_STEPS = 6
RECALLED = (1, 2)
"""Tokens that must be the same for a state to be recalled; one state for each length."""
MEDUSA_HEADS = 4


class Distilled(nn.Module):
    """A draft model of a few layers over the target's token embeddings."""

    def __init__(self, weights: Weights, length: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(weights.shape, weights.layer(i)) for i in DISTILLED_LAYERS)
        self.output_norm = nn.Parameter(weights["output_norm"])
        self.rotary = _rotary(weights, length)

    def forward(self, tokens: Tensor, embedded: Tensor, states: Tensor) -> list[Tensor]:
        """embedded, states: (batch, length, n_embd). One prediction of ``states`` from the tokens alone."""
        x = embedded
        for layer in self.layers:
            x = layer(x, self.rotary)
        return [rms_norm(x, self.output_norm, self.layers[0].shape.epsilon)]


class Eagle(nn.Module):
    """One layer over what is known of a token and the next; predicts the state at the next token.

    Known are the state at the token, and of the next token its embedding, its typical state (see
    ``typical.py``) and what is recalled: the states at the last places where the target read it, and
    where it read both tokens one after the other, if it did.

    Unrolled over its own predictions while training (EAGLE-3's training-time test, arXiv 2503.01840),
    so that it learns to live with them.
    """

    def __init__(self, weights: Weights, length: int, stream_scale: float, frequent: Tensor, typical: Tensor) -> None:
        """frequent: ids of some tokens. typical: their states, (len(frequent), n_embd); others' count as zero."""
        super().__init__()
        n = weights.shape.n_embd
        self.layer = Layer(weights.shape, weights.layer(EAGLE_LAYER))
        norm, embedding = weights["output_norm"], weights["token_embd"]
        # The layer was made for the stream before the final norm, which is some hundred times larger than an
        # embedding. Undo the norm and enlarge the embedding, so that all parts speak at the stream's volume.
        undo_norm = stream_scale * norm.sign() / norm.abs().clamp(min=0.1 * float(norm.abs().median()))
        enlarge = torch.full((n,), stream_scale / float(embedding.pow(2).mean().sqrt()))
        self.register_buffer("input_scale", torch.cat([undo_norm, enlarge, *[undo_norm] * (1 + len(RECALLED))]))
        # Little of the embedding at first: what passes straight through the layer would be drafted again.
        others = torch.zeros(n, len(self.input_scale) - 2 * n)
        self.mixing = nn.Parameter(torch.cat([torch.eye(n), 0.05 * torch.eye(n), others], dim=1))
        self.output_norm = nn.Parameter(norm.clone())
        self.register_buffer("typical", typical)
        row_of = torch.full((len(embedding),), len(frequent))
        row_of[frequent] = torch.arange(len(frequent))
        self.register_buffer("row_of", row_of, persistent=False)
        self.rotary = _rotary(weights, length)
        self.n_steps = EAGLE_STEPS

    @property
    def projection(self) -> Tensor:
        """From (state, embedding, typical state, recalled states) to the layer's input. Shape (n_embd, 5 n_embd)."""
        return self.mixing * self.input_scale

    def forward(self, tokens: Tensor, embedded: Tensor, states: Tensor) -> list[Tensor]:
        """Entry s, at position p: the prediction of ``states[p + 1]`` whose last s inputs were its own predictions.

        tokens: (batch, length). The first step is made for every row, the later ones for the first
        quarter of them: a draft whose first token is refused has no later ones, so the first
        deserves most of the work. Position p reads ``states[p]`` and token p + 1; the last position
        has no next token and wraps around to the first: nothing may be learnt there, nor at the
        first s positions.
        """
        typical = F.pad(self.typical, (0, 0, 0, 1))[self.row_of[tokens]]
        known = torch.cat([embedded, typical], -1).roll(-1, dims=1)
        recalls = [Recall(tokens, gram) for gram in RECALLED]
        attend = UnrolledAttention()
        predictions: list[Tensor] = []
        features = states
        for step in range(self.n_steps):
            if step == 1:
                quarter = (len(states) + 3) // 4
                features, known = features[:quarter], known[:quarter]
            recalled = [recall(states, step)[: len(features)] for recall in recalls]
            inputs = torch.cat([features, known, *recalled], -1)
            x = F.linear(inputs.to(PRODUCTS), self.projection.to(PRODUCTS)).float()
            x = self.layer(x, self.rotary, attend)
            predictions.append(rms_norm(x, self.output_norm, self.layer.shape.epsilon))
            features = shifted(predictions[-1], 1)
        return predictions


class Recall:
    """Where the last tokens were read before, as far as the target's states go when a draft reaches them."""

    def __init__(self, tokens: Tensor, gram: int) -> None:
        """tokens: (batch, length). gram: how many tokens must be the same."""
        before = np.full(tokens.shape, -1)
        for row, ids in enumerate(tokens.tolist()):
            last: dict[tuple[int, ...], int] = {}
            for position in range(gram - 1, len(ids)):
                read = tuple(ids[position + 1 - gram : position + 1])
                before[row, position] = last.get(read, -1)
                last[read] = position
        self._before = torch.from_numpy(before)

    def __call__(self, states: Tensor, step: int) -> Tensor:
        """At position p: the state where the tokens up to p + 1 stood last, at most at p - step; zeros for none."""
        rows, length = self._before.shape
        place = self._before.roll(-1, dims=1)
        latest = torch.arange(length) - step
        for _ in range(step):  # each of the places after p - step may hold the tokens
            place = torch.where(place > latest, self._before.gather(1, place.clamp(min=0)), place)
        place[:, -1] = -1
        recalled = states[torch.arange(rows)[:, None], place.clamp(min=0)]
        return recalled * (place >= 0)[..., None]


class UnrolledAttention:
    """Attention of the s-th unrolled step: real keys up to s positions back, and after them the steps' own keys.

    It is what the drafter sees at run time: a cache of real entries, then the entries of its draft.
    """

    def __init__(self) -> None:
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        group = queries.shape[1] // keys.shape[1]
        self._keys.append(keys.repeat_interleave(group, dim=1))
        self._values.append(values.repeat_interleave(group, dim=1))
        step, length = len(self._keys) - 1, queries.shape[2]
        if step == 0:
            return causal(queries, keys, values)
        rows = len(queries)  # later steps may be made for fewer rows
        self._keys[0], self._values[0] = self._keys[0][:rows], self._values[0][:rows]
        scale = queries.shape[-1] ** -0.5
        real = scale * queries @ self._keys[0].transpose(-1, -2)
        visible = torch.ones(length, length, dtype=torch.bool).tril(-step)
        real = real.masked_fill(~visible, -torch.inf)
        own = [scale * (queries * shifted(self._keys[j], step - j, dim=2)).sum(-1) for j in range(1, step + 1)]
        weights = torch.cat([real, torch.stack(own, dim=-1)], dim=-1).softmax(dim=-1, dtype=torch.float32).to(PRODUCTS)
        attended = weights[..., :length] @ self._values[0]
        for j in range(1, step + 1):
            attended = attended + weights[..., length + j - 1, None] * shifted(self._values[j], step - j, dim=2)
        return attended


class Medusa(nn.Module):
    """Residual blocks over one state: head j predicts the state j + 1 tokens on (Medusa-1, arXiv 2401.10774)."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        n = weights.shape.n_embd
        self.blocks = nn.Parameter(torch.zeros(MEDUSA_HEADS, n, n))
        self.output_norm = nn.Parameter(torch.ones(n))
        self._epsilon = weights.shape.epsilon

    def forward(self, tokens: Tensor, embedded: Tensor, states: Tensor) -> list[Tensor]:
        """Entry j, at position p: the prediction of ``states[p + 1 + j]`` from ``states[p]`` alone."""
        state = states.to(PRODUCTS)
        hidden = [F.silu(F.linear(state, block.to(PRODUCTS))).float() for block in self.blocks]
        return [rms_norm(states + each, self.output_norm, self._epsilon) for each in hidden]


def shifted(x: Tensor, n: int, *, dim: int = 1) -> Tensor:
    """What stood n places earlier along ``dim``; zeros where nothing did."""
    if n == 0:
        return x
    kept = x.narrow(dim, 0, x.shape[dim] - n)
    return torch.cat([torch.zeros_like(x.narrow(dim, 0, n)), kept], dim=dim)


def stream_scale(teacher: Teacher, tokens: Tensor) -> float:
    """Mean root-mean-square of the stream before the final norm: what that norm divided by."""
    seen: list[Tensor] = []
    hook = teacher.layers[-1].register_forward_hook(lambda _module, _inputs, x: seen.append(x))
    teacher(tokens)
    hook.remove()
    return float(seen[0].pow(2).mean(-1).sqrt().mean())


def _rotary(weights: Weights, length: int) -> tuple[Tensor, Tensor]:
    cosines, sines = rotary_tables(weights.shape, length)
    return cosines.to(PRODUCTS), sines.to(PRODUCTS)
