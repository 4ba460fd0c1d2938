from pathlib import Path

import anyio
import pytest

from acp_history_bridge.adapter import Environment
from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import SessionQuery
from tests.builders.notes_index import NotesAdapter


@pytest.mark.parametrize("persistent", [False, True], ids=["in memory", "on disk"])
async def test_the_real_library_is_followed(tmp_path: Path, *, persistent: bool) -> None:
    """Listing, finding, counting, live changes and the end work over the real index, opened on its own thread."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "old.note").write_text("x", encoding="utf-8")
    database = tmp_path / "cache/index.db" if persistent else None

    def open_library() -> Library:
        return Library([NotesAdapter()], Environment(home), IndexStore.open(database))

    options = HistoryOptions(debounce=0.02)
    with anyio.fail_after(20):
        async with History(open_library, options) as history, history.changes() as changes:
            assert [found.id for found in (await history.page(SessionQuery(), 10)).sessions] == ["notes:old"]
            assert await history.find("notes:old") is not None
            (home / "new.note").write_text("x", encoding="utf-8")
            assert {(change.kind, change.session.id) for change in await changes.receive()} == {("added", "notes:new")}
            assert [tool.sessions for tool in history.tools()] == [2]
        async with History(open_library, options) as history:
            assert len((await history.page(SessionQuery(), 10)).sessions) == 2
