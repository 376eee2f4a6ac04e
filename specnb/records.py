"""What was measured: frozen records that hold counts and samples.

Every rate is a named property with one meaning. Times are seconds inside records of runs
(``*_s``) and milliseconds in cost curves (``ms``), because a pass is milliseconds long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Limits:
    """What one draft may be.

    k:      the most tokens a draft may have.
    n_min:  a draft shorter than this is cleared (and then counts as nothing drafted).
    p_min:  a drafter with confidences stops *before* the first token whose confidence is below this.
    room:   tokens that may still be drafted before the budget or the context is full; None: no such limit.
    """

    k: int
    n_min: int = 0
    p_min: float = 0.0
    room: int | None = None

    def __post_init__(self) -> None:
        if self.k != int(self.k):
            raise ValueError(f"k counts tokens; it cannot be {self.k}.")
        if self.k < 0:
            raise ValueError(f"k is the most tokens a draft may have; it cannot be {self.k}.")
        if self.n_min < 0:
            raise ValueError(f"n_min is the shortest draft worth verifying; it cannot be {self.n_min}.")
        if not 0.0 <= self.p_min <= 1.0:
            raise ValueError(f"p_min is a probability between 0 and 1; it cannot be {self.p_min}.")

    @property
    def longest(self) -> int:
        """The most tokens that may really be drafted: k, or less when the room is smaller."""
        return self.k if self.room is None else max(0, min(self.k, self.room))


@dataclass(frozen=True, slots=True)
class Context:
    """What a drafter sees: every token so far. The last one is pending (chosen, not yet fed to the target).

    states: the target's hidden state of every token but the pending one, a float32 array of shape
    (len(tokens) - 1, n_embd); None when the target's session does not keep them.
    """

    tokens: tuple[int, ...] | list[int]
    states: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed for one cycle; empty is legal.

    confidences: for each token, the drafter's probability for it among its ten best; None when
    the drafter has no such number (n-gram look-up).
    """

    tokens: tuple[int, ...] = ()
    confidences: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cycle:
    """One target pass: a draft, its verification, and the tokens that came out.

    context_length: tokens in the target's cache before the pass.
    drafted:        the tokens proposed (realised draft length is ``len(drafted)``).
    tested:         how many of them verification looked at, up to and including the first refusal.
    emitted:        the kept tokens and then the target's own one (absent when a kept token ended the text).
    kept:           how many drafted tokens were accepted.
    *_s:            seconds; ``other_s`` is everything that is neither draft, pass nor sampling.
    """

    drafter: str
    context_length: int
    drafted: tuple[int, ...]
    tested: int
    kept: int
    emitted: tuple[int, ...]
    confidences: tuple[float, ...] | None = None
    draft_s: float = 0.0
    verify_s: float = 0.0
    sampling_s: float = 0.0
    other_s: float = 0.0

    @property
    def n_rows(self) -> int:
        """N of this cycle's T(N): the pending token's row and one per drafted token."""
        return 1 + len(self.drafted)

    @property
    def refused(self) -> tuple[int, ...]:
        """Drafted tokens that were not kept, tested or not."""
        return self.drafted[self.kept :]

    @property
    def seconds(self) -> float:
        return self.draft_s + self.verify_s + self.sampling_s + self.other_s


@dataclass(frozen=True, slots=True)
class Penalties:
    """Lowers the logits of tokens among the last ``last_n``, the prompt's included (llama.cpp's penalties sampler).

    repeat: divides a positive logit and multiplies another one; 1 is off. frequency: subtracted once for
    each time the token is there; presence: subtracted once. 0 is off; below 0 they invite repetition.
    """

    repeat: float = 1.1
    frequency: float = field(default=0.0, metadata={"signed": True})
    presence: float = field(default=0.0, metadata={"signed": True})
    last_n: int = 64

    def __post_init__(self) -> None:
        if not 0.0 < self.repeat < float("inf"):
            raise ValueError(f"repeat must be above 0 and finite (1 is off); got {self.repeat}.")
        for name in ("frequency", "presence"):
            if not abs(getattr(self, name)) < float("inf"):
                raise ValueError(f"{name} must be a finite number (0 is off); got {getattr(self, name)}.")
        if self.last_n < 1:
            raise ValueError(f"last_n counts tokens, 1 or more; got {self.last_n}. For no penalties leave them out.")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the target chooses a token. ``temperature`` 0 is greedy and ignores filters and seed.

    Order as in llama.cpp's default chain: penalties, top-k, top-p, min-p, temperature, draw with
    ``seed``. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0 and ``penalties`` None each mean "off".
    """

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int = 1
    penalties: Penalties | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 (greedy) or more, and finite; got {self.temperature}.")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more; got {self.top_k}.")
        for name in ("top_p", "min_p"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is a probability between 0 and 1; got {getattr(self, name)}.")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model file is, as far as cost depends on it.

    name: what people call it; no path. format: weight format, e.g. "Q4_0". weight_bytes: size of
    all tensors. n_vocab, n_embd, n_layer: shape.
    """

    name: str
    architecture: str
    format: str
    n_parameters: int
    weight_bytes: int
    n_layer: int
    n_embd: int
    n_vocab: int
    n_ctx_train: int


