"""How records become sessions: copies, contested ids, directories, titles."""

import hashlib
import os
from pathlib import Path

import pytest

from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session, SessionQuery
from tests.builders.fake_adapter import START, FakeAdapter, note, notes_at
from tests.index.conftest import OpenLibrary, listed, scan, summary


def _digest(directory: str, kind: str = "sha256") -> str:
    return f"{kind}:{hashlib.new(kind, directory.encode()).hexdigest()}"


def _find(library: Library, session_id: str) -> Session:
    session = library.find(session_id)
    assert session is not None
    return session


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"listed": True}, {"listed": False, "minute": 5, "rank": 5}),
        ({"minute": 2}, {"minute": 1, "rank": 5}),
        ({"rank": 2}, {"rank": 1}),
        ({"kind": "main"}, {"kind": "subagent", "minute": 5}),
    ],
)
@pytest.mark.fault("T2")
def test_copies_of_a_session_are_one(
    home: Path, open_library: OpenLibrary, better: dict[str, object], worse: dict[str, object]
) -> None:
    """The same native id and origin in two files is one session, and its best copy is shown."""
    for path, fields in (("a/copy.jsonl", better), ("b/copy.jsonl", worse), ("c/copy.jsonl", worse)):
        notes_at(home, path, note("one", path, origin="x", **fields))  # type: ignore[arg-type]  # mixed on purpose
    library = open_library()
    scan(library)
    assert [(session.id, session.title) for session in listed(library)] == [("notes:one", "a/copy.jsonl")]


@pytest.mark.fault("T3")
def test_the_next_best_copy_takes_over(home: Path, open_library: OpenLibrary) -> None:
    """When the shown copy goes, the session stays under its id."""
    path = notes_at(home, "a/one.jsonl", note("one", "Best", minute=2))
    notes_at(home, "b/one.jsonl", note("one", "Second", minute=1))
    library = open_library()
    scan(library)
    path.unlink()
    (change,) = library.refresh([path])
    assert (change.kind, change.session.id, change.session.title) == ("changed", "notes:one", "Second")


@pytest.mark.fault("T2")
def test_sessions_of_different_origin_share_no_id(home: Path, open_library: OpenLibrary) -> None:
    """One native id with two origins is two sessions; the one that is not displaced has the plain id."""
    notes_at(home, "a/one.jsonl", note("one", "Mirror", origin="a", displaced=True, minute=5))
    notes_at(home, "b/one.jsonl", note("one", "Real", origin="b"))
    library = open_library()
    scan(library)
    mirror, real = listed(library)
    assert (real.id, real.title, mirror.title) == ("notes:one", "Real", "Mirror")
    assert mirror.id.startswith("notes:one~")
    assert _find(library, mirror.id) == mirror


def test_a_suffixed_id_stays_valid(home: Path, open_library: OpenLibrary) -> None:
    """It finds its session before, while and after the plain id belongs to that session."""
    better = notes_at(home, "a/one.jsonl", note("one", "A", origin="a"))
    notes_at(home, "b/one.jsonl", note("one", "B", origin="b"))
    library = open_library()
    scan(library)
    (suffixed,) = (session.id for session in listed(library) if session.title == "B")
    better.unlink()
    assert summary(library.refresh([better])) == [("changed", "notes:one"), ("removed", suffixed)]
    assert _find(library, suffixed).id == "notes:one"
    notes_at(home, "a/one.jsonl", note("one", "A", origin="a"))
    assert summary(library.refresh([better])) == [("added", suffixed), ("changed", "notes:one")]
    assert _find(library, suffixed).title == "B"
    assert _find(library, "notes:one").title == "A"


