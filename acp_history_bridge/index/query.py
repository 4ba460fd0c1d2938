"""Asking the index: pages of sessions, one session, how many there are.

Cursors name the last session of a page, so paging is stable while rows come, go and move: nothing that stays as it is
appears twice or is skipped. They are opaque, bound to the query they were made for, and to this process by a secret:
whatever else a client sends is an error.
"""

import base64
import binascii
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime

from acp_history_bridge.errors import CursorError
from acp_history_bridge.index.records import decode_record
from acp_history_bridge.index.resolve import Surroundings, folded, sort_key, time_of
from acp_history_bridge.index.tables import Tables
from acp_history_bridge.index.visibility import Visibility
from acp_history_bridge.sessions import Page, Session, SessionQuery
from acp_history_bridge.text import replace_surrogates

__all__ = ["Filter", "by_ids", "count", "find", "page", "sessions_of", "times"]

_SECRET = secrets.token_bytes(32)
_MAC_SIZE = 16
_CURSOR_LIMIT = 2048
_LIMIT = 2**31

# CROSS JOIN keeps SQLite from starting anywhere but with `session`, whose index gives the order.
_SESSIONS = """
    SELECT s.id, s.title, s.cwd, u.store_id, u.path, u.fingerprint, r.data
    FROM session AS s
    CROSS JOIN unit AS u ON u.id = s.unit_id
    CROSS JOIN record AS r ON r.unit_id = s.unit_id AND r.position = s.position
"""
_WITH_PLAIN_ID = " WHERE s.plain_id IN (SELECT value FROM json_each(?))"
_WITH_ID = "s.id IN (SELECT value FROM json_each(?))"
_TIMES = "SELECT s.id, s.sort_key FROM json_each(?) AS wanted CROSS JOIN session AS s ON s.id = wanted.value"
_COUNT = "SELECT count(*) FROM session AS s"


