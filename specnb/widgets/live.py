"""The live run of notebook 04: choose, Run, watch tokens being kept and refused, compare with the prediction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter

import ipywidgets

from .. import drafters, measure, messages, models, plots, predict, render
from ..adaptive import Adaptive
from ..intervals import ratio_interval
from ..lab import Lab
from ..prompts import PROMPTS, Prompt
from ..records import AdaptiveRun, Cycle, Run, Sampling
from ..repetition import find_loop
from . import controls, stream
from .job import JobWidget

OWN_PROMPT = "your own"
REDRAW_S = 0.12
"""The stream is sent to the page at most this often: the page, not the model, would be the limit."""

STREAM_HEIGHT_PX = 220

SETTLE_S = 0.4
"""Before anything is timed: a page that redraws takes processor time from the model."""

REPEATS, SHORT_RUN_S = 3, 3.0
"""Short runs are timed three times each way, which also gives an interval; longer ones once."""


class LiveGeneration(JobWidget):
    """Sliders, Run and Stop over one ``Lab``; the model works in one background thread.

    A new one takes the lab over from the one before, so that re-running the cell is safe.
    """

    def __init__(self, lab: Lab, *, max_tokens: int = 96) -> None:
        self.run_button = ipywidgets.Button(description=messages.RUN, icon="play", button_style="primary")
        super().__init__(self.run_button, messages.LIVE_READY)
        self._lab = lab
        self._cycles: list[Cycle] = []
        self.runs: list[tuple[Run, Run]] = []
        """(plain, speculative) of every finished run, oldest first."""
        self._build(max_tokens)

    def _build(self, max_tokens: int) -> None:
        formats = list(models.FORMATS) if self._lab.embedded else [self._lab.format]
        self.drafter = controls.menu(
            messages.DRAFTER_MENU, [*drafters.names(), Adaptive.name], drafters.NgramSimple.name
        )
        self.format = controls.menu(messages.FORMAT_MENU, formats, self._lab.format)
        self.prompt = controls.menu(messages.PROMPT_MENU, [*PROMPTS, OWN_PROMPT], "rewrite")
        self.own_text = controls.text_box(messages.OWN_PROMPT_LABEL, messages.OWN_PROMPT_HINT, height="5em")
        self._prompt_chosen()
        self.k = controls.int_slider(messages.K_SLIDER, 6, 1, 16)
        self.p_min = controls.float_slider(messages.P_MIN_SLIDER, 0.0, 0.0, 0.95, 0.05)
        self.temperature = controls.float_slider(messages.TEMPERATURE_SLIDER, 0.0, 0.0, 1.5, 0.1)
        self.max_tokens = controls.int_slider(messages.MAX_TOKENS_SLIDER, max_tokens, 16, 256)
        self.show_refused = ipywidgets.Checkbox(value=True, description=messages.SHOW_REFUSED, indent=False)
        self.stream = ipywidgets.HTML()
        self._show_stream()
        self.gauges = ipywidgets.HTML(messages.gauges(None, None, None))
        empty = plots.plot_speedup_over_k({})
        self._empty_picture = render.png(empty)
        self.picture = controls.image(render.size_css_px(empty), self._empty_picture)
        inputs = (self.drafter, self.format, self.prompt, self.k, self.p_min, self.temperature, self.max_tokens)
        self.prompt.observe(lambda _change: self._prompt_chosen(), names="value")
        self.show_refused.observe(lambda _change: self._show_stream(), names="value")
        buttons = ipywidgets.HBox([self.run_button, self.stop_button, controls.reset_button(inputs), self.show_refused])
        what = ipywidgets.VBox([self.drafter, self.format, self.prompt])
        how = ipywidgets.VBox([self.k, self.p_min, self.temperature, self.max_tokens])
        self.view = ipywidgets.VBox(
            [
                ipywidgets.HBox([what, how], layout=ipywidgets.Layout(flex_flow="row wrap")),
                self.own_text,
                buttons,
                self.status,
                ipywidgets.HTML(stream.legend_html()),
                self.stream,
                self.gauges,
                self.picture,
            ]
        )

    def run(self) -> bool:
        """What the Run button does. False while a run is under way."""
        return self._start()

    # -- in the worker thread -----------------------------------------------------------------

    def _work(self) -> None:
        """Writes the answer in view of the reader, times both ways with the page at rest, then predicts."""
        self._show_nothing()
        text = self._text()
        name = self.drafter.value
        settings = {
            "sampling": Sampling(temperature=self.temperature.value),
            "max_tokens": self.max_tokens.value,
            "stopped": self._worker.stopped,
        }
        self.status.value = messages.LIVE_LOADING
        self._lab.use_format(self.format.value)
        if name == Adaptive.name:
            self.status.value = messages.RACE_MEASURING
            costs = self._lab.adaptive_costs(text)
            adaptive: list[AdaptiveRun] = []

            def write(**more: object) -> Run:
                adaptive.append(self._lab.run_adaptive(text, costs, **settings, **more))
                return adaptive[-1].run

        else:
            write = partial(
                self._lab.run, text, self._lab.drafter(name), k=self.k.value, p_min=self.p_min.value, **settings
            )
        self.status.value = messages.live_running(name, self.k.value)
        shown = self._in_view(write)
        self.status.value = messages.LIVE_COMPARING
        time.sleep(SETTLE_S)
        timed = measure.race(
            [lambda: self._lab.run(text, drafters.NoDrafter(), **settings), write],
            repeats=REPEATS if shown.decode_s < SHORT_RUN_S else 1,
        )
        if self._worker.stopped():
            self.status.value = messages.LIVE_STOPPED
            return
        plain, speculative = timed.of(drafters.NoDrafter.name), timed.of(name)
        self.runs.append((median_run(plain), median_run(speculative)))
        self._show_result(*self.runs[-1])
        same = plain[0].tokens == speculative[0].tokens == shown.tokens
        if name == Adaptive.name:  # no one k to predict: its choices are shown instead
            self.picture.value = render.png(plots.plot_adaptive(adaptive[-1]))
            self.status.value = messages.live_done(shown.finish, same)
            return
        self.status.value = messages.LIVE_MEASURING
        prediction = predict.from_run(
            self.runs[-1][1],
            draft_ms=self._lab.drafting_ms(name, text),
            verify_ms=self._lab.staircase().median_ms,
            other_ms=1e3 * median(cycle.sampling_s + cycle.other_s for run in plain for cycle in run.cycles),
        )
        self._show_prediction(plain, speculative, prediction)
        self.status.value = messages.live_done(shown.finish, same)

    def _in_view(self, write: Callable[..., Run]) -> Run:
        """One run whose text the reader sees grow. Its times are not used: the page redraws beside it."""
        self._cycles = []
        last_sent = 0.0

        def on_cycle(cycle: Cycle) -> None:
            nonlocal last_sent
            self._cycles.append(cycle)
            if perf_counter() - last_sent > REDRAW_S:
                last_sent = perf_counter()
                self._show_stream()

        run = write(on_cycle=on_cycle)
        self._show_stream()
        return run

    # -- showing ------------------------------------------------------------------------------

    def _show_nothing(self) -> None:
        """Figures of the run before must not stand beside the text of the next."""
        self._cycles = []
        self._show_stream()
        self.gauges.value = messages.gauges(None, None, None)
        self.picture.value = self._empty_picture

    def _show_stream(self) -> None:
        # A copy: the worker may append while a click redraws.
        cycles = list(self._cycles)
        self.stream.value = stream.stream_html(
            cycles, self._lab.model.piece, show_refused=self.show_refused.value, height_px=STREAM_HEIGHT_PX
        )

    def _show_result(self, plain: Run, speculative: Run) -> None:
        self.gauges.value = messages.gauges(plain, speculative, find_loop(speculative.tokens))

    def _show_prediction(
        self, plain: Sequence[Run], speculative: Sequence[Run], prediction: predict.Prediction
    ) -> None:
        if not prediction.speedup_by_k:
            return
        speeds = [[run.tokens_per_second for run in runs] for runs in (speculative, plain)]
        measured = (speculative[0].k, median(speeds[0]) / median(speeds[1]), ratio_interval(*speeds))
        ax = plots.plot_speedup_over_k(
            {messages.predicted_at(prediction.alpha): prediction.speedup_by_k}, measured=[measured]
        )
        self.picture.value = render.png(ax)

    def _text(self) -> str | Prompt:
        if self.prompt.value != OWN_PROMPT:
            return PROMPTS[self.prompt.value]
        text = self.own_text.value.strip()
        if not text:
            raise ValueError(messages.OWN_PROMPT_EMPTY)
        return text

    def _prompt_chosen(self) -> None:
        self.own_text.layout.display = "" if self.prompt.value == OWN_PROMPT else "none"

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        # Where widgets cannot be shown (paper, a code host), the page says in words what would be here.
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.LIVE_ALT}


def median_run(runs: Sequence[Run]) -> Run:
    """The run of median speed."""
    return sorted(runs, key=lambda run: run.tokens_per_second)[len(runs) // 2]
