"""The only runner of experiments: cost curves, draft costs, runs and races. It returns records."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

from . import backend, decoder, machine, models, synthetic
from .backend import BatchSession, Model, Sampler, Session
from .concurrency import decode_together, shared_pass
from .drafters import Drafter, NoDrafter
from .intervals import median_interval
from .policy import Fixed
from .records import (
    Context,
    CostCurve,
    Cycle,
    DraftCost,
    LayerwiseCost,
    Limits,
    LoadRun,
    LoadSweep,
    PassCost,
    PassCosts,
    Run,
    RunSet,
    Sampling,
)
from .synthetic import Shape
from .text import Assembler, ending

QUICK_NS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32)
"""The thirteen N of the M5 Pro article."""

FULL_NS = (*range(1, 33), 33, 49, 65)

SHAPE_NS = (1, 2, 3, 4, 5, 6, 8, 9)
"""Drafts of up to eight tokens: a pass of a large model is slow, and so is measuring it."""

HOLLOW = "hollow"
"""Label of the model with hardly any weights in a ``layer_grid``."""

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

    At each N the models follow each other directly, since a pass wanders by a tenth from one second to the next.
    labels: one a session; "" or none gives the model's name and format.
    """
    fewest, most = rounds
    fillers = [_filler(session.model) for session in sessions]
    order = random.Random(seed)
    for session, token in zip(sessions, fillers, strict=True):
        session.rewind(0)
        session.extend([token(i) for i in range(context_length)], rows="none")
    samples: list[list[tuple[int, float]]] = [[] for _ in sessions]
    watch, start = machine.CoreWatch(), perf_counter()
    for number in range(most + 1):
        visits = [
            (which, n)
            for n in order.sample(list(ns), len(ns))
            for which in order.sample(range(len(sessions)), len(sessions))
        ]
        for which, n in visits:
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


def pass_costs(
    files: Mapping[str, Path],
    *,
    context_length: int = 32,
    threads: int | None = None,
    precision: float = 0.03,
    rounds: tuple[int, int] = (15, 200),
    max_seconds: float = 20.0,
) -> PassCosts:
    """T(1) of several model files, by label, timed side by side: every round visits each of them. All are in memory."""
    with ExitStack() as opened:
        sessions = [_opened(opened, path, threads) for path in files.values()]
        curves = cost_curves(
            sessions,
            (1,),
            context_length=context_length,
            precision=precision,
            rounds=rounds,
            max_seconds=max_seconds,
            labels=tuple(files),
        )
        return PassCosts(
            costs=tuple(
                PassCost(
                    label=curve.label,
                    format=curve.model.format,
                    n_layer=curve.model.n_layer,
                    n_parameters=curve.model.n_parameters,
                    bytes_per_pass=synthetic.bytes_per_pass(path),
                    samples_ms=curve.samples_ms(1),
                )
                for curve, path in zip(curves, files.values(), strict=True)
            ),
            context_length=context_length,
            threads=sessions[0].threads,
            contended=curves[0].contended,
        )


def layer_grid(source: Path, layer_counts: Sequence[int], formats: Sequence[str], **settings: object) -> PassCosts:
    """T(1) of a model's first layers, so many of them, in several weight formats, and of a hollow model as deep.

    Labels are ``grid_label(layers, format)`` and ``HOLLOW``. settings: ``pass_costs``'s.
    """
    files = {}
    for format in formats:
        whole = models.in_format(source, format)
        n_layer = synthetic.shape_of(whole).n_layer
        for count in layer_counts:
            path = whole if count == n_layer else models.layer_subset(whole, range(count))
            files[grid_label(count, format)] = path
    shape = replace(synthetic.hollow(synthetic.shape_of(source)), n_layer=max(layer_counts))
    with synthetic.model_file(synthetic.plan(shape, "F32")) as path:
        return pass_costs({**files, HOLLOW: path}, **settings)


def grid_label(n_layer: int, format: str) -> str:
    return f"{n_layer} layers, {format}"


