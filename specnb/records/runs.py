"""What a run is made of: limits, drafts, cycles, sampling; the run itself, its model and its machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
        for name in ("k", "n_min"):
            if not hasattr(getattr(self, name), "__index__"):
                raise ValueError(f"{name} counts tokens: a whole number such as 4; it cannot be {getattr(self, name)}.")
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
class Rehearsal:
    """A text that was written plainly, and what a drafter would have drafted at each of its places (``replay``).

    drafts: one for each token of the text, of at most k tokens, made without any p_min. rereads: a head drafts, which
    reads what was kept of its draft once more, now from real states.
    """

    text: tuple[int, ...]
    drafts: tuple[Draft, ...]
    k: int
    rereads: bool

    def __post_init__(self) -> None:
        if len(self.drafts) != len(self.text) or not self.text:
            raise ValueError(f"A rehearsal has a draft for each token; got {len(self.drafts)} for {len(self.text)}.")


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


RANDOM_SEED = 2**32 - 1
"""llama.cpp's LLAMA_DEFAULT_SEED."""


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
        if not 0 <= self.seed < RANDOM_SEED:
            raise ValueError(
                f"seed must be from 0 to {RANDOM_SEED - 1}; got {self.seed}. llama.cpp takes {RANDOM_SEED} (and -1) "
                "for another seed each time, and then no two texts could be compared."
            )

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
class Loop:
    """tokens[start:stop] repeats itself every ``period`` tokens."""

    start: int
    stop: int
    period: int

    @property
    def repeats(self) -> float:
        """How many times the period fits in."""
        return (self.stop - self.start) / self.period
