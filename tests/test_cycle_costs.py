"""Scripts on the toy target: which situations they make, and that the loop's rules hold in them."""

from __future__ import annotations

from collections import Counter
from itertools import count, pairwise

import pytest

from specnb import cycle_costs, decoder, drafters, ledger
from specnb.policy import Fixed
from specnb.records import Limits
from specnb.toy import ToySession

VOCABULARY = 4000


class Greedy:
    def draw(self, session, row):
        return int(session.logits(row).argmax())


class WideToy(ToySession):
    """The toy with a vocabulary wide enough for scripts: its table is that of the token modulo 8."""

    def __init__(self, **settings):
        super().__init__(8, **settings)
        self.n_vocab = VOCABULARY
        self.drawn = 0

    def extend(self, tokens, *, rows="all"):
        folded = self._table
        self._table = _Folded(folded)
        try:
            super().extend(tokens, rows=rows)
        finally:
            self._table = folded


class _Folded:
    def __init__(self, table):
        self._table = table

    def __getitem__(self, place):
        return self._table[place[0] % 8, place[1] % 8]


@pytest.fixture
def target():
    return WideToy(n_ctx=256, n_batch=128)


def ticking():
    """A clock that is a second later whenever it is read."""
    ticks = count()
    return lambda: float(next(ticks))


def scripted(target, drafter, ks=(1, 3), contexts=(20, 60), **more):
    return cycle_costs.scripted(target, drafter, Greedy(), ks=ks, contexts=contexts, clock=ticking(), **more)


@pytest.fixture
def draft_model():
    return drafters.DraftModel(WideToy(n_ctx=256, n_batch=128))


def test_every_k_is_kept_whole_and_refused_at_every_context(target, draft_model):
    costs = scripted(target, draft_model)
    assert (costs.drafter, costs.contexts, costs.keeps_drafts) == ("draft_model", (20, 60), True)
    begun = lambda sample: max(c for c in costs.contexts if c <= sample.context_length)  # noqa: E731
    seen = Counter((begun(s), s.drafted, s.kept) for s in costs.samples)
    assert seen == {(c, k, kept): 4 if kept else 2 for c in (20, 60) for k in (1, 3) for kept in (0, k)}
    assert {s.source for s in costs.samples} == {"model"}
    assert target.n_tokens == 0


def test_a_model_has_one_token_to_read_as_often_as_two(target, draft_model):
    costs = scripted(target, draft_model, ks=(3,), contexts=(20,))
    assert [s.fed for s in costs.samples] in ([1, 2, 1, 1, 2, 2], [1, 2, 2, 1, 2, 1])


def test_what_the_model_was_said_to_have_read_is_what_it_read(target):
    session = WideToy(n_ctx=256, n_batch=128)
    costs = scripted(target, drafters.DraftModel(session), ks=(3,), contexts=(20,))
    # The prompt, and then for each draft one pass over what is new to it and two over its own tokens.
    assert session.passes[0] == 20
    assert session.passes[1:] == [n for s in costs.samples for n in (s.fed, 1, 1)]


def test_a_pass_is_marked_when_the_one_before_had_another_n(target, draft_model):
    samples = scripted(target, draft_model, ks=(1, 2, 3), contexts=(20,)).samples
    ns = [s.n for s in samples]
    assert [s.changed for s in samples] == [True, *(a != b for a, b in pairwise(ns))]
    assert 3 <= sum(s.changed for s in samples) <= 6  # two scripts a k, of three cycles each


def test_a_clock_that_ticks_once_a_reading_gives_every_part_one_second(target, draft_model):
    for sample in scripted(target, draft_model).samples:
        assert (sample.draft_ms, sample.verify_ms, sample.sampling_ms, sample.other_ms) == (1e3, 1e3, 1e3, 1e3)


def test_k_and_context_come_in_another_order_with_another_seed(target, draft_model):
    orders = {
        tuple(s.drafted for s in scripted(target, draft_model, ks=range(1, 7), seed=seed).samples) for seed in (0, 1)
    }
    assert len(orders) == 2


def test_look_ups_get_drafts_that_are_made_up_and_plain_cycles_of_their_own(target):
    costs = scripted(target, drafters.NgramSimple(), ks=(0, 2))
    assert {(s.source, s.drafted) for s in costs.samples} == {("", 0), ("filler", 2)}
    assert not costs.keeps_drafts
    found = ledger.Prices(costs)
    assert found.draft_ms("", 0, 30) == 1e3
    assert found.verify_ms(3, 30) == 1e3


def test_the_model_of_a_chain_is_made_to_read_long_stretches(target):
    chain = drafters.Chain((drafters.NgramSimple(), drafters.DraftModel(WideToy(n_ctx=256, n_batch=128))))
    costs = scripted(target, chain, ks=(4,), contexts=(20,))
    assert costs.keeps_drafts
    fed = {s.fed for s in costs.samples if s.source == "model"}
    assert fed == {1, 2, *cycle_costs.LONG_CATCH_UPS}


