"""Modes, the same choice as a configuration option, resume and fork."""

import pytest

from acp_history_bridge.errors import BridgeError, ProtocolError
from acp_history_bridge.protocol.modes import READ_ONLY, Mode, Modes
from tests.peers.bridge import Connection
from tests.peers.memory import later, say, session


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
def test_opening_a_session_offers_the_modes(bridge: Connection, method: str) -> None:
    """As `modes` and as `configOptions`, with the same value."""
    result = bridge.request(method, {"sessionId": "made:1", "cwd": "/", "mcpServers": []})
    assert result["modes"]["currentModeId"] == "read-only"
    assert [mode["id"] for mode in result["modes"]["availableModes"]] == ["read-only"]
    [option] = result["configOptions"]
    assert (option["id"], option["category"], option["type"]) == ("mode", "mode", "select")
    assert (option["currentValue"], [value["value"] for value in option["options"]]) == ("read-only", ["read-only"])


def test_a_mode_can_be_set(bridge: Connection) -> None:
    """In both ways; the mode it is in already is no news."""
    bridge.load("made:1")
    assert bridge.request("session/set_mode", {"sessionId": "made:1", "modeId": "read-only"}) == {}
    params = {"sessionId": "made:1", "configId": "mode", "value": "read-only"}
    assert bridge.request("session/set_config_option", params)["configOptions"][0]["currentValue"] == "read-only"
    assert bridge.silent(0.2) >= 0.2


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "continue"}),
        ("session/set_mode", {}),
        ("session/set_config_option", {"configId": "model", "value": "read-only"}),
        ("session/set_config_option", {"configId": "mode", "value": "continue"}),
        ("session/set_config_option", {"configId": "mode", "type": "boolean", "value": True}),
    ],
)
def test_what_is_not_offered_is_refused(bridge: Connection, method: str, params: dict[str, object]) -> None:
    """-32602; for a session that does not exist -32002."""
    assert bridge.refused(method, {"sessionId": "made:1", **params})["code"] == -32602
    if params.get("value") != "continue" and params.keys() == {"configId", "value"}:
        assert bridge.refused(method, {"sessionId": "made:none", **params})["code"] == -32002


def test_modes_are_kept_per_session_until_it_is_closed() -> None:
    """The machinery carries more than one mode."""
    modes = Modes((READ_ONLY, Mode("continue", "Continue", "Goes on in the tool.")))
    assert modes.choose("a", "continue", "params.modeId")
    assert not modes.choose("a", "continue", "params.modeId")
    assert (modes.current("a"), modes.current("b")) == ("continue", "read-only")
    assert modes.options("a")[0]["currentValue"] == "continue"
    modes.forget("a")
    assert modes.current("a") == "read-only"
    with pytest.raises(ProtocolError, match="Invalid params"):
        modes.choose("a", "none", "params.modeId")


def test_the_recorded_mode_is_reported(bridge: Connection) -> None:
    """Claude's permission mode and the like, beside our own modes."""
    bridge.source.add(session("made:plan", mode="plan"), [say(0)])
    assert bridge.load("made:plan")["_meta"] == {"acp-history-bridge": {"mode": "plan"}}


def test_resume_replays_nothing_and_follows(bridge: Connection) -> None:
    """Nothing before the answer; what is written afterwards arrives, until the session is closed."""
    turns = [say(0), say(1)]
    bridge.source.add(session("made:grows"), turns)
    bridge.request("session/resume", {"sessionId": "made:grows", "cwd": "/elsewhere"})
    assert not bridge.updates("made:grows")
    turns.append(say(2, "written later"))
    bridge.call(bridge.source.change, later(bridge.source.sessions["made:grows"]))
    while not bridge.updates("made:grows", "user_message_chunk"):
        bridge.next()
    [update] = bridge.updates("made:grows", "user_message_chunk")
    assert update["content"]["text"] == "written later"
    bridge.request("session/close", {"sessionId": "made:grows"})
    assert bridge.source.opened[0].closed


def test_resume_is_answered_but_not_announced(raw: Connection) -> None:
    """Clients that find it announced use it instead of load, and show an empty conversation."""
    assert "resume" not in raw.initialize()["agentCapabilities"]["sessionCapabilities"]
    assert raw.refused("session/resume", {"sessionId": "made:none", "cwd": "/"})["code"] == -32002
    raw.source.sessions["made:gone"] = session("made:gone")
    assert raw.refused("session/resume", {"sessionId": "made:gone", "cwd": "/"})["code"] == -32002
    raw.request("session/resume", {"sessionId": "browse:1", "cwd": "/"})
    assert raw.next()["params"]["update"]["sessionUpdate"] == "available_commands_update"


def test_a_fork_is_a_new_session(bridge: Connection) -> None:
    """Its id is new, `_meta` names its parent, and it can be loaded."""
    result = bridge.request("session/fork", {"sessionId": "made:1", "cwd": "/"})
    assert result["sessionId"] != "made:1"
    assert result["_meta"] == {"acp-history-bridge": {"parent": "made:1"}}
    bridge.load(result["sessionId"])
    assert bridge.updates(result["sessionId"], "user_message_chunk")


def test_a_session_that_cannot_be_forked_says_why(bridge: Connection) -> None:
    """-32602 with the reason; an unknown one is -32002."""
    assert bridge.refused("session/fork", {"sessionId": "browse:1", "cwd": "/"})["code"] == -32602
    assert bridge.refused("session/fork", {"sessionId": "made:none", "cwd": "/"})["code"] == -32002
    bridge.source.refusal = BridgeError("Made Up keeps its sessions in a database")
    error = bridge.refused("session/fork", {"sessionId": "made:1", "cwd": "/"})
    assert (error["code"], error["data"]["details"]) == (-32602, "Made Up keeps its sessions in a database")


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
def test_what_the_bridge_has_no_use_for_is_accepted(bridge: Connection, method: str) -> None:
    """MCP servers and directories of any content, or null; a relative directory is still an error."""
    params = {"sessionId": "made:1", "cwd": "/", "mcpServers": [{"name": 5}], "additionalDirectories": None}
    bridge.request(method, {**params, "_meta": {"cwd": "x"}})
    assert bridge.refused(method, {**params, "cwd": "x"})["code"] == -32602
