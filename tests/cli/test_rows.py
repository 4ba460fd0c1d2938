"""Rows: how many messages are counted, and what a failure costs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Transcript
from acp_history_bridge.cli import rows
from acp_history_bridge.cli.output import age, home_relative
from acp_history_bridge.cli.rows import rows_of
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sample import lay_out
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.timestamps import from_epoch_ms
from acp_history_bridge.turns import Turn
from tests.conftest import environment_at


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An index over the bundled sample."""
    lay_out(tmp_path)
    library = Library(load_adapters(third_party=False), environment_at(tmp_path), IndexStore.open(None))
    for _ in library.scan():
        pass
    yield library
    library.close()


def _sessions(library: Library) -> tuple[Session, ...]:
    return library.page(SessionQuery(), 100).sessions


def test_the_newest_sessions_are_counted_until_the_budget_is_spent(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transcript that does not fit any more is passed over; a smaller one after it is still counted."""
    sizes = [session.unit.fingerprint.size for session in _sessions(library)]
    monkeypatch.setattr(rows, "_BYTES_TO_COUNT", sizes[0] + sizes[-1])

    counted = [row.messages is not None for row in rows_of(library, _sessions(library))]

    assert counted == [True, *(size <= sizes[-1] for size in sizes[1:-1]), True]


def test_a_number_that_the_tool_keeps_is_taken_without_reading(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known costs nothing."""
    session = _sessions(library)[0]
    known = replace(session, record=replace(session.record, message_count=77))
    monkeypatch.setattr(library, "open", None)

    assert [row.messages for row in rows_of(library, [known])] == [77]


@pytest.mark.parametrize("error", [TranscriptError("gone"), OSError("I/O error"), RuntimeError("the secret text")])
def test_a_transcript_that_fails_costs_its_number_only(
    library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """The session is listed without a count, the others with theirs, and the log does not quote anything."""
    bad, *others = _sessions(library)
    open_well = library.open

    class Failing:
        left_out = 0
        problems = ()
        usage = None

        def turns(self) -> Iterator[Turn]:
            raise error

        def close(self) -> None:
            return

    def open_or_fail(session: Session) -> Transcript:
        return Failing() if session.id == bad.id else open_well(session)

    monkeypatch.setattr(library, "open", open_or_fail)

    counts = [row.messages for row in rows_of(library, [bad, *others])]

    assert (counts[0], None in counts[1:]) == (None, False)
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "now"),
        (59, "now"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 hour"),
        (7200, "2 hours"),
        (86400, "1 day"),
        (13 * 86400, "1 week"),
        (29 * 86400, "4 weeks"),
        (60 * 86400, "2 months"),
        (800 * 86400, "2 years"),
    ],
)
def test_ages_are_in_the_largest_unit_that_fits(seconds: int, shown: str) -> None:
    """People want to know about when; what lies in the future is now."""
    then, now = from_epoch_ms(1e12), from_epoch_ms(1e12 + seconds * 1000)
    assert then is not None
    assert now is not None

    assert age(then, now) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/ada", "~"),
        ("/home/ada/src", "~/src"),
        ("/home/adam", "/home/adam"),
        ("/tmp/\x1b[31mx\n", "/tmp/x\ufffd"),
    ],
)
def test_directories_are_written_as_people_write_them(path: str, shown: str) -> None:
    """Only this very home is a tilde, and nothing in a name acts on the terminal."""
    assert home_relative(path, Path("/home/ada")) == shown
