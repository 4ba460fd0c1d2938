"""The database file: opening, locking, transactions, and going on when it breaks.

Policy:

- The first bridge on a database writes it; every other one starts from a copy in memory and keeps that up to date by
  itself. So no bridge waits for another, and each sees every change itself. A lock file decides; the kernel frees it
  when its holder dies, and the next of the others to ask (`claim`) goes on writing the file.
- A damaged or foreign file is set aside and built anew; a newer bridge's is left alone.
- Where nothing can be written (read-only, disk full) the work goes on in memory, with one notice.
- Directory 0700, files 0600, whatever the umask.

Whatever `read` and `write` are given may run twice, because the database may have been replaced in between.
"""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from acp_history_bridge.errors import IndexStoreError
from acp_history_bridge.index import schema
from acp_history_bridge.index.lock import FileLock
from acp_history_bridge.index.records import DamagedIndexError

__all__ = ["IndexStore"]

_BUSY_SECONDS = 5.0
_BESIDE = ("", "-wal", "-shm")
# These say that the content is wrong; everything else (full, read-only, busy, I/O error) is about the place it is in.
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT})

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_log = logging.getLogger(__name__)


class IndexStore:
    """An open index database.

    Attributes:
        notice: Why the index is not kept, for a person to read; None when all is well.
        generation: Grows whenever the content was lost and the database is empty again.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None, lock: FileLock | None) -> None:
        self.notice: str | None = None
        self.generation = 0
        self._connection = connection
        self._path = path  # None while in memory
        self._taken: Path | None = None  # the file, while another bridge writes it
        self._lock = lock
        self._prepare: Work[None] = _nothing

    @classmethod
    def open(cls, path: Path | None) -> "IndexStore":
        """Open or create a database; None keeps it in memory. Never fails because of what is at `path`."""
        if path is None:
            return cls(_in_memory(), None, None)
        lock: FileLock | None = None
        try:
            _make_directory(path.parent)
            lock = FileLock.take(path.with_name(path.name + ".lock"))
            if lock is None:  # another bridge keeps this database
                store = cls(_copy_of(path), None, None)
                store._taken = path
                return store
            return cls(_own(path), path, lock)
        except (OSError, sqlite3.Error, IndexStoreError) as error:
            if lock is not None:
                lock.release()
            store = cls(_copy_of(path), None, None)
            store._tell(f"the index at {path} is not used ({_reason(error)}); it is kept in memory")
            return store

    @property
    def persistent(self) -> bool:
        """Whether what is written outlives this process."""
        return self._path is not None

    def claim(self) -> None:
        """Take the file over, with all that is known here, if the bridge that wrote it has gone."""
        if (path := self._taken) is None:
            return
        try:
            taken = _taken_over(path, self._connection)
        except (OSError, sqlite3.Error, IndexStoreError) as error:
            self._taken = None
            self._tell(f"the index at {path} cannot be taken over ({_reason(error)}); it stays in memory")
            return
        if taken is not None:
            self._connection.close()
            self._connection, self._lock = taken
            self._path, self._taken = path, None

    def attach(self, prepare: Work[None]) -> None:
        """Run `prepare` in a transaction now, and again in every database that replaces this one."""
        self._prepare = prepare
        self.write(prepare)

    def read(self, work: Work[T]) -> T:
        """Run queries.

        Raises:
            IndexStoreError: The database failed, and so did its replacement.
        """
        return self._run(work)

    def write(self, work: Work[T]) -> T:
        """Run `work` in one transaction: all of it or nothing.

        Raises:
            IndexStoreError: The database failed, and so did its replacement.
        """
        return self._run(_transaction(work))

    def close(self) -> None:
        """Close the file and let the next bridge have it. Idempotent."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _run(self, work: Work[T]) -> T:
        try:
            return work(self._connection)
        except (sqlite3.DatabaseError, DamagedIndexError) as error:
            if isinstance(error, sqlite3.ProgrammingError):
                raise  # a closed store or a wrong statement: no fault of the database
            self._replace(error)
        try:
            return work(self._connection)
        except (sqlite3.DatabaseError, DamagedIndexError) as error:
            raise IndexStoreError(f"the index failed twice: {_reason(error)}") from error

    def _replace(self, error: sqlite3.DatabaseError | DamagedIndexError) -> None:
        """Put a working database in the place of one that has just failed."""
        if _is_damage(error):
            self._rebuild(error)
        else:
            self._move_to_memory(error)

    def _rebuild(self, error: Exception) -> None:
        self._connection.close()
        self.generation += 1
        path, self._path = self._path, None
        self._connection = _in_memory()
        if path is not None:
            _log.warning("the index at %s is damaged (%s) and is built anew", path, _reason(error))
            try:
                _set_aside(path)
                memory, self._connection, self._path = self._connection, _own(path), path
                memory.close()
            except (OSError, sqlite3.Error, IndexStoreError) as second:
                self._tell(f"the index at {path} is damaged and cannot be replaced ({_reason(second)})")
        _transaction(self._prepare)(self._connection)

    def _move_to_memory(self, error: Exception) -> None:
        if self._path is None:
            raise IndexStoreError(f"the index in memory failed: {_reason(error)}") from error
        memory = _in_memory(empty=True)
        try:
            self._connection.backup(memory)
        except sqlite3.Error:
            memory.close()
            self._rebuild(error)
            return
        self._connection.close()
        path, self._connection, self._path = self._path, memory, None
        self._tell(f"the index at {path} cannot be written ({_reason(error)}); it goes on in memory")

    def _tell(self, notice: str) -> None:
        self.notice = notice
        _log.warning("%s", notice)


