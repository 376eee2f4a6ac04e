"""The door to llama.cpp, on the real embedded model."""

from __future__ import annotations

import gc
import json
import subprocess
import sys

import gguf
import numpy as np
import pytest

from specnb import backend, machine, models
from specnb.backend import Model, ModelError, Sampler, Session, SessionError, VectorSession
from specnb.records import Penalties, Sampling
from specnb.toy import penalised

pytestmark = pytest.mark.model

TEXT = "The lighthouse keeper counted the ships again, and again the number was one more than the day before."


@pytest.fixture
def tokens(model) -> tuple[int, ...]:
    return model.tokenize(TEXT)


@pytest.fixture(scope="module")
def exact_model(embedded):
    """F32: no rounding of activations, so two ways to compute one thing agree closely."""
    with Model(models.in_format(embedded, "F32")) as opened:
        yield opened


def next_token(session: Session) -> int:
    return int(session.logits(-1).argmax())


def greedy(session: Session, n: int) -> list[int]:
    """Continues a session whose last token has logits."""
    out = []
    for _ in range(n):
        out.append(next_token(session))
        session.extend(out[-1:])
    return out


# -- rows of logits ----------------------------------------------------------------------------


def test_logits_are_a_view_of_llama_cpps_own_buffer(session, tokens):
    session.extend(tokens[:4])
    row = session.logits(2)
    assert row.dtype == np.float32 and row.shape == (session.model.n_vocab,)
    assert not row.flags.owndata
    assert np.shares_memory(row, session.logits(2)) and not np.shares_memory(row, session.logits(3))
    session.logits(2)[7] = 123.5
    assert row[7] == 123.5
    assert np.shares_memory(session.logits(3), session.logits(-1))


def test_a_row_nobody_asked_for_raises(session, tokens):
    session.extend(tokens[:4], rows="last")
    session.logits(3)
    for row in (0, 2, 4, 400, -2):
        with pytest.raises(SessionError, match=f"Row {row} "):
            session.logits(row)
    session.extend(tokens[4:8], rows="none")
    with pytest.raises(SessionError, match="Row -1 "):
        session.logits(-1)


def test_a_state_times_the_output_matrix_gives_the_logits(exact_model, tokens):
    reader = models.read_gguf(exact_model.path)
    # SmolLM2 uses its embedding matrix as output matrix too.
    tensor = next(t for t in reader.tensors if t.name == "token_embd.weight")
    output = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    with Session(exact_model, n_ctx=64, threads=1, keep_states=True) as session:
        session.extend(tokens[:3])
        assert session.states.shape == (3, exact_model.n_embd)
        for row in range(3):
            np.testing.assert_allclose(output @ session.states[row], session.logits(row), atol=2e-3)


def test_states_follow_the_tokens_through_passes_and_rollbacks(exact_model, tokens):
    with (
        Session(exact_model, n_ctx=64, threads=1, keep_states=True) as at_once,
        Session(exact_model, n_ctx=64, n_batch=4, threads=1, keep_states=True) as in_parts,
    ):
        at_once.extend(tokens[:10])
        in_parts.extend(tokens[:6], rows="none")
        in_parts.extend([5, 6, 7])
        in_parts.rewind(6)
        in_parts.extend(tokens[6:10])
        assert len(in_parts.states) == len(in_parts.tokens) == 10
        np.testing.assert_allclose(in_parts.states, at_once.states, atol=2e-3)
        in_parts.rewind(4)
        assert len(in_parts.states) == 4


def test_a_model_fed_its_own_embedding_rows_says_what_it_says_of_the_tokens(exact_model, tokens):
    reader = models.read_gguf(exact_model.path)
    tensor = next(t for t in reader.tensors if t.name == "token_embd.weight")
    rows = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    with (
        Session(exact_model, n_ctx=64, threads=1) as by_token,
        VectorSession(exact_model, n_ctx=64, n_batch=4, threads=1) as by_vector,
    ):
        by_token.extend(tokens[:9])
        by_vector.extend(rows[list(tokens[:7])])
        by_vector.rewind(5)
        by_vector.extend(rows[list(tokens[5:9])])
        assert by_vector.n_tokens == 9 and by_vector.states.shape == (9, exact_model.n_embd)
        np.testing.assert_allclose(by_vector.logits(-1), by_token.logits(-1), atol=2e-3)
        with pytest.raises(SessionError, match="do not fit"):
            by_vector.extend(np.zeros((60, exact_model.n_embd), np.float32))
        assert by_vector.n_tokens == 9


