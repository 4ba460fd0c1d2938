import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.sessions import Change, SessionQuery
from tests.builders.notes_index import NotesIndex, NotesStep

ALL = SessionQuery()
QUICK = HistoryOptions(debounce=0.02, ceiling=0.1)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A directory with four notes."""
    for number in range(4):
        (tmp_path / f"{number}.note").write_text("x", encoding="utf-8")
    return tmp_path


class SlowScan:
    """Endless empty steps in the middle of a scan, until the gate is opened."""

    def __init__(self, notes: Path) -> None:
        self.gate = threading.Event()
        self.steps = 0
        self.ended_by: int | None = None
        self.index = NotesIndex(notes, pauses=self._pauses)

    def _pauses(self) -> Iterator[NotesStep]:
        try:
            while not self.gate.is_set():
                self.steps += 1
                yield NotesStep()
        finally:
            self.ended_by = threading.get_ident()


async def until_changes(
    stream: MemoryObjectReceiveStream[tuple[Change, ...]], enough: Callable[[list[Change]], bool]
) -> list[Change]:
    """Receive until what came so far is enough."""
    changes: list[Change] = []
    with anyio.fail_after(10):
        while not enough(changes):
            changes += await stream.receive()
    return changes


def named(kind: str, name: str) -> Callable[[list[Change]], bool]:
    """Whether a change of this kind and session is there."""
    return lambda changes: any(change.kind == kind and change.session.id == f"notes:{name}" for change in changes)


async def complete(history: History) -> None:
    """Wait until the first scan is over."""
    with anyio.fail_after(10):
        await history.page(ALL, 1000)


async def watched(history: History) -> None:
    """Wait until every root is watched."""
    with anyio.fail_after(10):
        while (status := await history.watch_status()) is None or status.roots[0].mode != "events":
            await anyio.lowlevel.checkpoint()


async def test_a_settled_page_is_answered_while_the_first_scan_runs(notes: Path) -> None:
    """Once nothing found later can change it, a page does not wait."""
    slow = SlowScan(notes)
    async with History(lambda: slow.index, HistoryOptions(watch=False)) as history:
        with anyio.fail_after(10):
            page = await history.page(ALL, 2)
        assert len(page.sessions) == 2
        assert not slow.gate.is_set()


async def test_an_unsettled_page_waits_for_the_scan(notes: Path) -> None:
    """A page that later files may change is answered when they have been looked at."""
    slow = SlowScan(notes)
    async with History(lambda: slow.index, HistoryOptions(watch=False)) as history, anyio.create_task_group() as tasks:

        async def open_gate_after_some_steps() -> None:
            while slow.steps < 50:
                await anyio.lowlevel.checkpoint()
            slow.gate.set()

        tasks.start_soon(open_gate_after_some_steps)
        with anyio.fail_after(10):
            assert len((await history.page(ALL, 10)).sessions) == 4
        assert slow.gate.is_set()


async def test_an_unknown_session_is_only_unknown_after_the_first_scan(notes: Path) -> None:
    """A known session is found at once, one that the scan has yet to see is waited for, and then None means none."""
    os.utime(notes / "0.note", ns=(0, 0))
    slow = SlowScan(notes)
    async with History(lambda: slow.index, HistoryOptions(watch=False)) as history, anyio.create_task_group() as tasks:
        with anyio.fail_after(10):
            known = (await history.page(ALL, 1)).sessions[0]
            assert await history.find(known.id) == known
            tasks.start_soon(anyio.to_thread.run_sync, slow.gate.set)
            assert await history.find("notes:0") is not None
            assert await history.find("notes:none") is None


@pytest.mark.parametrize("watching", [True, False], ids=["watching", "reconciling"])
async def test_changes_on_disk_are_told(notes: Path, *, watching: bool) -> None:
    """New, changed and deleted files reach the subscriber, by events or at the latest by reconciliation."""
    options = QUICK if watching else HistoryOptions(watch=False, reconcile=0.02)
    async with History(lambda: NotesIndex(notes), options) as history, history.changes() as changes:
        await complete(history)
        (notes / "new.note").write_text("x", encoding="utf-8")
        await until_changes(changes, named("added", "new"))
        (notes / "new.note").write_text("longer", encoding="utf-8")
        changed = (await until_changes(changes, named("changed", "new")))[-1]
        assert changed.before is not None
        assert changed.before.unit.fingerprint.size == 1
        (notes / "new.note").unlink()
        await until_changes(changes, named("removed", "new"))


async def test_what_the_first_scan_finds_is_no_news(notes: Path) -> None:
    """A subscriber hears of nothing that was there before; a later change comes first."""
    async with History(lambda: NotesIndex(notes), QUICK) as history, history.changes() as changes:
        await complete(history)
        (notes / "new.note").write_text("x", encoding="utf-8")
        told = await until_changes(changes, bool)
        assert {change.session.id for change in told} == {"notes:new"}


async def test_a_change_during_the_first_scan_is_not_missed(notes: Path) -> None:
    """What changes after its file was looked at and before the watches stand is found by the second scan."""
    slow = SlowScan(notes)
    async with History(lambda: slow.index, QUICK) as history, history.changes() as changes:
        with anyio.fail_after(10):
            newest = (await history.page(ALL, 1)).sessions[0]
        newest.unit.path.write_text("longer", encoding="utf-8")
        slow.gate.set()
        await until_changes(changes, named("changed", newest.record.native_id))


@pytest.mark.fault("J5")
async def test_a_subscriber_who_reads_nothing_holds_up_nobody(notes: Path) -> None:
    """Another subscriber gets every change meanwhile."""
    async with History(lambda: NotesIndex(notes), QUICK) as history, history.changes(), history.changes() as changes:
        await complete(history)
        for number in range(5):
            (notes / f"new{number}.note").write_text("x", encoding="utf-8")
            await until_changes(changes, named("added", f"new{number}"))


@pytest.mark.fault("W5")
async def test_a_burst_of_appends_costs_few_refreshes(notes: Path) -> None:
    """Ten thousand appends to one file are read a few times, not ten thousand times."""
    index = NotesIndex(notes)

    def append_much() -> None:
        with (notes / "0.note").open("a", encoding="utf-8") as file:
            for _ in range(10_000):
                file.write("x\n")
                file.flush()

    async with History(lambda: index) as history, history.changes() as changes:
        await watched(history)
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(append_much)
            size = (notes / "0.note").stat().st_size
            await until_changes(
                changes, lambda seen: any(change.session.unit.fingerprint.size == size for change in seen)
            )
        assert len(index.refreshes) <= 10


async def test_endless_writing_is_told_meanwhile(notes: Path) -> None:
    """A file that is never quiet for the time of the debounce is read after the ceiling all the same."""
    done = threading.Event()

    def write_on() -> None:
        while not done.wait(0.01):
            (notes / "0.note").write_text(f"{time.monotonic_ns()}", encoding="utf-8")

    options = HistoryOptions(debounce=5, ceiling=0.1)
    async with History(lambda: NotesIndex(notes), options) as history, history.changes() as changes:
        await watched(history)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, write_on)
            try:
                await until_changes(changes, named("changed", "0"))
            finally:
                done.set()


async def test_all_work_on_the_index_is_done_by_one_thread(notes: Path) -> None:
    """Opening, scanning, asking and closing happen on the same thread, which is not the event loop's."""
    index = NotesIndex(notes)
    async with History(lambda: index, QUICK) as history, history.changes() as changes:
        await complete(history)
        await history.find("notes:0")
        (notes / "new.note").write_text("x", encoding="utf-8")
        await until_changes(changes, named("added", "new"))
    assert index.closed
    assert len(index.threads) == 1
    assert threading.get_ident() not in index.threads


