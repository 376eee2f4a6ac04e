"""How drafters did: alpha, speedup, the layers that a search kept, and what training brought."""

from __future__ import annotations

from dataclasses import dataclass


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
class TrainingStage:
    """How a trained drafter did once a stage of training was over and its learning rate had come down.

    steps: of the optimiser, so far. rows: conversations that the stage learnt from. agreement: by draft position,
    *recorded* alpha along held-out conversations. It flatters.
    """

    steps: int
    rows: int
    agreement: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The stages of one drafter's training, the earliest first."""

    drafter: str
    stages: tuple[TrainingStage, ...]

    def __post_init__(self) -> None:
        steps = [stage.steps for stage in self.stages]
        if steps != sorted(set(steps)) or min(steps, default=1) < 1:
            raise ValueError(
                f"The stages of training of {self.drafter!r} end after {steps} steps: each after the last."
            )


@dataclass(frozen=True, slots=True)
class DrafterScore:
    """One drafter in one weight format on one kind of prompt (``python -m specnb.bench drafters``).

    kind: of prompt; "all" for plain decoding, "loops" for answers that fell into a repetition loop. k, p_min: their
    medians. alpha, alpha_first: live, over the chain and of each draft's first token; at a p_min above 0 of the tokens
    that it let pass. speedup: over plain decoding in the same format, median over prompts; the range of all of them;
    and a 95 % interval where they are enough. against_fastest_plain: the same over plain decoding at this temperature
    in the format where that is fastest.
    """

    drafter: str
    format: str
    kind: str
    temperature: float
    k: int
    p_min: float
    tokens_per_cycle: float
    speedup: float
    tokens_per_second: float
    against_fastest_plain: float
    prompts: int
    alpha: float | None = None
    alpha_first: float | None = None
    gamma: float | None = None
    predicted: float | None = None
    speedup_range: tuple[float, float] | None = None
    speedup_ci: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DrafterScores:
    """Plain decoding in every format, then the drafters."""

    rows: tuple[DrafterScore, ...]
    prompts: int
