from pathlib import Path

import anyio
import pytest

from acp_history_bridge.adapter import Fingerprint, Store, Unit
from acp_history_bridge.feed import ChangeFeed, merge
from acp_history_bridge.sessions import Change, Session
from tests.builders.notes_index import note_session


def session(title: str, name: str = "a") -> Session:
    """A session in one of its states."""
    return note_session(Unit(Store("notes", Path("/n")), Path(f"/n/{name}.note"), Fingerprint(1, 1, 1)), title)


ONE, TWO, THREE = session("one"), session("two"), session("three")


@pytest.mark.parametrize(
    ("earlier", "later", "merged"),
    [
        (None, Change("removed", ONE), Change("removed", ONE)),
        (Change("added", ONE), Change("changed", TWO, ONE), Change("added", TWO)),
        (Change("added", ONE), Change("removed", ONE), None),
        (Change("changed", TWO, ONE), Change("changed", THREE, TWO), Change("changed", THREE, ONE)),
        (Change("changed", TWO, ONE), Change("changed", ONE, TWO), None),
        (Change("changed", TWO, ONE), Change("removed", TWO), Change("removed", TWO)),
        (Change("removed", ONE), Change("added", TWO), Change("changed", TWO, ONE)),
        (Change("removed", ONE), Change("added", ONE), None),
    ],
)
def test_two_changes_of_a_session_become_their_net_effect(
    earlier: Change | None, later: Change, merged: Change | None
) -> None:
    """Whoever missed the state in between is told how the first differs from the last."""
    assert merge(earlier, later) == merged


async def test_a_slow_subscriber_gets_changes_merged() -> None:
    """While a batch waits to be taken, everything later is merged into the next one."""
    send, receive = anyio.create_memory_object_stream[tuple[Change, ...]](0)
    feed = ChangeFeed(send)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.run)
        feed.add((Change("added", ONE),))
        await anyio.wait_all_tasks_blocked()
        for number in range(1000):
            feed.add((Change("changed", session(f"{number}"), ONE), Change("changed", session("b", "b"), ONE)))
        with anyio.fail_after(5):
            assert await receive.receive() == (Change("added", ONE),)
            assert {change.session.title for change in await receive.receive()} == {"999", "b"}
        feed.close()
    receive.close()


async def test_a_feed_ends_when_its_subscriber_has_left() -> None:
    """Nobody is left waiting for a reader that is gone."""
    send, receive = anyio.create_memory_object_stream[tuple[Change, ...]](0)
    feed = ChangeFeed(send)
    receive.close()
    feed.add((Change("added", ONE),))
    with anyio.fail_after(5):
        await feed.run()
