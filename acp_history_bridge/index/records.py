"""Session records and adapter state as JSON in the database.

Only what differs from a field's default is written. Types are checked on the way in, because adapters can be third
parties' code and a wrong type must be the fault of one unit, not of the transaction that stores it. What does not
decode any more means that the database is damaged.
"""

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import attrgetter
from types import NoneType
from typing import Any

import orjson

from acp_history_bridge.adapter import SessionRecord
from acp_history_bridge.errors import AdapterError, IndexStoreError
from acp_history_bridge.jsonl import decode

__all__ = ["DamagedIndexError", "decode_record", "decode_state", "encode_record", "encode_state"]

_TYPES: dict[str, tuple[type, ...]] = {
    "native_id": (str,),
    "updated_at": (datetime,),
    "origin": (str,),
    "displaced": (bool,),
    "rank": (int,),
    "title": (str, NoneType),
    "cwd": (str, NoneType),
    "cwd_digest": (str, NoneType),
    "additional_directories": (tuple,),
    "created_at": (datetime, NoneType),
    "kind": (str,),
    "listed": (bool,),
    "parent": (str, NoneType),
    "message_count": (int, NoneType),
    "archived": (bool,),
    "headless": (bool,),
    "branch": (str, NoneType),
    "model": (str, NoneType),
    "mode": (str, NoneType),
    "tool_version": (str, NoneType),
    "continued_in": (str, NoneType),
}
_FIELDS = tuple((field.name, _TYPES[field.name], field.default) for field in dataclasses.fields(SessionRecord))
_values = attrgetter(*(name for name, _, _ in _FIELDS))
# Without these, orjson would write a date or a dataclass as if it were JSON, and it would come back as something else.
_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


class DamagedIndexError(IndexStoreError):
    """A row holds what this program never writes."""


def encode_record(record: SessionRecord) -> bytes:
    """Write a record.

    Raises:
        AdapterError: A field has a type that the contract does not allow.
    """
    data: dict[str, object] = {}
    for (name, types, default), value in zip(_FIELDS, _values(record), strict=True):
        if not isinstance(value, types):
            raise AdapterError(f"{name} is a {type(value).__name__}")
        if value != default:
            data[name] = _time(name, value) if isinstance(value, datetime) else value
    return _dump(data)


def decode_record(data: bytes) -> SessionRecord:
    """Read a record back.

    Raises:
        DamagedIndexError: It is none.
    """
    try:
        fields: Any = decode(data)  # what is wrong with it, the constructor or a type error tells
        for name in ("updated_at", "created_at"):
            if name in fields:
                fields[name] = datetime.fromisoformat(fields[name])
        if "additional_directories" in fields:
            fields["additional_directories"] = tuple(fields["additional_directories"])
        return SessionRecord(**fields)
    except (ValueError, TypeError) as error:
        raise DamagedIndexError(f"a stored record cannot be read: {type(error).__name__}") from error


def encode_state(state: Mapping[str, object]) -> bytes:
    """Write an adapter's state.

    Raises:
        AdapterError: It holds something that is not JSON.
    """
    return _dump(dict(state))


def decode_state(data: bytes) -> Mapping[str, object]:
    """Read an adapter's state back.

    Raises:
        DamagedIndexError: It is none.
    """
    try:
        state: Any = decode(data)
        return dict[str, object](state)
    except (ValueError, TypeError) as error:
        raise DamagedIndexError("a stored state cannot be read") from error


def _time(name: str, time: datetime) -> str:
    if time.tzinfo is None:
        raise AdapterError(f"{name} has no time zone")
    return time.astimezone(UTC).isoformat()


def _dump(data: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(data, option=_STRICT)
    except TypeError:
        pass  # lone surrogates and big integers are JSON all the same: the standard library writes them
    try:
        return json.dumps(data).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise AdapterError(f"not JSON: {type(error).__name__}") from error
