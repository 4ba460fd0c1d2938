"""Reading `opencode.db` beside its writer, without ever writing.

Policy:

- The database is opened with `mode=ro` and never with `immutable`, which would ignore the write-ahead log. No
  transaction stays open between two reads, so the writer's log can be merged at any time.
- In WAL mode SQLite makes a missing `-shm` even for a reader. Where there is none, no process has the database open,
  and a temporary copy of the pair is read instead; so it is where the pair cannot be opened in place.
- Columns are selected by the names that exist: opencode adds some with almost every release.
- A value over `LINE_LIMIT` is refused by SQLite before it is in memory.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from acp_history_adapters.opencode.storage import Head, Message, MessagePart, too_large
from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.jsonl import LINE_LIMIT, decode, read_at
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["DatabaseReader", "DatabaseStorage", "wal_of"]

_BUSY_SECONDS = 2.0
_WAL_VERSION = 2  # bytes 18 and 19 of the header: 1 for a rollback journal
_SESSION_COLUMNS = (
    *("id", "parent_id", "directory", "title", "version", "agent", "model", "revert"),
    *("time_created", "time_updated", "time_archived"),
)
_NEXT_GENERATION = """
    SELECT count(DISTINCT session_id) FROM session_message WHERE session_id NOT IN (SELECT session_id FROM message)
