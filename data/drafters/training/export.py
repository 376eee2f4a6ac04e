"""Stage 5: writes a trained drafter as the GGUF that ships, without anything the target has already.

python data/drafters/training/export.py eagle|distilled|medusa
"""

from __future__ import annotations

import argparse

import gguf
import numpy as np
import torch
from dataset import WORK, frequent_tokens, load_corpus
from gguf import GGMLQuantizationType as Format
from networks import EAGLE_STEPS, MEDUSA_HEADS
from train import PLANS

from specnb import models, trained

LONGEST_K = {"eagle": EAGLE_STEPS, "distilled": 0, "medusa": MEDUSA_HEADS}
_TYPE = gguf.GGUFValueType


def tensors_of(kind: str, net: dict[str, torch.Tensor]) -> list[tuple[str, np.ndarray, Format]]:
    """(name as llama.cpp calls it, data, format) of what was trained. Layers and typical states are Q8_0."""
    named = []
    if kind == "eagle":
        net = {**net, "projection": net["mixing"] * net["input_scale"]}
    for key, tensor in net.items():
        if key in ("mixing", "input_scale"):
            continue
        data = tensor.float().numpy()
        if kind == "eagle" and key.startswith("layer."):
            key = key.replace("layer.", "blk.0.")
        elif key.startswith("layers."):
            key = key.replace("layers.", "blk.")
        if key == "typical" or (key.startswith("blk.") and data.ndim == 2):
            named.append((f"{key}.weight", gguf.quantize(data, Format.Q8_0), Format.Q8_0))
        elif data.ndim > 1:
            named.append((f"{key}.weight", data.astype(np.float16), Format.F16))
        else:
            named.append((f"{key}.weight", data, Format.F32))
    return named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PLANS)
    kind = parser.parse_args().kind
    path = trained.path_of(kind)
    checkpoint = WORK / f"{kind}.pt"
    if not checkpoint.exists():
        raise SystemExit(f"There is no checkpoint at {checkpoint}; run train.py {kind} first.")
    saved = torch.load(checkpoint, weights_only=True)
    target = trained.fingerprint(models.embedded())
    vocabulary = frequent_tokens(load_corpus())
    values: models.Values = {
        "general.name": (f"{kind} drafter for SmolLM2-135M-Instruct", _TYPE.STRING),
        "general.license": ("apache-2.0", _TYPE.STRING),
        "specnb.kind": (kind, _TYPE.STRING),
        "specnb.longest_k": (LONGEST_K[kind], _TYPE.UINT32),
        "specnb.vocabulary": (vocabulary.tolist(), _TYPE.ARRAY),
        "specnb.training.steps": (saved["before"] + saved["step"], _TYPE.UINT32),
        "specnb.training.rows": (saved["rows"], _TYPE.UINT32),
        "specnb.training.tokens": (saved["tokens"], _TYPE.UINT32),
        "specnb.target.shape": (list(target.shape), _TYPE.ARRAY),
        "specnb.target.tokenizer": (target.tokenizer, _TYPE.STRING),
        "specnb.target.norms": (target.norms, _TYPE.STRING),
        "specnb.target.sketch": ([float(x) for x in target.sketch], _TYPE.ARRAY),
    }
    trained.publish(path, values, tensors_of(kind, saved["net"]), models.embedded())
    print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB, {saved['before'] + saved['step']} steps")


if __name__ == "__main__":
    main()