@dataclass(frozen=True, slots=True)
class Machine:
    """Where something was measured. Never a host name or a path.

    source: for measurements that are not ours, who published them.
    """

    name: str
    cores: int | None = None
    memory_gib: float | None = None
    os: str | None = None
    backend: str | None = None
    build: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One generation: the same record for plain decoding (drafter "none") and speculation."""

    prompt_tokens: tuple[int, ...]
    cycles: tuple[Cycle, ...]
    drafter: str
    k: int
    n_min: int
    p_min: float
    sampling: Sampling
    prefill_s: float
    target: str = ""
    prompt_kind: str = ""
    text: str = ""
    finish: str = ""
    in_llama_s: float = 0.0

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for cycle in self.cycles for token in cycle.emitted)

    @property
    def emitted(self) -> int:
        return sum(len(cycle.emitted) for cycle in self.cycles)

    @property
    def drafted(self) -> int:
        return sum(len(cycle.drafted) for cycle in self.cycles)

    @property
    def tested(self) -> int:
        return sum(cycle.tested for cycle in self.cycles)

    @property
    def kept(self) -> int:
        return sum(cycle.kept for cycle in self.cycles)

    @property
    def target_passes(self) -> int:
        """Target passes after the prompt, those without a draft counted."""
        return len(self.cycles)

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """Realised draft length of every cycle, zeros included."""
        return tuple(len(cycle.drafted) for cycle in self.cycles)

    @property
    def decode_s(self) -> float:
        """Seconds of generation after the prompt was processed."""
        return sum(cycle.seconds for cycle in self.cycles)

    @property
    def tokens_per_second(self) -> float | None:
        """Emitted tokens per second of generation (prompt processing excluded)."""
        return self.emitted / self.decode_s if self.decode_s > 0 else None

    @property
    def tokens_per_cycle(self) -> float | None:
        """Emitted / target passes, plain passes counted; between 1 and k+1."""
        return self.emitted / self.target_passes if self.cycles else None

    @property
    def acceptance_rate(self) -> float | None:
        """Kept / drafted, the figure llama.cpp prints. None when nothing was drafted."""
        return self.kept / self.drafted if self.drafted else None

    @property
    def alpha_tested(self) -> float | None:
        """Live alpha by counting: kept / tested. None when nothing was tested."""
        return self.kept / self.tested if self.tested else None

    @property
    def mean_draft_length(self) -> float | None:
        """Realised k: drafted tokens per target pass, empty drafts counted."""
        return self.drafted / self.target_passes if self.cycles else None

    def kept_by_position(self) -> tuple[tuple[int, int], ...]:
        """For draft position 1, 2, ...: (times kept, times tested). Conditional on being reached."""
        longest = max(self.draft_lengths, default=0)
        return tuple(
            (sum(c.kept > i for c in self.cycles), sum(c.tested > i for c in self.cycles)) for i in range(longest)
        )


@dataclass(frozen=True, slots=True)
class TokenTexts:
    """What tokens read as, so that a recorded run can be read without its model. texts: token id -> text."""

    texts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Pick:
    """What the adaptive policy decided before one cycle, and what it knew.

    drafter, k: who drafted and how many tokens at most; "none" and 0 for a plain pass. tried: a model
    drafted besides, to be judged without being verified. alphas: (drafter, its running estimate).
    purse_ms: gained over plain decoding so far, its allowance included.
    """

    drafter: str
    k: int
    tried: bool
    alphas: tuple[tuple[str, float], ...]
    purse_ms: float = field(metadata={"signed": True})


@dataclass(frozen=True, slots=True)
class AdaptiveRun:
    """A generation under the adaptive policy: what happened, and the choice before each cycle."""

    run: Run
    picks: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class RunSet:
    """Several runs in the order they were made, interleaved so that drift favours none of them."""

    runs: tuple[Run, ...]

    def of(self, drafter: str) -> tuple[Run, ...]:
        """The runs of one drafter. Raises KeyError naming those there are."""
        found = tuple(run for run in self.runs if run.drafter == drafter)
        if not found:
            raise KeyError(f"No run of {drafter!r}; there are {', '.join(sorted({run.drafter for run in self.runs}))}.")
        return found

    def speeds(self, drafter: str) -> tuple[float, ...]:
        """Tokens per second of each run of one drafter."""
        return tuple(run.tokens_per_second for run in self.of(drafter) if run.tokens_per_second is not None)


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two runs of the same prompt and sampling first emit different tokens, and what a control says of it.

    position: of the emitted token, from 0. plain_token, other_token: None where that text has ended.
    gap: between the two best logits there, in a pass over one token. rounding: the largest change of a
    logit there when the same tokens are evaluated in passes as long as the other run's.
    reproduced: without any draft, the same sampler chooses ``plain_token`` from the control's row of a
    pass over one token and ``other_token`` from its row of the longer pass. For greedy text that
    implies gap <= 2 * rounding.
    """

    position: int
    plain_token: int | None
    other_token: int | None
    gap: float
    rounding: float
    reproduced: bool

    @property
    def within_rounding(self) -> bool:
        """Whether the two best could change places: each moves by ``rounding`` at most."""
        return self.gap <= 2.0 * self.rounding


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run held against plain decoding, token by token. compared: tokens up to the first difference, or all."""

    drafter: str
    k: int
    compared: int
    divergence: Divergence | None = None

    @property
    def verdict(self) -> str:
        """ "identical", "explained" (the control makes the same two choices) or "unexplained"."""
        if self.divergence is None:
            return "identical"
        return "explained" if self.divergence.reproduced else "unexplained"


@dataclass(frozen=True, slots=True)
class ComparisonSet:
    """Several comparisons, in the order in which they were made."""

    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Rounding:
    """How far logits move when the same tokens are evaluated N in a pass instead of one.

    changes: (N, largest change of any logit at any position, positions at which any logit changed).
    logit_range: mean over positions of the largest minus the smallest logit. gaps: between the two best
    logits, one a position, ascending.
    """

    label: str
    positions: int
    logit_range: float
    changes: tuple[tuple[int, float, int], ...] = field(metadata={"names": ("n", "change", "positions")})
    gaps: tuple[float, ...]

    @property
    def change_by_n(self) -> dict[int, float]:
        return {n: change for n, change, _ in self.changes}


@dataclass(frozen=True, slots=True)
class AcceptanceByRule:
    """Mean chance that a drafted token is kept along a given text (*recorded*), by rule, at several temperatures.

    sampled_rejection, sampled_match: the draft is drawn from the drafter's distribution, and kept by
    rejection sampling or when it equals the target's own draw. greedy: the draft is the drafter's best
    token, for which both rules have the same chance.
    """

    drafter: str
    positions: int
    temperatures: tuple[float, ...]
    sampled_rejection: tuple[float, ...]
    sampled_match: tuple[float, ...]
    greedy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """tokens[start:stop] repeats itself every ``period`` tokens."""

    start: int
    stop: int
    period: int

    @property
    def repeats(self) -> float:
        """How many times the period fits in."""
        return (self.stop - self.start) / self.period


@dataclass(frozen=True, slots=True)
class LayerSet:
    """Layers of a model that were kept, and how often their greedy choice agreed with all layers' (a share).

    The agreement is *recorded* alpha: along a given text, of ``positions`` tokens. It flatters.
    """

    layers: tuple[int, ...]
    agreement: float
    positions: int


@dataclass(frozen=True, slots=True)
class LayerSearch:
    """Layer subsets of one model file, fewest dropped first.

    model: the file's name. sets: found by a search. early_exits: the first layers only, none searched for.
    """

    model: str
    method: str
    sets: tuple[LayerSet, ...]
    early_exits: tuple[LayerSet, ...] = ()

    def keeping(self, count: int) -> LayerSet:
        """The searched set of that many layers. Raises KeyError naming the counts there are."""
        for found in self.sets:
            if len(found.layers) == count:
                return found
        counts = ", ".join(str(len(found.layers)) for found in self.sets) or "none"
        raise KeyError(f"No subset of {count} layers was searched for {self.model}; there are {counts}.")


@dataclass(frozen=True, slots=True)
class CostCurve:
    """T(N): wall time of one target pass over N tokens at a stated context length.

    samples: (N, ms) in the order they were measured, so that drift can be seen. Nothing between
    measured N is ever filled in: a kernel's dips and cliffs are real.
    contended: some samples were taken while another process held a core (see ``measure``).
    recorded: for published curves, when and where; empty for a curve measured here and now.
    """

    label: str
    samples: tuple[tuple[int, float], ...] = field(metadata={"names": ("n", "ms")})
    context_length: int
    threads: int | None
    machine: Machine
    model: ModelInfo | None = None
    seconds: float = 0.0
    drift: float = field(default=0.0, metadata={"signed": True})
    contended: bool = False
    recorded: str = ""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"The cost curve {self.label!r} holds no samples.")
        for n, ms in self.samples:
            if n < 1 or not 0.0 < ms < float("inf"):
                raise ValueError(f"The cost curve {self.label!r} holds an impossible sample: N={n}, {ms} ms.")

    @property
    def ns(self) -> tuple[int, ...]:
        return tuple(sorted({n for n, _ in self.samples}))

    def samples_ms(self, n: int) -> tuple[float, ...]:
        """Every sample at N, in the order measured. A missing N raises KeyError."""
        found = tuple(ms for m, ms in self.samples if m == n)
        if not found:
            raise KeyError(f"N={n} was not measured in {self.label!r}; measured: {', '.join(map(str, self.ns))}.")
        return found

    @property
    def median_ms(self) -> dict[int, float]:
        """N -> median ms, ascending in N: the mapping that ``theory`` takes as ``verify_ms``."""
        grouped: dict[int, list[float]] = {}
        for n, ms in self.samples:
            grouped.setdefault(n, []).append(ms)
        return {n: median(grouped[n]) for n in sorted(grouped)}


@dataclass(frozen=True, slots=True)
class DraftCost:
    """Time of one drafted token, measured apart from any run it may predict.

    samples_ms: milliseconds per drafted token, one per proposal.
    """

    label: str
    samples_ms: tuple[float, ...]
    k: int
    context_length: int

    @property
    def ms_per_token(self) -> float:
        return median(self.samples_ms)


@dataclass(frozen=True, slots=True)
class DrafterScore:
    """One drafter in one weight format on one kind of prompt (``python -m specnb.bench drafters``).

    kind: of prompt; "all" for plain decoding, "loops" for answers that fell into a repetition loop. k: its median.
    alpha, alpha_first: live, over the chain and of each draft's first token. speedup: over plain decoding in the same
    format, median over prompts, and its 95 % interval. against_fastest_plain: tokens per second over plain decoding's
    in the format where that is fastest.
    """

    drafter: str
    format: str
    kind: str
    temperature: float
    k: int
    tokens_per_cycle: float
    speedup: float
    tokens_per_second: float
    against_fastest_plain: float
    prompts: int
    alpha: float | None = None
    alpha_first: float | None = None
    gamma: float | None = None
    predicted: float | None = None
    speedup_ci: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DrafterScores:
    """Plain decoding in every format, then the drafters."""

    rows: tuple[DrafterScore, ...]
    prompts: int


@dataclass(frozen=True, slots=True)
class DraftMemory:
    """What a drafter's model holds in memory beside the target.

    weight_bytes: its tensors. cache_bytes_per_token: keys and values of one token. n_ctx: tokens that fit its cache.
    """

    label: str
    weight_bytes: int
    cache_bytes_per_token: float
    n_ctx: int

    @property
    def mib(self) -> float:
        """Weights and the whole cache, in MiB."""
        return (self.weight_bytes + self.cache_bytes_per_token * self.n_ctx) / 2**20


@dataclass(frozen=True, slots=True)
class LayerwiseCost:
    """T(N) of a shape of which a few layers were timed beside a model with more of them (``measure.shape_cost``).

    samples: (N, ms with ``few`` layers, ms with ``many``), one a round. n_layer: of the whole shape. Where ``many``
    is less, the whole is extrapolated: each further layer costs what the added ones did. Nothing is extrapolated in N.
    n_parameters, weight_bytes, bytes_per_pass: of the whole shape; the last is what a pass over one token reads.
    """

    label: str
    format: str
    few: int
    many: int
    n_layer: int
    n_parameters: int
    weight_bytes: int
    bytes_per_pass: int
    samples: tuple[tuple[int, float, float], ...] = field(metadata={"names": ("n", "few_ms", "many_ms")})
    context_length: int
    threads: int
    contended: bool

    def __post_init__(self) -> None:
        if not 0 < self.few <= self.many <= self.n_layer or (self.few == self.many < self.n_layer):
            raise ValueError(
                f"{self.label}: {self.few} and {self.many} layers cannot tell what {self.n_layer} cost; "
                "fewer and more of them are needed."
            )
        if not self.samples:
            raise ValueError(f"The layerwise cost of {self.label!r} holds no samples.")

    @property
    def extrapolated(self) -> bool:
        """Whether the whole shape is larger than what was timed."""
        return self.many < self.n_layer

    @property
    def ns(self) -> tuple[int, ...]:
        return tuple(sorted({n for n, _, _ in self.samples}))

    def samples_ms(self, n: int) -> tuple[float, ...]:
        """The whole shape's pass over N rows by each round. A missing N raises KeyError."""
        found = tuple(self._whole(few, many) for m, few, many in self.samples if m == n)
        if not found:
            raise KeyError(f"N={n} was not measured in {self.label!r}; measured: {', '.join(map(str, self.ns))}.")
        return found

    @property
    def median_ms(self) -> dict[int, float]:
        """N -> median ms of the whole shape, ascending in N: the mapping that ``theory`` takes as ``verify_ms``."""
        return {n: median(self.samples_ms(n)) for n in self.ns}

    def _whole(self, few_ms: float, many_ms: float) -> float:
        if not self.extrapolated:
            return many_ms
        return many_ms + (self.n_layer - self.many) * (many_ms - few_ms) / (self.many - self.few)


