"""Stage 3: the typical state of each frequent token, what the target makes of it behind prefixes it has no part in.

    python data/drafters/training/typical.py

A head of one layer would have to learn from its corpus what the target expects after each of
thousands of tokens, most of which stand there a few times. The target knows; this asks it.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from dataset import HELD_OUT_ROWS, TYPICAL, Corpus, frequent_tokens, load_corpus
from smollm import Teacher, Weights, rms_norm
from torch import Tensor

from specnb import models

N_PREFIXES, PREFIX_TOKENS = 8, 64
TOKENS_AT_ONCE = 512


@torch.no_grad()
def typical_states(teacher: Teacher, tokens: np.ndarray, corpus: Corpus) -> Tensor:
    """The mean post-norm state of each of ``tokens`` behind prefixes of the corpus. (len(tokens), n_embd), float32."""
    table = torch.zeros(len(tokens), teacher.shape.n_embd)
    for row in corpus.tokens[HELD_OUT_ROWS : HELD_OUT_ROWS + N_PREFIXES]:
        prefix = torch.from_numpy(row[:PREFIX_TOKENS].astype(np.int64))
        for start in range(0, len(tokens), TOKENS_AT_ONCE):
            few = slice(start, start + TOKENS_AT_ONCE)
            table[few] += _behind(teacher, prefix, torch.from_numpy(tokens[few].astype(np.int64))) / N_PREFIXES
    return table


def _behind(teacher: Teacher, prefix: Tensor, tokens: Tensor) -> Tensor:
    """The state of each token as if it alone followed the prefix: all stand at one position and see no other."""
    n, m = len(prefix), len(tokens)
    x = F.embedding(torch.cat([prefix, tokens]), teacher.embedding)[None]
    positions = torch.cat([torch.arange(n), torch.full((m,), n)])
    rotary = tuple(table[positions] for table in teacher.rotary)
    visible = torch.ones(n + m, n + m, dtype=torch.bool).tril()
    visible[n:, n:] = torch.eye(m, dtype=torch.bool)

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=visible, enable_gqa=True)

    for layer in teacher.layers:
        x = layer(x, rotary, attend)
    return rms_norm(x, teacher.output_norm, teacher.shape.epsilon)[0, n:]


def main() -> None:
    corpus = load_corpus()
    teacher = Teacher(Weights(models.embedded()), max_length=PREFIX_TOKENS + 1)
    np.save(TYPICAL, typical_states(teacher, frequent_tokens(corpus), corpus).numpy())


if __name__ == "__main__":
    main()
