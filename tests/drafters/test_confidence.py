"""The confidence of a draft's token: a softmax over the ten best logits, and llama.cpp's own number."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import llama_cpp as llama
import numpy as np
import pytest

from specnb.drafters.confidence import best_with_confidence


def softmax_of_ten_best(logits: Sequence[float]) -> tuple[int, float]:
    """(argmax, its share among the ten highest), without numpy."""
    ten = sorted(logits, reverse=True)[:10]
    return list(logits).index(ten[0]), math.exp(ten[0]) / sum(math.exp(logit) for logit in ten)


@pytest.mark.parametrize("n_vocab", [1, 2, 9, 10, 11, 300])
def test_confidence_is_a_softmax_over_the_ten_best(n_vocab):
    random_ = np.random.default_rng(n_vocab)
    for scale in (0.1, 1.0, 5.0, 30.0):
        logits = (scale * random_.normal(size=n_vocab)).astype(np.float32)
        before = logits.copy()
        token, confidence = best_with_confidence(logits)
        expected_token, expected = softmax_of_ten_best(logits.tolist())
        assert token == expected_token
        assert confidence == pytest.approx(expected, rel=1e-5)
        # The logits are a view of the model's own buffer: looking must not reorder them.
        assert np.array_equal(logits, before)


def test_confidence_is_larger_than_over_the_whole_vocabulary():
    assert best_with_confidence(np.zeros(1000, dtype=np.float32)) == (0, pytest.approx(1 / 10))


@pytest.mark.parametrize("offset", [-1e4, 0.0, 1e4])
def test_confidence_survives_logits_of_any_size(offset):
    token, confidence = best_with_confidence(np.array([0.0, 2.0, 1.0], dtype=np.float32) + np.float32(offset))
    assert token == 1
    assert confidence == pytest.approx(1 / (1 + math.exp(-1) + math.exp(-2)), rel=1e-3)


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, 63, 64, 65, 1000, 4097, 49152, 128256])
def test_confidence_is_over_the_ten_best_of_any_vocabulary(size):
    random = np.random.default_rng(size)
    for logits in (random.normal(size=size), np.round(random.normal(size=size)), np.sort(random.normal(size=size))):
        logits = logits.astype(np.float32)
        best, confidence = best_with_confidence(logits)
        top = np.sort(logits.astype(np.float64))[-10:]
        assert best == logits.argmax()
        assert confidence == pytest.approx(1 / np.exp(top - top[-1]).sum(), rel=1e-5)


# --- beside llama.cpp's samplers --------------------------------------------------------------

CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


def llama_cpp_says(logits: np.ndarray) -> tuple[int, float]:
    """The likeliest token and its probability after llama.cpp's own top_k(10) and dist, as its drafts use them."""
    candidates = np.zeros(len(logits), CANDIDATE)
    candidates["id"], candidates["logit"] = np.arange(len(logits)), logits
    assert CANDIDATE.itemsize == ctypes.sizeof(llama.llama_token_data)
    left = llama.llama_token_data_array(
        data=candidates.ctypes.data_as(llama.llama_token_data_p), size=len(logits), selected=-1, sorted=False
    )
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_top_k(10))
    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(1))
    llama.llama_sampler_apply(chain, ctypes.byref(left))
    llama.llama_sampler_free(chain)
    assert left.size == min(10, len(logits)) and 0 <= left.selected < left.size
    best = max((left.data[i] for i in range(left.size)), key=lambda candidate: candidate.p)
    return best.id, best.p


@pytest.mark.parametrize("n_vocab", [1, 2, 10, 11, 300, 4097, 49152])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
def test_random_logits_give_llama_cpps_number(n_vocab, scale):
    random = np.random.default_rng(n_vocab)
    for offset in (0.0, -50.0):
        logits = (scale * random.normal(size=n_vocab) + offset).astype(np.float32)
        token, confidence = llama_cpp_says(logits)
        assert best_with_confidence(logits) == (token, pytest.approx(confidence, rel=1e-4))


@pytest.mark.model
def test_the_models_logits_give_llama_cpps_number(session):
    session.extend(session.model.tokenize("The quick brown fox jumps over the lazy dog, and the capital of France is"))
    confidences = []
    for row in range(session.n_tokens):
        logits = session.logits(row)
        before = logits.copy()
        token, confidence = llama_cpp_says(before)
        assert best_with_confidence(logits) == (token, pytest.approx(confidence, rel=1e-4))
        assert np.array_equal(logits, before)
        confidences.append(confidence)
    assert min(confidences) < 0.5 < max(confidences), "sure and unsure ones"
