"""Which layers of the embedded model can be left out with the least harm? Greedy search; writes layer_sets.json.

    python data/drafters/search_layers.py [--drop 10]

Drops one layer at a time: always the one whose absence leaves most of the target's own greedy
choices unchanged along calibration text (the target's own answers to prompts that no notebook
uses). That agreement is *recorded* alpha: it flatters. Takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

from specnb import backend, drafters, machine, measure, models
from specnb.records import Limits, Sampling

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


def search(source: Path, n_drop: int, threads: int) -> list[dict[str, object]]:
    reader = models.read_gguf(source)
    with backend.Model(source) as target:
        texts = calibration_texts(target, threads)
        wanted = choices(target, texts, threads)
        n_layer = target.n_layer
    keep = list(range(n_layer))
    found: list[dict[str, object]] = []
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
            found.append({"layers": keep, "agreement": round(agreement, 4), "positions": len(wanted)})
            print(f"{len(keep)} layers: {agreement:.3f}  {keep}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drop", type=int, default=10, help="how many layers to leave out at most")
    arguments = parser.parse_args()
    threads = machine.usable_cores()
    # F16 decodes a long text several times faster than the embedded Q4_1, with the same weights.
    source = models.in_format(models.embedded(), "F16")
    sets = search(source, arguments.drop, threads)
    result = {
        "provenance": f"data/drafters/search_layers.py, {date.today().isoformat()}, {backend.build_info()}; agreement "
        f"with the full model's greedy choice along its own answers to {len(CALIBRATION)} calibration prompts",
        "model": models.embedded().name,
        "sets": sets,
    }
    Path(__file__).with_name("layer_sets.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
