"""Where the message records of a transcript lie, and reading them again one at a time.

A record is a line of its own, or an element of the message array of a longer record: the tool rewrites its whole
message list in one `$set` line, and older versions keep all messages in one document.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import LINE_LIMIT, decode, read_at
from acp_history_bridge.values import JsonMap, items, mapping, string

__all__ = ["OVERSIZED", "Problems", "Ref", "Source", "array_of", "key_of", "message_id", "object_of"]

OVERSIZED = "oversized"
"""Stands as the type of a message that is too large to be held in memory; `content` is its size in bytes."""

_MESSAGE_START = re.compile(rb'\s*\{\s*"id":\s?"([^"\\]+)",')
_TYPE = re.compile(rb'"type":\s?"(user|gemini)"')
_HEAD = 4096
_PROBLEMS_KEPT = 100


class Ref(NamedTuple):
    """Where a message lies: the bytes of a JSON value, and which element of its message array (-1: the value)."""

    offset: int
    size: int
    place: int = -1


class Problems:
    """A list of problems that a hostile file cannot make grow without end."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._more = 0

    def add(self, problem: Problem) -> None:
        """Keep it, or at least count it; one that is known already counts once."""
        if problem in self._kept:
            return
        if len(self._kept) < _PROBLEMS_KEPT:
            self._kept.append(problem)
        else:
            self._more += 1

    def all(self) -> tuple[Problem, ...]:
        """What was kept, and a last one that counts the rest."""
        if not self._more:
            return tuple(self._kept)
        last = self._kept[-1]
        return (*self._kept, Problem(last.path, "more", f"{self._more} further problems"))


def array_of(record: JsonMap) -> Sequence[object] | None:
    """The message array of a `$set` line, a header or a document."""
    messages = (object_of(record.get("$set")) or record).get("messages")
    found = items(messages)
    return found if found is messages else None


def object_of(value: object) -> JsonMap | None:
    """The value if it is an object, which may be an empty one."""
    found = mapping(value)
    return found if found is value else None


class Source:
    """Reads single messages by reference; of longer records the last one stays decoded."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self._array: tuple[int, Sequence[object]] = (-1, ())

    def forget(self) -> None:
        """Drop what is kept decoded: the file was rewritten."""
        self._array = (-1, ())

    def message(self, ref: Ref) -> JsonMap | None:
        """The message, or None when its bytes are no JSON object (any more)."""
        if ref.size > LINE_LIMIT:
            return self._placeholder(ref)
        if ref.place < 0:
            value = self._decode(ref)
        else:
            if self._array[0] != ref.offset:
                self._array = (ref.offset, array_of(mapping(self._decode(ref))) or ())
            array = self._array[1]
            value = array[ref.place] if ref.place < len(array) else None
        return object_of(value)

    def _decode(self, ref: Ref) -> object:
        try:
            return decode(read_at(self.descriptor, ref.offset, ref.size))
        except ValueError:
            return None

    def _placeholder(self, ref: Ref) -> JsonMap:
        head = read_at(self.descriptor, ref.offset, _HEAD)
        kind = _TYPE.search(head)
        return {
            "id": message_id(head) or f"at-{ref.offset}",
            "type": OVERSIZED,
            "role": "user" if kind and kind[1] == b"user" else "gemini",
            "content": ref.size,
        }


def message_id(data: bytes) -> str:
    """The id of a message line by its first bytes, as the tool writes them; empty when they look different."""
    match = _MESSAGE_START.match(data)
    return match[1].decode("utf-8", errors="replace") if match else ""


def key_of(message: Mapping[str, object], place: int) -> str:
    """The id of a message in an array; one without gets a name by its place, so that it is not lost."""
    return string(message.get("id")) or f"#{place}"
