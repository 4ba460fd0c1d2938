"""What a scan and a refresh look at, what they leave alone, and that nothing is lost on the way."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Inspection, Known, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import SessionQuery
from tests.builders.fake_adapter import START, FakeAdapter, note, notes_at, texts
from tests.index.conftest import LONG_AGO, OpenLibrary, listed, scan, summary

PADDING = "x" * 70_000  # more than what is not worth continuing


def _append(path: Path, *lines: str) -> Path:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def _ids(library: Library) -> list[str]:
    return [session.id for session in listed(library)]


def test_a_scan_finds_sessions_in_one_file_and_in_many(home: Path, open_library: OpenLibrary) -> None:
    """A file with two sessions and a file with one make three, newest activity first."""
    notes_at(home, "a/two.jsonl", note("one", minute=1), note("two", minute=2))
    notes_at(home, "b/three.jsonl", note("three", minute=3))
    library = open_library()
    assert summary(scan(library)) == [("added", "notes:one"), ("added", "notes:three"), ("added", "notes:two")]
    assert _ids(library) == ["notes:three", "notes:two", "notes:one"]


def test_the_newest_files_are_looked_at_first(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """Whatever their names, files are inspected in the order of their times, newest first."""
    paths = [
        notes_at(home, f"a/{name}.jsonl", note(name), minute=minute)
        for name, minute in zip("abc", (5, 9, 7), strict=True)
    ]
    scan(open_library())
    assert adapter.inspected == [paths[1], paths[2], paths[0]]


@pytest.mark.fault("P2")
def test_an_unchanged_file_is_not_looked_at_again(
    home: Path, adapter: FakeAdapter, tmp_path: Path, open_library: OpenLibrary
) -> None:
    """Neither by the next scan nor after a restart."""
    notes_at(home, "a/one.jsonl", note("one"), minute=0)
    library = open_library(tmp_path / "index.db")
    scan(library)
    assert scan(library) == []
    library.close()
    assert scan(open_library(tmp_path / "index.db")) == []
    assert len(adapter.inspected) == 1


@pytest.mark.fault("P3")
def test_an_appended_file_is_continued(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """The adapter gets back what was known, and the change carries the state before."""
    path = notes_at(home, "a/one.jsonl", note("one", PADDING), minute=0)
    library = open_library()
    scan(library)
    os.utime(_append(path, note("one", minute=3, title="Renamed")), ns=(LONG_AGO, LONG_AGO + 10**12))
    (change,) = library.refresh([path])
    assert adapter.continued == [path]
    assert (change.kind, change.session.title) == ("changed", "Renamed")
    assert change.before is not None
    assert change.before.title is not None
    assert change.before.title.startswith("xxx")


@pytest.mark.fault("R3")
def test_a_file_with_another_head_is_read_from_the_start(
    home: Path, adapter: FakeAdapter, open_library: OpenLibrary
) -> None:
    """A file that grew but does not start as before is no continuation, even if the bytes at its old end agree."""
    path = notes_at(home, "a/one.jsonl", note("one"), note("one", PADDING), minute=0)
    library = open_library()
    scan(library)
    with path.open("r+b") as file:
        file.write(note("two").encode())
    os.utime(_append(path, note("three")), ns=(LONG_AGO, LONG_AGO + 10**12))
    assert summary(library.refresh([path])) == [
        ("added", "notes:three"),
        ("added", "notes:two"),
        ("changed", "notes:one"),
    ]
    assert adapter.continued == []


@pytest.mark.fault("R2")
def test_a_replaced_file_is_read_from_the_start(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """Another inode is another file, even if it continues the old one."""
    path = notes_at(home, "a/one.jsonl", note("one", PADDING), minute=0)
    library = open_library()
    scan(library)
    notes_at(home, "a/new", note("one", PADDING), note("two")).replace(path)
    assert summary(library.refresh([path])) == [("added", "notes:two")]
    assert adapter.continued == []


@pytest.mark.fault("R3")
def test_a_truncated_file_loses_what_it_lost(home: Path, open_library: OpenLibrary) -> None:
    """A shorter file is read anew, and its missing session is removed."""
    path = notes_at(home, "a/one.jsonl", note("one"), note("two"))
    library = open_library()
    scan(library)
    path.write_text(note("one"), encoding="utf-8")
    assert summary(library.refresh([path])) == [("changed", "notes:one"), ("removed", "notes:two")]


@pytest.mark.fault("R6")
def test_a_file_written_just_before_the_look_is_looked_at_again(
    home: Path, adapter: FakeAdapter, open_library: OpenLibrary
) -> None:
    """A rewrite of equal size within the same clock tick is noticed by the next scan, and then it is quiet."""
    path = notes_at(home, "a/one.jsonl", note("one", "before"), minute=0)
    now = [LONG_AGO]
    library = open_library(clock=lambda: now[0])
    scan(library)
    path.write_text(note("one", "after!"), encoding="utf-8")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    now[0] += 3_000_000_000
    (change,) = scan(library)
    assert change.session.title == "after!"
    scan(library)
    assert len(adapter.inspected) == 2


@pytest.mark.fault("R7", "F10")
def test_an_incomplete_listing_removes_nothing(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """As long as a folder cannot be listed its sessions stay; a complete listing without them removes them."""
    path = notes_at(home, "a/one.jsonl", note("one"))
    notes_at(home, "b/two.jsonl", note("two"))
    library = open_library()
    scan(library)
    path.unlink()
    adapter.unlisted.add("a")
    assert scan(library) == []
    adapter.unlisted.clear()
    assert summary(scan(library)) == [("removed", "notes:one")]


@pytest.mark.fault("F10", "F11")
def test_an_unreadable_file_keeps_its_sessions(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """A look that was not complete keeps the old records, and is repeated until it succeeds."""
    path = notes_at(home, "a/one.jsonl", note("one"), minute=0)
    library = open_library()
    scan(library)
    adapter.unreadable.add(path)
    notes_at(home, "a/one.jsonl", note("one", "Later"), minute=5)
    scan(library)
    assert [session.title for session in listed(library)] == ["Hello"]
    assert [(found.kind, found.number) for found in library.problems()] == [("unreadable", 1)]
    adapter.unreadable.clear()
    assert summary(scan(library)) == [("changed", "notes:one")]
    assert library.problems() == ()


@pytest.mark.fault("C6")
def test_a_failing_adapter_harms_only_its_own_unit(
    home: Path, adapter: FakeAdapter, open_library: OpenLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever `inspect` raises is one problem; the log names the place but quotes nothing."""
    other = FakeAdapter("other", ".notes")
    path = notes_at(home, "a/one.jsonl", note("one"), minute=0)
    notes_at(home, "a/two.jsonl", note("two"))
    library = open_library(adapters=[adapter, other])
    scan(library)
    adapter.exploding.add(path)
    notes_at(home, "a/one.jsonl", note("one", "Later"), minute=5)
    with caplog.at_level(logging.ERROR):
        scan(library)
    assert {session.id: session.title for session in listed(library)} == {
        "notes:one": "Hello",
        "notes:two": "Hello",
        "other:one": "Later",
        "other:two": "Hello",
    }
    assert [(found.tool, found.kind) for found in library.problems()] == [("notes", "adapter-failed")]
    assert "KeyError at fake_adapter.py" in caplog.text
    assert "secret" not in caplog.text
    with pytest.raises(TranscriptError):
        library.open(next(session for session in listed(library) if session.id == "notes:one"))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Inspection((None,)),  # type: ignore[arg-type]  # what the contract forbids
        Inspection((SessionRecord("one", START.replace(tzinfo=None)),)),
        Inspection((SessionRecord("one", START, title=5),)),  # type: ignore[arg-type]  # as above
        Inspection((), state={"when": START}),
        SystemExit(3),
    ],
)
@pytest.mark.fault("C6")
def test_what_the_contract_forbids_is_a_problem(home: Path, open_library: OpenLibrary, answer: object) -> None:
    """Wrong types, times without zone, state that is not JSON and `sys.exit` stay with their unit."""

    class Wrong(FakeAdapter):
        def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
            del unit, known
            if isinstance(answer, BaseException):
                raise answer
            return answer  # type: ignore[return-value]  # the point of the test

    notes_at(home, "a/one.jsonl", note("one"))
    library = open_library(adapters=[Wrong(), FakeAdapter("other", ".notes")])
    scan(library)
    assert _ids(library) == ["other:one"]
    assert [found.kind for found in library.problems()] == ["adapter-failed"]


