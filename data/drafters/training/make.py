"""Makes the trained drafters from nothing but the embedded model: corpus, states, training, export, cards.

    pip install -e ".[train]"
    python data/drafters/training/make.py

Every stage is a script of its own, ends by itself after 40 minutes at most and goes on where it
stopped; so does this one when it is called again. On two cores that multiply bfloat16 in hardware:
an hour and a half for the corpus, 35 minutes for the states, an hour and a quarter of training, ten
minutes of evaluation. Where they do not (see PRODUCTS in smollm.py), everything but the evaluation
takes several times as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
UNFINISHED = 75  # as in dataset.py, which needs torch to be imported
KINDS = ("eagle", "medusa", "distilled")
# Freed blocks go back to the allocator, not to the system: or page faults take half of the time. Blocks must not be
# mapped at all (glibc ignores a threshold above 32 MiB), and all threads must share the one arena that can grow.
ALLOCATOR = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "16000000000",
    "MALLOC_TOP_PAD_": "500000000",
}


def stage(script: str, *arguments: str) -> None:
    """Runs a stage as often as it takes: at its time limit it ends with status UNFINISHED and says where it is."""
    while True:
        print(f"== {script} {' '.join(arguments)}", flush=True)
        code = subprocess.run([sys.executable, HERE / script, *arguments], env=ALLOCATOR | os.environ).returncode
        if code == 0:
            return
        if code != UNFINISHED:
            raise SystemExit(f"{script} failed with exit status {code}.")


def main() -> None:
    stage("corpus.py")
    stage("states.py")
    stage("typical.py")
    for kind in KINDS:
        stage("train.py", kind)
        stage("export.py", kind)
    stage("evaluate.py")


if __name__ == "__main__":
    main()
