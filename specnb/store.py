"""Result files: the only place that opens them. JSON in and out, checked field by field.

A file is one record. Its first keys say what it is and where it comes from::

    {"schema": "specnb/cost-curve/1", "recorded_on": "2025-11-29", "label": ..., "machine": {...}, ...}

The dataclasses of ``records`` are the schema: one codec walks their type hints, so a new record
needs no code here. The rules of the format:

* A field whose default says "not known" or "none" (None, "", an empty tuple or mapping) may be
  absent. A number never may: an absent time must not turn into 0 s.
* A tuple of flat records (the cycles of a run) is a table, ``{"columns": [...], "rows": [[...]]}``.
* Floats are rounded to six significant digits. No NaN, no infinity; nothing is negative unless its
  field says ``metadata={"signed": True}``.
* Records of other people's work carry their own ``provenance`` text and no ``recorded_on``.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from datetime import date
from functools import cache
from numbers import Real
from operator import index
from pathlib import Path

from . import records
from .records import (
    CostCurve,
    Cycle,
    DraftCost,
    FieldReports,
    LayerSearch,
    LearningCurve,
    Machine,
    PublishedStudy,
    Run,
)

DATA = Path(__file__).resolve().parents[1] / "data"
"""The data folder of the clone that the package is installed from."""

MAX_BYTES = 64 * 2**20
"""A larger file is refused unread; the longest run this package makes takes a few hundred kilobytes."""

# The version of each record's file format, raised when its fields change meaning; 1 unless listed.
_VERSIONS: dict[type, int] = {}

_LARGEST_INTEGER = 2**63 - 1
_LINE_LENGTH = 118

Record = typing.TypeVar("Record")


class BadRecord(ValueError):
    """A file that is not the record it should be. The message names file, field and value."""


@dataclass(frozen=True)
class Saved(typing.Generic[Record]):
    """A record and what its file says about its making; published work has neither day nor machine of its own."""

    record: Record
    recorded_on: date | None
    machine: Machine | None

    @property
    def recorded(self) -> str:
        """The label a figure carries: "2025-11-29 on Apple M3 Max", or the publication it comes from."""
        told = getattr(self.record, "recorded", "") or getattr(self.record, "provenance", "")
        return told or f"{self.recorded_on} on {self.machine.name}"


def schema_of(record_type: type) -> str:
    """What ``schema`` says in a file of this record: "specnb/cost-curve/1"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", record_type.__name__).lower()
    return f"specnb/{words}/{_VERSIONS.get(record_type, 1)}"


# --- Saving and loading ---------------------------------------------------------------------------


def save(record: object, path: str | Path, *, machine: Machine | None = None, recorded_on: date | None = None) -> Path:
    """Writes one record and returns its path. The file is replaced in one step or not at all.

    machine: where it was made; only for records that do not say so themselves (``Run``, ``DraftCost``).
    recorded_on: the day it was made; today unless given. A loaded curve keeps its own day.
    Raises BadRecord, before anything is written, for a record that could not be loaded again.
    """
    path = Path(path)
    document = _document(record, machine, recorded_on)
    try:
        _from_document(type(record), document)
        text = _lay_out(document) + "\n"
    except _Problem as problem:
        raise BadRecord(f"{path.name} was not written: {problem}") from None
    _write(path, text)
    return path


def load(path: str | Path, record_type: type[Record]) -> Record:
    """The record in a file. Raises FileNotFoundError, or BadRecord naming file, field and value."""
    return load_saved(path, record_type).record


def load_saved(path: str | Path, record_type: type[Record]) -> Saved[Record]:
    """Like ``load``, with the day and the machine of the recording."""
    path = Path(path)
    try:
        return _from_document(record_type, _read(path))
    except _Problem as problem:
        raise BadRecord(f"{path.name}: {problem}") from None
    except RecursionError:
        raise BadRecord(f"{path.name}: is nested too deeply for a result file.") from None


