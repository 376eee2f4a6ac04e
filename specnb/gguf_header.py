"""The header of a GGUF file, read in plain Python and held against the file's size before anything else reads it.

Model files come from strangers. llama.cpp ends its process on some headers (one without layers,
for instance), and the gguf package makes as many objects as a damaged length asks for. Nothing
here allocates more than the file holds, and whatever passes bounds what those two will do.

The layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from gguf.constants import GGML_QUANT_SIZES, GGUF_DEFAULT_ALIGNMENT

VERSIONS = (2, 3)
"""What llama.cpp reads. Version 1 had other widths and no files of it are left."""

MOST_ELEMENTS = 4_000_000
"""Of all arrays together. The largest vocabularies need 1.3 million (tokens, scores, types and merges)."""

MOST_TENSORS, MOST_VALUES = 100_000, 10_000
LONGEST_NAME, LONGEST_TEXT = 65_535, 16 * 2**20
MOST_DIMENSIONS = 4
MOST_UNUSED = 16 * 2**30
"""Bytes from the start of the last tensor on, where they are most of the file: a hole, that would be read for hours."""

LEAST_CONTEXT = 32
"""Tokens: room for a short prompt and a draft."""

SHORT_STEP = 4096
LARGEST_ALIGNMENT = 65_536

_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _ARRAY = 8, 9

_BLOCKS: dict[int, tuple[int, int]] = {int(kind): sizes for kind, sizes in GGML_QUANT_SIZES.items()}
"""Type of a tensor -> (values of a block, bytes of a block)."""

# The fewest bytes that a key with its value, and a tensor's entry, can take.
_LEAST_VALUE, _LEAST_TENSOR = 8 + 1 + 4 + 1, 8 + 1 + 4 + 8 + 4 + 8

Value = int | float | bool | str


class BadFile(ValueError):
    """A file that is no model file, or a damaged one. The message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor's entry. shape: as stored, fastest dimension first. start: its first byte, from the file's."""

    name: str
    shape: tuple[int, ...]
    type: int
    start: int


@dataclass(frozen=True, slots=True)
class Header:
    """values: numbers and texts by key. lengths: of the arrays by key, whose elements are not kept."""

    version: int
    values: dict[str, Value] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    tensors: tuple[Entry, ...] = ()

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))


def read(path: str | Path) -> Header:
    """The header of a file whose every count, length and offset fits the file.

    Kept for the last few files while they stay as they are. Raises BadFile for anything else,
    folders, pipes, devices and files that cannot be opened included; it never waits for a pipe.
    """
    path = Path(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        raise BadFile(f"There is no model file at {path}.") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise BadFile(f"{path} cannot be opened: {_reason(error)}.") from None
    seen = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
    if seen not in _kept:
        header = _read(path)
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[seen] = header
    return _kept[seen]


_MOST_KEPT = 8
_kept: dict[tuple[str, int, int, int], Header] = {}


def _read(path: Path) -> Header:
    try:
        # Opening a pipe without O_NONBLOCK would wait for a writer; Windows has neither the flag nor the danger.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise BadFile(f"{path} is {_kind(status.st_mode)}, not a file. Give the path of a GGUF file.")
            return _Reader(path, file, status.st_size).header()
    except OSError as error:
        what = "is a folder, not a file" if path.is_dir() else f"cannot be read: {_reason(error)}"
        raise BadFile(f"{path} {what}. Give the path of a GGUF file.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for is_kind, name in kinds.items() if is_kind(mode)), "a device")


class _Reader:
    """Walks a header once, front to back."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path, self._file, self._size = path, file, size
        self._at = 0
        self._elements = 0

    def header(self) -> Header:
        if self._size == 0:
            self._refuse("it is empty")
        magic = self._bytes(4, "the first four bytes")
        if magic != b"GGUF":
            self._refuse(f"it begins with {magic!r} where every GGUF file begins with b'GGUF'")
        version = self._number("<I", "the version")
        if version not in VERSIONS:
            self._refuse(f"its version is {version}; known are {' and '.join(map(str, VERSIONS))}")
        n_tensors = self._count("tensors", _LEAST_TENSOR, MOST_TENSORS)
        n_values = self._count("values", _LEAST_VALUE, MOST_VALUES)
        header = Header(version)
        for _ in range(n_values):
            self._value(header)
        self._check_values(header)
        return Header(version, header.values, header.lengths, self._tensors(n_tensors, header))

    # -- values ------------------------------------------------------------------------------

    def _value(self, header: Header) -> None:
        key = self._text("a key", LONGEST_NAME)
        if key in header.values or key in header.lengths:
            self._refuse(f"the key {_shown(key)} is there twice")
        kind = self._number("<I", f"the type of {_shown(key)}")
        if kind in _NUMBERS:
            header.values[key] = self._number(_NUMBERS[kind], _shown(key))
        elif kind == _TEXT:
            header.values[key] = self._text(_shown(key), LONGEST_TEXT)
        elif kind == _ARRAY:
            header.lengths[key] = self._array(key)
        else:
            self._refuse(f"the value of {_shown(key)} is of the unknown type {kind}")

    def _array(self, key: str) -> int:
        kind = self._number("<I", f"the type of {_shown(key)}")
        if kind not in _NUMBERS and kind != _TEXT:
            self._refuse(f"{_shown(key)} is a list of the unknown type {kind}")
        width = 8 if kind == _TEXT else struct.calcsize(_NUMBERS[kind])
        length = self._number("<Q", f"the length of {_shown(key)}")
        self._elements += length
        if length * width > self._left or self._elements > MOST_ELEMENTS:
            self._refuse(f"{_shown(key)} is a list of {length}, more than the file can hold or any model needs")
        if kind != _TEXT:
            self._skip(length * width, _shown(key))
        else:
            self._skip_texts(length, key)
        return length

    def _skip_texts(self, length: int, key: str) -> None:
        """Vocabularies have hundreds of thousands of these, so nothing is called that need not be."""
        read, unpack, size, at = self._file.read, struct.Struct("<Q").unpack, self._size, self._at
        for _ in range(length):
            at += 8
            n = unpack(read(8))[0] if at <= size else 0
            at += n
            if n > LONGEST_TEXT or at > size:
                self._refuse(f"it ends within {_shown(key)}, or a text there is too long")
            read(n)
        self._at = at

    def _check_values(self, header: Header) -> None:
        """What ends a process later on, or leaves nothing to run."""
        alignment = header.values.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= LARGEST_ALIGNMENT or alignment & (alignment - 1):
            self._refuse(f"general.alignment is {alignment!r}; a power of two is needed")
        for what, least in (("block_count", 1), ("context_length", LEAST_CONTEXT), ("embedding_length", 1)):
            key = f"{header.architecture}.{what}"
            value = header.values.get(key, least)
            if type(value) is not int or not least <= value < 2**31:
                self._refuse(f"{key} is {_shown(str(value))}; {least} or more is needed, and no more than 31 bits")

    # -- tensors -----------------------------------------------------------------------------

    def _tensors(self, n: int, header: Header) -> tuple[Entry, ...]:
        entries = [self._entry() for _ in range(n)]
        alignment = int(header.values.get("general.alignment", GGUF_DEFAULT_ALIGNMENT))
        data = -(-self._at // alignment) * alignment
        if len({entry.name for entry in entries}) < n:
            self._refuse("two of its tensors have the same name")
        placed = tuple(self._placed(entry, data, alignment) for entry in entries)
        unused = self._size - max((entry.start for entry in placed), default=self._at)
        if unused > MOST_UNUSED and unused > self._size // 2:
            self._refuse(f"of its {self._size} bytes, {unused} follow the start of the last tensor")
        return placed

    def _entry(self) -> Entry:
        name = self._text("a tensor's name", LONGEST_NAME)
        what = f"the entry of tensor {_shown(name)}"
        n_dimensions = self._number("<I", what)
        if n_dimensions > MOST_DIMENSIONS:
            self._refuse(f"tensor {_shown(name)} has {n_dimensions} dimensions; {MOST_DIMENSIONS} are the most")
        shape = tuple(self._number("<Q", what) for _ in range(n_dimensions))
        return Entry(name, shape, self._number("<I", what), self._number("<Q", what))

    def _placed(self, entry: Entry, data: int, alignment: int) -> Entry:
        """The entry with its place counted from the start of the file, its data within it."""
        n = 1
        for size in entry.shape:
            n *= size
        if n == 0:
            self._refuse(f"tensor {_shown(entry.name)} has the shape {entry.shape}: it holds nothing")
        if entry.start % alignment:
            self._refuse(f"tensor {_shown(entry.name)} begins at {entry.start}, which is no multiple of {alignment}")
        # A type that the gguf package does not know yet: llama.cpp may, and says so when it does not either.
        per_block, block_bytes = _BLOCKS.get(entry.type, (1, 0))
        if not entry.shape or entry.shape[0] % per_block:
            self._refuse(f"tensor {_shown(entry.name)} of shape {entry.shape} is not made of blocks of {per_block}")
        start = data + entry.start
        end = start + n // per_block * block_bytes
        if end > self._size:
            self._refuse(f"tensor {_shown(entry.name)} ends at byte {end}, and the file has {self._size}")
        return Entry(entry.name, entry.shape, entry.type, start)

    # -- bytes -------------------------------------------------------------------------------

    @property
    def _left(self) -> int:
        return self._size - self._at

    def _count(self, what: str, least_bytes: int, most: int) -> int:
        n = self._number("<Q", f"the number of {what}")
        if n > most or n * least_bytes > self._left:
            self._refuse(f"it announces {n} {what}, more than the file can hold or any model has")
        return n

    def _number(self, layout: str, what: str) -> int:
        return struct.unpack(layout, self._bytes(struct.calcsize(layout), what))[0]

    def _length(self, what: str, longest: int) -> int:
        n = self._number("<Q", f"the length of {what}")
        if n > longest or n > self._left:
            self._refuse(f"{what} is {n} bytes long, more than the file can hold or any model needs")
        return n

    def _text(self, what: str, longest: int) -> str:
        return self._bytes(self._length(what, longest), what).decode("utf-8", "replace")

    def _bytes(self, n: int, what: str) -> bytes:
        found = self._file.read(n) if n <= self._left else b""
        if len(found) < n:
            self._refuse(f"it ends within {what}")
        self._at += n
        return found

    def _skip(self, n: int, what: str) -> None:
        if n > self._left:
            self._refuse(f"it ends within {what}")
        if n < SHORT_STEP:  # stays within the buffer, where reading is faster than seeking
            self._bytes(n, what)
        else:
            self._file.seek(n, os.SEEK_CUR)
            self._at += n

    def _refuse(self, reason: str) -> NoReturn:
        raise BadFile(
            f"{self._path.name} is no readable GGUF file: {reason}. If it was downloaded or copied, it may be "
            "incomplete: fetch it again; if it is no GGUF file, convert it first."
        )


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:59]}…")
