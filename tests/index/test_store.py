"""The database file: damage, foreign files, permissions, full disks, several bridges."""

import logging
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_history_bridge.errors import IndexStoreError
from acp_history_bridge.index.schema import SCHEMA
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import SessionQuery
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.index.conftest import OpenLibrary, listed, scan

Spoil = Callable[[Path], object]
EXPECTED = [f"notes:s{number}" for number in range(200)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the index lies."""
    return tmp_path / "cache" / "index.db"


@pytest.fixture
def _kept(home: Path, path: Path, open_library: OpenLibrary) -> None:
    """An index of two hundred sessions, closed."""
    for number in range(200):
        notes_at(home, f"a/{number}.jsonl", note(f"s{number}", "A longer title " * 8), minute=number)
    library = open_library(path)
    scan(library)
    library.close()


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _overwrite(offset: int, data: bytes) -> Spoil:
    def spoil(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    return spoil


def _zero_all_but_the_first_page(path: Path) -> None:
    _overwrite(4096, bytes(path.stat().st_size - 4096))(path)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def _foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE photo (name); INSERT INTO photo VALUES ('one')")
    connection.close()


def _statement(statement: str) -> Spoil:
    def spoil(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()

    return spoil


def _run(store: IndexStore, statement: str) -> list[tuple[object, ...]]:
    return store.read(lambda connection: connection.execute(statement).fetchall())


def _foreign_wal(path: Path) -> None:
    other = path.with_name("other.db")
    connection = sqlite3.connect(other)
    connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE photo (name); INSERT INTO photo VALUES (1)")
    Path(f"{path}-wal").write_bytes(Path(f"{other}-wal").read_bytes())
    connection.close()


DAMAGES: dict[str, Spoil] = {
    "cut in half": _cut,
    "zeroed page": _overwrite(4096, bytes(4096)),
    "zeroed content": _zero_all_but_the_first_page,
    "garbage header": _overwrite(0, b"not a database at all" * 10),
    "empty": _empty,
    "directory": _directory,
    "foreign database": _foreign,
    "table missing": _statement("DROP TABLE record"),
    "older schema": _statement("PRAGMA user_version = 0"),
    "records that do not decode": _statement("UPDATE record SET data = x'7b7d'"),
    "unit without store": _statement("UPDATE unit SET store_id = 77"),
    "fingerprint that is none": _statement("UPDATE unit SET fingerprint = 'x', again = 1"),
    "write-ahead log of another database": _foreign_wal,
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.fault("I3")
def test_a_damaged_index_is_built_anew(path: Path, open_library: OpenLibrary, damage: str) -> None:
    """Whatever was done to the file, after a scan every session is listed and kept, and pages never fail."""
    DAMAGES[damage](path)
    library = open_library(path)
    library.page(SessionQuery(), 50)
    library.find("notes:s1")
    scan(library)
    assert sorted(session.id for session in listed(library)) == sorted(EXPECTED)
    library.close()
    store = IndexStore.open(path)
    assert (store.persistent, store.notice) == (True, None)
    assert _run(store, "PRAGMA integrity_check") == [("ok",)]
    store.close()


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("damage", ["garbage header", "empty", "directory", "foreign database"])
@pytest.mark.fault("I3")
def test_what_is_replaced_is_set_aside(path: Path, damage: str) -> None:
    """The old file is renamed, not deleted."""
    DAMAGES[damage](path)
    store = IndexStore.open(path)
    store.close()
    (aside,) = (entry for entry in path.parent.iterdir() if ".broken-" in entry.name)
    assert aside.is_dir() == (damage == "directory")


@pytest.mark.usefixtures("_kept")
@pytest.mark.fault("I3")
def test_damage_while_at_work_is_repaired_at_once(path: Path, open_library: OpenLibrary) -> None:
    """A page that is found to be damaged costs a new scan, not an answer."""
    store = IndexStore.open(path)
    library = open_library(store)
    scan(library)
    for pragma in ("wal_checkpoint(TRUNCATE)", "cache_size = 0"):
        _run(store, f"PRAGMA {pragma}")
    _zero_all_but_the_first_page(path)
    assert len(listed(library)) == 200
    assert any(".broken-" in entry.name for entry in path.parent.iterdir())


@pytest.mark.usefixtures("_kept")
@pytest.mark.fault("I3", "I7")
def test_a_newer_index_is_left_alone(path: Path, open_library: OpenLibrary) -> None:
    """The newer bridge finds its file as it was; this one works in memory and says so."""
    _statement(f"PRAGMA user_version = {SCHEMA.version + 1}")(path)
    before = path.read_bytes()
    store = IndexStore.open(path)
    assert not store.persistent
    assert store.notice is not None
    assert "newer" in store.notice
    store.close()
    library = open_library(path)
    scan(library)
    assert len(listed(library)) == 200
    library.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
@pytest.mark.fault("S10")
def test_nobody_else_can_read_the_index(path: Path, umask: int) -> None:
    """Directory 0700, files 0600, whatever the umask."""
    old = os.umask(umask)
    try:
        store = IndexStore.open(path)
        store.attach(lambda _: None)
    finally:
        os.umask(old)
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    assert set(modes) == {"index.db", "index.db-wal", "index.db-shm", "index.db.lock"}
    assert set(modes.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    store.close()


@pytest.mark.usefixtures("_kept")
@pytest.mark.fault("S10")
def test_an_index_that_was_readable_is_made_private(path: Path) -> None:
    """A file that others could read cannot be read by them any more."""
    path.chmod(0o644)
    IndexStore.open(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.fault("I6")
def test_a_place_that_cannot_be_written_means_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file where a directory should be, or a dangling link: one notice, and work goes on."""
    (tmp_path / "file").touch()
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere" / "x")
    for path in (tmp_path / "file" / "index.db", tmp_path / "dangling.db"):
        caplog.clear()
        store = IndexStore.open(path)
        assert not store.persistent
        assert store.notice is not None
        assert caplog.messages == [store.notice]
        assert _run(store, "SELECT count(*) FROM session") == [(0,)]
        store.close()


_FULL = """
import resource, signal, sys
from pathlib import Path
from acp_history_bridge.adapter import Environment
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.schema import SCHEMA
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import SessionQuery
from tests.builders.fake_adapter import FakeAdapter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
home, path, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
store = IndexStore.open(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
library = Library([FakeAdapter()], Environment(home), store)
for _ in library.scan(): pass
print(library.count(SessionQuery()), store.persistent, store.notice)
library.close()
"""


@pytest.mark.process
@pytest.mark.parametrize("limit", [0, 5_000, 100_000, 300_000])
@pytest.mark.fault("I1")
def test_a_file_that_cannot_grow_means_memory(home: Path, path: Path, open_library: OpenLibrary, limit: int) -> None:
    """Every session is listed all the same, with a notice, and the next start finds a sound database."""
    for number in range(1000):
        notes_at(home, f"a/{number}.jsonl", note(f"s{number}", "A longer title " * 8), minute=number)
    command = [sys.executable, "-c", _FULL, str(home), str(path), str(limit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=25)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("1000 False the index at ")
    library = open_library(path)
    scan(library)
    assert len(listed(library)) == 1000
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.fault("I1")
def test_a_full_database_loses_nothing(home: Path, path: Path, open_library: OpenLibrary) -> None:
    """What was stored before the disk was full is still there, in memory, and the work that failed is done again."""
    adapter = FakeAdapter()
    notes_at(home, "a/first.jsonl", note("first"), minute=0)
    store = IndexStore.open(path)
    library = open_library(store, adapters=[adapter])
    scan(library)
    _run(store, "PRAGMA max_page_count = 1")
    for number in range(200):
        notes_at(home, f"a/{number}.jsonl", note(f"s{number}", "A longer title " * 8), minute=number)
    scan(library)
    assert len(listed(library)) == 201
    assert len(adapter.inspected) == 201
    assert not store.persistent
    assert store.notice is not None
    assert "full" in store.notice


@pytest.mark.usefixtures("_kept")
def test_a_second_bridge_starts_from_the_first_ones_index(
    home: Path, path: Path, open_library: OpenLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    """It reads no transcript, hears of changes itself, and writes nothing."""
    first = open_library(path)
    adapter = FakeAdapter()
    with caplog.at_level(logging.WARNING):
        second = open_library(path, adapters=[adapter])
    scan(second)
    assert adapter.inspected == []
    changed = notes_at(home, "a/0.jsonl", note("s0", "Changed"), minute=9)
    for library in (first, second):
        (change,) = library.refresh([changed])
        assert change.session.title == "Changed"
    assert caplog.messages == []
    first.close()
    third = IndexStore.open(path)
    assert third.persistent
    third.close()


@pytest.mark.usefixtures("_kept")
def test_a_bridge_goes_on_with_the_file_of_one_that_has_gone(home: Path, path: Path, open_library: OpenLibrary) -> None:
    """Its next scan takes the file over, with what it found itself meanwhile."""
    first, second = open_library(path), open_library(path)
    scan(second)
    first.close()
    changed = notes_at(home, "a/0.jsonl", note("s0", "Changed"), minute=9)
    second.refresh([changed])

    scan(second)
    second.close()

    adapter = FakeAdapter()
    third = open_library(path, adapters=[adapter])
    scan(third)
    assert adapter.inspected == []
    found = third.find("notes:s0")
    assert found is not None
    assert found.title == "Changed"


@pytest.mark.fault("I4")
def test_a_transaction_is_all_or_nothing() -> None:
    """An exception of the work itself rolls back and comes through."""
    store = IndexStore.open(None)

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO directory VALUES ('x', x'00')")
        raise KeyError

    with pytest.raises(KeyError):
        store.write(work)
    assert _run(store, "SELECT count(*) FROM directory") == [(0,)]
    store.close()


def test_a_database_that_fails_twice_is_an_error() -> None:
    """The replacement is tried once."""
    store = IndexStore.open(None)
    with pytest.raises(IndexStoreError):
        _run(store, "SELECT * FROM nothing")
    store.close()