@dataclass(frozen=True, slots=True)
class PassCost:
    """A pass over one token of one model, timed beside others. bytes_per_pass: of weights that the pass reads."""

    label: str
    format: str
    n_layer: int
    n_parameters: int
    bytes_per_pass: int
    samples_ms: tuple[float, ...]

    @property
    def ms(self) -> float:
        return median(self.samples_ms)

    @property
    def gb_per_s(self) -> float:
        """Effective bandwidth in gigabytes (10^9) of weights per second."""
        return self.bytes_per_pass / 1e6 / self.ms


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Models whose passes were timed side by side, every round visiting each."""

    costs: tuple[PassCost, ...]
    context_length: int
    threads: int
    contended: bool

    def of(self, label: str) -> PassCost:
        """One model's. Raises KeyError naming those there are."""
        for cost in self.costs:
            if cost.label == label:
                return cost
        raise KeyError(f"No pass of {label!r} was timed; there are {', '.join(cost.label for cost in self.costs)}.")


@dataclass(frozen=True, slots=True)
class MemoryBandwidth:
    """Streaming reads of a buffer far larger than the caches. samples: (threads, GB/s), in the order measured."""

    samples: tuple[tuple[int, float], ...] = field(metadata={"names": ("threads", "gb_per_s")})
    buffer_mib: float
    contended: bool

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("A memory bandwidth needs at least one timed read.")

    @property
    def ceiling_gb_per_s(self) -> float:
        """The fastest read seen: whatever disturbs a read makes it slower, never faster."""
        return max(rate for _, rate in self.samples)

    @property
    def by_threads(self) -> dict[int, float]:
        """Threads -> the fastest read with as many."""
        fastest: dict[int, float] = {}
        for threads, rate in self.samples:
            fastest[threads] = max(rate, fastest.get(threads, 0.0))
        return dict(sorted(fastest.items()))


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One row of somebody else's table of runs. repeats: tokens/s of later runs at the same k."""

    k: int
    tokens_per_second: float
    acceptance_rate: float
    speedup: float
    repeats: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedLedgerRow:
    """A published prediction beside its measurement. Times in ms, speeds in tokens/s."""

    k: int
    tokens_per_cycle: float
    draft_ms: float
    verify_ms: float
    predicted: float
    measured: float


