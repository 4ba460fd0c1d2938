"""JSON out of whatever a transcript held: lone surrogates, numbers beyond 64 bits and towers of brackets included."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from acp_history_bridge.text import replace_surrogates

__all__ = ["dumps"]

_DEEPEST = 200


def dumps(value: object) -> str:
    """Encode a value; what JSON or most readers of it cannot hold is repaired."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(_repaired(value, 0), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _repaired(value: object, depth: int) -> object:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, float) and not abs(value) < float("inf"):  # NaN fails every comparison
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= _DEEPEST:
        return "[… too deep …]"
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        return {replace_surrogates(str(key)): _repaired(item, depth + 1) for key, item in entries}
    if isinstance(value, Sequence):
        return [_repaired(item, depth + 1) for item in cast("Sequence[object]", value)]
    return replace_surrogates(str(value))
