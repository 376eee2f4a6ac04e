"""Several texts that share passes: each is the text it would be alone."""

from __future__ import annotations

from itertools import count

import pytest

from specnb import backend, messages, models
from specnb.backend import BatchSession, Model, Sampler, Session, SessionError
from specnb.concurrency import decode_together, shared_pass
from specnb.decoder import Text, decode, prefill
from specnb.drafters import DraftModel, NgramSimple, NoDrafter, PromptLookup
from specnb.lab import Lab
from specnb.policy import Fixed
from specnb.prompts import PROMPTS
from specnb.records import Cycle, Limits, LoadRun, LoadSweep, Sampling, SharedPass
from specnb.toy import ToyBatch, ToySampler, ToySession

N_VOCAB, SEED = 8, 5
TOY_PROMPTS = ((3,), (1, 4, 2, 0, 6) * 4, (7, 7, 0), (2, 5))
MAX_TOKENS = 40

DRAFTERS = {
    "none": NoDrafter,
    "ngram": lambda: NgramSimple(1, 6),
    "look-up": PromptLookup,
    "the target itself": lambda: DraftModel(ToySession(N_VOCAB, seed=SEED)),
    "another model": lambda: DraftModel(ToySession(N_VOCAB, seed=SEED + 1)),
}


def sampling_of(i: int, temperature: float) -> Sampling:
    return Sampling(temperature=temperature, seed=i + 1)


def alone(i: int, make, temperature: float, ends_text=lambda _token: False) -> tuple[int, ...]:
    """One of the texts by the single loop."""
    session, policy = ToySession(N_VOCAB, seed=SEED), Fixed(make(), Limits(k=4))
    prefill(session, policy, TOY_PROMPTS[i])
    sampler = ToySampler(sampling_of(i, temperature))
    cycles = decode(session, policy, sampler, TOY_PROMPTS[i], max_tokens=MAX_TOKENS, ends_text=ends_text)
    return tuple(token for cycle in cycles for token in cycle.emitted)


def together(makes, temperature: float, ends_text=lambda _token: False, **options):
    """(the batch, the shared passes, the texts) of all toy prompts, with a drafter each."""
    batch = ToyBatch(len(TOY_PROMPTS), N_VOCAB, seed=SEED)
    texts = []
    for lane, prompt, make in zip(batch.sequences, TOY_PROMPTS, makes, strict=True):
        policy = Fixed(make(), Limits(k=4))
        prefill(lane, policy, prompt)
        texts.append(Text(lane, policy, prompt, max_tokens=MAX_TOKENS, ends_text=ends_text, clock=lambda: 0.0))
    samplers = [ToySampler(sampling_of(i, temperature)) for i in range(len(texts))]
    passes = list(decode_together(batch, texts, samplers, **options))
    written = [tuple(t for cycles in passes if i in cycles for t in cycles[i].emitted) for i in range(len(texts))]
    return batch, passes, written


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("name", DRAFTERS)
def test_every_text_is_the_one_it_is_alone(name, temperature):
    make = DRAFTERS[name]
    batch, passes, written = together([make] * len(TOY_PROMPTS), temperature)
    assert written == [alone(i, make, temperature) for i in range(len(TOY_PROMPTS))]
    assert batch.passes == [shared_pass(cycles).rows for cycles in passes]


def test_each_may_have_a_drafter_of_its_own_and_those_that_end_leave():
    makes = [NoDrafter, DRAFTERS["the target itself"], DRAFTERS["ngram"], DRAFTERS["another model"]]
    ends = {2}.__contains__
    _, passes, written = together(makes, 0.8, ends)
    assert written == [alone(i, make, 0.8, ends) for i, make in enumerate(makes)]
    sizes = [len(cycles) for cycles in passes]
    assert sizes[0] == 4 and sizes[-1] < 4 and sizes == sorted(sizes, reverse=True)


def test_it_stops_between_passes():
    asked = count()
    _, passes, _ = together([NoDrafter] * 4, 0.0, stopped=lambda: next(asked) >= 3)
    assert len(passes) == 3


