"""Reading single lines of an opened transcript again.

Policy: most lines are asked for in their order, so the file is read ahead in windows that follow each other. What lies
before the window (another result of parallel calls) is read by itself, so no byte is read ahead twice.
"""

from pathlib import Path

from acp_history_bridge.jsonl import decode, read_at
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["LineReader"]

_WINDOW = 64 * 1024


class LineReader:
    """An opened transcript; the line read last is kept, because the results of parallel calls can share one."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._offset = -1
        self._record: JsonMap = {}
        self._window = b""
        self._start = 0  # of the window

    def record(self, offset: int, size: int) -> JsonMap:
        """Decode the line at `offset`; empty when the file was rewritten since its skeleton was read."""
        if offset != self._offset:
            try:
                self._record = mapping(decode(self._read(offset, size)))
            except ValueError:
                self._record = {}
            self._offset = offset
        return self._record

    def _read(self, offset: int, size: int) -> bytes:
        begin = offset - self._start
        if begin < 0 or size > _WINDOW:
            return read_at(self._descriptor, offset, size)
        if begin + size > len(self._window):
            self._window = read_at(self._descriptor, offset, _WINDOW)
            self._start, begin = offset, 0
        return self._window[begin : begin + size]
