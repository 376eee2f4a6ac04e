"""A long sweep in the background: Start, Stop, how far it is, and what it found."""

from __future__ import annotations

import ipywidgets

from .. import advise, messages, plots, render, store, sweep
from ..lab import Lab
from ..records import Sweep
from . import controls
from .job import JobWidget


class LongSweep(JobWidget):
    """Start and Stop over one ``sweep.Sweeper``; the model works in one background thread.

    Finished points are kept in the cache folder. Start goes on where the same sweep of the same weights on the same
    machine was stopped or killed, within half a day. ``result``: what was measured, once there is something; a
    complete one is also saved beside the journal, where ``saved`` says. A new widget takes the lab over from the one
    before.
    """

    def __init__(self, lab: Lab, plan: sweep.Plan, *, method: str = "racing") -> None:
        self.start_button = ipywidgets.Button(description=messages.SWEEP_START, icon="play", button_style="primary")
        super().__init__(self.start_button, messages.SWEEP_READY)
        self._lab, self._plan, self._method = lab, plan, method
        self._sweeper: sweep.Sweeper | None = None
        self.result: Sweep | None = None
        self.saved = ""
        self.bar = ipywidgets.FloatProgress(value=0.0, min=0.0, max=1.0, layout=ipywidgets.Layout(width="24em"))
        self.answer = ipywidgets.HTML()
        self.picture = ipywidgets.VBox()
        buttons = ipywidgets.HBox([self.start_button, self.stop_button, self.bar])
        self.view = ipywidgets.VBox([buttons, self.status, self.answer, self.picture])

    def start(self) -> bool:
        """What the Start button does. False while the sweep is under way."""
        return self._start()

    # -- in the worker thread -----------------------------------------------------------------

    def _work(self) -> None:
        if self._sweeper is None:
            self.status.value = messages.SWEEP_OPENING
            journal = sweep.journal_for(self._lab, self._plan, self._method)
            self._sweeper = sweep.Sweeper(self._lab, self._plan, method=self._method, journal=journal)
        found = self._sweeper.run(on_progress=self._show_progress, stopped=self._worker.stopped)
        if found is None:
            self.status.value = messages.SWEEP_NOTHING_YET
            return
        self.result = found
        if found.complete:
            self.saved = str(store.save(found, self._sweeper.journal.path.with_suffix(".json")))
            self._sweeper.finish()
            self._sweeper = None  # the next Start measures anew
            self.bar.value = 1.0
            self.status.value = messages.sweep_done(len(found.trials), len(found.settings), found.seconds, self.saved)
        else:
            self.status.value = messages.sweep_stopped(len(found.trials), str(self._sweeper.journal.path))
        self._show(found)

    # -- showing ------------------------------------------------------------------------------

    def _show_progress(self, progress: sweep.Progress) -> None:
        self.bar.value = progress.done / progress.expected
        self.status.value = messages.sweep_progress(
            progress.done, progress.expected, progress.seconds_left, progress.what
        )

    def _show(self, found: Sweep) -> None:
        advice = advise.advise(found)
        if advice.by_kind:
            self.answer.value = f"<b>{messages.advice_answer(advice)}</b>"
            ax = plots.plot_drafters_by_kind(found, recorded="")
            self.picture.children = [controls.image(render.size_css_px(ax), render.png(ax))]

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        # Where widgets cannot be shown (paper, a code host), the page says in words what would be here.
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.SWEEP_ALT}