@pytest.mark.fault("T2")
def test_stores_are_told_apart_and_the_first_has_the_plain_id(
    home: Path, open_library: OpenLibrary, tmp_path: Path
) -> None:
    """The same native id and origin in two stores is two sessions, ordered by the stores."""
    second = tmp_path / "second"
    (second / "a").mkdir(parents=True)
    (second / "a" / "one.jsonl").write_text(note("one", "Second"), encoding="utf-8")
    notes_at(home, "z/one.jsonl", note("one", "First"))
    library = open_library(NOTES_DIRS=str(second))
    scan(library)
    assert _find(library, "notes:one").title == "First"
    assert len(listed(library)) == 2


def test_stores_in_another_order_give_the_plain_id_to_another(
    home: Path, open_library: OpenLibrary, tmp_path: Path
) -> None:
    """Without anything being read again."""
    stores = [tmp_path / "x", tmp_path / "y"]
    for root in stores:
        (root / "a").mkdir(parents=True)
        (root / "a" / "one.jsonl").write_text(note("one", root.name), encoding="utf-8")
    for order in (stores, stores[::-1]):
        library = open_library(tmp_path / "index.db", NOTES_DIRS=os.pathsep.join(map(str, order)))
        scan(library)
        assert _find(library, "notes:one").title == order[0].name
        library.close()
    assert not (home / ".notes").exists()


@pytest.mark.fault("T2")
def test_tools_with_one_prefix_do_not_collide(home: Path, open_library: OpenLibrary) -> None:
    """Two adapters that chose the same prefix still give every session an id of its own."""
    other = FakeAdapter("other", ".other")
    other.prefix = "notes"
    notes_at(home, "a/one.jsonl", note("one", "Notes"))
    notes_at(home, "a/one.jsonl", note("one", "Other"), folder=".other")
    library = open_library(adapters=[FakeAdapter(), other])
    scan(library)
    assert _find(library, "notes:one").tool == "notes"
    assert len({session.id for session in listed(library)}) == 2


def test_what_is_not_listed_is_not_found(home: Path, open_library: OpenLibrary) -> None:
    """A sub-agent's file and a file with context only are no sessions."""
    notes_at(home, "a/one.jsonl", note("one", listed=False), note("two", kind="subagent"), note("three", kind="fork"))
    library = open_library()
    scan(library)
    assert [session.id for session in listed(library)] == ["notes:three"]
    assert library.find("notes:one") is None


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_digest_finds_its_directory_through_any_tool(home: Path, open_library: OpenLibrary, kind: str) -> None:
    """A directory that another tool names, or one above it, is what the digest stands for; that is a change."""
    notes_at(home, "a/one.jsonl", note("one", cwd_digest=_digest("/work/project", kind)))
    library = open_library(adapters=[FakeAdapter(), FakeAdapter("other", ".other")])
    scan(library)
    assert [(session.cwd, session.cwd_known) for session in listed(library)] == [(str(home), False)]
    path = notes_at(home, "a/two.jsonl", note("two", cwd="/work/project/deep/below/"), folder=".other")
    assert summary(library.refresh([path])) == [("added", "other:two"), ("changed", "notes:one")]
    session = _find(library, "notes:one")
    assert (session.cwd, session.cwd_known) == ("/work/project", True)


def test_a_directory_stays_known(home: Path, open_library: OpenLibrary) -> None:
    """Tools delete old sessions; the directory that one of them named is not forgotten with it."""
    path = notes_at(home, "a/two.jsonl", note("two", cwd="/work/project"))
    notes_at(home, "a/one.jsonl", note("one", cwd_digest=_digest("/work/project")))
    library = open_library()
    scan(library)
    path.unlink()
    scan(library)
    assert _find(library, "notes:one").cwd == "/work/project"


def test_asking_for_a_directory_makes_it_known(home: Path, open_library: OpenLibrary) -> None:
    """A client that lists its own directory finds the sessions that only have its digest; others hear of it."""
    notes_at(home, "a/one.jsonl", note("one", cwd_digest=_digest("/work/project")))
    library = open_library()
    scan(library)
    page = library.page(SessionQuery(cwd=Path("/work/project")), 10)
    assert [(session.id, session.cwd) for session in page.sessions] == [("notes:one", "/work/project")]
    assert summary(library.refresh([])) == [("changed", "notes:one")]
    assert library.refresh([]) == ()


