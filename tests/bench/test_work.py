"""How much is read, whatever the machine: counts of opened files and bytes on a made-up home, not times."""

import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Environment
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.search.build import update_text_index
from acp_history_bridge.search.store import TextStore
from acp_history_bridge.sessions import Session, SessionQuery
from bench.corpus import Plan, append_turn, make_home
from tests.conftest import digest_tree

_GIANT = 6_000_000
_PLAN = Plan(sessions=80, total=_GIANT + 3_000_000, giant=_GIANT)


@dataclass(slots=True)
class _Work:
    """What was done while it was counted."""

    opened: list[str] = field(default_factory=list[str])
    bytes_read: int = 0

    @property
    def transcripts(self) -> int:
        """How many transcripts were opened."""
        return len({path for path in self.opened if ".json" in path})


@contextmanager
def _counting() -> Generator[_Work]:
    work = _Work()
    really_open, really_read = os.open, os.read

    def count_open(path: str | Path, flags: int, mode: int = 0o777) -> int:
        work.opened.append(os.fspath(path))
        return really_open(path, flags, mode)

    def count_read(descriptor: int, size: int) -> bytes:
        data = really_read(descriptor, size)
        work.bytes_read += len(data)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", count_open)
        patch.setattr(os, "read", count_read)
        yield work


@pytest.fixture
def giant(tmp_path: Path) -> Path:
    """The largest transcript of a home that was just made."""
    return make_home(tmp_path / "home", _PLAN)


@pytest.fixture
def library(tmp_path: Path, giant: Path) -> Iterator[Library]:
    """Over that home, not yet scanned."""
    assert giant.stat().st_size >= _GIANT
    with closing(Library(load_adapters(None), Environment(tmp_path / "home"), IndexStore.open(None))) as library:
        yield library


def _scan(library: Library) -> None:
    for _ in library.scan():
        pass


def _sessions(library: Library) -> tuple[Session, ...]:
    return library.page(SessionQuery(), 1000).sessions


def test_the_same_home_is_made_again(tmp_path: Path) -> None:
    """Figures can be compared because the same arguments give the same bytes and times."""
    make_home(tmp_path / "one", Plan(12, 200_000, 50_000))
    make_home(tmp_path / "two", Plan(12, 200_000, 50_000))

    assert digest_tree(tmp_path / "one") == digest_tree(tmp_path / "two")


def test_all_sessions_of_the_made_up_home_are_understood(library: Library) -> None:
    """Every tool's adapter finds its sessions, with the prompt as the title, and without a problem."""
    _scan(library)
    sessions = _sessions(library)

    assert len(sessions) == _PLAN.sessions
    assert {session.tool for session in sessions} == {"claude-code", "gemini-cli", "codex"}
    assert all("needle" in (session.title or "") for session in sessions)
    assert library.problems() == ()


def test_an_unchanged_home_is_only_looked_at_from_outside(library: Library) -> None:
    """A second scan opens no transcript."""
    _scan(library)
    with _counting() as work:
        _scan(library)

    assert work.transcripts == 0


def test_a_first_page_opens_the_newest_files_only(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is settled long before everything was looked at."""
    monkeypatch.setattr("acp_history_bridge.index.library._STEP_SECONDS", 0)  # one file a step, on any machine
    with _counting() as work:
        for _ in library.scan():
            if library.settled(SessionQuery(), 5):
                break

    assert work.transcripts < _PLAN.sessions / 2


def test_a_look_at_a_giant_reads_its_ends(library: Library, giant: Path) -> None:
    """What a list shows of megabytes stands in two windows of 64 KiB."""
    with _counting() as work:
        library.refresh([giant])

    assert work.bytes_read < 150_000


def test_an_appended_turn_costs_a_window(library: Library, giant: Path) -> None:
    """Whatever the size of the file: the last 64 KiB, and what proves that the rest is unchanged."""
    _scan(library)
    size = append_turn(giant, "appended")
    with _counting() as work:
        (change,) = library.refresh([giant])

    assert change.session.id == f"claude:{giant.stem}"
    assert work.transcripts == 1
    assert work.bytes_read < 80 * 1024 + size


def test_the_text_index_reads_only_what_was_added(library: Library, giant: Path, tmp_path: Path) -> None:
    """After an appended turn nothing is decoded again, and no other transcript is opened."""
    _scan(library)
    with closing(TextStore(tmp_path / "text.db")) as store:
        update_text_index(store, _sessions(library), library.adapter)
        size = append_turn(giant, "appended")
        library.refresh([giant])
        with _counting() as work:
            report = update_text_index(store, _sessions(library), library.adapter)

    assert (report.extended, report.rebuilt, report.unchanged) == (1, 0, _PLAN.sessions - 1)
    assert work.transcripts == 1
    assert work.bytes_read < 80 * 1024 + size
