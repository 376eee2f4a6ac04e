"""The one door to llama.cpp: models, sessions, samplers, quantisation.

Only this module imports ``llama_cpp``. It uses the low-level API because the loop is ours: the
high-level class copies every row of logits and drops the result of the cache rollback.

Thread use: a ``Session`` belongs to one thread at a time. Nothing here locks.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar

# GNU's OpenMP reads this once, when it is loaded, so it has to be set before llama.cpp is. Threads
# meet at a barrier after every operation and spin there for some milliseconds before they sleep. On
# a quiet machine nobody waits that long and the setting changes nothing; with one of two cores taken
# by another process a pass of 7 ms took seconds at the default and about 75 ms with this.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import llama_cpp as llama
import numpy as np
import threadpoolctl
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from . import gguf_header
from .records import ModelInfo, Sampling

# The heads' small products run between two passes. Threads of NumPy's own, waiting for more of them, hold
# the cores that the next pass needs: with two cores a cycle of 35 ms took 90.
threadpoolctl.threadpool_limits(limits=1, user_api="blas")

Rows = Literal["all", "last", "none"]


class ModelError(RuntimeError):
    """A model file cannot be used; the message names the file, the reason and what to do."""


class SessionError(RuntimeError):
    """A pass or a rollback failed; the session stays usable after ``rewind``."""


# llama.cpp calls this from native code for as long as the process lives: if Python collected it,
# the next log line would be a segmentation fault. The module global keeps it referenced.
_recent_log: deque[str] = deque(maxlen=40)
_WARN, _ERROR = 3, 4  # enum ggml_log_level, ggml.h; the binding does not export it


@llama.llama_log_callback
def _keep_log(level: int, text: bytes, _user_data: object) -> None:
    if level in (_WARN, _ERROR):
        _recent_log.append(text.decode("utf-8", "replace").strip())


llama.llama_log_set(_keep_log, ctypes.c_void_p(0))
llama.llama_backend_init()


@contextmanager
def _native_complaints() -> Iterator[list[str]]:
    """Collects what llama.cpp warned about inside the block; filled on leaving it."""
    _recent_log.clear()
    said: list[str] = []
    try:
        yield said
    finally:
        said.extend(line for line in _recent_log if line)


def build_info() -> str:
    """The binding's version and the processor features llama.cpp was compiled for."""
    features = llama.llama_print_system_info().decode().split(":", 1)[-1]
    names = [part.split("=")[0].strip() for part in features.split("|") if part.strip().endswith("= 1")]
    return f"llama-cpp-python {llama.__version__} ({', '.join(names)})"


def gpu_offload() -> bool:
    """Whether this build of llama.cpp can put layers on a GPU."""
    return bool(llama.llama_supports_gpu_offload())


