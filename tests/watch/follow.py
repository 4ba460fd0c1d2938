"""Follows a directory of notes and prints how many there are whenever that changes; run by test_scale.py."""

import sys
from pathlib import Path

import anyio

from acp_history_bridge.history import History
from acp_history_bridge.sessions import SessionQuery
from tests.builders.notes_index import NotesIndex


async def follow(root: Path) -> None:
    """Print the number of notes, for ever."""
    async with History(lambda: NotesIndex(root)) as history, history.changes() as changes:
        await history.page(SessionQuery(), 1_000_000)
        while (status := await history.watch_status()) is None or status.roots[0].mode != "events":
            await anyio.lowlevel.checkpoint()
        sys.stdout.write("watching\n")
        sys.stdout.flush()
        async for _ in changes:
            status = await history.watch_status()
            sys.stdout.write(f"{history.tools()[0].sessions} {status.overflows if status else 0}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(follow, Path(sys.argv[1]))
