"""Opening the bridge's own SQLite files, so that nothing that lies on the disk can stop the program.

Policy: a file that is damaged, empty or somebody else's is set aside, never deleted, and a new one is made. One of an
older version is brought up to date, or made anew where it can be made anew. One of a newer version is left alone, and
so is a place that cannot be written; then the caller works in memory. Files are 0600 in a 0700 directory whatever the
umask says: they hold what people said. Several processes may open, and create, one file at the same time.
"""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.errors import IndexStoreError

__all__ = [
    "Database",
    "Schema",
    "copy_of",
    "in_memory",
    "is_damage",
    "make_private_directory",
    "open_database",
    "own",
    "reason",
    "set_aside",
]

_BUSY_SECONDS = 5.0
_BESIDE = ("", "-wal", "-shm")
# These say that the content is wrong; everything else (full, read-only, busy, I/O error) is about the place it is in.
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database must look like.

    Attributes:
        application_id: Tells our file from anybody else's.
        version: Counts incompatible layouts.
        statements: Create everything in an empty file.
        tables: What must be there.
        upgrade: Brings an older version up to this one in an open transaction; None: an older file is made anew.
    """

    application_id: int
    version: int
    statements: tuple[str, ...]
    tables: frozenset[str]
    upgrade: Callable[[sqlite3.Connection, int], None] | None = None


@dataclass(frozen=True, slots=True)
class Database:
    """An open database.

    Attributes:
        connection: In autocommit mode; transactions are explicit.
        path: None when it is in memory.
        notice: One sentence for people when it is in memory although it should not be.
    """

    connection: sqlite3.Connection
    path: Path | None
    notice: str | None = None


class _UselessError(Exception):
    """The file is damaged, lacks our tables, or is another program's."""


class _OutdatedError(Exception):
    """The file is of an older version that cannot be brought up to date."""


def open_database(path: Path | None, schema: Schema) -> Database:
    """Open or create a database; in memory for None, and where the file cannot be used."""
    if path is None:
        return Database(in_memory(schema), None)
    try:
        return Database(own(path, schema), path)
    except (OSError, sqlite3.Error, IndexStoreError) as error:
        notice = f"{path} is not used ({reason(error)}); what it should keep is kept in memory"
        _log.warning("%s", notice)
        return Database(in_memory(schema), None, notice)


def own(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open the database at `path` for writing, after making it or clearing away what stands there.

    Raises:
        IndexStoreError: It belongs to a newer bridge.
        OSError: The place cannot be used.
        sqlite3.Error: As above; it is full, read-only, or locked for long.
    """
    make_private_directory(path.parent)
    try:
        return _opened(path, schema)
    except _OutdatedError:
        for suffix in _BESIDE:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except _UselessError as error:
        _log.warning("%s is set aside: %s", path, error)
        set_aside(path)
    try:
        return _opened(path, schema)
    except (_OutdatedError, _UselessError) as error:  # somebody puts the same back again and again
        raise IndexStoreError(f"it cannot be replaced: {error}") from error


def copy_of(path: Path, schema: Schema) -> sqlite3.Connection:
    """A database in memory with what the file holds, as far as it can be read; the file is not written to."""
    memory = _connect(":memory:")
    try:
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=_BUSY_SECONDS, uri=True)
        with contextlib.closing(source):
            if _is_current(source, schema):
                source.backup(memory)
                return memory
    except (sqlite3.Error, OSError) as error:
        _log.info("nothing could be taken over from %s: %s", path, reason(error))
    memory.close()
    return in_memory(schema)


def in_memory(schema: Schema | None = None) -> sqlite3.Connection:
    """A database in memory, with the schema's tables or empty."""
    connection = _connect(":memory:")
    if schema is not None:
        _create(connection, schema)
    return connection


def set_aside(path: Path) -> Path:
    """Rename a database (or what stands in its place) and what SQLite keeps beside it; returns the new name."""
    mark = f".broken-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{path}{mark}{suffix}")
    return Path(f"{path}{mark}")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error says that the content is wrong, and not just that the place is."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _DAMAGE


def reason(error: Exception) -> str:
    """An error in a few words."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def make_private_directory(directory: Path) -> None:
    """Make a directory that only its owner can look into; one that exists stays as somebody made it."""
    if directory.is_dir():
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    directory.chmod(0o700)


def _opened(path: Path, schema: Schema) -> sqlite3.Connection:
    if path.is_symlink():
        raise FileExistsError("a link stands in its place")
    if path.exists() and not path.is_file():
        raise _UselessError("it is no file")
    # Creating it first gives SQLite's own files their mode.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    connection = _connect(str(path))
    try:
        _make_ready(connection, schema)
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_damage(error):
            raise _UselessError(f"it is damaged ({error})") from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(name: str) -> sqlite3.Connection:
    # Used by one thread at a time, but not always by the one that opened it.
    return sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _make_ready(connection: sqlite3.Connection, schema: Schema) -> None:
    _refuse_newer(_marks(connection), schema)  # before anything in it is changed
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    if _is_current(connection, schema):  # without waiting for somebody who is writing
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _make_current(connection, schema)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application_id, version


def _refuse_newer(marks: tuple[int, int], schema: Schema) -> None:
    if marks[0] == schema.application_id and marks[1] > schema.version:
        raise IndexStoreError("a newer version made it")


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _is_current(connection: sqlite3.Connection, schema: Schema) -> bool:
    return _marks(connection) == (schema.application_id, schema.version) and _tables(connection) >= schema.tables


def _make_current(connection: sqlite3.Connection, schema: Schema) -> None:
    (application_id, version), tables = _marks(connection), _tables(connection)
    _refuse_newer((application_id, version), schema)
    if (application_id, version, tables) == (0, 0, set()):
        _create(connection, schema)
    elif application_id != schema.application_id:
        raise _UselessError("it belongs to another program")
    elif version < schema.version:
        if schema.upgrade is None:
            raise _OutdatedError
        schema.upgrade(connection, version)
        connection.execute(f"PRAGMA user_version = {schema.version:d}")
    elif not tables >= schema.tables:
        raise _UselessError("it lacks tables")


def _create(connection: sqlite3.Connection, schema: Schema) -> None:
    for statement in schema.statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.application_id:d}")
    connection.execute(f"PRAGMA user_version = {schema.version:d}")
