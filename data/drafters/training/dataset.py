"""What the drafters learn from: conversations the target wrote itself, and its hidden state at every token.

A row is 512 tokens of several turns. Every token outside repetition loops teaches, those of the user's turns too: the
target has a distribution there as well, and its states are paid for. Judged is what answers hold.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from specnb import models
from specnb.backend import Model
from specnb.prompts import HELD_OUT, PROMPTS

WORK = Path(os.environ.get("SPECNB_TRAINING") or Path(__file__).parent / "work")
"""Corpus, states and checkpoints: some gigabytes, never committed."""
TYPICAL = WORK / "typical.npy"

N_FREQUENT = 8192
LOOP_GRAM = 8
"""Tokens; a run of this many that its row has already held is taken for a loop."""
LEAST_ANSWERS = 0.25
"""A row with a smaller share of answers outside loops is dropped."""
HELD_OUT_ROWS = 96
UNFINISHED = 75
"""Exit status of a stage that stopped at its time limit (EX_TEMPFAIL); calling it again goes on."""
PROMPT_GRAM = 12
"""Tokens; nothing is learnt from a row that shares such a run with a prompt of the notebooks or the benchmark."""


@dataclass(frozen=True)
class Corpus:
    """tokens: (rows, length), uint16. learn, answers: the same shape, bool; what teaches, and of it what is judged."""

    tokens: np.ndarray
    learn: np.ndarray
    answers: np.ndarray


def repeats(row: np.ndarray, gram: int = LOOP_GRAM) -> np.ndarray:
    """Which tokens of a row end a run of ``gram`` tokens that occurred before in it. Shape (length,), bool."""
    seen: set[bytes] = set()
    found = np.zeros(len(row), dtype=bool)
    for end in range(gram, len(row) + 1):
        run = row[end - gram : end].tobytes()
        found[end - 1] = run in seen
        seen.add(run)
    return found


def load_corpus() -> Corpus:
    """All shards without the rows that are mostly loops or questions, in a fixed shuffled order.

    Shuffled, so that the states of the first thousand rows are already a fair sample.
    """
    shards = [np.load(path) for path in sorted((WORK / "corpus").glob("*.npz"))]
    if not shards:
        raise SystemExit(f"There is no corpus in {WORK / 'corpus'}; run corpus.py first.")
    tokens = np.concatenate([shard["seq"] for shard in shards])
    learn = ~np.stack([repeats(row) for row in tokens])
    answers = np.concatenate([shard["ans"] for shard in shards]) & learn
    kept = np.flatnonzero(answers.mean(axis=1) >= LEAST_ANSWERS)
    kept = np.random.default_rng(0).permutation(kept)
    tokens, learn, answers = tokens[kept], learn[kept], answers[kept]
    for mask in (learn, answers):
        mask[holds_a_prompt(tokens)] = False
    return Corpus(tokens, learn, answers)


def frequent_tokens(corpus: Corpus) -> np.ndarray:
    """The ids that the target answers with most often, ascending. Shape (N_FREQUENT,)."""
    counts = np.bincount(corpus.tokens[corpus.answers].astype(np.int64))
    return np.sort(np.argsort(-counts, kind="stable")[:N_FREQUENT])


def holds_a_prompt(tokens: np.ndarray, gram: int = PROMPT_GRAM) -> np.ndarray:
    """Which rows share a run of ``gram`` tokens with a prompt that drafters are judged by. Shape (rows,), bool."""
    runs: set[bytes] = set()
    with Model(models.embedded(), vocabulary_only=True) as vocabulary:
        for prompt in (*PROMPTS.values(), *HELD_OUT):
            ids = np.array(vocabulary.tokenize(prompt.text, add_bos=False), dtype=tokens.dtype)
            runs |= {ids[i : i + gram].tobytes() for i in range(len(ids) - gram + 1)}
    return np.array([any(row[i : i + gram].tobytes() in runs for i in range(len(row) - gram + 1)) for row in tokens])


def load_typical() -> np.ndarray:
    """The state of each of ``frequent_tokens`` that ``typical.py`` found. Shape (N_FREQUENT, n_embd), float32."""
    if not TYPICAL.exists():
        raise SystemExit(f"There are no typical states at {TYPICAL}; run typical.py first.")
    return np.load(TYPICAL)


def stop_unfinished(where: str) -> NoReturn:
    print(f"stopped after {where}; run again to go on", flush=True)
    raise SystemExit(UNFINISHED)


class States:
    """The target's post-norm hidden states, one file of bfloat16 for all rows, filled shard by shard in any order.

    They belong to one corpus: rows of a larger one stand in another order. Raises SystemExit for states of another.
    """

    def __init__(self, tokens: np.ndarray, n_embd: int) -> None:
        """tokens: the corpus's, (rows, length)."""
        self._path = WORK / "states.bf16"
        self._done = WORK / "states.done.npy"
        self._corpus = WORK / "states.corpus"
        WORK.mkdir(exist_ok=True)
        there = self._path.exists()
        self._is_done = np.load(self._done) if there and self._done.exists() else np.zeros(len(tokens), dtype=bool)
        self._claim(tokens, there)
        self._bits = np.memmap(self._path, dtype=np.int16, mode="r+" if there else "w+", shape=(*tokens.shape, n_embd))

    def _claim(self, tokens: np.ndarray, there: bool) -> None:
        """Notes whose states these are, or will be; also of those from before such notes were made."""
        digest = hashlib.sha256(f"{tokens.shape}".encode() + tokens.tobytes()).hexdigest()
        noted = self._corpus.read_text() if there and self._corpus.exists() else digest
        if noted != digest or len(self._is_done) != len(tokens):
            raise SystemExit(
                f"{self._path} holds the states of another corpus than {WORK / 'corpus'} is now. Move it, "
                f"{self._done.name} and {self._corpus.name} elsewhere and run states.py and typical.py again, or put "
                "the shards back that it was made from."
            )
        self._corpus.write_text(digest)

    def missing(self, first: int) -> np.ndarray:
        """Numbers of the rows still to be written: the held-out ones, those from ``first`` on, the others."""
        order = np.array(list(dict.fromkeys((*range(HELD_OUT_ROWS), *range(first, len(self._is_done)), *range(first)))))
        return order[~self._is_done[order]]

    @property
    def learnable(self) -> np.ndarray:
        """Numbers of the rows that are written and not held out, ascending."""
        done = np.flatnonzero(self._is_done)
        return done[done >= HELD_OUT_ROWS]

    def write(self, rows: np.ndarray, states: Tensor) -> None:
        self._bits[rows] = states.bfloat16().view(torch.int16).numpy()
        self._is_done[rows] = True
        np.save(self._done, self._is_done)

    def read(self, rows: np.ndarray) -> Tensor:
        """(len(rows), length, n_embd), bfloat16."""
        return torch.from_numpy(self._bits[rows].copy()).view(torch.bfloat16)
