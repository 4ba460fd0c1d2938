"""One thread that does all blocking work of one kind, the most urgent first.

Policy: adapters and the index are confined to one thread, so they need no locks, and a request of a client waits for
one short step of a scan and not for the scan. The thread is a daemon: a read that hangs in a dead network drive must
not keep the process alive.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from acp_history_bridge.errors import AdapterError, BridgeError

__all__ = ["Priority", "Worker"]

_Result = TypeVar("_Result")


class Priority(IntEnum):
    """What goes first; equals go in the order they came."""

    STOP = 0
    REQUEST = 1
    CHANGE = 2
    SCAN = 3


class _Call(Generic[_Result]):
    """A function to be called by the thread, and the future that awaits its result in the event loop."""

    def __init__(self, function: Callable[[], _Result], future: "asyncio.Future[_Result]") -> None:
        self._function = function
        self.future = future

    def run(self) -> None:
        if self.future.cancelled():
            return
        try:
            result = self._function()
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            self._fail(error)
        except BaseException as error:  # noqa: BLE001 - an adapter that calls sys.exit must not end the thread
            self._fail(AdapterError(f"{type(error).__name__} was raised while reading histories"))
        else:
            self._hand_over(lambda: self.future.set_result(result))

    def refuse(self) -> None:
        self._fail(BridgeError("the histories are closed"))

    def _fail(self, error: Exception) -> None:
        self._hand_over(lambda: self.future.set_exception(error))

    def _hand_over(self, settle: Callable[[], None]) -> None:
        def settle_if_awaited() -> None:
            if not self.future.done():
                settle()

        try:
            self.future.get_loop().call_soon_threadsafe(settle_if_awaited)
        except RuntimeError:  # the loop has been closed meanwhile
            return


@dataclass(order=True, slots=True)
class _Job:
    priority: Priority
    number: int
    run: Callable[[], None] = field(compare=False)
    refuse: Callable[[], None] = field(compare=False)


class Worker:
    """A daemon thread and its queue of jobs. Used from one event loop."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._number = 0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._stopping = False

    async def run(self, priority: Priority, function: Callable[[], _Result]) -> _Result:
        """Have the thread call a function.

        A call whose awaiting task is cancelled before its turn is dropped; one that has begun runs to its end.

        Raises:
            BridgeError: The worker has been stopped.
        """
        future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        call = _Call(function, future)
        if self._stopping:
            call.refuse()
        else:
            self._put(priority, call.run, call.refuse)
        return await future

    def stop(self, last: Callable[[], None], timeout: float) -> None:
        """Let the thread end what it does, call `last`, refuse the rest and end.

        Args:
            last: Called by the thread.
            timeout: Seconds to wait for it; a thread that hangs is left behind.
        """
        if not self._stopping:
            self._stopping = True
            self._put(Priority.STOP, last, _nothing)
        self._thread.join(timeout)

    def _put(self, priority: Priority, run: Callable[[], None], refuse: Callable[[], None]) -> None:
        self._number += 1
        self._jobs.put(_Job(priority, self._number, run, refuse))
        if self._thread.ident is None:
            self._thread.start()

    def _main(self) -> None:
        while (job := self._jobs.get()).priority is not Priority.STOP:
            job.run()
        job.run()
        with suppress(queue.Empty):
            while True:
                self._jobs.get_nowait().refuse()


def _nothing() -> None:
    """There is nobody to refuse the last job to."""
