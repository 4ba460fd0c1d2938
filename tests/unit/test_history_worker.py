import sys
import threading
from collections.abc import AsyncIterator

import anyio
import pytest

from acp_history_bridge.errors import AdapterError, BridgeError
from acp_history_bridge.worker import Priority, Worker


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    """A worker that is stopped at the end."""
    worker = Worker("test-worker")
    yield worker
    worker.stop(lambda: None, 5)


async def test_the_most_urgent_call_goes_first(worker: Worker) -> None:
    """Whatever waits when the thread becomes free is taken by urgency, equals in the order they came."""
    order: list[str] = []
    gate = threading.Event()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run, Priority.REQUEST, gate.wait)
            await anyio.wait_all_tasks_blocked()
            for name, priority in [("scan", 3), ("change", 2), ("request", 1), ("another request", 1)]:
                tasks.start_soon(worker.run, Priority(priority), lambda name=name: order.append(name))
                await anyio.wait_all_tasks_blocked()
            gate.set()
    assert order == ["request", "another request", "change", "scan"]


async def test_an_error_is_raised_where_the_result_is_awaited(worker: Worker) -> None:
    """The thread survives it."""
    with pytest.raises(ZeroDivisionError):
        await worker.run(Priority.REQUEST, lambda: 1 // 0)
    assert await worker.run(Priority.REQUEST, lambda: "alive") == "alive"


@pytest.mark.fault("C6")
async def test_a_call_that_exits_does_not_end_the_thread(worker: Worker) -> None:
    """An adapter may call `sys.exit`; that is its failure and nobody else's."""
    with pytest.raises(AdapterError, match="SystemExit"):
        await worker.run(Priority.REQUEST, sys.exit)
    assert await worker.run(Priority.REQUEST, lambda: "alive") == "alive"


@pytest.mark.fault("C4")
async def test_a_cancelled_call_is_dropped_before_its_turn(worker: Worker) -> None:
    """Nobody waits for it any more."""
    gate = threading.Event()
    called: list[None] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run, Priority.REQUEST, gate.wait)
            await anyio.wait_all_tasks_blocked()
            with anyio.CancelScope() as scope:
                scope.cancel()
                await worker.run(Priority.REQUEST, lambda: called.append(None))
            gate.set()
        await worker.run(Priority.SCAN, lambda: None)
    assert not called


async def test_stopping_calls_the_last_function_and_refuses_the_rest() -> None:
    """What waits gets an error instead of waiting for ever, also when it comes later."""
    worker = Worker("test-worker")
    gate, last = threading.Event(), threading.Event()
    refused: list[str] = []

    async def ask() -> None:
        try:
            await worker.run(Priority.REQUEST, lambda: None)
        except BridgeError as error:
            refused.append(str(error))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run, Priority.REQUEST, gate.wait)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            worker.stop(last.set, 0)
            gate.set()
        await ask()
    assert last.is_set()
    assert len(refused) == 2


@pytest.mark.fault("C6")
async def test_a_hanging_call_does_not_hold_up_the_end() -> None:
    """The thread is left behind after the time that was granted."""
    worker = Worker("test-worker")
    gate = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run, Priority.REQUEST, gate.wait)
        await anyio.wait_all_tasks_blocked()
        worker.stop(lambda: None, 0.01)
        tasks.cancel_scope.cancel()
    gate.set()
