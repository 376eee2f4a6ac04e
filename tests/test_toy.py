"""The toy target keeps the promises of a real session, and its sampler those of a real sampler."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from specnb.records import Sampling
from specnb.toy import ToySampler, ToySession


def rows(session: ToySession, n: int) -> list[list[float]]:
    return [session.logits(row).tolist() for row in range(n)]


# --- session ----------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_model_and_another_is_not():
    one, same, other = ToySession(seed=3), ToySession(seed=3), ToySession(seed=4)
    for session in (one, same, other):
        session.extend([1, 2, 3])
    assert rows(one, 3) == rows(same, 3)
    assert rows(one, 3) != rows(other, 3)


def test_sharpness_scales_the_logits():
    blunt, sharp = ToySession(seed=3, sharpness=1.0), ToySession(seed=3, sharpness=4.0)
    for session in (blunt, sharp):
        session.extend([1, 2])
    assert sharp.logits(1) == pytest.approx(4.0 * blunt.logits(1), rel=1e-6)


def test_one_pass_over_many_tokens_equals_many_passes_over_one():
    """Batched verification is allowed to change nothing but the time it takes."""
    together, singly = ToySession(seed=1), ToySession(seed=1)
    tokens = [3, 1, 4, 1, 5, 2, 6, 5]
    together.extend(tokens)
    for row, token in enumerate(tokens):
        singly.extend([token])
        assert singly.logits(0).tolist() == together.logits(row).tolist() == singly.logits(-1).tolist()
    assert together.passes == [8]
    assert singly.passes == [1] * 8


def test_a_row_depends_on_the_last_two_tokens_only():
    session = ToySession(seed=1)
    session.extend([0, 5, 2, 7, 5, 2])
    after_5_2 = [session.logits(2).tolist(), session.logits(5).tolist()]
    assert after_5_2[0] == after_5_2[1]
    assert session.logits(1).tolist() != session.logits(4).tolist(), "5 after 0 and 5 after 7"


def test_rewinding_and_going_another_way_leaves_no_trace():
    travelled, direct = ToySession(seed=1), ToySession(seed=1)
    travelled.extend([1, 2, 3, 4])
    travelled.rewind(2)
    assert list(travelled.tokens) == [1, 2]
    assert travelled.n_tokens == 2
    travelled.extend([6, 7])
    direct.extend([1, 2, 6, 7])
    assert travelled.logits(-1).tolist() == direct.logits(-1).tolist()
    assert travelled.logits(0).tolist() == direct.logits(2).tolist(), "rows are counted within the last pass"


def test_only_the_rows_asked_for_have_logits_and_looking_is_counted():
    session = ToySession(seed=1)
    session.extend([1, 2, 3], rows="none")
    for row in range(3):
        with pytest.raises(ValueError, match=f"Row {row} was evaluated without asking for its logits"):
            session.logits(row)
    session.extend([4, 5], rows="last")
    with pytest.raises(ValueError, match="Row 0"):
        session.logits(0)
    assert session.rows_read == 0
    session.logits(1)
    session.logits(-1)
    assert session.rows_read == 2


@pytest.mark.parametrize(
    ("tokens", "n_keep", "said"),
    [
        ([], None, "at least one token"),
        ([1] * 4, None, "4 more tokens do not fit beside 3 of 6"),
        ([1, 8], None, "Token id 8 is outside the vocabulary of 8"),
        ([1, -1], None, "Token id -1 is outside the vocabulary of 8"),
        (None, 4, "Cannot keep 4 of 3 tokens"),
        (None, -1, "Cannot keep -1 of 3 tokens"),
    ],
)
def test_what_is_refused_is_refused_with_the_numbers_and_changes_nothing(tokens, n_keep, said):
    session = ToySession(n_vocab=8, n_ctx=6)
    session.extend([1, 2, 3])
    with pytest.raises(ValueError, match=said):
        session.rewind(n_keep) if tokens is None else session.extend(tokens)
    assert list(session.tokens) == [1, 2, 3]
    assert session.passes == [3]


def test_a_pass_holds_n_batch_rows_and_a_prompt_may_be_longer():
    session = ToySession(n_batch=4)
    session.extend([1] * 4)
    with pytest.raises(ValueError, match="5 rows do not fit one pass of 4"):
        session.extend([1] * 5)
    session.extend([1] * 5, rows="none")
    session.extend([1] * 5, rows="last")
    assert session.n_tokens == 14


# --- sampler ----------------------------------------------------------------------------------


def test_greedy_takes_the_highest_logit():
    session, sampler = ToySession(seed=1), ToySampler(Sampling())
    session.extend([1, 2, 3, 4])
    for row in range(4):
        assert sampler.draw(session, row) == session.logits(row).argmax()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_softmax_at_the_temperature(temperature):
    session, sampler = ToySession(seed=1, sharpness=1.0), ToySampler(Sampling(temperature=temperature, seed=5))
    session.extend([1, 2])
    n = 4000
    drawn = Counter(sampler.draw(session, 1) for _ in range(n))
    weights = np.exp(session.logits(1).astype(float) / temperature)
    assert chisquare([drawn[token] for token in range(8)], n * weights / weights.sum()).pvalue > 0.01


def test_draws_repeat_with_their_seed():
    session = ToySession(seed=1)
    session.extend([1, 2])
    texts = []
    for seed in (1, 1, 2):
        sampler = ToySampler(Sampling(temperature=1.0, seed=seed))
        texts.append([sampler.draw(session, 1) for _ in range(50)])
    assert texts[0] == texts[1] != texts[2]


class Uniform:
    """Hands out given numbers instead of random ones and counts them."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def test_a_draw_uses_up_one_random_number_and_never_leaves_the_vocabulary():
    session, sampler = ToySession(seed=1), ToySampler(Sampling(temperature=1.0))
    session.extend([1, 2])
    # The smallest and the largest number that numpy's generator returns.
    sampler._random = uniform = Uniform(0.0, 1.0 - 2.0**-53, 0.5)
    assert sampler.draw(session, 1) == 0
    assert len(uniform.numbers) == 2
    assert sampler.draw(session, 1) == 7
    assert len(uniform.numbers) == 1


def test_a_token_without_any_probability_is_never_drawn():
    session, sampler = ToySession(seed=1, sharpness=1000.0), ToySampler(Sampling(temperature=1.0))
    session.extend([1, 2])
    likeliest = session.logits(1).argmax()
    assert likeliest > 0
    sampler._random = Uniform(0.0, 1.0 - 2.0**-53)
    assert [sampler.draw(session, 1) for _ in range(2)] == [likeliest] * 2
