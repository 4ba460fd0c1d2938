"""The older chat history proposal: `session/list` with root parameters, `session/get`; and search in our own way."""

from datetime import UTC, datetime

import pytest

from acp_history_bridge.turns import Compaction, Image, Notice, Plan, PlanEntry, Text, Thought, ToolCall, Turn
from tests.peers.bridge import Connection, Message
from tests.peers.memory import later, say, session

OURS = "_acp-history-bridge/session/get"


def test_the_older_proposal_is_announced(raw: Connection) -> None:
    """Where its clients look, and under the extension rules."""
    capabilities = raw.initialize()["agentCapabilities"]
    assert capabilities["sessionHistory"] == {"supported": True, "maxResults": 1000}
    assert capabilities["_meta"]["acp-history-bridge"]["sessionGet"] == {"method": OURS, "maxResults": 1000}


def test_a_list_by_the_older_proposal_has_its_fields(bridge: Connection) -> None:
    """`total`, and per session `createdAt`, `lastModified`, `source`, `messageCount`; the messages are counted."""
    bridge.source.add(session("made:2", created_at=datetime(2026, 1, 1, tzinfo=UTC), message_count=7))
    answer = bridge.request("session/list", {"limit": 10})
    assert answer["total"] == 2
    one, two = answer["sessions"]
    assert (one["messageCount"], two["messageCount"]) == (2, 7)
    assert (two["createdAt"], two["lastModified"]) == ("2026-01-01T00:00:00.000Z", two["updatedAt"])
    assert two["source"] == "made"
    assert "createdAt" not in one


def test_messages_are_counted_once(bridge: Connection) -> None:
    """As long as the transcript does not change, it is not read again; one that cannot be read has no number."""
    bridge.source.sessions["made:gone"] = session("made:gone")
    answers = [bridge.request("session/list", {"limit": 10}) for _ in range(2)]
    assert len(bridge.source.opened) == 1
    assert ["messageCount" in row for row in answers[1]["sessions"]] == [True, False]


def test_offset_and_limit_cut_a_window(bridge: Connection) -> None:
    """Together they reach every session once; an offset beyond the end is an empty list."""
    for number in range(2, 8):
        bridge.source.add(later(session(f"made:{number}"), number))

    def window(**params: object) -> list[str]:
        return [row["sessionId"] for row in bridge.request("session/list", params)["sessions"]]

    everything = window()
    assert [*window(limit=3), *window(limit=3, offset=3), *window(limit=3, offset=6)] == everything
    assert window(offset=99) == []
    page = bridge.request("session/list", {"limit": 3, "offset": 2})
    assert window(cursor=page["nextCursor"]) == everything[5:]


@pytest.mark.parametrize(
    "params", [{"offset": -1}, {"limit": "3"}, {"search": 5}, {"offset": 1, "cursor": "1"}, {"search": "since:x"}]
)
def test_wrong_root_parameters_are_an_error(bridge: Connection, params: object) -> None:
    """Ignoring one would answer another question."""
    assert bridge.refused("session/list", params)["code"] == -32602


def test_search_finds_what_was_said(bridge: Connection) -> None:
    """By the older proposal and by ours, with a snippet, and with word of how much could be searched."""
    bridge.source.add(session("made:2"), [say(0, "about needles")])
    bridge.source.text_index = "building"
    older = bridge.request("session/list", {"search": "needles"})
    assert ([row["sessionId"] for row in older["sessions"]], older["total"]) == (["made:2"], 1)
    ours = bridge.request("session/list", {"_meta": {"acp-history-bridge": {"search": "needles"}}})
    [found] = ours["sessions"]
    assert found["_meta"]["acp-history-bridge"]["snippet"] == {"text": "… needles …", "marks": [[2, 9]]}
    assert ours["_meta"] == {"acp-history-bridge": {"textIndex": "building"}}
    assert "total" not in ours
    wrong = {"_meta": {"acp-history-bridge": {"search": "since:x"}}}
    assert bridge.refused("session/list", wrong)["code"] == -32602


def call(number: int, output: str = "done") -> ToolCall:
    """A finished tool call."""
    return ToolCall(f"t{number}", "Read", f"Read {number}", "read", "completed", content=(Text(output),))