def load_any(path: str | Path) -> Saved[object]:
    """Like ``load_saved``, the record's type told by the file's schema. BadRecord where no record has that one."""
    path = Path(path)
    try:
        document = _read(path)
        found = document.get("schema") if isinstance(document, dict) else None
        known = _record_types()
        if not isinstance(found, str) or found not in known:
            raise _Problem(f"is {_shown(found)}, which is no record of this specnb.").inside("schema")
        return _from_document(known[found], document)
    except _Problem as problem:
        raise BadRecord(f"{path.name}: {problem}") from None
    except RecursionError:
        raise BadRecord(f"{path.name}: is nested too deeply for a result file.") from None


@cache
def _record_types() -> Mapping[str, type]:
    types_of_records = (each for each in vars(records).values() if isinstance(each, type) and is_dataclass(each))
    return types.MappingProxyType({schema_of(each): each for each in types_of_records})


def save_curve(curve: CostCurve, path: str | Path, *, recorded_on: date | None = None) -> Path:
    return save(curve, path, recorded_on=recorded_on)


def load_curve(path: str | Path) -> CostCurve:
    """A cost curve, its ``recorded`` filled in: once it comes from a file it was not measured here and now."""
    return load(path, CostCurve)


def save_run(run: Run, path: str | Path, machine: Machine, *, recorded_on: date | None = None) -> Path:
    return save(run, path, machine=machine, recorded_on=recorded_on)


def load_run(path: str | Path) -> Run:
    """A run; ``load_saved(path, Run)`` also tells its day and machine."""
    return load(path, Run)


def save_draft_cost(cost: DraftCost, path: str | Path, machine: Machine, *, recorded_on: date | None = None) -> Path:
    return save(cost, path, machine=machine, recorded_on=recorded_on)


def load_draft_cost(path: str | Path) -> DraftCost:
    """A draft cost; ``load_saved(path, DraftCost)`` also tells its day and machine."""
    return load(path, DraftCost)


def load_m5_pro() -> PublishedStudy:
    """The M5 Pro article: staircase, runs, ledger and costs."""
    return load(_data_folder() / "published" / "m5_pro.json", PublishedStudy)


def load_field_reports() -> FieldReports:
    """Curves, counts and sweeps that users of several engines published."""
    return load(_data_folder() / "published" / "field_reports.json", FieldReports)


def load_layer_search() -> LayerSearch:
    """Which layers of the embedded model can be left out with the least harm."""
    return load(_data_folder() / "drafters" / "layer_sets.json", LayerSearch)


def load_learning_curve(drafter: str) -> LearningCurve:
    """What each stage of a shipped drafter's training brought."""
    return load(_data_folder() / "drafters" / f"{drafter}.curve.json", LearningCurve)


def _data_folder() -> Path:
    if not DATA.is_dir():
        raise FileNotFoundError(
            f"The workbook's data folder is not at {DATA}. It is part of the repository, not of an installed "
            "wheel: clone the repository and install from there with `pip install -e .` (or `make lab`)."
        )
    return DATA


def to_json(record: object) -> object:
    """A record as a JSON value without schema or stamp: for a line of a journal, which says these things once.

    Raises BadRecord for a record that could not be read again.
    """
    value = _encode(type(record), record)
    from_json(type(record), value)
    return value


def from_json(record_type: type[Record], value: object) -> Record:
    """The record that ``to_json`` gave; its floats have six significant digits. Raises BadRecord naming the field."""
    try:
        return _decode(record_type, value)
    except _Problem as problem:
        raise BadRecord(str(problem)) from None


# --- The whole document: stamp and record -----------------------------------------------------------