def test_a_session_that_keeps_no_states_says_so(session, tokens):
    session.extend(tokens[:2])
    assert session.states is None


def test_numpy_leaves_the_cores_to_llama_cpp():
    """Its waiting threads made a speculative cycle two or three times as long on two cores."""
    # In a process of its own: here SciPy may have loaded another library of products since.
    code = (
        "import specnb.backend, threadpoolctl\n"
        "print([pool['num_threads'] for pool in threadpoolctl.threadpool_info() if pool['user_api'] == 'blas'])"
    )
    found = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    if not found:
        pytest.skip("NumPy's products here come from a library whose threads cannot be counted (Accelerate)")
    assert set(found) == {1}


# -- tokens in, tokens back --------------------------------------------------------------------


def test_prefill_in_chunks_equals_prefill_at_once(exact_model, tokens):
    rows = []
    for n_batch in (5, 64):
        with Session(exact_model, n_ctx=64, n_batch=n_batch, threads=1) as session:
            session.extend(tokens, rows="last")
            assert session.n_tokens == len(tokens) > 15
            rows.append(session.logits(-1).copy())
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-3)
    assert rows[0].argmax() == rows[1].argmax()


def test_rewind_takes_an_absolute_length(session, tokens):
    session.extend(tokens[:8])
    expected = greedy(session, 6)
    session.rewind(7)
    session.rewind(7)
    assert list(session.tokens) == list(tokens[:7])
    session.extend(tokens[7:8])
    assert greedy(session, 6) == expected


def test_tokens_taken_back_leave_no_trace(session, tokens):
    session.extend(tokens[:8])
    expected = session.logits(-1).copy()
    session.rewind(4)
    session.extend(tokens[10:14])
    wrong = session.logits(-1).copy()
    session.rewind(4)
    session.extend(tokens[4:8])
    spread = np.ptp(expected)
    assert np.abs(session.logits(-1) - expected).max() < 0.02 * spread < np.abs(wrong - expected).max()


@pytest.mark.parametrize("n_keep", [-1, 5])
def test_rewind_refuses_lengths_that_are_not_there(session, tokens, n_keep):
    session.extend(tokens[:4])
    with pytest.raises(SessionError, match=f"keep {n_keep} tokens: the session holds 4"):
        session.rewind(n_keep)
    assert session.n_tokens == 4


def test_a_cache_that_cannot_be_cut_raises(session, tokens, monkeypatch):
    session.extend(tokens[:4])
    with monkeypatch.context() as patched:
        patched.setattr(backend.llama, "llama_memory_seq_rm", lambda *_: False)
        with pytest.raises(SessionError, match="llama cannot be cut back to 2 of 4"):
            session.rewind(2)
        assert session.n_tokens == 4
    session.rewind(2)
    assert session.n_tokens == 2


def test_the_probe_refuses_a_cache_that_pretends_to_be_cut(session, monkeypatch):
    session.probe_rollback()
    assert session.n_tokens == 0
    real = backend.llama.llama_get_logits_ith
    calls = []

    def drifting(handle, row):
        calls.append(row)
        pointer = real(handle, row)
        if len(calls) > 1:
            np.ctypeslib.as_array(pointer, (session.model.n_vocab,))[3] += 100.0
        return pointer

    monkeypatch.setattr(backend.llama, "llama_get_logits_ith", drifting)
    with pytest.raises(SessionError, match=r"\(llama\) cannot be used for speculative decoding"):
        session.probe_rollback()


def test_what_does_not_fit_raises_and_evaluates_nothing(session, tokens):
    session.extend(tokens[:4])
    refused = [
        ([5] * 509, "none", "holds 512 tokens; 4 are there and 509 more"),
        ([5] * 65, "all", r"65 tokens need logits in one pass, but a pass holds 64"),
        ([5, session.model.n_vocab], "all", f"Token id {session.model.n_vocab} is outside"),
        ([5, -1], "all", "Token id -1 is outside"),
        ([], "all", "at least one token"),
    ]
    for feed, rows, words in refused:
        with pytest.raises(SessionError, match=words):
            session.extend(feed, rows=rows)
    assert list(session.tokens) == list(tokens[:4])


