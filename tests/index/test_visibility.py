"""Decisions of the user and the setting `headless` in lists, counts, searches and changes."""

from pathlib import Path

import pytest

from acp_history_bridge.adapter import Environment
from acp_history_bridge.decisions import Decisions
from acp_history_bridge.index.library import Library, LibraryOptions
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import Inclusion, SessionQuery
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.index.conftest import LATER, listed, scan, summary


@pytest.fixture
def library(home: Path, tmp_path: Path) -> Library:
    """Three sessions: an ordinary one, one that its tool archived, one that a program made."""
    notes_at(home, "x/a.jsonl", note("plain", "Plain words", minute=1))
    notes_at(home, "x/b.jsonl", note("away", "Archived words", archived=True, minute=2))
    notes_at(home, "x/c.jsonl", note("made", "Scripted words", headless=True, minute=3))
    return opened(home, tmp_path)


def opened(home: Path, tmp_path: Path, *, headless: bool = True) -> Library:
    """A scanned library whose index is in memory and whose decisions are kept."""
    options = LibraryOptions(decisions=tmp_path / "decisions.db", headless=headless)
    made = Library([FakeAdapter()], Environment(home), IndexStore.open(None), options, clock=lambda: LATER)
    scan(made)
    return made


def ids(library: Library, **query: object) -> list[str]:
    """What a query lists; its count must say the same."""
    wanted = SessionQuery(**query)  # type: ignore[arg-type]  # any field
    found = [session.id for session in listed(library, wanted, size=2)]
    assert library.count(wanted) == len(found)
    return found


def test_a_hidden_session_is_in_no_list_count_or_search(library: Library) -> None:
    """It can be asked for, and still be found by its id."""
    library.decisions.hide("notes:plain")
    assert ids(library) == ["notes:made", "notes:away"]
    assert ids(library, words="plain") == ids(library, search="plain") == []
    assert ids(library, hidden="only") == ["notes:plain"]
    assert ids(library, hidden="include") == ["notes:made", "notes:away", "notes:plain"]
    found = library.find("notes:plain")
    assert found is not None
    assert (found.hidden, found.listed) == (True, False)


def test_hiding_survives_a_restart_and_a_lost_index(library: Library, home: Path, tmp_path: Path) -> None:
    """The index of the second library is made from nothing."""
    library.decisions.hide("notes:plain")
    library.close()
    assert ids(opened(home, tmp_path)) == ["notes:made", "notes:away"]


@pytest.mark.parametrize(
    ("archived", "expected"),
    [
        ("include", ["notes:made", "notes:away", "notes:plain"]),
        ("exclude", ["notes:made"]),
        ("only", ["notes:away", "notes:plain"]),
    ],
)
def test_archived_in_the_tool_or_here_is_the_same(library: Library, archived: Inclusion, expected: list[str]) -> None:
    """A list can leave them out, or show only them."""
    library.decisions.archive("notes:plain")
    assert ids(library, archived=archived) == expected
    assert [session.archived for session in listed(library)] == [False, True, True]


def test_a_title_of_the_user_replaces_the_tools(library: Library) -> None:
    """It is shown, found by its words in any case, and the old one is found no more."""
    library.decisions.set_title("notes:plain", "My Ünique name")
    found = library.find("notes:plain")
    assert found is not None
    assert found.title == "My Ünique name"
    assert ids(library, words="üNIQUE my") == ids(library, search="name") == ["notes:plain"]
    assert ids(library, words="plain") == []
    assert ids(library, words="words") == ["notes:made", "notes:away"]


def test_sessions_of_programs_can_be_left_out(library: Library, home: Path, tmp_path: Path) -> None:
    """By the setting `headless`; the id still works, and what happens to them is reported as not listed."""
    library.close()
    quiet = opened(home, tmp_path, headless=False)
    assert ids(quiet) == ["notes:away", "notes:plain"]
    assert quiet.find("notes:made") is not None
    path = notes_at(home, "x/d.jsonl", note("more", headless=True))
    [change] = quiet.refresh([path])
    assert (change.kind, change.session.listed) == ("added", False)


def test_a_page_cursor_survives_hiding(library: Library) -> None:
    """What is hidden between two pages is missing, and the cursor stays good; also in a search."""
    page = library.page(SessionQuery(), 1)
    found = library.page(SessionQuery(search="words"), 1)
    library.decisions.hide("notes:away")
    assert [item.id for item in library.page(SessionQuery(), 5, page.next_cursor).sessions] == ["notes:plain"]
    rest = library.page(SessionQuery(search="words"), 5, found.next_cursor).sessions
    assert "notes:away" not in [item.id for item in rest]


def test_decisions_are_changes_of_the_list(library: Library, home: Path, tmp_path: Path) -> None:
    """Also those of another process, with the next thing that happens; each once."""
    other = Decisions(tmp_path / "decisions.db")
    other.hide("notes:plain")
    other.set_title("notes:away", "Renamed")
    other.hide("notes:unknown")
    assert summary(library.decided()) == [("changed", "notes:away"), ("removed", "notes:plain")]
    assert library.decided() == ()
    other.unhide("notes:plain")
    path = notes_at(home, "x/a.jsonl", note("plain", "Plain words"), note("plain", "More", minute=5))
    changes = library.refresh([path])
    assert summary(changes) == [("added", "notes:plain"), ("changed", "notes:plain")]
    assert {change.session.title for change in changes} == {"Plain words"}
    other.close()