class _Problem(Exception):
    """Something wrong in a document. Each level it passes on its way out adds a step to the place."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said
        self.place = ""

    def inside(self, step: str) -> _Problem:
        joint = "." if self.place and not self.place.startswith("[") else ""
        self.place = f"{step}{joint}{self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place} {self.said}" if self.place else self.said


def _document(record: object, machine: Machine | None, recorded_on: date | None) -> dict[str, object]:
    """The JSON object of a file. Raises ValueError for a record that would be saved without its provenance."""
    record_type = type(record)
    if not is_dataclass(record_type):
        raise TypeError(f"Only the dataclasses of specnb.records can be saved; got a {record_type.__name__}.")
    document: dict[str, object] = {"schema": schema_of(record_type)}
    names = _schema(record_type)
    if machine is not None and not names.keys().isdisjoint({"machine", "provenance"}):
        raise ValueError(f"A {record_type.__name__} says itself where it comes from; save it without a machine.")
    if "provenance" not in names:
        if machine is None and "machine" not in names:
            raise ValueError(f"A {record_type.__name__} does not say where it was made: give save the machine.")
        day = recorded_on or _day_of(getattr(record, "recorded", ""))
        document["recorded_on"] = day.isoformat() if day else None
        if machine is not None:
            document["machine"] = _encode(Machine, machine)
    return document | _encode(record_type, record)


def _day_of(recorded: str) -> date | None:
    """Today for what was measured now; the day a recorded label begins with; None if it begins with none."""
    if not recorded:
        return date.today()
    return _iso_day(recorded[:10])


def _iso_day(text: object) -> date | None:
    """The date, for exactly YYYY-MM-DD (``fromisoformat`` alone takes other spellings from Python 3.11 on)."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _from_document(record_type: type[Record], document: object) -> Saved[Record]:
    if not isinstance(document, dict):
        raise _Problem(f"holds {_shown(document)}; expected one JSON object.")
    body = dict(document)
    _check_schema(record_type, body.pop("schema", None))
    names = _schema(record_type)
    if "provenance" in names:
        record = _decode(record_type, body)
        if not record.provenance.strip():
            raise _Problem("is empty: a published figure must say where it comes from.").inside("provenance")
        return Saved(record, None, None)

    if "recorded_on" not in body:
        raise _Problem("is missing: a recording must say when it was made.").inside("recorded_on")
    stamped = body.pop("recorded_on")
    day = _iso_day(stamped)
    machine = None
    if "machine" not in names:
        if "machine" not in body:
            raise _Problem("is missing: a recording must say where it was made.").inside("machine")
        machine = _at("machine", Machine, body.pop("machine"))
    record = _decode(record_type, body)
    machine = machine or record.machine
    if not machine.name.strip():
        raise _Problem("is empty: a recording must say where it was made.").inside("machine.name")
    if day is None and not (stamped is None and getattr(record, "recorded", "")):
        raise _Problem(f"is {_shown(stamped)}; expected a day such as 2025-11-29.").inside("recorded_on")
    if "recorded" in names and not record.recorded:
        record = replace(record, recorded=f"{day} on {machine.name}")
    return Saved(record, day, machine)


def _check_schema(record_type: type, found: object) -> None:
    expected = schema_of(record_type)
    if found == expected:
        return
    if found is None:
        raise _Problem(f'is missing; expected "{expected}". Is this a file written by specnb?').inside("schema")
    kind, _, version = found.rpartition("/") if isinstance(found, str) else ("", "", "")
    if kind != expected.rpartition("/")[0]:
        raise _Problem(f'is {_shown(found)}; expected "{expected}".').inside("schema")
    newer = version.isdecimal() and len(version) < 10 and int(version) > int(expected.rpartition("/")[2])
    advice = "It was written by a newer specnb: update the package." if newer else "Record it again."
    raise _Problem(f'is {_shown(found)}; this specnb reads "{expected}". {advice}').inside("schema")


# --- The codec ---------------------------------------------------------------------------------------


class _FieldRule(typing.NamedTuple):
    """A field of a record. missing: what an absent field means; MISSING when it may not be absent."""

    hint: object
    missing: object
    metadata: Mapping[str, object]


@cache
def _schema(record_type: type) -> Mapping[str, _FieldRule]:
    hints = typing.get_type_hints(record_type)
    return types.MappingProxyType(
        {each.name: _FieldRule(hints[each.name], _when_absent(each), each.metadata) for each in fields(record_type)}
    )