def test_what_a_long_stretch_led_beyond_the_measured_contexts_is_priced_by_the_nearest(target):
    def chain():
        return drafters.Chain((drafters.NgramSimple(), drafters.DraftModel(WideToy(n_ctx=256, n_batch=128))))

    one, two = (ledger.Prices(scripted(target, chain(), ks=(4,), contexts=each)) for each in ((20,), (20, 86)))
    assert one.longest_catch_up == two.longest_catch_up == max(cycle_costs.LONG_CATCH_UPS)


def test_a_head_reads_what_was_emitted(target):
    class Head:
        name, longest_k = "head", 3

        def begin(self, prompt): ...
        def catch_up(self, context): ...
        def observe(self, cycle, *, mine): ...

        def propose(self, context, limits):
            return cycle_costs.Draft((7, 8, 9)[: limits.longest], (0.5,) * min(3, limits.longest))

    costs = scripted(target, Head(), ks=(3,), contexts=(20,))
    assert {s.fed for s in costs.samples} == {1, 4}
    assert not costs.keeps_drafts


def test_a_look_up_is_timed_on_a_text_that_repeats_the_prompt_and_then_does_not(target):
    prompt = [*range(100, 130)]
    text = [*range(104, 124), *range(900, 910)]
    costs = cycle_costs.recited(target, drafters.NgramSimple(), Greedy(), prompt, text, k=4, clock=ticking())
    assert costs.samples == ()
    assert {s.source for s in costs.recited} == {"look-up", ""}
    assert sum(s.emitted for s in costs.recited) == len(text)
    assert max(s.kept for s in costs.recited) == 4
    assert target.n_tokens == 0


@pytest.mark.model
def test_on_the_embedded_model_longer_drafts_and_passes_are_priced_higher(session):
    """Draft and target are the same model here, so a drafted token costs about a plain pass."""
    from specnb.backend import Sampler, Session
    from specnb.records import Sampling

    with Session(session.model, n_ctx=256, n_batch=64, threads=session.threads) as own:
        costs = cycle_costs.scripted(
            session, drafters.DraftModel(own), Sampler(Sampling()), ks=(1, 4, 8), contexts=(20,)
        )
    found = ledger.Prices(costs)
    assert found.draft_ms("model", 8, 20) > 1.5 * found.draft_ms("model", 1, 20)
    assert found.verify_ms(9, 20) > found.verify_ms(2, 20)
    assert found.catch_up_ms(2) < found.draft_ms("model", 4, 20)
    assert 0 < found.sampling_ms(1) < found.verify_ms(2, 20)


# --- twins ------------------------------------------------------------------------------------


def run_beside_a_twin(target, drafter, twin_of, k, new_tokens=24):
    """A run of the toy and what its twin took."""
    prompt, policy = (1, 2, 3, 4, 1, 2, 3), Fixed(drafter, Limits(k=k))
    twin = cycle_costs.Twin(WideToy(n_ctx=256, n_batch=128), twin_of, Greedy(), k=k, contexts=(6, 18), clock=ticking())
    decoder.prefill(target, policy, prompt)
    cycles = []
    # With room to spare, so that the last draft is as long as the others.
    for cycle in decoder.decode(target, policy, Greedy(), prompt, max_tokens=new_tokens + k + 1):
        cycles.append(cycle)
        twin.follow(cycle)
        if sum(len(each.emitted) for each in cycles) >= new_tokens:
            break
    return cycles, twin.costs()


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_twin_has_the_cycles_of_its_run_in_situations_and_length(target, k):
    models = [drafters.DraftModel(WideToy(n_ctx=256, n_batch=128, seed=seed)) for seed in (3, 3)]
    cycles, costs = run_beside_a_twin(target, *models, k)
    own = costs.samples[-len(cycles) :]
    seen = ledger.samples(cycles, keeps_drafts=True)
    same = ("n", "source", "drafted", "kept", "emitted", "fed", "context_length")
    for name in same:
        assert [getattr(s, name) for s in own] == [getattr(s, name) for s in seen], name
    assert any(0 < s.kept < s.drafted for s in seen) or k < 3


def test_a_run_can_be_priced_by_its_twin_alone(target):
    models = [drafters.DraftModel(WideToy(n_ctx=256, n_batch=128)) for _ in range(2)]
    cycles, costs = run_beside_a_twin(target, *models, 4)
    prices = ledger.Prices(costs)
    for sample in ledger.samples(cycles, keeps_drafts=True):
        assert prices.of(sample).ms == pytest.approx(4e3, rel=1e-6)  # a clock that ticks once a part


@pytest.mark.parametrize("make", [drafters.NgramSimple, drafters.NoDrafter])
def test_a_twin_of_a_look_up_makes_its_drafts_up(target, make):
    k = 0 if make is drafters.NoDrafter else 4
    cycles, costs = run_beside_a_twin(target, make(), make(), k, new_tokens=40)
    lengths = {len(cycle.drafted) for cycle in cycles}
    assert {s.drafted for s in costs.samples} >= lengths
    assert {s.source for s in costs.samples} <= {"", "filler"}
    prices = ledger.Prices(costs)
    assert all(prices.verify_ms(cycle.n_rows, cycle.context_length) for cycle in cycles)
