"""Stage 6: live alpha of the shipped drafters on prompts kept out of their corpus; writes their cards.

    python data/drafters/training/evaluate.py

Live: counted while the target really generates and the drafter really drafts, at the longest k it
was trained for, so that every position gets its turn. Needs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from specnb import store, trained
from specnb.lab import Lab
from specnb.prompts import HELD_OUT
from specnb.records import Cycle, Sampling

FORMAT, MAX_TOKENS, LONGEST = "BF16", 128, 6
SAMPLINGS = {"greedy": Sampling(), "T = 0.7": Sampling(temperature=0.7, seed=1)}
GROUPS = {
    "chat and code": ("chat", "code"),
    "rewrite and extract": ("rewrite", "extract"),
    "the rest": ("translate", "story"),
}

WHAT = {
    "distilled": "A draft model of four layers, started from layers 0, 1, 2 and 29 of its target and distilled from "
    "it.",
    "eagle": "One layer over the target's hidden state and what is known of the next token: its embedding, its typical "
    "state (`training/typical.py`), and the states where the target read it last, and read it last behind the same "
    "token. Started from the target's layer 29 and unrolled six times over its own predictions while training. In the "
    "last two stages of the table below the user's turns taught as well as the answers; before the last one it knew of "
    "the next token the embedding alone.",
    "medusa": "Four residual blocks over one hidden state; head j guesses the token j places after the pending one.",
}
DATA = (
    "Conversations that SmolLM2-135M-Instruct wrote itself, both sides, by the procedure of `training/corpus.py` (an "
    "earlier list of openings): {rows} rows, in which {tokens} tokens belong to answers outside repetition loops. Half "
    "of the rows greedy, half sampled at T = 0.8. No row shares a run of 12 tokens with a prompt of the notebooks or "
    "of the benchmark."
)


@dataclass(frozen=True)
class Count:
    """tested, kept: of each draft position."""

    tested: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def over_the_chain(self) -> str:
        return f"{sum(self.kept) / max(1, sum(self.tested)):.3f}"

    def at(self, position: int) -> str:
        tested = self.tested[position]
        return f"{self.kept[position] / tested:.3f} ({tested})" if tested else "–"


def count(cycles: list[Cycle], k: int) -> Count:
    return Count(
        tuple(sum(cycle.tested > position for cycle in cycles) for position in range(k)),
        tuple(sum(cycle.kept > position for cycle in cycles) for position in range(k)),
    )


def measure(lab: Lab, kind: str, k: int) -> dict[tuple[str, str], Count]:
    found = {}
    for label, sampling in SAMPLINGS.items():
        for group, kinds in GROUPS.items():
            cycles = [
                cycle
                for prompt in HELD_OUT
                if prompt.kind in kinds
                for cycle in lab.run(prompt, kind, k=k, sampling=sampling, max_tokens=MAX_TOKENS).cycles
            ]
            found[label, group] = count(cycles, k)
    return found


def card(weights: trained.Weights, found: dict[tuple[str, str], Count], k: int) -> str:
    made = weights.training
    positions = " | ".join(f"position {i + 1}" for i in range(k))
    lines = [
        f"# {weights.path.name}",
        "",
        WHAT[weights.kind],
        "",
        "* **Target**: SmolLM2-135M-Instruct, in any weight format; the file holds its fingerprint. Refused elsewhere.",
        f"* **Longest draft**: {weights.longest_k or 'any'}. **Output**: the target's {len(weights.vocabulary)} most "
        "frequent tokens.",
        "* **Data**: " + DATA.format(rows=f"{made.rows:,}", tokens=f"{made.tokens:,}"),
        f"* **Training**: `training/train.py {weights.kind}`, {made.steps} steps of 8 rows on two CPU cores.",
        "* **Licence**: Apache-2.0, as SmolLM2's, from which it is derived.",
        "",
        f"## Live alpha on {len(HELD_OUT)} held-out prompts ({FORMAT} target, {MAX_TOKENS} new tokens, k = {k})",
        "",
        "kept / tested, by draft position (drafts tested there); written by `training/evaluate.py`. Texts that fall "
        "into a repetition loop are not left out here; `python -m specnb.bench drafters` shows them apart.",
        "",
        f"| sampling | prompts | over the chain | {positions} |",
        "|---" * (k + 3) + "|",
    ]
    for (label, group), counted in found.items():
        cells = " | ".join(counted.at(position) for position in range(k))
        lines.append(f"| {label} | {group} | {counted.over_the_chain} | {cells} |")
    return "\n".join([*lines, *learning_curve(weights)]) + "\n"


def learning_curve(weights: trained.Weights) -> list[str]:
    """What ``train.py`` kept at the ends of its stages; nothing where it kept nothing."""
    path = weights.path.with_suffix(".curve.json")
    if not path.exists():
        return []
    stages = store.load_learning_curve(weights.kind).stages
    n = len(stages[-1].agreement)
    rows = [
        f"| {stage.steps:,} | {stage.rows:,} | " + " | ".join(f"{each:.3f}" for each in stage.agreement) + " |"
        for stage in stages
    ]
    return [
        "",
        "## Learning curve",
        "",
        "Recorded alpha (agreement with the target's choice along held-out rows of the corpus) at the ends of the "
        "stages of training, written by `training/train.py`. It flatters; what counts is how it rises.",
        "",
        "| steps | conversations | " + " | ".join(f"position {i + 1}" for i in range(n)) + " |",
        "|---" * (n + 2) + "|",
        *rows,
    ]


def main() -> None:
    with Lab(n_ctx=1024, format=FORMAT) as lab:
        for kind in trained.KINDS:
            weights = trained.load(trained.path_of(kind))
            k = weights.longest_k or LONGEST
            text = card(weights, measure(lab, kind, k), k)
            weights.path.with_suffix(".md").write_text(text, encoding="utf-8")
            print(text, flush=True)


if __name__ == "__main__":
    main()