"""

_Row = tuple[object, ...]


def wal_of(path: Path) -> Path:
    """The write-ahead log beside a database."""
    return path.with_name(path.name + "-wal")


class DatabaseStorage:
    """One database file."""

    def __init__(self, path: Path, outputs: Path) -> None:
        self.path = path
        self.outputs = outputs

    @contextmanager
    def reading(self) -> "Generator[DatabaseReader]":
        """Open the database, or a copy of it.

        Raises:
            TranscriptError: It is gone, no database, or locked for too long.
        """
        try:
            with _opened(self.path) as connection:
                yield DatabaseReader(connection, self.path)
        except sqlite3.Error as error:
            raise TranscriptError(f"cannot read {self.path.name}: {error}") from error


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    if not _needs_copy(path):
        try:
            connection = _connect(path)
        except sqlite3.OperationalError:  # a directory that cannot be written, a lock that is not given up
            pass
        else:
            with closing(connection):
                yield connection
            return
    with (
        tempfile.TemporaryDirectory(prefix="acp-history-bridge-") as directory,
        closing(_connect(_copy(path, Path(directory)))) as connection,
    ):
        yield connection


def _needs_copy(path: Path) -> bool:
    with open_regular(path) as descriptor:
        header = read_at(descriptor, 0, 20)
    return header[19:] == bytes([_WAL_VERSION]) and not path.with_name(path.name + "-shm").exists()


def _copy(path: Path, directory: Path) -> Path:
    for source in (path, wal_of(path)):
        if source == path or source.exists():
            with (
                open_regular(source) as descriptor,
                os.fdopen(descriptor, "rb", closefd=False) as stream,
                (directory / source.name).open("wb") as target,
            ):
                shutil.copyfileobj(stream, target, 1024 * 1024)
    return directory / path.name


def _connect(path: Path) -> sqlite3.Connection:
    # A generator of turns may be advanced by another worker thread than the one that started it.
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.text_factory = bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE_LIMIT)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


class DatabaseReader:
    """An open database."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._columns: tuple[str, ...] | None = None
        self.problems: list[Problem] = []

    def sessions(self) -> list[JsonMap]:
        """All sessions, in the shape of the JSON files of 1.x; none and a problem in a database of something else."""
        if not self._session_columns():
            self.problems.append(Problem(self._path, "wrong-type", "no table of sessions"))
            return []
        self._report_next_generation()
        return [info for row in self._select_sessions("", ()) if (info := self._info(row))["id"]]

    def info(self, session_id: str) -> JsonMap:
        """One session; empty when there is none."""
        rows = self._select_sessions("WHERE id = ?", (session_id,)) if self._session_columns() else []
        return self._info(rows[0]) if rows else {}

    def heads(self, session_id: str, after: object = None) -> Sequence[Head]:
        """The ids of a session's messages, ordered as opencode orders them."""
        where, values = "session_id = ?", [session_id]
        if isinstance(after, tuple):
            where += " AND (time_created, id) > (?, ?)"
            values += after
        query = f"SELECT id, time_created FROM message WHERE {where} ORDER BY time_created, id"  # noqa: S608  # constant
        return [Head(_text(row[0]), (row[1], _text(row[0]))) for row in self._all(query, values)]

    def message(self, session_id: str, head: Head) -> Message | None:
        """Read one message with its parts; a damaged page costs this message only."""
        del session_id
        try:
            data = self._data("message", head.id)
            if data is None:
                return Message(head.id, {"role": "assistant"}, (too_large(head.id),))
            return Message(head.id, data, tuple(self._parts(head.id))) if data else None
        except sqlite3.DatabaseError as error:
            self.problems.append(Problem(self._path, "unreadable", str(error)))
            return None

    def _parts(self, message_id: str) -> list[MessagePart]:
        query = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
        try:
            rows = self._all(query, [message_id])
        except sqlite3.DataError:  # one of them is over the limit: take them one by one
            ids = [
                _text(row[0]) for row in self._all("SELECT id FROM part WHERE message_id = ? ORDER BY id", [message_id])
            ]
            parts = [(part_id, self._data("part", part_id)) for part_id in ids]
        else:
            parts = [(_text(row[0]), self._decoded(row[1])) for row in rows]
        return [
            too_large(part_id) if data is None else MessagePart(part_id, data)
            for part_id, data in parts
            if data is None or data
        ]

    def _data(self, table: str, row_id: str) -> JsonMap | None:
        """The JSON object of a row: None when it is too large, empty when it is gone or no JSON."""
        try:
            rows = self._all(f"SELECT data FROM {table} WHERE id = ?", [row_id])  # noqa: S608  # a constant name
        except sqlite3.DataError:
            self.problems.append(Problem(self._path, "too-large", table))
            return None
        return self._decoded(rows[0][0]) if rows else {}

    def _decoded(self, value: object) -> JsonMap:
        if not isinstance(value, bytes):
            return {}
        try:
            return mapping(decode(value))
        except ValueError:
            self.problems.append(Problem(self._path, "bad-record", "not JSON"))
            return {}

    def _session_columns(self) -> tuple[str, ...]:
        if self._columns is None:
            existing = {_text(row[1]) for row in self._all("PRAGMA table_info(session)", [])}
            self._columns = tuple(name for name in _SESSION_COLUMNS if name in existing) if "id" in existing else ()
        return self._columns

    def _select_sessions(self, where: str, values: Sequence[object]) -> list[_Row]:
        columns = ", ".join(self._session_columns())
        return self._all(f"SELECT {columns} FROM session {where}", values)  # noqa: S608  # constant names

    def _info(self, row: _Row) -> JsonMap:
        found = {
            name: _text(value) if isinstance(value, bytes) else value
            for name, value in zip(self._session_columns(), row, strict=True)
        }
        return {
            "id": _text(found.get("id")),
            "parentID": found.get("parent_id"),
            "directory": found.get("directory"),
            "title": found.get("title"),
            "version": found.get("version"),
            "agent": found.get("agent"),
            "model": self._embedded(found.get("model")),
            "revert": self._embedded(found.get("revert")),
            "time": {name: found.get(f"time_{name}") for name in ("created", "updated", "archived")},
        }

    def _embedded(self, value: object) -> JsonMap:
        return self._decoded(value.encode("utf-8", "replace")) if isinstance(value, str) and value else {}

    def _report_next_generation(self) -> None:
        """Since 1.17 there is an empty table that is to replace `message` one day; say so when that day has come."""
        try:
            count = self._all(_NEXT_GENERATION, [])[0][0]
        except sqlite3.OperationalError:  # no such table
            return
        if count:
            self.problems.append(Problem(self._path, "unknown-record", f"{count} sessions only in session_message"))

    def _all(self, query: str, values: Sequence[object]) -> list[_Row]:
        rows: list[_Row] = self._connection.execute(query, values).fetchall()
        return rows


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
