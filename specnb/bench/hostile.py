"""Damaged and hostile model files, opened through the package: how many kill the process, hang, or are badly told.

files: opened. dead_kernels: openings that ended the process or took it over its memory. hangs: not
done within 10 s. badly_told: refused, but not by an error of the package that names the file. The
openings run in a process that stands for the kernel; the files come from a fixed seed.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from .. import gguf_header, models, trained, trial
from ..backend import ModelError, SessionError
from ..lab import Lab
from ..records import Sampling

LIMIT_S = 10.0
MEMORY = 2**30
"""What an opening may take in the kernel itself; the trial's child has a limit of its own."""

QUICK_SHARE = 12
"""--quick opens every twelfth file."""

_KIND = gguf.GGUFValueType
_F32 = gguf.GGMLQuantizationType.F32
_N_EMBD, _N_FF, _N_HEAD, _N_LAYER = 32, 64, 2, 2

Write = Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """A file to make and the way to open it. path is where ``write`` puts something, or already is."""

    name: str
    how: str
    write: Write


def run(*, quick: bool) -> dict[str, object]:
    started = time.monotonic()
    ends: Counter[str] = Counter()
    worst: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        kernel: trial.Child | None = None
        sound = Path(folder) / "sound.gguf"
        _write_model(sound)
        os.environ["SPECNB_CACHE"], before = str(Path(folder) / "cache"), os.environ.get("SPECNB_CACHE")
        try:
            for number, case in enumerate(cases(sound)):
                if quick and number % QUICK_SHARE:
                    continue
                path = Path(folder) / f"{number:03}-{case.name}.gguf"
                case.write(path)
                if kernel is None or not kernel.alive:
                    kernel = trial.Child([sys.executable, "-m", "specnb.bench.hostile"])
                end, told = _opened(kernel, case.how, path, sound)
                ends[end] += 1
                if end not in ("refused", "opened"):
                    worst.append(f"{path.name} by {case.how}: {end}: {told}")
                _remove(path)
        finally:
            if kernel is not None:
                kernel.end()
            os.environ.pop("SPECNB_CACHE") if before is None else os.environ.update(SPECNB_CACHE=before)
    return {
        "files": ends.total(),
        "dead_kernels": ends["dead"],
        "hangs": ends["hung"],
        "badly_told": ends["badly told"],
        "refused": ends["refused"],
        "opened": ends["opened"],
        "worst": worst,
        "seconds": round(time.monotonic() - started, 1),
    }


def table(figures: dict[str, object]) -> str:
    return "\n".join(
        [
            f"{figures['files']} files: {figures['refused']} refused with file and reason, {figures['opened']} opened "
            f"(their damage changes no more than weights or texts), {figures['badly_told']} badly told",
            f"dead kernels {figures['dead_kernels']}, hangs {figures['hangs']}, in {figures['seconds']} s",
            *figures["worst"],
        ]
    )


def _opened(kernel: trial.Child, how: str, path: Path, sound: Path) -> tuple[str, str]:
    """(what became of it, in words) for one opening."""
    began = time.monotonic()
    answer = kernel.ask(how, (path, sound), LIMIT_S, 0.0, MEMORY)
    if answer.ok:
        return ("opened" if answer.detail == "opened" else "badly told"), answer.detail
    if kernel.alive:
        return ("refused" if path.name in answer.detail else "badly told"), answer.detail
    return ("hung" if time.monotonic() - began > LIMIT_S else "dead"), answer.detail


# -- in the kernel -----------------------------------------------------------------------------

OPENINGS: dict[str, Callable[[Path, Path], object]] = {
    "target": lambda path, _sound: _as_target(path),
    "draft": lambda path, sound: _as_draft(path, sound),
    "format": lambda path, _sound: models.in_format(path, "Q8_0"),
    "layers": lambda path, _sound: models.layer_subset(path, (0,)),
    "header": lambda path, _sound: models.reader_values(models.read_gguf(path)),
    "fingerprint": lambda path, _sound: trained.fingerprint(path),
    "weights": lambda path, _sound: trained.load(path),
}


