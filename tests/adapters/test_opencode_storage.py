"""Where opencode's sessions lie, and what is said of them without a replay."""

import os
import sqlite3
from pathlib import Path

import pytest

from acp_history_adapters.opencode import Opencode
from acp_history_bridge.adapter import RESCAN, Affected, Inspection, SessionRecord
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.jsonl import LINE_LIMIT
from acp_history_bridge.turns import Text
from tests.builders.opencode import (
    START,
    Database,
    text_part,
    turns_of,
    unit_of,
    write_early_session,
    write_json,
    write_tree,
)
from tests.conftest import digest_tree, environment_at

HOME = Path("/home/me")
ROOT = HOME / ".local/share/opencode"


def only_record(inspection: Inspection) -> SessionRecord:
    """The one session of a unit without problems."""
    assert inspection.problems == ()
    (record,) = inspection.records
    return record


def test_one_store_holds_all_eras_and_names_what_is_worth_watching() -> None:
    """Copies of a session meet in one store; git objects and logs below it are not watched."""
    (store,) = Opencode().stores(environment_at(HOME))
    assert (store.root, store.watched) == (ROOT, ("storage/session", "storage/message"))
    (moved,) = Opencode().stores(environment_at(HOME, XDG_DATA_HOME="/data"))
    assert moved.root == Path("/data/opencode")
    (relative,) = Opencode().stores(environment_at(HOME, XDG_DATA_HOME="data"))
    assert relative.root == ROOT


@pytest.mark.parametrize(
    ("value", "roots"),
    [
        ("/srv/work.sqlite", [ROOT, Path("/srv")]),
        ("mine", [ROOT]),
        ("sub/mine.db", [ROOT, ROOT / "sub"]),
        (":memory:", [ROOT]),
    ],
)
def test_the_database_variable_can_name_a_place_outside_the_data_directory(value: str, roots: list[Path]) -> None:
    """Then there is a second store, which holds that one database and no trees."""
    adapter = Opencode()
    stores = list(adapter.stores(environment_at(HOME, OPENCODE_DB=value)))
    assert [store.root for store in stores] == roots
    if value != ":memory:":
        path = stores[-1].root / Path(value).name
        assert adapter.affected(stores[-1], path) == Affected((path,))
    assert not any(adapter.affected(store, store.root / "storage").rescan for store in stores[1:])


@pytest.mark.parametrize(
    ("path", "units"),
    [
        ("opencode.db", ["opencode.db"]),
        ("opencode.db-wal", ["opencode.db"]),
        ("opencode-dev.db-shm", ["opencode-dev.db"]),
        ("storage/session/p1/ses_1.json", ["storage/session/p1/ses_1.json"]),
        ("storage/message/ses_1/msg_1.json", ["storage/session/p1/ses_1.json"]),
        ("storage/message/ses_2", []),
        ("project/p/storage/session/part/ses_1/msg_1/prt_1.json", ["project/p/storage/session/info/ses_1.json"]),
        ("auth.json", []),
        ("auth.json-wal", []),
        ("snapshot/abc/objects/12", []),
        ("log/2026.log", []),
    ],
)
def test_a_changed_path_concerns_its_session(tmp_path: Path, path: str, units: list[str]) -> None:
    """A database's companions concern the database; messages concern the info file of their session."""
    (store,) = Opencode().stores(environment_at(tmp_path))
    write_json(store.root / "storage/session/p1/ses_1.json", {})
    expected = Affected(tuple(store.root / unit for unit in units))
    assert Opencode().affected(store, store.root / path) == expected


@pytest.mark.parametrize("path", ["", "storage", "storage/session", "storage/session/p1", "project/p"])
def test_a_changed_directory_is_looked_through_again(path: str) -> None:
    """A whole tree can come or go at once."""
    (store,) = Opencode().stores(environment_at(HOME))
    assert Opencode().affected(store, store.root / path) == RESCAN


