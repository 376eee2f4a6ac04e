"""Where drafts come from: one file each, and the list a drop-down shows."""

from __future__ import annotations

from .chain import Chain
from .distilled import Distilled, EmbeddedTokens
from .draft_model import DraftModel
from .eagle import Eagle, EagleInputs
from .foretold import Foretold
from .layer_skip import LayerSkip
from .medusa import Medusa
from .ngram_cache import NgramCache
from .ngram_map_k import NgramMapK
from .ngram_map_k4v import NgramMapK4v
from .ngram_mod import NgramMod
from .ngram_simple import NgramSimple
from .none import NoDrafter
from .prompt_lookup import PromptLookup
from .protocol import Drafter, Head, heads
from .rehearsing import Rehearsing

LOOK_UPS = (NgramSimple, NgramMapK, NgramMapK4v, NgramMod, NgramCache, PromptLookup)
"""The drafters that run no model. All take n (longest pattern) and m (longest draft)."""


def names() -> tuple[str, ...]:
    """The drafters there are, in the order a drop-down shows them."""
    return tuple(kind.name for kind in (NoDrafter, *LOOK_UPS, Chain, DraftModel, Distilled, LayerSkip, Eagle, Medusa))


__all__ = [
    "LOOK_UPS",
    "Chain",
    "Distilled",
    "DraftModel",
    "Drafter",
    "Eagle",
    "EagleInputs",
    "EmbeddedTokens",
    "Foretold",
    "Head",
    "LayerSkip",
    "Medusa",
    "NgramCache",
    "NgramMapK",
    "NgramMapK4v",
    "NgramMod",
    "NgramSimple",
    "NoDrafter",
    "PromptLookup",
    "Rehearsing",
    "heads",
    "names",
]
