"""Stage 4: trains one drafter on the target's states. Resumable: a checkpoint every few minutes.

    python data/drafters/training/train.py eagle|distilled|medusa [--minutes 40] [--further STEPS]

With ``--further`` it starts from the weights that ship, not from the target's layers. Only the same run is resumed:
the checkpoint of another plan, or of other weights to begin with, is kept under another name.

The loss is half the cross-entropy with the target's distribution and half that with its greedy
choice, because exact-match verification of greedy text asks for nothing but the choice.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from checkpoints import Terms, take_up
from dataset import HELD_OUT_ROWS, WORK, Corpus, States, frequent_tokens, load_corpus, load_typical, stop_unfinished
from networks import EAGLE_STEPS, MEDUSA_HEADS, Distilled, Eagle, Medusa, stream_scale
from smollm import PRODUCTS, Teacher, Weights
from torch import Tensor, nn

from specnb import machine, models, store, trained
from specnb.records import LearningCurve, TrainingStage

ROWS_AT_ONCE = 8
POSITIONS_AT_ONCE = 2560
FULL_VOCABULARY_POSITIONS = 128
FIRST_LEARNT = 8
"""Positions at a row's start that teach nothing: an unrolled step has no predictions to read at the first of them."""
WARM_UP_STEPS = 40
FURTHER_RATE = 0.6
"""Of the highest learning rate: what has been learnt is not to be shaken out again."""
FEATURE_WEIGHT = 0.1
CHECKPOINT_SECONDS, REPORT_SECONDS = 240, 180


@dataclass(frozen=True)
class Plan:
    """steps: optimiser steps in all. rate: highest learning rate. decay: weight of each further prediction.

    reach: how far ahead of position p the first prediction's state lies (0: the state at p itself).
    stride: how much further each next prediction reaches. full: also learn over the whole
    vocabulary on some positions, for a draft model that is used with all of it. alone: share of the
    steps, from the start, that learn the first prediction only; unrolled from the start, the later
    predictions, still nonsense, drown the first.
    """

    steps: int
    rate: float
    decay: float
    reach: int
    stride: int
    features: bool
    full: bool
    alone: float = 0.0


PLANS = {
    "eagle": Plan(steps=1150, rate=1.5e-3, decay=0.9, reach=1, stride=0, features=True, full=False, alone=0.6),
    "distilled": Plan(steps=850, rate=1e-3, decay=1.0, reach=0, stride=0, features=False, full=True),
    "medusa": Plan(steps=400, rate=2e-3, decay=0.8, reach=1, stride=1, features=False, full=False),
}


def build(kind: str, weights: Weights, corpus: Corpus) -> nn.Module:
    length = corpus.tokens.shape[1]
    if kind == "distilled":
        return Distilled(weights, length)
    if kind == "medusa":
        return Medusa(weights)
    states = torch.from_numpy(load_typical())
    teacher = Teacher(weights, max_length=length)
    scale = stream_scale(teacher, torch.from_numpy(corpus.tokens[:4].astype(np.int64)))
    return Eagle(weights, length, scale, torch.from_numpy(frequent_tokens(corpus)), states)


@torch.no_grad()
def take_shipped(net: nn.Module, weights: trained.Weights) -> None:
    """Fills a net with the weights of a file that ``export.py`` wrote."""
    for key, parameter in net.named_parameters():
        name = key.replace("layers.", "blk.") if key.startswith("layers.") else key.replace("layer.", "blk.0.")
        if key == "mixing":
            value = torch.from_numpy(weights.matrix("projection.weight").copy())
            value = F.pad(value, (0, len(net.input_scale) - value.shape[1])) / net.input_scale
        else:
            value = torch.from_numpy(weights.matrix(f"{name}.weight").copy())
        parameter.copy_(value.reshape(parameter.shape))


def terms_of(plan: Plan, further: int, shipped: trained.Weights | None) -> Terms:
    """Of a run, by which its checkpoint is known."""
    return {**asdict(plan), "further": further, "shipped": shipped.digest if shipped else ""}


def read_checkpoint(path: Path) -> dict:
    return torch.load(path, weights_only=True)


def rate_at(step: int, plan: Plan) -> float:
    """Linear warm-up, then half a cosine down to a twentieth."""
    warm = min(1.0, (step + 1) / WARM_UP_STEPS)
    return plan.rate * warm * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / plan.steps)))


