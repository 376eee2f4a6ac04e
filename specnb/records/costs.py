"""What passes, drafts and cycles take: staircases, bandwidth, the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from .runs import Machine, ModelInfo


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
class DraftMemory:
    """What a drafter's model holds in memory beside the target.

    weight_bytes: its tensors, those that are kept outside llama.cpp among them. cache_bytes_per_token: keys and values
    of one token, and what a head keeps of it: the target's state, and what is recalled. n_ctx: tokens that fit its
    cache.
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


@dataclass(frozen=True, slots=True)
class LedgerCell:
    """One setting on one prompt: what a token took and what the ledger says it should take, in milliseconds.

    predicted_ms: from the tokens really kept. of_alpha_ms: from ``alpha`` (live, kept / tested; None when nothing was
    tested) and the geometric assumption. interval: of predicted / measured, 95 %, over cycles; None for fewer than 3.
    predicted, measured: the mean cycle's parts. A run's clock cannot tell all of them apart: its ``draft`` holds the
    catching up, ``verify`` the rebuilds, ``bookkeeping`` the rollbacks. disturbed: of the cycles, those left out of all
    times (``ledger.undisturbed``). contended: another process held a core. tries: 1 unless it was measured again
    because of that.
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
    disturbed: int = 0
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
