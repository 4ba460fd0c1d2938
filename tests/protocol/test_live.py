"""Live lists: `_session/list/subscribe` and `_session/list/changes`."""

import dataclasses
import time
from collections.abc import Generator

import pytest

from acp_history_bridge.sessions import ChangeKind, Session
from acp_history_bridge.settings import Settings
from tests.peers.bridge import Connection, Message, connected
from tests.peers.memory import MemorySource, later, say, session

AIR: dict[str, object] = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}
OURS: dict[str, object] = {"acp-history-bridge": {"liveLists": {}}}


@pytest.fixture
def air(source: MemorySource) -> Generator[Connection]:
    """A client that speaks AIR's session index; other pushes are off."""
    with connected(source, dataclasses.replace(Settings(), pushes="off")) as connection:
        connection.initialize(_meta=AIR)
        yield connection


def tell(bridge: Connection, changed: Session, kind: ChangeKind = "changed") -> None:
    """The source reports a change."""
    bridge.call(bridge.source.change, changed, kind)


def change_of(bridge: Connection) -> Message:
    """The next notification."""
    message = bridge.next()
    assert message["method"] == "_session/list/changes"
    params: Message = message["params"]
    return params


def test_only_clients_that_ask_for_it_have_live_lists(raw: Connection) -> None:
    """For others the methods do not exist."""
    assert "jetbrains" not in raw.initialize()["agentCapabilities"]["_meta"]
    for method in ("subscribe", "unsubscribe"):
        assert raw.refused(f"_session/list/{method}", {})["code"] == -32601


@pytest.mark.parametrize("meta", [AIR, OURS])
def test_a_client_announces_one_of_two_extensions(raw: Connection, meta: dict[str, object]) -> None:
    """AIR's, which is answered in kind, or ours."""
    capabilities = raw.initialize(_meta=meta)["agentCapabilities"]["_meta"]
    assert ("jetbrains" in capabilities) == (meta is AIR)
    assert capabilities["acp-history-bridge"]["liveLists"] == {}
    assert raw.request("_session/list/subscribe", {})["subscriptionId"]


def test_changes_are_whole_rows_and_removed_ids(air: Connection) -> None:
    """What appears, changes its title, goes, or is hidden; as rows of AIR's list have it."""
    subscription = air.request("_session/list/subscribe", {"cwd": "/home/ada/demo"})["subscriptionId"]
    tell(air, session("made:new", model="m"), "added")
    change = change_of(air)
    assert (change["subscriptionId"], change["removed"]) == (subscription, [])
    [shown] = change["sessions"]
    assert (shown["sessionId"], shown["cwd"], shown["title"]) == ("made:new", "/home/ada/demo", "A title")
    assert shown["_meta"]["jetbrains"]["air"] == {"archived": False, "model": "m", "state": "idle"}
    tell(air, dataclasses.replace(air.source.sessions["made:1"], title="Renamed"))
    assert change_of(air)["sessions"][0]["title"] == "Renamed"
    tell(air, air.source.sessions["made:new"], "removed")
    assert change_of(air)["removed"] == ["made:new"]
    air.request("session/delete", {"sessionId": "made:1"})
    assert change_of(air)["removed"] == ["made:1"]


def test_activity_alone_is_no_change(air: Connection) -> None:
    """A later time, more messages, a longer file."""
    air.request("_session/list/subscribe", {})
    grown = later(air.source.sessions["made:1"])
    tell(air, dataclasses.replace(grown, record=dataclasses.replace(grown.record, message_count=9)))
    assert air.silent(0.3) >= 0.3


def test_a_list_has_only_its_own_directory(air: Connection) -> None:
    """A session that moves away is removed; one that was never in it is not mentioned; names of links are equal."""
    air.request("_session/list/subscribe", {"cwd": "/home/ada/demo/."})
    tell(air, session("made:elsewhere", cwd="/elsewhere"), "added")
    tell(air, dataclasses.replace(air.source.sessions["made:1"], cwd="/elsewhere"))
    change = change_of(air)
    assert (change["sessions"], change["removed"]) == ([], ["made:1"])


def test_a_session_comes_once_a_second(air: Connection) -> None:
    """With its latest state, however often it changes."""
    air.request("_session/list/subscribe", {})
    tell(air, dataclasses.replace(air.source.sessions["made:1"], title="0"))
    change_of(air)
    begin = time.monotonic()
    for number in range(1, 20):
        tell(air, dataclasses.replace(air.source.sessions["made:1"], title=f"{number}"))
    assert change_of(air)["sessions"][0]["title"] == "19"
    assert time.monotonic() - begin > 0.9


def test_changes_wait_for_loads(air: Connection) -> None:
    """None during a replay, nor for 200 ms after it."""
    air.source.add(session("made:2"), [say(number, "x" * 1000) for number in range(3000)])
    air.request("_session/list/subscribe", {})
    id_ = air.start("session/load", {"sessionId": "made:2", "cwd": "/"})
    while not air.updates("made:2", "user_message_chunk"):
        air.next()
    tell(air, dataclasses.replace(air.source.sessions["made:1"], title="Renamed"))
    air.answer(id_)
    change_of(air)
    assert air.times[-1] - air.times[-2] >= 0.2


def test_many_changes_come_in_several_frames(air: Connection) -> None:
    """Each below 1 MiB, and every session once."""
    air.request("_session/list/subscribe", {})
    for number in range(300):
        tell(air, session(f"made:{number}", cwd="/" + "\x01" * 1000), "added")
    shown: set[str] = set()
    while len(shown) < 300:
        ids = {row["sessionId"] for row in change_of(air)["sessions"]}
        assert not ids & shown
        shown |= ids


def test_subscriptions_are_limited_and_can_be_ended(air: Connection) -> None:
    """128; an ended one is told nothing more."""
    ids = [air.request("_session/list/subscribe", {})["subscriptionId"] for _ in range(128)]
    assert air.refused("_session/list/subscribe", {})["code"] == -32602
    assert air.refused("_session/list/subscribe", {"cwd": "relative"})["code"] == -32602
    for id_ in ids:
        assert air.request("_session/list/unsubscribe", {"subscriptionId": id_}) == {}
    tell(air, session("made:new"), "added")
    assert air.silent(0.3) >= 0.3


def test_air_filters_its_lists_in_its_own_way(air: Connection) -> None:
    """`limit` and `archived` under `_meta.jetbrains.air.list`."""
    air.source.add(later(session("made:away", archived=True)))

    def ids(**wanted: object) -> list[str]:
        params = {"_meta": {"jetbrains": {"air": {"list": wanted}}}}
        return [row["sessionId"] for row in air.request("session/list", params)["sessions"]]

    assert ids(limit=1) == ["made:away"]
    assert (ids(archived="archived"), ids(archived="unarchived")) == (["made:away"], ["made:1"])
    assert ids(archived="all", includeWorktrees=True) == ["made:away", "made:1"]
