"""The loop: whatever drafts, and however much, the text is the one plain decoding gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, product

import pytest

from specnb.decoder import DraftError, decode, prefill
from specnb.drafters import Drafter, DraftModel, LayerSkip, NgramSimple, NoDrafter
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Draft, Limits, Penalties, Sampling
from specnb.toy import ToySampler, ToySession

N_VOCAB = 8

# (the target's seed, a prompt). The second repeats itself with period 5, so that look-up finds something.
TEXTS = [(1, (3,)), (2, (1, 4, 2, 0, 6) * 4), (3, (7, 7, 0))]

SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.7, seed=1),
    Sampling(temperature=1.0, seed=1),
    Sampling(temperature=1.0, seed=2),
    Sampling(temperature=1.0, seed=3, penalties=Penalties(repeat=1.2, frequency=0.3, presence=0.4, last_n=6)),
]

DRAFTERS: dict[str, Callable[[int], Drafter]] = {
    "none": lambda seed: NoDrafter(),
    "ngram 1/1": lambda seed: NgramSimple(1, 1),
    "ngram 1/6": lambda seed: NgramSimple(1, 6),
    "ngram 2/4": lambda seed: NgramSimple(2, 4),
    "ngram 3/8": lambda seed: NgramSimple(3, 8),
    "ngram that never drafts": lambda seed: NgramSimple(4, 3),
    "draft model, the target itself": lambda seed: DraftModel(ToySession(N_VOCAB, seed=seed)),
    "draft model, another text": lambda seed: DraftModel(ToySession(N_VOCAB, seed=seed + 100)),
    "layer skip, less sure": lambda seed: LayerSkip(ToySession(N_VOCAB, seed=seed, sharpness=0.7)),
}


class CountingSampler(ToySampler):
    """Notes the row of every draw."""

    def __init__(self, sampling: Sampling, *, prompt: Sequence[int] = ()) -> None:
        super().__init__(sampling, prompt=prompt)
        self.rows: list[int] = []

    def draw(self, session: ToySession, row: int) -> int:
        self.rows.append(row)
        return super().draw(session, row)


class Scripted:
    """A drafter that proposes what a function of (tokens so far, limits) says."""

    name = "scripted"

    def __init__(self, propose: Callable[[Sequence[int], Limits], Draft]) -> None:
        self._propose = propose
        self.observed: list[tuple[Cycle, bool]] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self.observed = []

    def propose(self, context: Context, limits: Limits) -> Draft:
        return self._propose(context.tokens, limits)

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        self.observed.append((cycle, mine))


def prophet(text: Sequence[int], n_prompt: int) -> Scripted:
    """A drafter that knows the text: its drafts are wrong nowhere and never too short."""

    def told(tokens: Sequence[int], limits: Limits) -> Draft:
        known = tuple(text[len(tokens) - n_prompt :][: limits.longest])
        return Draft(known, (1.0,) * len(known))

    return Scripted(told)


@cache
def plain(seed: int, prompt: tuple[int, ...], sampling: Sampling, n: int, n_vocab: int = N_VOCAB) -> tuple[int, ...]:
    """n tokens by the slowest way there is: one token a pass, no loop under test."""
    session, sampler = ToySession(n_vocab, seed=seed), ToySampler(sampling, prompt=prompt)
    emitted = []
    for token in prompt:
        session.extend([token])
    for _ in range(n):
        emitted.append(sampler.draw(session, -1))
        session.extend([emitted[-1]])
    return tuple(emitted)


def until_end(tokens: tuple[int, ...], endings: Sequence[int]) -> tuple[int, ...]:
    """Tokens up to and including the first ending."""
    return next((tokens[: i + 1] for i, token in enumerate(tokens) if token in endings), tokens)


def generate(
    session: ToySession,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    sampling: Sampling = SAMPLINGS[0],
    k: int = 4,
    n_min: int = 0,
    p_min: float = 0.0,
    max_tokens: int = 40,
    endings: Sequence[int] = (),
) -> tuple[Cycle, ...]:
    """One run from prompt to end, with a clock that stands still so that equal runs compare equal."""
    policy = Fixed(drafter, Limits(k=k, n_min=n_min, p_min=p_min))
    prefill(session, policy, prompt)
    sampler = CountingSampler(sampling, prompt=prompt)
    read_before = session.rows_read
    cycles = tuple(
        decode(
            session,
            policy,
            sampler,
            prompt,
            max_tokens=max_tokens,
            ends_text=lambda token: token in endings,
            clock=lambda: 0.0,
        )
    )
    # One draw and one row of logits for every emitted token, rows in order from 0 within each cycle.
    assert sampler.rows == [row for cycle in cycles for row in range(len(cycle.emitted))]
    assert session.rows_read - read_before == len(sampler.rows)
    return cycles


def emitted(cycles: Sequence[Cycle]) -> tuple[int, ...]:
    return tuple(token for cycle in cycles for token in cycle.emitted)


# --- the same text ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 8, 16])
def test_the_text_is_the_one_of_plain_decoding(name, k):
    for (seed, prompt), sampling in product(TEXTS, SAMPLINGS):
        session, drafter = ToySession(N_VOCAB, seed=seed), DRAFTERS[name](seed)
        truth = plain(seed, prompt, sampling, 40)
        # A drafter without confidences cannot know p_min: its two ends say enough.
        p_mins = (0.0, 0.3, 0.9, 1.0) if isinstance(drafter, DraftModel) else (0.0, 1.0)
        for p_min, n_min, max_tokens, endings in product(p_mins, (0, 2), (1, 2, 7, 40), ((), (5,))):
            cycles = generate(
                session,
                drafter,
                prompt,
                sampling=sampling,
                k=k,
                n_min=n_min,
                p_min=p_min,
                max_tokens=max_tokens,
                endings=endings,
            )
            expected = until_end(truth[:max_tokens], endings)
            assert emitted(cycles) == expected, (seed, sampling, p_min, n_min, max_tokens, endings)
            for cycle in cycles:
                assert 1 <= len(cycle.emitted) <= len(cycle.drafted) + 1
                assert cycle.kept <= cycle.tested <= len(cycle.drafted) <= k
                assert cycle.confidences is None or not 0 < len(cycle.drafted) < n_min
                assert cycle.drafted[: cycle.kept] == cycle.emitted[: cycle.kept]
                assert cycle.confidences is None or len(cycle.confidences) == len(cycle.drafted)
                assert cycle.drafter == drafter.name


def test_the_drafters_above_draft_keep_and_are_refused():
    """Without this the test above could pass because nobody ever drafted anything."""
    drafted, kept = Counter(), Counter()
    for name, (seed, prompt), sampling in product(DRAFTERS, TEXTS, SAMPLINGS):
        cycles = generate(ToySession(N_VOCAB, seed=seed), DRAFTERS[name](seed), prompt, sampling=sampling)
        drafted[name] += sum(len(cycle.drafted) for cycle in cycles)
        kept[name] += sum(cycle.kept for cycle in cycles)
    silent = {name for name in DRAFTERS if not drafted[name]}
    assert silent == {"none", "ngram that never drafts"}
    assert all(0 < kept[name] < drafted[name] for name in DRAFTERS if name not in silent), (drafted, kept)


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("k", [1, 4])
def test_the_context_is_filled_to_the_last_token(name, k):
    seed, prompt = TEXTS[1]
    for sampling, spare in product(SAMPLINGS, range(9)):
        session = ToySession(N_VOCAB, seed=seed, n_ctx=len(prompt) + spare)
        cycles = generate(session, DRAFTERS[name](seed), prompt, sampling=sampling, k=k)
        # The last token needs no place in the cache: nothing follows it.
        assert emitted(cycles) == plain(seed, prompt, sampling, 40)[: spare + 1]
        assert session.n_tokens == session.n_ctx


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("n_prompt", [1, 2, 16])
def test_a_prompt_may_be_one_token_or_the_whole_context(name, n_prompt):
    prompt = tuple(i % N_VOCAB for i in range(n_prompt))
    session = ToySession(N_VOCAB, seed=1, n_ctx=n_prompt)
    cycles = generate(session, DRAFTERS[name](1), prompt)
    assert emitted(cycles) == plain(1, prompt, SAMPLINGS[0], 1)
    assert [cycle.drafted for cycle in cycles] == [()]


@pytest.mark.parametrize("k", [0, 1, 3, 4, 7])
@pytest.mark.parametrize("max_tokens", [1, 2, 7, 12])
@pytest.mark.parametrize("spare", [0, 1, 5, 11, 100])
def test_a_draft_uses_all_the_room_there_is(k, max_tokens, spare):
    """A drafter that is always right: each cycle drafts min(k, tokens left - 1, places left) tokens."""
    seed, prompt = TEXTS[0]
    session = ToySession(N_VOCAB, seed=seed, n_ctx=len(prompt) + spare)
    cycles = generate(session, prophet(plain(seed, prompt, SAMPLINGS[0], 40), 1), prompt, k=k, max_tokens=max_tokens)
    length, left, expected = len(prompt), max_tokens, []
    while left > 0 and length <= session.n_ctx:
        expected.append(min(k, left - 1, session.n_ctx - length))
        length, left = length + expected[-1] + 1, left - expected[-1] - 1
    assert [len(cycle.drafted) for cycle in cycles] == expected
    assert sum(len(cycle.emitted) for cycle in cycles) == min(max_tokens, spare + 1)


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_no_tokens_asked_for_is_no_pass(max_tokens):
    session = ToySession(N_VOCAB, seed=1)
    assert generate(session, NoDrafter(), (3, 1), max_tokens=max_tokens) == ()
    assert session.passes == [1], "only the prompt"


def test_plain_decoding_is_one_row_a_pass_and_nothing_drafted():
    session = ToySession(N_VOCAB, seed=1)
    cycles = generate(session, NoDrafter(), (3, 1), max_tokens=5)
    assert session.passes == [1, 1, 1, 1, 1, 1]
    assert {(cycle.n_rows, cycle.tested, cycle.kept) for cycle in cycles} == {(1, 0, 0)}


# --- the end of the text ----------------------------------------------------------------------


@cache
def distinct_text(n: int) -> tuple[int, tuple[int, ...]]:
    """(seed, text): a target whose greedy text after the prompt (0,) has no token twice."""
    texts = ((seed, plain(seed, (0,), SAMPLINGS[0], n, 32)) for seed in count())
    return next((seed, text) for seed, text in texts if len(set(text)) == n)


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("k", [0, 1, 4])
def test_the_end_of_the_text_at_every_place_of_a_draft(place, k):
    """k = 4: places 0 and 5 are the first drafted position, 3 and 8 the last, 4 and 9 the bonus token."""
    seed, text = distinct_text(10)
    session = ToySession(32, seed=seed)
    cycles = generate(session, prophet(text, 1), (0,), k=k, endings=(text[place],))
    assert emitted(cycles) == text[: place + 1], "all of it and nothing after it"
    ended_by_bonus = place % (k + 1) == k
    last = cycles[-1]
    assert last.kept == len(last.emitted) - ended_by_bonus
    assert last.tested == last.kept
    # The ending was never fed if it was the target's own, and the refused rest of the draft is gone.
    assert session.n_tokens == place + 1


@pytest.mark.parametrize("place", range(5))
def test_an_ending_that_only_the_drafter_sees_ends_nothing(place):
    seed, text = distinct_text(10)
    ending = next(token for token in range(32) if token not in text)
    wrong = (*text[:place], ending, *text[place + 1 :])
    cycles = generate(ToySession(32, seed=seed), prophet(wrong, 1), (0,), k=5, max_tokens=10, endings=(ending,))
    assert emitted(cycles) == text
    assert cycles[0].kept == place


# --- hostile drafters -------------------------------------------------------------------------


def test_a_draft_that_is_too_long_is_cut_to_k_and_to_the_room():
    seed, prompt = TEXTS[0]
    text = plain(seed, prompt, SAMPLINGS[0], 60)
    talkative = Scripted(lambda tokens, _limits: Draft(text[len(tokens) - 1 :][:20], (0.5,) * 20))
    cycles = generate(ToySession(N_VOCAB, seed=seed), talkative, prompt, k=3, max_tokens=10)
    assert emitted(cycles) == text[:10]
    assert [len(cycle.drafted) for cycle in cycles] == [3, 3, 1]
    assert [cycle.confidences for cycle in cycles] == [(0.5,) * 3, (0.5,) * 3, (0.5,)]


def test_a_draft_of_k_tokens_that_ignores_the_room_is_cut_too():
    seed, prompt = TEXTS[0]
    text = plain(seed, prompt, SAMPLINGS[0], 60)
    oblivious = Scripted(lambda tokens, limits: Draft(text[len(tokens) - 1 :][: limits.k]))
    cycles = generate(ToySession(N_VOCAB, seed=seed), oblivious, prompt, k=4, max_tokens=7)
    assert emitted(cycles) == text[:7]
    assert [len(cycle.drafted) for cycle in cycles] == [4, 1]


def test_a_long_draft_without_confidences_stays_without():
    cycles = generate(ToySession(N_VOCAB), Scripted(lambda *_: Draft((1,) * 9)), (0,), k=3, max_tokens=5)
    assert len(cycles[0].drafted) == 3
    assert cycles[0].confidences is None


def test_a_draft_shorter_than_n_min_is_cleared_also_when_the_room_made_it_so():
    seed, prompt = TEXTS[0]
    text = plain(seed, prompt, SAMPLINGS[0], 40)
    session = ToySession(N_VOCAB, seed=seed)
    assert [len(c.drafted) for c in generate(session, prophet(text, 1), prompt, k=4, n_min=4, max_tokens=9)] == [
        4, 0, 0, 0, 0
    ]  # fmt: skip
    short = Scripted(lambda *_: Draft((1, 2), (0.5, 0.5)))
    cycles = generate(session, short, prompt, k=4, n_min=3, max_tokens=6)
    assert {(cycle.drafted, cycle.confidences) for cycle in cycles} == {((), None)}
    assert any(cycle.drafted for cycle in generate(session, short, prompt, k=4, n_min=2, max_tokens=6))
    copied = Scripted(lambda *_: Draft((1, 2)))
    assert any(cycle.drafted for cycle in generate(session, copied, prompt, k=4, n_min=3, max_tokens=6)), "a look-up's"


@pytest.mark.parametrize("n_confidences", [0, 1, 3])
def test_a_wrong_number_of_confidences_is_a_draft_error(n_confidences):
    drafter = Scripted(lambda *_: Draft((1, 2), (0.5,) * n_confidences))
    with pytest.raises(DraftError, match=f"A draft of 2 tokens came with {n_confidences} confidences"):
        generate(ToySession(N_VOCAB), drafter, (0,))


@pytest.mark.parametrize("alien", [-1, N_VOCAB, 10**6])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_id_outside_the_vocabulary_is_refused_by_name_and_harms_no_later_run(alien, position):
    session = ToySession(N_VOCAB, seed=1)
    drafter = Scripted(lambda *_: Draft((*(1,) * position, alien)))
    with pytest.raises(ValueError, match=f"Token id {alien} is outside the vocabulary of {N_VOCAB}"):
        generate(session, drafter, (0, 1))
    assert emitted(generate(session, NoDrafter(), (0, 1))) == plain(1, (0, 1), SAMPLINGS[0], 40)


@pytest.mark.parametrize("wrong", [float("nan"), -0.1, 1.5, float("inf")])
def test_a_confidence_that_is_no_probability_is_a_draft_error_and_harms_no_later_run(wrong):
    session = ToySession(N_VOCAB, seed=1)
    with pytest.raises(DraftError, match=f"a probability between 0 and 1; this draft came with {wrong}"):
        generate(session, Scripted(lambda *_: Draft((1, 2), (0.5, wrong))), (0, 1))
    assert emitted(generate(session, NoDrafter(), (0, 1))) == plain(1, (0, 1), SAMPLINGS[0], 40)


class WithoutRoom(Fixed):
    """A policy that forgets to tell its drafter how much room there is."""

    def choose(self, room: int) -> tuple[Drafter, Limits]:
        return self.drafter, self.limits


def test_the_loop_holds_every_draft_to_the_room_whatever_the_policy_says():
    seed, prompt = TEXTS[0]
    text = plain(seed, prompt, SAMPLINGS[0], 60)
    session, policy = ToySession(N_VOCAB, seed=seed), WithoutRoom(prophet(text, 1), Limits(k=4))
    prefill(session, policy, prompt)
    cycles = tuple(decode(session, policy, ToySampler(SAMPLINGS[0]), prompt, max_tokens=7))
    assert emitted(cycles) == text[:7]


# --- exact mode and endings that keep a state -------------------------------------------------


class RoundsInLongPasses(ToySession):
    """Says something else in every pass over more than one token."""

    def logits(self, row: int):
        logits = super().logits(row)
        return logits if self.passes[-1] == 1 else logits[::-1]


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("sampling", [SAMPLINGS[0], SAMPLINGS[-1]], ids=["greedy", "penalties"])
def test_exact_mode_writes_plain_decodings_text_whatever_long_passes_say(name, sampling):
    (seed, prompt), endings = TEXTS[1], (5,)
    truth = until_end(plain(seed, prompt, sampling, 40), endings)

    def run_of(exact: bool) -> tuple[int, ...]:
        session, policy = RoundsInLongPasses(N_VOCAB, seed=seed), Fixed(DRAFTERS[name](seed), Limits(k=4))
        prefill(session, policy, prompt)
        prompt_passes = len(session.passes)
        sampler = ToySampler(sampling, prompt=prompt)
        ends_text = lambda token: token in endings  # noqa: E731
        cycles = tuple(decode(session, policy, sampler, prompt, max_tokens=40, ends_text=ends_text, exact=exact))
        if exact:
            assert set(session.passes[prompt_passes:]) == {1}
            assert len(session.passes) - prompt_passes == len(emitted(cycles)), "one pass a token: nothing is gained"
        return emitted(cycles)

    assert run_of(exact=True) == truth
    if name not in ("none", "ngram that never drafts"):
        assert run_of(exact=False) != truth, "the test's long passes are meant to change the text"


@pytest.mark.parametrize("k", [0, 1, 3, 8])
@pytest.mark.parametrize("place", range(2, 9))
def test_an_ending_that_spans_tokens_ends_the_text_at_every_place_of_a_draft(k, place):
    seed, text = distinct_text(10)
    stop = text[place - 2 : place]
    seen: list[int] = []

    def ends_text(token: int) -> bool:
        seen.append(token)
        return tuple(seen[-2:]) == stop

    session, policy = ToySession(32, seed=seed), Fixed(prophet(text, 1), Limits(k=k))
    prefill(session, policy, (0,))
    cycles = tuple(decode(session, policy, ToySampler(SAMPLINGS[0]), (0,), max_tokens=10, ends_text=ends_text))
    assert emitted(cycles) == tuple(seen) == text[:place], "asked once of every emitted token, in order"
    assert session.n_tokens == place


class Faulty(DraftModel):
    """Fails in its third proposal, after its own cache has moved on."""

    proposals = 0

    def propose(self, context: Context, limits: Limits) -> Draft:
        self.proposals += 1
        draft = super().propose(context, limits)
        if self.proposals == 3:
            raise OSError("the drafter broke")
        return draft


@pytest.mark.parametrize("sampling", SAMPLINGS[:2])
def test_a_drafter_that_raises_leaves_nothing_behind(sampling):
    session, drafter = ToySession(N_VOCAB, seed=1), Faulty(ToySession(N_VOCAB, seed=1))
    with pytest.raises(OSError, match="the drafter broke"):
        generate(session, drafter, (0, 1), sampling=sampling)
    fresh = generate(ToySession(N_VOCAB, seed=1), DraftModel(ToySession(N_VOCAB, seed=1)), (0, 1), sampling=sampling)
    assert generate(session, drafter, (0, 1), sampling=sampling) == fresh


# --- runs that end early ----------------------------------------------------------------------


def run(session: ToySession, drafter: Drafter, sampling: Sampling, **options: object) -> Iterator[Cycle]:
    """A run that the caller can leave before its end."""
    prompt = TEXTS[1][1]
    policy = Fixed(drafter, Limits(k=4))
    prefill(session, policy, prompt)
    return decode(session, policy, ToySampler(sampling), prompt, max_tokens=40, clock=lambda: 0.0, **options)


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("sampling", SAMPLINGS[:2])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_stopping_between_cycles_and_closing_early_leave_nothing_behind(name, sampling, after):
    seed = TEXTS[1][0]
    fresh = tuple(run(ToySession(N_VOCAB, seed=seed), DRAFTERS[name](seed), sampling))
    session, drafter = ToySession(N_VOCAB, seed=seed), DRAFTERS[name](seed)
    asked = count()
    assert tuple(run(session, drafter, sampling, stopped=lambda: next(asked) >= after)) == fresh[:after]
    assert next(asked) == after + 1, "asked once before each cycle, and no more once it said so"
    assert tuple(run(session, drafter, sampling)) == fresh
    left_alone = run(session, drafter, sampling)
    assert tuple(next(left_alone) for _ in range(after)) == fresh[:after]
    left_alone.close()
    assert tuple(run(session, drafter, sampling)) == fresh


# --- the invariant and what does not fit ------------------------------------------------------


@pytest.mark.parametrize(
    ("interfere", "held"),
    [(lambda session: session.extend([1]), "holds 3 tokens"), (lambda session: session.rewind(0), "holds 0 tokens")],
)
def test_a_session_used_behind_the_loops_back_is_noticed(interfere, held):
    session = ToySession(N_VOCAB, seed=1)
    policy = Fixed(NoDrafter(), Limits(k=0))
    prefill(session, policy, (0, 1))
    cycles = decode(session, policy, ToySampler(Sampling()), (0, 1), max_tokens=5)
    next(cycles)
    interfere(session)
    with pytest.raises(RuntimeError, match=f"invariant is broken: the target {held}, the context has 3"):
        next(cycles)


def test_decoding_without_prefill_is_noticed():
    policy = Fixed(NoDrafter(), Limits(k=0))
    with pytest.raises(RuntimeError, match="the target holds 0 tokens, the context has 3"):
        next(decode(ToySession(N_VOCAB), policy, ToySampler(Sampling()), (0, 1, 2), max_tokens=5))


@pytest.mark.parametrize("token", [-1, N_VOCAB])
def test_a_pending_token_that_the_target_does_not_have_is_refused_before_any_pass(token):
    session = ToySession(N_VOCAB)
    with pytest.raises(ValueError, match=f"is {token}, but the target has the tokens 0 to {N_VOCAB - 1}"):
        prefill(session, Fixed(NoDrafter(), Limits(k=0)), (1, 2, token))
    assert session.passes == []


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="The prompt is empty"):
        prefill(ToySession(N_VOCAB), Fixed(NoDrafter(), Limits(k=0)), ())


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers():
    policy = Fixed(NoDrafter(), Limits(k=0))
    prefill(ToySession(N_VOCAB, n_ctx=9), policy, (1,) * 9)
    with pytest.raises(ValueError, match="The prompt has 10 tokens and the context holds 9"):
        prefill(ToySession(N_VOCAB, n_ctx=9), policy, (1,) * 10)


def test_a_k_that_does_not_fit_one_pass_is_refused_with_the_numbers():
    session = ToySession(N_VOCAB, n_batch=8)
    generate(session, NgramSimple(), (1,), k=7)
    with pytest.raises(
        ValueError, match=r"k = 8 needs a pass over 9 tokens, but a pass of this session holds 8\. Use a smaller k"
    ):
        prefill(session, Fixed(NgramSimple(), Limits(k=8)), (1,))


def test_the_prompt_is_fed_without_asking_for_logits():
    session = ToySession(N_VOCAB)
    prefill(session, Fixed(NoDrafter(), Limits(k=0)), (1, 2, 3))
    assert list(session.tokens) == [1, 2], "the last one stays pending"
    with pytest.raises(ValueError, match="without asking for its logits"):
        session.logits(-1)


def test_a_refused_prompt_leaves_the_session_as_it_was():
    session = ToySession(N_VOCAB, n_ctx=4)
    session.extend([1, 2])
    with pytest.raises(ValueError):
        prefill(session, Fixed(NoDrafter(), Limits(k=0)), (1,) * 5)
    assert list(session.tokens) == [1, 2]


# --- bookkeeping ------------------------------------------------------------------------------


class TwoDrafters(Fixed):
    """Takes turns: first one drafter, then the other."""

    def __init__(self, first: Drafter, second: Drafter) -> None:
        super().__init__(first, Limits(k=3))
        object.__setattr__(self, "_turn", count())
        object.__setattr__(self, "_both", (first, second))

    @property
    def drafters(self) -> Sequence[Drafter]:
        return self._both

    def choose(self, room: int) -> tuple[Drafter, Limits]:
        return self._both[next(self._turn) % 2], Limits(k=3, room=room)


def test_every_drafter_hears_of_every_cycle_and_whose_draft_it_was():
    seed, prompt = TEXTS[0]
    text = plain(seed, prompt, SAMPLINGS[0], 40)
    first, second = prophet(text, 1), Scripted(lambda *_: Draft((0,)))
    second.name = "another"
    policy = TwoDrafters(first, second)
    session = ToySession(N_VOCAB, seed=seed)
    prefill(session, policy, prompt)
    cycles = tuple(decode(session, policy, ToySampler(Sampling()), prompt, max_tokens=11, clock=lambda: 0.0))
    assert emitted(cycles) == text[:11]
    assert [cycle.drafter for cycle in cycles] == [("scripted", "another")[i % 2] for i in range(len(cycles))]
    assert [cycle for cycle, _ in first.observed] == list(cycles) == [cycle for cycle, _ in second.observed]
    assert [mine for _, mine in first.observed] == [cycle.drafter == "scripted" for cycle in cycles]
    assert [mine for _, mine in second.observed] == [cycle.drafter == "another" for cycle in cycles]


def test_drafters_that_take_turns_keep_their_caches_right():
    """Each must catch up with tokens the other one drafted."""
    for (seed, prompt), sampling in product(TEXTS, SAMPLINGS):
        policy = TwoDrafters(DraftModel(ToySession(N_VOCAB, seed=seed)), DraftModel(ToySession(N_VOCAB, seed=seed + 9)))
        session = ToySession(N_VOCAB, seed=seed)
        prefill(session, policy, prompt)
        sampler = ToySampler(sampling, prompt=prompt)
        cycles = tuple(decode(session, policy, sampler, prompt, max_tokens=40))
        assert emitted(cycles) == plain(seed, prompt, sampling, 40)


def test_every_second_of_a_cycle_has_a_name():
    ticks = count()
    session, policy = ToySession(N_VOCAB, seed=1), Fixed(NoDrafter(), Limits(k=0))
    prefill(session, policy, (0,))
    cycles = tuple(
        decode(session, policy, ToySampler(Sampling()), (0,), max_tokens=3, clock=lambda: float(next(ticks) ** 2))
    )
    # The clock is read five times a cycle, at 0, 1, 4, 9 and 16, then 25, ...
    first = cycles[0]
    assert (first.draft_s, first.verify_s, first.sampling_s, first.other_s) == (1.0, 3.0, 5.0, 7.0)
    assert [cycle.seconds for cycle in cycles] == [16.0, 81.0 - 25.0, 196.0 - 100.0]


def test_a_cycle_says_how_long_the_context_was_and_feeds_the_pending_token_with_the_draft():
    seed, prompt = TEXTS[1]
    session = ToySession(N_VOCAB, seed=seed)
    cycles = generate(session, DRAFTERS["draft model, another text"](seed), prompt, max_tokens=20)
    length = len(prompt) - 1
    for cycle in cycles:
        assert cycle.context_length == length
        length += len(cycle.emitted)
    assert session.passes == [len(prompt) - 1, *(cycle.n_rows for cycle in cycles)]
    assert list(session.tokens) == [*prompt, *emitted(cycles)][:-1]