def test_the_log_beside_a_database_changes_its_fingerprint(tmp_path: Path) -> None:
    """A running opencode writes to the log alone, and rewrites that in place once it is large."""
    with Database(tmp_path) as database:
        before = database.unit().fingerprint
        database.session()
        after = database.unit().fingerprint
        assert (before.size, before.inode) == (after.size, after.inode)
        assert before != after
        wal = database.path.with_name("opencode.db-wal")
        os.utime(wal, ns=(0, after.mtime_ns + 10**9))
        assert database.unit().fingerprint != after
        assert database.unit().fingerprint.mtime_ns == after.mtime_ns + 10**9


def test_a_new_message_changes_the_fingerprint_of_a_session_in_a_tree(tmp_path: Path) -> None:
    """The info file is not rewritten for each message."""
    path = write_tree(tmp_path, ({"role": "user"}, ()))
    before = unit_of(tmp_path, path).fingerprint
    messages = tmp_path / ".local/share/opencode/storage/message/ses_1"
    os.utime(messages, ns=(0, before.mtime_ns + 10**9))
    assert unit_of(tmp_path, path).fingerprint.mtime_ns == before.mtime_ns + 10**9


@pytest.mark.fault("F14")
def test_sessions_that_are_only_in_the_log_are_listed_beside_the_writer(tmp_path: Path) -> None:
    """Nothing is merged, and the writer can go on while a replay is half-way."""
    with Database(tmp_path) as database:
        database.session()
        for number in range(3):
            database.message("user", text_part(f"prompt {number}"))
        unit = database.unit()
        turns = Opencode().open(unit, only_record(Opencode().inspect(unit))).turns()
        assert next(turns).parts == (Text("prompt 0"),)
        database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert [turn.parts for turn in turns] == [(Text("prompt 1"),), (Text("prompt 2"),)]


@pytest.mark.fault("F14")
def test_an_unmerged_log_without_a_process_is_read_from_a_copy(tmp_path: Path) -> None:
    """SQLite would make a `-shm` file in the tool's directory even for a reader."""
    with Database(tmp_path / "live") as database:
        database.session()
        root = tmp_path / "dead/.local/share/opencode"
        root.mkdir(parents=True)
        for name in ("opencode.db", "opencode.db-wal"):
            (root / name).write_bytes((database.root / name).read_bytes())
    before = digest_tree(root)
    assert only_record(Opencode().inspect(unit_of(tmp_path / "dead", root / "opencode.db"))).native_id == "ses_1"
    assert digest_tree(root) == before


@pytest.mark.fault("F14")
def test_columns_of_other_versions_may_be_missing(tmp_path: Path) -> None:
    """1.2.1 knows neither agent nor model."""
    with Database(tmp_path, columns="") as database:
        database.session()
        record = only_record(Opencode().inspect(database.unit()))
    assert (record.title, record.cwd, record.model, record.mode) == ("A title", "/home/me/shop", None, None)


def test_a_record_tells_what_the_database_knows(tmp_path: Path) -> None:
    """Times, version, model, mode, archive."""
    with Database(tmp_path) as database:
        database.session(model='{"id":"large","providerID":"local"}', agent="plan", time_archived=START + 5)
        record = only_record(Opencode().inspect(database.unit()))
    assert (record.model, record.mode, record.archived, record.tool_version) == ("large", "plan", True, "1.18.33")
    assert record.created_at is not None
    assert (record.updated_at - record.created_at).total_seconds() == 1
    assert Opencode().resume_command(record) is not None


@pytest.mark.fault("T1")
def test_the_time_of_a_session_is_never_later_than_that_of_its_unit(tmp_path: Path) -> None:
    """Lists stop early because of this."""
    with Database(tmp_path) as database:
        database.session(time_updated=32_000_000_000_000)
        unit = database.unit()
        record = only_record(Opencode().inspect(unit))
    assert record.updated_at.timestamp() == pytest.approx(unit.fingerprint.mtime_ns / 1e9, abs=1e-5)


