"""Opening the bridge's own SQLite files, so that nothing that lies on the disk can stop the program.

Policy: a file that is damaged, empty or somebody else's is set aside, never deleted, and a new one is made. A file of a
newer version is left alone; a directory that cannot be written is accepted; in both cases the work goes on in memory,
with one notice. Files are 0600 in a 0700 directory whatever the umask says: they hold what people said.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Database", "Schema", "open_database", "set_aside"]

_COMPANIONS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database must look like.

    Attributes:
        application_id: Tells our file from anybody else's.
        version: Counts incompatible layouts.
        script: Creates all tables in an empty file.
        upgrade: Brings an older version up to this one in an open transaction; None: older files are set aside.
    """

    application_id: int
    version: int
    script: str
    upgrade: Callable[[sqlite3.Connection, int], None] | None = None


@dataclass(frozen=True, slots=True)
class Database:
    """An open database.

    Attributes:
        connection: In autocommit mode; transactions are explicit.
        path: None when it is in memory.
        notice: One sentence for people when not everything is as it should be.
    """

    connection: sqlite3.Connection
    path: Path | None
    notice: str | None = None


def open_database(path: Path | None, schema: Schema) -> Database:
    """Open or create a database; in memory for None, and where the file cannot be used."""
    if path is None:
        return _in_memory(schema, None)
    try:
        _prepare(path)
        return _open_file(path, schema)
    except _NewerError:
        return _in_memory(schema, f"{path} was made by a newer version; working in memory")
    except (OSError, sqlite3.Error) as error:
        return _in_memory(schema, f"{path} cannot be used ({error}); working in memory")


class _NewerError(Exception):
    """The file has a version from the future."""


class _ForeignError(Exception):
    """The file is damaged, empty of our tables, too old, or another program's."""


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_dir():
        set_aside(path)
    # Creating it first gives SQLite's own files their mode; O_NOFOLLOW refuses a link planted in its place.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    path.chmod(0o600)


def _open_file(path: Path, schema: Schema) -> Database:
    try:
        return Database(_connect(path, schema), path)
    except _ForeignError as error:
        kept = set_aside(path)
        _prepare(path)
        return Database(_connect(path, schema), path, f"{path.name} was set aside as {kept.name}: {error}")


def _connect(path: Path, schema: Schema) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    try:
        _make_ready(connection, schema, size=path.stat().st_size)
    except sqlite3.OperationalError:  # locked, full, read-only: the file may be fine
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _ForeignError(f"it is damaged ({error})") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _make_ready(connection: sqlite3.Connection, schema: Schema, size: int) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if _is_current(connection, schema):  # without waiting for somebody who is writing
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check(connection, schema, size)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_current(connection: sqlite3.Connection, schema: Schema) -> bool:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return (application_id, version) == (schema.application_id, schema.version) and _has_tables(connection)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _check(connection: sqlite3.Connection, schema: Schema, size: int) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    has_tables = _has_tables(connection)
    if application_id == 0 and not has_tables and (size == 0 or version == 0):
        _create(connection, schema)
    elif application_id != schema.application_id:
        raise _ForeignError("it belongs to another program")
    elif version > schema.version:
        raise _NewerError
    elif version < schema.version:
        if schema.upgrade is None:
            raise _ForeignError(f"it has the old version {version}")
        schema.upgrade(connection, version)
        connection.execute(f"PRAGMA user_version = {schema.version:d}")
    elif not has_tables:
        raise _ForeignError("it has no tables")


def _create(connection: sqlite3.Connection, schema: Schema) -> None:
    for statement in schema.script.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.application_id:d}")
    connection.execute(f"PRAGMA user_version = {schema.version:d}")


def _in_memory(schema: Schema, notice: str | None) -> Database:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create(connection, schema)
    return Database(connection, None, notice)


def set_aside(path: Path) -> Path:
    """Rename a file (or directory) and what SQLite keeps beside it; returns the new name."""
    kept = path.with_name(f"{path.name}.broken-{time.time_ns()}")
    for suffix in _COMPANIONS:
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(kept.with_name(kept.name + suffix))
    return kept
