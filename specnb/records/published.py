"""Other people's measurements, and what other tools print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .costs import CostCurve
from .runs import Machine


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

    name: "fine", "structural", "too few tokens", "looped text", "in a notch", "over a cliff", "too long", "too short",
    "dear draft", "dear passes", "nothing drafted" or "costs unknown". text: the same for a reader, with figures and
    what to do.
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