def test_a_text_waits_for_the_whole_pass_and_the_sums_count_it_once():
    ticks = count()
    _, passes, _ = together([NoDrafter] * 4, 0.0, clock=lambda: float(next(ticks)))
    assert all(cycle.verify_s == 1.0 for cycle in passes[0].values())
    assert shared_pass(passes[0]).verify_s == 1.0


def test_sums():
    cycles = {
        0: Cycle("d", 5, (1, 2), 1, 0, (3,), draft_s=1.0, verify_s=5.0, sampling_s=0.5, other_s=0.25),
        3: Cycle("d", 9, (), 0, 0, (4,), draft_s=2.0, verify_s=5.0, sampling_s=0.5, other_s=0.25),
    }
    found = shared_pass(cycles)
    assert (found.sequences, found.rows, found.drafted, found.tested, found.kept, found.emitted) == (2, 4, 2, 1, 0, 2)
    assert (found.draft_s, found.verify_s, found.other_s, found.seconds) == (3.0, 5.0, 1.5, 9.5)
    with pytest.raises(ValueError, match="at least one"):
        shared_pass({})


def test_as_many_samplers_as_texts():
    with pytest.raises(ValueError, match="0 texts and 1 samplers"):
        next(decode_together(ToyBatch(1), [], [ToySampler(Sampling())]))


# --- llama.cpp ------------------------------------------------------------------------------------

KINDS = ("rewrite", "code", "story")

ROUNDING = 0.005
"""Largest change of a logit, as a share of the logits' range, for being computed beside other sequences."""


@pytest.fixture(scope="module")
def accurate(embedded):
    """F32: formats that round activations, too, turn a difference in the last place into one of two per cent."""
    with Model(models.in_format(embedded, "F32")) as opened:
        yield opened


@pytest.mark.model
def test_the_embedded_models_texts_together_are_those_alone_up_to_rounding(accurate):
    prompts = [accurate.chat_prompt(PROMPTS[kind].text) for kind in KINDS]
    with BatchSession(accurate, 3, n_ctx=192, n_batch=64, threads=1) as batch:
        texts, rows = [], [[] for _ in KINDS]
        for lane, prompt in zip(batch.sequences, prompts, strict=True):
            policy = Fixed(PromptLookup(), Limits(k=3))
            prefill(lane, policy, prompt)
            texts.append(Text(lane, policy, prompt, max_tokens=16))

        class Recording(Sampler):
            def __init__(self, i: int) -> None:
                super().__init__(Sampling())
                self.rows = rows[i]

            def draw(self, session, row):
                self.rows.append(session.logits(row).copy())
                return super().draw(session, row)

        passes = list(decode_together(batch, texts, [Recording(i) for i in range(3)]))
        assert max(shared_pass(cycles).rows for cycles in passes) > 3, "nothing was drafted"
        assert sum(shared_pass(cycles).kept for cycles in passes) > 0
    with Session(accurate, n_ctx=192, n_batch=64, threads=1) as session:
        for i, prompt in enumerate(prompts):
            written = [token for cycles in passes if i in cycles for token in cycles[i].emitted]
            session.rewind(0)
            session.extend(prompt, rows="last")
            for token, row in zip(written, rows[i], strict=True):
                own = session.logits(-1)
                spread = float(own.max() - own.min())
                assert float(abs(own - row).max()) < ROUNDING * spread
                # Where two tokens are as good as equal, rounding may choose; otherwise it is the same token.
                assert token == int(own.argmax()) or own.max() - own[token] < ROUNDING * spread
                session.extend([token])


@pytest.mark.model
def test_a_rewound_sequence_leaves_the_others_as_they_were(model):
    with BatchSession(model, 3, n_ctx=64, threads=1) as batch:
        rows = batch.extend({0: [5, 6, 7], 2: [8, 9]})
        assert rows == {0: 0, 2: 3} and batch.n_tokens == 5
        first = batch.logits(2).copy()
        batch.sequences[2].rewind(0)
        batch.sequences[0].rewind(1)
        assert [each.n_tokens for each in batch.sequences] == [1, 0, 0]
        rows = batch.extend({1: [5, 6, 7], 0: [6, 7]})
        for row in (rows[1] + 2, rows[0] + 1):
            again = batch.logits(row)
            assert float(abs(again - first).max()) < 0.05 * float(first.max() - first.min())


