"""The adaptive policy against every fixed k, with known alphas and given staircases: no model and no clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pytest

from specnb import store, theory
from specnb.adaptive import Adaptive, Costs, Prior, RunningAlpha
from specnb.decoder import decode, prefill
from specnb.drafters import DraftModel, NgramSimple, NoDrafter
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Draft, DraftPrice, Limits, Sampling
from specnb.toy import ToySampler, ToySession

NS = range(1, 18)
CLIFF_AT = 9
STAIRCASES: dict[str, Mapping[int, float]] = {
    "flat": {n: 10.0 for n in NS},
    "cliff": {n: 10.0 + 0.2 * n + (15.0 if n >= CLIFF_AT else 0.0) for n in NS},
    "steep": {n: 4.0 + 6.0 * n for n in NS},
    "M5 Pro": store.load_m5_pro().verify_ms,
}
SWITCH_MS = 0.5
N_VOCAB = 1000


def per_token(**ms: float) -> dict[str, DraftPrice]:
    return {name: DraftPrice(name, each, each) for name, each in ms.items()}


class Tape:
    """A target that says a text known beforehand, whatever it is fed: what the loop needs of a session."""

    n_ctx = n_batch = n_vocab = 1 << 20
    states = None

    def __init__(self, text: Sequence[int]) -> None:
        self.text = text
        self.n_tokens = 0
        self._n_last = 0

    def extend(self, tokens: Sequence[int], *, rows: str = "all") -> None:
        self.n_tokens += len(tokens)
        self._n_last = len(tokens)

    def rewind(self, n_keep: int) -> None:
        self._first_row = self.n_tokens - self._n_last
        self.n_tokens = n_keep

    def draw(self, session: Tape, row: int) -> int:
        return self.text[self.n_tokens - self._n_last + row + 1]


class Informed:
    """Knows the text. At each place it is right with probability alpha(place), and has a draft with probability share.

    Luck belongs to the place, so that all policies on one text meet the same.
    """

    def __init__(self, name: str, text: Sequence[int], alpha: Callable[[int], float], *, share: float = 1.0) -> None:
        self.name = name
        chance = random.Random(7)
        self._says = [token if chance.random() < alpha(i) else token + N_VOCAB for i, token in enumerate(text)]
        self._drafts = [chance.random() < share for _ in text]
        self.asked = 0
        self._now = 0
        self.drafted: list[int] = []
        """Tokens drafted in each cycle."""

    def begin(self, prompt: Sequence[int]) -> None:
        pass

    def propose(self, context: Context, limits: Limits) -> Draft:
        self.asked += 1
        start = len(context.tokens)
        tokens = tuple(self._says[start : start + limits.longest]) if self._drafts[start] else ()
        self._now = len(tokens)
        return Draft(tokens)

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        self.drafted.append(self._now)
        self._now = 0


def written(policy: object, text: Sequence[int], n_tokens: int) -> list[Cycle]:
    tape = Tape(text)
    prefill(tape, policy, text[:1])
    return list(decode(tape, policy, tape, text[:1], max_tokens=n_tokens, clock=lambda: 0.0))


def prices(cycles: Sequence[Cycle], drafter: Informed, costs: Costs) -> list[float]:
    """What each cycle costs by the staircase: its drafts, verified or not, and the changes of N included."""
    found, last_n = [], 1
    for cycle, drafted in zip(cycles, drafter.drafted, strict=True):
        change = 0.0 if cycle.n_rows == last_n else costs.switch_ms
        # At the very end the room cuts a fixed draft to a length that the staircase may lack.
        pass_ms = costs.verify_ms.get(cycle.n_rows, max(costs.verify_ms.values()))
        found.append(pass_ms + drafted * costs.drafts["informed"].first_ms + change)
        last_n = cycle.n_rows
    return found


def text_of(n_tokens: int) -> list[int]:
    chance = random.Random(3)
    return [chance.randrange(N_VOCAB) for _ in range(n_tokens + 40)]


ALLOWED = 1.02
"""What it may take of plain decoding's time."""

SHARE_OF_BEST = 0.97
N_TOKENS, N_LEARNING = 3000, 600


