"""Stage 2: runs the target once over the corpus and keeps its hidden states. Resumable at any row.

python data/drafters/training/states.py [--minutes 40]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from dataset import States, load_corpus, stop_unfinished
from smollm import Teacher, Weights

from specnb import models

ROWS_AT_ONCE = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=40.0)
    minutes = parser.parse_args().minutes
    corpus = load_corpus()
    n_rows, length = corpus.tokens.shape
    teacher = Teacher(Weights(models.embedded()), max_length=length)
    states = States(n_rows, length, teacher.shape.n_embd)
    begin, first = time.monotonic(), states.n_done
    print(f"{n_rows} rows of {length} tokens, {first} done", flush=True)
    for start in range(first, n_rows, ROWS_AT_ONCE):
        if time.monotonic() - begin > 60 * minutes:
            stop_unfinished(f"{start} of {n_rows} rows")
        tokens = torch.from_numpy(corpus.tokens[start : start + ROWS_AT_ONCE].astype(np.int64))
        states.write(start, teacher(tokens))
        if (start - first) % 400 == 320:
            rate = (start + ROWS_AT_ONCE - first) * length / (time.monotonic() - begin)
            print(f"{start + ROWS_AT_ONCE} rows, {rate:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
