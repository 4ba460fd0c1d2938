"""Pushes: `session_info_update` for sessions in the client's list."""

import dataclasses
import time
from datetime import UTC, datetime

import pytest

from acp_history_bridge.sessions import ChangeKind, Session
from acp_history_bridge.settings import PushMode, Settings
from tests.peers.bridge import Connection, connected
from tests.peers.memory import MemorySource, later, say, session


def change(bridge: Connection, session_id: str, **fields: object) -> None:
    """The session moves on."""
    tell(bridge, dataclasses.replace(later(bridge.source.sessions[session_id]), **fields))  # type: ignore[arg-type]  # any


def tell(bridge: Connection, changed: Session, kind: ChangeKind = "changed") -> None:
    """The source reports a change, in the agent's own event loop."""
    bridge.call(bridge.source.change, changed, kind)


def test_only_what_changed_is_pushed(bridge: Connection) -> None:
    """Time alone, or time and title; a title that vanished is not mentioned."""
    bridge.request("session/list")
    change(bridge, "made:1")
    assert bridge.next()["params"]["update"] == {
        "sessionUpdate": "session_info_update",
        "updatedAt": "2026-01-02T03:05:05.678Z",
    }
    change(bridge, "made:1", title="Another")
    assert bridge.next()["params"]["update"]["title"] == "Another"
    change(bridge, "made:1", title=None)
    assert "title" not in bridge.next()["params"]["update"]
    tell(bridge, bridge.source.sessions["made:1"])
    assert bridge.silent(1.3) >= 1.3


@pytest.mark.fault("W5")
def test_bursts_are_a_second_apart_and_merged(bridge: Connection) -> None:
    """Over all sessions."""
    bridge.source.add(session("made:2"))
    bridge.request("session/list")
    change(bridge, "made:1")
    bridge.next()
    begin = time.monotonic()
    for _ in range(20):
        change(bridge, "made:1")
        change(bridge, "made:2")
    first, second = bridge.next(), bridge.next()
    assert time.monotonic() - begin > 0.9
    assert {first["params"]["sessionId"], second["params"]["sessionId"]} == {"made:1", "made:2"}
    assert bridge.silent(1.3) >= 1.3


@pytest.mark.fault("W8")
def test_pushes_wait_for_loads(bridge: Connection) -> None:
    """None during a load, and none for 200 ms after its answer."""
    bridge.source.add(session("made:2"), [say(number, "x" * 1000) for number in range(3000)])
    bridge.request("session/list")
    id_ = bridge.start("session/load", {"sessionId": "made:2", "cwd": "/"})
    while not bridge.updates("made:2", "user_message_chunk"):
        bridge.next()
    change(bridge, "made:1")
    bridge.answer(id_)
    assert not bridge.updates("made:1")
    bridge.next()
    assert bridge.times[-1] - bridge.times[-2] >= 0.2
    assert bridge.updates("made:1")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("off", []),
        ("open", ["made:opened"]),
        ("listed", ["made:listed", "made:opened"]),
        ("all", ["made:listed", "made:new", "made:old", "made:opened"]),
    ],
)
def test_the_setting_says_for_which_sessions(mode: PushMode, expected: list[str]) -> None:
    """What appeared is new to the client, however old its times are; removed sessions are not mentioned."""
    source = MemorySource()
    for name in ("listed", "opened", "removed"):
        source.add(session(f"made:{name}"), [say(0)])
    settings = dataclasses.replace(Settings(), pushes=mode)
    with connected(source, settings) as bridge:
        bridge.initialize()
        bridge.request("session/list")
        bridge.load("made:opened")
        before = len(bridge.messages)
        tell(bridge, session("made:new", updated_at=datetime.now(UTC)), "added")
        tell(bridge, session("made:old"), "added")
        tell(bridge, source.sessions["made:removed"], "removed")
        change(bridge, "made:listed")
        change(bridge, "made:opened")
        while bridge.silent(0.6) < 0.6:
            pass
        assert sorted(message["params"]["sessionId"] for message in bridge.messages[before:]) == expected


@pytest.mark.fault("W8")
def test_nothing_is_pushed_before_the_first_list(bridge: Connection) -> None:
    """A client that never asked is not told."""
    bridge.request("session/new", {"cwd": "/"})
    bridge.next()
    tell(bridge, session("made:new", updated_at=datetime.now(UTC)), "added")
    change(bridge, "made:1")
    assert bridge.silent(0.5) >= 0.5