def test_problems_are_counted_as_long_as_they_are_there(home: Path, open_library: OpenLibrary) -> None:
    """Those of a continued file add up, those of a rewritten one start over, and those of a lost file go."""
    path = notes_at(home, "a/one.jsonl", note("one", PADDING), "garbage\n", minute=0)
    notes_at(home, "a/two.jsonl", "garbage\n", "more\n", minute=0)
    library = open_library()
    numbers: list[int] = []
    for change in (lambda: None, lambda: _append(path, "bad\n"), lambda: notes_at(home, "a/one.jsonl"), path.unlink):
        change()
        scan(library)
        numbers += [found.number for found in library.problems()]
    assert numbers == [3, 4, 2, 2]


@pytest.mark.fault("R7")
def test_a_deleted_directory_takes_its_files_along(home: Path, open_library: OpenLibrary) -> None:
    """Only the directory's own path is reported, and it does not exist any more."""
    path = notes_at(home, "a/one.jsonl", note("one"))
    notes_at(home, "ab/two.jsonl", note("two"))
    library = open_library()
    scan(library)
    path.unlink()
    path.parent.rmdir()
    assert summary(library.refresh([path.parent])) == [("removed", "notes:one")]


@pytest.mark.fault("R2", "R7")
def test_a_moved_file_keeps_its_session(home: Path, open_library: OpenLibrary) -> None:
    """Old and new path in one refresh are one change of place, not a session that went and another that came."""
    path = notes_at(home, "a/one.jsonl", note("one"))
    library = open_library()
    scan(library)
    target = path.with_name("other.jsonl")
    path.rename(target)
    (change,) = library.refresh([path, target])
    assert (change.kind, change.session.id, change.session.unit.path) == ("changed", "notes:one", target)