def _nothing(_connection: sqlite3.Connection) -> None:
    """Nothing to prepare."""


def _transaction(work: Work[T]) -> Work[T]:
    def run(connection: sqlite3.Connection) -> T:
        # A plain BEGIN fails at its first write when another process is at work, whatever the busy timeout.
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        return result

    return run


def _is_damage(error: sqlite3.DatabaseError | DamagedIndexError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _DAMAGE


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def _make_directory(directory: Path) -> None:
    if directory.is_dir():
        return  # whoever made it decided who may look into it
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    directory.chmod(0o700)


def _own(path: Path) -> sqlite3.Connection:
    """Open the database at `path` for writing, after making it or clearing away what stands there.

    Raises:
        IndexStoreError: It belongs to a newer bridge.
    """
    if os.path.lexists(path):
        connection = _current(path)
        if connection is not None:
            return connection
    _create_private(path)
    connection = _connect(path)
    try:
        _set_up(connection)
        schema.create(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _taken_over(path: Path, memory: sqlite3.Connection) -> tuple[sqlite3.Connection, FileLock] | None:
    """Open the database at `path` with the content of another one; None when somebody else writes it."""
    lock = FileLock.take(path.with_name(path.name + ".lock"))
    if lock is None:
        return None
    try:
        connection = _own(path)
        try:
            memory.backup(connection)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        lock.release()
        raise
    return connection, lock


def _current(path: Path) -> sqlite3.Connection | None:
    """The database at `path` if it is one of ours; else it is out of the way, and a new one can be made."""
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError("a dangling link")
    if path.is_file():
        connection, verdict = _examined(path)
        if verdict == "current":
            return connection
        connection.close()
        if verdict == "newer":
            raise IndexStoreError("a newer version made it")
        if verdict == "older":
            for suffix in _BESIDE:
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            return None
    _log.warning("%s is no index, or damaged; it is set aside", path)
    _set_aside(path)
    return None


def _examined(path: Path) -> tuple[sqlite3.Connection, schema.Verdict]:
    """Open what stands at `path`, and say whose it is; a damaged file is foreign."""
    path.chmod(0o600)
    connection = _connect(path)
    try:
        verdict = schema.examine(connection)
        if verdict == "current":
            _set_up(connection)
    except sqlite3.DatabaseError as error:
        if _is_damage(error):
            return connection, "foreign"
        connection.close()
        raise
    return connection, verdict


def _connect(path: Path) -> sqlite3.Connection:
    # The library is used by one thread at a time, but not always by the one that opened it.
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _set_up(connection: sqlite3.Connection) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")


def _create_private(path: Path) -> None:
    """Make an empty file that only its owner can read; SQLite gives its companions the same mode."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _set_aside(path: Path) -> None:
    """Rename a database and its companions to `NAME.broken-TIME`, so that somebody can look at them."""
    mark = f".broken-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{path}{mark}{suffix}")


def _in_memory(*, empty: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if not empty:
        schema.create(connection)
    return connection


def _copy_of(path: Path) -> sqlite3.Connection:
    """A database in memory with what the file holds, as far as it can be read; it is not written to."""
    memory = _in_memory(empty=True)
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=_BUSY_SECONDS, uri=True)
        ) as source:
            if schema.examine(source) == "current":
                source.backup(memory)
                return memory
    except (sqlite3.Error, OSError) as error:
        _log.info("nothing could be taken over from %s: %s", path, _reason(error))
    memory.close()
    return _in_memory()
