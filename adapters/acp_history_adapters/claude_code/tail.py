"""Reading a transcript's lines from its end.

Policy: memory is bounded by the longest line, and a line over the limit is passed over without being kept.
"""

from collections.abc import Iterator

from acp_history_bridge.jsonl import LINE_LIMIT, read_at

__all__ = ["WINDOW", "lines_backward"]

WINDOW = 64 * 1024  # what the tool itself looks at; most files are answered by it
_LARGEST_BLOCK = 1024 * 1024


def lines_backward(descriptor: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line before byte `end` with its offset, last one first; one over the limit comes out empty."""
    position, block = end, WINDOW
    line_end = end
    parts: list[bytes] = []  # of the line at hand, last piece first
    size = 0
    while position > 0:
        step = min(block, position)
        position -= step
        block = min(block * 4, _LARGEST_BLOCK)
        *earlier, last = read_at(descriptor, position, step).split(b"\n")
        parts.append(last)
        size += len(last)
        for piece in reversed(earlier):
            yield line_end - size, _joined(parts, size)
            line_end -= size + 1
            parts, size = [piece], len(piece)
        if size > LINE_LIMIT:
            parts = []
    if size:
        yield line_end - size, _joined(parts, size)


def _joined(parts: list[bytes], size: int) -> bytes:
    if size > LINE_LIMIT:
        return b""
    return parts[0] if len(parts) == 1 else b"".join(reversed(parts))
