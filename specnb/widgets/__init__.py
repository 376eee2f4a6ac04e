"""Sliders and buttons over the rest of the package. They hold no maths and draw nothing themselves."""

from __future__ import annotations

from .cycle_cost import CycleCostExplorer
from .gamma import GammaExplorer
from .intake import IntakeReader
from .live import LiveGeneration
from .machines import ManyMachines
from .race import AdaptiveRace
from .stepper import RoundStepper
from .stream import legend_html, stream_html
from .sweep import LongSweep

__all__ = [
    "AdaptiveRace",
    "CycleCostExplorer",
    "GammaExplorer",
    "IntakeReader",
    "LiveGeneration",
    "LongSweep",
    "ManyMachines",
    "RoundStepper",
    "legend_html",
    "stream_html",
]
