"""What to set here: the points of a sweep in, a choice for each prompt kind out. Nothing here measures.

A setting is called faster, or slower, only where the 95 % interval of its speedup lies wholly on one
side of 1; of settings whose difference lies within the noise none is called the winner. The
interval tells how well *these* prompts were timed, not how other prompts of the kind would do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from . import theory
from .intervals import FEWEST_SAMPLES, ratio_interval, sum_ratio_interval
from .records import PLAIN, Advice, Choice, Hopeless, Setting, Sweep, SweepCosts, Trial

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


def choose(kind: str, times: Times, *, in_turns: bool = False, looped: bool = False, contended: bool = False) -> Choice:
    """The choice among settings by their milliseconds per token, plain decoding's among them.

    in_turns: the i-th times of all settings belong together, having been measured in turns: then they are compared
    as pairs, and a slow moment that hit both counts for neither. Else medians are compared. Settings with fewer than
    three repeats count only where none has more: they have no interval. ValueError without plain decoding.
    """
    plain = times.get(PLAIN)
    if not plain:
        raise ValueError(f"Plain decoding was not measured on {kind or 'all kinds'!r}: there is nothing to compare.")
    others = {setting: ms for setting, ms in times.items() if setting != PLAIN and ms}
    repeated = {setting: ms for setting, ms in others.items() if len(ms) >= FEWEST_SAMPLES} or others
    if not repeated:
        return Choice(kind, "off", None, None, looped=looped, contended=contended)
    middle, ratio_of = (fmean, sum_ratio_interval) if in_turns else (median, ratio_interval)
    fastest = min(repeated, key=lambda setting: middle(repeated[setting]))

    def slower(ms: Sequence[float]) -> bool:
        """Whether it is than the fastest by more than noise."""
        interval = ratio_of(ms, repeated[fastest])
        return interval is not None and interval[0] > 1.0

    interval = ratio_of(plain, repeated[fastest])
    return Choice(
        kind,
        _verdict(interval),
        fastest,
        middle(plain) / middle(repeated[fastest]),
        interval,
        ties=tuple(setting for setting, ms in repeated.items() if setting != fastest and not slower(ms)),
        looped=looped,
        contended=contended,
    )


def hopeless(costs: SweepCosts, settings: Sequence[Setting]) -> tuple[Hopeless, ...]:
    """Drafters and k that lose even if every drafted token is kept: cycle cost / (k + 1) > T(1).

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
    found = {setting: sweep.of(setting, kind) for setting in sweep.measured(kind)}
    # Once there are final rounds, what was only screened is out.
    trials = {setting: each for setting, each in found.items() if each[0].stage == "final"} or found
    used = [trial for each in trials.values() for trial in each]
    return choose(
        kind,
        {setting: [trial.ms_per_token for trial in each] for setting, each in trials.items()},
        in_turns=_in_turns(trials),
        looped=any(trial.looped for trial in used),
        contended=any(trial.contended for trial in used),
    )


def _overall(sweep: Sweep, kinds: Sequence[str]) -> Choice | None:
    """Over all kinds, as many tokens of each: a repeat is one round over the kinds, its time their mean."""
    everywhere = [s for s in sweep.settings if kinds and all(sweep.of(s, kind) for kind in kinds)]
    finals = [s for s in everywhere if all(sweep.of(s, kind)[0].stage == "final" for kind in kinds)]
    # As for one kind: once there are final rounds, what was only screened is out.
    everywhere = finals if len(finals) > 1 else everywhere
    times, used = {}, {}
    for setting in everywhere:
        by_kind = [sorted(sweep.of(setting, kind), key=lambda trial: trial.repeat) for kind in kinds]
        rounds = list(zip(*by_kind, strict=False))
        times[setting] = [sum(trial.ms_per_token for trial in each) / len(kinds) for each in rounds]
        used[setting] = [trial for each in by_kind for trial in each]
    if PLAIN not in times or len(times) < 2:
        return None
    return choose(
        "",
        times,
        in_turns=_in_turns(used),
        looped=any(trial.looped for each in used.values() for trial in each),
        contended=any(trial.contended for each in used.values() for trial in each),
    )


def _in_turns(trials: Mapping[Setting, Sequence[Trial]]) -> bool:
    """Whether the i-th trials of all settings were taken in turns: so are the final rounds of a racing sweep."""
    finals = all(trial.stage == "final" for each in trials.values() for trial in each)
    return finals and len({len(each) for each in trials.values()}) == 1


def _verdict(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "unclear"
    low, high = interval
    return "on" if low > 1.0 else "off" if high < 1.0 else "unclear"
