"""Sliders and buttons over the rest of the package. They hold no maths and draw nothing themselves."""

from __future__ import annotations

from .cycle_cost import CycleCostExplorer
from .live import LiveGeneration
from .stream import legend_html, stream_html

__all__ = ["CycleCostExplorer", "LiveGeneration", "legend_html", "stream_html"]
