"""What to set here: the points of a sweep in, a choice for each prompt kind out. Nothing here measures.

A setting is called faster, or slower, only where the 95 % interval of its speedup lies wholly on one
side of 1; of settings whose difference lies within the noise none is called the winner. The
interval tells how well *these* prompts were timed, not how other prompts of the kind would do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from . import theory
from .intervals import FEWEST_SAMPLES, ratio_interval
from .records import PLAIN, Advice, Choice, Hopeless, Setting, Sweep, SweepCosts

Times = Mapping[Setting, Sequence[float]]
"""Setting -> milliseconds per token of each repeat."""


def advise(sweep: Sweep) -> Advice:
    """The choice for each kind of a sweep, and for all kinds together.

    Raises ValueError for a cost curve without N = 1, and for a kind on which plain decoding was not measured
    although other settings were: there is nothing to compare with. Kinds without any trial are left out, and of a
    sweep that was stopped those without plain decoding.
    """
    kinds = [kind for kind in sweep.kinds if sweep.measured(kind) and (sweep.complete or sweep.of(PLAIN, kind))]
    return Advice(
        machine=sweep.machine,
        target=sweep.target,
        by_kind=tuple(_of_kind(sweep, kind) for kind in kinds),
        overall=_overall(sweep, kinds),
        hopeless=hopeless(sweep.costs, sweep.settings),
        rerun=sweep.rerun,
        complete=sweep.complete,
    )


def choose(kind: str, times: Times, *, looped: bool = False, contended: bool = False) -> Choice:
    """The choice among settings by their milliseconds per token, plain decoding's among them.

    Settings with fewer than three repeats count only where none has more: they have no interval.
    ValueError without plain decoding.
    """
    plain = times.get(PLAIN)
    if not plain:
        raise ValueError(f"Plain decoding was not measured on {kind or 'all kinds'!r}: there is nothing to compare.")
    others = {setting: ms for setting, ms in times.items() if setting != PLAIN and ms}
    repeated = {setting: ms for setting, ms in others.items() if len(ms) >= FEWEST_SAMPLES} or others
    if not repeated:
        return Choice(kind, "off", None, None, looped=looped, contended=contended)
    fastest = min(repeated, key=lambda setting: median(repeated[setting]))
    interval = ratio_interval(plain, repeated[fastest])
    return Choice(
        kind,
        _verdict(interval),
        fastest,
        median(plain) / median(repeated[fastest]),
        interval,
        ties=tuple(s for s, ms in repeated.items() if s != fastest and not _slower(ms, repeated[fastest])),
        looped=looped,
        contended=contended,
    )


def hopeless(costs: SweepCosts, settings: Sequence[Setting]) -> tuple[Hopeless, ...]:
    """Drafters and k that lose even if every drafted token is kept: cycle cost / (k + 1) >= T(1).

    A p_min is left aside: it makes drafts shorter, which is another k. ValueError for a curve without N = 1,
    KeyError for a k whose pass was not measured.
    """
    verify_ms = costs.curve.median_ms
    if 1 not in verify_ms:
        measured = ", ".join(map(str, verify_ms))
        raise ValueError(f"T(1) is plain decoding, and the cost curve lacks it (measured: N={measured}). Measure N=1.")
    found = []
    for drafter, k in dict.fromkeys((setting.drafter, setting.k) for setting in settings if not setting.plain):
        draft_ms = costs.price(drafter).ms(k) / k
        if theory.break_even_alpha(k, draft_ms, verify_ms, verify_ms[1]) is None:
            at_best = theory.ms_per_token(1.0, k, draft_ms, verify_ms)
            found.append(Hopeless(drafter, k, at_best, verify_ms[1]))
    return tuple(found)


def _of_kind(sweep: Sweep, kind: str) -> Choice:
    trials = {setting: sweep.of(setting, kind) for setting in sweep.measured(kind)}
    return choose(
        kind,
        {setting: [trial.ms_per_token for trial in found] for setting, found in trials.items()},
        looped=any(trial.looped for found in trials.values() for trial in found),
        contended=any(trial.contended for found in trials.values() for trial in found),
    )


def _overall(sweep: Sweep, kinds: Sequence[str]) -> Choice | None:
    """Over all kinds, as many tokens of each: a repeat is one round over the kinds, its time their mean."""
    everywhere = [s for s in sweep.settings if kinds and all(sweep.of(s, kind) for kind in kinds)]
    times = {}
    for setting in everywhere:
        by_kind = [sorted(sweep.of(setting, kind), key=lambda trial: trial.repeat) for kind in kinds]
        rounds = zip(*by_kind, strict=False)
        times[setting] = [sum(trial.ms_per_token for trial in each) / len(kinds) for each in rounds]
    if PLAIN not in times or len(times) < 2:
        return None
    used = [trial for setting in everywhere for kind in kinds for trial in sweep.of(setting, kind)]
    return choose("", times, looped=any(t.looped for t in used), contended=any(t.contended for t in used))


def _verdict(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "unclear"
    low, high = interval
    return "on" if low > 1.0 else "off" if high < 1.0 else "unclear"


def _slower(ms: Sequence[float], fastest: Sequence[float]) -> bool:
    """Whether the difference is more than noise."""
    interval = ratio_interval(ms, fastest)
    return interval is not None and interval[0] > 1.0
