"""A run in steps: what is visible when, on cycles made by hand and on the loop's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specnb import decoder, stepping, store
from specnb.drafters import DraftModel
from specnb.drafters.draft_model import common_prefix_length
from specnb.policy import Fixed
from specnb.records import Cycle, Limits, Run, RunSet, Sampling
from specnb.stepping import Mark, Phase, Step, Stop, steps
from specnb.toy import ToySampler, ToySession

PROMPT = (1, 2, 3, 4)


def run(*cycles: Cycle, drafter: str = "draft_model", k: int = 3, p_min: float = 0.0, finish: str = "") -> Run:
    return Run(PROMPT, cycles, drafter, k, 0, p_min, Sampling(), 0.0, finish=finish)


def cycle(drafted=(), tested=0, kept=0, emitted=(50,), drafter="draft_model", confidences=None) -> Cycle:
    return Cycle(drafter, len(PROMPT) - 1, tuple(drafted), tested, kept, tuple(emitted), confidences)


ALL_KEPT = cycle((10, 11, 12), 3, 3, (10, 11, 12, 50))
FIRST_REFUSED = cycle((10, 11, 12), 1, 0, (50,))
MIDDLE_REFUSED = cycle((10, 11, 12), 2, 1, (10, 50))
ENDED_INSIDE = cycle((10, 11, 12), 2, 2, (10, 11))
EMPTY = cycle(drafter="ngram_simple")


def only(made: Run, phase: Phase) -> Step:
    (found,) = (each for each in steps(made) if each.phase is phase)
    return found


def last_test(made: Run) -> Step:
    return [each for each in steps(made) if each.phase is Phase.TEST][-1]


def marks(cells) -> dict[int, Mark]:
    return {cell.place: cell.mark for cell in cells}


def tokens(cells) -> dict[int, int | None]:
    return {cell.place: cell.token for cell in cells}


S, D, STOP, P, T, O, R = Phase  # noqa: E741


@pytest.mark.parametrize(
    ("made", "phases"),
    [
        (ALL_KEPT, [S, D, D, D, P, T, T, T, O, R]),
        (FIRST_REFUSED, [S, D, D, D, P, T, O, R]),
        (MIDDLE_REFUSED, [S, D, D, D, P, T, T, O, R]),
        (ENDED_INSIDE, [S, D, D, D, P, T, T, R]),
        (EMPTY, [S, STOP, P, O, R]),
    ],
)
def test_a_round_is_told_in_the_order_in_which_it_happens(made, phases):
    assert [each.phase for each in steps(run(made))] == phases


def test_plain_decoding_has_no_draft_to_tell_of():
    assert [each.phase for each in steps(run(cycle(drafter="none"), drafter="none", k=0))] == [S, P, O, R]


def test_a_draft_comes_token_by_token():
    drafting = [each for each in steps(run(ALL_KEPT)) if each.phase is Phase.DRAFT]
    assert [list(tokens(stepping.draft_cells(each)).values()) for each in drafting] == [[10], [10, 11], [10, 11, 12]]
    assert all(set(marks(stepping.draft_cells(each)).values()) == {Mark.DRAFTED} for each in drafting)
    assert all(stepping.target_cells(each) == () for each in drafting)


@pytest.mark.parametrize(
    ("made", "marked"),
    [
        (ALL_KEPT, [Mark.KEPT] * 3),
        (FIRST_REFUSED, [Mark.REFUSED, Mark.UNTESTED, Mark.UNTESTED]),
        (MIDDLE_REFUSED, [Mark.KEPT, Mark.REFUSED, Mark.UNTESTED]),
        (ENDED_INSIDE, [Mark.KEPT, Mark.KEPT, Mark.UNTESTED]),
    ],
)
def test_what_became_of_each_drafted_token(made, marked):
    assert list(marks(stepping.draft_cells(last_test(run(made)))).values()) == marked


def test_a_comparison_still_to_come_is_neither_kept_nor_refused():
    first = next(each for each in steps(run(MIDDLE_REFUSED)) if each.phase is Phase.TEST)
    assert list(marks(stepping.draft_cells(first)).values()) == [Mark.KEPT, Mark.DRAFTED, Mark.DRAFTED]
    assert not first.refuses and not first.judged


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (ALL_KEPT, [(10, Mark.KEPT), (11, Mark.KEPT), (12, Mark.KEPT), (50, Mark.OWN)]),
        (FIRST_REFUSED, [(50, Mark.OWN), *[(None, Mark.NOT_LOOKED_AT)] * 3]),
        (MIDDLE_REFUSED, [(10, Mark.KEPT), (50, Mark.OWN), *[(None, Mark.NOT_LOOKED_AT)] * 2]),
        (ENDED_INSIDE, [(10, Mark.KEPT), (11, Mark.KEPT), *[(None, Mark.NOT_LOOKED_AT)] * 2]),
        (EMPTY, [(50, Mark.OWN)]),
    ],
)
def test_the_targets_rows_as_far_as_the_loop_looks_at_them(made, said):
    end = only(run(made), Phase.ROLLBACK)
    assert [(cell.token, cell.mark) for cell in stepping.target_cells(end)] == said


def test_rows_are_there_before_they_are_read_and_the_bonus_row_is_read_last():
    first = only(run(ALL_KEPT), Phase.PASS)
    assert list(marks(stepping.target_cells(first)).values()) == [Mark.UNREAD] * 4
    assert marks(stepping.target_cells(last_test(run(ALL_KEPT))))[4] is Mark.UNREAD


@pytest.mark.parametrize(
    ("made", "text", "pending"),
    [
        (ALL_KEPT, [2, 3, 4, 10, 11, 12, 50], 4),
        (FIRST_REFUSED, [2, 3, 4, 50], 1),
        (MIDDLE_REFUSED, [2, 3, 4, 10, 50], 2),
        (ENDED_INSIDE, [2, 3, 4, 10, 11], 2),
        (EMPTY, [2, 3, 4, 50], 1),
    ],
)
def test_the_text_grows_and_its_last_token_is_the_next_pending_one(made, text, pending):
    end = only(run(made), Phase.ROLLBACK)
    cells = stepping.text_cells(end)
    assert [cell.token for cell in cells] == text
    assert [cell.place for cell in cells if cell.mark is Mark.PENDING] == [pending]


@pytest.mark.parametrize(
    ("made", "held", "removed", "not_fed"),
    [
        (ALL_KEPT, 3, [], [4]),
        (FIRST_REFUSED, 0, [1, 2, 3], []),
        (MIDDLE_REFUSED, 1, [2, 3], []),
        (ENDED_INSIDE, 1, [2, 3], []),
        (EMPTY, 0, [], [1]),
    ],
)
def test_the_targets_cache_keeps_all_but_the_pending_token(made, held, removed, not_fed):
    end = only(run(made), Phase.ROLLBACK)
    found = marks(stepping.target_cache(end))
    assert [place for place, mark in found.items() if mark is Mark.HELD] == list(range(-2, held + 1))
    assert [place for place, mark in found.items() if mark is Mark.REMOVED] == removed
    assert [place for place, mark in found.items() if mark is Mark.NOT_FED] == not_fed
    assert end.round.removed == len(removed)


def test_before_the_pass_the_pending_token_is_in_neither_cache():
    start = only(run(ALL_KEPT), Phase.START)
    for cells in (stepping.target_cache(start), stepping.draft_cache(start)):
        assert marks(cells) == {-2: Mark.HELD, -1: Mark.HELD, 0: Mark.NOT_FED}


def test_a_drafts_last_token_never_goes_through_the_draft_model():
    passed = only(run(ALL_KEPT), Phase.PASS)
    assert max(marks(stepping.draft_cache(passed))) == 2
    assert max(marks(stepping.target_cache(passed))) == 3


def test_so_after_a_round_without_refusal_the_drafts_cache_lags_by_a_token():
    again = replace(FIRST_REFUSED, context_length=7)
    second = [each for each in steps(run(ALL_KEPT, again)) if each.phase is Phase.START][1]
    assert tokens(stepping.draft_cache(second)) == {-2: 11, -1: 12, 0: 50}
    assert marks(stepping.draft_cache(second)) == {-2: Mark.HELD, -1: Mark.NOT_FED, 0: Mark.NOT_FED}
    assert marks(stepping.target_cache(second)) == {-2: Mark.HELD, -1: Mark.HELD, 0: Mark.NOT_FED}


def test_both_caches_lose_what_was_refused():
    end = only(run(MIDDLE_REFUSED), Phase.ROLLBACK)
    assert marks(stepping.draft_cache(end)) == {
        -2: Mark.HELD, -1: Mark.HELD, 0: Mark.HELD, 1: Mark.HELD, 2: Mark.REMOVED
    }  # fmt: skip
    assert tokens(stepping.draft_cache(end))[2] == 11, "the refused token, not the target's"


def test_a_look_up_has_no_cache():
    assert all(stepping.draft_cache(each) is None for each in steps(run(EMPTY, drafter="ngram_simple")))


P_MIN_STOP = cycle((10, 11), 2, 2, (10, 11, 50), confidences=(0.9, 0.8))


def test_p_min_ends_a_draft_whose_last_token_was_fed():
    made = run(P_MIN_STOP, p_min=0.5)
    stop = only(made, Phase.STOP)
    assert stop.round.stop is Stop.P_MIN
    assert stepping.draft_cells(stop)[-1] == stepping.Cell(3, None, Mark.BELOW_P_MIN)
    assert max(marks(stepping.draft_cache(stop))) == 2
    assert marks(stepping.draft_cache(only(made, Phase.ROLLBACK)))[3] is Mark.NOT_FED


def test_p_min_may_leave_nothing_to_verify():
    made = run(cycle(confidences=()), p_min=0.5)
    assert [each.phase for each in steps(made)] == [S, STOP, P, O, R]
    stop = only(made, Phase.STOP)
    assert stop.round.stop is Stop.P_MIN
    assert marks(stepping.draft_cache(stop))[0] is Mark.HELD, "the pending token went through the draft model"


@pytest.mark.parametrize(
    ("made", "p_min", "finish", "stop"),
    [
        (cycle((10,), 1, 1, (10, 50), confidences=(0.9,)), 0.5, "max_tokens", Stop.ROOM),  # room for one
        (cycle((10,), 1, 1, (10, 50), confidences=(0.9,)), 0.5, "end of text", Stop.P_MIN),
        (cycle((10,), 1, 0, (50,), drafter="ngram_simple"), 0.0, "end of text", Stop.SHORT),
        (cycle((), 0, 0, (50,), drafter="ngram_simple"), 0.5, "end of text", Stop.SHORT),
        (cycle((), 0, 0, (50,)), 0.0, "max_tokens", Stop.ROOM),
        (ALL_KEPT, 0.5, "max_tokens", None),
    ],
)
def test_why_a_draft_is_shorter_than_k(made, p_min, finish, stop):
    (found,) = stepping.rounds(run(made, p_min=p_min, finish=finish))
    assert found.stop is stop


def test_jumps_find_refusals_and_rounds_and_say_when_there_are_none():
    made = steps(run(ALL_KEPT, FIRST_REFUSED, MIDDLE_REFUSED))
    starts = [i for i, each in enumerate(made) if each.phase is Phase.START]
    first = stepping.next_refusal(made, 0)
    second = stepping.next_refusal(made, first)
    assert (made[first].round.number, made[first].tested) == (2, 1)
    assert (made[second].round.number, made[second].tested) == (3, 2)
    assert stepping.next_refusal(made, second) is None
    assert [stepping.next_round(made, i) for i in (0, starts[1], starts[2])] == [starts[1], starts[2], None]
    assert [stepping.previous_round(made, i) for i in (0, 3, starts[1], starts[1] + 1)] == [None, 0, 0, starts[1]]


def test_a_run_without_a_pass_is_refused():
    with pytest.raises(ValueError, match="ngram_simple made no target pass"):
        steps(run(drafter="ngram_simple"))


@pytest.mark.parametrize("name", ["04-draft-model", "04-copy-rewrite", "09-p-min"])
def test_recorded_runs_fit_what_their_records_say(name):
    """The invariant of the loop, step by step: the cache holds the text but for the pending token."""
    for made in store.load(store.DATA / "runs" / f"{name}.json", RunSet).runs:
        for each in steps(made):
            if each.phase is Phase.START:
                assert each.round.cycle.context_length == len(each.round.context) - 1
            if each.phase is Phase.ROLLBACK:
                held = [cell for cell in stepping.target_cache(each) if cell.mark is Mark.HELD]
                after = each.round.context + each.round.cycle.emitted
                assert held[-1].token == after[-2], "the text's last token but one"


class Spelling:
    def piece(self, token: int) -> bytes:
        return {10: b" a", 11: b"\n", 12: b"", 50: "🙂".encode()[:2]}.get(token, b"x")

    def token_text(self, token: int) -> str:
        return "<|end|>"


def test_every_token_that_a_step_can_show_has_its_text():
    made = run(ALL_KEPT, FIRST_REFUSED)
    texts = stepping.texts_of([made], Spelling()).texts
    assert (texts[10], texts[11], texts[12], texts[50]) == (" a", "\n", "<|end|>", "<F0><9F>")
    shown = {
        cell.token
        for each in steps(made)
        for cells in (stepping.text_cells(each), stepping.draft_cells(each), stepping.target_cells(each))
        for cell in cells
    }
    assert shown - {None} <= set(texts)


class Watched(DraftModel):
    """Notes what its cache shares with the text when a round begins, and what it holds once it has drafted."""

    def __init__(self) -> None:
        super().__init__(ToySession(8))
        self.seen: list[tuple[int, int]] = []

    def propose(self, context, limits):
        shared = common_prefix_length(self.session.tokens, context.tokens)
        draft = super().propose(context, limits)
        self.seen.append((len(context.tokens) - shared, len(self.session.tokens) - len(context.tokens)))
        return draft


@pytest.mark.parametrize("p_min", [0.0, 0.4, 0.7])
def test_the_draft_models_cache_is_what_the_loop_leaves_it(p_min):
    session, drafter, sampling = ToySession(8), Watched(), Sampling(temperature=1.0)
    policy = Fixed(drafter, Limits(k=4, p_min=p_min))
    decoder.prefill(session, policy, PROMPT)
    cycles = decoder.decode(session, policy, ToySampler(sampling), PROMPT, max_tokens=80)
    made = replace(run(*cycles, k=4, p_min=p_min, finish="max_tokens"), sampling=sampling)
    told = [(each.draft_cache.behind, each.draft_cache.fed) for each in stepping.rounds(made)]
    assert {each.stop for each in stepping.rounds(made)} >= ({None} if p_min == 0.0 else {None, Stop.P_MIN})
    assert all(one == other for one, other in zip(told, drafter.seen, strict=True) if one[1] is not None)
    assert len(told) > 20