def shape_cost(
    shape: str | Shape,
    format: str = "Q4_0",
    *,
    ns: Sequence[int] = SHAPE_NS,
    budget_gib: float = 2.5,
    context_length: int = 128,
    threads: int | None = None,
    precision: float = 0.05,
    rounds: tuple[int, int] = (3, 30),
    max_seconds: float = 15.0,
) -> LayerwiseCost:
    """T(N) of a published shape (``synthetic.SHAPES``) in any weight format, from random weights.

    budget_gib: weights of the two models that are timed side by side, in memory and for that time on
    disk; fewer layers than the shape has where they do not fit (``synthetic.layers_within``). Raises ModelError where
    not even three fit.
    """
    plan = synthetic.plan(synthetic.shape_named(shape) if isinstance(shape, str) else shape, format)
    few, many = synthetic.layers_within(plan, budget_gib * 2**30)
    with ExitStack() as opened:
        sessions = [
            _opened(opened, opened.enter_context(synthetic.model_file(plan, layers)), threads, context_length, max(ns))
            for layers in (few, many)
        ]
        curves = cost_curves(
            sessions, ns, context_length=context_length, precision=precision, rounds=rounds, max_seconds=max_seconds
        )
        rows = [zip(curves[0].samples_ms(n), curves[1].samples_ms(n), strict=True) for n in sorted(ns)]
        return LayerwiseCost(
            label=plan.shape.name,
            format=format,
            few=len(few),
            many=len(many),
            n_layer=plan.shape.n_layer,
            n_parameters=plan.shape.n_parameters,
            weight_bytes=plan.weight_bytes,
            bytes_per_pass=plan.bytes_per_pass,
            samples=tuple((n, *pair) for n, pairs in zip(sorted(ns), rows, strict=True) for pair in pairs),
            context_length=context_length,
            threads=sessions[0].threads,
            contended=curves[0].contended,
        )


def _opened(stack: ExitStack, path: Path, threads: int | None, context_length: int = 32, most_n: int = 1) -> Session:
    """A session for a few passes, closed with the stack, and its model with it."""
    model = stack.enter_context(Model(path))
    n_ctx = context_length + most_n
    return stack.enter_context(
        Session(model, n_ctx=n_ctx, n_batch=max(64, most_n), threads=threads or machine.usable_cores())
    )


def _timed_pass(session: Session, tokens: Sequence[int]) -> float:
    """Milliseconds of one pass; the session is left as it was."""
    n_keep, before = session.n_tokens, perf_counter()
    session.extend(tokens)
    elapsed_ms = (perf_counter() - before) * 1e3
    session.rewind(n_keep)
    return elapsed_ms


def switch_ms(
    session: Session, ns: Sequence[int] = (1, 3, 5, 9), *, context_length: int = 128, rounds: int = 8, seed: int = 0
) -> float:
    """Milliseconds a pass takes longer when its N is not that of the pass before: the median over ``rounds`` of each N.

    llama.cpp then builds its compute graph anew. Each N is visited in a new random order: one pass
    after the change against the one that follows it. Empties the session.
    """
    token, order = _filler(session.model), random.Random(seed)
    session.rewind(0)
    session.extend([token(i) for i in range(context_length)], rows="none")
    longer: list[float] = []
    for _ in range(rounds):
        for n in order.sample(list(ns), len(ns)):
            tokens = [token(n * 100 + i) for i in range(n)]
            longer.append(_timed_pass(session, tokens) - _timed_pass(session, tokens))
    session.rewind(0)
    return max(0.0, median(longer))


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
    stop: Sequence[str] = (),
    exact: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
) -> Run:
    """One generation, plain or speculative. ``on_cycle`` sees each cycle as it happens; its time is not counted.

    stop: strings that end the text and are not part of it; the token that completes one is the last emitted.
    exact: verify by passes over one token (``decoder.decode``).
    """
    return run_policy(
        session,
        Fixed(drafter, limits),
        prompt,
        name=drafter.name,
        limits=limits,
        sampling=sampling,
        max_tokens=max_tokens,
        prompt_kind=prompt_kind,
        stop=stop,
        exact=exact,
        stopped=stopped,
        on_cycle=on_cycle,
    )


def run_policy(
    session: Session,
    policy: decoder.Policy,
    prompt: Sequence[int],
    *,
    on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
    **settings: object,
) -> Run:
    """A whole ``generation``, for any policy. settings: as it takes them. on_cycle: as in ``run``."""
    steps = generation(session, policy, prompt, **settings)
    while True:
        try:
            cycle = next(steps)
        except StopIteration as end:
            return end.value
        on_cycle(cycle)