@dataclass(frozen=True, slots=True)
class PublishedCliff:
    """The same step in another model: ms of a pass over 8 and over 9 tokens."""

    model: str
    ms_8: float
    ms_9: float

    @property
    def ratio(self) -> float:
        return self.ms_9 / self.ms_8


@dataclass(frozen=True, slots=True)
class PublishedKernel:
    """Which matrix kernel serves first_n <= N <= last_n (None: no upper end)."""

    first_n: int
    kernel: str
    last_n: int | None = None
    ms_per_extra_token: float | None = None


@dataclass(frozen=True, slots=True)
class PublishedBandwidth:
    """Weights read once per token: what plain decoding takes from the memory bus."""

    model: str
    n_layer: int
    weights_mib: float
    ms_per_token: float

    @property
    def gb_per_s(self) -> float:
        """Gigabytes (10^9) per second."""
        return self.weights_mib * 2**20 / 1e6 / self.ms_per_token


@dataclass(frozen=True, slots=True)
class PublishedStudy:
    """The M5 Pro article as records: its staircase, runs, ledger and the costs they rest on.

    curve: the table; rerun: the later pass over the same staircase, as far as it is published;
    unlisted: passes that the ledger uses and the table lacks. throughput: N -> tokens/s, the figures
    the curve was computed from. facts: single figures, by name.
    """

    title: str
    provenance: str
    machine: Machine
    curve: CostCurve
    rerun: CostCurve
    unlisted: CostCurve
    throughput: Mapping[int, float]
    runs: tuple[PublishedRun, ...]
    ledger: tuple[PublishedLedgerRow, ...]
    cliffs: tuple[PublishedCliff, ...]
    kernels: tuple[PublishedKernel, ...]
    bandwidth: tuple[PublishedBandwidth, ...]
    draft_ms: float
    target_ms: float
    plain_tokens_per_second: float
    plain_repeats: tuple[float, ...]
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def plain_ms(self) -> float:
        """Milliseconds per token of the plain baseline: neither T(1) nor ``target_ms``."""
        return 1000.0 / self.plain_tokens_per_second

    @property
    def gamma(self) -> float:
        return self.draft_ms / self.target_ms

    @property
    def verify_ms(self) -> dict[int, float]:
        """N -> ms with every N the ledger needs: the table and what it lacks."""
        return {**self.curve.median_ms, **self.unlisted.median_ms}


