"""The explorer of notebook 02: alpha, gamma, k and a staircase in, the speedup over k out, redrawn as you drag."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import ipywidgets

from .. import messages, plots, theory
from ..records import CostCurve
from . import controls

HIGHEST_SPEEDUP = 3.0
"""Top of the axis, which must not move while a slider does: the textbook's promise. What is above leaves the frame
and stands in the readout."""


class CycleCostExplorer:
    """Sliders over ``theory.speedup``.

    curves: what to call a staircase -> the staircase; the first one is shown first. A staircase
    in which every pass costs one plain token, the textbook's assumption, is added at the end.
    plain_ms: the same names -> measured milliseconds per plain token, the baseline and the unit of
    gamma; T(1) for names it lacks. alpha, gamma, k: where the sliders start.
    Raises ValueError for a staircase with neither, and for a baseline of no staircase.
    """

    def __init__(
        self,
        curves: Mapping[str, CostCurve],
        *,
        plain_ms: Mapping[str, float] | None = None,
        alpha: float = 0.7,
        gamma: float = 0.16,
        k: int = 4,
    ) -> None:
        self._staircases = {name: curve.median_ms for name, curve in curves.items()}
        self._plain_ms = baselines(self._staircases, plain_ms or {})
        longest_n = max(n for staircase in self._staircases.values() for n in staircase)
        # An assumption, not a measurement: so it has no gaps.
        self._staircases[messages.FLAT_STAIRCASE] = dict.fromkeys(range(1, longest_n + 1), 1.0)
        self._plain_ms[messages.FLAT_STAIRCASE] = 1.0
        self._redrawing = Lock()
        longest_k = longest_n - 1
        self.alpha = controls.float_slider(messages.ALPHA_SLIDER, alpha, 0.0, 1.0, 0.01)
        self.gamma = controls.float_slider(messages.GAMMA_SLIDER, gamma, 0.0, 1.0, 0.01)
        self.k = controls.int_slider(messages.K_SLIDER, k, 1, longest_k)
        self.staircase = controls.menu(messages.STAIRCASE_MENU, list(self._staircases), next(iter(self._staircases)))
        self.readout = ipywidgets.HTML()
        self._figure = plots.live_speedup_over_k(range(1, longest_k + 1), top=HIGHEST_SPEEDUP)
        self.picture = controls.image(self._figure.size_css_px, self.redraw())
        inputs = (self.alpha, self.gamma, self.k, self.staircase)
        self.view = controls.explorer(inputs, self.readout, self.picture, self._moved)

    def redraw(self) -> bytes:
        """The picture for where the sliders stand now, as PNG; also sets the readout."""
        verify_ms = self._staircases[self.staircase.value]
        plain_ms = self._plain_ms[self.staircase.value]
        draft_ms = self.gamma.value * plain_ms
        alpha, k = self.alpha.value, self.k.value
        speedups = {n - 1: theory.speedup(alpha, n - 1, draft_ms, verify_ms, plain_ms) for n in verify_ms if n > 1}
        best = theory.best_k(alpha, draft_ms, verify_ms, plain_ms)
        self.readout.value = messages.explorer_readout(
            k=k,
            tokens_per_cycle=theory.expected_tokens(alpha, k),
            speedup_now=speedups.get(k),
            break_even=theory.break_even_alpha(k, draft_ms, verify_ms, plain_ms) if k in speedups else None,
            best_k=best,
            best=speedups.get(best, 1.0),
        )
        return self._figure.update(predicted=speedups, k=k)

    def _moved(self, _change: object) -> None:
        # Messages of several sliders arrive on several threads. Whoever comes last must also be the one who
        # reads last, or an older picture would stay; so reading, drawing and showing are one step.
        with self._redrawing:
            self.picture.value = self.redraw()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        # Where widgets cannot be shown (paper, a code host), the page says in words what would be here.
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.EXPLORER_ALT}


def baselines(staircases: Mapping[str, Mapping[int, float]], plain_ms: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds per plain token of every staircase."""
    if unknown := plain_ms.keys() - staircases.keys():
        raise ValueError(
            f"plain_ms names {messages.listed(sorted(unknown))}, but the staircases are {messages.listed(staircases)}."
        )
    baselines = {name: staircase[1] for name, staircase in staircases.items() if 1 in staircase} | dict(plain_ms)
    if lacking := staircases.keys() - baselines.keys():
        raise ValueError(
            f"T(1) was not measured on {messages.listed(sorted(lacking))}, so there is no plain decoding to compare "
            "with. Measure N=1, or give the milliseconds per plain token as plain_ms."
        )
    return baselines
