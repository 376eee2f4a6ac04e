"""What an exercise is, and how an answer to it is judged.

Exercises are data: a truth function, recognised wrong answers with their diagnoses, hints. Judging
never raises, whatever the answer is, so that a notebook with unanswered or odd answers runs through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite, isnan
from typing import Literal

Status = Literal["unanswered", "right", "diagnosed", "not it", "unmeasured", "hint", "guess"]

# A rounded answer is never this near to a value computed in another way, unless it is that value.
_SAME = 1e-9
_NEARLY = 0.02
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a cell shows: its repr is the message, in plain text.

    status: "unanswered"; "right"; "diagnosed" (a recognised mistake, explained); "not it" (wrong, but
    not recognised, or not readable as an answer); "unmeasured" (there is nothing to check against);
    "hint" and "guess" for the replies of ``hint`` and ``predict``.
    """

    status: Status
    message: str

    def __repr__(self) -> str:
        return self.message


class Unreadable(ValueError):
    """An answer that is not of the kind asked for. The message is a sentence for the reader."""


def is_unanswered(answer: object) -> bool:
    return answer is None or answer is Ellipsis


def said(error: BaseException) -> str:
    """An exception in one line, even one whose own text cannot be had."""
    try:
        text = " ".join(str(error).split())[:_LONGEST_TEXT]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: float) -> str:
    """Four significant digits, whole digits never lost: 9, 0.7611, 44.77, 1337."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def as_number(answer: object) -> float:
    """The answer as a finite float. Anything else raises Unreadable, never another exception."""
    try:
        if isinstance(answer, bool):
            raise Unreadable(f"that is {answer}; give a number.")
        if isinstance(answer, (str, bytes)):
            raise Unreadable("that is text; give a number, without quotes.")
        if callable(answer):
            raise Unreadable("that is a function; call it, and give the number that it returns.")
        number = float(answer)
    except Unreadable:
        raise
    except TypeError:
        raise Unreadable(f"that is of type {type(answer).__name__}; give one number.") from None
    except Exception as error:
        raise Unreadable(f"that cannot be turned into a number ({said(error)}); give one number.") from None
    if isnan(number):
        raise Unreadable("that is NaN, which is no number: look for 0 / 0, or for a value that is missing.")
    if not isfinite(number):
        raise Unreadable("that is infinite: look for a division by 0.")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """What every kind of exercise has.

    why: one sentence, shown with a right answer: why it matters. nudge: shown with a wrong answer that
    nobody foresaw. facts: names of the keyword arguments on which the truth depends (the reader's own
    measurement). None of the texts but ``why`` may give the answer away.
    """

    id: str
    question: str
    why: str
    nudge: str
    hints: tuple[str, ...]
    facts: tuple[str, ...] = ()

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        """The verdict on an answer that was given. Exceptions of the truth function itself come through."""
        raise NotImplementedError

    def unanswered(self) -> Verdict:
        return Verdict("unanswered", f"not answered yet: {self.question}")

    def right(self, answer: str) -> Verdict:
        return Verdict("right", f"right: {answer}. {self.why}")

    def not_it(self, because: str = "") -> Verdict:
        return Verdict("not it", f"not it: {because or self.nudge}")


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A mistake that readers make, by the value to which it leads.

    value: takes what the truth function takes; None where the mistake cannot be made. diagnosis: why
    it is wrong, without the right answer.
    """

    value: Callable[..., float | None]
    diagnosis: str


def diagnosed(mistakes: list[WrongAnswer]) -> Verdict:
    """All of them are named: different mistakes may lead to the same value."""
    return Verdict("diagnosed", "not it: " + " Or: ".join(mistake.diagnosis for mistake in mistakes))


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberExercise(Exercise):
    """The answer is one number.

    truth: takes the facts as keywords; None when they do not settle it (``unmeasured`` says why).
    tolerance: largest relative error of a right answer; 0 for counts. The default lets three
    significant digits pass.
    """

    truth: Callable[..., float | None]
    wrong: tuple[WrongAnswer, ...]
    tolerance: float = 0.005
    unit: str = ""
    unmeasured: str = ""

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        truth = self.truth(**facts)
        if truth is None:
            return Verdict("unmeasured", f"nothing to check against: {self.unmeasured}")
        valued = [(mistake.value(**facts), mistake) for mistake in self.wrong]
        mistakes = [(value, mistake) for value, mistake in valued if value is not None]
        try:
            number = as_number(answer)
        except Unreadable as error:
            return self.not_it(str(error))
        # A value computed exactly by a wrong formula is that mistake even where the tolerance would let
        # it pass. In all other cases the truth goes first, also where a wrong formula happens to give it.
        if _same(number, truth):
            return self._right(truth)
        if exact := [mistake for value, mistake in mistakes if _same(number, value)]:
            return diagnosed(exact)
        if self._close(number, truth):
            return self._right(truth)
        if close := [mistake for value, mistake in mistakes if self._close(number, value)]:
            return diagnosed(close)
        if self.tolerance and isclose(number, truth, rel_tol=_NEARLY):
            return self.not_it("close, though. Keep all digits on the way and round only at the end.")
        return self.not_it()

    def _close(self, number: float, value: float) -> bool:
        return abs(number - value) <= self.tolerance * abs(value)

    def _right(self, truth: float) -> Verdict:
        return self.right(f"{shown(truth)} {self.unit}".strip())


def _same(number: float, value: float) -> bool:
    return isclose(number, value, rel_tol=_SAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceExercise(Exercise):
    """The answer is one of a few words; case and spaces around it do not count.

    diagnoses: option -> why it is wrong where it is wrong. Its keys are the options that can be wrong;
    ``options`` are all of them.
    """

    truth: Callable[..., str]
    options: tuple[str, ...]
    diagnoses: Mapping[str, str]

    def judge(self, answer: object, facts: Mapping[str, object]) -> Verdict:
        truth = self.truth(**facts)
        # str.strip and not answer.strip: a subclass may have overridden it.
        choice = str.strip(answer).casefold() if issubclass(type(answer), str) else None
        if choice not in self.options:
            return self.not_it("answer with one of " + ", ".join(f'"{option}"' for option in self.options) + ".")
        if choice == truth:
            return self.right(choice)
        return Verdict("diagnosed", f"not it: {self.diagnoses[choice]}")