@dataclass(frozen=True, slots=True)
class PublishedCounts:
    """Counts somebody printed. Emitted = cycles + kept + plain passes (+ the first token), where stated.

    source: where, as repository#number. cycles: passes with a draft. kept_by_position: share kept at
    draft position 1, 2, ... of all cycles. speeds in tokens/s. draft_ms: per drafted token.
    """

    label: str
    source: str
    drafted: int
    kept: int
    k: int | None = None
    cycles: int | None = None
    emitted: int | None = None
    plain_passes: int | None = None
    kept_by_position: tuple[float, ...] = ()
    tokens_per_second: float | None = None
    plain_tokens_per_second: float | None = None
    draft_ms: float | None = None

    @property
    def acceptance_rate(self) -> float | None:
        """Kept / drafted. None when nothing was drafted."""
        return self.kept / self.drafted if self.drafted else None

    @property
    def tokens_per_cycle(self) -> float | None:
        """1 + kept per pass with a draft. None where cycles are not stated."""
        return 1 + self.kept / self.cycles if self.cycles else None


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """One setting of a sweep. None: not stated."""

    tokens_per_second: float
    k: int | None = None
    p_min: float | None = None
    acceptance_rate: float | None = None
    drafted: int | None = None
    kept: int | None = None
    emitted: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedSweep:
    """Speed against one setting. varied: "k" or "p_min"."""

    label: str
    source: str
    varied: str
    points: tuple[PublishedPoint, ...]
    plain_tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class PublishedRepeat:
    """The same request twice: tokens/s of the first and the second time. told: what had been kept in between."""

    label: str
    source: str
    first_tokens_per_second: float
    second_tokens_per_second: float
    told: str = ""

    @property
    def ratio(self) -> float:
        return self.second_tokens_per_second / self.first_tokens_per_second


