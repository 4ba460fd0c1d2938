"""The methods of a session: list, load, new, prompt, close, cancel."""

from datetime import UTC, datetime

import pytest

from acp_history_bridge.turns import Notice, Turn, Usage
from tests.peers.bridge import Connection, connected
from tests.peers.memory import MemorySource, later, say, session


def test_a_list_shows_what_is_known_and_nothing_else(bridge: Connection) -> None:
    """Facts that are unknown are absent, never null."""
    bridge.source.sessions.clear()
    bridge.source.add(session("made:bare", None))
    bridge.source.add(
        session(
            "made:full",
            cwd="/tmp/x",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            message_count=4,
            model="m",
            branch="main",
            parent="bare",
            archived=True,
            headless=True,
            mode="plan",
            additional_directories=("/tmp/y", "relative"),
        )
    )
    bridge.source.active = frozenset({"made:full"})
    bare, full = bridge.request("session/list", {"_meta": None})["sessions"]
    time = "2026-01-02T03:04:05.678Z"
    ours = {"acp-history-bridge": {"tool": "made"}}
    assert bare == {"sessionId": "made:bare", "cwd": "/home/ada/demo", "updatedAt": time, "_meta": ours}
    assert full["additionalDirectories"] == ["/tmp/y"]
    assert full["_meta"]["acp-history-bridge"] == {
        "tool": "made",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "messageCount": 4,
        "model": "m",
        "branch": "main",
        "parent": "made:bare",
        "mode": "plan",
        "archived": True,
        "active": True,
        "headless": True,
    }


