"""Stage 1: the target writes its own conversations, both sides of them. Resumable shard by shard.

    python data/drafters/training/corpus.py [--shards 16] [--minutes 40]

Every row of a shard is one long conversation. A user turn is sampled, most of the time after an
opening that sets its kind, so that there is code, rewriting and extraction among the chat; the
answer is greedy in even rows and sampled at T = 0.8 in odd ones. A drafter is judged on both.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from dataset import WORK, stop_unfinished
from smollm import PRODUCTS, Teacher, Weights, rms_norm
from torch import Tensor

from specnb import models
from specnb.backend import Model

ROWS, LENGTH = 384, 512
CANDIDATES = 50
ASKING_TEMPERATURE, ANSWERING_TEMPERATURE = 1.0, 0.8
TURN_TOKENS = (12, 90)
LONGEST_ANSWER = 350
WITHOUT_OPENING = 0.5

OPENINGS = (
    "Write a Python function that",
    "Write a JavaScript function to",
    "Write a shell script that",
    "Write an SQL query for",
    "Write a test for this function:\n```python\n",
    "What does this code do?\n```python\n",
    "Find the mistake in this code:\n```python\n",
    "Comment this code:\n```python\n",
    "Make this text more formal:\n",
    "Shorten this paragraph:\n",
    "Correct the mistakes in this text:\n",
    "Copy this text exactly:\n",
    "Summarise this text:\n",
    "List the people and dates in this text:\n",
    "What are the main points of this article?\n",
    "Make a table of",
    "Turn this into JSON:\n",
    "Translate into Spanish:",
    "Translate into French:",
    "How does",
    "Why do",
    "How can I",
    "Who was",
    "What is meant by",
    "What is the difference between",
    "Compare",
    "Explain, for an engineer,",
    "Describe",
    "Give me five ideas for",
    "Give me the steps to",
    "Plan",
    "Write an email that",
    "Write a letter to",
    "Write a poem about",
    "Tell a story about",
    "Write a conversation between",
    "Write an advertisement for",
    "Finish this sentence:",
    "Solve this problem:",
)


@dataclass
class Conversation:
    """What one row does next: spell out what is laid down, ask, or answer."""

    model: Model
    choice: random.Random
    laid_down: deque[int] = field(default_factory=deque)
    answering: bool = False
    n_left: int = 0

    def __post_init__(self) -> None:
        self._end = self.model.tokenize("<|im_end|>", add_bos=False)[0]
        self._starts = self.model.tokenize("<|im_start|>", add_bos=False)[0]
        template = self.model.chat_prompt("?")
        question = self.model.tokenize("?", add_bos=False)[0]
        at = len(template) - 1 - template[::-1].index(question)
        self._before, self._after = template[:at], template[at + 1 :]
        self._ask(self._before)

    def next(self, wanted: int) -> tuple[int, bool]:
        """(the token to append, whether it belongs to an answer), given the token the model wants."""
        if self.laid_down:
            return self.laid_down.popleft(), False
        self.n_left -= 1
        over = wanted in (self._end, self._starts) or self.n_left <= 0
        if not over:
            return wanted, self.answering
        if self.answering:
            user_turn = self._before[self._last_start() :]
            self._ask((*self.model.tokenize("\n", add_bos=False), *user_turn))
            self.answering = False
            return self._end, True
        self.laid_down.extend(self._after)
        self.answering, self.n_left = True, LONGEST_ANSWER
        return self.laid_down.popleft(), False

    def _ask(self, before: tuple[int, ...]) -> None:
        opening = "" if self.choice.random() < WITHOUT_OPENING else self.choice.choice(OPENINGS)
        self.laid_down.extend((*before, *(self.model.tokenize(opening, add_bos=False) if opening else ())))
        self.n_left = self.choice.randint(*TURN_TOKENS)

    def _last_start(self) -> int:
        """Where the user's turn begins in the template (a system turn may stand before it)."""
        return len(self._before) - 1 - self._before[::-1].index(self._starts)


class Cache:
    """Keys and values of one layer for rows that grow together."""

    def __init__(self, teacher: Teacher, rows: int, length: int) -> None:
        shape = (rows, teacher.shape.n_head_kv, length, teacher.shape.head_size)
        self._keys, self._values = torch.zeros(shape, dtype=PRODUCTS), torch.zeros(shape, dtype=PRODUCTS)
        self._n = 0

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        self._keys[:, :, self._n : self._n + 1], self._values[:, :, self._n : self._n + 1] = keys, values
        self._n += 1
        seen = slice(0, self._n)
        return F.scaled_dot_product_attention(
            queries, self._keys[:, :, seen], self._values[:, :, seen], enable_gqa=True
        )


@torch.no_grad()
def write_shard(teacher: Teacher, model: Model, seed: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, whether each belongs to an answer), both of shape (rows, length)."""
    torch.manual_seed(seed)
    conversations = [Conversation(model, random.Random(f"{seed} {row}")) for row in range(rows)]
    caches = [Cache(teacher, rows, length) for _ in teacher.layers]
    rows_out = teacher.embedding.to(PRODUCTS)
    greedy = torch.arange(rows) % 2 == 0
    tokens, answers = np.zeros((rows, length), np.uint16), np.zeros((rows, length), bool)
    wanted = torch.zeros(rows, dtype=torch.int64)
    for position in range(length):
        chosen = [talk.next(int(token)) for talk, token in zip(conversations, wanted, strict=True)]
        tokens[:, position] = [token for token, _ in chosen]
        answers[:, position] = [mine for _, mine in chosen]
        x = F.embedding(torch.from_numpy(tokens[:, position : position + 1].astype(np.int64)), teacher.embedding)
        rotary = tuple(table[position : position + 1] for table in teacher.rotary)
        for layer, cache in zip(teacher.layers, caches, strict=True):
            x = layer(x, rotary, cache)
        state = rms_norm(x[:, 0], teacher.output_norm, teacher.shape.epsilon).to(PRODUCTS)
        best, ids = F.linear(state, rows_out).float().topk(CANDIDATES)
        answering = torch.tensor([talk.answering for talk in conversations])
        temperature = torch.where(answering, ANSWERING_TEMPERATURE, ASKING_TEMPERATURE)[:, None]
        drawn = ids.gather(1, torch.multinomial((best / temperature).softmax(-1), 1))[:, 0]
        wanted = torch.where(answering & greedy, ids[:, 0], drawn)
    return tokens, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--length", type=int, default=LENGTH)
    arguments = parser.parse_args()
    folder = WORK / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(Weights(models.embedded()), max_length=arguments.length)
    begin = time.monotonic()
    with Model(models.embedded(), vocabulary_only=True) as model:
        for seed in range(arguments.shards):
            path = folder / f"{seed:03}.npz"
            if path.exists():
                continue
            if time.monotonic() - begin > 60 * arguments.minutes:
                stop_unfinished(f"{seed} of {arguments.shards} shards")
            start = time.monotonic()
            tokens, answers = write_shard(teacher, model, seed, arguments.rows, arguments.length)
            unfinished = path.with_suffix(".part.npz")
            np.savez_compressed(unfinished, seq=tokens, ans=answers)
            unfinished.rename(path)
            print(f"{path.name}: {tokens.size / (time.monotonic() - start):.0f} tokens/s, {answers.mean():.0%} answers")


if __name__ == "__main__":
    main()
