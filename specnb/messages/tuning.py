"""Sweeps, advice and llama.cpp's flags."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from ..records import Advice, Choice, Hopeless, Setting, Trial
from .speedups import PLAIN
from .writing import capital, counted, listed, ms, speedup

SWEEP_TITLE = "Times as fast as plain decoding"
SWEEP_K_AXIS = "k"
SWEEP_P_MIN_AXIS = "p_min"
SWEEP_KIND_AXIS = "prompt kind"
SWEEP_LEGEND = (
    "times as fast · framed: run, else forecast · ★\N{NO-BREAK SPACE}fastest run · ○\N{NO-BREAK SPACE}screened once"
)
SWEEP_LEGEND_MEASURED = "times as fast · all cells run · ★ fastest"
SWEEP_READY = "Ready. Start measures what is left; Stop keeps what is done."
SWEEP_START = "Start"
SWEEP_OPENING = "Opening the drafters …"
SWEEP_ALT = "Buttons to start and stop a sweep, how far it is, and the advice once it is done."
SWEEP_NOTHING_YET = "Stopped before the costs were measured; nothing to show yet."


def sweep_title(drafter: str, kind: str) -> str:
    return f"{drafter} on {kind}"


def drafter_kind_title() -> str:
    return "The best setting of each drafter, by prompt kind"


def sweep_progress(done: int, expected: int, seconds_left: float, what: str) -> str:
    return f"{done} of about {expected} pieces · about {duration(seconds_left)} left · {html.escape(what)}"


def duration(value: float) -> str:
    """A time for people to wait: "40 s", "3 min", "2 h 5 min"."""
    if value < 90:
        return f"{round(value)} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def sweep_stopped(done: int, where: str) -> str:
    return (
        f"Stopped with {counted(done, 'run')} to compare; Start goes on from there, in another session too: what is "
        f"done is in {html.escape(where)} for half a day."
    )


def sweep_done(measured: int, looked_at: int, seconds_taken: float, where: str) -> str:
    return (
        f"Done: {counted(measured, 'run')} measured for {counted(looked_at, 'setting')} on each kind, "
        f"in {duration(seconds_taken)}. Saved as {html.escape(where)}."
    )


def sweep_alt(
    title: str, cells: Sequence[tuple[str, float, str]], fastest: tuple[str, float] | None, source: str | None
) -> str:
    """cells: (place, speedup, "run", "screened" or "forecast"). fastest: of those that were run."""
    suffix = {"run": "", "screened": " (forecast, screened once)", "forecast": " (forecast)"}
    told = listed(f"{place} {speedup(value)}{suffix[how]}" for place, value, how in cells)
    best = "" if fastest is None else f" Fastest run: {fastest[0]}, {speedup(fastest[1])}."
    return f"{title}: {told}.{best}" + (f" {capital(source)}." if source else "")


def no_cells(drafter: str, kind: str) -> str:
    return f"The sweep has no points of {drafter!r} on {kind!r} to plot."


def setting_name(setting: Setting) -> str:
    """ "ngram_simple with k = 6", "eagle with k = 2 and p_min = 0.5", "plain decoding"."""
    if setting.plain:
        return PLAIN
    p_min = f" and p_min = {setting.p_min:g}" if setting.p_min else ""
    return f"{setting.drafter} with k = {setting.k}{p_min}"


def rehearsal_of(drafter: str) -> str:
    return f"what {drafter} would draft at every place"


def settings_in_turns(settings: Sequence[Setting]) -> str:
    """What a sweep is measuring: "eagle with k = 2", "4 settings in turns"."""
    return setting_name(settings[0]) if len(settings) == 1 else f"{len(settings)} settings in turns"


def no_k_fits(ks: Sequence[int], longest: Mapping[str, float]) -> str:
    """longest: drafter -> the longest draft it makes."""
    limits = ", ".join(f"{name} up to {most:g}" for name, most in longest.items())
    return f"No drafter of this sweep makes drafts of k = {', '.join(map(str, ks))}: {limits}. Take a smaller k."


def advice_answer(advice: Advice) -> str:
    """The whole answer in one or two plain sentences."""
    on = [choice for choice in advice.by_kind if choice.verdict == "on"]
    off = [choice.kind for choice in advice.by_kind if choice.verdict == "off"]
    unclear = [choice.kind for choice in advice.by_kind if choice.verdict == "unclear"]
    if not on:
        if not unclear:
            return "No: leave it off. Nothing that was tried is faster than plain decoding here."
        told = f"No gain can be shown here: leave it off. On {_and(unclear)} the difference is not distinguishable"
        told += f" from none; on {_and(off)} speculation is slower." if off else " from none."
        overall = advice.overall
        if overall is not None and overall.verdict == "on":
            told += f" Only over all kinds together {setting_name(overall.setting)} gains: {speedup(overall.speedup)}."
        return told
    told = f"Yes: {_gains(on)} here"
    told += f"; leave it off for {_and(off)}." if off else "."
    if unclear:
        told += f" Not distinguishable from plain decoding: {_and(unclear)}. Leave it off there, too."
    if small := [choice.kind for choice in on if choice.small_gain]:
        told += f" A small gain, from one prompt only: {_and(small)}."
    return told


def _gains(on: Sequence[Choice]) -> str:
    """ "ngram_simple with k = 6 makes rewrite 1.69× and extract 1.48× as fast", one clause a setting."""
    by_setting: dict[Setting, list[Choice]] = {}
    for choice in on:
        by_setting.setdefault(choice.advised, []).append(choice)
    return _and(
        [
            f"{setting_name(setting)} makes {_and([f'{c.kind} {speedup(c.speedup)}' for c in choices])} as fast"
            for setting, choices in by_setting.items()
        ]
    )


def advice_table(advice: Advice) -> str:
    """A Markdown table: a row a kind, then all kinds together."""
    rows = [_advice_row(choice, choice.kind) for choice in advice.by_kind]
    if advice.overall is not None:
        rows.append(_advice_row(advice.overall, "all kinds, one setting"))
    return "\n".join(["| prompt kind | set | fastest tried | speedup (95% interval) |", "|---|---|---|---|", *rows])


def _advice_row(choice: Choice, name: str) -> str:
    if choice.setting is None:
        return f"| {name} | off | nothing tried | – |"
    ends = "too few repeats" if choice.interval is None else " to ".join(map(speedup, choice.interval))
    set_to = {"on": "**on**", "off": "off", "unclear": f"off (not distinguishable from {PLAIN})"}[choice.verdict]
    if choice.small_gain:  # a kind is one prompt; all kinds together are several
        set_to += " (one prompt, a small gain)" if choice.kind else " (a small gain)"
    return f"| {name} | {set_to} | {setting_name(choice.setting)} | {speedup(choice.speedup)} ({ends}) |"


def advice_reasons(advice: Advice) -> tuple[str, ...]:
    """One sentence for each thing that the table leaves out."""
    told = []
    for choice in advice.by_kind:
        if choice.ties and choice.verdict == "on":  # where it is to be left off, which of them does not matter
            tied = _or([setting_name(setting) for setting in choice.ties])
            take = "either" if len(choice.ties) == 1 else "any of them"
            fastest = setting_name(choice.setting)
            told.append(f"On {choice.kind}, {fastest} is not distinguishable from {tied}: take {take}.")
    told += [_hopeless(group) for group in _by_drafter(advice.hopeless)]
    if looped := [choice.kind for choice in advice.by_kind if choice.looped]:
        told.append(f"The answer to {_and(looped)} repeats itself, which flatters every drafter: do not trust its row.")
    if advice.rerun:
        cells = listed(dict.fromkeys(_trial_name(trial) for trial in advice.rerun))
        told.append(f"Measured again, because other programs were using the processor: {cells}.")
    if disturbed := [choice.kind for choice in advice.by_kind if choice.contended]:
        told.append(
            f"Other programs were using the processor all the while on {_and(disturbed)}: close them and sweep again."
        )
    if not advice.complete:
        told.append("The sweep was stopped early: kinds and settings may be missing.")
    return tuple(told)


def _by_drafter(hopeless: Sequence[Hopeless]) -> list[list[Hopeless]]:
    groups: dict[str, list[Hopeless]] = {}
    for each in hopeless:
        groups.setdefault(each.drafter, []).append(each)
    return list(groups.values())


def _hopeless(group: Sequence[Hopeless]) -> str:
    ks = _and([str(each.k) for each in group])
    closest = min(group, key=lambda each: each.ms_per_token_at_best)
    return (
        f"No alpha can rescue {group[0].drafter} at k = {ks}: even if every token were kept, one would cost "
        f"{ms(closest.ms_per_token_at_best)} (at k = {closest.k}), and a plain one costs {ms(closest.plain_ms)}."
    )


def _trial_name(trial: Trial) -> str:
    return f"{setting_name(trial.setting)} on {trial.kind}"


def advice(found: Advice, flags: str = "") -> str:
    """Answer, table and reasons in Markdown; ``flags`` as they are, at the end."""
    reasons = "\n".join(f"* {reason}" for reason in advice_reasons(found))
    return "\n\n".join(filter(None, [f"**{advice_answer(found)}**", advice_table(found), reasons, flags]))


def _and(items: Sequence[str]) -> str:
    return _joined(items, "and")


def _or(items: Sequence[str]) -> str:
    return _joined(items, "or")


def _joined(items: Sequence[str], word: str) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


FLAGS_FOR_ALL = "One server for everything"
FLAGS_OFF = "This is llama.cpp's default, said in so many words."
FLAGS_DRAFT_AGAIN = (
    "llama.cpp feeds every verified batch to the draft model a second time, one pass over k + 1 tokens in each cycle, "
    "so expect somewhat less than was measured here."
)
FLAGS_OLDER = "Older builds spell them --draft-max, --draft-min and --draft-p-min."
FLAGS_LAYER_SKIP = (
    "llama.cpp cannot skip layers of its target. The nearest is to load a file with the layers left out "
    "(models.layer_subset writes one) as the draft model."
)
FLAGS_DISTILLED = (
    "The small model over part of the vocabulary is ours. The nearest in llama.cpp is an ordinary draft model: for the "
    "embedded model, the same layers with the whole vocabulary, which is draft_model here."
)
FLAGS_EAGLE = (
    "Our head has the shape of the first EAGLE and cannot be loaded by llama.cpp. The nearest is its draft-eagle3, "
    "with an EAGLE-3 head that was trained for your target."
)
FLAGS_MEDUSA = (
    "llama.cpp has no Medusa heads. The nearest is draft-mtp, for models that come with layers that predict several "
    "tokens."
)


def flags_length(k: int, m: int) -> str:
    return f"Drafts of {k} are not to be had with this drafter there: it takes up to {counted(m, 'token')} instead."


def flags_size_m(k: int, m: int) -> str:
    return (
        f"Here copies of {counted(m, 'token')} were looked for and cut to {k}. There the size also decides which "
        "places match, so it will draft at other ones now and then."
    )


def flags_fixed_length(k: int, fixed: int) -> str:
    return f"Its draft length is fixed at {fixed} tokens in llama.cpp; {k} was measured here, and no option sets it."


def flags_short_match(n: int) -> str:
    return f"llama.cpp warns about patterns under 16 tokens; {n} is what was measured here."


def flags_prompt_lookup(n: int, k: int) -> str:
    return (
        "llama.cpp has no prompt look-up; the nearest is ngram-simple, which takes the latest place, not the earliest. "
        f"llama-cpp-python has it: LlamaPromptLookupDecoding(max_ngram_size={n}, num_pred_tokens={k})."
    )


def flags_for(kinds: Sequence[str]) -> str:
    return f"For {_and(kinds)}"


def flags_block(whom: str, setting: Setting, line: str, notes: Iterable[str]) -> str:
    """A line to paste, in Markdown, and what to know about it. whom: FLAGS_FOR_ALL or ``flags_for``."""
    head = f"{whom} ({setting_name(setting)}):"
    return "\n".join([head, "", "```", line, "```", "", *(f"* {note}" for note in notes)])
