from __future__ import annotations

import pytest

from specnb.drafters import Foretold
from specnb.records import Draft, Limits, Sampling

from .toy_loop import N_VOCAB, context_of, emitted, generate, plain

SEED, PROMPT = 3, (1, 5, 2)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("k", [1, 4])
def test_it_keeps_the_alpha_it_was_given(alpha, k):
    answer = plain(SEED, PROMPT, Sampling(), 480)
    cycles = generate(Foretold(answer, alpha=alpha), SEED, PROMPT, k=k, n_tokens=480)[:-1]
    assert emitted(cycles) == answer[: len(emitted(cycles))]
    kept, tested = sum(c.kept for c in cycles), sum(c.tested for c in cycles)
    assert kept / tested == pytest.approx(alpha, abs=0.1)
    assert all(len(c.drafted) == k for c in cycles[:-4])


def test_a_text_that_goes_another_way_is_left_alone():
    answer = plain(SEED, PROMPT, Sampling(), 40)
    drafter = Foretold(answer)
    drafter.begin(PROMPT)
    other = (answer[1] + 1) % N_VOCAB
    assert drafter.propose(context_of((*PROMPT, answer[0])), Limits(k=3)) == Draft(answer[1:4])
    assert drafter.propose(context_of((*PROMPT, answer[0], other)), Limits(k=3)) == Draft()
    assert drafter.propose(context_of((*PROMPT, *answer)), Limits(k=3)) == Draft()


def test_a_token_proposed_again_is_the_same():
    drafter = Foretold(tuple(range(1, 60)), alpha=0.5, seed=4)
    drafter.begin((0,))
    first = drafter.propose(context_of((0,)), Limits(k=8)).tokens
    assert drafter.propose(context_of((0, 1)), Limits(k=7)).tokens == first[1:]
    assert 0 < sum(a == b for a, b in zip(first, range(1, 9), strict=True)) < 8


def test_an_impossible_alpha_is_refused():
    with pytest.raises(ValueError, match=r"1\.5"):
        Foretold((1,), alpha=1.5)