def rows_at(step: int, rows: np.ndarray) -> np.ndarray:
    """Which of the rows a step learns from: all of them in a random order, then again in another one."""
    epoch, batch = divmod(step, len(rows) // ROWS_AT_ONCE)
    order = np.random.default_rng((1, epoch)).permutation(rows)
    return order[batch * ROWS_AT_ONCE :][:ROWS_AT_ONCE]


class Lesson:
    """One batch: what goes in, and at which (row, position) pairs something is learnt, or judged.

    where: the corpus's ``learn`` or ``answers``.
    """

    def __init__(
        self, corpus: Corpus, states: States, embedding: Tensor, rows: np.ndarray, furthest: int, where: np.ndarray
    ) -> None:
        rows = np.sort(rows)
        self.tokens = torch.from_numpy(corpus.tokens[rows].astype(np.int64))
        self.embedded = F.embedding(self.tokens, embedding)
        self.states = states.read(rows).float()
        self._where = torch.from_numpy(where[rows])
        self._furthest = furthest

    def positions(self, most: int | None, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """(rows, positions p) such that the token after state p + furthest counts."""
        usable = torch.zeros_like(self._where)
        usable[:, : -1 - self._furthest] = self._where[:, 1 + self._furthest :]
        usable[:, : self._furthest + FIRST_LEARNT] = False
        rows, positions = torch.nonzero(usable, as_tuple=True)
        if most is not None and len(rows) > most:
            chosen = torch.randperm(len(rows), generator=generator)[:most]
            rows, positions = rows[chosen], positions[chosen]
        return rows, positions


def loss_of(
    predictions: list[Tensor],
    lesson: Lesson,
    plan: Plan,
    rows_out: Tensor,
    all_rows: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """The sum over predictions. rows_out: the frequent tokens' rows. all_rows: the whole vocabulary's."""
    rows, positions = lesson.positions(POSITIONS_AT_ONCE, generator)
    total, wanted, n_rows = torch.zeros(()), None, len(lesson.states)
    for j, prediction in enumerate(predictions):
        if len(prediction) < n_rows:
            n_rows, there = len(prediction), rows < len(prediction)
            rows, positions, wanted = rows[there], positions[there], None
        truth = lesson.states[rows, positions + plan.reach + j * plan.stride]
        if wanted is None or plan.stride:
            wanted = _wanted(truth, rows_out)
        guess = prediction[rows, positions]
        term = _agreement_loss(guess, rows_out, wanted)
        if plan.full:
            few = slice(0, FULL_VOCABULARY_POSITIONS)
            term = term + 0.3 * _agreement_loss(guess[few], all_rows, _wanted(truth[few], all_rows))
        if plan.features:
            term = term + FEATURE_WEIGHT * F.smooth_l1_loss(guess, truth)
        total = total + plan.decay**j * term
    return total


@torch.no_grad()
def _wanted(states: Tensor, rows_out: Tensor) -> Tensor:
    """Half the target's distribution, half its greedy choice. Shape (positions, len(rows_out))."""
    logits = F.linear(states.to(PRODUCTS), rows_out).float()
    wanted = 0.5 * logits.softmax(-1)
    best = logits.argmax(-1, keepdim=True)
    return wanted.scatter_add_(1, best, torch.full_like(best, 0.5, dtype=wanted.dtype))


def _agreement_loss(states: Tensor, rows_out: Tensor, wanted: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(states.to(PRODUCTS), rows_out).float(), wanted)


@dataclass(frozen=True)
class Exam:
    """Held-out rows and the target's greedy choice at each of their tokens, shape (rows, length)."""

    lesson: Lesson
    choices: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, lesson: Lesson, all_rows: Tensor) -> Exam:
        rows = [F.linear(states.to(PRODUCTS), all_rows).argmax(-1) for states in lesson.states]
        return cls(lesson, torch.stack(rows))


@torch.no_grad()
def agreement(net: nn.Module, exams: list[Exam], plan: Plan, rows_out: Tensor, frequent: Tensor) -> list[float]:
    """Recorded alpha by position: how often the best frequent token is the target's choice, along held-out rows."""
    hits: list[list[Tensor]] = []
    for exam in exams:
        predictions = net(exam.lesson.tokens, exam.lesson.embedded, exam.lesson.states)
        rows, positions = exam.lesson.positions(None)
        hits.append([])
        for j, prediction in enumerate(predictions):
            there = rows < len(prediction)
            rows, positions = rows[there], positions[there]
            guess = frequent[F.linear(prediction[rows, positions].to(PRODUCTS), rows_out).argmax(-1)]
            hits[-1].append((guess == exam.choices[rows, positions + plan.reach + j * plan.stride]).float())
    return [round(float(torch.cat(each).mean()), 4) for each in zip(*hits, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PLANS)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--further", type=int, default=0, metavar="STEPS")
    arguments = parser.parse_args()
    plan = PLANS[arguments.kind]
    if arguments.further:
        plan = replace(plan, steps=arguments.further, rate=FURTHER_RATE * plan.rate)
    checkpoint, curve = WORK / f"{arguments.kind}.pt", trained.path_of(arguments.kind).with_suffix(".curve.json")

    torch.manual_seed(0)
    corpus = load_corpus()
    weights = Weights(models.embedded())
    states = States(corpus.tokens, weights.shape.n_embd)
    frequent = torch.from_numpy(frequent_tokens(corpus))
    embedding = weights["token_embd"]
    all_rows = embedding.to(PRODUCTS)
    rows_out = all_rows[frequent]
    net = build(arguments.kind, weights, corpus)
    shipped = trained.load(trained.path_of(arguments.kind)) if arguments.further else None
    if shipped:
        take_shipped(net, shipped)
    optimiser = torch.optim.AdamW(net.parameters(), lr=plan.rate, betas=(0.9, 0.95), weight_decay=0.01)
    first, before = 0, shipped.training.steps if shipped else 0
    terms = terms_of(plan, arguments.further, shipped)
    if saved := take_up(checkpoint, terms, read_checkpoint):
        net.load_state_dict(saved["net"])
        optimiser.load_state_dict(saved["optimiser"])
        first, before = saved["step"], saved["before"]
    furthest = plan.reach + plan.stride * (MEDUSA_HEADS - 1)
    exams = [
        Exam.of(Lesson(corpus, states, embedding, np.arange(start, start + 8), furthest, corpus.answers), all_rows)
        for start in range(0, HELD_OUT_ROWS, 8)
    ]
    learnable = states.learnable
    ever = set(learnable)
    if shipped:  # earlier stages took the corpus's first rows
        ever |= set(range(HELD_OUT_ROWS, HELD_OUT_ROWS + shipped.training.rows))
    n_rows, n_tokens = len(ever), int(corpus.answers[sorted(ever)].sum())
    print(f"{arguments.kind}: from step {first} of {plan.steps}, {len(learnable)} rows", flush=True)

    def save(step: int) -> None:
        parts = {"net": net.state_dict(), "optimiser": optimiser.state_dict()}
        seen = {"step": step, "before": before, "rows": n_rows, "tokens": n_tokens}
        unfinished = checkpoint.with_suffix(".part")
        torch.save({**parts, **seen, "terms": terms}, unfinished)
        unfinished.replace(checkpoint)

    def report(step: int, *, keep: bool = False) -> None:
        """How well it does now; kept beside the weights where the learning rate has come down, as a learning curve."""
        if isinstance(net, Eagle):
            net.n_steps = EAGLE_STEPS
        by_position = agreement(net, exams, plan, rows_out, frequent)
        n_learnt = len(learnable) if step or not shipped else shipped.training.rows
        stage = TrainingStage(before + step, n_learnt, tuple(by_position))
        print(f"step {stage.steps}: {by_position}", flush=True)
        if keep:
            earlier = store.load_learning_curve(arguments.kind).stages if before and curve.exists() else ()
            made_on = machine.this_machine(f"torch {torch.__version__}", gpu=False)
            store.save(LearningCurve(arguments.kind, (*earlier, stage)), curve, machine=made_on)

    if shipped and first == 0:
        report(0, keep=not curve.exists())
    begin = saved_at = reported_at = time.monotonic()
    for step in range(first, plan.steps):
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, plan)
        rows = rows_at(before + step, learnable)
        generator = torch.Generator().manual_seed(before + step)
        lesson = Lesson(corpus, states, embedding, rows, furthest, corpus.learn)
        if isinstance(net, Eagle):
            net.n_steps = 1 if step < plan.alone * plan.steps else EAGLE_STEPS
        loss = loss_of(net(lesson.tokens, lesson.embedded, lesson.states), lesson, plan, rows_out, all_rows, generator)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        now = time.monotonic()
        if step == first + 9:
            print(f"{(now - begin) / 10:.1f} s a step", flush=True)
        if now - reported_at > REPORT_SECONDS or step == plan.steps - 1:
            report(step + 1, keep=step == plan.steps - 1)
            reported_at = time.monotonic()
        if now - saved_at > CHECKPOINT_SECONDS:
            save(step + 1)
            saved_at = time.monotonic()
        if now - begin > 60 * arguments.minutes:
            save(step + 1)
            stop_unfinished(f"{step + 1} of {plan.steps} steps")
    save(plan.steps)


if __name__ == "__main__":
    main()