@dataclass(frozen=True, slots=True)
class FieldReports:
    """What users of several engines published: curves, counts and sweeps, each with its source.

    curves: measured by others; a context length they do not state is 0, as for llama-bench.
    counts: rows with the number of cycles. summaries: rows of llama.cpp's example program, which
    prints drafted and kept but not the cycles. repeats: requests that were faster the second time.
    """

    title: str
    provenance: str
    curves: tuple[CostCurve, ...]
    counts: tuple[PublishedCounts, ...]
    summaries: tuple[PublishedCounts, ...]
    sweeps: tuple[PublishedSweep, ...]
    repeats: tuple[PublishedRepeat, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with a setting of speculation, or that nothing is (``diagnose``).

    name: "fine", "structural", "too few tokens", "looped text", "over a cliff", "too long", "too short", "dear draft",
    "dear passes", "nothing drafted" or "costs unknown". text: the same for a reader, with figures and what to do.
    tokens_per_cycle: expected from alpha at ``k``. speedup, better_speedup: predicted, at ``k`` and at ``better_k``,
    where another k is better. free_speedup: of the best k if drafts cost nothing, where no k pays.
    cliff_n: the first dear N between ``better_k`` and ``k``. tested: tokens that an alpha near 0 was counted over.
    None: does not apply, or not known.
    """

    name: str
    k: int
    text: str = ""
    alpha: float | None = None
    acceptance: float | None = None
    tokens_per_cycle: float | None = None
    speedup: float | None = None
    better_k: int | None = None
    better_speedup: float | None = None
    free_speedup: float | None = None
    cliff_n: int | None = None
    tested: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedCounts:
    """What another tool printed about its speculation (``intake``); None: it did not say.

    tool: whose numbers, and in which of its formats. label: which of several, such as a slot and task.
    requests: answers summed in these counts. first_tokens: emitted tokens that came from the prompts' passes.
    drafts: (fewest, most) target passes that verified a draft, equal when known exactly.
    passes: (fewest, most) target passes after the prompts, those without a draft counted.
    emitted: tokens generated. k: the longest draft allowed. kept_by_position: times kept at draft position 1, 2, ...
    acceptance, mean_length: the printed rate and the printed tokens per drafted pass, for comparison with the counts.
    per_position: printed shares kept at position 1, 2, ... of all drafted passes.
    seconds: of generation, prompts excluded. draft_ms: per drafted token.
    rounded: the tool prints large counts to six digits.
    """

    tool: str
    label: str
    drafted: int
    kept: int
    drafts: tuple[int, int] | None = None
    passes: tuple[int, int] | None = None
    emitted: int | None = None
    first_tokens: int | None = None
    k: int | None = None
    kept_by_position: tuple[int, ...] = ()
    per_position: tuple[float, ...] = ()
    acceptance: float | None = None
    mean_length: float | None = None
    seconds: float | None = None
    draft_ms: float | None = None
    requests: int | None = 1
    rounded: bool = False

    @property
    def acceptance_rate(self) -> float | None:
        """Kept / drafted. None when nothing was drafted."""
        return self.kept / self.drafted if self.drafted else None

    @property
    def tokens_per_second(self) -> float | None:
        """Emitted tokens per second of generation."""
        return self.emitted / self.seconds if self.emitted and self.seconds else None


# --- sweeps and advice -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reader can set. Plain decoding is the drafter "none" with k = 0."""

    drafter: str
    k: int
    p_min: float = 0.0

    def __post_init__(self) -> None:
        Limits(k=self.k, p_min=self.p_min)

    @property
    def plain(self) -> bool:
        return self.k == 0


PLAIN = Setting("none", 0)
"""Plain decoding, always a candidate."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One point of a sweep: a setting that wrote the prompt of one kind, once.

    stage: "pilot", "screen" or "final" (measured after all choices, so that choosing flatters none) of a racing
    sweep, "grid" of an exhaustive one. passes: target passes. seconds: of decoding, the prompt excluded.
    contended: another process held a core meanwhile. looped: the text repeats itself, which flatters drafters.
    """

    drafter: str
    k: int
    p_min: float
    kind: str
    stage: str
    repeat: int
    emitted: int
    passes: int
    drafted: int
    kept: int
    seconds: float
    contended: bool = False
    looped: bool = False

    def __post_init__(self) -> None:
        where = f"The trial of {self.drafter}, k={self.k} on {self.kind!r}"
        if not 0.0 < self.seconds < float("inf"):
            raise ValueError(f"{where} took {self.seconds} s: a time is above 0 and finite.")
        if not 0 <= self.kept <= self.drafted:
            raise ValueError(f"{where} kept {self.kept} of {self.drafted} drafted tokens: acceptance is at most 1.")
        if not self.passes <= self.emitted <= (self.k + 1) * self.passes or self.passes < 1:
            raise ValueError(
                f"{where} emitted {self.emitted} tokens in {self.passes} passes: tokens per cycle lie between 1 and "
                f"k + 1 = {self.k + 1}."
            )

    @property
    def setting(self) -> Setting:
        return Setting(self.drafter, self.k, self.p_min)

    @property
    def ms_per_token(self) -> float:
        """Milliseconds of decoding per emitted token."""
        return 1e3 * self.seconds / self.emitted

    @property
    def tokens_per_cycle(self) -> float:
        return self.emitted / self.passes

    @property
    def acceptance_rate(self) -> float | None:
        """Kept / drafted. None when nothing was drafted."""
        return self.kept / self.drafted if self.drafted else None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a setting would cost on one kind, replayed from a pilot run and costs measured apart from it."""

    drafter: str
    k: int
    p_min: float
    kind: str
    ms_per_token: float
    tokens_per_cycle: float

    @property
    def setting(self) -> Setting:
        return Setting(self.drafter, self.k, self.p_min)


@dataclass(frozen=True, slots=True)
class DraftPrice:
    """Milliseconds of a draft of one token, and of each further token, measured apart from any run."""

    drafter: str
    first_ms: float
    further_ms: float

    def __post_init__(self) -> None:
        for name in ("first_ms", "further_ms"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise ValueError(
                    f"A draft of {self.drafter} costs 0 ms or more, and not {getattr(self, name)} ms ({name})."
                )

    def ms(self, tokens: int) -> float:
        """Milliseconds of a draft for which ``tokens`` tokens were computed."""
        return self.first_ms + (tokens - 1) * self.further_ms if tokens else 0.0


@dataclass(frozen=True, slots=True)
class SweepCosts:
    """What passes and drafts cost, measured apart. prices: none for look-ups, which run no model."""

    curve: CostCurve
    prices: tuple[DraftPrice, ...] = ()

    def price(self, drafter: str) -> DraftPrice:
        """A drafter's price; free where none was measured."""
        return next((price for price in self.prices if price.drafter == drafter), DraftPrice(drafter, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Points over drafter, k, p_min and prompt kind, of one target on one machine.

    method: "racing" (forecasts first, the few most promising measured) or "exhaustive" (every cell measured).
    settings: every setting looked at. complete: False where it was stopped. rerun: points that were measured again
    because of other programs. seconds: spent measuring, over all sittings.
    """

    machine: Machine
    target: str
    method: str
    kinds: tuple[str, ...]
    settings: tuple[Setting, ...]
    max_tokens: int
    costs: SweepCosts
    trials: tuple[Trial, ...]
    seconds: float
    complete: bool
    forecasts: tuple[Forecast, ...] = ()
    rerun: tuple[Trial, ...] = ()

    def of(self, setting: Setting, kind: str) -> tuple[Trial, ...]:
        """The trials to judge a setting by on one kind: the final ones where there are any, else all."""
        found = [trial for trial in self.trials if trial.setting == setting and trial.kind == kind]
        return tuple([trial for trial in found if trial.stage == "final"] or found)

    def measured(self, kind: str) -> tuple[Setting, ...]:
        """Settings with trials on one kind, plain decoding first."""
        found = dict.fromkeys(trial.setting for trial in self.trials if trial.kind == kind)
        return tuple(sorted(found, key=lambda setting: not setting.plain))


@dataclass(frozen=True, slots=True)
class Choice:
    """What to set for one prompt kind (or for all: kind "").

    verdict: "on", "off" or "unclear". setting: the fastest that was measured, plain decoding aside; None where
    nothing else was measured. speedup: of it over plain decoding, with its 95 % interval where there were three
    repeats. ties: other settings that cannot be told from it. looped: the text repeats itself.
    """

    kind: str
    verdict: str
    setting: Setting | None
    speedup: float | None
    interval: tuple[float, float] | None = None
    ties: tuple[Setting, ...] = ()
    looped: bool = False
    contended: bool = False

    @property
    def advised(self) -> Setting:
        """The setting to use: plain decoding unless the verdict is "on"."""
        return self.setting if self.setting is not None and self.verdict == "on" else PLAIN


@dataclass(frozen=True, slots=True)
class Hopeless:
    """A draft length that no alpha can rescue: even if every token is kept, a token costs more than a plain one."""

    drafter: str
    k: int
    ms_per_token_at_best: float
    plain_ms: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set here. by_kind: a choice for each prompt kind. overall: one setting for all kinds, equally much of
    each; None where none was measured on all of them."""

    machine: Machine
    target: str
    by_kind: tuple[Choice, ...]
    overall: Choice | None
    hopeless: tuple[Hopeless, ...] = ()
    rerun: tuple[Trial, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SharedPass:
    """One target pass over rows of several sequences, and the work around it.

    sequences: how many took part. rows: N of T(N), all sequences together. drafted, tested, kept,
    emitted: summed over them. *_s: seconds; draft_s and other_s are summed, because one after the
    other is drafted and sampled for, while verify_s is the one pass that all waited for.
    """

    sequences: int
    rows: int
    drafted: int
    tested: int
    kept: int
    emitted: int
    draft_s: float
    verify_s: float
    other_s: float

    @property
    def seconds(self) -> float:
        return self.draft_s + self.verify_s + self.other_s


@dataclass(frozen=True, slots=True)
class LoadRun:
    """``sequences`` texts decoded together, plainly (drafter "none") or with drafts of at most ``k`` tokens.

    Rates are over the passes that all sequences shared: when the first text ends the load is another.
    context_length: tokens that all of them held together before the first pass.
    """

    sequences: int
    drafter: str
    k: int
    context_length: int
    passes: tuple[SharedPass, ...]

    @property
    def full(self) -> tuple[SharedPass, ...]:
        """The passes in which every sequence took part."""
        return tuple(each for each in self.passes if each.sequences == self.sequences)

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.full)

    @property
    def tokens_per_second(self) -> float | None:
        """Of all sequences together."""
        return sum(each.emitted for each in self.full) / self.seconds if self.seconds > 0 else None

    @property
    def tokens_per_cycle(self) -> float | None:
        """Emitted per sequence and pass; between 1 and k+1."""
        took_part = sum(each.sequences for each in self.full)
        return sum(each.emitted for each in self.full) / took_part if took_part else None

    @property
    def alpha_tested(self) -> float | None:
        """Kept / tested, live. None when nothing was tested."""
        tested = sum(each.tested for each in self.full)
        return sum(each.kept for each in self.full) / tested if tested else None


@dataclass(frozen=True, slots=True)
class LoadSweep:
    """Runs at several numbers of sequences, the drafters interleaved at each."""

    runs: tuple[LoadRun, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of sequences, ascending."""
        return tuple(sorted({run.sequences for run in self.runs}))

    @property
    def drafters(self) -> tuple[str, ...]:
        """By name, plain decoding left out."""
        return tuple(sorted({run.drafter for run in self.runs} - {"none"}))

    def of(self, drafter: str, sequences: int) -> tuple[LoadRun, ...]:
        """The runs of one drafter at one load. Raises KeyError naming what there is."""
        found = tuple(run for run in self.runs if (run.drafter, run.sequences) == (drafter, sequences))
        if not found:
            have = ", ".join(sorted({f"{run.drafter} x {run.sequences}" for run in self.runs}))
            raise KeyError(f"No run of {drafter!r} with {sequences} sequences; there are {have}.")
        return found

    def speeds(self, drafter: str, sequences: int) -> tuple[float, ...]:
        """Tokens per second of each of those runs, all sequences together."""
        runs = self.of(drafter, sequences)
        return tuple(run.tokens_per_second for run in runs if run.tokens_per_second is not None)

    def gain(self, drafter: str, sequences: int) -> float:
        """Times as fast as plain decoding of as many sequences, by medians. KeyError where either was not run."""
        return median(self.speeds(drafter, sequences)) / median(self.speeds("none", sequences))


@dataclass(frozen=True, slots=True)
class CycleSample:
    """One cycle as the ledger reads it: its situation, and the milliseconds of its parts.

    n: rows of the target pass. changed: the pass before had another N, so llama.cpp built its graph anew.
    source: who made the draft: "model", "look-up", "filler" (a draft made up by a script), or "" where there was none.
    fed: tokens that the drafter's model had not read when the cycle began, the pending one among them.
    """

    n: int
    changed: bool
    source: str
    drafted: int
    kept: int
    emitted: int
    fed: int
    context_length: int
    draft_ms: float
    verify_ms: float
    sampling_ms: float
    other_ms: float

    @property
    def ms(self) -> float:
        return self.draft_ms + self.verify_ms + self.sampling_ms + self.other_ms

    @property
    def rolled_back(self) -> bool:
        """Whether refused tokens had to be taken out of the target's cache."""
        return self.kept < self.drafted


@dataclass(frozen=True, slots=True)
class CycleCosts:
    """Cycles whose outcome was scripted, so that what each part of a cycle costs can be told: no text was generated.

    contexts: tokens in the cache where the scripts began; each was run at all of them.
    keeps_drafts: the drafter's cache holds what it drafted, so that kept tokens are not read again.
    recited: cycles of a text that the target was made to say, for what a look-up takes; their passes have many N, few
    of each, and are not used. contended: another process held a core meanwhile.
    """

    drafter: str
    samples: tuple[CycleSample, ...]
    contexts: tuple[int, ...]
    keeps_drafts: bool
    recited: tuple[CycleSample, ...] = ()
    contended: bool = False


@dataclass(frozen=True, slots=True)
class CycleParts:
    """What a cycle costs, part by part, in milliseconds.

    draft: the drafter's proposal when only the pending token is new to it. catch_up: reading what it had not read
    before. verify: the target pass, T(N) at its context length. rebuild: llama.cpp building its graph anew because N
    changed. sampling: the target's own draws. rollback: taking refused tokens out of the cache. bookkeeping: the rest.
    """

    draft: float = 0.0
    catch_up: float = 0.0
    verify: float = 0.0
    rebuild: float = 0.0
    sampling: float = 0.0
    rollback: float = field(default=0.0, metadata={"signed": True})
    bookkeeping: float = 0.0

    @property
    def drafting(self) -> float:
        """What a cycle's ``draft_s`` holds."""
        return self.draft + self.catch_up

    @property
    def passing(self) -> float:
        """What a cycle's ``verify_s`` holds."""
        return self.verify + self.rebuild

    @property
    def other(self) -> float:
        """What a cycle's ``other_s`` holds."""
        return self.rollback + self.bookkeeping

    @property
    def ms(self) -> float:
        return self.drafting + self.passing + self.sampling + self.other


# --- machine cards -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CardAlpha:
    """How good a drafter's tokens are on one kind of text: live alpha, (low, high) where only bounds are known.

    kind: of prompt; "" for all, or not told. k: the longest draft allowed. interval_low, interval_high: 95 %, where
    counts are known. kept, drafted: the counts behind it.
    """

    drafter: str
    kind: str
    k: int
    low: float
    high: float
    interval_low: float | None = None
    interval_high: float | None = None
    kept: int | None = None
    drafted: int | None = None

    def __post_init__(self) -> None:
        where = f"alpha of {self.drafter} on {self.kind or 'all kinds'!r}"
        for name in ("low", "high", "interval_low", "interval_high"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError(f"The {where} has {name} {value}: alpha is a probability between 0 and 1.")
        if self.low > self.high:
            raise ValueError(f"The {where} runs from {self.low} to {self.high}: the lower bound is the larger one.")
        if self.kept is not None and self.drafted is not None and self.kept > self.drafted:
            raise ValueError(f"The {where} rests on {self.kept} kept of {self.drafted} drafted: acceptance over 1.")


@dataclass(frozen=True, slots=True)
class MachineCard:
    """One machine with one target, to be laid beside others: what passes, drafts and settings cost and bring there.

    label: what to call it in a figure. provenance: who measured it, when and how. target: model and format that
    alphas, prices and choices are of. draft_models: by drafter name. staircases: the target's first, then others'.
    prices: of drafts; look-ups have none. best: a choice for each prompt kind and for all (kind "").
    """

    label: str
    machine: Machine
    provenance: str
    target: str
    staircases: tuple[CostCurve, ...] = ()
    draft_models: Mapping[str, str] = field(default_factory=dict)
    prices: tuple[DraftPrice, ...] = ()
    alphas: tuple[CardAlpha, ...] = ()
    best: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        for name in ("label", "target"):
            if not getattr(self, name).strip():
                raise ValueError(f"The machine card has an empty {name}: nobody could tell it from others.")
        for curve in self.staircases:
            if 1 not in curve.ns:
                measured = ", ".join(map(str, curve.ns))
                raise ValueError(
                    f"The staircase {curve.label!r} of the card {self.label!r} lacks N=1, the unit in which cards are "
                    f"compared (measured: {measured}). Measure N=1."
                )
        for choice in self.best:
            ends = choice.interval or ()
            for value in (choice.speedup, *ends):
                if value is not None and not 0.0 < value < float("inf"):
                    raise ValueError(f"The card {self.label!r} says {value} times as fast on {choice.kind!r}.")
            if ends and ends[0] > ends[1]:
                raise ValueError(f"The card {self.label!r} has the interval {ends[0]} to {ends[1]} on {choice.kind!r}.")

    @property
    def staircase(self) -> CostCurve | None:
        """The target's staircase; None where none was measured."""
        return self.staircases[0] if self.staircases else None


@dataclass(frozen=True, slots=True)
class LedgerCell:
    """One setting on one prompt: what a token took and what the ledger says it should take, in milliseconds.

    predicted_ms: from the tokens really kept. of_alpha_ms: from ``alpha`` (live, kept / tested; None when nothing was
    tested) and the geometric assumption. interval: of predicted / measured, 95 %, over cycles; None for fewer than 3.
    predicted, measured: the mean cycle's parts. A run's clock cannot tell all of them apart: its ``draft`` holds the
    catching up, ``verify`` the rebuilds, ``bookkeeping`` the rollbacks. contended: another process held a core.
    tries: 1 unless it was measured again because of that.
    """

    drafter: str
    k: int
    kind: str
    cycles: int
    tokens_per_cycle: float
    alpha: float | None
    measured_ms: float
    predicted_ms: float
    of_alpha_ms: float
    interval: tuple[float, float] | None
    predicted: CycleParts
    measured: CycleParts
    contended: bool = False
    tries: int = 1

    @property
    def error(self) -> float:
        """predicted / measured - 1, given what was kept: the error of the costs."""
        return self.predicted_ms / self.measured_ms - 1.0

    @property
    def error_of_alpha(self) -> float:
        """The same given alpha alone: the costs' error and the geometric assumption's."""
        return self.of_alpha_ms / self.measured_ms - 1.0

    def wholly_beyond(self, bound: float) -> bool:
        """Whether the interval says that the error is more than ``bound`` in size, one way or the other."""
        return self.interval is not None and (self.interval[0] > 1.0 + bound or self.interval[1] < 1.0 - bound)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Cells of several settings and prompts."""

    cells: tuple[LedgerCell, ...]


@dataclass(frozen=True, slots=True)
class Guess:
    """What the reader expected before looking, and what it was. name: of the prediction, "01-t8"."""

    name: str
    guess: float = field(metadata={"signed": True})
    truth: float = field(metadata={"signed": True})

    @property
    def miss(self) -> float | None:
        """(guess - truth) / |truth|; None where the truth is 0."""
        return (self.guess - self.truth) / abs(self.truth) if self.truth else None


@dataclass(frozen=True, slots=True)
class Guesses:
    """A reader's guesses, one a name, in the order in which they were first made."""

    guesses: tuple[Guess, ...] = ()
    provenance: str = "Made by the reader of the notebooks in this clone, before looking."

    def with_one(self, made: Guess) -> Guesses:
        """With this guess in the place of an earlier one of its name, or at the end."""
        by_name = {each.name: each for each in self.guesses} | {made.name: made}
        return Guesses(tuple(by_name.values()), self.provenance)
