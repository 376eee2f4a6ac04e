"""Several texts that share each pass."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

DISTURBED = 1.5
"""A pass that took over this many times the median of its like was held up by something else than its rows."""


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
        """Tokens per second of each of those runs, all sequences together.

        A pass that was held up counts as the median of its like, those over as many rows of as many sequences: runs are
        short, and one of them would be hit and the others not.
        """
        like_s = self._like_s(sequences)
        return tuple(
            sum(each.emitted for each in run.full) / sum(_undisturbed_s(each, like_s[each.rows]) for each in run.full)
            for run in self.of(drafter, sequences)
            if run.full
        )

    def gain(self, drafter: str, sequences: int) -> float:
        """Times as fast as plain decoding of as many sequences, by medians. KeyError where either was not run."""
        return median(self.speeds(drafter, sequences)) / median(self.speeds("none", sequences))

    def price(self, drafter: str, sequences: int) -> float:
        """Time of one of its passes in plain ones of as many sequences, by medians, as these runs had it.

        T(N) of a single sequence foretells it; here the rows are of several. KeyError as ``gain``;
        ValueError where no pass was shared by all.
        """
        drafting, plain = (self._pass_s(each, sequences) for each in (drafter, "none"))
        return drafting / plain

    def _like_s(self, sequences: int) -> dict[int, float]:
        """Rows of a pass -> its median seconds in all runs of that many sequences."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            for each in run.full if run.sequences == sequences else ():
                found.setdefault(each.rows, []).append(each.verify_s)
        return {rows: median(seconds) for rows, seconds in found.items()}

    def _pass_s(self, drafter: str, sequences: int) -> float:
        passes = [each.verify_s for run in self.of(drafter, sequences) for each in run.full]
        if not passes:
            raise ValueError(f"{drafter!r} with {sequences} sequences has no pass that all of them shared.")
        return median(passes)


def _undisturbed_s(each: SharedPass, like_s: float) -> float:
    held_up_s = each.verify_s - like_s if each.verify_s > DISTURBED * like_s else 0.0
    return each.seconds - held_up_s
