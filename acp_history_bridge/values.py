"""Taking typed values out of JSON that can hold anything.

Transcripts are hostile input: every field can have any type. These helpers answer with an empty value instead of
raising, so a record with one wrong field still gives what its other fields say.
"""

from collections.abc import Mapping, Sequence
from typing import cast

__all__ = ["JsonMap", "boolean", "first_string", "integer", "items", "mapping", "maps", "number", "string"]

JsonMap = Mapping[str, object]

_EMPTY: JsonMap = {}
_INTEGER_BOUND = 2**63


def mapping(value: object) -> JsonMap:
    """The value if it is an object, else an empty one."""
    return cast("JsonMap", value) if isinstance(value, dict) else _EMPTY


def items(value: object) -> Sequence[object]:
    """The value if it is an array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def maps(value: object) -> list[JsonMap]:
    """The objects in the value if it is an array, else none."""
    return cast("list[JsonMap]", [item for item in items(value) if isinstance(item, dict)])


def string(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def first_string(source: JsonMap, *keys: str) -> str:
    """The first non-empty string among the named fields; tools rename their parameters over time."""
    for key in keys:
        value = source.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def integer(value: object) -> int | None:
    """The value if it is a whole number (not a boolean) of at most 64 bits, which is what can be passed on."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        return value
    return None


def number(value: object) -> float | None:
    """The value if it is a finite number (not a boolean)."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18:
        return float(value)
    return None


def boolean(value: object) -> bool:
    """True only for a JSON `true`."""
    return value is True
