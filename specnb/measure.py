"""The only runner of experiments: cost curves, draft costs, runs and races. It returns records."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

from . import backend, decoder, machine
from .backend import Model, Sampler, Session
from .drafters import Drafter
from .intervals import median_interval
from .policy import Fixed
from .records import Context, CostCurve, Cycle, DraftCost, Limits, Run, RunSet, Sampling

QUICK_NS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32)
"""The thirteen N of the M5 Pro article."""

FULL_NS = (*range(1, 33), 33, 49, 65)

CONTENDED_CORES = 0.15
"""More than this many cores busy elsewhere, and a measurement is marked as contended."""


def cost_curve(
    session: Session,
    ns: Sequence[int] = QUICK_NS,
    *,
    context_length: int = 128,
    precision: float = 0.05,
    rounds: tuple[int, int] = (7, 60),
    max_seconds: float = 60.0,
    label: str = "",
    on_round: Callable[[int, float], None] = lambda _round, _widest: None,
    seed: int = 0,
) -> CostCurve:
    """Measures T(N), ms per target pass over N tokens with all N rows wanted, as verification does.

    Every round visits all N in a new random order, so that drift (heat, a noisy neighbour) hits
    them alike. Each visit makes two passes and keeps the second: when N changes, llama.cpp builds
    its compute graph anew (half a millisecond for the embedded model), and when N repeats, as it
    does from cycle to cycle, it reuses it. One unrecorded round warms up. Stops once every 95 %
    interval of a median lies within ``precision`` of it, within ``rounds`` (fewest, most) and
    ``max_seconds``.
    on_round: called after each round with its number and the widest relative interval so far.
    Empties the session. Raises SessionError when the largest N does not fit context or batch.
    """
    (curve,) = cost_curves(
        (session,),
        ns,
        context_length=context_length,
        precision=precision,
        rounds=rounds,
        max_seconds=max_seconds,
        labels=(label,),
        on_round=on_round,
        seed=seed,
    )
    return curve


def cost_curves(
    sessions: Sequence[Session],
    ns: Sequence[int] = QUICK_NS,
    *,
    context_length: int = 128,
    precision: float = 0.05,
    rounds: tuple[int, int] = (7, 60),
    max_seconds: float = 60.0,
    labels: Sequence[str] = (),
    on_round: Callable[[int, float], None] = lambda _round, _widest: None,
    seed: int = 0,
) -> tuple[CostCurve, ...]:
    """``cost_curve`` of several models at once: every round visits each N of each, so drift favours none of them.

    labels: one a session; "" or none gives the model's name and format.
    """
    fewest, most = rounds
    fillers = [_filler(session.model) for session in sessions]
    order = random.Random(seed)
    for session, token in zip(sessions, fillers, strict=True):
        session.rewind(0)
        session.extend([token(i) for i in range(context_length)], rows="none")
    samples: list[list[tuple[int, float]]] = [[] for _ in sessions]
    visits = [(which, n) for which in range(len(sessions)) for n in ns]
    watch, start = machine.CoreWatch(), perf_counter()
    for number in range(most + 1):
        for which, n in order.sample(visits, len(visits)):
            tokens = [fillers[which](n * 100 + i) for i in range(n)]
            _timed_pass(sessions[which], tokens)
            elapsed_ms = _timed_pass(sessions[which], tokens)
            if number > 0:
                samples[which].append((n, elapsed_ms))
        if number >= fewest:
            widest = max(widest_interval(of) for of in samples)
            on_round(number, widest)
            if widest <= precision or perf_counter() - start > max_seconds:
                break
    seconds, contended = perf_counter() - start, watch.busy_elsewhere() > CONTENDED_CORES
    curves = []
    for session, of, label in zip(sessions, samples, labels or [""] * len(sessions), strict=True):
        session.rewind(0)
        info = session.model.info
        curves.append(
            CostCurve(
                label=label or f"{info.name} {info.format}",
                samples=tuple(of),
                context_length=context_length,
                threads=session.threads,
                machine=machine.this_machine(backend.build_info(), gpu=backend.gpu_offload()),
                model=info,
                seconds=seconds,
                drift=drift(of),
                contended=contended,
            )
        )
    return tuple(curves)


def _timed_pass(session: Session, tokens: Sequence[int]) -> float:
    """Milliseconds of one pass; the session is left as it was."""
    n_keep, before = session.n_tokens, perf_counter()
    session.extend(tokens)
    elapsed_ms = (perf_counter() - before) * 1e3
    session.rewind(n_keep)
    return elapsed_ms


def widest_interval(samples: Sequence[tuple[int, float]]) -> float:
    """The largest distance of a 95 % interval's end from its median, over all N, relative to the median."""
    widest = 0.0
    for n in {n for n, _ in samples}:
        ms = [x for m, x in samples if m == n]
        interval = median_interval(ms)
        if interval is None:
            return float("inf")
        middle = median(ms)
        widest = max(widest, (interval[1] - middle) / middle, (middle - interval[0]) / middle)
    return widest