def _when_absent(each: Field) -> object:
    default = each.default_factory() if each.default_factory is not MISSING else each.default
    return default if _says_nothing(default) else MISSING


def _says_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str | tuple | Mapping) and not value)


def _is_absent(rule: _FieldRule, value: object) -> bool:
    """Whether a field may be left out: it says what its absence says. Of ``X | None`` only None does."""
    return rule.missing is not MISSING and (value is None if rule.missing is None else _says_nothing(value))


def _is_record(hint: object) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _arms(hint: object) -> tuple[object, ...]:
    """The members of ``X | None``; the hint alone when it is no union."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


@cache
def _is_flat(record_type: type) -> bool:
    """Whether a record holds plain values and tuples of them only, so that it fits one row of a table."""

    def flat(hint: object) -> bool:
        return all(
            arm in (int, float, bool, str, type(None))
            or (typing.get_origin(arm) is tuple and all(flat(each) for each in typing.get_args(arm) if each is not ...))
            for arm in _arms(hint)
        )

    return all(flat(rule.hint) for rule in _schema(record_type).values())


def _is_table(hint: object) -> bool:
    arguments = typing.get_args(hint)
    return typing.get_origin(hint) is tuple and _is_record(arguments[0]) and _is_flat(arguments[0])


def _encode(hint: object, value: object) -> object:
    """The JSON value of a Python one. Whatever does not fit its hint passes through, for ``_decode`` to refuse."""
    if value is None or isinstance(value, bool | str):
        return value
    hint = _arms(hint)[0]
    if hint is float and isinstance(value, Real):
        return _rounded(value)
    if hint is int and hasattr(value, "__index__"):
        return index(value)
    if hint is object:
        return _encode_anything(value)
    if _is_record(hint) and isinstance(value, hint):
        return {
            name: _encode(rule.hint, getattr(value, name))
            for name, rule in _schema(hint).items()
            if not _is_absent(rule, getattr(value, name))
        }
    if isinstance(value, Mapping):
        return {str(key): _encode(typing.get_args(hint)[1], value[key]) for key in sorted(value)}
    if _is_table(hint):
        return _encode_table(typing.get_args(hint)[0], value)
    if typing.get_origin(hint) is tuple and isinstance(value, tuple | list):
        arguments = typing.get_args(hint)
        hints = [arguments[0]] * len(value) if arguments[-1] is ... else arguments
        return [_encode(each, item) for each, item in zip(hints, value, strict=False)]
    return value


def _encode_anything(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _encode_anything(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [_encode_anything(each) for each in value]
    return _rounded(value) if isinstance(value, float) else value


def _encode_table(row_type: type, rows: tuple[object, ...]) -> object:
    """Columns that say nothing in any row are left out."""
    columns = [
        name
        for name, rule in _schema(row_type).items()
        if rule.missing is MISSING or not all(_is_absent(rule, getattr(row, name)) for row in rows)
    ]
    hints = [_schema(row_type)[name].hint for name in columns]
    return {
        "columns": columns,
        "rows": [[_encode(h, getattr(row, n)) for n, h in zip(columns, hints, strict=True)] for row in rows],
    }


def _rounded(value: Real) -> float:
    return float(f"{float(value):.6g}")


_NO_METADATA: Mapping[str, object] = types.MappingProxyType({})


def _decode(hint: object, value: object, metadata: Mapping[str, object] = _NO_METADATA) -> object:
    """The Python value of a JSON one, or _Problem.

    metadata: of the field; "signed" allows negative numbers, "names" names the members of its pairs.
    """
    arms = _arms(hint)
    if value is None and type(None) in arms:
        return None
    hint = arms[0]
    if hint is int:
        return _with_sign(_integer(value), metadata)
    if hint is float:
        return _with_sign(_number(value), metadata)
    if hint is str:
        return _text(value)
    if hint is bool:
        return value if isinstance(value, bool) else _refuse(value, "true or false")
    if hint is object:
        return _decode_anything(value)
    if _is_record(hint):
        return _decode_record(hint, value)
    if _is_table(hint):
        return _decode_table(typing.get_args(hint)[0], value)
    if typing.get_origin(hint) is tuple:
        return _decode_tuple(typing.get_args(hint), value, metadata)
    if typing.get_origin(hint) is Mapping:
        return _decode_mapping(*typing.get_args(hint), value, metadata)
    raise TypeError(f"The store has no rule for the type {hint} yet.")


def _at(step: str, hint: object, value: object, metadata: Mapping[str, object] = _NO_METADATA) -> object:
    """``_decode``, the step added to the place should it fail."""
    try:
        return _decode(hint, value, metadata)
    except _Problem as problem:
        raise problem.inside(step) from None


def _refuse(value: object, expected: str) -> typing.NoReturn:
    raise _Problem(f"is {_shown(value)}; expected {expected}.")


def _integer(value: object) -> int:
    if type(value) is not int:
        _refuse(value, "a whole number")
    if abs(value) > _LARGEST_INTEGER:
        raise _Problem("is a whole number of more than 64 bits.")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        _refuse(value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return number if math.isfinite(number) else _refuse(number, "a finite number")


def _with_sign(value: float, metadata: Mapping[str, object]) -> float:
    return value if value >= 0 or metadata.get("signed") else _refuse(value, "0 or more")


def _text(value: object) -> str:
    if not isinstance(value, str):
        _refuse(value, "text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _Problem(f"is {_shown(value)}, which holds half a character (a lone surrogate).")
    return value


def _decode_anything(value: object) -> object:
    """A fact without a declared type: any JSON value, made immutable."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return _decode_tuple((object, ...), value, _NO_METADATA)
    if isinstance(value, dict):
        return _decode_mapping(str, object, value, _NO_METADATA)
    return _text(value)


