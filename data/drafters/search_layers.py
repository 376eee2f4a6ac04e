"""Which layers of the embedded model can be left out with the least harm? Greedy search; writes layer_sets.json.

    python data/drafters/search_layers.py [--drop 10]

Drops one layer at a time: always the one whose absence leaves most of the target's own greedy
choices unchanged along calibration text (the target's own answers to prompts that no notebook
uses). That agreement is *recorded* alpha: it flatters. Takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from specnb import backend, drafters, machine, measure, models, store
from specnb.records import LayerSearch, LayerSet, Limits, Sampling

CALIBRATION = (
    "Explain how a bicycle stays upright.",
    "Write a Python function that counts the vowels in a string.",
    "Describe a walk through a forest in autumn.",
    "What are three ways to save water at home?",
)
ANSWER_TOKENS = 96
NEVER_DROPPED = (0,)


def calibration_texts(model: backend.Model, threads: int) -> list[tuple[tuple[int, ...], int]]:
    """(prompt and the target's greedy answer, length of the prompt) for every calibration prompt."""
    texts = []
    with backend.Session(model, n_ctx=512, threads=threads) as session:
        for question in CALIBRATION:
            prompt = model.chat_prompt(question)
            answer = measure.run(
                session, drafters.NoDrafter(), prompt, limits=Limits(k=0), sampling=Sampling(), max_tokens=ANSWER_TOKENS
            )
            texts.append((prompt + answer.tokens, len(prompt)))
    return texts


def choices(model: backend.Model, texts: list[tuple[tuple[int, ...], int]], threads: int) -> np.ndarray:
    """The model's greedy choice at every position of the answers."""
    chosen = []
    with backend.Session(model, n_ctx=512, threads=threads) as session:
        for tokens, n_prompt in texts:
            session.rewind(0)
            session.extend(tokens)
            chosen += [int(session.logits(row).argmax()) for row in range(n_prompt - 1, len(tokens) - 1)]
    return np.array(chosen)


def search(source: Path, n_drop: int, threads: int) -> tuple[LayerSet, ...]:
    reader = models.read_gguf(source)
    with backend.Model(source) as target:
        texts = calibration_texts(target, threads)
        wanted = choices(target, texts, threads)
        n_layer = target.n_layer
    keep = list(range(n_layer))
    found: list[LayerSet] = []
    with tempfile.TemporaryDirectory() as folder:
        candidate = Path(folder) / "candidate.gguf"
        for _ in range(n_drop):
            scored = []
            for layer in keep:
                if layer in NEVER_DROPPED:
                    continue
                rest = [i for i in keep if i != layer]
                models.write_layer_subset(reader, rest, candidate)
                with backend.Model(candidate) as model:
                    scored.append((float((choices(model, texts, threads) == wanted).mean()), rest))
            agreement, keep = max(scored)
            found.append(LayerSet(tuple(keep), agreement, len(wanted)))
            print(f"{len(keep)} layers: {agreement:.3f}  {keep}", flush=True)
    return tuple(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drop", type=int, default=10, help="how many layers to leave out at most")
    arguments = parser.parse_args()
    threads = machine.usable_cores()
    # F16 decodes a long text several times faster than the embedded Q4_1, with the same weights.
    source = models.in_format(models.embedded(), "F16")
    sets = search(source, arguments.drop, threads)
    method = (
        "data/drafters/search_layers.py: greedy, one layer at a time; agreement with the full model's greedy choice "
        f"along its own answers to {len(CALIBRATION)} calibration prompts"
    )
    found = LayerSearch(models.embedded().name, method, sets)
    store.save(
        found,
        store.DATA / "drafters" / "layer_sets.json",
        machine=machine.this_machine(backend.build_info(), gpu=backend.gpu_offload()),
    )


if __name__ == "__main__":
    main()