def test_a_default_title_gives_way_to_the_first_prompt(tmp_path: Path) -> None:
    """Without the quotes that `opencode run` puts around it, and not to text that opencode added."""
    with Database(tmp_path) as database:
        database.session("ses_1", title="New session - 2026-11-20T10:57:20.305Z")
        database.message("user", text_part("Called the Read tool", synthetic=True), text_part('"Fix the cart"'))
        database.session("ses_2", title="New session - 2026-11-20T10:57:20.305Z")
        database.session("ses_3", title="New session - my own words")
        titles = {record.native_id: record.title for record in Opencode().inspect(database.unit()).records}
    assert titles == {
        "ses_1": "Fix the cart",
        "ses_2": "New session - 2026-11-20T10:57:20.305Z",
        "ses_3": "New session - my own words",
    }


def test_a_child_is_listed_only_when_its_parent_is_gone(tmp_path: Path) -> None:
    """Else its parent shows it; both storages."""
    with Database(tmp_path) as database:
        database.session("ses_1")
        database.session("ses_2", parent_id="ses_1")
        database.session("ses_3", parent_id="ses_0")
        records = Opencode().inspect(database.unit()).records
    assert {record.native_id: (record.kind, record.listed) for record in records} == {
        "ses_1": ("main", True),
        "ses_2": ("subagent", False),
        "ses_3": ("subagent", True),
    }
    write_tree(tmp_path, session="ses_1")
    child = write_tree(tmp_path, session="ses_2", parentID="ses_1")
    orphan = write_tree(tmp_path, session="ses_3", parentID="../ses_1")
    assert not only_record(Opencode().inspect(unit_of(tmp_path, child))).listed
    assert only_record(Opencode().inspect(unit_of(tmp_path, orphan))).listed


def test_a_fork_is_known_by_its_title(tmp_path: Path) -> None:
    """Opencode stores no pointer to the session that was copied."""
    with Database(tmp_path) as database:
        database.session(title="A title (fork #1)")
        assert only_record(Opencode().inspect(database.unit())).kind == "fork"


def test_a_session_of_0_1_has_its_directory_from_the_first_answer(tmp_path: Path) -> None:
    """And its messages hold their parts; no version can go on with it."""
    path = write_early_session(
        tmp_path,
        {"role": "user", "parts": [text_part("Hello")], "metadata": {"time": {"created": START}}},
        {
            "role": "assistant",
            "parts": [text_part("Wel"), text_part("come")],
            "metadata": {"time": {"created": START + 1}, "assistant": {"path": {"cwd": "/home/me/shop"}}},
        },
    )
    record = only_record(Opencode().inspect(unit_of(tmp_path, path)))
    assert (record.cwd, Opencode().resume_command(record)) == ("/home/me/shop", None)
    assert [turn.parts for turn in turns_of(unit_of(tmp_path, path))] == [(Text("Hello"),), (Text("Welcome"),)]


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough" * 100])
@pytest.mark.fault("F14")
def test_a_damaged_database_keeps_what_is_known_of_it(tmp_path: Path, content: bytes) -> None:
    """The inspection is incomplete, or finds no sessions in an empty file; nothing is raised."""
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    inspection = Opencode().inspect(unit_of(tmp_path, path))
    assert inspection.records == ()
    assert [problem.kind for problem in inspection.problems] == ["unreadable" if content else "wrong-type"]
    assert inspection.complete == (not content)