def _as_target(path: Path) -> None:
    with Lab(str(path), threads=1) as lab:
        lab.run("abc", "ngram_simple", max_tokens=3, sampling=Sampling(temperature=1.0))


def _as_draft(path: Path, sound: Path) -> None:
    with Lab(str(sound), draft=str(path), threads=1) as lab:
        lab.run("abc", "draft_model", max_tokens=3)


def _kernel() -> None:
    """Opens what it is told to, as a notebook would."""
    trial.say(step="waiting for files")
    with trial.one_child_for_many():
        for request in trial.tasks():
            try:
                OPENINGS[request["task"]](*map(Path, request["paths"]))
                trial.say(found="opened")
            except (ModelError, SessionError) as error:
                trial.say(error=str(error))
            except Exception as error:  # what the package should have told
                trial.say(found=f"{type(error).__name__}: {error}")


# -- the files ---------------------------------------------------------------------------------


def cases(sound: Path) -> Iterator[Case]:
    """Every case, in an order that spreads the kinds; the same each time. sound: a whole file to spoil."""
    everything = [*_cut(sound), *_flipped(sound), *_absurd(sound), *_well_formed(), *_no_files(), *_embedded()]
    order = random.Random(0)
    order.shuffle(everything)
    ways = ("target", "draft", "target", "layers", "format", "header", "target", "fingerprint", "weights", "draft")
    for i, (name, write) in enumerate(everything):
        yield Case(name, ways[i % len(ways)], write)
    yield from (Case(name, "weights", write) for name, write in _drafters(sound))


Named = Iterator[tuple[str, Write]]


