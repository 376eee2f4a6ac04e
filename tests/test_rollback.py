"""Models that cannot take tokens back are refused before any text; those that can are shown to do it right.

The models are made here, tiny and random, in the shapes of mamba (recurrent), lfm2 (hybrid), gemma3
(sliding windows) and qwen2vl (M-RoPE), and run by llama.cpp itself. Tensor names: gguf's constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest
import tiny_models
from tiny_models import N_EMBD, N_FF, N_HEAD, N_HEAD_KV, N_HEAD_SIZE

from specnb import backend, notebook, trial
from specnb.backend import Model, ModelError, Session, SessionError
from specnb.lab import Lab

WINDOW = 8
N_STATE, N_CONV, N_INNER, N_RANK = 8, 4, 2 * N_EMBD, 4
SHORT_CONV = 3

Tensors = dict[str, np.ndarray]


def matrix(name: str, *shape: int) -> np.ndarray:
    return tiny_models._normal(name, *shape) / np.float32(shape[-1] ** 0.5)


def feed_forward(layer: int) -> Tensors:
    return {
        "ffn_norm.weight": np.ones(N_EMBD, np.float32),
        "ffn_gate.weight": matrix(f"{layer}.gate", N_FF, N_EMBD),
        "ffn_up.weight": matrix(f"{layer}.up", N_FF, N_EMBD),
        "ffn_down.weight": matrix(f"{layer}.down", N_EMBD, N_FF),
    }


def attention(layer: int, *, norms: bool = False, biases: bool = False) -> Tensors:
    n_kv = N_HEAD_KV * N_HEAD_SIZE
    tensors = {
        "attn_norm.weight": np.ones(N_EMBD, np.float32),
        "attn_q.weight": matrix(f"{layer}.q", N_EMBD, N_EMBD),
        "attn_k.weight": matrix(f"{layer}.k", n_kv, N_EMBD),
        "attn_v.weight": matrix(f"{layer}.v", n_kv, N_EMBD),
        "attn_output.weight": matrix(f"{layer}.o", N_EMBD, N_EMBD),
    }
    if norms:
        tensors |= {f"attn_{part}_norm.weight": np.ones(N_HEAD_SIZE, np.float32) for part in "qk"}
    if biases:
        sizes = {"q": N_EMBD, "k": n_kv, "v": n_kv}
        tensors |= {f"attn_{part}.bias": matrix(f"{layer}.{part}.bias", size) for part, size in sizes.items()}
    return tensors


def mamba(layer: int) -> Tensors:
    return {
        "attn_norm.weight": np.ones(N_EMBD, np.float32),
        "ssm_in.weight": matrix(f"{layer}.in", 2 * N_INNER, N_EMBD),
        "ssm_conv1d.weight": matrix(f"{layer}.conv", N_INNER, N_CONV),
        "ssm_conv1d.bias": matrix(f"{layer}.conv.bias", N_INNER),
        "ssm_x.weight": matrix(f"{layer}.x", N_RANK + 2 * N_STATE, N_INNER),
        "ssm_dt.weight": matrix(f"{layer}.dt", N_INNER, N_RANK),
        "ssm_dt.bias": matrix(f"{layer}.dt.bias", N_INNER),
        "ssm_a": -np.tile(np.arange(1, N_STATE + 1, dtype=np.float32), (N_INNER, 1)),
        "ssm_d": np.ones(N_INNER, np.float32),
        "ssm_out.weight": matrix(f"{layer}.out", N_EMBD, N_INNER),
    }


def lfm2(layer: int) -> Tensors:
    """A short convolution in layer 0, attention in layer 1."""
    if layer == 1:
        return attention(layer, norms=True) | feed_forward(layer)
    return feed_forward(layer) | {
        "attn_norm.weight": np.ones(N_EMBD, np.float32),
        "shortconv.conv.weight": matrix(f"{layer}.conv", N_EMBD, SHORT_CONV),
        "shortconv.in_proj.weight": matrix(f"{layer}.in", 3 * N_EMBD, N_EMBD),
        "shortconv.out_proj.weight": matrix(f"{layer}.out", N_EMBD, N_EMBD),
    }


def gemma3(layer: int) -> Tensors:
    after = {f"post_{part}_norm.weight": np.ones(N_EMBD, np.float32) for part in ("attention", "ffw")}
    return attention(layer, norms=True) | feed_forward(layer) | after


def qwen2vl(layer: int) -> Tensors:
    return attention(layer, biases=True) | feed_forward(layer)


LAYERS: Mapping[str, Callable[[int], Tensors]] = {"mamba": mamba, "lfm2": lfm2, "gemma3": gemma3, "qwen2vl": qwen2vl}


def write(path: Path, architecture: str) -> Path:
    """Writes a model of two layers and returns its path."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(2)
    writer.add_context_length(tiny_models.N_CTX)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(0 if architecture == "mamba" else N_FF)
    writer.add_head_count(0 if architecture == "mamba" else N_HEAD)
    writer.add_head_count_kv({"mamba": 0, "lfm2": [0, N_HEAD_KV]}.get(architecture, N_HEAD_KV))
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if architecture == "mamba":
        writer.add_ssm_conv_kernel(N_CONV)
        writer.add_ssm_inner_size(N_INNER)
        writer.add_ssm_state_size(N_STATE)
        writer.add_ssm_time_step_rank(N_RANK)
    if architecture == "lfm2":
        writer.add_shortconv_l_cache(SHORT_CONV)
    if architecture == "gemma3":
        writer.add_key_length(N_HEAD_SIZE)
        writer.add_value_length(N_HEAD_SIZE)
        writer.add_sliding_window(WINDOW)
    if architecture == "qwen2vl":
        writer.add_rope_dimension_sections([2, 3, 3, 0])
    tiny_models._add_tokenizer(writer, "gpt-2")
    n_vocab = len(tiny_models._VOCABULARY)
    writer.add_tensor("token_embd.weight", matrix("token_embd", n_vocab, N_EMBD) * np.float32(8))
    writer.add_tensor("output.weight", matrix("output", n_vocab, N_EMBD))
    norm = "token_embd_norm.weight" if architecture == "lfm2" else "output_norm.weight"
    writer.add_tensor(norm, np.ones(N_EMBD, np.float32))
    for layer in range(2):
        for name, data in LAYERS[architecture](layer).items():
            writer.add_tensor(f"blk.{layer}.{name}", data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], Path]:
    """A file of each architecture."""
    folder = tmp_path_factory.mktemp("made")
    files = {architecture: write(folder / f"tiny-{architecture}.gguf", architecture) for architecture in LAYERS}
    return files.__getitem__


