"""Every session of the recorded homes, forked: what comes out says what went in, and nothing else has changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.errors import ForkError
from acp_history_bridge.forking import fork_title, take_in, write_fork
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.turns import Part, Text, Thought, ToolCall
from tests.conftest import copy_home, digest_tree, environment_at

# How many sessions of the home are in a form that the tool itself cannot go on with.
REFUSED = {"claude-code": 0, "gemini-cli": 4, "codex": 7, "qwen-code": 2}


@pytest.fixture(params=REFUSED)
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Adapter, Library, Path]]:
    """The home of each tool that has forks, scanned."""
    home = copy_home(request.param, tmp_path)
    (adapter,) = load_adapters([request.param])
    library = Library([adapter], environment_at(home), IndexStore.open(None))
    for _ in library.scan():
        pass
    yield adapter, library, home
    library.close()


def said(library: Library, session: Session) -> list[tuple[object, ...]]:
    """Who said what, thought what and called what, in order."""
    transcript = library.open(session)
    found = [(turn.role, *shown(part)) for turn in transcript.turns() for part in turn.parts]
    transcript.close()
    return found


def shown(part: Part) -> tuple[object, ...]:
    """What a part shows, without ids, which a fork may change."""
    match part:
        case Text() | Thought():
            return (type(part), part.text)
        case ToolCall():
            return (ToolCall, part.name, part.title, part.status)
        case _:
            return (type(part),)


def test_every_session_that_its_tool_can_go_on_with_has_a_fork(library: tuple[Adapter, Library, Path]) -> None:
    """It replays alike, has a title and a parent, is the user's alone; all that was there before is as it was."""
    adapter, index, home = library
    before = digest_tree(home)
    refused = 0
    for session in index.page(SessionQuery(), 1000).sessions:
        try:
            written = write_fork(adapter, session)
        except ForkError:
            refused += 1
            continue
        fork, changes = take_in(index, adapter, session, written)
        assert changes
        assert fork.listed
        assert (fork.record.parent, fork.record.kind) == (session.record.native_id, "fork")
        assert fork.title == fork_title(session.record)
        assert (fork.cwd, fork.unit.path.stat().st_mode & 0o777) == (session.cwd, 0o600)
        assert said(index, fork) == said(index, session)
    assert refused == REFUSED[adapter.name]
    assert before.items() <= digest_tree(home).items()


def test_a_fork_can_be_forked(library: tuple[Adapter, Library, Path]) -> None:
    """Also one that holds nothing but a reference to its base."""
    adapter, index, _ = library
    (session,) = index.page(SessionQuery(), 1).sessions
    first, _ = take_in(index, adapter, session, write_fork(adapter, session))
    second, _ = take_in(index, adapter, first, write_fork(adapter, first))
    assert second.record.parent == first.record.native_id
    assert said(index, second) == said(index, session)
