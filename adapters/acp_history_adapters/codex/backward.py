"""Lines of a file from its end towards its start, for what only the last records tell."""

from collections.abc import Iterator

from acp_history_bridge.jsonl import LINE_LIMIT, read_at, read_lines

__all__ = ["end_of_lines", "lines_backward", "marked_lines_backward"]

_FIRST_WINDOW = 16 * 1024
_LARGEST_WINDOW = 1024 * 1024


def end_of_lines(descriptor: int, start: int, end: int) -> int:
    """Offset behind the last newline in a range; `start` when there is none."""
    for position, data in _windows(descriptor, start, end):
        found = data.rfind(b"\n")
        if found >= 0:
            return position + found + 1
    return start


def lines_backward(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines of a range, the last one first; both ends are starts of lines, and long lines are left out."""
    rest, too_long = b"", False  # what is known of the line that began before the window
    for _, data in _windows(descriptor, start, end):
        pieces = (data + rest).split(b"\n")
        for piece in reversed(pieces[1:]):
            if piece and not too_long:
                yield piece
            too_long = False
        rest = pieces[0]
        if len(rest) > LINE_LIMIT:
            rest, too_long = b"", True
    if rest and not too_long:
        yield rest


def marked_lines_backward(descriptor: int, mark: bytes, start: int, end: int) -> Iterator[bytes]:
    """As `lines_backward`, but only lines that hold a mark; the others are not taken apart."""
    for position, data in _windows(descriptor, start, end, overlap=len(mark) - 1):
        found = data.rfind(mark)
        while found >= 0:
            first, last = data.rfind(b"\n", 0, found), data.find(b"\n", found)
            if first >= 0 and last >= 0:
                yield data[first + 1 : last]
            else:
                beginning = end_of_lines(descriptor, start, position + found)
                yield next((line.data or b"" for line in read_lines(descriptor, beginning, end)), b"")
            found = data.rfind(mark, 0, max(first, 0))


def _windows(descriptor: int, start: int, end: int, overlap: int = 0) -> Iterator[tuple[int, bytes]]:
    """Pieces of a range from its end on, each larger than the one before, with their offsets."""
    window, upper = _FIRST_WINDOW, end
    while upper > start:
        position = max(start, upper - window)
        yield position, read_at(descriptor, position, min(upper + overlap, end) - position)
        upper, window = position, min(window * 4, _LARGEST_WINDOW)
