"""Reading single lines of an opened transcript again."""

from pathlib import Path

from acp_history_bridge.jsonl import decode, read_at
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["LineReader"]


class LineReader:
    """An opened transcript; the line read last is kept, because the results of parallel calls can share one."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._offset = -1
        self._record: JsonMap = {}

    def record(self, offset: int, size: int) -> JsonMap:
        """Decode the line at `offset`; empty when the file was rewritten since its skeleton was read."""
        if offset != self._offset:
            try:
                self._record = mapping(decode(read_at(self._descriptor, offset, size)))
            except ValueError:
                self._record = {}
            self._offset = offset
        return self._record
