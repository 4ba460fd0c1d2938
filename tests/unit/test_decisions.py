"""Decisions of the user: kept over restarts, shared between processes, undone only by the user."""

from pathlib import Path

import pytest

from acp_history_bridge.decisions import Decisions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the decisions lie."""
    return tmp_path / "data" / "decisions.db"


def test_a_hidden_session_stays_hidden_over_a_restart(path: Path) -> None:
    """Hiding is stored at once."""
    first = Decisions(path)
    first.hide("claude:1")
    first.close()

    assert set(Decisions(path).hidden) == {"claude:1"}


def test_hiding_twice_and_unhiding_what_is_not_hidden_do_no_harm(path: Path) -> None:
    """Both are idempotent; unhiding says whether there was anything to undo."""
    decisions = Decisions(path)
    decisions.hide("claude:1")
    decisions.hide("claude:1")

    assert (decisions.unhide("claude:1"), decisions.unhide("claude:1")) == (True, False)
    assert not decisions.hidden


def test_another_bridge_sees_a_decision_at_once(path: Path) -> None:
    """Two open connections share the file."""
    one, other = Decisions(path), Decisions(path)
    assert not other.hidden

    one.hide("gemini:2")

    assert set(other.hidden) == {"gemini:2"}


def test_kinds_of_decisions_do_not_mix(path: Path) -> None:
    """A title, an archive mark and hiding are independent."""
    decisions = Decisions(path)
    decisions.set_title("claude:1", "Mine")
    decisions.set_title("claude:1", "Mine, again")
    decisions.archive("claude:2")

    assert dict(decisions.titles) == {"claude:1": "Mine, again"}
    assert set(decisions.archived) == {"claude:2"}
    assert not decisions.hidden
    assert decisions.unarchive("claude:2")


def test_without_a_place_decisions_last_as_long_as_the_process() -> None:
    """Nothing can be stored, so nothing is, and nothing fails."""
    decisions = Decisions(None)
    decisions.hide("claude:1")

    assert set(decisions.hidden) == {"claude:1"}
