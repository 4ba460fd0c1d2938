"""The background update: when it runs, and that it never outlives the agent."""

import os
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.search.background import with_text_index
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.conftest import environment_at


def _history(home: Path) -> History:
    options = HistoryOptions(debounce=0.01, ceiling=0.05)
    return History(lambda: Library([FakeAdapter()], environment_at(home), IndexStore.open(None)), options)


class Command:
    """A command that reports to a pipe with a name each time it runs."""

    def __init__(self, directory: Path, then: str = "") -> None:
        self._pipe = directory / "pipe"
        os.mkfifo(self._pipe)
        code = f"import os, time; open({str(self._pipe)!r}, 'w').write(str(os.getpid())); {then}"
        self.argv = [sys.executable, "-c", code]

    async def has_run(self) -> int:
        """Wait for the next run, and return its process id."""
        with anyio.fail_after(20):
            return int(await anyio.to_thread.run_sync(self._pipe.read_text, abandon_on_cancel=True))


async def test_it_runs_after_the_first_scan_and_again_after_changes(tmp_path: Path) -> None:
    """Nothing changes, nothing runs; something changes, it runs once more."""
    home, command = tmp_path / "home", Command(tmp_path)
    notes_at(home, "folder/old.jsonl", note("old"))

    async with with_text_index(_history(home), command.argv, pause=0.01) as history, history.changes() as changes:
        await command.has_run()
        notes_at(home, "folder/new.jsonl", note("new"))
        with anyio.fail_after(10):
            await changes.receive()
        await command.has_run()


async def test_a_running_update_ends_with_the_agent(tmp_path: Path) -> None:
    """Leaving does not wait for it, and it is gone."""
    home, command = tmp_path / "home", Command(tmp_path, then="time.sleep(60)")
    notes_at(home, "folder/old.jsonl", note("old"))

    async with with_text_index(_history(home), command.argv):
        process = await command.has_run()

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_command_that_cannot_run_costs_nothing_else(tmp_path: Path) -> None:
    """The histories are served all the same."""
    home = tmp_path / "home"
    notes_at(home, "folder/old.jsonl", note("old"))

    async with with_text_index(_history(home), [str(tmp_path / "missing")]) as history:
        with anyio.fail_after(10):
            await history.scanned()
            assert await history.find("none") is None
