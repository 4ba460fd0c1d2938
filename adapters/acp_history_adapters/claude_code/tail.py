"""Reading a transcript's lines from its end.

Policy: memory is bounded by the longest line, and a line over the limit is passed over without being kept. Line ends
are searched for one by one: that is several times faster than `split`, which looks at every byte.
"""

from collections.abc import Callable, Iterator

from acp_history_bridge.jsonl import LINE_LIMIT, read_at

__all__ = ["WINDOW", "lines_backward"]

WINDOW = 64 * 1024  # what the tool itself looks at; most files are answered by it
_LARGEST_BLOCK = 1024 * 1024


def lines_backward(descriptor: int, end: int, enough: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Yield each line before byte `end` with its offset, last one first; one over the limit comes out empty.

    Beyond the window nothing is read once there is `enough`: a line that the window cuts is left out then.
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
