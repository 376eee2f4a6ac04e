"""The explorer of notebook 02: alpha, gamma, k and a staircase in, the speedup over k out, redrawn as you drag."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets

from .. import messages, plots, theory
from ..records import CostCurve
from . import controls

HIGHEST_SPEEDUP = 5.0
"""Top of the axis; it must not move while a slider does."""


class CycleCostExplorer:
    """Sliders over ``theory.speedup``.

    curves: what to call a staircase -> the staircase; the first one is shown first. A staircase
    in which every pass costs T(1), the textbook's assumption, is added at the end.
    alpha, gamma, k: where the sliders start.
    """

    def __init__(self, curves: Mapping[str, CostCurve], *, alpha: float = 0.7, gamma: float = 0.16, k: int = 4) -> None:
        self._staircases = {name: curve.median_ms for name, curve in curves.items()}
        longest = max(self._staircases.values(), key=len)
        self._staircases[messages.FLAT_STAIRCASE] = {n: 1.0 for n in longest}
        longest_k = max(n for staircase in self._staircases.values() for n in staircase) - 1
        self.alpha = controls.float_slider(messages.ALPHA_SLIDER, alpha, 0.0, 1.0, 0.01)
        self.gamma = controls.float_slider(messages.GAMMA_SLIDER, gamma, 0.0, 1.0, 0.01)
        self.k = controls.int_slider(messages.K_SLIDER, k, 1, longest_k)
        self.staircase = controls.menu(messages.STAIRCASE_MENU, list(self._staircases), next(iter(self._staircases)))
        self.readout = ipywidgets.HTML()
        self._figure = plots.live_speedup_over_k(range(1, longest_k + 1), top=HIGHEST_SPEEDUP)
        self.picture = controls.image(self._figure.size_css_px, self.redraw(), messages.EXPLORER_ALT)
        inputs = (self.alpha, self.gamma, self.k, self.staircase)
        for control in inputs:
            control.observe(self._moved, names="value")
        self.view = ipywidgets.VBox([*inputs, controls.reset_button(inputs), self.readout, self.picture])

    def redraw(self) -> bytes:
        """The picture for where the sliders stand now, as PNG; also sets the readout."""
        verify_ms = self._staircases[self.staircase.value]
        plain_ms = verify_ms[1]
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
        self.picture.value = self.redraw()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**kwargs)
