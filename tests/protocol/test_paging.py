"""Paging through the agent while sessions come, change, go and are hidden, checked against a model."""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from acp_history_bridge.adapter import Environment
from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.settings import Settings
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.peers.bridge import Served, serving

NAMES = st.sampled_from([f"s{number}" for number in range(12)])
CWDS = ("/work/a", "/work/b")


class Paging(RuleBasedStateMachine):
    """Several lists are paged through at the same time; every file is one session."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.home = Path(tempfile.mkdtemp())
        self.stack.callback(shutil.rmtree, self.home)
        self.history = History(self.open_library, HistoryOptions(watch=False, reconcile=3600))
        self.bridge: Served = self.stack.enter_context(serving(self.make_source, Settings(pushes="off")))
        self.bridge.initialize()
        self.bridge.request("session/list")
        self.minute = 0
        self.cwd_of: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.pages: dict[str | None, tuple[str, list[str], set[str]]] = {}

    def open_library(self) -> Library:
        """A library over the machine's home, in memory."""
        return Library([FakeAdapter()], Environment(self.home), IndexStore.open(None))

    @asynccontextmanager
    async def make_source(self) -> AsyncGenerator[History]:
        """The real histories."""
        async with self.history:
            yield self.history

    def touch(self, name: str) -> None:
        """The session has changed: no promise about it holds for lists that are being paged through."""
        for _, _, steady in self.pages.values():
            steady.discard(f"notes:{name}")
        # As when a watcher had marked the file; a real one would make the steps wait.
        history: Any = self.history
        self.bridge.call(history._refresh, [self.path(name)])

    def path(self, name: str) -> Path:
        """Its file."""
        return self.home / ".notes" / "x" / f"{name}.jsonl"

    @rule(name=NAMES, cwd=st.sampled_from(CWDS))
    def write(self, name: str, cwd: str) -> None:
        """A new session, or activity in an old one."""
        self.minute += 1
        cwd = self.cwd_of.setdefault(name, cwd)
        notes_at(self.home, f"x/{name}.jsonl", note(name, minute=self.minute, cwd=cwd))
        self.touch(name)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        """Its file goes."""
        self.path(name).unlink(missing_ok=True)
        self.cwd_of.pop(name, None)
        self.touch(name)

    @rule(name=NAMES)
    def hide(self, name: str) -> None:
        """The user deletes it."""
        self.bridge.request("session/delete", {"sessionId": f"notes:{name}"})
        if name in self.cwd_of:
            self.hidden.add(name)
            self.touch(name)

    @rule(cwd=st.none() | st.sampled_from(CWDS))
    def begin(self, cwd: str | None) -> None:
        """Ask for the first page; whatever is listed now and stays as it is has to come exactly once."""
        page = self.ask(cwd)
        steady = {f"notes:{name}" for name in self.expected(cwd)}
        self.take(cwd, page, [], steady)

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """Ask for the next page of one of the lists."""
        cwd = data.draw(st.sampled_from(list(self.pages)))
        cursor, seen, steady = self.pages.pop(cwd)
        self.take(cwd, self.ask(cwd, cursor), seen, steady)

    @precondition(lambda self: self.pages)
    @rule(data=st.data(), other=st.sampled_from(["/work/c", *CWDS]))
    def mix_up(self, data: st.DataObject, other: str) -> None:
        """A cursor of another list, or a forged one, is refused and does no harm."""
        cwd = data.draw(st.sampled_from(list(self.pages)))
        cursor = self.pages[cwd][0]
        for wrong, directory in ((cursor, other), (cursor[:-2] + "AA", cwd), (cursor + "A", cwd)):
            if (wrong, directory) != (cursor, cwd):
                params = {"cursor": wrong, **({"cwd": directory} if directory else {})}
                assert self.bridge.refused("session/list", params)["code"] == -32602

    @invariant()
    def everything_is_listed(self) -> None:
        """A list in one piece is what the model says."""
        assert {row.removeprefix("notes:") for row in self.ids(self.ask(None, limit=100))} == set(self.expected(None))

    def expected(self, cwd: str | None) -> list[str]:
        """What a list has to show."""
        return [name for name, its in self.cwd_of.items() if cwd in (None, its) and name not in self.hidden]

    def ask(self, cwd: str | None, cursor: str | None = None, limit: int = 2) -> dict[str, object]:
        """One page."""
        params = {"cwd": cwd, "cursor": cursor, "_meta": {"acp-history-bridge": {"limit": limit}}}
        return self.bridge.request("session/list", params)

    def ids(self, page: dict[str, object]) -> list[str]:
        """Of its sessions."""
        return [row["sessionId"] for row in page["sessions"]]  # type: ignore[attr-defined]

    def take(self, cwd: str | None, page: dict[str, object], seen: list[str], steady: set[str]) -> None:
        """Nothing steady comes twice, and when the list is at its end nothing steady is missing."""
        new = self.ids(page)
        assert not steady & set(seen) & set(new)
        seen = [*seen, *new]
        if "nextCursor" in page:
            self.pages[cwd] = (str(page["nextCursor"]), seen, steady)
        else:
            assert steady <= set(seen)

    def teardown(self) -> None:
        """The client leaves."""
        self.stack.close()


Paging.TestCase.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestPaging = Paging.TestCase
