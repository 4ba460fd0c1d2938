"""Keeping the full-text index up to date beside a serving agent, in a process of its own.

Decoding gigabytes would hold the interpreter lock of the agent, so `bridge search --update --quiet` does it at low
priority: once after the first scan, then some seconds after sessions have changed. Of several bridges on one home one
runs it at a time; the lock is the builder's business. The process ends with the agent, and goes on where it was next
time.
"""

import logging
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from acp_history_bridge.history import History
from acp_history_bridge.sessions import Change

__all__ = ["with_text_index"]

_PAUSE_SECONDS = 10.0

_log = logging.getLogger(__name__)


@asynccontextmanager
async def with_text_index(
    history: History, command: Sequence[str], pause: float = _PAUSE_SECONDS
) -> AsyncGenerator[History]:
    """Open the histories, and run `command` when there is something new to index, at most every `pause` seconds."""
    async with history, history.changes() as changes, anyio.create_task_group() as tasks:
        tasks.start_soon(_keep_up, history, changes, command, pause)
        yield history
        tasks.cancel_scope.cancel()


async def _keep_up(
    history: History, changes: MemoryObjectReceiveStream[tuple[Change, ...]], command: Sequence[str], pause: float
) -> None:
    await history.scanned()
    while True:
        await _run(command)
        await changes.receive()
        await anyio.sleep(pause)


async def _run(command: Sequence[str]) -> None:
    """Run the update to its end; cancelled, it is killed, and what it has committed stays."""
    try:
        finished = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        _log.warning("the full-text index is not updated: %s", error.strerror or type(error).__name__)
        return
    if finished.returncode:
        _log.warning("updating the full-text index ended with status %d", finished.returncode)
