"""The stepper, driven without a page: what buttons, slider and menu show."""

from __future__ import annotations

import pytest

from specnb import messages, plots, stepping
from specnb.records import Cycle, Run, Sampling, TokenTexts
from specnb.stepping import Phase
from specnb.widgets import RoundStepper

PROMPT = (1, 2, 3, 4)
TEXTS = TokenTexts({1: "<s>", 2: "Say", 3: " <b>", 4: "\n", 10: " cat", 11: " sat", 50: " slept"})


def run(*cycles: Cycle, drafter: str = "draft_model", k: int = 2) -> Run:
    return Run(PROMPT, cycles, drafter, k, 0, 0.0, Sampling(), 0.0)


DRAFTED = run(Cycle("draft_model", 3, (10, 11), 2, 2, (10, 11, 50)), Cycle("draft_model", 6, (10, 11), 1, 0, (50,)))
PLAIN = run(Cycle("none", 3, (), 0, 0, (50,)), drafter="none", k=0)


@pytest.fixture
def stepper() -> RoundStepper:
    return RoundStepper({"drafted": DRAFTED, "plain": PLAIN}, TEXTS)


def press(button) -> None:
    button.click()


def test_forward_and_back_go_one_step_and_stop_at_the_ends(stepper):
    press(stepper.back)
    assert stepper.step.value == 1
    seen = [stepper.picture.value]
    for _ in range(len(stepping.steps(DRAFTED)) + 3):
        press(stepper.forward)
        seen.append(stepper.picture.value)
    assert stepper.step.value == stepper.step.max == len(stepping.steps(DRAFTED))
    assert len(set(seen)) == stepper.step.max
    press(stepper.back)
    assert stepper.step.value == stepper.step.max - 1 and stepper.picture.value == seen[stepper.step.max - 2]


def test_jumps_go_to_rounds_and_refusals_and_say_when_there_is_none(stepper):
    press(stepper.next_refusal)
    assert stepper.shown.refuses and stepper.shown.round.number == 2
    press(stepper.next_refusal)
    assert stepper.shown.refuses and stepper.readout.value == messages.STEP_NO_REFUSAL
    press(stepper.previous_round)
    assert (stepper.shown.round.number, stepper.shown.phase) == (2, Phase.START)
    press(stepper.previous_round)
    assert stepper.step.value == 1
    press(stepper.next_round)
    assert stepper.shown.round.number == 2
    press(stepper.next_round)
    assert stepper.shown.round.number == 2, "there is no third"


def test_the_slider_goes_anywhere(stepper):
    stepper.step.value = 5
    assert stepper.shown is stepper._steps["drafted"][4]
    assert stepper.readout.value.startswith(
        f"Step 5 of {stepper.step.max}. <b>{plots.step_title(stepper.shown, TEXTS.texts)}"
    )


def test_another_run_begins_at_its_first_step_and_reset_comes_back(stepper):
    first = stepper.picture.value
    stepper.step.value = stepper.step.max
    stepper.run.value = "plain"
    assert (stepper.step.value, stepper.step.max) == (1, len(stepping.steps(PLAIN)))
    assert stepper.shown.round.cycle is PLAIN.cycles[0] and stepper.picture.value != first
    stepper.step.value = 3
    reset = stepper.view.children[1].children[-1]
    press(reset)
    assert (stepper.run.value, stepper.step.value, stepper.picture.value) == ("drafted", 1, first)


def test_the_readout_repeats_the_text_as_text(stepper):
    assert "<s>" not in stepper.readout.value and "&lt;b&gt;" in stepper.readout.value
    stepper.step.value = 8
    assert "<u> cat sat slept</u>" in stepper.readout.value


def test_it_needs_a_run():
    with pytest.raises(ValueError, match="no run to step through"):
        RoundStepper({}, TEXTS)


def test_on_paper_it_says_what_would_be_here(stepper):
    assert stepper._repr_mimebundle_()["text/plain"] == messages.STEPPER_ALT
