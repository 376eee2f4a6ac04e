"""The same ledger on many machines: one alpha, one k, one price of drafts, and a verdict for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import ipywidgets

from .. import messages, plots
from ..cards import MachineCosts, Verdict, verdicts
from . import controls


class ManyMachines:
    """Sliders over ``cards.verdicts``.

    machines: what cycles cost there (``cards.costs_of_cards``, ``cards.costs_of_reports``), shown in this order. alpha,
    gamma, k: where the sliders start. ValueError without machines.
    """

    def __init__(
        self, machines: Sequence[MachineCosts], *, alpha: float = 0.7, gamma: float = 0.15, k: int = 3
    ) -> None:
        self._machines = tuple(machines)
        self._redrawing = Lock()
        self.alpha = controls.float_slider(messages.ALPHA_SLIDER, alpha, 0.0, 1.0, 0.01)
        self.gamma = controls.float_slider(messages.GAMMA_SLIDER, gamma, 0.0, 1.0, 0.01)
        self._figure = plots.live_machines(verdicts(self._machines, alpha, k))
        self.k = controls.int_slider(messages.K_SLIDER, k, 1, max(each.longest_k for each in self._machines))
        self.free = ipywidgets.Checkbox(value=False, description=messages.MANY_FREE, indent=False)
        self.readout = ipywidgets.HTML()
        self.picture = controls.image(self._figure.size_css_px, self.redraw())
        inputs = (self.alpha, self.gamma, self.k, self.free)
        self.view = controls.explorer(inputs, self.readout, self.picture, self._moved)

    def redraw(self) -> bytes:
        """The picture for where the sliders stand now, as PNG; also sets the readout."""
        alpha, k = self.alpha.value, self.k.value
        gamma = 0.0 if self.free.value else self.gamma.value
        rows = verdicts(self._machines, alpha, k, gamma=gamma)
        self.readout.value = _told(rows)
        return self._figure.update(rows=rows, alpha=alpha, k=k, gamma=gamma)

    def _moved(self, _change: object) -> None:
        # As in the explorer of notebook 02: reading, drawing and showing are one step, or an older picture could stay.
        with self._redrawing:
            self.picture.value = self.redraw()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.MANY_ALT}


def _told(rows: Sequence[Verdict]) -> str:
    """The machines by verdict."""
    known = [row for row in rows if row.speedup is not None]
    return messages.many_told(
        [row.label for row in known if row.speedup > 1.0],
        [row.label for row in known if row.speedup <= 1.0],
        [row.label for row in rows if row.speedup is None],
    )