def _bytes(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def _parts(whole: bytes) -> dict[str, range]:
    """Where the parts of a file lie."""
    table = whole.index(b"token_embd.weight") - 8
    data = len(whole) - _N_DATA
    return {
        "counts": range(24),
        "values": range(24, table),
        "table": range(table, data - 32),
        "data": range(data, len(whole)),
    }


def _cut(sound: Path) -> Named:
    whole, order = sound.read_bytes(), random.Random(1)
    parts = _parts(whole)
    lengths = [*range(0, 26, 2), parts["table"].start, parts["data"].start, len(whole) - 1]
    lengths += order.sample(parts["values"], 50) + order.sample(parts["table"], 30) + order.sample(parts["data"], 15)
    for length in lengths:
        yield f"cut-{length}", _bytes(whole[:length])


def _flipped(sound: Path) -> Named:
    whole, order = sound.read_bytes(), random.Random(2)
    for part, n in (("counts", 50), ("values", 110), ("table", 90), ("data", 20)):
        for i in range(n):
            spoilt = bytearray(whole)
            for place in order.sample(_parts(whole)[part], order.choice((1, 1, 1, 2, 8))):
                spoilt[place] ^= order.choice((1, 2, 16, 128, 255, order.randrange(1, 256)))
            yield f"flipped-{part}-{i}", _bytes(bytes(spoilt))


def _absurd(sound: Path) -> Named:
    """A length or count of another size at each place that holds one."""
    whole = sound.read_bytes()
    huge = (0, 1, 2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1)

    def with_number(at: int, layout: str, number: int) -> Write:
        return _bytes(whole[:at] + struct.pack(layout, number) + whole[at + struct.calcsize(layout) :])

    tokens = whole.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens")
    tensor = whole.index(b"token_embd.weight") + len("token_embd.weight")
    places = {
        "n-tensors": 8, "n-values": 16, "key-length": 24, "list-length": tokens + 8, "text-length": tokens + 16,
        "name-length": tensor - 25, "columns": tensor + 4, "rows": tensor + 12, "offset": tensor + 24,
    }  # fmt: skip
    for place, at in places.items():
        for number in huge:
            yield f"{place}-{number}", with_number(at, "<Q", number)
    for place, at in {"version": 4, "value-type": tokens, "list-type": tokens + 4, "n-dims": tensor}.items():
        for number in (0, 1, 5, 9, 12, 13, 255, 2**31, 2**32 - 1):
            yield f"{place}-{number}", with_number(at, "<I", number)


def _well_formed() -> Named:
    """Headers that are in order and say something no model can mean."""
    number, text, real = _KIND.UINT32, _KIND.STRING, _KIND.FLOAT32
    for key in (
        "block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
        "attention.head_count_kv", "rope.dimension_count", "attention.key_length", "expert_count", "vocab_size",
        "expert_used_count", "attention.sliding_window",
    ):  # fmt: skip
        for value in (0, 3, 2**20, 2**31, 2**32 - 1):
            yield f"{key}-{value}", _changed({f"llama.{key}": (value, number)})
    for value in (0.0, -1.0, float("nan"), float("inf")):
        yield f"epsilon-{value}", _changed({"llama.attention.layer_norm_rms_epsilon": (value, real)})
        yield f"rope-base-{value}", _changed({"llama.rope.freq_base": (value, real)})
    for key in ("block_count", "embedding_length", "attention.head_count"):
        yield f"{key}-text", _changed({f"llama.{key}": ("many", text)})
    for value in (0, 3, 64, 2**30):
        yield f"alignment-{value}", _misaligned(value)
    for name in ("", "nonsense", "mamba", "t5", "bert", "gemma3", "clip", "../../outside", "x" * 5000):
        yield f"architecture-{len(name)}", _changed({}, architecture=name)
    for key in ("bos", "eos", "unknown", "padding"):
        for value in (_N_VOCAB, 2**31, 2**32 - 1):
            yield f"{key}-{value}", _changed({f"tokenizer.ggml.{key}_token_id": (value, number)})
    for name in ("none", "no_vocab", "bert", "llama", "gpt2", "t5", "rwkv", "plamo2", "nonsense"):
        yield f"tokenizer-{name}", _changed({"tokenizer.ggml.model": (name, text)})
    lists = {
        "tokens-few": ("tokens", ["a", "b"]), "tokens-alike": ("tokens", ["a"] * _N_VOCAB),
        "tokens-long": ("tokens", ["a" * 100_000] * _N_VOCAB), "types-few": ("token_type", [1]),
        "types-odd": ("token_type", [99] * _N_VOCAB), "merges-odd": ("merges", ["nothing", "", " "]),
        "tokens-numbers": ("tokens", [1, 2, 3]), "merges-many": ("merges", ["a b"] * 20_000),
    }  # fmt: skip
    for name, (key, value) in lists.items():
        yield name, _changed({f"tokenizer.ggml.{key}": (value, _KIND.ARRAY)})
    templates = {
        "zero": "{{ 1 // 0 }}", "syntax": "{% for %}", "undefined": "{{ a.b.c }}", "long": "{{ 'x' * 10**12 }}",
        "endless": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}", "power": "{{ 9**9**9 }}",
        "empty": "", "raise": "{{ raise_exception('no') }}",
    }  # fmt: skip
    for name, template in templates.items():
        yield f"template-{name}", _changed({"tokenizer.chat_template": (template, text)})
    for number, value in enumerate((np.nan, np.inf, 1e38)):
        yield f"weights-{number}", _changed({}, weights=lambda _name, data, value=value: np.full_like(data, value))
        yield f"embedding-{number}", _changed({}, weights=_filled("token_embd.weight", value))
        yield f"output-{number}", _changed({}, weights=_filled("output.weight", value))
    for name in ("token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.1.ffn_norm.weight"):
        yield f"lacks-{name}", _changed({}, without=name)
        yield f"transposed-{name}", _changed({}, weights=_filled(name, None))


def _misaligned(alignment: int) -> Write:
    """A file that says it is aligned as it is not."""

    def write(path: Path) -> None:
        _write_model(path, {"general.ALIGNMENT": (alignment, _KIND.UINT32)})
        path.write_bytes(path.read_bytes().replace(b"general.ALIGNMENT", b"general.alignment"))

    return write


