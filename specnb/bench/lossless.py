"""Whether speculation ever changes the text: every drafter, k, p_min and way of sampling against plain decoding.

Each combination writes an answer and is held against the plain one, token by token. Where they part,
a control decides (``equivalence``): "explained" when the same sampler makes the same two choices from
logits of the same tokens, evaluated without any draft in passes over one token and over as many as
the run's; "unexplained" otherwise, and that is a fault.

No time is measured, so the machine need not be quiet; processes of one thread each share the cores.
Finished answers are kept for half a day, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import atexit
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context, parent_process

from .. import backend, drafters, equivalence, machine, models, trained
from ..journal import Journal
from ..lab import Lab
from ..prompts import PROMPTS
from ..records import Penalties, Run, Sampling

MAX_TOKENS, LONG_TOKENS = 32, 64
"""LONG_TOKENS where k asks for more than MAX_TOKENS leaves room for."""

PENALTIES = Penalties(repeat=1.1, frequency=0.2, presence=0.3)
WAYS = {
    "greedy": Sampling(),
    "T 0.7": Sampling(temperature=0.7),
    "T 1, no filters": Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0),
    "T 0.8, penalties": Sampling(temperature=0.8, penalties=PENALTIES),
}
FORMAT_WAYS = {
    "BF16": ("greedy", "T 0.7"),
    "Q4_0": ("greedy", "T 1, no filters", "T 0.8, penalties"),
}
"""Q4_0 rounds alike in short passes and long ones on most machines, BF16 does not: both have to be shown."""

LOOK_UPS = tuple(kind.name for kind in drafters.LOOK_UPS)
HEADS = (drafters.Eagle.name, drafters.Medusa.name)


@dataclass(frozen=True, slots=True)
class Answer:
    """One prompt in one format and one way of sampling, to be written by several drafters.

    settings: (drafter, k, p_min) of each.
    """

    format: str
    kind: str
    way: str
    seed: int
    settings: tuple[tuple[str, int, float], ...]

    @property
    def sampling(self) -> Sampling:
        return replace(WAYS[self.way], seed=self.seed)


@dataclass(frozen=True, slots=True)
class Row:
    """One combination. longest_pass: N of its longest pass. From position on: where the texts part; None if nowhere."""

    format: str
    kind: str
    way: str
    seed: int
    drafter: str
    k: int
    p_min: float
    verdict: str
    compared: int
    drafted: int
    kept: int
    longest_pass: int
    position: int | None = None
    plain_token: int | None = None
    other_token: int | None = None
    gap: float | None = None
    rounding: float | None = None


def run(*, quick: bool) -> dict[str, object]:
    answers = _quick_plan() if quick else _full_plan()
    journal = None if quick else Journal(models.cache_folder() / "bench-lossless.jsonl", key=_key())
    rows = [Row(**row) for entry in journal.entries() for row in entry] if journal else []
    there = {(row.format, row.kind, row.way, row.drafter) for row in rows}
    missing = [a for a in answers if any((a.format, a.kind, a.way, s[0]) not in there for s in a.settings)]
    for fresh in _written(missing):
        rows += fresh
        if journal:
            journal.add([asdict(row) for row in fresh])
    if journal:
        journal.end()
    return _figures(rows)


def _key() -> str:
    weights = [trained.load(trained.path_of(kind)).digest for kind in trained.KINDS]
    plan = hashlib.sha256(repr(_full_plan()).encode()).hexdigest()[:12]
    return f"{backend.build_info()} {weights} {plan}"


def _settings(kind: str) -> Iterator[tuple[str, int, float]]:
    """Settings of one kind of drafter. Long drafts where they cost nothing, p_min where there are confidences."""
    if kind in LOOK_UPS:
        yield from ((kind, k, 0.0) for k in (1, 2, 4, 8, 16, 48))
    elif kind in HEADS:
        yield from ((kind, k, p_min) for k in (1, 2, 4) for p_min in (0.0, 0.5))
    elif kind == drafters.Distilled.name:
        yield from ((kind, k, p_min) for k in (1, 4, 8) for p_min in (0.0, 0.5, 0.9))
    else:
        yield from ((kind, k, p_min) for k in (2, 8) for p_min in (0.0, 0.8))


def _full_plan() -> list[Answer]:
    """Heads come last: from the first one on a session keeps its states, which makes every prompt dearer."""
    others = [name for name in drafters.names()[1:] if name not in HEADS]
    groups = ([s for name in others for s in _settings(name)], [s for name in HEADS for s in _settings(name)])
    return [
        Answer(format, kind, way, seed=1 + number + 10 * tuple(WAYS).index(way), settings=tuple(settings))
        for settings in groups
        for format, ways in FORMAT_WAYS.items()
        for way in ways
        for number, kind in enumerate(PROMPTS)
    ]


def _quick_plan() -> list[Answer]:
    """A few drafters on two prompts: whether it works, not a proof."""
    settings = ((LOOK_UPS[0], 2, 0.0), (LOOK_UPS[0], 48, 0.0), (drafters.Distilled.name, 4, 0.5))
    return [
        Answer("Q4_0", kind, way, 1, settings) for kind, way in (("rewrite", "greedy"), ("extract", "T 0.8, penalties"))
    ]


def _written(answers: list[Answer]) -> Iterator[list[Row]]:
    """The rows of each answer as it is done, by a process for each processor."""
    workers = min(machine.usable_processors(), len(answers))
    if workers == 0:
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_open_lab) as pool:
        for done in as_completed([pool.submit(_rows_of, answer) for answer in answers]):
            yield done.result()


_lab: Lab | None = None
"""Of a worker process."""


def _open_lab() -> None:
    global _lab
    _lab = Lab(str(models.embedded()), threads=1, n_ctx=512)
    atexit.register(_lab.close)


def _rows_of(answer: Answer) -> list[Row]:
    lab = _lab
    lab.use_format(answer.format)
    if answer.settings[0][0] in HEADS:
        lab.drafter(HEADS[0])  # from now on the target keeps its states, for plain decoding as well
    plain = lab.run(PROMPTS[answer.kind], k=0, sampling=answer.sampling, max_tokens=LONG_TOKENS)
    return [_row(lab, answer, plain, *setting) for setting in _while_wanted(answer.settings)]


def _while_wanted(settings: Iterable[tuple[str, int, float]]) -> Iterator[tuple[str, int, float]]:
    """Ends a worker whose benchmark was killed: nobody would hear its answer, and it would hold a core for minutes."""
    for setting in settings:
        parent = parent_process()
        if parent is not None and not parent.is_alive():
            raise SystemExit
        yield setting


def _row(lab: Lab, answer: Answer, plain: Run, name: str, k: int, p_min: float) -> Row:
    drafter = lab.drafter(name, n=2, m=max(k, 2)) if name in LOOK_UPS else name
    budget = LONG_TOKENS if k > MAX_TOKENS else MAX_TOKENS
    sampling = answer.sampling
    run = lab.run(PROMPTS[answer.kind], drafter, k=k, p_min=p_min, sampling=sampling, max_tokens=budget)
    # Plain decoding emits one token a cycle, so a shorter budget is its beginning.
    found = equivalence.compare(lab.session, replace(plain, cycles=plain.cycles[:budget]), run)
    parted = found.divergence
    where = {} if parted is None else {name: getattr(parted, name) for name in _WHERE}
    return Row(
        format=answer.format,
        kind=answer.kind,
        way=answer.way,
        seed=answer.seed,
        drafter=name,
        k=k,
        p_min=p_min,
        verdict=found.verdict,
        compared=found.compared,
        drafted=run.drafted,
        kept=run.kept,
        longest_pass=max(cycle.n_rows for cycle in run.cycles),
        **where,
    )


_WHERE = ("position", "plain_token", "other_token", "gap", "rounding")


def _figures(rows: list[Row]) -> dict[str, object]:
    counts = Counter(row.verdict for row in rows)
    return {
        "combinations": len(rows),
        **{verdict: counts[verdict] for verdict in ("identical", "explained", "unexplained")},
        "tokens": sum(row.compared for row in rows),
        "drafted": sum(row.drafted for row in rows),
        "kept": sum(row.kept for row in rows),
        "without_drafts": sum(row.drafted == 0 for row in rows),
        "longest_pass": max((row.longest_pass for row in rows), default=0),
        "by_format_and_way": _table_of(rows),
        "divergences": [asdict(row) for row in rows if row.position is not None],
    }


def _table_of(rows: Iterable[Row]) -> list[dict[str, object]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.format, row.way), []).append(row)
    return [
        {
            "format": format,
            "way": way,
            "combinations": len(group),
            "identical": sum(row.verdict == "identical" for row in group),
            "explained": sum(row.verdict == "explained" for row in group),
            "unexplained": sum(row.verdict == "unexplained" for row in group),
            "largest_gap": max((row.gap for row in group if row.gap is not None), default=None),
            "largest_rounding": max((row.rounding for row in group if row.rounding is not None), default=None),
        }
        for (format, way), group in groups.items()
    ]


def table(figures: dict[str, object]) -> str:
    lines = [
        f"{'format':<7}{'sampling':<20}{'combinations':>13}{'identical':>11}{'explained':>11}{'unexplained':>13}"
        f"{'largest gap':>13}{'rounding':>10}"
    ]
    for row in figures["by_format_and_way"]:
        gap, moved = ("–" if row[key] is None else f"{row[key]:.3g}" for key in ("largest_gap", "largest_rounding"))
        lines.append(
            f"{row['format']:<7}{row['way']:<20}{row['combinations']:>13}{row['identical']:>11}{row['explained']:>11}"
            f"{row['unexplained']:>13}{gap:>13}{moved:>10}"
        )
    lines.append(
        f"{figures['combinations']} combinations, {figures['tokens']} tokens compared: {figures['identical']} "
        f"identical, {figures['explained']} explained by rounding, {figures['unexplained']} unexplained. "
        f"{figures['drafted']} tokens drafted, {figures['kept']} kept; longest pass N = {figures['longest_pass']}."
    )
    lines += [f"UNEXPLAINED: {row}" for row in figures["divergences"] if row["verdict"] == "unexplained"]
    return "\n".join(lines)