def _decode_tuple(arguments: tuple[object, ...], value: object, metadata: Mapping[str, object]) -> tuple[object, ...]:
    if not isinstance(value, list):
        _refuse(value, "a list")
    if arguments[-1] is ...:
        return tuple(_at(f"[{i}]", arguments[0], each, metadata) for i, each in enumerate(value))
    names = metadata.get("names") or [f"[{i}]" for i in range(len(arguments))]
    if len(value) != len(arguments):
        _refuse(value, f"a list of {len(arguments)} values: {', '.join(names)}")
    return tuple(_at(name, hint, each, metadata) for name, hint, each in zip(names, arguments, value, strict=True))


def _decode_mapping(key_hint: object, hint: object, value: object, metadata: Mapping[str, object]) -> object:
    if not isinstance(value, dict):
        _refuse(value, "an object")
    if key_hint is int:
        for key in value:
            if not re.fullmatch(r"0|[1-9][0-9]{0,17}", key):
                raise _Problem(f"has the key {_shown(key)}; expected whole numbers.")
    key_type = int if key_hint is int else _text
    return types.MappingProxyType({key_type(k): _at(_step(k), hint, each, metadata) for k, each in value.items()})


def _decode_record(record_type: type, value: object) -> object:
    rules = _schema(record_type)
    if not isinstance(value, dict):
        _refuse(value, f"an object with the fields of a {record_type.__name__}")
    _check_names(record_type, value)
    arguments = {
        name: _at(name, rule.hint, value[name], rule.metadata) if name in value else rule.missing
        for name, rule in rules.items()
    }
    try:
        record = record_type(**arguments)
        if isinstance(record, Cycle):
            _check_counts(record)
    except ValueError as error:
        raise _Problem(f"holds no valid {record_type.__name__}: {error}") from None
    return record


def _check_names(record_type: type, found: typing.Iterable[str]) -> None:
    rules = _schema(record_type)
    for name in found:
        if name not in rules:
            raise _Problem(f"is no field of a {record_type.__name__}; those are {', '.join(rules)}.").inside(
                _step(name)
            )
    for name, rule in rules.items():
        if rule.missing is MISSING and name not in found:
            raise _Problem(f"is missing; a {record_type.__name__} needs it.").inside(name)