def _filled(tensor: str, value: float | None) -> Callable[[str, np.ndarray], np.ndarray]:
    """One tensor filled with a value, or turned over."""

    def change(name: str, data: np.ndarray) -> np.ndarray:
        if name != tensor:
            return data
        return np.full_like(data, value) if value is not None else np.ascontiguousarray(data.reshape(data.shape[::-1]))

    return change


def _no_files() -> Named:
    yield "folder", lambda path: path.mkdir()
    yield "empty", lambda path: path.touch()
    yield "text", lambda path: path.write_text("no model", encoding="utf-8")
    yield "zip", _bytes(b"PK\x03\x04" + bytes(1000))
    yield "zeros", _bytes(bytes(100_000))
    yield "sparse", _sparse
    if os.name == "posix":
        yield "pipe", lambda path: os.mkfifo(path)
        yield "socket", _socket
        yield "loop", lambda path: path.symlink_to(path.name)
        yield "dangling", lambda path: path.symlink_to("nothing.gguf")
        yield "device", lambda path: path.symlink_to("/dev/zero")
        yield "unreadable", _unreadable
    yield "absent", lambda _path: None


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 2**20, 2**20))
        file.truncate(2**40)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        # The path of a socket may have about a hundred characters.
        here = os.open(path.parent, os.O_RDONLY)
        try:
            made.bind(f"/proc/self/fd/{here}/{path.name}" if sys.platform == "linux" else str(path))
        finally:
            os.close(here)


def _unreadable(path: Path) -> None:
    path.write_bytes(b"secret")  # an administrator can read it all the same, and sees that it is no model
    path.chmod(0)


def _embedded() -> Named:
    """The embedded model, cut short; where it is not installed, these are left out."""
    try:
        source = models.embedded()
        header = gguf_header.read(source)
    except (ModelError, gguf_header.BadFile):
        return
    data = min(entry.start for entry in header.tensors)
    with source.open("rb") as file:
        start = file.read(data + 4096)
    for length in (1000, 100_000, data // 2, data - 40_000, data - 1, data, data + 4096):
        yield f"embedded-{length}", _bytes(start[:length])
    for missing in (1, 1_000_000):

        def hollow(path: Path, length: int = source.stat().st_size - missing) -> None:
            path.write_bytes(start)
            os.truncate(path, length)  # the rest is a hole, which takes no room

        yield f"embedded-less-{missing}", hollow


def _drafters(sound: Path) -> Named:
    """Files of trained drafters, sealed as their makers would, that hold what no training made."""
    fingerprint = trained.fingerprint(sound)
    good: models.Values = {
        "specnb.kind": ("medusa", _KIND.STRING),
        "specnb.longest_k": (3, _KIND.UINT32),
        **{f"specnb.training.{name}": (1, _KIND.UINT32) for name in trained.TRAINING},
        "specnb.vocabulary": ([1, 2, 3], _KIND.ARRAY),
        "specnb.target.shape": (list(fingerprint.shape), _KIND.ARRAY),
        "specnb.target.tokenizer": (fingerprint.tokenizer, _KIND.STRING),
        "specnb.target.norms": (fingerprint.norms, _KIND.STRING),
        "specnb.target.sketch": ([float(x) for x in fingerprint.sketch], _KIND.ARRAY),
    }
    text = _KIND.STRING
    changes: dict[str, models.Values] = {
        "kind-path": {"specnb.kind": ("../../../outside", text)},
        "kind-root": {"specnb.kind": ("/tmp/outside", text)},
        "kind-number": {"specnb.kind": (7, _KIND.UINT32)},
        "k-text": {"specnb.longest_k": ("long", text)},
        "vocabulary-text": {"specnb.vocabulary": (["a", "b"], _KIND.ARRAY)},
        "vocabulary-number": {"specnb.vocabulary": (5, _KIND.UINT32)},
        "shape-text": {"specnb.target.shape": ("wide", text)},
        "sketch-text": {"specnb.target.sketch": ("thick", text)},
        **{f"without-{key}": {key: ("", text)} for key in list(good)[5:6]},
    }
    for name, change in changes.items():
        yield f"drafter-{name}", _sealed(good | change)
    for key in good:
        yield f"drafter-without-{key}", _sealed({k: v for k, v in good.items() if k != key})


def _sealed(values: models.Values) -> Write:
    def write(path: Path) -> None:
        models.write_gguf(path, "specnb-drafter", values, [("output_norm.weight", np.ones(8, np.float32), _F32)])
        trained.seal(path)

    return write


# -- the sound model ---------------------------------------------------------------------------

_TOKENS = [*(chr(byte) for byte in range(33, 127)), "Ġ", "Ċ", "ab", "<|end|>"]
_N_VOCAB = len(_TOKENS)


def _tensors() -> dict[str, np.ndarray]:
    random_numbers = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (_N_VOCAB, _N_EMBD), "output": (_N_VOCAB, _N_EMBD)}
    for layer in range(_N_LAYER):
        square = {f"blk.{layer}.attn_{name}": (_N_EMBD, _N_EMBD) for name in ("q", "k", "v", "output")}
        wide = {f"blk.{layer}.ffn_{name}": (_N_FF, _N_EMBD) for name in ("gate", "up")}
        shapes |= square | wide | {f"blk.{layer}.ffn_down": (_N_EMBD, _N_FF)}
    tensors = {f"{name}.weight": random_numbers.normal(size=size) / size[-1] ** 0.5 for name, size in shapes.items()}
    norms = ["output_norm", *(f"blk.{i}.{name}_norm" for i in range(_N_LAYER) for name in ("attn", "ffn"))]
    tensors |= {f"{name}.weight": np.ones(_N_EMBD) for name in norms}
    return {name: data.astype(np.float32) for name, data in tensors.items()}


