"""The explorer of notebook 06: take gamma to zero and see what a free draft would bring, on any staircase."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import ipywidgets

from .. import messages, plots, theory
from ..records import CostCurve
from . import controls
from .cycle_cost import HIGHEST_SPEEDUP, baselines


class GammaExplorer:
    """Sliders over ``theory.speedup``, drawn over gamma.

    curves: what to call a staircase -> the staircase; the first is shown first. plain_ms: the same names -> measured
    milliseconds per plain token; T(1) for names it lacks. measured: the same names -> what was measured there: a
    drafter's name -> (gamma, speedup). alpha, gamma, k: where the sliders start.
    Raises ValueError for a staircase with neither T(1) nor a plain speed, and for names of no staircase.
    """

    def __init__(
        self,
        curves: Mapping[str, CostCurve],
        measured: Mapping[str, plots.Points],
        *,
        plain_ms: Mapping[str, float] | None = None,
        alpha: float,
        gamma: float,
        k: int,
    ) -> None:
        self._staircases = {name: curve.median_ms for name, curve in curves.items()}
        self._plain_ms = baselines(self._staircases, plain_ms or {})
        self._measured = dict(measured)
        self._redrawing = Lock()
        longest_k = max(n for staircase in self._staircases.values() for n in staircase) - 1
        self.gamma = controls.float_slider(messages.GAMMA_SLIDER, gamma, 0.0, 1.0, 0.005)
        self.alpha = controls.float_slider(messages.ALPHA_SLIDER, alpha, 0.0, 1.0, 0.01)
        self.k = controls.int_slider(messages.K_SLIDER, k, 1, longest_k)
        self.staircase = controls.menu(messages.STAIRCASE_MENU, list(self._staircases), next(iter(self._staircases)))
        self._figure = plots.live_speedup_over_gamma(1.0, top=HIGHEST_SPEEDUP)
        self.readout = ipywidgets.HTML()
        self.picture = controls.image(self._figure.size_css_px, self.redraw())
        inputs = (self.gamma, self.alpha, self.k, self.staircase)
        self.view = controls.explorer(inputs, self.readout, self.picture, self._moved)

    def redraw(self) -> bytes:
        """The picture for where the sliders stand now, as PNG; also sets the readout."""
        name = self.staircase.value
        verify_ms, plain_ms = self._staircases[name], self._plain_ms[name]
        alpha, gamma, k = self.alpha.value, self.gamma.value, self.k.value
        if k + 1 not in verify_ms:
            self.readout.value = messages.gamma_unmeasured(k)
            return self._figure.update(gammas=[], speedups=[], gamma=gamma, speedup=None, alpha=alpha, k=k, points={})

        def speedup(at: float) -> float:
            return theory.speedup(alpha, k, at * plain_ms, verify_ms, plain_ms)

        gammas = [i / 100 for i in range(101)]
        self.readout.value = messages.gamma_told(k, speedup(gamma), speedup(0.0))
        return self._figure.update(
            gammas=gammas,
            speedups=[speedup(at) for at in gammas],
            gamma=gamma,
            speedup=speedup(gamma),
            alpha=alpha,
            k=k,
            points=self._measured.get(name, {}),
        )

    def _moved(self, _change: object) -> None:
        # As in the explorer of notebook 02: reading, drawing and showing are one step, or an older picture could stay.
        with self._redrawing:
            self.picture.value = self.redraw()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.GAMMA_EXPLORER_ALT}