def test_the_context_can_be_filled_to_its_last_place(model):
    with Session(model, n_ctx=10, n_batch=8, threads=1) as session:
        session.extend([5] * 10, rows="last")
        assert session.n_tokens == 10
        with pytest.raises(SessionError, match="holds 10 tokens"):
            session.extend([5])


@pytest.mark.parametrize("when", ["before the pass", "after the pass", "in the second chunk"])
def test_an_interrupted_pass_leaves_the_session_usable(session, monkeypatch, when):
    text = session.model.tokenize(TEXT * 5)[:100]
    session.extend(text[:10], rows="none")
    session.extend(text[10:], rows="last")  # passes over 64 and 26 tokens
    expected = session.logits(-1).copy()
    session.rewind(10)
    real = backend.llama.llama_decode
    passes = []

    def interrupted(handle, batch):
        passes.append(batch.n_tokens)
        code = 0 if when == "before the pass" else real(handle, batch)
        if when != "in the second chunk" or len(passes) == 2:
            raise KeyboardInterrupt
        return code

    with monkeypatch.context() as patched:
        patched.setattr(backend.llama, "llama_decode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.extend(text[10:], rows="last")
    # What was noted is what the cache keeps; the rest is fed again without any rewind of the caller's.
    assert session.n_tokens == (74 if when == "in the second chunk" else 10)
    session.extend(text[session.n_tokens :], rows="last")
    assert list(session.tokens) == list(text)
    assert np.array_equal(session.logits(-1), expected)


def test_a_pass_that_llama_cpp_refuses_raises_and_evaluates_nothing(session, tokens, monkeypatch):
    session.extend(tokens[:4])
    expected = greedy(session, 3)
    session.rewind(4)
    with monkeypatch.context() as patched:
        patched.setattr(backend.llama, "llama_decode", lambda *_: 1)
        with pytest.raises(SessionError, match=r"2 tokens at position 4 \(code 1: no free slot"):
            session.extend(tokens[4:6])
    assert session.n_tokens == 4
    session.rewind(3)
    session.extend(tokens[3:4])
    assert greedy(session, 3) == expected


# -- after closing, and around the edges -------------------------------------------------------


def test_a_closed_session_raises_and_does_not_read_freed_memory(model):
    session = Session(model, n_ctx=16, threads=1, keep_states=True)
    session.extend([5, 6])
    session.close()
    session.close()
    assert session.closed
    uses = [
        lambda: session.extend([5]),
        lambda: session.logits(0),
        lambda: session.rewind(0),
        lambda: session.probe_rollback(),
        lambda: Sampler(Sampling()).draw(session, 0),
        lambda: Sampler(Sampling(temperature=1.0)).draw(session, 0),
    ]
    for use in uses:
        with pytest.raises(SessionError, match="closed"):
            use()


def test_a_session_outlives_its_model_only_to_be_closed(embedded):
    opened = Model(embedded)
    session = Session(opened, n_ctx=16, threads=1)
    session.extend([5, 6])
    opened.close()
    for use in (lambda: session.extend([5]), lambda: session.logits(0), lambda: session.rewind(1)):
        with pytest.raises(SessionError, match=r"The model .* was closed"):
            use()
    session.close()


def test_a_closed_model_raises_and_does_not_read_freed_memory(embedded):
    closed = Model(embedded, vocabulary_only=True)
    closed.close()
    closed.close()
    uses = [
        lambda: closed.n_vocab,
        lambda: closed.n_embd,
        lambda: closed.info,
        lambda: closed.tokenize("a"),
        lambda: closed.piece(5),
        lambda: closed.token_text(5),
        lambda: closed.is_eog(5),
        lambda: closed.vocab_type,
        lambda: closed.bos,
        lambda: closed.eos,
        lambda: closed.chat_prompt("a"),
        lambda: Session(closed, threads=1),
    ]
    for use in uses:
        with pytest.raises(ModelError, match="was closed; open it again"):
            use()


def test_opening_and_closing_does_not_keep_memory(model):
    def open_and_close() -> None:
        with Model(model.path) as opened, Session(opened, n_ctx=256, n_batch=32, threads=1) as session:
            session.extend([5] * 8)

    open_and_close()
    before = machine.resident_mib()
    for _ in range(10):
        open_and_close()
    # One leaked copy would be 86 MiB of weights, or 20 MiB of context.
    assert machine.resident_mib() - before < 60


def test_a_model_without_a_session_is_freed_with_its_last_reference(embedded):
    opened = Model(embedded, vocabulary_only=True)
    finalizer = opened._finalizer
    assert finalizer.alive
    del opened
    gc.collect()
    assert not finalizer.alive


def test_impossible_sizes_raise(model):
    for sizes in ({"n_ctx": 0}, {"n_batch": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            Session(model, threads=1, **sizes)


# -- files that are no models ------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut_places(embedded) -> dict[str, int]:
    """For each part of a GGUF file, a length in bytes that ends inside it."""
    reader = models.read_gguf(embedded)
    table = reader.tensors[0].field.offset
    return {
        "header": 13,
        "key-values": table // 2,
        "tensor table": (table + reader.data_offset) // 2,
        "data": (reader.data_offset + embedded.stat().st_size) // 2,
    }


@pytest.mark.parametrize("part", ["header", "key-values", "tensor table", "data"])
def test_a_cut_file_is_refused_by_name_and_the_next_one_loads(embedded, model, cut_places, tmp_path, part):
    damaged = tmp_path / "cut.gguf"
    with embedded.open("rb") as file:
        damaged.write_bytes(file.read(cut_places[part]))
    with pytest.raises(ModelError, match=r"cut\.gguf .*[a-z].*fetch it again"):
        Model(damaged)
    with Model(model.path, vocabulary_only=True) as next_one:
        assert next_one.text(next_one.tokenize(TEXT)) == TEXT


@pytest.mark.parametrize("content", [b"", b"G", b"GGUF", b"This is a text, not a model.\n", b"\0" * 4096])
def test_a_file_that_is_no_model_is_refused_with_llama_cpps_reason(tmp_path, content):
    # llama.cpp says its reasons through a callback that Python must not have collected.
    gc.collect()
    path = tmp_path / "text.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"text\.gguf .*convert it first") as refused:
        Model(path)
    assert "gave no reason" not in str(refused.value)


def test_a_missing_path_and_a_directory_are_refused(tmp_path):
    for path in (tmp_path / "absent.gguf", tmp_path):
        with pytest.raises(ModelError, match=f"no model file at .*{path.name}|{path.name} is a folder"):
            Model(path)


def test_the_log_callback_stays_referenced():
    assert isinstance(backend._keep_log, backend.llama.llama_log_callback)
    backend._recent_log.clear()
    backend._keep_log(backend._ERROR, b"a complaint\n", None)
    backend._keep_log(1, b"chatter\n", None)
    assert list(backend._recent_log) == ["a complaint"]


# -- vocabulary --------------------------------------------------------------------------------


def test_text_survives_tokens(model):
    text = "naïve — 日本語 🙂\n\tindented"
    assert model.text(model.tokenize(text)) == text
    assert model.text(model.tokenize("")) == ""


def test_half_a_character_is_one_replacement_character(model):
    tokens = model.tokenize("🙂")
    assert len(tokens) > 1
    assert model.text(tokens[:1]).endswith("\ufffd")


def test_a_chat_prompt_asks_in_the_models_own_template(model):
    prompt = model.chat_prompt("Say hello.")
    spelled = "".join(model.token_text(token) for token in prompt)
    assert spelled.count("<|im_start|>") == 3 and spelled.count("<|im_end|>") == 2
    assert spelled.rstrip("Ċ").endswith("<|im_start|>assistant")
    assert "Say hello." in model.text(prompt)
    assert model.is_eog(model.tokenize("<|im_end|>")[0]) and not model.is_eog(prompt[0])


def test_metadata_and_info(model):
    assert model.metadata("general.architecture") == "llama" == model.architecture
    assert model.metadata("no.such.key") is None
    assert len(model.metadata("tokenizer.chat_template")) > 256
    info = model.info
    assert (info.n_layer, info.n_embd, info.n_vocab, info.format) == (30, 576, 49152, "Q4_0")
    assert 80e6 < info.weight_bytes < model.path.stat().st_size
    with pytest.raises(ValueError, match="49152 is outside the vocabulary of 49152"):
        model.piece(49152)


# -- choosing tokens ---------------------------------------------------------------------------


def sampled(session: Session, prompt, sampling: Sampling, n: int = 12) -> list[int]:
    session.rewind(0)
    session.extend(prompt)
    sampler, out = Sampler(sampling), []
    row = len(prompt) - 1
    for _ in range(n):
        out.append(sampler.draw(session, row))
        session.extend(out[-1:])
        row = 0
    return out


def test_greedy_is_the_largest_logit(session, tokens):
    session.extend(tokens)
    expected = greedy(session, 12)
    assert sampled(session, tokens, Sampling()) == expected
    # A filter that leaves one candidate makes every temperature greedy.
    assert sampled(session, tokens, Sampling(temperature=1.5, top_k=1)) == expected


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0)])
def test_drawing_from_a_row_without_logits_raises(session, tokens, sampling):
    session.extend(tokens[:4], rows="last")
    with pytest.raises(SessionError, match="Row 0 "):
        Sampler(sampling).draw(session, 0)