def best_fixed_ms(alpha: float, costs: Costs, draft_ms: float, share: float) -> dict[int, float]:
    """k -> milliseconds per token of the fixed setting in the long run, k = 0 included (renewal reward)."""
    plain = costs.verify_ms[1]
    changes_ms = 2 * share * (1 - share) * costs.switch_ms
    found = {0: plain}
    for k in (n - 1 for n in costs.verify_ms if 2 <= n <= 17):
        tokens = share * theory.expected_tokens(alpha, k) + 1 - share
        drafting = share * theory.cycle_ms(k, draft_ms, costs.verify_ms)
        found[k] = (drafting + (1 - share) * plain + changes_ms) / tokens
    return found


@dataclass(frozen=True)
class Outcome:
    """Milliseconds per token. adaptive: of the whole text; learnt: after its first tokens; fixed: those tokens, too."""

    plain: float
    adaptive: float
    learnt: float
    fixed: float


def outcome(
    staircase: str, alpha: Callable[[int], float], alphas: Sequence[float], draft_ms: float, share: float
) -> Outcome:
    """The adaptive policy, and the fixed k that is best in the long run of all with these alphas in turn."""
    text = text_of(N_TOKENS)
    costs = Costs(STAIRCASES[staircase], per_token(informed=draft_ms), switch_ms=SWITCH_MS)
    by_k = [best_fixed_ms(each, costs, draft_ms, share) for each in alphas]
    k = min(by_k[0], key=lambda k: sum(found[k] for found in by_k))
    mine, other = (Informed("informed", text, alpha, share=share) for _ in range(2))
    of_mine, of_other = [], []
    for drafter, policy, found in (
        (mine, Adaptive([mine], costs), of_mine),
        (other, Fixed(other, Limits(k=k)), of_other),
    ):
        cycles = written(policy, text, N_TOKENS)
        emitted = accumulate(len(cycle.emitted) for cycle in cycles)
        found += zip(emitted, prices(cycles, drafter, costs), strict=True)
    return Outcome(
        plain=costs.plain_ms,
        adaptive=sum(ms for _, ms in of_mine) / N_TOKENS,
        learnt=late_ms(of_mine),
        fixed=late_ms(of_other),
    )


def late_ms(cycles: Sequence[tuple[int, float]]) -> float:
    """Milliseconds per token after the first N_LEARNING. cycles: (tokens emitted by its end, ms) of each."""
    begun = next(emitted for emitted, _ in cycles if emitted >= N_LEARNING)
    return sum(ms for emitted, ms in cycles if emitted > begun) / (N_TOKENS - begun)


SETTINGS = [(0.0, 1.0), (0.0, 0.5), (0.6, 1.0), (3.0, 1.0)]
EACH_SETTING = pytest.mark.parametrize(("draft_ms", "share"), SETTINGS)


@EACH_SETTING
@pytest.mark.parametrize("staircase", STAIRCASES)
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 0.8, 0.95])
def test_it_loses_neither_to_plain_decoding_nor_to_the_best_fixed_k(staircase, alpha, draft_ms, share):
    found = outcome(staircase, lambda _i: alpha, [alpha], draft_ms, share)
    assert found.adaptive <= ALLOWED * found.plain
    assert found.fixed / found.learnt >= SHARE_OF_BEST


