"""Pages, cursors and filters."""

import base64
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_history_bridge.adapter import Environment
from acp_history_bridge.errors import CursorError
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import SessionQuery
from tests.builders.fake_adapter import START, FakeAdapter, note, notes_at
from tests.index.conftest import LATER, OpenLibrary, listed, scan

ALL = SessionQuery()


@pytest.fixture
def library(home: Path, open_library: OpenLibrary) -> Library:
    """Nine sessions, three of them at the same minute."""
    for number in range(9):
        minute = 5 if 4 <= number <= 6 else number
        notes_at(home, f"a/{number}.jsonl", note(f"s{number}", f"Title {number}", minute=minute))
    library = open_library()
    scan(library)
    return library


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 10])
@pytest.mark.fault("T4")
def test_pages_are_the_list_in_order(library: Library, size: int) -> None:
    """Newest first, ties by id, whatever the page size; the last page has no cursor."""
    expected = ["s8", "s7", "s4", "s5", "s6", "s3", "s2", "s1", "s0"]
    assert [session.record.native_id for session in listed(library, size=size)] == expected
    assert library.count(ALL) == 9


def test_a_cursor_does_not_depend_on_the_page_size(library: Library) -> None:
    """The next page may be asked for with another limit."""
    first = library.page(ALL, 2)
    assert len(library.page(ALL, 100, first.next_cursor).sessions) == 7


@pytest.mark.fault("T4")
def test_a_forged_cursor_is_refused(library: Library) -> None:
    """Whatever is not a cursor made here is an error, never a page."""
    cursor = library.page(ALL, 2).next_cursor
    assert cursor is not None
    other_first = ("B" if cursor[0] == "A" else "A") + cursor[1:]
    zeros = base64.urlsafe_b64encode(b"\x00" * 40).decode()
    for forged in ("", cursor[:-1], cursor + "A", cursor + "=", " " + cursor, other_first, zeros, "é", "A" * 100_000):
        with pytest.raises(CursorError):
            library.page(ALL, 2, forged)


@pytest.mark.fault("T4")
def test_a_cursor_belongs_to_its_query(library: Library) -> None:
    """Another filter refuses it; the same one, written differently, takes it."""
    query = SessionQuery(words="title  TITLE", tools=frozenset({"notes", "other"}))
    cursor = library.page(query, 2).next_cursor
    assert library.page(SessionQuery(words="Title", tools=frozenset({"other", "notes"})), 2, cursor).sessions
    for other in (ALL, SessionQuery(words="title"), SessionQuery(tools=query.tools, since=START)):
        with pytest.raises(CursorError):
            library.page(other, 2, cursor)


@pytest.mark.fault("T4")
def test_a_cursor_of_another_process_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart the client starts over."""
    cursor = library.page(ALL, 2).next_cursor
    monkeypatch.setattr("acp_history_bridge.index.query._SECRET", b"another")
    with pytest.raises(CursorError):
        library.page(ALL, 2, cursor)


def test_a_directory_is_compared_normalised(home: Path, open_library: OpenLibrary, tmp_path: Path) -> None:
    """Trailing slashes, dot parts and links on either side make no difference; case, and what is below, does."""
    real = tmp_path / "Project"
    (real / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    lines = [note(str(number), cwd=cwd) for number, cwd in enumerate((f"{real}/", f"{tmp_path}/link/.", "/nowhere/"))]
    notes_at(home, "a/one.jsonl", *lines, note("below", cwd=f"{real}/sub"), note("case", cwd=f"{tmp_path}/project"))
    library = open_library()
    scan(library)
    for cwd in (real, tmp_path / "link", Path(f"{real}/sub/..")):
        assert {session.record.native_id for session in listed(library, SessionQuery(cwd=cwd))} == {"0", "1"}
    assert library.count(SessionQuery(cwd=Path("/nowhere/x/.."))) == 1


def test_unknown_directories_are_the_home_directory(home: Path, open_library: OpenLibrary) -> None:
    """A client that filters by the home directory gets what a list shows there."""
    notes_at(home, "a/one.jsonl", note("unknown"), note("home", cwd=str(home)), note("else", cwd="/else"))
    library = open_library()
    scan(library)
    assert {session.record.native_id for session in listed(library, SessionQuery(cwd=home))} == {"unknown", "home"}


def test_words_match_titles_in_any_case(home: Path, open_library: OpenLibrary) -> None:
    """Every word must occur, in any order, anywhere in the title; wildcards are just characters."""
    titles = ["Fix the LOGIN page", "login: Straße 100%", "Cafe\u0301 login", "page only"]
    notes_at(home, "a/one.jsonl", *(note(str(number), title) for number, title in enumerate(titles)))
    library = open_library()
    scan(library)

    def matches(words: str) -> set[str]:
        return {session.record.native_id for session in listed(library, SessionQuery(words=words))}

    assert matches("login") == {"0", "1", "2"}
    assert matches(" page\tLogin ") == {"0"}
    assert matches("STRASSE") == {"1"}
    assert matches("café") == {"2"}
    assert matches("%") == {"1"}
    assert matches("_") == set()
    assert matches(" ".join(f"word{number}" for number in range(5000))) == set()


def test_since_includes_its_own_moment(library: Library) -> None:
    """A session exactly at the time counts, one a microsecond earlier does not."""
    time = START + timedelta(minutes=7)
    assert library.count(SessionQuery(since=time)) == 2
    assert library.count(SessionQuery(since=time + timedelta(microseconds=1))) == 1


_SESSION = st.tuples(
    st.integers(0, 12),
    st.sampled_from(["/a", "/a/", "/b", ""]),
    st.text("ab ", max_size=3),
    st.sampled_from(["notes", "other"]),
)
_QUERY = st.builds(
    SessionQuery,
    cwd=st.sampled_from([None, Path("/a"), Path("/b/.")]),
    tools=st.sampled_from([None, frozenset({"notes"}), frozenset[str](), frozenset({"notes", "other"})]),
    since=st.none() | st.integers(0, 12).map(lambda minute: START + timedelta(minutes=minute)),
    words=st.text("aB ", max_size=3),
)


@settings(max_examples=30, deadline=None)
@given(sessions=st.lists(_SESSION, max_size=12), query=_QUERY, size=st.integers(1, 5))
@pytest.mark.fault("Z3")
def test_queries_find_what_a_linear_search_finds(
    tmp_path_factory: pytest.TempPathFactory,
    sessions: list[tuple[int, str, str, str]],
    query: SessionQuery,
    size: int,
) -> None:
    """Filter, order and paging against a plain loop over all sessions."""
    home = tmp_path_factory.mktemp("home")
    for number, (minute, cwd, title, tool) in enumerate(sessions):
        line = note(f"s{number}", minute=minute, cwd=cwd, title=title)
        notes_at(home, f"a/{number}.jsonl", line, folder=f".{tool}")
    adapters = [FakeAdapter(), FakeAdapter("other", ".other")]
    library = Library(adapters, Environment(home), IndexStore.open(None), clock=lambda: LATER)
    scan(library)
    expected = sorted(
        (-minute, f"{tool}:s{number}")
        for number, (minute, cwd, title, tool) in enumerate(sessions)
        if (query.cwd is None or Path(cwd) == Path(str(query.cwd)))
        and (query.tools is None or tool in query.tools)
        and (query.since is None or START + timedelta(minutes=minute) >= query.since)
        and all(word in title for word in query.words.lower().split())
    )
    assert [session.id for session in listed(library, query, size)] == [session_id for _, session_id in expected]
    assert library.count(query) == len(expected)
    library.close()
