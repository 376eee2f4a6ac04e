"""Where drafts come from: one file each, and the list a drop-down shows."""

from __future__ import annotations

from .draft_model import DraftModel
from .layer_skip import LayerSkip
from .ngram_simple import NgramSimple
from .none import NoDrafter
from .protocol import Drafter

_KINDS: dict[str, type] = {kind.name: kind for kind in (NoDrafter, NgramSimple, DraftModel, LayerSkip)}


def names() -> tuple[str, ...]:
    """The drafters there are, in the order a drop-down shows them."""
    return tuple(_KINDS)


__all__ = ["DraftModel", "Drafter", "LayerSkip", "NgramSimple", "NoDrafter", "names"]
