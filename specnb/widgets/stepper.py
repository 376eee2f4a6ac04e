"""One round, step by step: a recorded or a live run, walked through with buttons, a slider or the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock

import ipywidgets

from .. import messages, plots, stepping
from ..records import Run, TokenTexts
from ..stepping import Step
from . import controls

CONTEXT_TOKENS = 24
"""Tokens of the text before a round that the readout repeats."""


class RoundStepper:
    """Forward, Back and jumps over ``stepping.steps``; nothing is measured or run.

    runs: what to call a run -> the run; the first is shown first. texts: what their tokens read as
    (``stepping.texts_of``). recorded: as plots take it. ValueError for no run, and for one without a pass.
    """

    def __init__(self, runs: Mapping[str, Run], texts: TokenTexts, *, recorded: str | None = None) -> None:
        if not runs:
            raise ValueError(messages.STEP_NO_RUN)
        self._texts = texts.texts
        self._steps = {name: stepping.steps(run) for name, run in runs.items()}
        self._figures = {
            name: plots.live_step(max(1, *run.draft_lengths), self._texts, recorded=recorded)
            for name, run in runs.items()
        }
        # Setting the slider while a run is being changed comes back here in the same thread.
        self._redrawing = RLock()
        first = next(iter(runs))
        self.run = controls.menu(messages.STEP_RUN_MENU, list(runs), first)
        self.step = controls.int_slider(messages.STEP_SLIDER, 1, 1, len(self._steps[first]))
        self.back = _button(messages.STEP_BACK, "step-backward", self.go_back)
        self.forward = _button(messages.STEP_FORWARD, "step-forward", self.go_forward)
        self.previous_round = _button(
            messages.STEP_PREVIOUS_ROUND, "fast-backward", self._jump(stepping.previous_round)
        )
        self.next_round = _button(messages.STEP_NEXT_ROUND, "fast-forward", self._jump(stepping.next_round))
        self.next_refusal = _button(messages.STEP_NEXT_REFUSAL, "times", self.go_to_refusal)
        self.readout = ipywidgets.HTML()
        self.picture = controls.image(self._figures[first].size_css_px, self.redraw())
        self.run.observe(self._run_chosen, names="value")
        self.step.observe(self._moved, names="value")
        buttons = ipywidgets.Box(
            [
                self.back, self.forward, self.previous_round, self.next_round, self.next_refusal,
                controls.reset_button((self.run, self.step)),
            ],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )  # fmt: skip
        inputs = ipywidgets.Box([self.run, self.step], layout=ipywidgets.Layout(flex_flow="row wrap"))
        # The words last: their lines come and go, and the picture must not move.
        self.view = ipywidgets.VBox([inputs, buttons, self.picture, self.readout])

    @property
    def shown(self) -> Step:
        return self._of_run[self._at]

    def redraw(self) -> bytes:
        """The picture of the step where the slider stands, as PNG; also sets the readout."""
        step = self.shown
        self.readout.value = messages.step_readout(
            self.step.value, len(self._of_run), plots.step_title(step, self._texts), plots.tell_step(step, self._texts)
        ) + messages.step_so_far(self._read(step.round.context[-CONTEXT_TOKENS:]), self._read(_added(step)))
        return self._figures[self.run.value].update(step=step)

    # -- what the buttons do ------------------------------------------------------------------

    def go_forward(self) -> None:
        self._go(min(self._at + 1, len(self._of_run) - 1))

    def go_back(self) -> None:
        self._go(max(0, self._at - 1))

    def go_to_refusal(self) -> None:
        found = stepping.next_refusal(self._of_run, self._at)
        if found is None:
            self.readout.value = messages.STEP_NO_REFUSAL
        self._go(found)

    def _jump(self, find: Callable[[Sequence[Step], int], int | None]) -> Callable[[], None]:
        return lambda: self._go(find(self._of_run, self._at))

    def _go(self, index: int | None) -> None:
        """To a step of this run; None: there is no such step, so it stays."""
        if index is not None:
            self.step.value = index + 1

    # -- showing ------------------------------------------------------------------------------

    @property
    def _of_run(self) -> tuple[Step, ...]:
        return self._steps[self.run.value]

    @property
    def _at(self) -> int:
        # The slider and its end may lag behind a run that has just been chosen.
        return min(self.step.value, len(self._of_run)) - 1

    def _run_chosen(self, _change: object) -> None:
        with self._redrawing:
            self.step.value = 1
            self.step.max = len(self._of_run)
            self.picture.value = self.redraw()

    def _moved(self, _change: object) -> None:
        # As in the explorer of notebook 02: reading, drawing and showing are one step, or an older picture could stay.
        with self._redrawing:
            self.picture.value = self.redraw()

    def _read(self, tokens: Sequence[int]) -> str:
        return "".join(self._texts.get(token, messages.token_unknown(token)) for token in tokens)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.STEPPER_ALT}


def _added(step: Step) -> list[int]:
    """What the round has added to the text so far."""
    return [cell.token for cell in stepping.text_cells(step) if cell.place > 0]


def _button(label: str, icon: str, action: Callable[[], None]) -> ipywidgets.Button:
    # Never disabled at the ends: a button that is disabled under the finger loses the keyboard's focus.
    button = ipywidgets.Button(description=label, icon=icon, layout=ipywidgets.Layout(width="auto"))
    button.on_click(lambda _button: action())
    return button