@pytest.mark.model
def test_what_does_not_fit_is_refused_with_the_numbers_and_nothing_is_evaluated(model):
    with BatchSession(model, 2, n_ctx=8, n_batch=6, threads=1) as batch:
        batch.extend({0: [1, 2, 3]})
        for tokens, said in (
            ({0: [1] * 6}, "holds 3 of 8"),
            ({0: [1] * 4, 1: [1] * 3}, "between 1 and 6"),
            ({1: []}, "at least one token of sequence 1"),
            ({2: [1]}, "no sequence 2"),
            ({1: [model.n_vocab]}, str(model.n_vocab)),
            ({}, "between 1 and 6"),
        ):
            with pytest.raises(SessionError, match=said):
                batch.extend(tokens)
        assert [each.n_tokens for each in batch.sequences] == [3, 0]
        with pytest.raises(SessionError, match="Cannot keep 4"):
            batch.sequences[0].rewind(4)
        with pytest.raises(SessionError, match="had 3 rows"):
            batch.logits(3)
        batch.sequences[1].extend([1] * 8, rows="none")
        assert batch.sequences[1].n_tokens == 8
    with pytest.raises(SessionError, match="closed"):
        batch.extend({0: [1]})
    with pytest.raises(ValueError, match="0, 8"):
        BatchSession(model, 0, n_ctx=8, threads=1)


@pytest.mark.model
def test_a_pass_that_was_interrupted_is_taken_back(model, monkeypatch):
    def interrupted(handle, batch, real=backend.llama.llama_decode):
        real(handle, batch)
        raise KeyboardInterrupt

    with BatchSession(model, 2, n_ctx=32, threads=1) as batch:
        batch.extend({0: [5, 6], 1: [7]})
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(backend.llama, "llama_decode", interrupted)
            batch.extend({0: [8, 9], 1: [8]})
        assert [each.n_tokens for each in batch.sequences] == [2, 1]
        first = batch.extend({0: [8]})[0]
        found = batch.logits(first).copy()
    with Session(model, n_ctx=32, threads=1) as session:
        session.extend([5, 6, 8])
        expected = session.logits(-1)
        assert float(abs(found - expected).max()) < 0.05 * float(expected.max() - expected.min())


# --- measuring ------------------------------------------------------------------------------------


def test_rates_are_of_the_passes_that_all_shared():
    both = SharedPass(2, 8, 6, 4, 3, 5, draft_s=0.1, verify_s=0.3, other_s=0.1)
    one = SharedPass(1, 4, 3, 3, 3, 4, draft_s=0.0, verify_s=99.0, other_s=0.0)
    run = LoadRun(2, "d", 3, 100, (both, both, one))
    assert run.full == (both, both)
    assert run.seconds == pytest.approx(1.0)
    assert run.tokens_per_second == pytest.approx(10.0)
    assert run.tokens_per_cycle == pytest.approx(2.5)
    assert run.alpha_tested == pytest.approx(0.75)
    nothing = LoadRun(2, "none", 0, 100, (one,))
    assert (nothing.tokens_per_second, nothing.tokens_per_cycle, nothing.alpha_tested) == (None, None, None)


def test_a_sweep_compares_with_plain_decoding_of_as_many():
    fast = SharedPass(2, 8, 6, 4, 3, 5, draft_s=0.0, verify_s=0.25, other_s=0.0)
    slow = SharedPass(2, 2, 0, 0, 0, 2, draft_s=0.0, verify_s=0.2, other_s=0.0)
    sweep = LoadSweep((LoadRun(2, "none", 0, 9, (slow,)), LoadRun(2, "d", 3, 9, (fast, fast))))
    assert sweep.counts == (2,) and sweep.drafters == ("d",)
    assert sweep.gain("d", 2) == pytest.approx(20.0 / 10.0)
    with pytest.raises(KeyError, match="No run of 'd' with 4 sequences; there are d x 2, none x 2"):
        sweep.gain("d", 4)


