"""Delete, and the unstable archive, unarchive, status and set_title."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from acp_history_bridge.errors import BridgeError, IndexStoreError
from acp_history_bridge.settings import DeleteMode, Settings
from tests.peers.bridge import Connection, connected
from tests.peers.memory import MemorySource, later, say, session


@pytest.fixture
def unstable(source: MemorySource) -> Generator[Connection]:
    """A connection with the unstable methods switched on."""
    with connected(source, replace(Settings(), unstable=True)) as connection:
        connection.initialize()
        yield connection


def ids(bridge: Connection, **params: object) -> list[str]:
    """What a list shows."""
    return [item["sessionId"] for item in bridge.request("session/list", params)["sessions"]]


def test_a_deleted_session_is_hidden_and_can_still_be_loaded(bridge: Connection) -> None:
    """It is in no list but those that ask for it, and its load and its row say that it is hidden."""
    assert bridge.request("session/delete", {"sessionId": "made:1"}) == {}
    assert ids(bridge) == []
    ours = {"_meta": {"acp-history-bridge": {"includeHidden": True}}}
    [shown] = bridge.request("session/list", ours)["sessions"]
    assert shown["_meta"]["acp-history-bridge"]["hidden"] is True
    assert bridge.load("made:1")["_meta"]["acp-history-bridge"]["hidden"] is True
    assert bridge.updates("made:1", "user_message_chunk")


@pytest.mark.parametrize("session_id", ["made:1", "made:unknown", "browse:1", ""])
def test_deleting_again_or_what_is_unknown_succeeds(bridge: Connection, session_id: str) -> None:
    """The protocol wants silence."""
    for _ in range(2):
        assert bridge.request("session/delete", {"sessionId": session_id}) == {}


def test_an_open_session_goes_on_when_it_is_deleted(bridge: Connection) -> None:
    """It is followed until it is closed; only lists are without it."""
    turns = [say(0)]
    bridge.source.add(session("made:open"), turns)
    bridge.load("made:open")
    bridge.request("session/delete", {"sessionId": "made:open"})
    turns.append(say(1, "said later"))
    hidden = later(bridge.source.sessions["made:open"])
    bridge.call(bridge.source.change, hidden)
    while not bridge.updates("made:open", "agent_message_chunk"):
        bridge.next()
    assert ids(bridge) == ["made:1"]


def test_changes_of_a_deleted_session_are_not_pushed(bridge: Connection) -> None:
    """Its tool may go on writing; the client has it in no list."""
    bridge.request("session/list")
    bridge.request("session/delete", {"sessionId": "made:1"})
    bridge.call(bridge.source.change, later(bridge.source.sessions["made:1"]))
    assert bridge.silent(0.4) >= 0.4


def test_delete_can_be_off(source: MemorySource) -> None:
    """Then it is not announced, and unknown."""
    with connected(source, replace(Settings(), delete="off")) as bridge:
        assert "delete" not in bridge.initialize()["agentCapabilities"]["sessionCapabilities"]
        assert bridge.refused("session/delete", {"sessionId": "made:1"})["code"] == -32601


@pytest.mark.parametrize("mode", ["hide", "trash"])
def test_delete_is_announced(source: MemorySource, mode: DeleteMode) -> None:
    """And says what it means."""
    with connected(source, replace(Settings(), delete=mode)) as bridge:
        capabilities = bridge.initialize()["agentCapabilities"]
    assert capabilities["sessionCapabilities"]["delete"] == {}
    assert capabilities["_meta"]["acp-history-bridge"]["delete"] == mode


def test_trash_takes_the_files_of_a_session_that_nobody_has_open(source: MemorySource) -> None:
    """It is closed here first; one that is open in its tool, or cannot be moved, is an error that says why."""
    source.active = frozenset({"made:1"})
    with connected(source, replace(Settings(), delete="trash")) as bridge:
        bridge.initialize()
        bridge.load("made:1")
        assert bridge.refused("session/delete", {"sessionId": "made:1"})["data"]["details"].startswith("Its tool has")
        source.active = frozenset()
        source.refusal = BridgeError("there is no trash")
        assert bridge.refused("session/delete", {"sessionId": "made:1"})["data"]["details"] == "there is no trash"
        source.refusal = None
        assert bridge.request("session/delete", {"sessionId": "made:1"}) == {}
        assert source.opened[0].closed
        assert bridge.refused("session/load", {"sessionId": "made:1", "cwd": "/"})["code"] == -32002


def test_a_decision_that_cannot_be_stored_is_an_error(bridge: Connection) -> None:
    """The client must not believe that the session is gone."""
    bridge.source.refusal = IndexStoreError("the disk is full")
    error = bridge.refused("session/delete", {"sessionId": "made:1"})
    assert (error["code"], error["data"]["details"]) == (-32603, "the disk is full")
    assert ids(bridge) == ["made:1"]


def test_unstable_methods_do_not_exist_unless_they_are_switched_on(bridge: Connection) -> None:
    """-32601, and nothing of them in capabilities or rows."""
    for method in ("session/archive", "session/unarchive", "session/status", "session/set_title"):
        assert bridge.refused(method, {"sessionId": "made:1", "title": "x"})["code"] == -32601
    assert "archived" not in bridge.request("session/list")["sessions"][0]


def test_unstable_methods_are_announced(source: MemorySource) -> None:
    """Archiving obliges to list, and to say of every row whether it is archived."""
    with connected(source, replace(Settings(), unstable=True)) as bridge:
        capabilities = bridge.initialize()["agentCapabilities"]["sessionCapabilities"]
        assert {"archive", "status", "title", "list"} <= capabilities.keys()
        assert bridge.request("session/list")["sessions"][0]["archived"] is False


def test_an_archived_session_is_left_out_unless_asked_for(unstable: Connection) -> None:
    """Archiving closes it and can be taken back; both are idempotent; opening is no way out of the archive."""
    unstable.source.add(session("made:2"))
    unstable.load("made:1")
    for _ in range(2):
        assert unstable.request("session/archive", {"sessionId": "made:1"}) == {}
    assert unstable.source.opened[0].closed
    assert (ids(unstable), ids(unstable, archived="only")) == (["made:2"], ["made:1"])
    assert sorted(ids(unstable, archived="include")) == ["made:1", "made:2"]
    assert unstable.refused("session/list", {"archived": "maybe"})["code"] == -32602
    for _ in range(2):
        assert unstable.request("session/unarchive", {"sessionId": "made:1"}) == {}
    assert sorted(ids(unstable)) == ["made:1", "made:2"]


def test_what_the_tool_archived_is_taken_back_there(unstable: Connection) -> None:
    """The bridge cannot, and says so."""
    unstable.source.add(session("made:away", archived=True))
    assert "made:away" not in ids(unstable)
    assert unstable.refused("session/unarchive", {"sessionId": "made:away"})["code"] == -32602


def test_status_says_what_is_open(unstable: Connection) -> None:
    """From load to close; it changes nothing."""

    def status() -> object:
        return unstable.request("session/status", {"sessionId": "made:1"})["status"]

    assert status() == "saved"
    unstable.load("made:1")
    assert status() == "open"
    unstable.request("session/close", {"sessionId": "made:1"})
    assert status() == "saved"


def test_a_title_is_stored_as_one_line(unstable: Connection) -> None:
    """The answer has it as it was stored, lists have it too, and a blank one is refused."""
    params = {"sessionId": "made:1", "title": "  My\n title  "}
    assert unstable.request("session/set_title", params) == {"title": "My title"}
    assert unstable.request("session/list")["sessions"][0]["title"] == "My title"
    for title in (" \n ", None, 5):
        assert unstable.refused("session/set_title", {**params, "title": title})["code"] == -32602


@pytest.mark.parametrize("method", ["archive", "unarchive", "status", "set_title"])
def test_unstable_methods_know_no_unknown_session(unstable: Connection, method: str) -> None:
    """-32002 with the id."""
    error = unstable.refused(f"session/{method}", {"sessionId": "made:none", "title": "x"})
    assert (error["code"], error["data"]["sessionId"]) == (-32002, "made:none")