@pytest.mark.parametrize("method", ["session/get", OURS])
def test_get_gives_the_conversation(bridge: Connection, method: str) -> None:
    """Role, time, content and tool calls of each turn; what is no message is marked, notices are left out."""
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    plan = Plan((PlanEntry("dig", "completed"), PlanEntry("fill", "pending")))
    turns = [
        Turn("a", "user", (Text("Why?"), Image("image/png", "AAAA")), moment),
        Turn("b", "agent", (Thought("Hm."), Text("Because."), call(1), plan, Notice("ignored")), model="m"),
        Turn("n", "agent", (Notice("nothing else"),)),
        Turn("c", "agent", (Compaction("k", "In short."),)),
    ]
    bridge.source.add(session("made:2", "Reasons", created_at=moment), turns)
    answer = bridge.request(method, {"sessionId": "made:2"})
    assert (answer["sessionId"], answer["title"], answer["createdAt"]) == (
        "made:2",
        "Reasons",
        "2026-01-02T00:00:00.000Z",
    )
    first, second, third = answer["turns"]
    assert (first["role"], first["timestamp"], first["toolCalls"]) == ("user", "2026-01-02T00:00:00.000Z", [])
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    thought, said, todo = second["content"]
    assert second["role"] == "assistant"
    assert (thought["_meta"]["acp-history-bridge"]["kind"], said["text"]) == ("thought", "Because.")
    assert todo["text"] == "- [x] dig\n- [ ] fill"
    assert [(item["toolCallId"], item["status"]) for item in second["toolCalls"]] == [("t1", "completed")]
    assert third["content"][0]["text"].endswith("In short.")
    assert "nextOffset" not in answer


def test_get_goes_on_where_it_stopped(bridge: Connection) -> None:
    """Limits cut, `nextOffset` continues, every turn comes once, and the transcript is read once for all pages."""
    bridge.source.add(session("made:2"), [say(number) for number in range(25)])
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = bridge.request("session/get", {"sessionId": "made:2", "limit": 10, "offset": offset})
        seen += [turn["id"] for turn in answer["turns"]]
        offset = answer.get("nextOffset")
    assert seen == [f"m{number}" for number in range(25)]
    assert [transcript.closed for transcript in bridge.source.opened] == [True]
    assert bridge.request("session/get", {"sessionId": "made:2", "offset": 99})["turns"] == []
    back = bridge.request("session/get", {"sessionId": "made:2", "limit": 1, "offset": 3})
    assert (back["turns"][0]["id"], back["nextOffset"]) == ("m3", 4)


def test_get_stays_below_a_frame_and_loses_nothing(bridge: Connection) -> None:
    """A message of many megabytes continues in entries with the same id; many big turns come in several answers."""
    text = "".join(f"{number} ä\n" for number in range(400_000))
    turns = [Turn("big", "user", (Text(text),)), *(Turn(f"t{n}", "agent", (call(n, "x" * 90_000),)) for n in range(30))]
    bridge.source.add(session("made:2"), turns)
    entries: list[Message] = []
    offset: int | None = 0
    while offset is not None:
        answer = bridge.request("session/get", {"sessionId": "made:2", "limit": 1000, "offset": offset})
        entries += answer["turns"]
        offset = answer.get("nextOffset")
    big = [block["text"] for entry in entries if entry["id"] == "big" for block in entry["content"]]
    assert "".join(big) == text
    assert [entry["id"] for entry in entries if entry["id"] != "big"] == [f"t{number}" for number in range(30)]


def test_get_after_a_change_reads_again(bridge: Connection) -> None:
    """What was kept belongs to the old file."""
    turns = [say(number) for number in range(5)]
    old = bridge.source.add(session("made:2"), turns)
    bridge.request("session/get", {"sessionId": "made:2", "limit": 2})
    turns[3] = say(3, "rewritten")
    bridge.source.sessions["made:2"] = session("made:2", updated_at=later(old).updated_at)
    answer = bridge.request("session/get", {"sessionId": "made:2", "limit": 2, "offset": 2})
    assert answer["turns"][1]["content"][0]["text"] == "rewritten"
    assert len(bridge.source.opened) == 2


def test_get_of_what_is_not_there(bridge: Connection) -> None:
    """-32002; a browse session has no turns; wrong numbers are -32602."""
    bridge.source.sessions["made:gone"] = session("made:gone")
    for session_id in ("made:none", "made:gone"):
        assert bridge.refused("session/get", {"sessionId": session_id})["code"] == -32002
    assert bridge.request("session/get", {"sessionId": "browse:1"}) == {"sessionId": "browse:1", "turns": []}
    for wrong in ({"offset": -1}, {"limit": "x"}):
        assert bridge.refused("session/get", {"sessionId": "made:1", **wrong})["code"] == -32602