@pytest.mark.fault("R7")
def test_a_changed_root_lists_the_store(home: Path, open_library: OpenLibrary) -> None:
    """A change of the root itself, or of a directory the adapter cannot place, finds everything new below it."""
    library = open_library()
    scan(library)
    path = notes_at(home, "a/one.jsonl", note("one"))
    assert summary(library.refresh([path.parent.parent])) == [("added", "notes:one")]
    notes_at(home, "b/two.jsonl", note("two"))
    assert summary(library.refresh([home / ".notes" / "b"])) == [("added", "notes:two")]
    assert library.refresh([home / "elsewhere", home / ".notes" / "x.txt"]) == ()


def test_a_refresh_during_a_scan_is_not_undone(home: Path, adapter: FakeAdapter, open_library: OpenLibrary) -> None:
    """What the scan listed before is compared again: a file that has gone stays gone, one just read is left alone."""
    paths = [notes_at(home, f"a/{number}.jsonl", note(str(number)), minute=number) for number in range(3)]
    library = open_library()
    steps = library.scan()
    next(steps)
    paths[1].unlink()
    library.refresh([paths[1], paths[2]])
    assert summary([change for step in steps for change in step.changes]) == [("added", "notes:0")]
    assert _ids(library) == ["notes:0", "notes:2"]
    assert adapter.inspected == [paths[2], paths[0]]


def test_progress_counts_units_and_bytes(home: Path, open_library: OpenLibrary) -> None:
    """The last step is complete, and everything that was found has been dealt with."""
    sizes = [notes_at(home, f"a/{number}.jsonl", note(str(number))).stat().st_size for number in range(3)]
    *_, last = open_library().scan()
    assert (last.done, last.total, last.done_bytes, last.total_bytes) == (3, 3, sum(sizes), sum(sizes))
    assert last.complete