_N_DATA = sum(data.nbytes for data in _tensors().values())


def _write_model(
    path: Path,
    changes: models.Values | None = None,
    *,
    architecture: str = "llama",
    weights: Callable[[str, np.ndarray], np.ndarray] = lambda _name, data: data,
    without: str = "",
) -> None:
    """A llama of two small layers whose vocabulary is ASCII."""
    kind = _KIND.UINT32
    values: models.Values = {
        "llama.context_length": (256, kind),
        "llama.embedding_length": (_N_EMBD, kind),
        "llama.block_count": (_N_LAYER, kind),
        "llama.feed_forward_length": (_N_FF, kind),
        "llama.attention.head_count": (_N_HEAD, kind),
        "llama.attention.head_count_kv": (_N_HEAD, kind),
        "llama.attention.layer_norm_rms_epsilon": (1e-5, _KIND.FLOAT32),
        "llama.rope.freq_base": (1e4, _KIND.FLOAT32),
        "general.file_type": (0, kind),
        "tokenizer.ggml.model": ("gpt2", _KIND.STRING),
        "tokenizer.ggml.pre": ("gpt-2", _KIND.STRING),
        "tokenizer.ggml.tokens": (_TOKENS, _KIND.ARRAY),
        "tokenizer.ggml.token_type": ([1] * (_N_VOCAB - 1) + [3], _KIND.ARRAY),
        "tokenizer.ggml.merges": (["a b"], _KIND.ARRAY),
        "tokenizer.ggml.bos_token_id": (_N_VOCAB - 1, kind),
        "tokenizer.ggml.eos_token_id": (_N_VOCAB - 1, kind),
    }
    tensors = [(name, weights(name, data), _F32) for name, data in _tensors().items() if name != without]
    models.write_gguf(path, architecture, values | (changes or {}), tensors)


def _changed(changes: models.Values, **others: object) -> Write:
    return lambda path: _write_model(path, changes, **others)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    _kernel()
