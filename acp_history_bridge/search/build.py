"""Bringing the full-text index up to date: newest sessions first, resumable, one process at a time.

It runs in a process of its own (`bridge search --update`) with low priority, because decoding gigabytes would hold the
interpreter lock of a serving agent. Each committed batch stays when the process is killed; the next one goes on after
it. Sessions that did not change cost nothing, one that only grew is read from where it was left.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from acp_history_bridge.adapter import Adapter, Passage
from acp_history_bridge.database import make_private_directory
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.index.lock import FileLock
from acp_history_bridge.search.redact import redact
from acp_history_bridge.search.store import Document, Resume, TextStore
from acp_history_bridge.sessions import Session
from acp_history_bridge.text import replace_surrogates

__all__ = ["BuildReport", "lower_priority", "only_builder", "update_text_index"]

# A transaction is closed after this many characters, so that readers see progress and a kill loses little.
_BATCH = 4 << 20
# Texts are redacted together up to this size: rules look for their anchors once per piece, not once per message.
_PIECE = 1 << 18

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BuildReport:
    """What a build did."""

    unchanged: int = 0
    extended: int = 0
    rebuilt: int = 0
    removed: int = 0
    characters: int = 0


def lower_priority() -> None:
    """Let everything else on the machine go first."""
    if hasattr(os, "nice"):
        os.nice(10)


@contextmanager
def only_builder(lock_file: Path) -> Generator[bool]:
    """Hold the builders' lock; yields False at once when another process has it. A killed holder frees it.

    Raises:
        OSError: The lock file cannot be made.
    """
    make_private_directory(lock_file.parent)
    lock = FileLock.take(lock_file)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()


def update_text_index(
    store: TextStore,
    sessions: Iterable[Session],
    adapter: Callable[[str], Adapter],
    *,
    output: bool = False,
    progress: Callable[[BuildReport], None] | None = None,
) -> BuildReport:
    """Index what is new or has changed among all sessions, and drop what is no longer there.

    Args:
        store: Where the texts go.
        sessions: Every session there is, in the order in which they should become findable.
        adapter: Finds a session's adapter by the tool's name.
        output: Index what tools printed as well.
        progress: Called after each batch.
    """
    builder = _Builder(store, adapter, output=output)
    store.set_finished(finished=False)
    for session in sessions:
        builder.add(session)
        if builder.batch >= _BATCH:
            builder.commit()
            if progress is not None:
                progress(builder.report)
    builder.finish()
    return builder.report


class _Builder:
    """One run: compares, reads, and writes in batches."""

    def __init__(self, store: TextStore, adapter: Callable[[str], Adapter], *, output: bool) -> None:
        self.report = BuildReport()
        self.batch = 0
        self._store = store
        self._adapter = adapter
        self._output = output
        self._known = store.documents()
        self._gone = set(self._known)
        self._open = False

    def add(self, session: Session) -> None:
        """Index one session if it needs it."""
        self._gone.discard(session.id)
        known = self._known.get(session.id)
        if known and known.with_output != self._output:
            known = None
        if known and (known.path, known.fingerprint) == (str(session.unit.path), session.unit.fingerprint):
            self.report.unchanged += 1
            return
        since = self._resume_at(session, known)
        try:
            text, end = self._read(session, since)
        except TranscriptError as error:
            _log.info("%s is not indexed: %s", session.id, error)
            return
        self._store_text(session, known if since else None, text, end)

    def commit(self) -> None:
        """Make the batch visible."""
        if self._open:
            self._store.connection.execute("COMMIT")
            self._open = False
        self.batch = 0

    def finish(self) -> None:
        """Drop what is gone and note that the index is complete."""
        self._begin()
        self._store.remove(self._gone)
        self.report.removed = len(self._gone)
        self._store.set_finished(finished=True)
        self.commit()

    def _begin(self) -> None:
        if not self._open:
            self._store.connection.execute("BEGIN IMMEDIATE")
            self._open = True

    @staticmethod
    def _resume_at(session: Session, known: Document | None) -> int:
        """Where reading can go on: only in the same file, which grew behind unchanged bytes."""
        unit = session.unit
        if not known or known.path != str(unit.path) or known.fingerprint.inode != unit.fingerprint.inode:
            return 0
        resume = known.resume
        return resume.offset if Resume.at(unit.path, resume.offset) == resume else 0

    def _read(self, session: Session, since: int) -> tuple[str, int]:
        pieces: list[str] = []
        waiting: list[str] = []
        size, end = 0, since
        for passage in self._passages(session, since):
            end = passage.end or end
            waiting.append(passage.text)
            size += len(passage.text)
            if size > _PIECE:
                pieces.append(_clean(waiting))
                waiting, size = [], 0
        pieces.append(_clean(waiting))
        return "\n".join(piece for piece in pieces if piece), end

    def _passages(self, session: Session, since: int) -> Iterable[Passage]:
        adapter = self._adapter(session.tool)
        return adapter.passages(session.unit, session.record, since, output=self._output)

    def _store_text(self, session: Session, known: Document | None, text: str, end: int) -> None:
        self._begin()
        resume = Resume.at(session.unit.path, end)
        if known is not None:
            self._store.extend(known, session.unit, text, resume)
            self.report.extended += 1
        else:
            self._store.replace(session.id, session.unit, text, resume, with_output=self._output)
            self.report.rebuilt += 1
        self.batch += len(text)
        self.report.characters += len(text)


def _clean(texts: list[str]) -> str:
    return redact(replace_surrogates("\n".join(texts)))
