"""Opening our databases: whatever lies at the path, there is a working database and nothing is destroyed."""

import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from acp_history_bridge.database import Database, Schema, open_database

STATEMENTS = ("CREATE TABLE thing (name TEXT)", "CREATE INDEX i ON thing (name)")
SCHEMA = Schema(application_id=77, version=2, statements=STATEMENTS, tables=frozenset({"thing"}))


class Opener:
    """Opens databases, and closes them when the test is over."""

    def __init__(self) -> None:
        self._opened: list[Database] = []

    def __call__(self, path: Path | None, schema: Schema = SCHEMA) -> Database:
        """Open a database."""
        self._opened.append(open_database(path, schema))
        return self._opened[-1]

    def close(self) -> None:
        """Close all of them."""
        for database in self._opened:
            database.connection.close()


@pytest.fixture
def opened() -> Generator[Opener]:
    """Opens databases."""
    opener = Opener()
    yield opener
    opener.close()


def _write(path: Path, name: str = "a") -> None:
    connection = open_database(path, SCHEMA).connection
    connection.execute("INSERT INTO thing VALUES (?)", (name,))
    connection.close()


def _names(database: Database) -> list[str]:
    return [row[0] for row in database.connection.execute("SELECT name FROM thing")]


def _set_aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.broken-*"))


def test_what_was_written_is_there_again(opened: Opener, tmp_path: Path) -> None:
    """A second opening finds the same file."""
    _write(tmp_path / "x.db")

    assert _names(opened(tmp_path / "x.db")) == ["a"]


def test_no_path_means_memory(opened: Opener) -> None:
    """An in-memory database has the same tables."""
    database = opened(None)

    assert (database.path, database.notice, _names(database)) == (None, None, [])


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277])
@pytest.mark.fault("S10")
def test_file_and_directory_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """They hold what people said, so 0600 in 0700."""
    path = tmp_path / "cache" / "x.db"
    before = os.umask(umask if umask != 0o277 else 0o022)
    try:
        _write(path)
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def _damage_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 3000)


def _damage_header(path: Path) -> None:
    path.write_bytes(b"garbage!" * 1000)


def _foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [_damage_half, _damage_header, _foreign, _directory])
@pytest.mark.fault("I3")
def test_a_file_that_is_not_ours_or_damaged_is_set_aside_and_replaced(
    opened: Opener, tmp_path: Path, damage: object
) -> None:
    """The old file keeps lying beside the new one."""
    path = tmp_path / "x.db"
    _write(path)
    assert callable(damage)
    damage(path)

    database = opened(path)

    assert database.path == path
    assert _names(database) == []
    assert len([kept for kept in _set_aside(path) if not kept.name.endswith(("-wal", "-shm"))]) == 1


@pytest.mark.fault("I3")
def test_an_empty_file_becomes_a_database(opened: Opener, tmp_path: Path) -> None:
    """SQLite takes an empty file for a healthy database without tables; so do not stop there."""
    path = tmp_path / "x.db"
    path.touch()

    assert _names(opened(path)) == []
    assert _set_aside(path) == []


@pytest.mark.fault("I3")
def test_a_file_that_lost_its_tables_is_replaced(opened: Opener, tmp_path: Path) -> None:
    """Our mark without our tables is damage."""
    path = tmp_path / "x.db"
    _write(path)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE thing")
    connection.close()

    assert _names(opened(path)) == []
    assert _set_aside(path)


@pytest.mark.fault("I3", "I7")
def test_a_newer_version_is_left_alone(opened: Opener, tmp_path: Path) -> None:
    """A downgrade works in memory and does not destroy what the newer program made."""
    path = tmp_path / "x.db"
    _write(path)
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 3")
    newer.close()

    database = opened(path)

    assert database.path is None
    assert "newer" in str(database.notice)
    with closing(sqlite3.connect(path)) as kept:
        assert kept.execute("SELECT name FROM thing").fetchall() == [("a",)]


@pytest.mark.fault("I7")
def test_an_older_version_without_upgrade_is_made_anew(opened: Opener, tmp_path: Path) -> None:
    """A cache of an old layout is made again."""
    path = tmp_path / "x.db"
    _write(path)

    assert _names(opened(path, Schema(77, 3, STATEMENTS, SCHEMA.tables))) == []


@pytest.mark.fault("I7")
def test_an_older_version_with_upgrade_keeps_its_rows(opened: Opener, tmp_path: Path) -> None:
    """What cannot be made again is carried over."""
    path = tmp_path / "x.db"
    _write(path)

    def upgrade(connection: sqlite3.Connection, version: int) -> None:
        connection.execute("UPDATE thing SET name = name || ?", (version,))

    database = opened(path, Schema(77, 3, STATEMENTS, SCHEMA.tables, upgrade))

    assert _names(database) == ["a2"]
    assert database.connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.fault("I6")
def test_a_place_that_cannot_be_written_leads_to_memory_and_a_notice(opened: Opener, tmp_path: Path) -> None:
    """A file where the directory should be: the program goes on."""
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")

    database = opened(tmp_path / "cache" / "x.db")

    assert database.path is None
    assert "in memory" in str(database.notice)
    assert _names(database) == []


@pytest.mark.fault("I6")
def test_a_link_is_not_followed(opened: Opener, tmp_path: Path) -> None:
    """A link planted at our path does not make us write elsewhere."""
    (tmp_path / "x.db").symlink_to(tmp_path / "elsewhere.db")

    assert opened(tmp_path / "x.db").path is None
    assert not (tmp_path / "elsewhere.db").exists()
