"""`bridge watch`: what happens is told, and nothing else."""

import json
from pathlib import Path

import anyio
import pytest

from acp_history_bridge.cli.watch import follow, matches
from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sample import lay_out
from acp_history_bridge.sessions import Change, SessionQuery
from tests.conftest import environment_at

pytestmark = pytest.mark.anyio

CART = "6513270e-269e-4d37-b2a7-4de452e6b438"


async def test_a_grown_session_is_told_and_what_was_there_before_is_not(tmp_path: Path) -> None:
    """One change, of the session that was written to."""
    lay_out(tmp_path)
    path = next((tmp_path / ".claude").rglob(f"{CART}.jsonl"))
    told: list[Change] = []
    happened = anyio.Event()

    def show(change: Change) -> None:
        told.append(change)
        happened.set()

    def write() -> None:
        line = path.read_text(encoding="utf-8").splitlines()[-1]
        title = {"type": "custom-title", "customTitle": "A new name", "sessionId": CART}
        path.write_text(path.read_text(encoding="utf-8") + json.dumps(title) + "\n" + line + "\n", encoding="utf-8")

    adapters = load_adapters(third_party=False)
    history = History(
        lambda: Library(adapters, environment_at(tmp_path), IndexStore.open(None)), HistoryOptions(reconcile=1)
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, history, show, write)
        with anyio.fail_after(20):
            await happened.wait()
        tasks.cancel_scope.cancel()

    assert {change.session.id for change in told} == {f"claude:{CART}"}
    assert told[-1].kind == "changed"
    assert matches(told[-1].session, SessionQuery(tools=frozenset({"claude-code"}), cwd=Path("/home/ada/src/shop")))
    assert not matches(told[-1].session, SessionQuery(tools=frozenset({"codex"})))
    assert not matches(told[-1].session, SessionQuery(cwd=Path("/home/ada")))
