"""Settings as llama.cpp's command line spells them (common/arg.cpp, build 0c1e5709), and where ours differ.

The look-ups read lengths of their own and ignore ``--spec-draft-n-max``; the draft model reads that
one. What llama.cpp does not have is said, with the nearest that it has.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from . import drafters, messages
from .records import Advice, Setting

DRAFT_FILE = "draft.gguf"
"""Stands for the reader's draft model."""

NGRAM_CACHE_LENGTH = 8
"""llama.cpp's ngram-cache always drafts up to this many tokens; no option changes it."""


@dataclass(frozen=True, slots=True)
class Flags:
    """arguments: to add to llama-server, llama-cli or llama-speculative-simple. same: False where they are only the
    nearest that llama.cpp has. notes: what to know before pasting."""

    arguments: tuple[str, ...]
    same: bool = True
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for a shell."""
        return shlex.join(self.arguments)


def llama_cpp(setting: Setting, *, draft_file: str = DRAFT_FILE, n_min: int = 0) -> Flags:
    """The flags for a setting with our default look-up lengths. n_min: of drafts by a model.

    ValueError for a drafter that is not ours.
    """
    if setting.plain:
        return Flags(("--spec-type", "none"), notes=(messages.FLAGS_OFF,))
    makers: dict[str, Callable[[], Flags]] = {
        drafters.NgramSimple.name: lambda: _copying("ngram-simple", drafters.NgramSimple(), setting.k),
        drafters.NgramMapK.name: lambda: _copying("ngram-map-k", drafters.NgramMapK(), setting.k),
        drafters.NgramMapK4v.name: lambda: _copying("ngram-map-k4v", drafters.NgramMapK4v(), setting.k),
        drafters.NgramMod.name: lambda: _ngram_mod(setting.k),
        drafters.NgramCache.name: lambda: _ngram_cache(setting.k),
        drafters.PromptLookup.name: lambda: _prompt_lookup(setting.k),
        drafters.DraftModel.name: lambda: _model(setting, draft_file, n_min),
        drafters.Chain.name: lambda: _chain(setting, draft_file, n_min),
        drafters.LayerSkip.name: lambda: _nearest(_model(setting, draft_file, n_min), messages.FLAGS_LAYER_SKIP),
        drafters.Distilled.name: lambda: _nearest(_model(setting, draft_file, n_min), messages.FLAGS_DISTILLED),
        drafters.Eagle.name: lambda: _head("draft-eagle3", setting, ("-md", draft_file), messages.FLAGS_EAGLE),
        # The layers for it are in the target's own file, which llama.cpp opens a second time.
        drafters.Medusa.name: lambda: _head("draft-mtp", setting, (), messages.FLAGS_MEDUSA),
    }
    if setting.drafter not in makers:
        raise ValueError(f"There is no drafter {setting.drafter!r}; there are {', '.join(drafters.names())}.")
    return makers[setting.drafter]()


def to_paste(advice: Advice, *, draft_file: str = DRAFT_FILE) -> str:
    """In Markdown, a line to paste for all kinds together, then one for each setting that is advised for some kind.

    All kinds come first because the flags hold for a whole server. With each line goes what to know about it.
    """
    kinds: dict[Setting, list[str]] = {}
    for choice in advice.by_kind:
        kinds.setdefault(choice.advised, []).append(choice.kind)
    wanted = [] if advice.overall is None else [(messages.FLAGS_FOR_ALL, advice.overall.advised)]
    wanted += [(messages.flags_for(names), setting) for setting, names in kinds.items()]
    found = [(whom, setting, llama_cpp(setting, draft_file=draft_file)) for whom, setting in wanted]
    return "\n\n".join(messages.flags_block(whom, setting, flags.text, flags.notes) for whom, setting, flags in found)


def _copying(kind: str, drafter: drafters.NgramSimple | drafters.NgramMapK | drafters.NgramMapK4v, k: int) -> Flags:
    """A look-up with a pattern of n and a copy of m tokens. ngram-simple drops a copy shorter than its pattern.

    Of the two maps m also decides which places match; a k that cuts a longer copy is another setting there.
    """
    longest = min(k, drafter.m)
    m = max(longest, drafter.n) if kind == "ngram-simple" else longest
    arguments = ("--spec-type", kind, f"--spec-{kind}-size-n", str(drafter.n), f"--spec-{kind}-size-m", str(m))
    if m != k:
        return Flags(arguments, same=False, notes=(messages.flags_length(k, m),))
    if kind != "ngram-simple" and k < drafter.m:
        return Flags(arguments, same=False, notes=(messages.flags_size_m(k, drafter.m),))
    return Flags(arguments)


def _ngram_mod(k: int) -> Flags:
    ours = drafters.NgramMod()
    longest = max(min(k, ours.m), ours.n_min)
    arguments = (
        "--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", str(ours.n),
        "--spec-ngram-mod-n-min", str(ours.n_min), "--spec-ngram-mod-n-max", str(longest),
    )  # fmt: skip
    length = () if longest == k else (messages.flags_length(k, longest),)
    return Flags(arguments, same=longest == k, notes=(*length, messages.flags_short_match(ours.n)))


def _ngram_cache(k: int) -> Flags:
    same = k == NGRAM_CACHE_LENGTH
    notes = () if same else (messages.flags_fixed_length(k, NGRAM_CACHE_LENGTH),)
    return Flags(("--spec-type", "ngram-cache"), same=same, notes=notes)


def _prompt_lookup(k: int) -> Flags:
    nearest = _copying("ngram-simple", drafters.NgramSimple(), k)
    return _nearest(nearest, messages.flags_prompt_lookup(drafters.PromptLookup().n, k))


def _model(setting: Setting, draft_file: str, n_min: int, kind: str = "draft-simple") -> Flags:
    arguments = (
        "--spec-type", kind, "-md", draft_file, "--spec-draft-n-max", str(setting.k),
        "--spec-draft-n-min", str(n_min), "--spec-draft-p-min", f"{setting.p_min:g}",
    )  # fmt: skip
    return Flags(arguments, notes=(messages.FLAGS_DRAFT_AGAIN, messages.FLAGS_OLDER))


def _chain(setting: Setting, draft_file: str, n_min: int) -> Flags:
    look_up = _copying("ngram-simple", drafters.NgramSimple(), setting.k)
    model = _model(setting, draft_file, n_min, kind="ngram-simple,draft-simple")
    return Flags(model.arguments + look_up.arguments[2:], look_up.same, look_up.notes + model.notes)


def _head(kind: str, setting: Setting, file: tuple[str, ...], why: str) -> Flags:
    arguments = (
        "--spec-type", kind, *file, "--spec-draft-n-max", str(setting.k),
        "--spec-draft-p-min", f"{setting.p_min:g}",
    )  # fmt: skip
    return Flags(arguments, same=False, notes=(why,))


def _nearest(flags: Flags, why: str) -> Flags:
    return Flags(flags.arguments, same=False, notes=(why, *flags.notes))
