"""How much of what goes onto the wire: no frame reaches 1 MiB, whatever a transcript holds.

Policy:

- Text of the user and the agent is never shortened: it is cut into chunks with the same message id, at most
  `PIECE_LIMIT` characters each (a character takes at most six bytes in JSON), never before a combining sign.
- Payloads of tools share one `Budget` of encoded bytes per frame. What is above its share loses its middle, because
  the beginning says what it is and the end how it went; a note says exactly how much is missing.
- Raw JSON values of tools may hold anything; they come out as JSON every parser reads, without null members.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.text import joins, replace_surrogates

__all__ = ["PIECE_LIMIT", "Budget", "bounded_id", "pieces", "plain_json", "shorten_middle"]

PIECE_LIMIT = 128 * 1024
_FRAME_BUDGET = 900 * 1024
_ID_LIMIT = 200
_DEPTH_LIMIT = 64
_LONGEST_SEQUENCE = 64
_MEMBER_OVERHEAD = 8
# A value takes two bytes at least, its comma included, so `_Cleaner` counts no byte for more than five.
_COST_OF_BYTE = 5
_ONLY_JSON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def pieces(text: str, limit: int = PIECE_LIMIT) -> Iterator[str]:
    """Cut a text into pieces that fit a frame each; together they are the text."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        while end > start + limit - _LONGEST_SEQUENCE and (joins(text[end]) or text[end - 1] == "\u200d"):
            end -= 1
        yield text[start:end]
        start = end
    yield text[start:]


def shorten_middle(text: str, limit: int, *, encoded: bool = False) -> str:
    """Leave out the middle of a text of more than `limit` bytes, and say how much that is.

    Args:
        text: The text.
        limit: What head and tail may have together.
        encoded: Count bytes as they are in JSON, not in the text itself.
    """
    if len(text) * 6 <= limit:
        return text
    text = replace_surrogates(text)
    measure = _encoded_size if encoded else _size
    size = measure(text)
    if size <= limit:
        return text
    head, tail, keep = text, "", len(text)
    while size > limit:
        keep = min(keep * limit // size, keep - keep // 16 - 1)
        head, tail = text[: keep - keep // 2], text[len(text) - keep // 2 :]
        size = measure(head) + measure(tail) if keep else 0
    left_out = text[len(head) : len(text) - len(tail)]
    return f"{head}\n[… {len(left_out):,} characters ({_size(left_out):,} bytes) left out …]\n{tail}"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _encoded_size(text: str) -> int:
    return len(orjson.dumps(text))


class Budget:
    """The encoded bytes that one frame's payload may still take.

    Most payloads are far below it, so a text counts as six bytes a character until it matters what it really takes.
    """

    def __init__(self, size: int = _FRAME_BUDGET) -> None:
        self._room = size  # never more than there is
        self._unmeasured: list[str] = []

    @property
    def remaining(self) -> int:
        """How much is left; below zero when the last text took more than there was."""
        for text in self._unmeasured:
            self._room += _most(text) - _encoded_size(replace_surrogates(text))
        self._unmeasured.clear()
        return self._room

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._room <= 0 and self.remaining <= 0

    def take(self, size: int) -> None:
        """Take some bytes."""
        self._room -= size

    def text(self, text: str, limit: int) -> str:
        """Take a text, shortened to `limit` bytes, or further to what is left."""
        short = shorten_middle(text, limit)
        if not self.allows(short) and _encoded_size(replace_surrogates(short)) > (room := max(self.remaining, 0)):
            short = shorten_middle(text, min(limit, room), encoded=True)
        self.spend(short)
        return short

    def spend(self, text: str) -> None:
        """Take a text as it is."""
        if text.isascii() and text.isprintable():
            self._room -= len(text)
        else:
            self._room -= _most(text)
            self._unmeasured.append(text)

    def block(self, block: Json) -> bool:
        """Take a content block if it fits as it is."""
        size = len(wire.encode(block))
        if size > self._left(size):
            return False
        self._room -= size
        return True

    def allows(self, text: str) -> bool:
        """Whether a short text or ASCII data fits as it is."""
        size = len(text) * (1 if text.isascii() and text.isprintable() else 6)
        return size <= self._left(size)

    def json(self, value: object, limit: int) -> object:
        """Take a JSON value, shortened to `limit` or to what is left."""
        allowed = max(self._left(limit), 0)
        size = _plain_size(value)
        if size is not None and size * _COST_OF_BYTE <= allowed:
            self._room -= size
            return value
        cleaner = _Cleaner(allowed)
        clean = cleaner.clean(value, 0)
        self._room -= allowed - cleaner.remaining
        return clean

    def _left(self, wanted: int) -> int:
        """What is left, up to `wanted`."""
        return wanted if wanted <= self._room else min(wanted, self.remaining)


def _most(text: str) -> int:
    return 6 * len(text) + 2


def _plain_size(value: object) -> int | None:
    """The encoded size of a value that can go out as it is; None where that is not certain at a glance."""
    try:
        data = orjson.dumps(value, option=_ONLY_JSON)
    except TypeError:
        return None
    # A null stands for a member to leave out, or for a number that JSON does not have.
    nested = b"null" in data or data.count(b"{") + data.count(b"[") >= _DEPTH_LIMIT
    return None if nested else len(data)


def plain_json(value: object, limit: int) -> object:
    """Make any value JSON of about `limit` encoded bytes at most; what is cut says so."""
    return Budget(limit).json(value, limit)


class _Cleaner:
    def __init__(self, limit: int) -> None:
        self.remaining = limit

    def clean(self, value: object, depth: int) -> object:
        """Copy a value, taking its size from the budget."""
        self.remaining -= _MEMBER_OVERHEAD
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**64 else self._text(hex(value))
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if depth >= _DEPTH_LIMIT:
            return "[… nested deeper …]"
        if isinstance(value, dict):
            return self._members(cast("Mapping[object, object]", value), depth)
        if isinstance(value, list | tuple):
            return self._items(cast("Sequence[object]", value), depth)
        return f"[{type(value).__name__}]"

    def _text(self, text: str) -> str:
        short = replace_surrogates(shorten_middle(text, max(self.remaining, 0), encoded=True))
        self.remaining -= _encoded_size(short)
        return short

    def _members(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        for count, (key, item) in enumerate(value.items()):
            if self.remaining <= 0:
                members["…"] = f"{len(value) - count:,} more left out"
                break
            if item is not None:
                name = self._text(key if isinstance(key, str) else str(key))
                members[name] = self.clean(item, depth + 1)
        return members

    def _items(self, value: Sequence[object], depth: int) -> list[object]:
        items: list[object] = []
        for count, item in enumerate(value):
            if self.remaining <= 0:
                items.append(f"[… {len(value) - count:,} more left out …]")
                break
            items.append(self.clean(item, depth + 1))
        return items


def bounded_id(identity: str) -> str:
    """An id from a transcript as it is, or, when it is longer than any tool makes them, its hash."""
    if len(identity) <= _ID_LIMIT:
        return identity
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