async def test_closing_is_prompt_in_the_middle_of_a_scan(notes: Path) -> None:
    """The scan ends where it is and on its own thread, the index is closed and no thread stays."""
    slow = SlowScan(notes)
    async with History(lambda: slow.index) as history:
        with anyio.fail_after(10):
            await history.page(ALL, 2)
            while not slow.steps:
                await anyio.lowlevel.checkpoint()
        begun = time.monotonic()
    assert time.monotonic() - begun < 1
    assert slow.index.closed
    assert slow.index.threads == {slow.ended_by}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("history-")]


@pytest.mark.fault("C6")
async def test_closing_does_not_wait_for_a_hanging_read(notes: Path) -> None:
    """A file on a dead network drive must not keep the process."""
    hanging = threading.Event()
    release = threading.Event()

    def hang() -> Iterator[NotesStep]:
        hanging.set()
        release.wait(20)
        yield NotesStep()

    index = NotesIndex(notes, pauses=hang)
    with anyio.fail_after(1):
        async with History(lambda: index):
            await anyio.to_thread.run_sync(hanging.wait)
    release.set()


@pytest.mark.fault("F11")
async def test_a_failing_scan_is_tried_again(notes: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged, a list is answered with what there is, and the next reconciliation brings the rest."""
    failures = [OSError("disk on fire")]

    def fail_once() -> Iterator[NotesStep]:
        if failures:
            raise failures.pop()
        return iter(())

    index = NotesIndex(notes, pauses=fail_once)
    async with History(lambda: index, HistoryOptions(watch=False, reconcile=0.02)) as history:
        with anyio.fail_after(10):
            assert len((await history.page(ALL, 10)).sessions) == 2
            while len((await history.page(ALL, 10)).sessions) < 4:
                await anyio.lowlevel.checkpoint()
    assert "disk on fire" in caplog.text


@pytest.mark.fault("I6")
async def test_an_index_that_cannot_be_opened_fails_the_request_only(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asks is told; the front-end lives on."""

    def refuse() -> NotesIndex:
        raise OSError("no index")

    async with History(refuse, HistoryOptions(reconcile=0.02)) as history:
        with anyio.fail_after(10), pytest.raises(OSError, match="no index"):
            await history.page(ALL, 10)
        with anyio.fail_after(10):
            while "no index" not in caplog.text:
                await anyio.lowlevel.checkpoint()


async def test_an_error_of_the_user_of_a_subscription_is_not_wrapped(notes: Path) -> None:
    """Neither the subscription nor the history turns it into an exception group."""
    with pytest.raises(ZeroDivisionError):
        async with History(lambda: NotesIndex(notes)) as history, history.changes():
            raise ZeroDivisionError


async def test_a_subscription_ends_with_the_history(notes: Path) -> None:
    """Whoever still listens comes to the end of the stream."""
    history = History(lambda: NotesIndex(notes), HistoryOptions(watch=False))
    await history.__aenter__()
    async with history.changes() as changes:
        await history.__aexit__(None, None, None)
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await changes.receive()


async def test_tools_are_counted_and_kept_up_to_date(notes: Path) -> None:
    """The number of sessions follows what was found and what changed."""
    async with History(lambda: NotesIndex(notes), QUICK) as history, history.changes() as changes:
        assert history.tools() == ()
        await complete(history)
        assert [(tool.name, tool.title, tool.sessions) for tool in history.tools()] == [("notes", "Notes", 4)]
        (notes / "0.note").unlink()
        await until_changes(changes, named("removed", "0"))
        assert [tool.sessions for tool in history.tools()] == [3]


async def test_active_sessions_are_named_by_their_wire_ids(notes: Path) -> None:
    """What a tool calls active and no index knows is left out."""
    index = NotesIndex(notes)
    index.notes.active = frozenset({"0", "unknown"})
    async with History(lambda: index, HistoryOptions(watch=False)) as history:
        await complete(history)
        assert await history.active_sessions() == {"notes:0"}


@pytest.mark.fault("C6")
async def test_an_adapter_that_fails_to_name_a_command_names_none(
    notes: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is logged with the adapter's name."""
    index = NotesIndex(notes)
    async with History(lambda: index, HistoryOptions(watch=False)) as history:
        await complete(history)
        session = (await history.page(ALL, 1)).sessions[0]
        command = history.resume_command(session)
        assert command is not None
        assert command.argv[-1] == session.record.native_id
        monkeypatch.setattr(index.notes, "resume_command", None)
        assert history.resume_command(session) is None
    assert "notes" in caplog.text
