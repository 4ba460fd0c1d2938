"""The full-text index: what was said, one document per session, in a SQLite file of its own.

A document is cut into segments of about a megabyte, each one row of a contentless FTS5 table, so that an appended turn
rewrites one segment and not a conversation of many megabytes. The redacted text of a segment is kept compressed beside
it: FTS5 needs it to take a row out again, and snippets are made from it.

Like the index, the file is a cache: damaged, it is set aside and built anew.
"""

import hashlib
import zlib
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_history_bridge.adapter import Fingerprint, Unit
from acp_history_bridge.database import Schema, open_database
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.jsonl import read_at

__all__ = ["SEGMENT_SIZE", "Document", "Resume", "TextStore", "document_of"]

SEGMENT_SIZE = 1 << 20
_SEGMENT_BITS = 16
# Level 1 packs conversation text to 44 %, level 6 to 40 % at three times the CPU.
_COMPRESSION = 1
_MARK_SIZE = 4096

_SCHEMA = Schema(
    application_id=0x41435054,  # "ACPT"
    version=1,
    statements=(
        """
        CREATE TABLE document (
            id INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL UNIQUE,
            path TEXT NOT NULL,
            size INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL,
            inode INTEGER NOT NULL,
            beside INTEGER NOT NULL,
            with_output INTEGER NOT NULL,
            resume_at INTEGER NOT NULL,
            resume_mark BLOB NOT NULL,
            segments INTEGER NOT NULL
        )""",
        "CREATE TABLE segment (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE VIRTUAL TABLE words USING fts5 (body, content = '', tokenize = 'unicode61 remove_diacritics 2')",
        "CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
    tables=frozenset({"document", "segment", "words", "state"}),
)


@dataclass(frozen=True, slots=True)
class Resume:
    """Where reading of a transcript can go on: behind bytes that have this digest. Offset 0 means "from the start"."""

    offset: int = 0
    digest: bytes = b""

    @classmethod
    def at(cls, path: Path, offset: int) -> "Resume":
        """Remember an offset with the few kilobytes before it."""
        start = max(0, offset - _MARK_SIZE)
        if offset:
            try:
                with open_regular(path) as descriptor:
                    before = read_at(descriptor, start, offset - start)
                return cls(offset, hashlib.blake2b(before, digest_size=16).digest())
            except (TranscriptError, OSError):
                pass  # it has gone meanwhile: the next run starts afresh or drops it
        return cls()


@dataclass(frozen=True, slots=True)
class Document:
    """What is stored of a session's text, and of which state of its transcript."""

    id: int
    session_id: str
    path: str
    fingerprint: Fingerprint
    with_output: bool
    resume: Resume
    segments: int


class TextStore:
    """The file. Used from one thread; several processes may read while one writes."""

    def __init__(self, path: Path | None) -> None:
        database = open_database(path, _SCHEMA)
        self.notice = database.notice
        self.connection = database.connection

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Make all changes inside visible at once, or none."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def documents(self) -> dict[str, Document]:
        """Everything indexed so far, by session id."""
        rows = self.connection.execute("SELECT * FROM document")
        return {row[1]: _document(row) for row in rows}

    def replace(self, session_id: str, unit: Unit, text: str, resume: Resume, *, with_output: bool) -> None:
        """Store a session's whole text in place of what there was."""
        self.remove([session_id])
        segments = _cut(text)
        place = unit.fingerprint
        cursor = self.connection.execute(
            "INSERT INTO document VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(session_id, str(unit.path), place.size, place.mtime_ns, place.inode, place.beside),
                *(with_output, resume.offset, resume.digest, len(segments)),
            ),
        )
        first = (cursor.lastrowid or 0) << _SEGMENT_BITS
        for number, body in enumerate(segments):
            self._write(first + number, body)

    def extend(self, document: Document, unit: Unit, text: str, resume: Resume) -> None:
        """Add what was appended to a transcript; only the last segment is written again."""
        segments = document.segments
        if text:
            last = (document.id << _SEGMENT_BITS) + max(0, segments - 1)
            before = self._take_out(last) if segments else ""
            pieces = _cut(f"{before}\n{text}" if before else text)
            for number, body in enumerate(pieces):
                self._write(last + number, body)
            segments = max(0, segments - 1) + len(pieces)
        place = unit.fingerprint
        self.connection.execute(
            "UPDATE document SET size = ?, mtime_ns = ?, inode = ?, beside = ?, resume_at = ?, resume_mark = ?,"
            " segments = ? WHERE id = ?",
            (
                place.size,
                place.mtime_ns,
                place.inode,
                place.beside,
                resume.offset,
                resume.digest,
                segments,
                document.id,
            ),
        )

    def remove(self, session_ids: Iterable[str]) -> None:
        """Take sessions out."""
        for session_id in session_ids:
            row = self.connection.execute(
                "DELETE FROM document WHERE session_id = ? RETURNING id, segments", (session_id,)
            ).fetchone()
            if row is not None:
                for number in range(row[1]):
                    self._take_out((row[0] << _SEGMENT_BITS) + number)

    def body(self, segment: int) -> str:
        """The redacted text of a segment."""
        row = self.connection.execute("SELECT body FROM segment WHERE id = ?", (segment,)).fetchone()
        return "" if row is None else zlib.decompress(row[0]).decode("utf-8")

    def session_ids(self, documents: Collection[int]) -> dict[int, str]:
        """The sessions of some documents."""
        marks = ",".join("?" * len(documents))
        return dict(
            self.connection.execute(
                f"SELECT id, session_id FROM document WHERE id IN ({marks})",  # noqa: S608 - only question marks
                tuple(documents),
            )
        )

    def segments_of_long_documents(self) -> list[int]:
        """All segments of those documents that have more than one."""
        rows = self.connection.execute("SELECT id, segments FROM document WHERE segments > 1")
        return [(number << _SEGMENT_BITS) + segment for number, count in rows for segment in range(count)]

    def finished(self) -> bool:
        """Whether a build has gone through to the end since the last change that it knows of."""
        row = self.connection.execute("SELECT value FROM state WHERE name = 'finished'").fetchone()
        return row is not None and row[0] == "yes"

    def set_finished(self, *, finished: bool) -> None:
        """Remember whether the index holds every session."""
        self.connection.execute(
            "INSERT INTO state VALUES ('finished', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            ("yes" if finished else "no",),
        )

    def _write(self, segment: int, body: str) -> None:
        self.connection.execute(
            "INSERT INTO segment VALUES (?, ?)", (segment, zlib.compress(body.encode("utf-8"), _COMPRESSION))
        )
        self.connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (segment, body))

    def _take_out(self, segment: int) -> str:
        body = self.body(segment)
        self.connection.execute("INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", (segment, body))
        self.connection.execute("DELETE FROM segment WHERE id = ?", (segment,))
        return body


def document_of(segment: int) -> int:
    """Which document a segment belongs to."""
    return segment >> _SEGMENT_BITS


def _document(row: Sequence[Any]) -> Document:
    number, session_id, path, size, mtime_ns, inode, beside, with_output, offset, digest, segments = row
    fingerprint = Fingerprint(size, mtime_ns, inode, beside)
    return Document(number, session_id, path, fingerprint, bool(with_output), Resume(offset, digest), segments)


def _cut(text: str) -> list[str]:
    """Cut a text into segments, at line ends where there are any."""
    segments: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + SEGMENT_SIZE)
        if end < len(text):
            newline = text.rfind("\n", start + SEGMENT_SIZE // 2, end)
            end = newline + 1 if newline >= 0 else end
        segments.append(text[start:end])
        start = end
    return segments
