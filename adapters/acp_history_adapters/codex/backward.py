"""Lines of a file from its end towards its start, for what only the last records tell."""

from collections.abc import Iterator

from acp_history_bridge.jsonl import LINE_LIMIT, read_at

__all__ = ["end_of_lines", "lines_backward"]

_FIRST_WINDOW = 32 * 1024
_LARGEST_WINDOW = 1024 * 1024


def end_of_lines(descriptor: int, start: int, end: int) -> int:
    """Offset behind the last newline in a range; `start` when there is none."""
    window = _FIRST_WINDOW
    while end > start:
        position = max(start, end - window)
        found = read_at(descriptor, position, end - position).rfind(b"\n")
        if found >= 0:
            return position + found + 1
        end, window = position, min(window * 4, _LARGEST_WINDOW)
    return start


def lines_backward(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines of a range, the last one first; both ends are starts of lines, and long lines are left out."""
    window = _FIRST_WINDOW
    rest, too_long = b"", False  # what is known of the line that began before the window
    while end > start:
        position = max(start, end - window)
        pieces = (read_at(descriptor, position, end - position) + rest).split(b"\n")
        for piece in reversed(pieces[1:]):
            if piece and not too_long:
                yield piece
            too_long = False
        rest = pieces[0]
        if len(rest) > LINE_LIMIT:
            rest, too_long = b"", True
        end, window = position, min(window * 4, _LARGEST_WINDOW)
    if rest and not too_long:
        yield rest
