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
from collections.abc import Callable, Iterator, Sequence
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
    Raises ModelError when the file is missing or llama.cpp refuses it.
    """

    def __init__(self, path: str | Path, *, gpu_layers: int = -1, vocabulary_only: bool = False) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ModelError(
                f"There is no model file at {self.path}. Check the path, or leave it out to use the embedded model."
            )
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
        data = text.encode()
        room = len(data) + 8
        ids = (llama.llama_token * room)()
        n = llama.llama_tokenize(self._vocab, data, len(data), ids, room, add_bos, parse_special)
        if n < 0:
            raise ModelError(f"llama.cpp could not tokenize {len(data)} bytes of text (it asked for {-n} tokens).")
        return tuple(ids[:n])

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens as nothing. May be part of a character."""
        if token not in self._pieces:
            if not 0 <= token < self.n_vocab:
                raise ValueError(f"Token id {token} is outside the vocabulary of {self.n_vocab}.")
            buffer = ctypes.create_string_buffer(256)
            n = llama.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False)
            self._pieces[token] = buffer.raw[: max(0, n)]
        return self._pieces[token]

    def text(self, tokens: Sequence[int]) -> str:
        """Text of tokens; bytes that do not form a character yet become U+FFFD."""
        return b"".join(self.piece(token) for token in tokens).decode("utf-8", "replace")

    def token_text(self, token: int) -> str:
        """The vocabulary's own spelling of a token (what a pair check compares)."""
        return (llama.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        """Whether the token ends a generation."""
        return bool(llama.llama_vocab_is_eog(self._vocab, token))

    @property
    def vocab_type(self) -> int:
        return llama.llama_vocab_type(self._vocab)

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
        text = Jinja2ChatFormatter(
            template.decode(), eos_token=self.token_text(self.eos[1]), bos_token=self.token_text(self.bos[1])
        )(messages=[{"role": "user", "content": message}]).prompt
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
        params = llama.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = params.n_ubatch = min(n_batch, n_ctx)
        params.n_threads = params.n_threads_batch = threads
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
        self._handle = handle
        # llama.cpp rounds the context up to a multiple of 256; the promise made to the caller stays.
        self.n_ctx = n_ctx
        self.n_batch = params.n_batch
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

    def rewind(self, n_keep: int) -> None:
        """Forgets every token past the first ``n_keep``. An absolute length, so doing it twice is harmless.

        Raises SessionError where llama.cpp reports that this cache cannot be cut.
        """
        handle = self.handle
        if not 0 <= n_keep <= self._n_held:
            raise SessionError(f"Cannot keep {n_keep} tokens: the session holds {self._n_held}.")
        if n_keep == self._n_held and not self._cache_ahead:
            return
        if not llama.llama_memory_seq_rm(llama.llama_get_memory(handle), 0, n_keep, -1):
            raise SessionError(
                f"The cache of {self.model.architecture} cannot be cut back to {n_keep} of {self._n_held} tokens. "
                "Speculative decoding needs a cache that can; use another model."
            )
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
                "Use a smaller k or a larger n_batch."
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
            raise SessionError(
                f"llama.cpp refused a pass over {n} tokens at position {held} (code {code}: "
                f"{_DECODE_CODES.get(code, 'fatal error')}). {' '.join(_recent_log)}".rstrip()
            )
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
        if min(tokens) < 0 or max(tokens) >= self.n_vocab:
            bad = next(t for t in tokens if not 0 <= t < self.n_vocab)
            raise SessionError(f"Token id {bad} is outside the vocabulary of {self.n_vocab}.")

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
            self.rewind(1)
            self.extend([1])
            spread = float(before.max() - before.min())
            moved = float(np.abs(self.logits(-1) - before).max())
            if not moved <= _PROBE_TOLERANCE * spread:
                raise SessionError(f"after a rollback its logits differ by {moved:.3g} (their range is {spread:.3g})")
        except SessionError as reason:
            raise SessionError(
                f"{self.model.path.name} ({self.model.architecture}) cannot be used for speculative decoding: a "
                f"refused draft has to be taken back, but {reason} Use a model with plain attention, or decode "
                "without speculation."
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


class Sampler:
    """llama.cpp's sampler chain: top-k, top-p, min-p, temperature, draw. Greedy at temperature 0.

    Its random state moves on by exactly one draw for each call of ``draw``. The loop draws only
    for tokens it emits, so text with and without speculation consumes the same randomness.
    """

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._chain = None
        if not sampling.greedy:
            chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
            for link in (
                llama.llama_sampler_init_top_k(sampling.top_k),
                llama.llama_sampler_init_top_p(sampling.top_p, 1),
                llama.llama_sampler_init_min_p(sampling.min_p, 1),
                llama.llama_sampler_init_temp(sampling.temperature),
                llama.llama_sampler_init_dist(sampling.seed),
            ):
                llama.llama_sampler_chain_add(chain, link)
            self._chain = chain
            weakref.finalize(self, llama.llama_sampler_free, chain)

    def draw(self, session: Session, row: int) -> int:
        """The target's own token at a row of its last pass."""
        if self._chain is None:
            return int(session.logits(row).argmax())
        session.logits(row)  # raises where llama.cpp would end the process: it asserts that the row is there
        start = perf_counter()
        token = llama.llama_sampler_sample(self._chain, session.handle, row)
        session.in_llama_s += perf_counter() - start
        return token


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