def test_the_home_directory_is_always_known(home: Path, open_library: OpenLibrary) -> None:
    """A session that was started in the home directory itself, known by digest only."""
    notes_at(home, "a/one.jsonl", note("one", cwd_digest=_digest(str(home)).upper().replace("SHA", "sha")))
    library = open_library()
    scan(library)
    assert _find(library, "notes:one").cwd_known


@pytest.mark.parametrize("cwd", ["relative/path", "", "/with\x00nul", "/" + "x" * 5000, "/a" * 3000])
def test_an_impossible_directory_is_unknown(home: Path, open_library: OpenLibrary, cwd: str) -> None:
    """What no process can have worked in counts as not known."""
    notes_at(home, "a/one.jsonl", note("one", cwd=cwd))
    library = open_library()
    scan(library)
    assert [(session.cwd, session.cwd_known) for session in listed(library)] == [(str(home), False)]


@pytest.mark.fault("S1", "S4")
def test_hostile_text_is_stored_and_comes_back(home: Path, open_library: OpenLibrary) -> None:
    """Lone surrogates, NUL and long ids in every field break neither the database nor a query."""
    odd = "\ud800\x00'\"%~/../"
    ids = [odd, "x" * 5000, "", "CON"]
    fields = {"cwd": "/w\udcff", "origin": odd, "branch": odd, "cwd_digest": odd, "additional_directories": ["/\udc80"]}
    notes_at(home, "a/one.jsonl", *(note(native, odd, **fields) for native in ids))  # type: ignore[arg-type]  # mixed
    library = open_library()
    changes = scan(library)
    sessions = listed(library)
    assert {session.record.native_id for session in sessions} == {odd, "x" * 5000, "CON"}
    assert len(changes) == len(sessions) == 3
    assert all(_find(library, session.id) == session for session in sessions)
    assert library.find(odd) is None
    assert library.count(SessionQuery(cwd=Path("/w\udcff"), words=odd)) == 3


@pytest.mark.fault("S1")
def test_titles_are_one_line(home: Path, open_library: OpenLibrary) -> None:
    """Whatever the adapter gives, a list shows one clean line, or nothing."""
    notes_at(home, "a/one.jsonl", note("one", "  Two\n lines\x1b[31m "), note("two", title=" \n "))
    library = open_library()
    scan(library)
    assert {session.id: session.title for session in listed(library)} == {"notes:one": "Two lines", "notes:two": None}


def test_what_changes_nothing_visible_is_no_change(home: Path, open_library: OpenLibrary) -> None:
    """New file times are none; new bytes in a session's own file are, because its turns may have gone on."""
    path = notes_at(home, "a/one.jsonl", note("one"))
    library = open_library()
    scan(library)
    os.utime(path)
    assert library.refresh([path]) == ()
    with path.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    assert summary(library.refresh([path])) == [("changed", "notes:one")]


def test_a_session_comes_back_as_it_was_found(home: Path, open_library: OpenLibrary, tmp_path: Path) -> None:
    """Every field of a record survives the database."""
    fields = {
        "rank": 3,
        "additional_directories": ["/x", "/y"],
        "kind": "fork",
        "parent": "zero",
        "message_count": 7,
        "archived": True,
        "headless": True,
        "branch": "main",
        "model": "m",
        "mode": "plan",
        "tool_version": "1",
        "continued_in": "two",
        "displaced": True,
        "created_at": "2026-01-01T00:00:00.123456Z",
    }
    notes_at(home, "a/one.jsonl", note("one", minute=1, **fields))  # type: ignore[arg-type]  # mixed on purpose
    library = open_library(tmp_path / "index.db")
    (change,) = scan(library)
    library.close()
    (session,) = listed(open_library(tmp_path / "index.db"))
    assert session == change.session
    assert session.record.additional_directories == ("/x", "/y")
    assert session.updated_at == START.replace(minute=START.minute + 1)
