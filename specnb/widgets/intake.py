"""Numbers you already have: paste a log, choose a file or name an address, and read what they say."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets

from .. import intake, messages
from ..records import CostCurve
from . import controls
from .worker import Worker


class IntakeReader:
    """Three ways in and one report out. Nothing is fetched before the button by the address is pressed.

    staircases: what to call a staircase -> the staircase, offered beside "none"; of machines the numbers may be of.
    """

    def __init__(self, staircases: Mapping[str, CostCurve] | None = None) -> None:
        self._staircases = dict(staircases or {})
        self._worker = Worker()
        self.report: intake.Intake | None = None
        """What was read last."""
        self.text = controls.text_box(messages.INTAKE_TEXT, messages.INTAKE_HINT, height="9em")
        self.file = ipywidgets.FileUpload(multiple=False, description=messages.INTAKE_FILE)
        self.address = controls.text_line(messages.INTAKE_ADDRESS, messages.INTAKE_ADDRESS_HINT)
        self.k = ipywidgets.BoundedIntText(value=0, min=0, max=4096, description=messages.INTAKE_K)
        self.plain = ipywidgets.BoundedFloatText(value=0.0, min=0.0, max=1e6, description=messages.INTAKE_PLAIN)
        for field in (self.k, self.plain):
            field.style.description_width = "16em"
            field.layout.width = "26em"
        self.staircase = controls.menu(
            messages.STAIRCASE_MENU, [messages.INTAKE_NO_STAIRCASE, *self._staircases], messages.INTAKE_NO_STAIRCASE
        )
        self.read_button = ipywidgets.Button(description=messages.INTAKE_READ, icon="search", button_style="primary")
        self.ask_button = ipywidgets.Button(description=messages.INTAKE_ASK, icon="download")
        self.shown = ipywidgets.HTML(messages.intake_shown((messages.INTAKE_READY,)))
        self.read_button.on_click(lambda _button: self.read())
        self.ask_button.on_click(lambda _button: self.ask())
        self.file.observe(lambda _change: self.read_upload(), names="value")
        self.view = ipywidgets.VBox(
            [
                self.text,
                ipywidgets.HBox([self.read_button, self.file]),
                self.address,
                self.ask_button,
                ipywidgets.Box([self.k, self.plain, self.staircase], layout=ipywidgets.Layout(flex_flow="row wrap")),
                self.shown,
            ]
        )

    def read(self) -> bool:
        """What the button under the box does. False while another text is being read."""
        text = self.text.value
        return self._start(lambda costs: intake.from_text(text, **costs))

    def read_upload(self) -> bool:
        """What choosing a file does."""
        if not self.file.value:
            return False
        content, name = bytes(self.file.value[0]["content"]), self.file.value[0]["name"]
        return self._start(lambda costs: intake.from_bytes(content, name, **costs))

    def ask(self) -> bool:
        """What the button under the address does: one GET, five seconds at most."""
        address = self.address.value
        return self._start(lambda costs: intake.from_address(address, **costs))

    def wait(self, timeout_s: float | None = None) -> None:
        """Blocks until the text at hand is read: for scripts and tests."""
        self._worker.wait(timeout_s)

    def _start(self, read) -> bool:
        costs = {
            "k": self.k.value or None,
            "plain_tokens_per_second": self.plain.value or None,
            "staircase": self._staircases.get(self.staircase.value),
        }

        def job() -> None:
            self.shown.value = messages.intake_shown((messages.INTAKE_READING,))
            try:
                report = read(costs)
                lines = report.lines
                self.report = report
            except (ValueError, KeyError) as reason:  # what intake raises for a text or a cost that is none
                lines = (str(reason.args[0] if reason.args else reason),)
            except Exception as error:  # a thread would swallow it, and the reader would wait
                lines = (f"{type(error).__name__}: {error}",)
            self.shown.value = messages.intake_shown(lines)

        return self._worker.start(job)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        # Where widgets cannot be shown (paper, a code host), the page says in words what would be here.
        return self.view._repr_mimebundle_(**kwargs) | {"text/plain": messages.INTAKE_WIDGET_ALT}
