"""Envelopes, ids and errors: nothing a client sends ends the connection."""

import pytest

from tests.peers.bridge import Connection
from tests.peers.memory import say, session


@pytest.mark.parametrize(
    "line",
    [b"{", b"nonsense", b"\xff\xfe", b"\0", b'\xef\xbb\xbf{"jsonrpc":"2.0"}', b'{"a":"\\ud800"}', b"[" * 100_000],
    ids=["torn", "word", "no UTF-8", "NUL", "byte order mark", "lone surrogate", "deep"],
)
@pytest.mark.fault("J1")
def test_broken_json_is_a_parse_error_and_the_connection_survives(bridge: Connection, line: bytes) -> None:
    """J1: -32700 with a null id."""
    bridge.send_bytes(line + b"\n")
    message = bridge.next()
    assert (message["id"], message["error"]["code"]) == (None, -32700)
    assert bridge.request("session/list")["sessions"]


@pytest.mark.fault("J1")
def test_blank_lines_get_no_answer(bridge: Connection) -> None:
    """J1: empty lines, blanks and carriage returns are nothing."""
    bridge.send_bytes(b"\n  \n\r\n\t\n")
    assert bridge.request("session/list")["sessions"]
    assert len(bridge.messages) == 2


@pytest.mark.parametrize(
    ("message", "code", "id_"),
    [
        ([], -32600, None),
        ([{"jsonrpc": "2.0", "id": 7, "method": "session/list"}], -32600, None),
        (5, -32600, None),
        (None, -32600, None),
        ("text", -32600, None),
        ({}, -32600, None),
        ({"jsonrpc": "2.0", "id": 7}, -32600, 7),
        ({"jsonrpc": "1.0", "id": 7, "method": "session/list"}, -32600, 7),
        ({"id": "seven", "method": "session/list"}, -32600, "seven"),
        ({"jsonrpc": "2.0", "id": 7, "method": 5}, -32600, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, -32600, 7),
        ({"jsonrpc": "2.0", "id": {}, "method": "session/list"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "session/list"}, -32600, None),
        ({"jsonrpc": "2.0", "id": True, "method": "session/list"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 2**70, "method": "session/list"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": []}, -32602, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": "text"}, -32602, 7),
    ],
)
@pytest.mark.fault("J2")
def test_a_broken_envelope_is_refused_once(bridge: Connection, message: object, code: int, id_: object) -> None:
    """J2: -32600 or -32602, with the id where it can be read."""
    bridge.send(message)
    answer = bridge.next()
    assert (answer["error"]["code"], answer["id"]) == (code, id_)
    assert bridge.request("session/list")["sessions"]
    assert len(bridge.messages) == 3


@pytest.mark.parametrize("id_", ["text", "", 0, -1, 2**53 + 1, 2**63 - 1])
@pytest.mark.fault("C3")
def test_ids_are_echoed_as_they_came(bridge: Connection, id_: object) -> None:
    """An id keeps its value and its type."""
    bridge.start("session/list", id_=id_)
    answer = bridge.next()
    assert answer["id"] == id_
    assert type(answer["id"]) is type(id_)


def test_a_null_id_is_a_request(bridge: Connection) -> None:
    """Protocol version 1 allows it, so it is answered."""
    bridge.send({"jsonrpc": "2.0", "id": None, "method": "no/such"})
    assert bridge.next()["error"]["code"] == -32601


@pytest.mark.fault("J3")
def test_unknown_requests_are_refused_and_unknown_notifications_ignored(bridge: Connection) -> None:
    """J3: -32601 at once; the unstable methods are unknown until they are announced."""
    for method in ("$/ping", "_x/y", "session/archive", "session/status", "session/update", "initialized"):
        assert bridge.refused(method)["code"] == -32601
        bridge.notify(method, {})
    bridge.send({"jsonrpc": "2.0", "id": 99, "result": {}})
    bridge.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
    assert bridge.silent(0.1) >= 0.1


@pytest.mark.fault("J3")
def test_nothing_is_answered_before_initialize(raw: Connection) -> None:
    """J3: other requests are refused, notifications ignored, and nothing comes unasked."""
    raw.notify("session/cancel", {"sessionId": "made:1"})
    assert raw.refused("session/list")["code"] == -32600
    assert raw.initialize()["protocolVersion"] == 1
    assert raw.request("session/list")["sessions"]


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
@pytest.mark.fault("J3")
def test_the_version_is_always_one(raw: Connection, version: int) -> None:
    """J3: the client decides whether to go on; it may also ask again."""
    for _ in range(2):
        assert raw.request("initialize", {"protocolVersion": version, "info": {"name": "x"}})["protocolVersion"] == 1


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "1"}, {"protocolVersion": True}, {"protocolVersion": None}])
def test_initialize_needs_a_version(raw: Connection, params: object) -> None:
    """A wrong handshake is refused, and a right one may follow."""
    assert raw.refused("initialize", params)["code"] == -32602
    raw.initialize()


@pytest.mark.fault("C3")
def test_an_id_in_flight_cannot_be_used_again(bridge: Connection) -> None:
    """The second request with the id is refused, the first one is answered all the same."""
    bridge.source.add(session("made:long"), [say(number, "x" * 1000) for number in range(5000)])
    bridge.start("session/load", {"sessionId": "made:long", "cwd": "/"}, id_="same")
    bridge.send({"jsonrpc": "2.0", "id": "same", "method": "session/list"})
    answers: list[object] = []
    while len(answers) < 2:
        message = bridge.next()
        if "method" not in message:
            answers.append(message.get("error", {}).get("code"))
    assert answers == [-32600, None]


@pytest.mark.fault("J9")
def test_parameters_in_meta_change_nothing(bridge: Connection) -> None:
    """J9: `_meta` never becomes a parameter, and neither it nor unknown fields disturb."""
    odd = {"_meta": {"sessionId": "other", "session_id": "other", "cwd": "x"}, "new": [1], "mcpServers": [{"a": None}]}
    bridge.request("session/load", {"sessionId": "made:1", "cwd": "/", **odd})
    assert bridge.updates("made:1", "user_message_chunk")


@pytest.mark.fault("S9")
def test_a_failure_says_nothing_of_what_was_sent_or_stored(bridge: Connection) -> None:
    """J and invariant 8: neither parameters nor an exception's message reach the client."""

    def fail() -> None:
        raise RuntimeError("SECRET")

    bridge.source.before_page = fail
    assert bridge.refused("session/list")["code"] == -32603
    wrong = {"sessionId": ["SECRET"], "cwd": "/", "mcpServers": [{"env": "SECRET"}]}
    assert bridge.refused("session/load", wrong)["code"] == -32602
    assert b"SECRET" not in b"".join(bridge.lines)
