"""Decisions of the user: kept over restarts, shared between processes, undone only by the user."""

import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from acp_history_bridge.decisions import Decisions
from acp_history_bridge.errors import IndexStoreError


class Opener:
    """Opens the decisions as one more bridge would, and closes all of them when the test is over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: list[Decisions] = []

    def __call__(self, *, stored: bool = True) -> Decisions:
        """Open the decisions."""
        self._opened.append(Decisions(self._path if stored else None))
        return self._opened[-1]

    def close(self) -> None:
        """Close them."""
        for decisions in self._opened:
            decisions.close()


@pytest.fixture
def opened(tmp_path: Path) -> Generator[Opener]:
    """Opens the decisions."""
    opener = Opener(tmp_path / "data" / "decisions.db")
    yield opener
    opener.close()


def test_a_hidden_session_stays_hidden_over_a_restart(opened: Opener) -> None:
    """Hiding is stored at once."""
    first = opened()
    first.hide("claude:1")
    first.close()

    assert set(opened().hidden) == {"claude:1"}


def test_hiding_twice_and_unhiding_what_is_not_hidden_do_no_harm(opened: Opener) -> None:
    """Both are idempotent; unhiding says whether there was anything to undo."""
    decisions = opened()
    decisions.hide("claude:1")
    decisions.hide("claude:1")

    assert (decisions.unhide("claude:1"), decisions.unhide("claude:1")) == (True, False)
    assert not decisions.hidden


def test_another_bridge_sees_a_decision_at_once(opened: Opener) -> None:
    """Two open connections share the file."""
    one, other = opened(), opened()
    assert not other.hidden

    one.hide("gemini:2")

    assert set(other.hidden) == {"gemini:2"}


def test_kinds_of_decisions_do_not_mix(opened: Opener) -> None:
    """A title, an archive mark and hiding are independent."""
    decisions = opened()
    decisions.set_title("claude:1", "Mine")
    decisions.set_title("claude:1", "Mine, again")
    decisions.archive("claude:2")

    assert dict(decisions.titles) == {"claude:1": "Mine, again"}
    assert set(decisions.archived) == {"claude:2"}
    assert not decisions.hidden
    assert decisions.unarchive("claude:2")


def test_without_a_place_decisions_last_as_long_as_the_process(opened: Opener) -> None:
    """Nothing can be stored, so nothing is, and nothing fails."""
    decisions = opened(stored=False)
    decisions.hide("claude:1")

    assert set(decisions.hidden) == {"claude:1"}


def test_decisions_that_can_not_be_read_any_more_still_count(opened: Opener, tmp_path: Path) -> None:
    """A file that breaks under a running bridge costs no list; what cannot be stored is an error."""
    decisions = opened()
    decisions.hide("claude:1")
    assert set(decisions.hidden) == {"claude:1"}
    breaker = sqlite3.connect(tmp_path / "data" / "decisions.db")
    breaker.execute("DROP TABLE decision")
    breaker.close()
    assert set(decisions.hidden) == {"claude:1"}
    with pytest.raises(IndexStoreError):
        decisions.hide("claude:2")


def test_a_decision_that_would_be_forgotten_is_refused(opened: Opener, tmp_path: Path) -> None:
    """Where no file can be made, hiding says so instead of lasting as long as the process."""
    (tmp_path / "data").touch()
    with pytest.raises(IndexStoreError, match="could not be stored"):
        opened().hide("claude:1")