@EACH_SETTING
@pytest.mark.parametrize("staircase", STAIRCASES)
def test_nor_when_alpha_changes_every_few_hundred_tokens(staircase, draft_ms, share):
    found = outcome(staircase, lambda i: 0.9 if i // 300 % 2 else 0.1, [0.1, 0.9], draft_ms, share)
    assert found.adaptive <= ALLOWED * found.plain
    assert found.fixed / found.learnt >= SHARE_OF_BEST


def test_of_two_drafters_the_better_one_drafts():
    text, costs = text_of(1500), Costs(STAIRCASES["cliff"], per_token(poor=0.5, good=0.5))
    policy = Adaptive([Informed("poor", text, lambda _i: 0.2), Informed("good", text, lambda _i: 0.8)], costs)
    late = written(policy, text, 1500)[-150:]
    assert sum(cycle.drafter == "good" for cycle in late) > 0.8 * len(late)


def test_a_drafter_that_is_off_is_asked_more_and_more_seldom():
    """And so need not keep its cache in step: drafters catch up when asked."""
    text, costs = text_of(2000), Costs(STAIRCASES["M5 Pro"], per_token(hopeless=2.0))
    drafter = Informed("hopeless", text, lambda _i: 0.0)
    policy = Adaptive([drafter], costs)
    written(policy, text, 2000)
    asked = [i for i, pick in enumerate(policy.picks) if pick.tried or pick.k]
    assert 3 <= drafter.asked == len(asked) <= 60
    first, last = asked[1] - asked[0], asked[-1] - asked[-2]
    assert last >= 10 * first


def test_a_drafter_that_has_much_to_read_before_it_drafts_is_tried_more_seldom():
    text = text_of(2000)

    def tries(catch_up_ms: float) -> int:
        drafter = Informed("late", text, lambda _i: 0.0)
        costs = Costs(STAIRCASES["M5 Pro"], {"late": DraftPrice("late", 2.0, 2.0, catch_up_ms)})
        policy = Adaptive([drafter], costs)
        written(policy, text, 2000)
        return sum(pick.tried for pick in policy.picks)

    assert tries(0.0) > 1.5 * tries(0.02) > 0
    assert tries(1.0) == 0, "a token to read costs more than the allowance of a pass brings in"


def test_no_drafter_is_tried_that_could_not_pay_if_always_right():
    text, costs = text_of(500), Costs(STAIRCASES["flat"], per_token(dear=12.0))
    drafter = Informed("dear", text, lambda _i: 1.0)
    cycles = written(Adaptive([drafter], costs), text, 500)
    assert drafter.asked == 0 and len(cycles) == 500


def test_a_look_up_is_judged_while_it_is_off_without_a_pass_spent_on_it():
    text, costs = text_of(1000), Costs({n: 9.9 * n + 0.1 for n in NS}, per_token(informed=0.0))
    policy = Adaptive([Informed("informed", text, lambda _i: 0.9)], costs)
    cycles = written(policy, text, 1000)
    drafts = sum(len(cycle.drafted) > 0 for cycle in cycles)
    assert drafts < 0.01 * len(cycles), "a row costs 0.99 of a token here: alpha 0.9 is too little"
    assert dict(policy.picks[-1].alphas)["informed"] == pytest.approx(0.9, abs=0.1)


def test_only_lengths_whose_pass_was_measured_are_drafted():
    costs = Costs({n: 10.0 for n in (1, 2, 5, 9)}, per_token(informed=0.0))
    text = text_of(400)
    cycles = written(Adaptive([Informed("informed", text, lambda _i: 0.8)], costs), text, 400)
    assert {cycle.n_rows for cycle in cycles} <= {1, 2, 5, 9}


def test_longest_k_holds_and_heads_keep_theirs():
    head = Informed("head", text_of(10), lambda _i: 1.0)
    head.longest_k = 3
    other = Informed("informed", text_of(10), lambda _i: 1.0)
    policy = Adaptive([head, other], Costs(STAIRCASES["flat"], per_token(head=0.1, informed=0.1)), longest_k=6)
    assert [policy.longest_k(drafter) for drafter in policy.drafters] == [0, 3, 6]
    text = text_of(200)
    cycles = written(Adaptive([Informed("informed", text, lambda _i: 1.0)], policy.costs, longest_k=6), text, 200)
    assert max(len(cycle.drafted) for cycle in cycles) == 6


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=2)])
def test_the_text_is_that_of_plain_decoding(sampling):
    prompt = (1, 4, 2, 0, 6) * 4

    def text(policy: object) -> list[int]:
        session = ToySession(8, seed=2)
        prefill(session, policy, prompt)
        cycles = decode(session, policy, ToySampler(sampling), prompt, max_tokens=200, clock=lambda: 0.0)
        return [token for cycle in cycles for token in cycle.emitted]

    costs = Costs(STAIRCASES["flat"], per_token(ngram_simple=0.0, draft_model=0.5))
    adaptive = Adaptive([NgramSimple(2, 6), DraftModel(ToySession(8, seed=2, sharpness=1.0))], costs)
    assert text(adaptive) == text(Fixed(NoDrafter(), Limits(k=0)))
    assert len({pick.drafter for pick in adaptive.picks}) > 1


def test_costs_without_a_plain_pass_are_refused():
    with pytest.raises(ValueError, match=r"T\(1\) is missing.*measured: 2, 3"):
        Costs({2: 1.0, 3: 1.0}, {})


def test_the_running_alpha_fades_and_tells_kinds_of_token_apart():
    running = RunningAlpha(Prior(0.5, 0.5, 0.5))
    for _ in range(300):
        running.count(0, True)
        running.count(1, False)
    assert running.first > 0.9 and running.later < 0.1
    for _ in range(300):
        running.count(0, False)
    assert running.first < 0.1 and not running.on_track
