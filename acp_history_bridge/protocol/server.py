"""Serving one client over stdin and stdout: wiring, start and end.

Policy:

- The client's pipe is taken away from everybody else first; `initialize` is answered before the histories are opened.
- The end of input, SIGTERM, SIGINT, SIGHUP and a client that is gone are all a normal end, with exit code 0. After the
  end of input, requests that are running get a moment to be answered: `printf … | bridge acp` works.
- Two seconds after the cause the process is gone, whatever a worker thread is doing. That is safe, because histories
  are only read and the index is written in transactions.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from acp_history_bridge.protocol.stdio import FrameReader, FrameWriter, take_stdio
from acp_history_bridge.sessions import SessionSource
from acp_history_bridge.settings import Settings

if TYPE_CHECKING:
    from anyio import CancelScope

    from acp_history_bridge.protocol.agent import Agent

__all__ = ["MakeSource", "converse", "serve"]

_GRACE = 1.0
_DEADLINE = 1.6
_DEADLINE_NAME = "acp-deadline"

_log = logging.getLogger(__name__)

MakeSource = Callable[[], AbstractAsyncContextManager[SessionSource]]


def serve(make_source: MakeSource, settings: Settings) -> int:
    """Serve the client on stdin and stdout until it leaves.

    Args:
        make_source: Makes the histories; entered once `initialize` has been answered, left at the end.
        settings: The user's settings.

    Returns:
        The process's exit code.
    """
    descriptors = take_stdio()
    # Until the handlers stand, the signals end the process without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    import anyio

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_signal, tasks.cancel_scope)
            await converse(*descriptors, make_source, settings, on_ending=_end_by_deadline)
            tasks.cancel_scope.cancel()

    try:
        anyio.run(main)
    except Exception as error:  # noqa: BLE001 - the last resort: what is left belongs into the log, not onto stderr
        from acp_history_bridge.protocol.jsonrpc import where

        _log.critical("the agent failed: %s", where(error))
        return 1
    return 0


async def converse(
    read_from: int,
    write_to: int,
    make_source: MakeSource,
    settings: Settings,
    on_ending: Callable[[], None] = lambda: None,
) -> None:
    """Serve one client over two descriptors until it leaves.

    Args:
        read_from: Where the client's frames come from.
        write_to: Where ours go.
        make_source: As for `serve`.
        settings: As for `serve`.
        on_ending: Called as soon as the client has left, before what is running is ended.
    """
    import anyio

    from acp_history_bridge.protocol.agent import Agent
    from acp_history_bridge.protocol.jsonrpc import Dispatcher

    gone = anyio.Event()
    reader = FrameReader(read_from)
    writer = FrameWriter(write_to, on_broken=gone.set)
    agent = Agent(settings, writer.send, writer.drain)

    async def receive() -> None:
        while (frame := await reader.receive()) is not None:
            await dispatcher.dispatch(frame)
        on_ending()
        with anyio.move_on_after(_GRACE):
            await dispatcher.finish()
            await writer.drain()
        gone.set()

    try:
        async with anyio.create_task_group() as tasks:
            dispatcher = Dispatcher(writer.send, tasks, agent.requests, agent.notifications)
            tasks.start_soon(receive)
            tasks.start_soon(_provide, agent, make_source)
            await gone.wait()
            on_ending()
            tasks.cancel_scope.cancel()
    finally:
        reader.close()


async def _provide(agent: "Agent", make_source: MakeSource) -> None:
    """Open the histories once the client has its answer, and serve from them."""
    from acp_history_bridge.protocol.jsonrpc import where

    await agent.initialized.wait()
    try:
        async with make_source() as source:
            await agent.serve(source)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer, not a dead pipe
        _log.critical("the histories cannot be read: %s", where(error))
        agent.fail()


async def _until_signal(scope: "CancelScope") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            _end_by_deadline()
            scope.cancel()


def _end_by_deadline() -> None:
    """End the process even if a worker thread cannot be stopped; a daemon, so it does not itself keep us alive."""
    if not any(thread.name == _DEADLINE_NAME for thread in threading.enumerate()):
        timer = threading.Timer(_DEADLINE, os._exit, (0,))
        timer.name, timer.daemon = _DEADLINE_NAME, True
        timer.start()
