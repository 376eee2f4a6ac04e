"""Decoder, drafters, verification and llama.cpp together: speculation must not change the embedded model's text."""

from __future__ import annotations

import numpy as np
import pytest

from specnb import decoder, models
from specnb.backend import Model, Sampler, Session
from specnb.drafters import Drafter, DraftModel, LayerSkip, NgramSimple, NoDrafter
from specnb.policy import Fixed
from specnb.records import Cycle, Limits, Sampling

pytestmark = pytest.mark.model

PROMPTS = {
    "repeating": "red green blue white, red green blue white, red green blue white, red green blue",
    "code": "Write a Python function that adds two numbers, then one that subtracts them.",
    "prose": "Describe the sea in two sentences.",
}
SAMPLINGS = {"greedy": Sampling(), "sampled": Sampling(temperature=0.8, seed=7)}
MAX_TOKENS = 32

ROUNDING = 0.01
"""Largest change of a logit, as a share of the logits' range, that a pass over more tokens may make. A wrong
cache changes them by more (``test_a_wrong_cache_is_no_rounding``)."""


class Recording:
    """A sampler that keeps a copy of every row it was asked to draw from: one for each emitted token."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampler = Sampler(sampling)
        self.rows: list[np.ndarray] = []

    def draw(self, session: Session, row: int) -> int:
        self.rows.append(session.logits(row).copy())
        return self._sampler.draw(session, row)


@pytest.fixture(scope="module")
def target(embedded):
    """Q8_0, which rounds little."""
    with Model(models.in_format(embedded, "Q8_0")) as model, Session(model, n_ctx=256, n_batch=64, threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def drafts(target, model, embedded):
    """Sessions by drafter kind: another format of the target agrees often, a subset of its layers seldom."""
    subset = models.layer_subset(target.model.path, [i for i in range(30) if i not in (20, 21)])
    with (
        Session(model, n_ctx=256, n_batch=64, threads=1) as same_family,
        Model(subset) as fewer_layers,
        Session(fewer_layers, n_ctx=256, n_batch=64, threads=1) as skipping,
    ):
        yield {"draft_model": same_family, "layer_skip": skipping}


def make_drafter(name: str, drafts) -> Drafter:
    if name == "ngram_simple":
        return NgramSimple(n=2, m=8)
    return {"draft_model": DraftModel, "layer_skip": LayerSkip}[name](drafts[name])


def prompt_of(session: Session, kind: str) -> tuple[int, ...]:
    text = PROMPTS[kind]
    return session.model.tokenize(text) if kind == "repeating" else session.model.chat_prompt(text)


def generate(session: Session, drafter: Drafter, prompt, sampling: Sampling, *, k: int = 5):
    """(cycles, tokens, the row behind each token)."""
    policy, sampler = Fixed(drafter, Limits(k=k)), Recording(sampling)
    decoder.prefill(session, policy, prompt)
    cycles = list(
        decoder.decode(session, policy, sampler, prompt, max_tokens=MAX_TOKENS, ends_text=session.model.is_eog)
    )
    return cycles, [token for cycle in cycles for token in cycle.emitted], sampler.rows


@pytest.fixture(scope="module")
def plain(target, drafts):
    """Plain decoding of every prompt in every way of choosing, once."""
    return {
        (kind, way): generate(target, NoDrafter(), prompt_of(target, kind), sampling)
        for kind in PROMPTS
        for way, sampling in SAMPLINGS.items()
    }


def moved(plain_row: np.ndarray, speculative_row: np.ndarray) -> float:
    """The largest change of a logit between two evaluations after the same tokens, as a share of their range."""
    return float(np.abs(plain_row - speculative_row).max() / np.ptp(plain_row))


def rounding_can_explain(plain_row: np.ndarray, speculative_row: np.ndarray, greedy: bool) -> bool:
    """Whether two choices after the same tokens may differ though nothing is wrong.

    A pass over k+1 tokens may round differently from a pass over one. That decides a choice only
    where the two best are nearer than twice the change (greedy), or where the random number falls
    next to a boundary between two tokens (sampled; how near is not to be seen from here).
    """
    second, best = np.partition(plain_row, -2)[-2:]
    return not greedy or best - second <= 2 * np.abs(plain_row - speculative_row).max()


@pytest.mark.parametrize("way", SAMPLINGS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ngram_simple", "repeating"),
        ("ngram_simple", "code"),
        ("draft_model", "repeating"),
        ("draft_model", "code"),
        ("draft_model", "prose"),
        ("layer_skip", "code"),
    ],
)
def test_speculation_gives_the_text_of_plain_decoding(target, drafts, plain, name, kind, way):
    expected_cycles, expected, expected_rows = plain[kind, way]
    cycles, tokens, rows = generate(target, make_drafter(name, drafts), prompt_of(target, kind), SAMPLINGS[way])
    check_counts(cycles, rows)
    if (name, kind) != ("ngram_simple", "code"):
        assert sum(cycle.kept for cycle in cycles) > 0
        assert len(cycles) < len(expected_cycles)
    differs = next((i for i, pair in enumerate(zip(tokens, expected, strict=False)) if pair[0] != pair[1]), None)
    same_context = min(len(tokens), len(expected)) if differs is None else differs + 1
    changes = [moved(*pair) for pair in zip(expected_rows[:same_context], rows[:same_context], strict=True)]
    assert max(changes) < ROUNDING, f"{name}: the logits of token {int(np.argmax(changes))} moved by {max(changes):.2%}"
    if differs is None:
        assert tokens == expected
    else:
        assert rounding_can_explain(expected_rows[differs], rows[differs], SAMPLINGS[way].greedy), (
            f"token {differs}: {expected[differs]} without speculation, {tokens[differs]} with {name}"
        )


def check_counts(cycles: list[Cycle], rows: list[np.ndarray]) -> None:
    """Only rows that decide a token are looked at: as many as tokens were emitted."""
    emitted = sum(len(cycle.emitted) for cycle in cycles)
    assert len(rows) == emitted <= MAX_TOKENS
    for cycle in cycles:
        assert cycle.kept <= cycle.tested <= len(cycle.drafted) <= 5
        assert len(cycle.emitted) in (cycle.kept, cycle.kept + 1)


@pytest.mark.parametrize("way", SAMPLINGS)
def test_only_the_rows_that_decide_a_token_are_touched(target, monkeypatch, way):
    touched = []
    real = Session.logits
    monkeypatch.setattr(Session, "logits", lambda self, row: touched.append(row) or real(self, row))
    policy = Fixed(NgramSimple(n=2, m=8), Limits(k=5))
    prompt = prompt_of(target, "repeating")
    decoder.prefill(target, policy, prompt)
    assert touched == []
    sampler = Sampler(SAMPLINGS[way])
    cycles = list(decoder.decode(target, policy, sampler, prompt, max_tokens=MAX_TOKENS))
    assert sum(len(cycle.drafted) for cycle in cycles) > 0
    assert len(touched) == sum(len(cycle.emitted) for cycle in cycles) == MAX_TOKENS
    assert [row for cycle in cycles for row in range(len(cycle.emitted))] == touched


def test_one_run_leaves_nothing_behind_for_the_next(target, drafts):
    prompt = prompt_of(target, "code")
    drafter = make_drafter("draft_model", drafts)
    first = generate(target, drafter, prompt, SAMPLINGS["sampled"])
    generate(target, drafter, prompt_of(target, "prose"), SAMPLINGS["greedy"])
    again = generate(target, drafter, prompt, SAMPLINGS["sampled"])
    assert again[1] == first[1]
    assert [cycle.drafted for cycle in again[0]] == [cycle.drafted for cycle in first[0]]


def test_a_run_interrupted_between_and_inside_passes_can_be_repeated(target, drafts, monkeypatch):
    prompt = prompt_of(target, "code")
    drafter = make_drafter("draft_model", drafts)
    expected = generate(target, drafter, prompt, SAMPLINGS["greedy"])[1]
    real, passes = Session._pass, []

    def interrupted(self, *pass_of):
        real(self, *pass_of)
        passes.append(pass_of)
        if len(passes) == 9:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Session, "_pass", interrupted)
        with pytest.raises(KeyboardInterrupt):
            generate(target, drafter, prompt, SAMPLINGS["greedy"])
    assert generate(target, drafter, prompt, SAMPLINGS["greedy"])[1] == expected


def test_generation_fills_the_context_to_its_last_place_and_stops(target):
    policy = Fixed(NgramSimple(n=2, m=8), Limits(k=5))
    with Session(target.model, n_ctx=40, n_batch=16, threads=1) as small:
        prompt = prompt_of(small, "repeating")
        decoder.prefill(small, policy, prompt)
        cycles = list(decoder.decode(small, policy, Sampler(Sampling()), prompt, max_tokens=500))
        # The last token chosen needs no place: it is never fed.
        assert len(prompt) + sum(len(cycle.emitted) for cycle in cycles) == 41


def test_a_wrong_cache_is_no_rounding(target):
    """The tolerance above tells a cache that is off by one token from one that is only rounded otherwise."""
    prompt = prompt_of(target, "prose")
    target.rewind(0)
    target.extend(prompt)
    right = target.logits(-1).copy()
    target.rewind(0)
    target.extend([prompt[0], *prompt])
    assert moved(right, target.logits(-1)) > 2 * ROUNDING
