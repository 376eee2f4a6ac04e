"""Acceptance by rule along a text of the embedded model."""

from __future__ import annotations

import numpy as np
import pytest

from specnb import models
from specnb.acceptance import by_rule
from specnb.backend import Model, Session

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def draft(model, embedded):
    """The target with layers left out."""
    subset = models.layer_subset(model.path, [i for i in range(30) if i not in (20, 21)])
    with Model(subset) as fewer, Session(fewer, n_ctx=128, n_batch=64, threads=1) as opened:
        yield opened


def test_rejection_keeps_more_of_drawn_drafts_and_all_rules_agree_when_cold(session, draft):
    tokens = session.model.chat_prompt("What is the difference between weather and climate?")
    found = by_rule(session, draft, tokens, n_prompt=len(tokens) - 12, drafter="fewer layers", temperatures=(0.0, 1.0))
    assert found.positions == 12 and found.temperatures == (0.0, 1.0)
    cold = found.sampled_rejection[0], found.sampled_match[0], found.greedy[0]
    assert len(set(cold)) == 1 and 12 * cold[0] == pytest.approx(round(12 * cold[0]))
    assert found.sampled_match[1] < found.sampled_rejection[1] < 1.0
    assert session.n_tokens == draft.n_tokens == 0


def test_a_draft_that_is_the_target_is_always_kept_by_rejection_sampling(session, model):
    with Session(model, n_ctx=128, n_batch=64, threads=1) as twin:
        found = by_rule(session, twin, model.tokenize("One two three four five"), n_prompt=2, drafter="twin")
    assert np.allclose(found.sampled_rejection, 1.0) and found.sampled_match[-1] < 1.0


@pytest.mark.parametrize("n_prompt", [0, 5, 9])
def test_a_text_without_positions_is_refused(session, n_prompt):
    with pytest.raises(ValueError, match="leave no position to look at"):
        by_rule(session, session, (1, 2, 3, 4, 5), n_prompt=n_prompt, drafter="none")