def test_pages_follow_each_other(bridge: Connection) -> None:
    """A cursor continues the list, the last page has none, and every session comes once."""
    for number in range(25):
        bridge.source.add(session(f"made:{number}"))
    seen: list[str] = []
    cursor: dict[str, object] = {}
    while True:
        page = bridge.request("session/list", {**cursor, "_meta": {"acp-history-bridge": {"limit": 10}}})
        seen += [item["sessionId"] for item in page["sessions"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert sorted(seen) == sorted(bridge.source.sessions)


def test_a_list_can_be_narrowed(bridge: Connection) -> None:
    """By directory, and by our own filters in `_meta`."""
    bridge.source.add(later(session("made:2", cwd="/other")), [])

    def ids(**params: object) -> list[str]:
        return [item["sessionId"] for item in bridge.request("session/list", params)["sessions"]]

    def ours(**filters: object) -> dict[str, object]:
        return {"acp-history-bridge": filters}

    assert ids(cwd=None, cursor=None) == ["made:2", "made:1"]
    assert ids(cwd="/other") == ["made:2"]
    assert ids(cwd="/nowhere") == []
    assert ids(_meta=ours(tool="made", since="2026-01-02T03:05:00Z")) == ["made:2"]
    assert ids(_meta=ours(tool=["other"])) == []
    assert ids(_meta=ours(limit=0)) == ["made:2"]


@pytest.mark.parametrize(
    "params",
    [
        {"cwd": "relative"},
        {"cwd": ""},
        {"cwd": "/a\0b"},
        {"cwd": 5},
        {"cursor": "forged"},
        {"cursor": 5},
        {"_meta": {"acp-history-bridge": {"since": "yesterday"}}},
        {"_meta": {"acp-history-bridge": {"limit": "many"}}},
    ],
)
def test_a_wrong_filter_is_an_error(bridge: Connection, params: object) -> None:
    """Ignoring it would answer another question."""
    assert bridge.refused("session/list", params)["code"] == -32602


@pytest.mark.fault("S1", "J11")
def test_a_page_of_hostile_sessions_is_cut_to_fit_a_frame(bridge: Connection) -> None:
    """A frame stays below 1 MiB, and the rest comes on the next page."""
    for number in range(100):
        bridge.source.add(session(f"made:{number}", cwd="/" + "\x01" * 4000))
    page = bridge.request("session/list")
    assert 0 < len(page["sessions"]) < 100
    assert page["nextCursor"] == str(len(page["sessions"]))


def test_a_load_replays_everything_before_its_answer_and_is_silent_after(bridge: Connection) -> None:
    """The title comes first, then the turns, then usage, then the answer, then nothing."""
    bridge.source.usage = Usage(10, 100, 0.5)
    bridge.source.left_out = 3
    result = bridge.load("made:1", cwd="/elsewhere")
    kinds = [update["sessionUpdate"] for update in bridge.updates("made:1")]
    assert kinds == ["session_info_update", "user_message_chunk", "agent_message_chunk", "usage_update"]
    assert bridge.messages[-1]["result"] == result
    assert result["_meta"] == {"acp-history-bridge": {"leftOut": 3}}
    assert bridge.silent(0.4) >= 0.4


def test_a_load_can_be_repeated(bridge: Connection) -> None:
    """Each load replays everything, and only one transcript stays open."""
    for _ in range(3):
        bridge.load("made:1")
    assert len(bridge.updates("made:1", "user_message_chunk")) == 3
    assert [transcript.closed for transcript in bridge.source.opened] == [True, True, False]


@pytest.mark.parametrize("servers", [{}, {"mcpServers": None}, {"mcpServers": []}])
def test_missing_servers_are_accepted(bridge: Connection, servers: dict[str, object]) -> None:
    """Clients leave them out, or send null."""
    assert "_meta" not in bridge.request("session/load", {"sessionId": "made:1", "cwd": "/", **servers})


@pytest.mark.parametrize("params", [{"sessionId": "made:1"}, {"sessionId": "made:1", "cwd": "x"}, {"cwd": "/"}])
@pytest.mark.fault("J2")
def test_wrong_load_parameters_are_an_error(bridge: Connection, params: object) -> None:
    """Both are required."""
    assert bridge.refused("session/load", params)["code"] == -32602


@pytest.mark.fault("J10", "S4")
def test_an_unknown_session_is_not_found(bridge: Connection) -> None:
    """-32002 with words for people, whether there never was one or its file has gone."""
    bridge.source.sessions["made:gone"] = session("made:gone")
    for session_id in ("made:none", "made:gone", "", "../../etc/passwd"):
        error = bridge.refused("session/load", {"sessionId": session_id, "cwd": "/"})
        assert (error["code"], error["message"]) == (-32002, f"Resource not found: {session_id}")
        assert error["data"]["details"].startswith("Session not found")
        assert not bridge.updates(session_id)


def test_concurrent_loads_keep_the_order_of_each_session(bridge: Connection) -> None:
    """Sessions may be mixed with each other, but not within; two loads of one session come one after the other."""
    for name in ("a", "b"):
        bridge.source.add(session(f"made:{name}"), [say(number, "x" * 500) for number in range(1000)])
    ids = [bridge.start("session/load", {"sessionId": f"made:{name}", "cwd": "/"}) for name in ("a", "b", "a")]
    bridge.request("session/list")
    for id_ in ids:
        bridge.answer(id_)
    numbers = [f"m{number}" for number in range(1000)]
    for name, times in (("a", 2), ("b", 1)):
        chunks = [update for update in bridge.updates(f"made:{name}") if "messageId" in update]
        assert [update["messageId"] for update in chunks] == numbers * times


@pytest.mark.fault("C4")
def test_a_cancelled_load_is_answered_once(bridge: Connection) -> None:
    """-32800, then nothing more of the session; the connection and the transcript's end are in order."""
    bridge.source.add(session("made:endless"), (say(number, "x" * 1000) for number in iter(int, 1)))
    id_ = bridge.start("session/load", {"sessionId": "made:endless", "cwd": "/"})
    while not bridge.updates("made:endless", "user_message_chunk"):
        bridge.next()
    bridge.notify("$/cancel_request", {"requestId": "unknown"})
    bridge.notify("$/cancel_request", {"requestId": id_})
    bridge.notify("$/cancel_request", {"requestId": id_})
    assert bridge.answer(id_)["error"]["code"] == -32800
    assert bridge.silent(0.3) >= 0.3
    assert bridge.source.opened[0].closed
    assert bridge.request("session/list")["sessions"]
    assert sum("method" not in message and message["id"] == id_ for message in bridge.messages) == 1


@pytest.mark.fault("C5")
def test_closing_ends_a_running_load(bridge: Connection) -> None:
    """Close is always answered with an object, and nothing is sent for the session after it."""
    bridge.source.add(session("made:endless"), (say(number, "x" * 1000) for number in iter(int, 1)))
    id_ = bridge.start("session/load", {"sessionId": "made:endless", "cwd": "/"})
    while not bridge.updates("made:endless", "user_message_chunk"):
        bridge.next()
    assert bridge.request("session/close", {"sessionId": "made:endless"}) == {}
    assert bridge.answer(id_)["error"]["code"] == -32800
    assert bridge.request("session/close", {"sessionId": "made:unknown"}) == {}
    assert bridge.silent(0.2) >= 0.2


def test_authenticate_always_succeeds(bridge: Connection) -> None:
    """CodeCompanion calls it with whatever it finds, and gives up on an error."""
    assert bridge.request("authenticate", {"methodId": "anything"}) == {}


def test_a_new_session_gets_its_commands_after_the_answer(bridge: Connection) -> None:
    """Zed drops what comes before it."""
    created = bridge.request("session/new", {"cwd": "/", "mcpServers": []})
    assert not bridge.updates(created["sessionId"])
    assert bridge.next()["params"]["update"]["sessionUpdate"] == "available_commands_update"


def test_a_browse_session_can_be_loaded_for_ever(bridge: Connection) -> None:
    """Toad and marimo store the id and load it after a restart."""
    bridge.load("browse:from-long-ago")
    assert "History Bridge" in bridge.updates("browse:from-long-ago")[0]["content"]["text"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/list", "/show made:1"),
        ("/list TITLE a", "/show made:1"),
        ("a title", "/show made:1"),
        ("text 1", "… text 1 …"),
        ("/search text 1", "/show made:1` or `cd /home/ada/demo && made --resume 1`"),
        ("/search nothing", "Nothing was found"),
        ("/search", "/search WORDS"),
        ("/search since:x", "cannot be searched for: since:x"),
        ("/hidden", "No session is hidden"),
        ("/more", "nothing more"),
        ("/list nothing", "No session"),
        ("/show made:1", "**User:** text 0"),
        ("/show made:1", "made --resume 1"),
        ("/show nothing", "There is no session"),
        ("/show", "There is no session"),
        ("/tools", "Made Up"),
        ("/help", "/show ID"),
        ("/unknown", "There is no command"),
        ("", "/show ID"),
    ],
)
def test_a_browse_session_answers_prompts(bridge: Connection, prompt: str, expected: str) -> None:
    """With text and `end_turn`."""
    params = {"sessionId": "browse:1", "prompt": [{"type": "text", "text": prompt}, {"type": "image", "data": ""}]}
    assert bridge.request("session/prompt", params) == {"stopReason": "end_turn"}
    assert expected in "".join(update["content"]["text"] for update in bridge.updates("browse:1"))


def test_a_prompt_to_a_record_says_how_to_go_on(bridge: Connection) -> None:
    """It is not an error, which clients would show as a crash."""
    params = {"sessionId": "made:1", "prompt": [{"type": "text", "text": "go on"}]}
    assert bridge.request("session/prompt", params) == {"stopReason": "end_turn"}
    [update] = bridge.updates("made:1")
    assert "cd /home/ada/demo && made --resume 1" in update["content"]["text"]
    assert bridge.refused("session/prompt", {**params, "sessionId": "made:none"})["code"] == -32002


def test_a_cancelled_prompt_ends_as_cancelled(bridge: Connection) -> None:
    """`session/cancel` is answered through the prompt."""
    bridge.source.add(session("made:endless"), (Turn("m", "agent", (Notice("Wait"),)) for _ in iter(int, 1)))
    prompt = [{"type": "text", "text": "/show made:endless"}]
    id_ = bridge.start("session/prompt", {"sessionId": "browse:1", "prompt": prompt})
    while not bridge.updates("browse:1"):
        bridge.next()
    bridge.notify("session/cancel", {"sessionId": "browse:1"})
    assert bridge.answer(id_)["result"] == {"stopReason": "cancelled"}


@pytest.mark.fault("F12")
def test_histories_that_cannot_be_opened_are_an_error_not_an_end(source: MemorySource) -> None:
    """Requests for sessions are answered with -32603, and the connection stays."""

    def broken() -> MemorySource:
        raise OSError("no space")

    source.changes = broken  # type: ignore[assignment, method-assign]  # a source that fails to start
    with connected(source) as bridge:
        bridge.initialize()
        assert bridge.refused("session/list")["code"] == -32603
        assert bridge.request("session/new", {"cwd": "/"})["sessionId"].startswith("browse:")
