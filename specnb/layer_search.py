"""Which layers of a model can be left out with the least harm? The first n alone, and a greedy search.

A target without some of its layers drafts for itself: it needs no second model, and no training. LayerSkip
(Elhoushi et al. 2024, arXiv 2404.16710) keeps the first n layers, of a model that was trained for such an early
exit; Draft & Verify (Zhang et al. 2023, arXiv 2309.08168) skips chosen layers anywhere in a model as it is. Both
are judged here on the model as it is, by how often their greedy choice is the whole model's along the whole
model's own answers. That agreement is *recorded* alpha: it flatters.

Every candidate is written as a file of its own, loaded, and reads the answers once. The search tries about as
many as the model has layers for each layer dropped: some ten minutes for ten layers of the embedded model, and
the longer the larger the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter

import numpy as np

from . import drafters, machine, measure, models
from .backend import Model, ModelError, Session
from .records import LayerSearch, LayerSet, Limits, Sampling

CALIBRATION = (
    "Explain how a bicycle stays upright.",
    "Write a Python function that counts the vowels in a string.",
    "Describe a walk through a forest in autumn.",
    "What are three ways to save water at home?",
)
"""No notebook asks these, and no drafter is judged by them."""

ANSWER_TOKENS = 96

EXIT_DEPTHS = (14 / 15, 13 / 15, 4 / 5, 2 / 3)
"""Shares of a model's layers after which an early exit is tried; of 30 layers, 28, 26, 24 and 20."""

NEVER_DROPPED = frozenset({0})
"""The first layer turns embeddings of single tokens into what all later ones read."""

METHOD = (
    "specnb.layer_search: early exits keep the first layers; sets drop one layer at a time, always the one that costs "
    f"least. Agreement with the full model's greedy choice along its own answers of at most {ANSWER_TOKENS} tokens to "
    f"{len(CALIBRATION)} calibration prompts"
)


@dataclass(frozen=True)
class CalibrationText:
    """tokens: a prompt and the target's greedy answer. n_prompt: how many of them are the prompt's."""

    tokens: tuple[int, ...]
    n_prompt: int


Score = Callable[[Sequence[int]], LayerSet]
"""Layers to keep, ascending -> how well they do alone."""


def search(
    path: str | Path,
    *,
    n_drop: int = 10,
    max_seconds: float = inf,
    threads: int | None = None,
    resume: LayerSearch | None = None,
    on_found: Callable[[LayerSearch], None] = lambda _found: None,
) -> LayerSearch:
    """Early exits, then sets with one to ``n_drop`` layers dropped, of any model whose layers are alike (llama, qwen2).

    n_drop: the most layers to drop; the first one always stays.
    max_seconds: after this long it ends with what was found so far, which may be nothing. A layer is
        only chosen once all candidates were tried, so a set does not depend on when the time was up.
    threads: all usable cores unless given.
    resume: an earlier, shorter search of the same file; it goes on from there.
    on_found: called with everything found so far each time there is more.
    Raises ModelError where the model, or a part of it, cannot be loaded, and ValueError for a search to resume
    that was of another model or made in another way.
    """
    start, path = perf_counter(), Path(path)
    threads = threads or machine.usable_cores()

    def stopped() -> bool:
        return perf_counter() - start >= max_seconds

    found = resume or LayerSearch(path.name, METHOD, ())
    if (found.model, found.method) != (path.name, METHOD):
        raise ValueError(
            f"The search to resume was of {found.model} ({found.method}); this one is of {path.name} ({METHOD}). "
            "Start anew, without it."
        )
    with Model(path) as target:
        n_layer = target.n_layer
        texts = calibration_texts(target, threads=threads, stopped=stopped)
        if stopped():
            return found
        wanted = choices(target, texts, threads=threads)
    with _scoring(path, texts, wanted, threads) as score:
        known = {len(one.layers) for one in found.early_exits}
        depths = [depth for depth in exit_depths(n_layer) if depth not in known]
        for one in early_exits(score, depths, stopped=stopped):
            found = replace(found, early_exits=(*found.early_exits, one))
            on_found(found)
        keep = found.sets[-1].layers if found.sets else range(n_layer)
        for one in greedy(score, keep, n_drop - (n_layer - len(keep)), stopped=stopped):
            found = replace(found, sets=(*found.sets, one))
            on_found(found)
    return found