def _check_counts(cycle: Cycle) -> None:
    """Counts that contradict each other would make rates above 1, which no later check would question."""
    if not cycle.kept <= cycle.tested <= len(cycle.drafted):
        raise ValueError(f"{cycle.kept} kept of {cycle.tested} tested of {len(cycle.drafted)} drafted tokens.")
    if cycle.confidences is not None and len(cycle.confidences) != len(cycle.drafted):
        raise ValueError(f"{len(cycle.confidences)} confidences for {len(cycle.drafted)} drafted tokens.")


def _decode_table(row_type: type, value: object) -> tuple[object, ...]:
    if not isinstance(value, dict) or value.keys() != {"columns", "rows"}:
        _refuse(value, "a table: an object with columns and rows")
    columns = _at("columns", tuple[str, ...], value["columns"])
    if len(set(columns)) < len(columns):
        raise _Problem(f"is {_shown(columns)}; expected each column once.").inside("columns")
    try:
        _check_names(row_type, columns)
    except _Problem as problem:
        raise problem.inside("columns") from None
    if not isinstance(value["rows"], list):
        raise _Problem(f"is {_shown(value['rows'])}; expected a list.").inside("rows")
    return tuple(_decode_row(row_type, columns, row, f"[{i}]") for i, row in enumerate(value["rows"]))


def _decode_row(row_type: type, columns: tuple[str, ...], row: object, step: str) -> object:
    if not isinstance(row, list) or len(row) != len(columns):
        raise _Problem(f"is {_shown(row)}; expected a list of {len(columns)} values, one a column.").inside(step)
    return _at(step, row_type, dict(zip(columns, row, strict=True)))


# --- Text and files ----------------------------------------------------------------------------------


def _shown(value: object) -> str:
    """A value as the file spells it, short enough for a message and safe to print."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    text = text if len(text) <= 80 else f"{text[:79]}…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _step(key: str) -> str:
    """A key as one step of a place: plain if it is a word, quoted otherwise."""
    return key if re.fullmatch(r"\w{1,60}", key) else f"[{_shown(key)}]"


def _lay_out(value: object, indent: int = 0, *, used: int = 0, rows: bool = False) -> str:
    """JSON for people: whatever fits its line stays on it, and so does each row of a table.

    indent: spaces before the line that the value begins on; used: characters before the value itself.
    """
    line = _dump(value)
    if used + len(line) <= _LINE_LENGTH or not _holds_containers(value):
        return line
    inner = indent + 2
    if isinstance(value, dict):
        heads = {key: f"{_dump(key)}: " for key in value}
        items = [heads[k] + _lay_out(v, inner, used=inner + len(heads[k]), rows=k == "rows") for k, v in value.items()]
    else:
        items = [_dump(v) if rows else _lay_out(v, inner, used=inner) for v in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = ",\n".join(" " * inner + item for item in items)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _holds_containers(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, list | dict) for v in value))


def _read(path: Path) -> object:
    """The JSON value in a file; nothing larger than MAX_BYTES and no device or pipe is ever read."""
    if not path.exists():
        raise FileNotFoundError(f"There is no result file {path}.")
    if not path.is_file():
        raise _Problem("is not a file.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    if size > MAX_BYTES or len(content) > MAX_BYTES:
        raise _Problem(f"is larger than {MAX_BYTES / 2**20:g} MiB; no result file is.")
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeats)
    except UnicodeDecodeError as error:
        raise _Problem(f"is not UTF-8 text ({error.reason} at byte {error.start}).") from None
    except ValueError as error:
        raise _Problem(f"is not valid JSON: {error}. Was it cut short or edited?") from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; of a field that is there twice no one could say which value counts."""
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Problem(f"holds the field {_shown(next(k for k in keys if keys.count(k) > 1))} twice in one object.")
    return result


def _write(path: Path, text: str) -> None:
    """All of the text or none of it: a reader never sees half a file, and a crash leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
