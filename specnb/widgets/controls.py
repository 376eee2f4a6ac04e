"""The controls every widget uses: labelled sliders with a typed readout, menus, Reset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from .. import messages, render

_LABEL = {"description_width": "9em"}
_WIDE = "30em"
_TEXT_WIDE = "60em"


def float_slider(label: str, value: float, low: float, high: float, step: float) -> ipywidgets.FloatSlider:
    """A slider for a share or a probability; arrow keys move it by one step, the readout takes typing."""
    return ipywidgets.FloatSlider(
        value=value, min=low, max=high, step=step, description=label, style=_LABEL, readout_format=".2f",
        layout=ipywidgets.Layout(width=_WIDE),
    )  # fmt: skip


def int_slider(label: str, value: int, low: int, high: int) -> ipywidgets.IntSlider:
    """A slider for a count; arrow keys move it by one, the readout takes typing."""
    return ipywidgets.IntSlider(
        value=value, min=low, max=high, description=label, style=_LABEL, layout=ipywidgets.Layout(width=_WIDE)
    )


def menu(label: str, options: Sequence[str] | Sequence[tuple[str, object]], value: object) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(
        options=options, value=value, description=label, style=_LABEL, layout=ipywidgets.Layout(width=_WIDE)
    )


def text_box(label: str, hint: str, *, height: str) -> ipywidgets.Textarea:
    """A box for a text of several lines; the hint stands in it while it is empty."""
    layout = ipywidgets.Layout(width=_TEXT_WIDE, max_width="100%", height=height)
    return ipywidgets.Textarea(description=label, placeholder=hint, style=_LABEL, layout=layout)


def text_line(label: str, hint: str) -> ipywidgets.Text:
    """A box for one line; the hint stands in it while it is empty."""
    layout = ipywidgets.Layout(width=_TEXT_WIDE, max_width="100%")
    return ipywidgets.Text(description=label, placeholder=hint, style=_LABEL, layout=layout)


def reset_button(controls: Sequence[ipywidgets.ValueWidget]) -> ipywidgets.Button:
    """A button that sets the controls back to the values they have now."""
    first = [control.value for control in controls]
    button = ipywidgets.Button(description=messages.RESET, tooltip=messages.RESET_TIP, icon="undo")

    def reset(_button: ipywidgets.Button) -> None:
        for control, value in zip(controls, first, strict=True):
            control.value = value

    button.on_click(reset)
    return button


def explorer(
    inputs: Sequence[ipywidgets.ValueWidget],
    readout: ipywidgets.HTML,
    picture: ipywidgets.Image,
    moved: Callable[[object], None],
) -> ipywidgets.VBox:
    """Inputs over a Reset, a readout and a picture. moved: called whenever an input's value changes."""
    for control in inputs:
        control.observe(moved, names="value")
    # Side by side where there is room, so that sliders and picture are in view together.
    sliders = ipywidgets.Box(inputs, layout=ipywidgets.Layout(flex_flow="row wrap"))
    told = ipywidgets.Box(
        [reset_button(inputs), readout],
        layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="1em"),
    )
    return ipywidgets.VBox([sliders, told, picture])


def image(size_css_px: tuple[int, int], png: bytes) -> ipywidgets.Image:
    """The one image of a widget: of fixed size, so that the page does not jump when it is redrawn.

    ipywidgets has no alt text for images (and its tooltip breaks them in 8.1), so a widget says in
    text beside the image what the image shows.
    """
    width, height = size_css_px
    layout = ipywidgets.Layout(width=f"{width}px", height=f"{height}px", max_width="100%", object_fit="contain")
    return ipywidgets.Image(value=png, format="png", width=width, height=height, layout=layout)


def blank_image(height_in: float) -> ipywidgets.Image:
    """An image of a figure's width that shows nothing yet."""
    empty = render.new_figure(height_in=height_in)
    return image(render.size_css_px(empty), render.png(empty))
