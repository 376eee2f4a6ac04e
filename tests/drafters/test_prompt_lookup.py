"""Prompt look-up, against the class of llama-cpp-python itself and against a search in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specnb.drafters.prompt_lookup import PromptLookup

from .growing import agree, fresh, propose


class LongWay:
    """For sizes n, n-1, ... 1: the first place of the last tokens that a token follows."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        for size in range(self.n, 0, -1):
            for follower in range(size, len(tokens)):
                if tokens[follower - size : follower] == tokens[len(tokens) - size :]:
                    return tuple(tokens[follower : follower + self.m])
        return ()

    def accept(self, n_kept: int) -> None:
        pass


class Original(LongWay):
    """llama-cpp-python's own."""

    def draft(self, tokens: Sequence[int]) -> tuple[int, ...]:
        numpy = pytest.importorskip("numpy")
        speculative = pytest.importorskip("llama_cpp.llama_speculative")
        draft = speculative.LlamaPromptLookupDecoding(max_ngram_size=self.n, num_pred_tokens=self.m)
        return tuple(draft(numpy.array(tokens, numpy.intc)).tolist())


@pytest.mark.parametrize("rule", [LongWay, Original])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (2, 10), (3, 4), (5, 2)])
def test_thousands_of_growing_texts(n, m, rule):
    drafts = agree(PromptLookup(n, m), lambda _prompt: rule(n, m), seed=10 * n + m, texts=60)
    assert drafts > 1000


def test_the_earliest_place_wins():
    assert fresh(PromptLookup(2, 3), [8, 9, 1, 1, 1, 8, 9, 2, 2, 2, 8, 9]) == (1, 1, 1)


def test_a_loop_is_copied_from_its_beginning_up_to_the_pending_token():
    tokens = [i % 4 for i in range(9)]  # 0 1 2 3 0 1 2 3 0: the last "3 0" stood at 3, and four tokens follow
    assert fresh(PromptLookup(2, 10), tokens) == (1, 2, 3, 0)
    assert fresh(PromptLookup(2, 3), tokens) == (1, 2, 3)


def test_a_longer_pattern_is_tried_first_and_then_a_shorter_one():
    assert fresh(PromptLookup(2, 1), [9, 1, 8, 9, 2, 8, 9]) == (2,)
    assert fresh(PromptLookup(1, 1), [9, 1, 8, 9, 2, 8, 9]) == (1,)
    assert fresh(PromptLookup(2, 1), [9, 1, 7, 9]) == (1,), "7 9 is new, 9 is not"
    assert fresh(PromptLookup(2, 1), [1, 2, 3, 4]) == ()


def test_a_pattern_may_overlap_itself():
    assert fresh(PromptLookup(2, 5), [5, 5, 5]) == (5,)


def test_one_token_has_no_place_before():
    assert fresh(PromptLookup(), [5]) == ()


def test_k_cuts_the_draft():
    tokens = list(range(20)) * 2
    assert fresh(PromptLookup(), tokens) == tuple(range(10)), "20 was followed by 0 at its first place"
    assert fresh(PromptLookup(), tokens, k=4) == (0, 1, 2, 3)
    assert fresh(PromptLookup(), tokens, k=0) == ()


def test_a_new_prompt_forgets_the_text_before():
    drafter = PromptLookup(2, 2)
    assert fresh(drafter, [8, 9, 1, 2, 8, 9]) == (1, 2)
    assert fresh(drafter, [0, 8, 9]) == ()
    assert propose(drafter, [0, 8, 9, 4, 8, 9]) == (4, 8)


@pytest.mark.parametrize(("n", "m"), [(0, 8), (3, 0)])
def test_impossible_lengths_are_refused_with_both(n, m):
    with pytest.raises(ValueError, match=f"at least 1; got n={n}, m={m}"):
        PromptLookup(n, m)