def generation(
    session: Session,
    policy: decoder.Policy,
    prompt: Sequence[int],
    *,
    name: str,
    limits: Limits,
    sampling: Sampling,
    max_tokens: int,
    prompt_kind: str = "",
    stop: Sequence[str] = (),
    exact: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[Cycle, None, Run]:
    """One generation, cycle by cycle; the record is what the generator returns. Arguments as in ``run``.

    The record says ``name`` and ``limits``, and each cycle who drafted in it.
    """
    model = session.model
    start = perf_counter()
    decoder.prefill(session, policy, prompt)
    prefill_s = perf_counter() - start
    in_llama_before = session.in_llama_s + _draft_seconds(policy.drafters)
    cycles: list[Cycle] = []
    sampler = Sampler(sampling, prompt=prompt)
    assembler = Assembler(model.piece, stop=stop)
    for cycle in decoder.decode(
        session,
        policy,
        sampler,
        prompt,
        max_tokens=max_tokens,
        ends_text=ending(assembler, model.is_eog),
        stopped=stopped,
        exact=exact,
    ):
        cycles.append(cycle)
        yield cycle
    tokens = [token for cycle in cycles for token in cycle.emitted]
    return Run(
        prompt_tokens=tuple(prompt),
        cycles=tuple(cycles),
        drafter=name,
        k=limits.k,
        n_min=limits.n_min,
        p_min=limits.p_min,
        sampling=sampling,
        prefill_s=prefill_s,
        target=f"{model.info.name} {model.format}",
        prompt_kind=prompt_kind,
        text=assembler.text,
        finish="stop string" if assembler.stopped else _finish(tokens, model, max_tokens, stopped()),
        in_llama_s=session.in_llama_s + _draft_seconds(policy.drafters) - in_llama_before,
    )


def race(arms: Sequence[Callable[[], Run]], *, repeats: int = 3, seed: int = 0) -> RunSet:
    """Runs every arm ``repeats`` times, interleaved in a new random order each time, so that drift favours nobody."""
    order = random.Random(seed)
    return RunSet(tuple(arm() for _ in range(repeats) for arm in order.sample(list(arms), len(arms))))


def plain_answers(
    session: BatchSession, prompts: Sequence[Sequence[int]], *, max_tokens: int
) -> tuple[tuple[int, ...], ...]:
    """What the target says greedily to each prompt, ``max_tokens`` tokens or more, all decoded together.

    The session then holds the prompts, as ``under_load`` wants it. Nothing ends a text, not even a
    token that says so: every answer is as long as the others.
    """
    for sequence, prompt in zip(session.sequences, prompts, strict=True):
        decoder.prefill(sequence, Fixed(NoDrafter(), Limits(k=0)), prompt)
    texts = [_plain_text(each, prompt, max_tokens) for each, prompt in zip(session.sequences, prompts, strict=True)]
    passes = list(decode_together(session, texts, [Sampler(Sampling()) for _ in texts]))
    return tuple(tuple(token for cycles in passes for token in cycles[i].emitted) for i in range(len(texts)))


def _plain_text(sequence: decoder.Target, prompt: Sequence[int], max_tokens: int) -> decoder.Text:
    return decoder.Text(sequence, Fixed(NoDrafter(), Limits(k=0)), prompt, max_tokens=max_tokens)


def under_load(
    session: BatchSession,
    prompts: Sequence[Sequence[int]],
    arms: Mapping[str, Callable[[int], Drafter]],
    *,
    k: int,
    counts: Sequence[int] = (1, 2, 4, 8, 16),
    max_tokens: int = 24,
    repeats: int = 3,
    seed: int = 0,
) -> LoadSweep:
    """Decodes the first 1, 2, 4, ... prompts together, greedily, plainly and with each arm's drafts.

    The session holds the prompts, each all but its last token (``plain_answers``).
    arms: label -> what makes the drafter of the i-th sequence. At each load the arms are interleaved,
    ``repeats`` times over; a run ends when one of its texts has ``max_tokens`` (see ``LoadRun``), and no
    text ends before. The loads go from the largest down, since a prompt in the cache costs the others.
    Raises SessionError, naming the numbers, where ``max(counts) * (k + 1)`` rows do not fit a pass.
    """
    order, made = random.Random(seed), {"none": lambda _i: NoDrafter(), **arms}
    runs: list[LoadRun] = []
    for count in sorted(counts, reverse=True):
        for sequence in session.sequences[count:]:
            sequence.rewind(0)
        for _ in range(repeats):
            for label in order.sample(list(made), len(made)):
                drafters = [made[label](i) for i in range(count)]
                runs.append(
                    _load_run(session, prompts[:count], label, drafters, 0 if label == "none" else k, max_tokens)
                )
    return LoadSweep(tuple(reversed(runs)))


def _load_run(
    session: BatchSession,
    prompts: Sequence[Sequence[int]],
    label: str,
    drafters: Sequence[Drafter],
    k: int,
    max_tokens: int,
) -> LoadRun:
    texts = []
    for sequence, prompt, drafter in zip(session.sequences, prompts, drafters, strict=False):
        sequence.rewind(len(prompt) - 1)
        drafter.begin(prompt)
        # With room to spare, so that the last drafts are as long as the others.
        spare = max_tokens + k + 1
        texts.append(decoder.Text(sequence, Fixed(drafter, Limits(k=k)), prompt, max_tokens=spare))
    held = session.n_tokens
    passes = decode_together(
        session,
        texts,
        [Sampler(Sampling()) for _ in texts],
        stopped=lambda: any(text.left <= k + 1 for text in texts),
    )
    return LoadRun(len(texts), label, k, held, tuple(shared_pass(cycles) for cycles in passes))


def _draft_seconds(drafters: Sequence[Drafter]) -> float:
    """Seconds that drafters, those of chains included, have spent inside llama.cpp; look-ups use no model."""
    each = (inner for drafter in drafters for inner in getattr(drafter, "drafters", (drafter,)))
    sessions = (getattr(drafter, "session", None) for drafter in each)
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
