"""Speculative against plain text on the embedded model, and the control that tells rounding from a fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specnb import equivalence, measure, models
from specnb.backend import Model, Session
from specnb.drafters import NgramSimple, NoDrafter
from specnb.equivalence import compare, first_difference, rounding
from specnb.records import Comparison, Divergence, Limits, Penalties, Run, Sampling

PROMPT = (
    "Copy this text.\n\nThe ferry leaves at eight. The ferry returns at nine. The ferry costs two coins. "
    "The ferry leaves at ten. The ferry returns at noon. The ferry costs four coins."
)
PENALTIES = Penalties(repeat=1.1, frequency=0.1, presence=0.2)
WAYS = {
    "greedy": Sampling(),
    "greedy, penalties": Sampling(penalties=PENALTIES),
    "T 0.8, filters off": Sampling(temperature=0.8, top_k=0, top_p=1.0, min_p=0.0, seed=4),
    "T 0.8, penalties": Sampling(temperature=0.8, seed=5, penalties=PENALTIES),
}


def test_the_first_difference_counts_the_end_of_a_text():
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((), ()) is None
    assert first_difference((1, 2, 3), (1, 5, 3)) == 1
    assert first_difference((1, 2), (1, 2, 3)) == 2
    assert first_difference((), (1,)) == 0


def test_a_comparison_says_what_the_control_said():
    assert Comparison("d", 4, 9).verdict == "identical"
    parted = Divergence(3, 7, 8, gap=0.02, rounding=0.03, reproduced=True)
    assert Comparison("d", 4, 4, parted).verdict == "explained" and parted.within_rounding
    assert Comparison("d", 4, 4, replace(parted, reproduced=False)).verdict == "unexplained"
    assert not replace(parted, gap=0.07).within_rounding


# --- on the embedded model --------------------------------------------------------------------


def generate(session: Session, k: int, sampling: Sampling, *, max_tokens: int = 40, **options: object) -> Run:
    return measure.run(
        session,
        NgramSimple(n=1, m=48) if k else NoDrafter(),
        session.model.chat_prompt(PROMPT),
        limits=Limits(k=k),
        sampling=sampling,
        max_tokens=max_tokens,
        **options,
    )


@pytest.mark.model
@pytest.mark.parametrize("way", [way for way in WAYS if way != "greedy"])  # greedy: test_generation
def test_text_is_plain_decodings_or_the_control_makes_the_same_choices(session, way):
    plain = generate(session, 0, WAYS[way])
    for k in (2, 8, 48):
        run = generate(session, k, WAYS[way])
        assert run.drafted > 0 and run.emitted == plain.emitted
        assert compare(session, plain, run).verdict in ("identical", "explained"), k
    assert generate(session, 48, WAYS[way], exact=True).tokens == plain.tokens


@pytest.fixture(scope="module")
def bf16(embedded):
    """Passes over one token and over several round differently in BF16, on most machines."""
    with Model(models.in_format(embedded, "BF16")) as model, Session(model, n_ctx=256, n_batch=64, threads=1) as opened:
        yield opened


def nudged(session: Session, monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """From now on a pass over several tokens 'rounds': it lowers its best logit in every row by so much."""
    real = Session.logits
    sizes: list[int] = []
    extend = Session.extend

    def noted(self, tokens, **options):
        sizes.append(len(tokens))
        extend(self, tokens, **options)

    def logits(self, row):
        found = real(self, row)
        if sizes[-1] == 1:
            return found
        found = found.copy()
        found[found.argmax()] -= by
        return found

    monkeypatch.setattr(Session, "extend", noted)
    monkeypatch.setattr(Session, "logits", logits)


@pytest.mark.model
def test_a_change_that_passes_over_several_tokens_make_is_explained(session, monkeypatch):
    plain = generate(session, 0, Sampling())
    nudged(session, monkeypatch, by=5.0)
    run = generate(session, 4, Sampling())
    found = compare(session, plain, run)
    assert found.verdict == "explained"
    parted = found.divergence
    assert parted.rounding >= 5.0 and parted.gap <= 5.0 and parted.within_rounding
    at = parted.position
    assert (plain.tokens[at], run.tokens[at]) == (parted.plain_token, parted.other_token)
    assert plain.tokens[:at] == run.tokens[:at] and found.compared == at + 1
    assert generate(session, 4, Sampling(), exact=True).tokens == plain.tokens, "exact mode does not meet the change"


@pytest.mark.model
@pytest.mark.parametrize("way", ["greedy", "T 0.8, penalties"])
def test_a_fault_of_the_loop_is_not_explained(session, monkeypatch, way):
    """The loop forgets to take refused tokens back, so that later tokens see them."""
    plain = generate(session, 0, WAYS[way])
    forgotten: list[int] = []

    class Forgetful(Session):
        def rewind(self, n_keep: int) -> None:
            super().rewind(n_keep)
            if not forgotten and 0 < n_keep < self.n_ctx and n_keep > len(plain.prompt_tokens) + 3:
                forgotten.append(n_keep)
                self.rewind(n_keep - 1)
                self.extend([0])  # what is kept of the last token is another one's

    with Forgetful(session.model, n_ctx=512, n_batch=64, threads=session.threads) as faulty:
        run = generate(faulty, 4, WAYS[way])
    assert forgotten
    assert compare(session, plain, run).verdict == "unexplained"


@pytest.mark.model
def test_a_text_that_stops_short_is_not_explained(session):
    plain = generate(session, 0, Sampling(), max_tokens=12)
    short = replace(plain, cycles=plain.cycles[:7], drafter="short")
    found = compare(session, plain, short)
    assert found.verdict == "unexplained"
    assert (found.divergence.position, found.divergence.other_token) == (7, None)


@pytest.mark.model
def test_only_like_is_compared_with_like(session):
    plain = generate(session, 0, Sampling(), max_tokens=3)
    with pytest.raises(ValueError, match="same prompt and the same sampling"):
        compare(session, plain, replace(plain, sampling=Sampling(temperature=1.0)))
    drafted = generate(session, 2, Sampling(), max_tokens=30)
    with pytest.raises(ValueError, match="plain decoding; this one drafted, with ngram_simple"):
        compare(session, drafted, drafted)


@pytest.mark.model
def test_bf16_may_round_differently_and_every_difference_is_explained(bf16):
    plain = generate(bf16, 0, Sampling(), max_tokens=24)
    found = compare(bf16, plain, generate(bf16, 8, Sampling(), max_tokens=24))
    assert found.verdict in ("identical", "explained")
    assert found.divergence is None or found.divergence.within_rounding


@pytest.mark.model
def test_rounding_is_what_passes_of_other_lengths_change(session):
    tokens = session.model.chat_prompt(PROMPT)
    measured = rounding(session, tokens, (1, 2, 8), n_prompt=len(tokens) - 12)
    assert measured.change_by_n[1] == 0.0, "the same passes give the same bits"
    assert measured.positions == 12 == len(measured.gaps)
    assert all(change >= 0.0 and (change > 0) == (at > 0) for _, change, at in measured.changes)
    assert max(measured.change_by_n.values()) < 0.1 * measured.logit_range
    with pytest.raises(ValueError, match="12 tokens after the prompt cannot fill a pass of N=13"):
        rounding(session, tokens, (13,), n_prompt=len(tokens) - 12)


@pytest.mark.model
def test_rounding_sees_what_longer_passes_change(session, monkeypatch):
    tokens = session.model.chat_prompt(PROMPT)
    nudged(session, monkeypatch, by=0.25)
    measured = rounding(session, tokens, (1, 4), n_prompt=len(tokens) - 8)
    assert measured.change_by_n[1] == 0.0
    assert measured.change_by_n[4] == pytest.approx(0.25, abs=0.1) and measured.changes[1][2] == 8


@pytest.mark.model
def test_the_row_of_the_control_is_the_row_of_the_choice(session):
    """Without rounding, the control's two rows are the same bits where passes round alike."""
    plain = generate(session, 0, Sampling(), max_tokens=12)
    run = generate(session, 2, Sampling(), max_tokens=12)
    for at in (0, 11):
        one, sampler = equivalence._alone(session, plain, at)
        several = equivalence._row_of_passes_like(session, plain, run, at)
        assert sampler.choice(one) == plain.tokens[at]
        assert np.abs(one - several).max() < 0.1 * np.ptp(one)
