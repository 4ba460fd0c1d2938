"""The single-document form of a transcript (versions 0.6 to 0.38): one pretty-printed object, rewritten whole.

The layout is that of `JSON.stringify(…, null, 2)`: no string holds a raw newline, so the indentation alone says where a
message begins and ends. So messages are found one by one in bounded memory, and those of a half-written or damaged
document are still found. A document in another layout is decoded as a whole, up to `LINE_LIMIT`.

The array is the truth: nothing is folded, and a repeated id is a message of its own.
"""

import os
import re
from collections.abc import Iterator

from acp_history_adapters.gemini_cli.fold import Changes
from acp_history_adapters.gemini_cli.records import Problems, Ref, Source, array_of, key_of, message_id, object_of
from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import LINE_LIMIT, decode, read_at, read_lines
from acp_history_bridge.values import JsonMap

__all__ = ["Document", "head_fields", "is_document", "message_places", "newest_values", "root_fields"]

_HEAD = 64 * 1024
_WINDOW = 64 * 1024
_ARRAY = b'\n  "messages": ['
_ARRAY_END = b"\n    }\n  ]"
_EMPTY_ARRAY = re.compile(rb'"messages": \[\s*\],?')
_MODEL = re.compile(rb'\n      "model": "([^"\\]*)"')
_TIMESTAMP = re.compile(rb'\n      "timestamp": "([^"\\]*)"')


def is_document(descriptor: int) -> bool:
    """Whether a file begins like a pretty-printed object; a line of a JSON Lines file never does."""
    return read_at(descriptor, 0, 64).lstrip(b"\xef\xbb\xbf\x00 \t\r\n").split(b"\n", 1)[0].strip() == b"{"


def message_places(descriptor: int) -> Iterator[Ref]:
    """Where the finished messages of a document lie, in order; reads no further than it is asked."""
    begun = False
    start = -1
    for line in read_lines(descriptor):
        if line.data is None:
            continue
        if not begun:
            begun = line.data == _ARRAY[1:]
        elif line.data == b"    {":
            start = line.offset
        elif start >= 0 and line.data in {b"    }", b"    },"}:
            yield Ref(start, line.offset + 5 - start)
            start = -1
        elif line.data.startswith(b"  ]"):
            return


def root_fields(descriptor: int) -> JsonMap | None:
    """The fields before and behind the messages; None when the document is not whole."""
    head = read_at(descriptor, 0, _HEAD)
    if _ARRAY not in head or _EMPTY_ARRAY.search(head):
        return _whole(descriptor)
    before = _object(head[: head.index(_ARRAY)].rstrip().rstrip(b",") + b"}")
    behind = _fields_behind(descriptor)
    return None if before is None or behind is None else {**before, **behind}


def head_fields(descriptor: int) -> JsonMap:
    """The fields before the messages, which are there even in a half-written document."""
    head = read_at(descriptor, 0, _HEAD)
    return _object(head.partition(_ARRAY)[0].rstrip().rstrip(b",") + b"}") or {}


def _fields_behind(descriptor: int) -> JsonMap | None:
    for window in _growing_tail(descriptor):
        if (end := window.rfind(_ARRAY_END)) >= 0:
            return _object(b"{" + window[end + len(_ARRAY_END) :].lstrip(b", \r\n"))
    return None


def _growing_tail(descriptor: int) -> Iterator[bytes]:
    size = os.fstat(descriptor).st_size
    length = _WINDOW
    while True:
        yield read_at(descriptor, max(0, size - length), length)
        if length >= min(size, LINE_LIMIT):
            return
        length *= 4


def newest_values(descriptor: int) -> tuple[str, str]:
    """Timestamp of the last message, and the model that answered last; empty when there is none."""
    time = model = b""
    for window in _growing_tail(descriptor):
        time = (_TIMESTAMP.findall(window) or [time])[-1]
        model = (_MODEL.findall(window) or [model])[-1]
        if time:
            break
    return time.decode("utf-8", errors="replace"), model.decode("utf-8", errors="replace")


def _object(data: bytes) -> JsonMap | None:
    try:
        return object_of(decode(data))
    except ValueError:
        return None


def _whole(descriptor: int) -> JsonMap | None:
    size = os.fstat(descriptor).st_size
    return _object(read_at(descriptor, 0, size)) if size <= LINE_LIMIT else None


class Document:
    """The messages of one document; `advance` looks again when the file has changed."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.dropped: dict[str, Ref] = {}
        self._source = source
        self._problems = problems
        self._places: dict[str, Ref] = {}
        self._state: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        """A document may shrink: it is rewritten in place."""
        return 0

    def advance(self) -> Changes:
        """Find the messages again, unless nothing was written since."""
        status = os.fstat(self._source.descriptor)
        if (state := (status.st_size, status.st_mtime_ns)) == self._state:
            return Changes()
        self._state = state
        self._source.forget()
        self._places = dict(self._find(status.st_size))
        return Changes(dict(self._places), rebuilt=True)

    def _find(self, size: int) -> Iterator[tuple[str, Ref]]:
        seen: dict[str, int] = {}
        places = list(message_places(self._source.descriptor)) or self._elements(size)
        for number, ref in enumerate(places):
            key = self._key(ref, number)
            seen[key] = seen.get(key, 0) + 1
            yield key if seen[key] == 1 else f"{key}#{seen[key]}", ref

    def _key(self, ref: Ref, number: int) -> str:
        if ref.place < 0 and (key := message_id(read_at(self._source.descriptor, ref.offset, 256))):
            return key
        return key_of(self._source.message(ref) or {}, number)

    def _elements(self, size: int) -> list[Ref]:
        """The messages of a document in a layout that is not the tool's."""
        whole = _whole(self._source.descriptor)
        if whole is None and size:
            kind = "too-large" if size > LINE_LIMIT else "bad-document"
            self._problems.add(Problem(self._source.path, kind, f"{size} bytes"))
        return [Ref(0, size, index) for index in range(len(array_of(whole or {}) or ()))]

    def view(self) -> Iterator[tuple[str, Ref]]:
        """The messages, in order."""
        yield from self._places.items()

    def message(self, key: str, ref: Ref) -> JsonMap | None:
        """Read one message."""
        message = self._source.message(ref)
        if message is None:
            self._problems.add(Problem(self._source.path, "bad-line", f"message {key[:80]}"))
        return message
