"""Names that people gave their threads: `session_index.jsonl` beside the stores.

Policy: the file is append-only and the last line of a thread wins. It is read again only when its `stat` changes. The
SQLite files of Codex hold the same names but are left alone: they are rebuilt without names when they get lost, and
opening a database in WAL mode, even for reading, makes SQLite create files beside it.
"""

import zlib
from pathlib import Path

from acp_history_bridge.adapter import Fingerprint
from acp_history_bridge.files import fingerprint_of, read_small, stat_regular
from acp_history_bridge.jsonl import decode
from acp_history_bridge.values import mapping, string

__all__ = ["ThreadNames"]

_INDEX = "session_index.jsonl"
_INDEX_LIMIT = 64 * 1024 * 1024


class ThreadNames:
    """The names of one Codex home."""

    def __init__(self, home: Path) -> None:
        self._path = home / _INDEX
        self._read_at: Fingerprint | None = None
        self._names: dict[str, str] = {}

    def get(self, thread: str) -> str | None:
        """What a thread is called now; None when nobody named it."""
        return self._names.get(thread)

    def mark(self, thread: str) -> int:
        """A number that changes when the thread is renamed; 0 for a thread without a name."""
        name = self._names.get(thread)
        return 0 if name is None else zlib.crc32(name.encode("utf-8", errors="surrogatepass")) + 1

    def refresh(self) -> None:
        """Read the file if it has changed since it was read last."""
        status = stat_regular(self._path)
        now = None if status is None else fingerprint_of(status)
        if now == self._read_at:
            return
        data = read_small(self._path, _INDEX_LIMIT)
        self._names = {} if data is None else _names(data)
        self._read_at = now


def _names(data: bytes) -> dict[str, str]:
    names: dict[str, str] = {}
    for line in data.splitlines():
        try:
            record = mapping(decode(line))
        except ValueError:  # a torn last line, or garbage; the names before it stay
            continue
        thread, name = string(record.get("id")), string(record.get("thread_name"))
        if thread and name.strip():
            names[thread] = name
    return names