@pytest.mark.fault("F14")
def test_a_database_that_is_locked_for_long_is_read_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exclusive lock must not take the history away."""
    monkeypatch.setattr("acp_history_adapters.opencode.database._BUSY_SECONDS", 0.01)
    with Database(tmp_path) as database:
        database.session()
        database.connection.execute("PRAGMA journal_mode=DELETE")
        database.connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.connection.execute("BEGIN EXCLUSIVE")
        assert only_record(Opencode().inspect(database.unit())).native_id == "ses_1"


def test_sessions_of_the_announced_next_storage_are_reported(tmp_path: Path) -> None:
    """Rather than shown as empty without a word."""
    with Database(tmp_path) as database:
        database.session()
        database.connection.execute("CREATE TABLE session_message (id text, session_id text)")
        assert Opencode().inspect(database.unit()).problems == ()
        database.connection.execute("INSERT INTO session_message VALUES ('m', 'ses_1')")
        inspection = Opencode().inspect(database.unit())
    assert [problem.kind for problem in inspection.problems] == ["unknown-record"]
    assert len(inspection.records) == 1


@pytest.mark.fault("S5")
def test_a_link_named_like_a_database_is_no_unit(tmp_path: Path) -> None:
    """Nothing outside of the store is opened."""
    with Database(tmp_path) as database:
        link = database.root / "opencode-dev.db"
        link.symlink_to(database.path)
        (store,) = Opencode().stores(environment_at(tmp_path))
        assert [unit.path for unit in Opencode().discover(store).units] == [database.path]


def test_a_deleted_session_cannot_be_opened(tmp_path: Path) -> None:
    """Nor a database that has gone."""
    with Database(tmp_path) as database:
        database.session()
        unit = database.unit()
        record = only_record(Opencode().inspect(unit))
        database.connection.execute("DELETE FROM session")
        with pytest.raises(TranscriptError):
            Opencode().open(unit, record)
    database.path.unlink()
    with pytest.raises(TranscriptError):
        Opencode().open(unit, record)


@pytest.mark.fault("F4")
def test_records_too_large_for_memory_leave_a_placeholder_among_their_neighbours(tmp_path: Path) -> None:
    """A part and a whole message, in the database and in a tree."""
    large = "x" * (LINE_LIMIT + 1)
    with Database(tmp_path) as database:
        database.session()
        database.message("user", text_part("before"), text_part(large), text_part("after"))
        database.message("assistant", text_part("gone"), padding=large)
        database.message("assistant", text_part("end"))
        shown = turns_of(database.unit())
    path = write_tree(
        tmp_path,
        ({"role": "user"}, (text_part("before"), text_part(large), text_part("after"))),
        ({"role": "assistant", "padding": large}, (text_part("gone"),)),
        ({"role": "assistant"}, (text_part("end"),)),
    )
    for turns in (shown, turns_of(unit_of(tmp_path, path))):
        note = Text("[record too large to show: more than 16 MB]")
        assert [turn.parts for turn in turns] == [(Text("before"), note, Text("after")), (note,), (Text("end"),)]


@pytest.mark.fault("F1")
def test_a_file_of_a_tree_cut_at_any_byte_costs_only_itself(tmp_path: Path) -> None:
    """A message or part that is being written is left out; an info file keeps what is known of the session."""
    message = ({"role": "user"}, (text_part("Hello"),))
    path = write_tree(tmp_path, message, message, message)
    storage = tmp_path / ".local/share/opencode/storage"
    for torn in (storage / "message/ses_1/msg_0001.json", storage / "part/msg_0001/prt_00010000.json"):
        whole = torn.read_bytes()
        for length in range(len(whole)):
            torn.write_bytes(whole[:length])
            assert len(turns_of(unit_of(tmp_path, path))) == 2
        torn.write_bytes(whole)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert not Opencode().inspect(unit_of(tmp_path, path)).complete


@pytest.mark.fault("F14")
def test_a_damaged_page_costs_what_it_held_and_not_the_session(tmp_path: Path) -> None:
    """Without the root of the parts' table no message has content, but the session stays listed and can be opened."""
    with Database(tmp_path) as database:
        database.session()
        for number in range(200):
            database.message("user", text_part(f"prompt {number} " + "x" * 500))
        database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.connection.execute("PRAGMA journal_mode=DELETE")
        pages: list[int] = [
            row[0]
            for row in sqlite3.connect(database.path).execute("SELECT rootpage FROM sqlite_master WHERE name = 'part'")
        ]
    content = bytearray(database.path.read_bytes())
    content[(pages[0] - 1) * 4096 : pages[0] * 4096] = b"\xff" * 4096
    database.path.write_bytes(content)
    unit = database.unit()
    record = only_record(Opencode().inspect(unit))
    transcript = Opencode().open(unit, record)
    assert list(transcript.turns()) == []
    assert {problem.kind for problem in transcript.problems} == {"unreadable"}