def test_a_page_is_settled_before_the_scan_ends(
    home: Path, open_library: OpenLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as no file still to be looked at is as new as the page's last session."""
    monkeypatch.setattr("acp_history_bridge.index.library._STEP_UNITS", 1)
    for number in range(6):
        notes_at(home, f"a/{number}.jsonl", note(str(number), minute=number), minute=number)
    library = open_library()
    assert not library.settled(SessionQuery(), 2)
    settled = [library.settled(SessionQuery(), 2) for _ in library.scan()]
    assert settled == [False, False, True, True, True, True, True, True]


def test_a_file_as_old_as_the_end_of_a_page_can_still_change_it(
    home: Path, open_library: OpenLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties are broken by id, so the page is not settled before all files of that time are looked at."""
    monkeypatch.setattr("acp_history_bridge.index.library._STEP_UNITS", 1)
    for name in "ab":
        notes_at(home, f"a/{name}.jsonl", note(name, minute=5), minute=5)
    library = open_library()
    settled = [library.settled(SessionQuery(), 1) for _ in library.scan()]
    assert settled == [False, False, True, True]


def test_a_page_is_not_settled_while_one_of_its_own_files_is_waiting(
    home: Path, open_library: OpenLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose time went back is still to be looked at, and its session on the page may be outdated."""
    monkeypatch.setattr("acp_history_bridge.index.library._STEP_UNITS", 1)
    for number in range(6):
        notes_at(home, f"a/{number}.jsonl", note(str(number), minute=number), minute=number)
    library = open_library(tmp_path / "index.db")
    scan(library)
    library.close()
    notes_at(home, "a/5.jsonl", note("5", "Other"), minute=0)
    library = open_library(tmp_path / "index.db")
    steps = library.scan()
    next(steps)
    assert not library.settled(SessionQuery(), 2)
    next(steps)
    assert library.settled(SessionQuery(), 2)
    assert [session.id for session in library.page(SessionQuery(), 2).sessions] == ["notes:4", "notes:3"]


def test_a_filter_settles_when_nothing_left_can_match(
    home: Path, open_library: OpenLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of other tools, and files older than the query's beginning, are not waited for."""
    monkeypatch.setattr("acp_history_bridge.index.library._STEP_UNITS", 1)
    notes_at(home, "a/new.jsonl", note("new", minute=9), minute=9)
    notes_at(home, "a/old.jsonl", note("old"), minute=0)
    library = open_library(adapters=[FakeAdapter(), FakeAdapter("other", ".other")])
    since = SessionQuery(since=START.replace(minute=START.minute + 5))
    steps = library.scan()
    next(steps)
    assert not library.settled(SessionQuery(tools=frozenset({"other"})), 50)
    next(steps)
    assert library.settled(SessionQuery(tools=frozenset({"other"})), 50)
    assert not library.settled(since, 50)
    next(steps)
    assert library.settled(since, 50)
    assert not library.settled(SessionQuery(tools=frozenset({"notes"})), 50)
    assert [session.id for session in library.page(since, 50).sessions] == ["notes:new"]


def test_a_store_named_twice_counts_once(home: Path, open_library: OpenLibrary, tmp_path: Path) -> None:
    """The same directory through a link is the same store; another directory is another."""
    notes_at(home, "a/one.jsonl", note("one"))
    (tmp_path / "link").symlink_to(home / ".notes")
    (tmp_path / "second").mkdir()
    library = open_library(NOTES_DIRS=f"{tmp_path / 'link'}:{tmp_path / 'second'}:{home / '.notes'}")
    scan(library)
    assert [store.root for store in library.stores] == [home / ".notes", tmp_path / "second"]
    assert _ids(library) == ["notes:one"]


def test_a_store_that_is_named_no_more_goes(home: Path, open_library: OpenLibrary, tmp_path: Path) -> None:
    """Its sessions are not listed after the next start, and the others stay without being read."""
    second = tmp_path / "second"
    notes_at(home, "a/one.jsonl", note("one"), minute=0)
    (second / "a").mkdir(parents=True)
    (second / "a" / "two.jsonl").write_text(note("one", "Second"), encoding="utf-8")
    library = open_library(tmp_path / "index.db", NOTES_DIRS=str(second))
    scan(library)
    assert len(listed(library)) == 2
    library.close()
    library = open_library(tmp_path / "index.db")
    assert [(session.id, session.title) for session in listed(library)] == [("notes:one", "Hello")]


@pytest.mark.fault("I7")
def test_a_new_version_of_an_adapter_looks_again(
    home: Path,
    adapter: FakeAdapter,
    open_library: OpenLibrary,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What older code found stays listed until the new code has looked, once."""
    notes_at(home, "a/one.jsonl", note("one"), minute=0)
    library = open_library(tmp_path / "index.db")
    scan(library)
    library.close()
    monkeypatch.setattr("acp_history_bridge.index.adapters.__version__", "next")
    library = open_library(tmp_path / "index.db")
    assert _ids(library) == ["notes:one"]
    scan(library)
    scan(library)
    assert len(adapter.inspected) == 2
    assert not any(".broken-" in entry.name for entry in tmp_path.iterdir())


def test_an_opened_session_has_its_turns(home: Path, open_library: OpenLibrary) -> None:
    """`open` finds the adapter; a file that is gone is a `TranscriptError`."""
    path = notes_at(home, "a/one.jsonl", note("one", "Hi"), note("two", "No"), note("one", "There", role="agent"))
    library = open_library()
    scan(library)
    session = library.find("notes:one")
    assert session is not None
    assert texts(library.open(session)) == ["Hi", "There"]
    path.unlink()
    with pytest.raises(TranscriptError):
        library.open(session)


@dataclass
class _Work:
    opened: int = 0
    read: int = 0


@contextmanager
def _measured(root: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[_Work]:
    """Count the files opened below a directory, and the bytes read from anywhere."""
    work = _Work()
    real_open, real_read = os.open, os.read

    def counting_open(path: str | Path, *rest: int) -> int:
        work.opened += Path(path).is_relative_to(root)
        return real_open(path, *rest)

    def counting_read(descriptor: int, size: int) -> bytes:
        data = real_read(descriptor, size)
        work.read += len(data)
        return data

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", counting_open)
        patch.setattr(os, "read", counting_read)
        yield work


@pytest.mark.fault("P2")
def test_an_unchanged_start_reads_nothing(
    home: Path, open_library: OpenLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stat a file, and no file is opened."""
    for number in range(50):
        notes_at(home, f"a/{number}.jsonl", note(str(number)), minute=number)
    library = open_library(tmp_path / "index.db")
    scan(library)
    library.close()
    with _measured(home, monkeypatch) as work:
        scan(open_library(tmp_path / "index.db"))
    assert work == _Work()


def _traced(store: IndexStore) -> list[str]:
    """A list that gets every statement from now on."""
    statements: list[str] = []
    store.read(lambda connection: connection.set_trace_callback(statements.append))
    return statements


@pytest.mark.fault("P1")
def test_a_change_costs_the_same_in_a_big_archive(
    home: Path, open_library: OpenLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files opened, bytes read and statements run for one changed file do not depend on the number of sessions."""
    costs: list[tuple[_Work, int]] = []
    store = IndexStore.open(None)
    library = open_library(store)
    for start, end in ((0, 100), (100, 2000)):
        for number in range(start, end):
            notes_at(home, f"a/{number}.jsonl", note(str(number), minute=number), minute=number)
        path = notes_at(home, "a/changing.jsonl", note("changing", PADDING), minute=0)
        scan(library)
        statements = _traced(store)
        with _measured(home, monkeypatch) as work:
            os.utime(_append(path, note("changing", "More")), ns=(LONG_AGO, LONG_AGO + 10**12))
            assert summary(library.refresh([path])) == [("changed", "notes:changing")]
        costs.append((work, len(statements)))
    assert costs[0] == costs[1]
    assert costs[0][0].read < 20_000  # of a file of 70,000


@pytest.mark.fault("T1")
def test_a_session_is_never_newer_than_its_file(home: Path, open_library: OpenLibrary) -> None:
    """An adapter that says otherwise is corrected, because lists stop early by the time of files."""

    class Eager(FakeAdapter):
        def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
            del unit, known
            return Inspection((SessionRecord("one", START.replace(year=2999)),))

    notes_at(home, "a/one.jsonl", minute=5)
    library = open_library(adapters=[Eager()])
    scan(library)
    assert [session.updated_at for session in listed(library)] == [START.replace(minute=START.minute + 5)]
