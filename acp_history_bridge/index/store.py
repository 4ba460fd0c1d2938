"""The index' database: locking, transactions, and going on when it breaks.

Policy:

- The first bridge on a database writes it; every other one starts from a copy in memory and keeps that up to date by
  itself. So no bridge waits for another, and each sees every change itself. A lock file decides; the kernel frees it
  when its holder dies, and the next of the others to ask (`claim`) goes on writing the file.
- What lies at its path is dealt with as for all our databases (`acp_history_bridge.database`).
- Where nothing can be written (read-only, disk full) the work goes on in memory, with one notice.

Whatever `read` and `write` are given may run twice, because the database may have been replaced in between.
"""

import contextlib
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from acp_history_bridge.database import copy_of, in_memory, is_damage, make_private_directory, own, reason, set_aside
from acp_history_bridge.errors import IndexStoreError
from acp_history_bridge.index.lock import FileLock
from acp_history_bridge.index.records import DamagedIndexError
from acp_history_bridge.index.schema import SCHEMA

__all__ = ["IndexStore"]

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
            return cls(in_memory(SCHEMA), None, None)
        lock: FileLock | None = None
        try:
            make_private_directory(path.parent)
            lock = FileLock.take(path.with_name(path.name + ".lock"))
            if lock is None:  # another bridge keeps this database
                store = cls(copy_of(path, SCHEMA), None, None)
                store._taken = path
                return store
            return cls(_own(path), path, lock)
        except (OSError, sqlite3.Error, IndexStoreError) as error:
            if lock is not None:
                lock.release()
            store = cls(copy_of(path, SCHEMA), None, None)
            store._tell(f"the index at {path} is not used ({reason(error)}); it is kept in memory")
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
            self._tell(f"the index at {path} cannot be taken over ({reason(error)}); it stays in memory")
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
            raise IndexStoreError(f"the index failed twice: {reason(error)}") from error

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
        self._connection = in_memory(SCHEMA)
        if path is not None:
            _log.warning("the index at %s is damaged (%s) and is built anew", path, reason(error))
            try:
                set_aside(path)
                memory, self._connection, self._path = self._connection, _own(path), path
                memory.close()
            except (OSError, sqlite3.Error, IndexStoreError) as second:
                self._tell(f"the index at {path} is damaged and cannot be replaced ({reason(second)})")
        _transaction(self._prepare)(self._connection)

    def _move_to_memory(self, error: Exception) -> None:
        if self._path is None:
            raise IndexStoreError(f"the index in memory failed: {reason(error)}") from error
        memory = in_memory()
        try:
            self._connection.backup(memory)
        except sqlite3.Error:
            memory.close()
            self._rebuild(error)
            return
        self._connection.close()
        path, self._connection, self._path = self._path, memory, None
        self._tell(f"the index at {path} cannot be written ({reason(error)}); it goes on in memory")

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
    return isinstance(error, DamagedIndexError) or is_damage(error)


def _own(path: Path) -> sqlite3.Connection:
    """Open the index for writing; whoever calls this holds its lock.

    Raises:
        IndexStoreError: It belongs to a newer bridge.
    """
    with contextlib.suppress(FileNotFoundError):
        # Nobody else is just making it, so an empty file is what a fault has left.
        if path.is_file() and not path.stat().st_size:
            _log.warning("%s is empty; it is set aside", path)
            set_aside(path)
    return own(path, SCHEMA)


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
