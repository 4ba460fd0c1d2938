"""A home with notes in it, and libraries over it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Adapter, Environment
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import Change, Session, SessionQuery
from tests.builders.fake_adapter import START, FakeAdapter

OpenLibrary = Callable[..., Library]
LONG_AGO = int(START.timestamp()) * 1_000_000_000
LATER = LONG_AGO + 10 * 365 * 24 * 3600 * 1_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home directory."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def adapter() -> FakeAdapter:
    """The adapter of the default library."""
    return FakeAdapter()


@pytest.fixture
def open_library(home: Path, adapter: FakeAdapter) -> Iterator[OpenLibrary]:
    """A function that opens a library; its clock says that all files are old, so none is looked at twice."""
    opened: list[Library] = []

    def open_one(
        database: Path | IndexStore | None = None,
        adapters: Sequence[Adapter] = (),
        clock: Callable[[], int] = lambda: LATER,
        **variables: str,
    ) -> Library:
        store = database if isinstance(database, IndexStore) else IndexStore.open(database)
        library = Library(adapters or [adapter], Environment(home, variables), store, clock=clock)
        opened.append(library)
        return library

    yield open_one
    for library in opened:
        library.close()


def scan(library: Library) -> list[Change]:
    """Scan to the end."""
    return [change for step in library.scan() for change in step.changes]


def listed(library: Library, query: SessionQuery | None = None, size: int = 1000) -> list[Session]:
    """All sessions of a query, page by page."""
    sessions: list[Session] = []
    cursor: str | None = None
    while True:
        page = library.page(query or SessionQuery(), size, cursor)
        sessions += page.sessions
        if (cursor := page.next_cursor) is None:
            return sessions


def summary(changes: Sequence[Change]) -> list[tuple[str, str]]:
    """Kind and id of each change, in a stable order."""
    return sorted((change.kind, change.session.id) for change in changes)