class Model:
    """Weights and vocabulary of one GGUF file. Use as a context manager, or call ``close``.

    gpu_layers: how many layers go to a GPU, where the build has one; -1 is all.
    Raises ModelError when the file is missing, damaged, or llama.cpp refuses it. A header that fits
    its file is no promise that llama.cpp survives the rest: a stranger's file goes through
    ``trial.require`` first.
    """

    def __init__(self, path: str | Path, *, gpu_layers: int = -1, vocabulary_only: bool = False) -> None:
        self.path = Path(path)
        try:
            gguf_header.read(self.path)
        except gguf_header.BadFile as refused:
            raise ModelError(f"{refused} Or leave it out to use the embedded model.") from None
        params = llama.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        params.vocab_only = vocabulary_only
        with _native_complaints() as said:
            handle = llama.llama_model_load_from_file(str(self.path).encode(), params)
        if not handle:
            reason = said[0] if said else "llama.cpp gave no reason"
            raise ModelError(
                f"llama.cpp cannot load {self.path.name}: {reason}. If it was downloaded or copied, it may be "
                "incomplete: fetch it again; if it is no GGUF file, convert it first."
            )
        self._handle = handle
        self._pieces: dict[int, bytes] = {}
        self._finalizer = weakref.finalize(self, llama.llama_model_free, handle)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the weights. Close the sessions that use them first."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def handle(self) -> object:
        if self.closed:
            raise ModelError(f"The model {self.path.name} was closed; open it again.")
        return self._handle

    @property
    def _vocab(self) -> object:
        # It belongs to the weights: after ``close`` it would be freed memory.
        return llama.llama_model_get_vocab(self.handle)

    # -- shape -------------------------------------------------------------------------------

    @property
    def n_vocab(self) -> int:
        return llama.llama_vocab_n_tokens(self._vocab)

    @property
    def n_embd(self) -> int:
        return llama.llama_model_n_embd(self.handle)

    @property
    def n_layer(self) -> int:
        return llama.llama_model_n_layer(self.handle)

    @property
    def n_ctx_train(self) -> int:
        return llama.llama_model_n_ctx_train(self.handle)

    @property
    def architecture(self) -> str:
        return self.metadata("general.architecture") or "unknown"

    @property
    def format(self) -> str:
        """Weight format as llama.cpp names it: F32, BF16, F16, Q8_0, Q4_0, Q4_K_M, ..."""
        value = self.metadata("general.file_type")
        return _format_name(int(value)) if value else "unknown"

    def metadata(self, key: str) -> str | None:
        """A metadata value as text, or None where the file has no such key."""
        for size in (256, 1 << 20):
            buffer = ctypes.create_string_buffer(size)
            n = llama.llama_model_meta_val_str(self.handle, key.encode(), buffer, size)
            if n < size:
                return buffer.value.decode("utf-8", "replace") if n >= 0 else None
        raise ModelError(f"The value of {key} in {self.path.name} is over 1 MiB long; the file is damaged.")

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            name=name_without_format(self.path),
            architecture=self.architecture,
            format=self.format,
            n_parameters=llama.llama_model_n_params(self.handle),
            weight_bytes=llama.llama_model_size(self.handle),
            n_layer=self.n_layer,
            n_embd=self.n_embd,
            n_vocab=self.n_vocab,
            n_ctx_train=self.n_ctx_train,
        )

    # -- vocabulary --------------------------------------------------------------------------

    def tokenize(self, text: str, *, add_bos: bool = True, parse_special: bool = True) -> tuple[int, ...]:
        """Token ids of a text. ``add_bos``: let the model add its opening token where it wants one."""
        self._need_tokenizer()
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        for _ in range(2):  # a byte may take several tokens; llama.cpp then says how many it needs
            ids = (llama.llama_token * room)()
            n = llama.llama_tokenize(self._vocab, data, len(data), ids, room, add_bos, parse_special)
            if n >= 0:
                return tuple(ids[:n])
            room = -n
        raise ModelError(
            f"llama.cpp could not tokenize {len(data)} bytes of text for {self.path.name} (it asked for {-n} tokens)."
        )

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens as nothing. May be part of a character."""
        if token not in self._pieces:
            if not 0 <= token < self.n_vocab:
                raise ValueError(f"Token id {token} is outside the vocabulary of {self.n_vocab}.")
            buffer = ctypes.create_string_buffer(256)
            n = llama.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False) if self.has_tokenizer else 0
            self._pieces[token] = buffer.raw[: max(0, n)]
        return self._pieces[token]

    def text(self, tokens: Sequence[int]) -> str:
        """Text of tokens; bytes that do not form a character yet become U+FFFD."""
        return b"".join(self.piece(token) for token in tokens).decode("utf-8", "replace")

    def token_text(self, token: int) -> str:
        """The vocabulary's own spelling of a token (what a pair check compares); "" for an id that it lacks."""
        # llama.cpp would end the process on such an id, and a model without an opening token has -1 for one.
        if not self.has_tokenizer or not 0 <= token < self.n_vocab:
            return ""
        return (llama.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        """Whether the token ends a generation."""
        return bool(llama.llama_vocab_is_eog(self._vocab, token))

    @property
    def vocab_type(self) -> int:
        return llama.llama_vocab_type(self._vocab)

    @property
    def has_tokenizer(self) -> bool:
        return self.vocab_type != llama.LLAMA_VOCAB_TYPE_NONE

    def _need_tokenizer(self) -> None:
        """llama.cpp would end the process."""
        if not self.has_tokenizer:
            raise ModelError(f"{self.path.name} has no tokenizer, so it can read no text. Use the complete model file.")

    @property
    def bos(self) -> tuple[bool, int]:
        """(whether the model wants its opening token added, that token's id)."""
        return bool(llama.llama_vocab_get_add_bos(self._vocab)), llama.llama_vocab_bos(self._vocab)

    @property
    def eos(self) -> tuple[bool, int]:
        """(whether the model wants its closing token added, that token's id)."""
        return bool(llama.llama_vocab_get_add_eos(self._vocab)), llama.llama_vocab_eos(self._vocab)

    def chat_prompt(self, message: str) -> tuple[int, ...]:
        """Token ids that ask the model one thing, in its own chat template; plain text where it has none."""
        template = llama.llama_model_chat_template(self.handle, None)
        if not template:
            return self.tokenize(message)
        try:
            text = Jinja2ChatFormatter(
                template.decode(), eos_token=self.token_text(self.eos[1]), bos_token=self.token_text(self.bos[1])
            )(messages=[{"role": "user", "content": message}]).prompt
        except Exception as error:  # a template is a program that came with the file: it may raise anything
            raise ModelError(f"The chat template of {self.path.name} cannot be used: {error}.") from error
        # The template spells the opening token out where the model wants one.
        return self.tokenize(text, add_bos=False)


_S = TypeVar("_S", bound="_Sequence")


class _Sequence:
    """One sequence in one llama.cpp context: what is common to feeding it tokens and feeding it vectors."""

    def __init__(
        self, model: Model, *, n_ctx: int, n_batch: int, threads: int, keep_states: bool, vector_size: int
    ) -> None:
        if n_ctx < 1 or not 1 <= n_batch:
            raise ValueError(f"n_ctx and n_batch must be at least 1; got {n_ctx} and {n_batch}.")
        self.model = model
        handle = _new_context(model, n_ctx, min(n_batch, n_ctx), threads, keep_states=keep_states)
        self._handle = handle
        # llama.cpp rounds the context up to a multiple of 256; the promise made to the caller stays.
        self.n_ctx = n_ctx
        self.n_batch = min(n_batch, n_ctx)
        self.threads = threads
        self.in_llama_s = 0.0
        self.n_vocab = model.n_vocab
        self._batch = llama.llama_batch_init(self.n_batch, vector_size, 1)
        self._batch_positions = np.ctypeslib.as_array(self._batch.pos, (self.n_batch,))
        self._batch_wants_row = np.ctypeslib.as_array(self._batch.logits, (self.n_batch,))
        for i in range(self.n_batch):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
        self._states = np.empty((n_ctx, model.n_embd), dtype=np.float32) if keep_states else None
        self._n_held = 0
        self._cache_ahead = False
        self._finalizer = weakref.finalize(self, _free_context, handle, self._batch)

    def __enter__(self: _S) -> _S:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def handle(self) -> object:
        if self.closed:
            raise SessionError("This session was closed; open a new one.")
        if self.model.closed:
            raise SessionError(f"The model {self.model.path.name} of this session was closed; open both again.")
        return self._handle

    @property
    def n_tokens(self) -> int:
        """How many tokens (or vectors) it holds."""
        return self._n_held

    @property
    def states(self) -> np.ndarray | None:
        """The last layer's states after the final norm, float32 of shape (n_tokens, n_embd); None when not kept.

        Row i belongs to the i-th token held. The output matrix times a row gives its logits. A
        view: read it before the next ``extend`` or copy it.
        """
        return None if self._states is None else self._states[: self._n_held]

    @property
    def cache_bytes_per_token(self) -> float | None:
        """Keys and values of one token, as llama.cpp would save them; None while nothing is held."""
        held = self._n_held
        return llama.llama_state_seq_get_size(self.handle, 0) / held if held else None

    def rewind(self, n_keep: int) -> None:
        """Forgets every token past the first ``n_keep``. An absolute length, so doing it twice is harmless.

        Raises SessionError where llama.cpp reports that this cache cannot be cut.
        """
        handle = self.handle
        if not 0 <= n_keep <= self._n_held:
            raise SessionError(f"Cannot keep {n_keep} tokens: the session holds {self._n_held}.")
        if n_keep == self._n_held and not self._cache_ahead:
            return
        _cut(handle, self.model, 0, n_keep, self._n_held)
        self._n_held = n_keep
        self._cache_ahead = False

    def logits(self, row: int) -> np.ndarray:
        """Logits of one row of the last pass, float32 of shape (n_vocab,).

        A view of llama.cpp's own buffer: nothing is copied, and it is valid until the next ``extend``.
        row: index in the last pass; -1 is its last token.
        """
        pointer = llama.llama_get_logits_ith(self.handle, row)
        if not pointer:
            raise SessionError(f"Row {row} of the last pass has no logits; it was evaluated without asking for them.")
        return np.ctypeslib.as_array(pointer, (self.n_vocab,))

    def _check_fits(self, n: int, rows: Rows) -> None:
        if not n:
            raise SessionError("A pass needs at least one token; none were given.")
        if self._n_held + n > self.n_ctx:
            raise SessionError(
                f"The context holds {self.n_ctx} tokens; {self._n_held} are there and {n} more do not fit. "
                "Use a shorter prompt, fewer new tokens or a larger n_ctx."
            )
        if rows == "all" and n > self.n_batch:
            raise SessionError(
                f"{n} tokens need logits in one pass, but a pass holds {self.n_batch} (n_batch). "
                "Use a smaller k, or open the session with a larger n_batch."
            )

    def _extend(self, n: int, rows: Rows, fill: Callable[[slice], None]) -> None:
        """Evaluates n more in as many passes as they need. fill: puts a slice of them into the batch."""
        if self._cache_ahead:
            self.rewind(self._n_held)
        handle = self.handle  # raises after ``close``, when the batch that is filled next is freed memory
        for start in range(0, n, self.n_batch):
            part = slice(start, min(start + self.n_batch, n))
            fill(part)
            self._pass(handle, part.stop - part.start, rows if part.stop == n else "none")

    def _pass(self, handle: object, n: int, rows: Rows) -> None:
        held = self._n_held
        self._batch.n_tokens = n
        self._batch_positions[:n] = range(held, held + n)
        # llama.cpp keeps states for rows with logits only, so keeping states means wanting every row.
        self._batch_wants_row[:n] = rows == "all" or self._states is not None
        self._batch_wants_row[n - 1] |= rows != "none"
        # From here until the tokens are noted, an interrupt leaves the cache ahead of the count;
        # the next extend or rewind then trims it back.
        self._cache_ahead = True
        start = perf_counter()
        code = llama.llama_decode(handle, self._batch)
        llama.llama_synchronize(handle)
        self.in_llama_s += perf_counter() - start
        if code != 0:
            self.rewind(held)
            raise SessionError(_refusal(f"{n} tokens at position {held}", code))
        if self._states is not None:
            rows_out = np.ctypeslib.as_array(llama.llama_get_embeddings(handle), (n, self.model.n_embd))
            self._states[held : held + n] = rows_out
        self._n_held = held + n
        self._cache_ahead = False


class Session(_Sequence):
    """One sequence in one llama.cpp context: tokens go in, logits come out, and it can be rewound.

    n_ctx: the most tokens it can hold. n_batch: the most tokens in one pass.
    keep_states: also keep the last layer's state of every token (``states``); every row then costs
    an output row, asked for or not.
    """

    def __init__(
        self, model: Model, *, n_ctx: int = 2048, n_batch: int = 512, threads: int, keep_states: bool = False
    ) -> None:
        super().__init__(model, n_ctx=n_ctx, n_batch=n_batch, threads=threads, keep_states=keep_states, vector_size=0)
        self._batch_tokens = np.ctypeslib.as_array(self._batch.token, (self.n_batch,))
        self._tokens: list[int] = []

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens evaluated so far, in order. Read only: a live view, not a copy."""
        # An interrupt between a pass and noting its tokens, or between a cut and forgetting them, leaves more
        # here than are held; what is held is always a prefix of them.
        del self._tokens[self._n_held :]
        return self._tokens

    def extend(self, tokens: Sequence[int], *, rows: Rows = "all") -> None:
        """Evaluates tokens after those already there.

        rows: which of them get logits. "all" needs the tokens to fit one pass (n_batch); "last"
        and "none" may be longer and go in several passes. Raises SessionError naming the numbers
        when the context or the batch would overflow; nothing was evaluated then.
        """
        self._check_fits(len(tokens), rows)
        _check_vocabulary(tokens, self.n_vocab)

        def fill(part: slice) -> None:
            del self._tokens[self._n_held :]
            self._tokens.extend(tokens[part])
            self._batch_tokens[: part.stop - part.start] = tokens[part]

        self._extend(len(tokens), rows, fill)

    def probe_rollback(self) -> None:
        """Refuses, before any text, a model whose cache cannot take tokens back.

        Feeds two tokens, removes the second, feeds it again and compares its logits. Leaves the
        session empty. Raises SessionError naming the architecture. (llama.cpp's own probe, in
        common/common.cpp, stops after the removal; a cache can allow that and still be wrong.)
        """
        self.rewind(0)
        try:
            self.extend([0, 1])
            before = self.logits(-1).copy()
            if not np.isfinite(before).all():
                raise SessionError("Its logits are no finite numbers, so its weights are damaged.")
            self.rewind(1)
            self.extend([1])
            spread = float(before.max() - before.min())
            moved = float(np.abs(self.logits(-1) - before).max())
            if not moved <= _PROBE_TOLERANCE * spread:
                raise SessionError(f"After a rollback its logits differ by {moved:.3g} (their range is {spread:.3g}).")
        except SessionError as reason:
            raise SessionError(
                f"{self.model.path.name} ({self.model.architecture}) cannot be used for speculative decoding, which "
                f"takes refused drafts back. {reason} Use a model with attention in every layer (llama, qwen2, gemma "
                "and the like), or leave it out to use the embedded one."
            ) from None
        finally:
            self.rewind(0)


class VectorSession(_Sequence):
    """One sequence whose model reads vectors in place of token embeddings: a trained drafter's.

    Its states are always kept. Shapes as in ``Session``; ``n_tokens`` counts vectors.
    """

    def __init__(self, model: Model, *, n_ctx: int = 2048, n_batch: int = 512, threads: int) -> None:
        super().__init__(
            model, n_ctx=n_ctx, n_batch=n_batch, threads=threads, keep_states=True, vector_size=model.n_embd
        )
        self._batch_vectors = np.ctypeslib.as_array(self._batch.embd, (self.n_batch, model.n_embd))

    def extend(self, vectors: np.ndarray) -> None:
        """Evaluates vectors, float32 of shape (n, n_embd), after those already there; every row gets logits.

        n may exceed a pass; then only the last pass's rows can be read.
        """
        self._check_fits(len(vectors), "last")

        def fill(part: slice) -> None:
            self._batch_vectors[: part.stop - part.start] = vectors[part]

        self._extend(len(vectors), "last", fill)


class BatchSession:
    """Several sequences in one llama.cpp context, so that one pass evaluates rows of all of them.

    n_ctx: the most tokens each can hold. n_batch: the most rows in one pass, all sequences together.
    ``sequences`` are used like sessions of their own, except that only ``extend`` shares a pass.

    The cache is one for all (llama.cpp's ``kv_unified``): with a part for each, llama.cpp cuts a batch
    into passes in which every sequence has as many rows, and drafts differ in length.
    Raises SessionError where llama.cpp cannot make the context. Rollback is not probed here:
    ``Session.probe_rollback`` does that for the model.
    """

    def __init__(self, model: Model, n_sequences: int, *, n_ctx: int = 512, n_batch: int = 512, threads: int) -> None:
        if n_sequences < 1 or n_ctx < 1 or n_batch < 1:
            raise ValueError(
                f"n_sequences, n_ctx and n_batch must be at least 1; got {n_sequences}, {n_ctx} and {n_batch}."
            )
        self.model = model
        self.n_ctx = n_ctx
        self.n_batch = min(n_batch, n_sequences * n_ctx)
        self.threads = threads
        self.n_vocab = model.n_vocab
        self.in_llama_s = 0.0
        handle = _new_context(model, n_sequences * n_ctx, self.n_batch, threads, n_sequences=n_sequences)
        self._handle = handle
        self._batch = llama.llama_batch_init(self.n_batch, 0, 1)
        self._batch_tokens = np.ctypeslib.as_array(self._batch.token, (self.n_batch,))
        self._batch_positions = np.ctypeslib.as_array(self._batch.pos, (self.n_batch,))
        self._batch_wants_row = np.ctypeslib.as_array(self._batch.logits, (self.n_batch,))
        for i in range(self.n_batch):
            self._batch.n_seq_id[i] = 1
        self._n_last = 0
        self._finalizer = weakref.finalize(self, _free_context, handle, self._batch)
        # Weak, or session and sequences would keep each other until the next garbage collection.
        self.sequences = tuple(BatchSequence(weakref.proxy(self), i) for i in range(n_sequences))

    def __enter__(self) -> BatchSession:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._finalizer()

    @property
    def handle(self) -> object:
        if not self._finalizer.alive:
            raise SessionError("This session was closed; open a new one.")
        if self.model.closed:
            raise SessionError(f"The model {self.model.path.name} of this session was closed; open both again.")
        return self._handle

    @property
    def n_tokens(self) -> int:
        """How many tokens all sequences hold together."""
        return sum(sequence.n_tokens for sequence in self.sequences)

    def extend(self, tokens: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """One pass over tokens of several sequences, each after those it holds; every row gets logits.

        tokens: index of a sequence -> its tokens. Returns index -> the row of its first token, as
        ``logits`` counts them. Raises SessionError naming the numbers when a sequence or the batch
        would overflow; nothing was evaluated then.
        """
        self._pass(tokens, wants_rows=True)
        first_row, rows = {}, 0
        for index, each in tokens.items():
            first_row[index] = rows
            rows += len(each)
        return first_row

    def logits(self, row: int) -> np.ndarray:
        """Logits of one row of the last pass, float32 of shape (n_vocab,); a view as in ``Session.logits``."""
        # llama.cpp counts negative rows from the end of its output; here rows are those of ``extend``.
        pointer = llama.llama_get_logits_ith(self.handle, row) if 0 <= row < self._n_last else None
        if not pointer:
            raise SessionError(f"Row {row} of the last pass has no logits; it had {self._n_last} rows with logits.")
        return np.ctypeslib.as_array(pointer, (self.n_vocab,))

    def _pass(self, tokens: Mapping[int, Sequence[int]], *, wants_rows: bool) -> None:
        handle = self.handle
        n = self._check_fits(tokens)
        stop = 0
        for index, each in tokens.items():
            sequence = self.sequences[index]
            sequence.trim()
            start, stop = stop, stop + len(each)
            self._batch_tokens[start:stop] = each
            self._batch_positions[start:stop] = range(sequence.n_tokens, sequence.n_tokens + len(each))
            for row in range(start, stop):
                self._batch.seq_id[row][0] = index
        self._batch.n_tokens = n
        self._batch_wants_row[:n] = wants_rows
        self._n_last = 0
        # From here until the tokens are noted, an interrupt leaves the cache ahead of what the sequences count.
        for index in tokens:
            self.sequences[index].cache_ahead = True
        start_s = perf_counter()
        code = llama.llama_decode(handle, self._batch)
        llama.llama_synchronize(handle)
        self.in_llama_s += perf_counter() - start_s
        if code != 0:
            for index in tokens:
                self.sequences[index].trim()
            raise SessionError(_refusal(f"{n} tokens of {len(tokens)} sequences", code))
        for index, each in tokens.items():
            self.sequences[index].note(len(each))
        self._n_last = n if wants_rows else 0

    def _check_fits(self, tokens: Mapping[int, Sequence[int]]) -> int:
        """How many rows the pass has."""
        for index, each in tokens.items():
            if not 0 <= index < len(self.sequences):
                raise SessionError(
                    f"There is no sequence {index}; they are numbered from 0 to {len(self.sequences) - 1}."
                )
            if not each:
                raise SessionError(f"A pass needs at least one token of sequence {index}; leave it out instead.")
            _check_vocabulary(each, self.n_vocab)
            held = self.sequences[index].n_tokens
            if held + len(each) > self.n_ctx:
                raise SessionError(
                    f"Sequence {index} holds {held} of {self.n_ctx} tokens and {len(each)} more do not fit. Use a "
                    "shorter prompt, fewer new tokens or a larger n_ctx."
                )
        n = sum(map(len, tokens.values()))
        if not 1 <= n <= self.n_batch:
            raise SessionError(
                f"A pass holds between 1 and {self.n_batch} tokens (n_batch); got {n} of {len(tokens)} sequences. Use "
                "a smaller k, fewer sequences or a larger n_batch."
            )
        return n


class BatchSequence:
    """One sequence of a ``BatchSession``: what it holds, and how to change that without the others."""

    states = None  # a head would need them kept for every row; it drafts for one sequence at a time

    def __init__(self, session: BatchSession, index: int) -> None:
        self.index = index
        self.n_tokens = 0
        self.cache_ahead = False
        self._session = session

    @property
    def n_ctx(self) -> int:
        return self._session.n_ctx

    @property
    def n_vocab(self) -> int:
        return self._session.n_vocab

    @property
    def n_batch(self) -> int:
        return self._session.n_batch

    def extend(self, tokens: Sequence[int], *, rows: Rows = "all") -> None:
        """Evaluates tokens of this sequence alone, in a pass of its own; with rows "none" in as many as they need."""
        if rows != "none":
            self._session.extend({self.index: tokens})
            return
        for start in range(0, max(1, len(tokens)), self.n_batch):
            self._session._pass({self.index: tokens[start : start + self.n_batch]}, wants_rows=False)

    def rewind(self, n_keep: int) -> None:
        """Forgets every token past the first ``n_keep``, as ``Session.rewind`` does; the others keep theirs."""
        handle = self._session.handle
        if not 0 <= n_keep <= self.n_tokens:
            raise SessionError(f"Cannot keep {n_keep} tokens: sequence {self.index} holds {self.n_tokens}.")
        if n_keep == self.n_tokens and not self.cache_ahead:
            return
        _cut(handle, self._session.model, self.index, n_keep, self.n_tokens)
        self.n_tokens = n_keep
        self.cache_ahead = False

    def trim(self) -> None:
        """Cuts off what an interrupted or refused pass left in the cache."""
        if self.cache_ahead:
            self.rewind(self.n_tokens)

    def note(self, n: int) -> None:
        """A pass has evaluated n more of its tokens."""
        self.n_tokens += n
        self.cache_ahead = False


class Sampler:
    """llama.cpp's sampler chain: penalties, top-k, top-p, min-p, temperature, draw. Greedy at temperature 0.

    prompt: tokens before the first draw; the penalties look back into them (tools/server/
    server-context.cpp, init_sampler). Each call of ``draw`` uses up one random number and adds its token
    to what the penalties look at, and nothing else does. The loop draws only for tokens it emits, so
    text with and without speculation consumes the same randomness and is penalised alike.
    """

    def __init__(self, sampling: Sampling, *, prompt: Sequence[int] = ()) -> None:
        self.sampling = sampling
        self._chain = None
        if sampling.greedy and sampling.penalties is None:
            return
        self._chain = chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        weakref.finalize(self, llama.llama_sampler_free, chain)
        for link in self._links():
            llama.llama_sampler_chain_add(chain, link)
        if sampling.penalties is not None:
            for token in prompt[-sampling.penalties.last_n :]:
                llama.llama_sampler_accept(chain, token)

    def _links(self) -> Iterator[object]:
        sampling, penalties = self.sampling, self.sampling.penalties
        if penalties is not None:
            # The vocabulary's size (0 here) matters only where llama.cpp samples on the device.
            yield llama.llama_sampler_init_penalties(
                0, penalties.last_n, penalties.repeat, penalties.frequency, penalties.presence
            )
        if sampling.greedy:
            yield llama.llama_sampler_init_greedy()
            return
        yield llama.llama_sampler_init_top_k(sampling.top_k)
        yield llama.llama_sampler_init_top_p(sampling.top_p, 1)
        yield llama.llama_sampler_init_min_p(sampling.min_p, 1)
        yield llama.llama_sampler_init_temp(sampling.temperature)
        yield llama.llama_sampler_init_dist(sampling.seed)

    def draw(self, session: Session, row: int) -> int:
        """The target's own token at a row of its last pass."""
        if self._chain is None:
            return int(session.logits(row).argmax())
        session.logits(row)  # raises where llama.cpp would end the process: it asserts that the row is there
        start = perf_counter()
        # Applies the chain and accepts the token it chose: the only place where the state moves on.
        token = llama.llama_sampler_sample(self._chain, session.handle, row)
        session.in_llama_s += perf_counter() - start
        return token

    def choice(self, logits: np.ndarray) -> int:
        """The token that the next ``draw`` would choose from these logits, shape (n_vocab,). The state stays."""
        if self._chain is None:
            return int(logits.argmax())
        rows = np.empty(len(logits), dtype=_TOKEN_DATA)
        rows["id"], rows["logit"], rows["p"] = np.arange(len(logits)), logits, 0.0
        data = rows.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
        candidates = llama.llama_token_data_array(data=data, size=len(rows), selected=-1, sorted=False)
        copy = llama.llama_sampler_clone(self._chain)
        try:
            llama.llama_sampler_apply(copy, ctypes.byref(candidates))
            return int(candidates.data[candidates.selected].id)
        finally:
            llama.llama_sampler_free(copy)


_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""llama_token_data, llama.h."""


def quantize(source: Path, destination: Path, format: str, *, threads: int) -> None:
    """Writes ``source`` again in another weight format (llama_model_quantize, requantising allowed).

    Raises ModelError when the format is unknown or llama.cpp fails; the destination is then absent.
    """
    file_type = next((value for value, name in _FORMAT_NAMES.items() if name == format), None)
    if file_type is None:
        raise ModelError(f"{format!r} is no weight format of llama.cpp; known: {', '.join(_FORMAT_NAMES.values())}.")
    params = llama.llama_model_quantize_default_params()
    params.ftype = file_type
    params.allow_requantize = True
    params.nthread = threads
    with _native_complaints() as said:
        code = llama.llama_model_quantize(str(source).encode(), str(destination).encode(), ctypes.byref(params))
    if code != 0:
        destination.unlink(missing_ok=True)
        reason = " ".join(said)
        raise ModelError(f"llama.cpp could not write {source.name} as {format} (code {code}). {reason}".rstrip())


def name_without_format(path: Path) -> str:
    """What people call a model: its file's name without the weight format at the end."""
    ending = next((f for f in sorted(_FORMAT_NAMES.values(), key=len, reverse=True) if path.stem.endswith(f)), "")
    return path.stem.removesuffix(ending).rstrip(".-_") or path.stem


def read_format(path: Path) -> str:
    """The weight format a file says it has; its weights are not loaded."""
    with Model(path, vocabulary_only=True) as model:
        return model.format


def _format_name(file_type: int) -> str:
    """llama.cpp's name for ``general.file_type``."""
    return _FORMAT_NAMES.get(file_type, f"file type {file_type}")


def _new_context(
    model: Model, n_ctx: int, n_batch: int, threads: int, *, keep_states: bool = False, n_sequences: int = 1
) -> object:
    """A llama.cpp context of n_ctx tokens in all. Raises SessionError with what llama.cpp said."""
    params = llama.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = n_batch
    params.n_threads = params.n_threads_batch = threads
    params.n_seq_max = n_sequences
    params.kv_unified = n_sequences > 1
    # Layers with a sliding window would otherwise forget what has left it, and a rollback could not bring it back.
    params.swa_full = True
    params.no_perf = True
    if keep_states:
        params.embeddings = True
        params.pooling_type = llama.LLAMA_POOLING_TYPE_NONE
    with _native_complaints() as said:
        handle = llama.llama_init_from_model(model.handle, params)
    if not handle:
        reason = said[0] if said else "llama.cpp gave no reason"
        raise SessionError(
            f"llama.cpp could not make a context of {n_ctx} tokens for {model.path.name}: {reason}. "
            "Try a smaller n_ctx."
        )
    return handle


def _cut(handle: object, model: Model, sequence: int, n_keep: int, n_held: int) -> None:
    """Removes a sequence's tokens from position n_keep on. Raises SessionError where the cache cannot do that."""
    memory = llama.llama_get_memory(handle)
    # A cache that has dropped what left a sliding window lets itself be cut, and is wrong from then on.
    whole = llama.llama_memory_seq_pos_min(memory, sequence) <= 0
    if not llama.llama_memory_seq_rm(memory, sequence, n_keep, -1) or (n_keep > 0 and not whole):
        raise SessionError(f"The cache of {model.architecture} cannot be cut back to {n_keep} of {n_held} tokens.")


def _check_vocabulary(tokens: Sequence[int], n_vocab: int) -> None:
    if min(tokens) < 0 or max(tokens) >= n_vocab:
        bad = next(t for t in tokens if not 0 <= t < n_vocab)
        raise SessionError(f"Token id {bad} is outside the vocabulary of {n_vocab}.")


def _refusal(what: str, code: int) -> str:
    """What to say when llama_decode returned ``code``."""
    reason = _DECODE_CODES.get(code, "fatal error")
    return f"llama.cpp refused a pass over {what} (code {code}: {reason}). {' '.join(_recent_log)}".rstrip()


def _free_context(handle: object, batch: object) -> None:
    llama.llama_batch_free(batch)
    llama.llama_free(handle)


_FORMAT_NAMES = {
    value: name.removeprefix("LLAMA_FTYPE_").removeprefix("MOSTLY_").removeprefix("ALL_")
    for name, value in vars(llama).items()
    if name.startswith("LLAMA_FTYPE_") and isinstance(value, int)
}

# A pass over one token may round differently from a pass over two; a wrong cache is off by far more.
_PROBE_TOLERANCE = 0.05

_DECODE_CODES = {1: "no free slot in the cache", 2: "aborted", -1: "invalid batch"}
