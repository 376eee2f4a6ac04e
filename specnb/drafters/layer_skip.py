"""LayerSkip: the target's own layers, some left out, draft for the whole (Elhoushi et al. 2024, arXiv 2404.16710).

No second model and no training: ``models.layer_subset`` writes the kept layers as a GGUF of their
own. From then on it drafts as any draft model does. (The paper also shares the cache between
draft and target; a GGUF of its own has its own cache.)
"""

from __future__ import annotations

from .draft_model import DraftModel


class LayerSkip(DraftModel):
    name = "layer_skip"
