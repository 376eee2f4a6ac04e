"""Where a text begins and ends, on the embedded model: endings in a draft, budgets, stop strings, all kinds of prompts.

Exhaustive on the toy (test_decoder, test_verify, test_text); here once with llama.cpp underneath.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb import measure
from specnb.backend import Session, SessionError
from specnb.decoder import DraftError
from specnb.drafters import NgramSimple, NoDrafter
from specnb.records import Context, Cycle, Draft, Limits, Run, Sampling

pytestmark = pytest.mark.model


class Prophet:
    """Drafts the text it was given, so that nothing is refused."""

    name = "prophet"

    def __init__(self, prompt: Sequence[int], text: Sequence[int]) -> None:
        self._all = (*prompt, *text)

    def begin(self, prompt: Sequence[int]) -> None:
        pass

    def propose(self, context: Context, limits: Limits) -> Draft:
        return Draft(self._all[len(context.tokens) :][: limits.longest])

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        pass


class Says(Prophet):
    """Drafts the same whatever comes."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def propose(self, context: Context, limits: Limits) -> Draft:
        return self._draft


def run(session: Session, prompt: Sequence[int], drafter=None, *, k: int = 4, max_tokens: int = 24, **how) -> Run:
    return measure.run(
        session,
        drafter or NoDrafter(),
        prompt,
        limits=Limits(k=k),
        sampling=Sampling(),
        max_tokens=max_tokens,
        **how,
    )


@pytest.fixture(scope="module")
def ending(shared_session) -> Run:
    """A short plain answer that ends by itself."""
    shared_session.rewind(0)
    prompt = shared_session.model.chat_prompt("What is the capital of France?")
    found = run(shared_session, prompt, max_tokens=40)
    assert found.finish == "end of text" and found.emitted >= 3
    return found


def test_the_end_of_the_text_at_every_place_of_a_draft(session, ending):
    n = ending.emitted
    places = set()
    for k in range(1, n + 1):
        found = run(session, ending.prompt_tokens, Prophet(ending.prompt_tokens, ending.tokens), k=k, max_tokens=40)
        assert found.tokens == ending.tokens and found.text == ending.text and found.finish == "end of text"
        last = found.cycles[-1]
        places.add("bonus" if last.kept < len(last.emitted) else ("last", "inside")[last.kept < len(last.drafted)])
    assert places >= {"bonus", "last"}


@pytest.mark.parametrize("max_tokens", [1, 2, 5, 6])
def test_the_budget_is_met_to_the_token(session, max_tokens):
    prompt = session.model.chat_prompt("Count from one to twenty.")
    plain = run(session, prompt, max_tokens=max_tokens)
    found = run(session, prompt, Prophet(prompt, run(session, prompt, max_tokens=12).tokens), max_tokens=max_tokens)
    assert found.tokens == plain.tokens and found.emitted == max_tokens and found.finish == "max_tokens"


@pytest.mark.parametrize("k", [0, 1, 4, 16])
def test_a_stop_string_that_spans_tokens_ends_the_text_also_inside_a_kept_draft(session, k):
    model = session.model
    prompt = model.chat_prompt("Count from one to twenty.")
    whole = run(session, prompt, max_tokens=16)
    pieces = [model.piece(token).decode() for token in whole.tokens]
    # From the last character of one token to the first of the next, which no single token holds.
    stop = pieces[6][-1] + pieces[7][0]
    expected = whole.text[: whole.text.index(stop)]
    drafter = Prophet(prompt, whole.tokens) if k else NoDrafter()
    found = run(session, prompt, drafter, k=k, max_tokens=16, stop=["never said", stop])
    assert found.finish == "stop string" and found.text == expected
    assert found.tokens == whole.tokens[: found.emitted] and found.emitted <= 8
    assert stop in model.text(found.tokens) and stop not in model.text(found.tokens[:-1])


@pytest.mark.parametrize("n_prompt", [1, 2, 64, 65, 150])
def test_prompts_of_one_token_and_longer_than_a_pass(session, n_prompt):
    """A pass holds 64 tokens here."""
    tokens = session.model.tokenize("The ferry leaves at eight. The ferry returns at nine. " * 20)[:n_prompt]
    plain = run(session, tokens, max_tokens=8)
    for drafter in (Prophet(tokens, plain.tokens), NgramSimple(n=1, m=8)):
        found = run(session, tokens, drafter, max_tokens=8)
        assert found.tokens == plain.tokens and found.target_passes <= plain.target_passes


def test_the_context_clips_a_draft_and_is_filled_to_its_last_place(session):
    prompt = session.model.tokenize("one two three four five six seven eight nine")
    with Session(session.model, n_ctx=len(prompt) + 5, n_batch=16, threads=1) as small:
        plain = run(small, prompt, max_tokens=50)
        found = run(small, prompt, Prophet(prompt, plain.tokens), k=9, max_tokens=50)
    assert found.tokens == plain.tokens and found.emitted == 6 and found.finish == "context full"
    assert [len(cycle.drafted) for cycle in found.cycles] == [5]


@pytest.mark.parametrize(
    ("draft", "error", "words"),
    [
        (Draft((5, 10**6)), SessionError, "Token id 1000000 is outside the vocabulary"),
        (Draft((-1,)), SessionError, "Token id -1 is outside the vocabulary"),
        (Draft((5,), (float("nan"),)), DraftError, "came with nan"),
    ],
)
def test_garbage_from_a_drafter_raises_and_harms_no_later_run(session, draft, error, words):
    prompt = session.model.tokenize("one two three")
    before = run(session, prompt, max_tokens=4).tokens
    with pytest.raises(error, match=words):
        run(session, prompt, Says(draft), max_tokens=4)
    assert run(session, prompt, max_tokens=4).tokens == before
    too_long = run(session, prompt, Says(Draft((5,) * 400)), k=3, max_tokens=4)
    assert too_long.tokens == before and max(len(cycle.drafted) for cycle in too_long.cycles) == 3
