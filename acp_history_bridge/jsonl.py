"""Reading JSON Lines of any size with bounded memory.

Policy: a line longer than `LINE_LIMIT` is never held in memory; it is reported with its size. A last line without a
newline is *pending*: its writer may still be at work, so it is neither an error nor consumed. A line that orjson
refuses gets a second chance with the standard library, which accepts lone surrogates, NaN and big integers.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

__all__ = [
    "CHUNK",
    "LINE_LIMIT",
    "WINDOW",
    "Line",
    "decode",
    "lines_backward",
    "read_at",
    "read_lines",
    "select_lines",
    "split_lines",
]

LINE_LIMIT = 16 * 1024 * 1024
CHUNK = 256 * 1024
WINDOW = 64 * 1024  # of a file's end, which answers most questions
_LARGEST_BLOCK = 1024 * 1024
_HEAD = 512


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        offset: Where it starts, in bytes from the start of the file.
        size: Its length in bytes without the newline.
        data: Its bytes without newline, or None when it is longer than the limit.
        pending: True for a last line without newline.
    """

    offset: int
    size: int
    data: bytes | None
    pending: bool = False

    @property
    def end(self) -> int:
        """Offset of what follows the line."""
        return self.offset + self.size + (not self.pending)


def read_at(descriptor: int, offset: int, size: int) -> bytes:
    """Read up to `size` bytes at `offset`, fewer only at the end of the file."""
    os.lseek(descriptor, offset, os.SEEK_SET)  # os.pread silently returns nothing under pyfakefs
    chunks: list[bytes] = []
    while size > 0 and (chunk := os.read(descriptor, size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def read_lines(descriptor: int, start: int = 0, end: int | None = None, limit: int = LINE_LIMIT) -> Iterator[Line]:
    """Yield the lines from byte `start` (the start of a line) up to `end` (default: the end of the file as it grows).

    Reads in chunks and copes with a file that is appended to, truncated or replaced while it is read.
    """
    return split_lines(_chunks(descriptor, start, end), start, limit)


def _chunks(descriptor: int, position: int, end: int | None) -> Iterator[bytes]:
    while end is None or position < end:
        chunk = read_at(descriptor, position, CHUNK if end is None else min(CHUNK, end - position))
        if not chunk:
            return
        position += len(chunk)
        yield chunk


def split_lines(chunks: Iterable[bytes], offset: int = 0, limit: int = LINE_LIMIT) -> Iterator[Line]:
    """Yield the lines of a stream that comes in chunks; its first byte counts as byte `offset` of the file."""
    parts: list[bytes] = []  # the current line so far, unless it is over the limit
    size = 0
    for chunk in chunks:
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            size += len(piece)
            if parts:
                parts.append(piece)
            yield Line(offset, size, (b"".join(parts) if parts else piece) if size <= limit else None)
            offset += size + 1
            parts, size = [], 0
        size += len(pieces[-1])
        if pieces[-1] and size <= limit:
            parts.append(pieces[-1])
        elif size > limit:
            parts = []
    if size:
        yield Line(offset, size, b"".join(parts) if size <= limit else None, pending=True)


def select_lines(
    descriptor: int, start: int, wanted: Callable[[bytes], bool], limit: int = LINE_LIMIT
) -> Iterator[Line]:
    """Yield only the lines from byte `start` on whose first 512 bytes are wanted; the others are not even copied.

    A line over the limit is left out. A last line without newline comes as pending.
    """
    buffer = b""
    position = start
    passing = False  # over the rest of a line that is not wanted
    # The buffer holds a single line from its start on; it doubles, so that a long one is not copied again and again.
    while chunk := read_at(descriptor, position, max(CHUNK, len(buffer))):
        searched = len(buffer)
        position += len(chunk)
        buffer = buffer + chunk if buffer else chunk
        begin = 0
        while (newline := buffer.find(b"\n", max(begin, searched))) >= 0:
            if not passing and newline - begin <= limit and wanted(buffer[begin : min(begin + _HEAD, newline)]):
                yield Line(position - len(buffer) + begin, newline - begin, buffer[begin:newline])
            passing = False
            begin = newline + 1
        buffer = buffer[begin:]
        passing = passing or len(buffer) > limit or (len(buffer) >= _HEAD and not wanted(buffer[:_HEAD]))
        if passing:
            buffer = b""
    if buffer and wanted(buffer[:_HEAD]):
        yield Line(position - len(buffer), len(buffer), buffer, pending=True)


def decode(data: bytes) -> object:
    """Decode one line.

    Returns:
        The JSON value. Text may hold lone surrogates after the second chance.

    Raises:
        ValueError: It is no JSON; also for nesting that is too deep.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # The standard library's own limit depends on its version and on how deep the stack already is.
        if "depth limit" in error.msg:
            raise
        return _second_chance(data)


def _second_chance(data: bytes) -> object:
    import json

    # A power loss can leave a run of NUL before a good record; a byte order mark can stand before the first one.
    text = data.strip(b"\x00").removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    try:
        value: object = json.loads(text, strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def lines_backward(descriptor: int, end: int, enough: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Yield each line before byte `end` with its offset, last one first; one over the limit comes out empty.

    Line ends are searched for one by one: that is several times faster than `split`, which looks at every byte. Memory
    is bounded by the longest line. Beyond `WINDOW` nothing is read once there is `enough`: a line that the window cuts
    is left out then.
    """
    position, block = end, WINDOW
    parts: list[bytes] = []  # of a line that began in a block before, last piece first
    size = 0
    while position > 0:
        if position < end and enough():
            return
        step = min(block, position)
        position -= step
        block = min(block * 4, _LARGEST_BLOCK)
        data = read_at(descriptor, position, step)
        line_end = len(data)
        while (newline := data.rfind(b"\n", 0, line_end)) >= 0:
            line = data[newline + 1 : line_end]
            yield position + newline + 1, _joined([*parts, line], size + len(line)) if parts else line
            parts, size, line_end = [], 0, newline
        size += line_end
        parts = [*parts, data[:line_end]] if size <= LINE_LIMIT else [b""]
    if size:
        yield 0, _joined(parts, size)


def _joined(parts: list[bytes], size: int) -> bytes:
    return b"".join(reversed(parts)) if size <= LINE_LIMIT else b""
