"""Numbers you already have: counts of other tools' logs, JSON and metrics, and what they say.

Paste a text, open a file, or name an address::

    intake.from_text(text)
    intake.from_file("server.log", k=16)
    intake.from_address("http://localhost:8080/metrics", plain_tokens_per_second=31.5)

or on the command line, which prints the same report::

    python -m specnb.intake FILE|-|URL [--k K] [--plain TOKENS_PER_S] [--draft-ms MS] [--staircase CURVE.json]

Read are llama.cpp's closing block (``n_drafted``, ``n_accept``), llama-server's line on draft acceptance, its JSON
``timings`` and its metrics, drafter statistics, and vLLM's metrics and log line.
"""

from __future__ import annotations

from .contradictions import contradictions
from .reading import Reading, read, total
from .report import Block, Intake, from_address, from_bytes, from_file, from_text, of_counts
from .sources import Unreadable, is_address
from .verdict import Verdict, judge

__all__ = [
    "Block",
    "Intake",
    "Reading",
    "Unreadable",
    "Verdict",
    "contradictions",
    "from_address",
    "from_bytes",
    "from_file",
    "from_text",
    "is_address",
    "judge",
    "of_counts",
    "read",
    "total",
]
