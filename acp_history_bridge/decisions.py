"""What the user decided about sessions: hidden, archived, renamed.

It lies in a database of its own in the data directory, which no rebuild of the index touches: an index can be made
again from the transcripts, a decision cannot. Decisions are keyed by wire id and stay when a session vanishes, so that
a session that comes back (a mount, a restored backup) is as it was left.
"""

import logging
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from acp_history_bridge.database import Schema, open_database
from acp_history_bridge.errors import IndexStoreError
from acp_history_bridge.text import replace_surrogates

__all__ = ["Decisions"]

_Kind = Literal["hidden", "archived", "title"]

_log = logging.getLogger(__name__)

_SCHEMA = Schema(
    application_id=0x41435044,  # "ACPD"
    version=1,
    statements=(
        """
        CREATE TABLE decision (
            session_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            value TEXT NOT NULL,
            decided_at_ms INTEGER NOT NULL,
            PRIMARY KEY (session_id, kind)
        ) WITHOUT ROWID""",
    ),
    tables=frozenset({"decision"}),
)


class Decisions:
    """The decisions of one user, shared by all bridges on the machine. Used from one thread at a time."""

    def __init__(self, path: Path | None) -> None:
        database = open_database(path, _SCHEMA)
        self.notice = database.notice
        # A decision that would be forgotten with this process is refused rather than taken for made.
        self._unkept = path is not None and database.path is None
        self._connection = database.connection
        self._seen_version = -1
        self._values = _nothing()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @property
    def hidden(self) -> Mapping[str, str]:
        """Ids of hidden sessions."""
        return self._current()["hidden"]

    @property
    def archived(self) -> Mapping[str, str]:
        """Ids of sessions archived in the bridge."""
        return self._current()["archived"]

    @property
    def titles(self) -> Mapping[str, str]:
        """Titles the user gave, by id."""
        return self._current()["title"]

    def hide(self, session_id: str) -> None:
        """Leave a session out of every list; idempotent.

        Raises:
            IndexStoreError: It could not be stored, as for every method here; nothing has changed.
        """
        self._put(session_id, "hidden", "")

    def unhide(self, session_id: str) -> bool:
        """Show it again; False when it was not hidden."""
        return self._remove(session_id, "hidden")

    def archive(self, session_id: str) -> None:
        """Mark a session as archived; idempotent."""
        self._put(session_id, "archived", "")

    def unarchive(self, session_id: str) -> bool:
        """Take the mark away; False when there was none."""
        return self._remove(session_id, "archived")

    def set_title(self, session_id: str, title: str) -> None:
        """Give a session a title that no generated one replaces."""
        self._put(session_id, "title", title)

    def _put(self, session_id: str, kind: _Kind, value: str) -> None:
        self._write(
            "INSERT INTO decision VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (replace_surrogates(session_id), kind, value, time.time_ns() // 1_000_000),
        )

    def _remove(self, session_id: str, kind: _Kind) -> bool:
        return self._write("DELETE FROM decision WHERE session_id = ? AND kind = ?", (session_id, kind)) > 0

    def _write(self, statement: str, values: tuple[object, ...]) -> int:
        if self._unkept:
            raise IndexStoreError(f"this could not be stored: {self.notice}")
        try:
            return self._connection.execute(statement, values).rowcount
        except sqlite3.Error as error:
            raise IndexStoreError(f"this could not be stored: {error}") from error
        finally:
            self._seen_version = -1

    def _current(self) -> dict[_Kind, dict[str, str]]:
        """All decisions, read again only after this or another process has changed them."""
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._seen_version:
                values = _nothing()
                for session_id, kind, value in self._connection.execute("SELECT session_id, kind, value FROM decision"):
                    values.setdefault(kind, {})[session_id] = value
                self._values, self._seen_version = values, version
        except sqlite3.Error as error:  # locked for too long, or damaged: what was known last still counts
            _log.warning("decisions cannot be read: %s", error)
        return self._values


def _nothing() -> dict[_Kind, dict[str, str]]:
    return {"hidden": {}, "archived": {}, "title": {}}