def test_the_seed_decides_sampled_text(session, tokens):
    hot = {seed: sampled(session, tokens, Sampling(temperature=1.2, seed=seed)) for seed in (1, 2, 3)}
    assert hot[1] == sampled(session, tokens, Sampling(temperature=1.2, seed=1))
    assert len({tuple(text) for text in hot.values()}) > 1


def test_draws_follow_the_models_probabilities(session, tokens):
    """With the filters off, the frequency of the likeliest token is its softmax probability."""
    session.extend(tokens[:6])
    row = session.logits(5).astype(np.float64)
    p = np.exp(row - row.max())
    p /= p.sum()
    off = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    draws = [Sampler(Sampling(temperature=1.0, seed=seed, **off)).draw(session, 5) for seed in range(300)]
    best = int(row.argmax())
    expected, observed = p[best], draws.count(best) / len(draws)
    assert abs(observed - expected) < 4 * np.sqrt(expected * (1 - expected) / len(draws))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_penalties_are_llama_cpps_and_look_back_into_the_prompt(session, tokens, temperature):
    """The same choices as from logits lowered by a second implementation, prompt and drawn tokens both counted."""
    penalties = Penalties(repeat=1.3, frequency=0.4, presence=0.6, last_n=24)
    penalised_sampler = Sampler(Sampling(temperature=temperature, seed=5, penalties=penalties), prompt=tokens)
    plain_sampler = Sampler(Sampling(temperature=temperature, seed=5))
    session.extend(tokens, rows="last")
    seen, changed = list(tokens), 0
    for _ in range(12):
        logits = session.logits(-1)
        lowered = penalised(logits, seen, penalties)
        expected = plain_sampler.choice(lowered)
        changed += expected != plain_sampler.choice(logits)
        plain_sampler.draw(session, -1)  # uses up one random number, as the other's draw does
        assert penalised_sampler.choice(logits) == expected
        seen.append(penalised_sampler.draw(session, -1))
        assert seen[-1] == expected
        session.extend(seen[-1:])
    assert changed > 0, "these penalties never decided anything"


def test_a_choice_is_the_next_draw_and_moves_nothing(session, tokens):
    sampler = Sampler(Sampling(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=11))
    session.extend(tokens)
    for row in range(8):
        expected = [sampler.choice(session.logits(row)) for _ in range(3)]
        assert [sampler.draw(session, row)] * 3 == expected


def test_an_unknown_weight_format_is_refused(model, tmp_path):
    with pytest.raises(ModelError, match=r"'Q9_9' is no weight format.*Q4_0"):
        backend.quantize(model.path, tmp_path / "x.gguf", "Q9_9", threads=1)


def test_a_failed_quantisation_leaves_no_file(tmp_path):
    source, destination = tmp_path / "text.gguf", tmp_path / "out.gguf"
    source.write_text("no model")
    with pytest.raises(ModelError, match=r"could not write text\.gguf as F16"):
        backend.quantize(source, destination, "F16", threads=1)
    assert not destination.exists()
