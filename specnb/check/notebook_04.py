"""Exercises of the notebook on live runs: alpha by counting, the best k, the verdict, and look-up by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from .. import theory
from ..records import PublishedStudy, Run
from .exercise import ChoiceExercise, Exercise, NumberExercise, WrongAnswer
from .rule_exercise import Mistake, TokensExercise

Tokens = Sequence[int]

LOOK_UPS = (
    ((1, 2, 3, 4, 1, 2), 2, 2),
    ((1, 2, 7, 7, 1, 2, 8, 8, 1, 2), 2, 3),  # two earlier places
    ((5, 5, 5, 5), 2, 3),  # the earlier places overlap the last two tokens
    *((tokens, n, m) for tokens in product((1, 2), repeat=6) for n in (1, 2, 3) for m in (1, 2, 4)),
)
SHORT_TEXTS = tuple((tokens, n, 3) for n in (2, 3) for tokens in ((), (1,), (1, 2, 3)[:n]))


def exercises(_study: PublishedStudy) -> tuple[Exercise, ...]:
    return (_alpha(), _best_k(), _verdict(), _look_up())


def _alpha() -> Exercise:
    return NumberExercise(
        id="04-alpha",
        question="what is the live alpha of your run, by counting?",
        why="With alpha and your staircase the ledger tells the speed at every k, from one run at one k.",
        nudge="Count only the tokens that verification looked at. How many of those were kept?",
        hints=(
            "Alpha is the chance of a token that is tested.",
            "A cycle tests its draft up to and including the first refusal.",
            "Both counts are in the run: run.kept and run.tested.",
        ),
        facts=("run",),
        truth=lambda run: run.alpha_tested,
        unmeasured="no token was tested in this run.",
        wrong=(
            WrongAnswer(
                lambda run: run.acceptance_rate,
                "that is the acceptance rate. It divides by every drafted token, those behind a refusal included, "
                "which had no chance.",
            ),
            WrongAnswer(
                _solved_alpha,
                "that is alpha solved from tokens per cycle: another estimate of the same thing, and a good one, but "
                "the question is for the one by counting. (If you rounded, give a digit more.)",
            ),
        ),
    )


def _solved_alpha(run: Run) -> float | None:
    try:
        return theory.solve_alpha_mixed(run.tokens_per_cycle, run.draft_lengths)
    except ValueError:  # a text that ends inside a draft may emit less than a token per pass
        return None


def _best_k() -> Exercise:
    return NumberExercise(
        id="04-best-k",
        question="which k has the highest predicted speedup on your machine (0 if none pays)?",
        why="The best draft ends where one more token costs more than it is likely to bring, on this machine with "
        "this drafter. Where that holds for the first token already, the best k is 0.",
        nudge="Look for the highest point of the line in the figure, and compare it with 1.",
        hints=(
            "The line is prediction.speedup_by_k: for each k the speedup that the ledger predicts.",
            "It has each k for which N = k + 1 was measured, and no other.",
            "If no speedup is above 1, leaving it off is best, and that is k = 0.",
        ),
        facts=("speedup_by_k", "alpha", "verify_ms"),
        truth=_highest,
        tolerance=0,
        wrong=(
            WrongAnswer(
                lambda alpha, verify_ms, **_: theory.best_k(alpha, 0.0, verify_ms, verify_ms[1]),
                "that is the best k of a draft that costs nothing. Yours is paid for by the token.",
            ),
            WrongAnswer(
                lambda verify_ms, **_: theory.longest_cheap_draft(verify_ms),
                "that is the longest draft before the cliff, which looks at passes only. What drafting takes and what "
                "alpha brings decide as well.",
            ),
            WrongAnswer(
                _largest_measured_k,
                "that is the largest k that was measured. Late tokens of a draft are seldom reached and always paid.",
            ),
        ),
    )


def _highest(speedup_by_k: Mapping[int, float], **_: object) -> int:
    """The k of the highest point of the line in the figure, the shorter of two; 0 where no point is above 1."""
    best = max(sorted(speedup_by_k), key=speedup_by_k.__getitem__)
    return best if speedup_by_k[best] > 1.0 else 0


def _largest_measured_k(verify_ms: Mapping[int, float], **_: object) -> int:
    return max(verify_ms) - 1


def _verdict() -> Exercise:
    return ChoiceExercise(
        id="04-verdict",
        question="what does the interval of its speedup say of that setting: it pays "
        '("on"), it loses ("off"), or it cannot tell ("unclear")?',
        why="An interval, unlike a single number, says whether another run would tell you the same.",
        nudge="Where does the interval lie, seen from a speedup of 1?",
        hints=(
            "At a speedup of 1 it makes no difference.",
            "The middle of the interval decides nothing; its ends do.",
            "Are both ends above 1, both below, or is 1 between them?",
        ),
        facts=("low", "high"),
        truth=_where_it_lies,
        options=("on", "off", "unclear"),
        diagnoses={
            "on": "that needs the whole interval above 1, its low end included.",
            "off": "that needs the whole interval below 1, its high end included.",
            "unclear": "1 is not inside the interval, so the measurement does decide.",
        },
    )


def _where_it_lies(low: float, high: float) -> str:
    if not low <= high:
        raise ValueError(f"An interval runs from low to high; got low={low}, high={high}.")
    if low > 1:
        return "on"
    return "off" if high < 1 else "unclear"


def _look_up() -> Exercise:
    return TokensExercise(
        id="04-look-up",
        question="write looked_up(tokens, n, m), which returns the draft as a list of tokens.",
        why="A draft without weights: a search that takes microseconds, so its gamma is next to nothing, and all that "
        "it needs is a text that repeats.",
        nudge="Which n tokens does the text end with, where did they last stand before, and what came after them?",
        hints=(
            "tokens[-n:] are the last n tokens, and tokens[i : i + n] are those at place i. At which i do they agree?",
            "The last n tokens themselves stand at len(tokens) - n. Earlier places are below; try the largest first.",
            "What followed begins n tokens behind the place that was found. A slice never reaches beyond the text.",
        ),
        truth=_following,
        arguments=("tokens", "n", "m"),
        cases=LOOK_UPS,
        edges=SHORT_TEXTS,
        edges_nudge="In a text of n tokens or fewer nothing stood before, so the draft is an empty list.",
        wrong=(
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _earliest, lambda i: tokens[i + n : i + n + m]),
                "that takes the earliest place (as `prompt_lookup` does). The text has moved on since; `ngram_simple` "
                "takes the one that was seen last.",
            ),
            Mistake(
                lambda tokens, n, m: (),
                "it never finds anything. Does the search begin at the end of the text? There the last n tokens stand "
                "anyway, and nothing follows them.",
            ),
            Mistake(
                lambda tokens, n, m: tokens[-1:],
                "that proposes the pending token, which is in the text already: the search has found the end of the "
                "text itself.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i : i + m]),
                "the draft begins with the n tokens that were looked for. They are in the text already; propose what "
                "came after them.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i : i + n + m]),
                "the n tokens that were looked for are part of the draft. They are in the text already; propose only "
                "what came after them.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i + n - 1 : i + n - 1 + m]),
                "the draft begins one token too early, with the last of those that were looked for.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i + n + 1 : i + n + 1 + m]),
                "the draft begins one token too late: the first one that followed is missing.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i + n :]),
                "that proposes everything up to the end of the text. A draft has m tokens at most: every further one "
                "is a row of the pass.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i + n : i + n + m + 1]),
                "the draft has one token too many: m is the most.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest, lambda i: tokens[i + n : -1][:m]),
                "the draft stops before the pending token, as `ngram_simple` does; here the whole text counts.",
            ),
            Mistake(
                lambda tokens, n, m: _from_place(tokens, n, _latest_apart, lambda i: tokens[i + n : i + n + m]),
                "it passes over places that overlap the last n tokens. In 5 5 5 5 the last two stood one place earlier "
                "as well, and text that repeats like this is the easiest to guess.",
            ),
        ),
    )


def _following(tokens: Tokens, n: int, m: int) -> Tokens:
    return _from_place(tokens, n, _latest, lambda i: tokens[i + n : i + n + m])


def _from_place(
    tokens: Tokens, n: int, find: Callable[[Sequence[int], int], int], draft_from: Callable[[int], Tokens]
) -> Tokens:
    """The draft from the place that ``find`` takes of all earlier ones; no tokens where there is none."""
    places = [i for i in range(len(tokens) - n) if tokens[i : i + n] == tokens[-n:]]
    place = find(places, len(tokens) - 2 * n)
    return () if place < 0 else draft_from(place)


def _latest(places: Sequence[int], _last_apart: int) -> int:
    return max(places, default=-1)


def _earliest(places: Sequence[int], _last_apart: int) -> int:
    return min(places, default=-1)


def _latest_apart(places: Sequence[int], last_apart: int) -> int:
    return max((place for place in places if place <= last_apart), default=-1)