CANNOT = ("mamba", "lfm2")
CAN = ("gemma3", "qwen2vl")


@pytest.mark.parametrize("architecture", CANNOT)
def test_a_cache_that_cannot_be_cut_is_refused_by_the_probe(made, architecture):
    with Model(made(architecture)) as model, Session(model, n_ctx=64, threads=1) as session:
        with pytest.raises(SessionError) as refused:
            session.probe_rollback()
        words = str(refused.value)
        assert f"tiny-{architecture}.gguf ({architecture}) cannot be used for speculative decoding" in words
        assert "cannot be cut back to 1 of 2 tokens" in words and "Use a model with attention in every layer" in words
        assert session.n_tokens == 0
        session.extend([1, 2, 3], rows="last")  # plain decoding is still possible
        assert np.isfinite(session.logits(-1)).all()


@pytest.mark.parametrize("architecture", CANNOT)
def test_the_refusal_comes_before_any_text(made, architecture, monkeypatch, capsys):
    monkeypatch.setattr(Lab, "run", lambda *_, **__: pytest.fail("it wrote"))
    with pytest.raises(ModelError, match=rf"{architecture}.*cannot be cut back to 1 of 2"):
        Lab(str(made(architecture)))
    nb = notebook.start("04", target=str(made(architecture)))
    assert not nb.live and f"({architecture}) cannot be used" in capsys.readouterr().out


@pytest.mark.parametrize("architecture", CAN)
def test_a_model_that_can_take_tokens_back_writes_the_plain_text(made, architecture):
    with Lab(str(made(architecture)), threads=1) as lab:
        prompt = [(i * 37) % 250 for i in range(4 * WINDOW)]
        plain = lab.run(prompt, "none", max_tokens=48)
        own_layers = lab.run(prompt, "layer_skip", k=5, max_tokens=48)
        assert own_layers.tokens == plain.tokens
        assert own_layers.emitted > 5 * WINDOW and 0 < own_layers.kept < own_layers.drafted


@pytest.mark.parametrize("architecture", CAN)
def test_logits_after_a_rollback_far_past_the_window_are_those_of_a_fresh_session(made, architecture):
    tokens = [(i * 37) % 250 for i in range(8 * WINDOW)]
    with Model(made(architecture)) as model, Session(model, n_ctx=128, threads=1) as session:
        for keep in (0, 1, WINDOW, 5 * WINDOW, 8 * WINDOW - 1):
            session.rewind(0)
            session.extend(tokens[: keep + 1], rows="last")
            fresh = session.logits(-1).copy()
            session.extend(tokens[keep + 1 :] or [5], rows="none")
            session.rewind(keep)
            session.extend([tokens[keep]], rows="last")
            np.testing.assert_allclose(session.logits(-1), fresh, atol=0.02)  # the cache rounds to 16 bits


@pytest.fixture
def forgetful(monkeypatch) -> None:
    """Caches that drop what has left a sliding window, as llama.cpp's do unless told otherwise."""
    real = backend.llama.llama_init_from_model

    def init(model: object, params: object) -> object:
        params.swa_full = False
        return real(model, params)

    monkeypatch.setattr(backend.llama, "llama_init_from_model", init)


def test_a_cache_without_what_left_the_window_refuses_to_be_cut(made, forgetful):
    with Model(made("gemma3")) as model, Session(model, n_ctx=512, n_batch=8, threads=1) as session:
        session.probe_rollback()  # two tokens lie within every window
        session.extend([(i * 37) % 250 for i in range(500)], rows="last")
        with pytest.raises(SessionError, match=r"cache of gemma3 cannot be cut back to 490 of 500"):
            session.rewind(490)
        session.rewind(0)
        session.extend([1, 2], rows="last")


def test_weights_that_are_no_numbers_are_refused_by_the_probe(tmp_path, monkeypatch):
    monkeypatch.setitem(LAYERS, "qwen2vl", lambda layer: {n: d * np.nan for n, d in qwen2vl(layer).items()})
    found = trial.try_model(write(tmp_path / "nan.gguf", "qwen2vl"))
    assert not found.ok and "nan.gguf" in found.detail and "no finite numbers" in found.detail