def calibration_texts(
    model: Model, *, threads: int, stopped: Callable[[], bool] = lambda: False
) -> tuple[CalibrationText, ...]:
    """Every calibration prompt with the model's greedy answer, which is cut short once ``stopped``."""
    prompts = [model.chat_prompt(question) for question in CALIBRATION]
    texts = []
    with Session(model, n_ctx=max(map(len, prompts)) + ANSWER_TOKENS, threads=threads) as session:
        for prompt in prompts:
            answer = measure.run(
                session,
                drafters.NoDrafter(),
                prompt,
                limits=Limits(k=0),
                sampling=Sampling(),
                max_tokens=ANSWER_TOKENS,
                stopped=stopped,
            )
            texts.append(CalibrationText(prompt + answer.tokens, len(prompt)))
    return tuple(texts)


def choices(model: Model, texts: Sequence[CalibrationText], *, threads: int) -> np.ndarray:
    """The model's greedy choice at every token of the answers, one text after the other; shape (positions,)."""
    longest = max(len(text.tokens) for text in texts)
    chosen = []
    with Session(model, n_ctx=longest, n_batch=longest, threads=threads) as session:
        for text in texts:
            session.rewind(0)
            session.extend(text.tokens)
            chosen += [int(session.logits(row).argmax()) for row in range(text.n_prompt - 1, len(text.tokens) - 1)]
    return np.array(chosen)


def exit_depths(n_layer: int) -> tuple[int, ...]:
    """How many layers the early exits of a model keep, most first; fewer of them where the model is shallow."""
    depths = {round(n_layer * share) for share in EXIT_DEPTHS}
    return tuple(sorted((depth for depth in depths if 1 <= depth < n_layer), reverse=True))


def early_exits(
    score: Score, depths: Sequence[int], *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[LayerSet]:
    """The first n layers, for each n of ``depths``, until ``stopped``."""
    for depth in depths:
        if stopped():
            return
        yield score(range(depth))


def greedy(
    score: Score, keep: Sequence[int], n_drop: int, *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[LayerSet]:
    """Drops one more layer each time: the one whose absence leaves the agreement highest; of equals, the earliest.

    keep: the layers to start from. Ends early once ``stopped``, and when only layers that always stay are left.
    """
    for _ in range(n_drop):
        candidates = []
        for layer in keep:
            if layer in NEVER_DROPPED:
                continue
            if stopped():
                return
            candidates.append(score([other for other in keep if other != layer]))
        if not candidates:
            return
        best = max(candidates, key=lambda one: one.agreement)
        keep = best.layers
        yield best


@contextmanager
def _scoring(path: Path, texts: Sequence[CalibrationText], wanted: np.ndarray, threads: int) -> Iterator[Score]:
    """Scores layers of a model by the choices it makes with all of them; ``wanted``, shape (positions,)."""
    reader = models.read_gguf(path)
    with models.scratch("layer-search") as folder:
        candidate = folder / "candidate.gguf"

        def score(keep: Sequence[int]) -> LayerSet:
            models.write_layer_subset(reader, keep, candidate)
            try:
                opened = Model(candidate)
            except ModelError as error:
                raise ModelError(
                    f"llama.cpp refuses {path.name} with only {len(keep)} of its layers. They can be left out where "
                    "all are alike and in one file, as in llama and qwen2 models; this one is "
                    f"{models.value(reader, 'general.architecture')}. Use another model or a file that is not split."
                ) from error
            with opened as model:
                agreement = float((choices(model, texts, threads=threads) == wanted).mean())
            return LayerSet(tuple(keep), agreement, len(wanted))

        yield score