def test_a_pass_that_was_held_up_counts_as_the_median_of_its_like():
    def shared(verify_s: float, rows: int = 2) -> SharedPass:
        return SharedPass(2, rows, rows - 2, 0, 0, 2, draft_s=0.0, verify_s=verify_s, other_s=0.25)

    plain = LoadRun(2, "none", 0, 9, (shared(0.25), shared(0.25), shared(0.25), shared(0.25), shared(5.0)))
    assert LoadSweep((plain,)).speeds("none", 2) == pytest.approx((2 / 0.5,))
    longer = LoadRun(2, "d", 3, 9, (shared(0.75, rows=8), shared(0.25)))
    assert LoadSweep((plain, longer)).speeds("d", 2) == pytest.approx((4 / 1.5,)), "more rows may take longer"
    assert plain.seconds == pytest.approx(7.25), "a run itself keeps what it took"


def test_the_price_is_of_the_passes_alone_and_only_of_those_that_all_shared():
    def shared(verify_s: float, *, sequences: int = 2) -> SharedPass:
        return SharedPass(sequences, 8, 6, 4, 3, 5, draft_s=7.0, verify_s=verify_s, other_s=9.0)

    plain = LoadRun(2, "none", 0, 9, (shared(0.1), shared(0.2), shared(0.3), shared(9.0, sequences=1)))
    drafting = LoadRun(2, "d", 3, 9, (shared(0.5), shared(9.0, sequences=1)))
    assert LoadSweep((plain, drafting)).price("d", 2) == pytest.approx(2.5)
    empty = LoadRun(2, "e", 3, 9, (shared(9.0, sequences=1),))
    with pytest.raises(ValueError, match="'e' with 2 sequences has no pass that all of them shared"):
        LoadSweep((plain, empty)).price("e", 2)


def test_the_prices_are_told_side_by_side():
    told = messages.load_prices_table({1: 1.5, 16: 2.0}, {1: 1.5, 16: 4.0})
    assert told.splitlines()[2:] == ["| 1 | 1.50× | 1.50× | +0.0% |", "| 16 | 2.00× | 4.00× | −50.0% |"]


@pytest.mark.model
def test_speculation_under_load_is_measured_with_the_alpha_it_was_given(embedded):
    with Lab(str(embedded), format="Q4_0", threads=1) as lab:
        texts = ["Name three colours.", "Describe the sea.", "What is a boat?"]
        sweep = lab.under_load(
            texts, k=2, alphas=(1.0, 0.0), look_ups=("prompt_lookup",), counts=(1, 3), max_tokens=8, repeats=1
        )
    right, wrong = messages.foretold(1.0), messages.foretold(0.0)
    assert sweep.counts == (1, 3) and set(sweep.drafters) == {right, wrong, "prompt_lookup"}
    for sequences in (1, 3):
        for name, alpha, tokens in ((right, 1.0, 3.0), (wrong, 0.0, 1.0)):
            (run,) = sweep.of(name, sequences)
            # Rounding may send a text another way than it was foretold, so not exactly.
            assert run.alpha_tested == pytest.approx(alpha, abs=0.2)
            assert run.tokens_per_cycle == pytest.approx(tokens, abs=0.6)
            assert run.full[0].rows == 3 * sequences
        (plain,) = sweep.of("none", sequences)
        assert plain.k == 0 and {each.rows for each in plain.full} == {sequences}
        assert sum(each.emitted for each in plain.full) == 8 * sequences
    assert sweep.of("none", 1)[0].context_length < sweep.of("none", 3)[0].context_length


@pytest.mark.model
def test_a_load_that_cannot_be_made_is_refused(embedded):
    with Lab(str(embedded), format="Q4_0", threads=1) as lab:
        with pytest.raises(ValueError, match=r"4 texts .* there are 1"):
            lab.under_load(["Hello."], counts=(1, 4))
        with pytest.raises(ValueError, match="layer_skip runs a model"):
            lab.under_load(["Hello."], counts=(1,), look_ups=("layer_skip",))
