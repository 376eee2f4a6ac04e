"""A race of three on one prompt: plain decoding, the adaptive policy, and a fixed setting of the reader's."""

from __future__ import annotations

import time
from statistics import median

import ipywidgets

from .. import drafters, messages, plots, render
from ..adaptive import Adaptive
from ..lab import LONGEST_K, Lab
from ..prompts import PROMPTS, RACED
from ..records import AdaptiveRun, RunSet, Setting
from . import controls
from .job import JobWidget
from .live import SETTLE_S, median_run

REPEATS = 3
RACE_HEIGHT_IN, CHOICES_HEIGHT_IN = 3.8, 4.8


class AdaptiveRace(JobWidget):
    """A menu of prompts, a fixed drafter and k, Race and Stop; the model works in one background thread.

    A new one ends the one before, so that re-running the cell is safe.
    """

    def __init__(self, lab: Lab, *, max_tokens: int = 96) -> None:
        self.race_button = ipywidgets.Button(description=messages.RACE, icon="flag", button_style="primary")
        super().__init__(self.race_button, messages.RACE_READY)
        self._lab = lab
        self.races: list[tuple[RunSet, AdaptiveRun]] = []
        """The runs of every finished race, and the last adaptive one with its choices; oldest first."""
        prompts = {f"{prompt.kind}: {prompt.title}": prompt for prompt in (*PROMPTS.values(), *RACED)}
        fixed = [name for name in drafters.names() if name != drafters.NoDrafter.name]
        self.prompt = controls.menu(messages.PROMPT_MENU, list(prompts.items()), PROMPTS["rewrite"])
        self.drafter = controls.menu(messages.RACED_DRAFTER_MENU, fixed, drafters.NgramSimple.name)
        self.k = controls.int_slider(messages.RACED_K_SLIDER, 4, 1, LONGEST_K)
        self.max_tokens = controls.int_slider(messages.MAX_TOKENS_SLIDER, max_tokens, 16, 256)
        self.lines = controls.blank_image(RACE_HEIGHT_IN)
        self.choices = controls.blank_image(CHOICES_HEIGHT_IN)
        inputs = (self.prompt, self.drafter, self.k, self.max_tokens)
        buttons = ipywidgets.HBox([self.race_button, self.stop_button, controls.reset_button(inputs)])
        self.view = ipywidgets.VBox([*inputs, buttons, self.status, self.lines, self.choices])

    def run(self) -> bool:
        """What the Race button does. False while a race is under way."""
        return self._start()

    # -- in the worker thread -----------------------------------------------------------------

    def _work(self) -> None:
        prompt, name, k = self.prompt.value, self.drafter.value, self.k.value
        settings = {"max_tokens": self.max_tokens.value, "stopped": self._worker.stopped}
        self.status.value = messages.RACE_MEASURING
        costs = self._lab.adaptive_costs(prompt)
        self.status.value = messages.RACE_TIMING
        time.sleep(SETTLE_S)
        fixed = Setting(name, k)
        found = [self._lab.race_adaptive(prompt, fixed, costs, seed=seed, **settings) for seed in range(REPEATS)]
        if self._worker.stopped():
            self.status.value = messages.RACE_STOPPED
            return
        runs, last = RunSet(tuple(run for raced, _ in found for run in raced.runs)), found[-1][1]
        self.races.append((runs, last))
        self._show(runs, last, name, k)

    def _show(self, runs: RunSet, found: AdaptiveRun, name: str, k: int) -> None:
        plain, fixed, adaptive = (runs.of(each) for each in (drafters.NoDrafter.name, name, Adaptive.name))
        self.lines.value = render.png(plots.plot_race([median_run(each) for each in (plain, fixed, adaptive)]))
        self.choices.value = render.png(plots.plot_adaptive(found))
        speed = median(runs.speeds(drafters.NoDrafter.name))
        self.status.value = messages.race_done(
            median(runs.speeds(Adaptive.name)) / speed, median(runs.speeds(name)) / speed, name, k
        )

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.RACE_WIDGET_ALT}