class Filter:
    """A query, ready for the database and for comparing with another.

    Attributes:
        home: Stands in for an unknown working directory.
        digest: The same for queries that ask for the same.
        order: What to sort by, newest activity first.
    """

    def __init__(self, query: SessionQuery, surroundings: Surroundings, visibility: Visibility) -> None:
        self.home = surroundings.home
        self._clauses: list[str] = []
        self._values: list[object] = []
        if query.cwd is not None:
            key = surroundings.directories.key(os.fspath(query.cwd))
            unknown = " OR s.cwd_key IS NULL" if key == surroundings.directories.key(self.home) else ""
            self._add(f"(s.cwd_key = ?{unknown})", key)
        if query.below is not None:
            key = surroundings.directories.key(os.fspath(query.below)).rstrip(b"/")
            self._add("(s.cwd_key = ? OR s.cwd_key >= ? AND s.cwd_key < ?)", key or b"/", key + b"/", key + b"0")
        if query.tools is not None:
            self._add("s.tool IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.tools)))
        if query.since is not None:
            self._add("s.sort_key >= ?", sort_key(query.since))
        words = set(folded(replace_surrogates(query.words)).split())
        # Few titles hold the words, so all rows are read: that is faster in the table's own order (`+` means that).
        self.order = "+s.sort_key" if words else "s.sort_key"
        asked = (self._clauses, self._values, sorted(words), query.hidden, query.archived)
        # Without what was decided: hiding a session must not make the cursors of its list stale.
        self.digest = hashlib.blake2b(repr(asked).encode(), digest_size=16).digest()
        for clause, values in visibility.clauses(query, words):
            self._add(clause, *values)

    def _add(self, clause: str, *values: object) -> None:
        self._clauses.append(clause)
        self._values.extend(values)

    def after(self, position: tuple[int, str] | None) -> tuple[str, list[object]]:
        """The WHERE clause with its values, starting after a position."""
        clauses, values = list(self._clauses), list(self._values)
        if position is not None:
            clauses.append("s.sort_key <= ? AND (s.sort_key < ? OR s.id > ?)")
            values += (position[0], position[0], position[1])
        return (f" WHERE {' AND '.join(clauses)}" if clauses else ""), values


def page(tables: Tables, wanted: Filter, limit: int, cursor: str | None) -> Page:
    """One page, newest activity first, ties by id.

    Raises:
        CursorError: The cursor was not made by this process for this query.
    """
    limit = min(max(limit, 1), _LIMIT)
    where, values = wanted.after(None if cursor is None else _read_cursor(cursor, wanted))
    rows = tables.sql.execute(  # the clauses are ours, only values come from outside
        f"{_SESSIONS}{where} ORDER BY {wanted.order} DESC, s.id LIMIT ?", (*values, limit + 1)
    ).fetchall()
    sessions = _sessions(tables, rows[:limit], wanted.home)
    return Page(sessions, _make_cursor(sessions[-1], wanted) if len(rows) > limit else None)


def count(tables: Tables, wanted: Filter) -> int:
    """How many sessions there are in all pages together."""
    where, values = wanted.after(None)
    (number,) = tables.sql.execute(_COUNT + where, values).fetchone()
    return int(number)


def times(tables: Tables, wanted: Filter, ids: Iterable[str]) -> dict[str, datetime]:
    """When those of the sessions that the query allows were last active."""
    where, values = wanted.after(None)
    rows = tables.sql.execute(_TIMES + where, (json.dumps(list(ids)), *values))
    return {session_id: time_of(key) for session_id, key in rows}


def by_ids(tables: Tables, wanted: Filter, ids: Sequence[str]) -> tuple[Session, ...]:
    """Those of these sessions that the query allows, in the order of the ids."""
    where, values = wanted.after(None)
    rows = tables.sql.execute(f"{_SESSIONS}{where or ' WHERE true'} AND {_WITH_ID}", (*values, json.dumps(ids)))
    found = {session.id: session for session in _sessions(tables, rows.fetchall(), wanted.home)}
    return tuple(found[session_id] for session_id in ids if session_id in found)


def find(tables: Tables, session_id: str, home: str) -> Session | None:
    """The session with this wire id, plain or suffixed."""
    session_id = replace_surrogates(session_id)
    rows = tables.sql.execute(
        f"{_SESSIONS} WHERE s.id = ? OR s.key = ? ORDER BY s.id = ? DESC LIMIT 1", (session_id,) * 3
    ).fetchall()
    return next(iter(_sessions(tables, rows, home)), None)


def sessions_of(tables: Tables, plain_ids: Iterable[str], home: str) -> dict[str, Session]:
    """The listed sessions with these plain ids, by wire id."""
    rows = tables.sql.execute(_SESSIONS + _WITH_PLAIN_ID, (json.dumps(list(plain_ids)),)).fetchall()
    return {session.id: session for session in _sessions(tables, rows, home)}


def _sessions(
    tables: Tables, rows: Sequence[tuple[str, str | None, bytes | None, int, bytes, str, bytes]], home: str
) -> tuple[Session, ...]:
    sessions: list[Session] = []
    for wire_id, title, cwd, store_id, path, fingerprint, data in rows:
        unit = tables.make_unit(store_id, path, fingerprint)
        directory = home if cwd is None else cwd.decode("utf-8", errors="surrogatepass")
        record = decode_record(data)
        sessions.append(Session(wire_id, unit.store.tool, unit, record, title, directory, cwd is not None))
    return tuple(sessions)


def _make_cursor(session: Session, wanted: Filter) -> str:
    payload = f"{sort_key(session.updated_at)} {session.id}".encode()
    return _text(_mac(payload, wanted) + payload)


def _read_cursor(cursor: str, wanted: Filter) -> tuple[int, str]:
    if len(cursor) > _CURSOR_LIMIT or not cursor.isascii():
        raise CursorError("this cursor was not made here")
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise CursorError("this cursor was not made here") from error
    mac, payload = data[:_MAC_SIZE], data[_MAC_SIZE:]
    if not secrets.compare_digest(mac, _mac(payload, wanted)) or _text(data) != cursor:
        raise CursorError("this cursor was made for another query, or before a restart")
    position, _, session_id = payload.decode().partition(" ")
    return int(position), session_id


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _mac(payload: bytes, wanted: Filter) -> bytes:
    return hashlib.blake2b(wanted.digest + payload, key=_SECRET, digest_size=_MAC_SIZE).digest()
