"""Stage 2: runs the target once over the corpus and keeps its hidden states. Resumable at any row.

python data/drafters/training/states.py [--minutes 40] [--first ROW]

With ``--first`` it takes the rows from that one on before the others: rows that no stage of
training has seen are worth more to the next one.
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
    parser.add_argument("--first", type=int, default=0, metavar="ROW")
    arguments = parser.parse_args()
    corpus = load_corpus()
    n_rows, length = corpus.tokens.shape
    teacher = Teacher(Weights(models.embedded()), max_length=length)
    states = States(corpus.tokens, teacher.shape.n_embd)
    missing, begin = states.missing(arguments.first), time.monotonic()
    print(f"{n_rows} rows of {length} tokens, {n_rows - len(missing)} done", flush=True)
    for start in range(0, len(missing), ROWS_AT_ONCE):
        if time.monotonic() - begin > 60 * arguments.minutes:
            stop_unfinished(f"{n_rows - len(missing) + start} of {n_rows} rows")
        rows = missing[start : start + ROWS_AT_ONCE]
        states.write(rows, teacher(torch.from_numpy(corpus.tokens[rows].astype(np.int64))))
        if start % 400 == 320:
            rate = (start + ROWS_AT_ONCE) * length / (time.monotonic() - begin)
            print(f"{n_rows - len(missing) + start + ROWS_AT_ONCE} rows, {rate:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