def drift(samples: Sequence[tuple[int, float]]) -> float:
    """Relative change from the first to the second half of the samples, median over N; 0.03 is 3 % slower."""
    changes = []
    for n in {n for n, _ in samples}:
        ms = [x for m, x in samples if m == n]
        half = len(ms) // 2
        if half:
            changes.append(median(ms[half:]) / median(ms[:half]) - 1)
    return median(changes) if changes else 0.0


def draft_cost(
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    states: Sequence[Sequence[float]] | None = None,
    k: int = 4,
    repeats: int = 15,
    label: str = "",
) -> DraftCost:
    """Times a drafter's proposals of k tokens on one context, apart from any run.

    states: the target's hidden states of all but the last token of the prompt, for the heads.
    Raises ValueError when the drafter proposes nothing there: an n-gram drafter has no cost per
    token worth the name.
    """
    drafter.begin(prompt)
    context = Context(prompt, states)
    samples: list[float] = []
    for repeat in range(repeats + 1):
        start = perf_counter()
        draft = drafter.propose(context, Limits(k=k))
        elapsed = perf_counter() - start
        if not draft.tokens:
            raise ValueError(f"The drafter {drafter.name!r} proposed nothing after this prompt: there is no cost here.")
        if repeat > 0:
            samples.append(elapsed * 1e3 / len(draft.tokens))
    return DraftCost(label=label or drafter.name, samples_ms=tuple(samples), k=k, context_length=len(prompt))


def run(
    session: Session,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    limits: Limits,
    sampling: Sampling,
    max_tokens: int,
    prompt_kind: str = "",
    stopped: Callable[[], bool] = lambda: False,
    on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
) -> Run:
    """One generation, plain or speculative. ``on_cycle`` sees each cycle as it happens; its time is not counted."""
    model = session.model
    policy = Fixed(drafter, limits)
    start = perf_counter()
    decoder.prefill(session, policy, prompt)
    prefill_s = perf_counter() - start
    in_llama_before = session.in_llama_s + _draft_seconds(drafter)
    cycles: list[Cycle] = []
    sampler = Sampler(sampling)
    for cycle in decoder.decode(
        session, policy, sampler, prompt, max_tokens=max_tokens, ends_text=model.is_eog, stopped=stopped
    ):
        cycles.append(cycle)
        on_cycle(cycle)
    tokens = [token for cycle in cycles for token in cycle.emitted]
    return Run(
        prompt_tokens=tuple(prompt),
        cycles=tuple(cycles),
        drafter=drafter.name,
        k=limits.k,
        n_min=limits.n_min,
        p_min=limits.p_min,
        sampling=sampling,
        prefill_s=prefill_s,
        target=f"{model.info.name} {model.format}",
        prompt_kind=prompt_kind,
        text=model.text(tokens),
        finish=_finish(tokens, model, max_tokens, stopped()),
        in_llama_s=session.in_llama_s + _draft_seconds(drafter) - in_llama_before,
    )


def race(arms: Sequence[Callable[[], Run]], *, repeats: int = 3, seed: int = 0) -> RunSet:
    """Runs every arm ``repeats`` times, interleaved in a new random order each time, so that drift favours nobody."""
    order = random.Random(seed)
    return RunSet(tuple(arm() for _ in range(repeats) for arm in order.sample(list(arms), len(arms))))


def _draft_seconds(drafter: Drafter) -> float:
    """Seconds a drafter, or those of a chain, have spent inside llama.cpp; none for look-ups, which use no model."""
    sessions = (getattr(each, "session", None) for each in getattr(drafter, "drafters", (drafter,)))
    return sum(session.in_llama_s for session in sessions if session is not None)


def _finish(tokens: Sequence[int], model: Model, max_tokens: int, stopped: bool) -> str:
    if tokens and model.is_eog(tokens[-1]):
        return "end of text"
    if len(tokens) >= max_tokens:
        return "max_tokens"
    return "stopped" if stopped else "context full"


def _filler(model: Model) -> Callable[[int], int]:
    """Some ordinary tokens to fill a context with; which ones does not matter to the cost."""
    usable = max(1, model.n_vocab - 1000)
    return lambda i: (1000 + (i * 7919) % usable) % model.n_vocab
