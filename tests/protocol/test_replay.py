"""Turns as updates."""

import base64
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.turns import (
    Compaction,
    Diff,
    Image,
    Location,
    Notice,
    Part,
    Plan,
    PlanEntry,
    Resource,
    ResourceLink,
    Role,
    ShellResult,
    SubagentRun,
    Text,
    Thought,
    ToolCall,
    Turn,
)
from tests.peers.schema import check_frame

LIMIT = 10 * 1024


def replayed(
    *turns: Turn, terminal: bool = False, compaction: bool = False, live: bool = False, replay: Replay | None = None
) -> list[dict[str, Any]]:
    """The updates of these turns, each as a checked frame would carry it."""
    tools = ToolOptions(cwd="/home/ada", terminal=terminal, output_limit=LIMIT, image_limit=LIMIT)
    replay = replay or Replay(ReplayOptions(tools, compaction=compaction), live=live)
    frames = [wire.update("made:1", update) for turn in turns for update in replay.updates(turn)]
    return [check_frame(frame, {})["params"]["update"] for frame in frames]


def turn(*parts: Part, role: Role = "agent", id_: str = "m1") -> Turn:
    """A turn of these parts."""
    return Turn(id_, role, parts)


def call(**fields: Any) -> ToolCall:  # noqa: ANN401 - any field of a call
    """A finished call."""
    return dataclasses.replace(ToolCall("t1", "Tool", "Do", "other", "completed"), **fields)


def texts(update: dict[str, Any]) -> list[str]:
    """The text contents of a tool call."""
    return [item["content"]["text"] for item in update.get("content", ()) if item["type"] == "content"]


def test_each_part_is_one_chunk_with_the_turn_s_id() -> None:
    """In order, with time and model in `_meta`."""
    time = datetime(2026, 1, 2, tzinfo=UTC)
    made = Turn("m1", "agent", (Thought("hm"), Text("a"), Text("b")), time, "model-1")
    ours = {"acp-history-bridge": {"timestamp": "2026-01-02T00:00:00.000Z", "model": "model-1"}}
    chunk = {"messageId": "m1", "_meta": ours}
    assert replayed(made) == [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, **chunk},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, **chunk},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "b"}, **chunk},
    ]


def test_blank_parts_and_notices_give_nothing() -> None:
    """Empty turns must not become empty bubbles."""
    assert replayed(turn(), turn(Text(""), Text(" \n"), Thought(""), Notice("Request cancelled."))) == []


@pytest.mark.parametrize("character", ["x", "\x01", "é", "😀", "a\n", '"'])
def test_long_text_is_split_and_never_shortened(character: str) -> None:
    """Chunks of one message id, each frame below 1 MiB, together the text."""
    text = character * 700_000
    chunks = replayed(turn(Text(text), role="user"))
    assert len(chunks) > 1
    assert {chunk["messageId"] for chunk in chunks} == {"m1"}
    assert "".join(chunk["content"]["text"] for chunk in chunks) == text


def test_a_split_never_separates_a_combining_sign() -> None:
    """Renderers treat chunks on their own."""
    for offset in range(3):
        chunks = replayed(turn(Text("x" * offset + "e\u0301" * 100_000)))
        assert not any(chunk["content"]["text"].startswith("\u0301") for chunk in chunks)


@pytest.mark.fault("F7")
def test_lone_surrogates_are_replaced() -> None:
    """Strict parsers refuse them, wherever they stand."""
    parts = (Text("a\ud800b"), call(title="\udfff", input={"\ud800": ["\udc00"]}, content=(Text("\ud83d"),)))
    message, tool = replayed(turn(*parts))
    assert message["content"]["text"] == "a\ufffdb"
    assert tool["rawInput"] == {"\ufffd": ["\ufffd"]}


def test_a_tool_call_is_one_update_with_its_outcome() -> None:
    """Name, kind, title, places, raw values and contents."""
    contents = (
        Text("done"),
        Diff("src/a.py", "new", "old"),
        Diff("/b.py", "all new"),
        Image("image/png", "aGk="),
        ResourceLink("file:///c", "c", "text/plain", 3),
        Resource("file:///d", "text", None, "text/plain"),
    )
    places = (Location("/home/ada/a.py", 3), Location("relative"), Location("/b", 0))
    made = call(kind="edit", status="failed", input={"a": 1, "b": None}, output=[1], content=contents, locations=places)
    assert replayed(turn(made)) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "t1",
            "title": "Do",
            "name": "Tool",
            "kind": "edit",
            "status": "failed",
            "locations": [{"path": "/home/ada/a.py", "line": 3}, {"path": "/b"}],
            "rawInput": {"a": 1},
            "rawOutput": [1],
            "content": [
                {"type": "content", "content": {"type": "text", "text": "done"}},
                {"type": "diff", "path": "/home/ada/src/a.py", "oldText": "old", "newText": "new"},
                {"type": "diff", "path": "/b.py", "newText": "all new"},
                {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "aGk="}},
                {
                    "type": "content",
                    "content": {
                        "type": "resource_link",
                        "uri": "file:///c",
                        "name": "c",
                        "mimeType": "text/plain",
                        "size": 3,
                    },
                },
                {
                    "type": "content",
                    "content": {
                        "type": "resource",
                        "resource": {"uri": "file:///d", "text": "text", "mimeType": "text/plain"},
                    },
                },
            ],
        }
    ]


def test_a_call_without_outcome_has_failed_unless_the_session_is_running() -> None:
    """And says why."""
    made = turn(call(status="unfinished"))
    [over], [running] = replayed(made), replayed(made, live=True)
    assert (over["status"], texts(over)) == ("failed", ["[No outcome was recorded for this call.]"])
    assert (running["status"], texts(running)) == ("in_progress", [])


def test_an_outcome_that_comes_later_is_an_update() -> None:
    """The client has seen the call already."""
    tools = ToolOptions(cwd="/", terminal=False, output_limit=LIMIT, image_limit=LIMIT)
    replay = Replay(ReplayOptions(tools), live=True)
    [first] = replayed(turn(call(status="unfinished")), replay=replay)
    [second] = replayed(turn(call(content=(Text("done"),))), replay=replay)
    assert (first["sessionUpdate"], second["sessionUpdate"]) == ("tool_call", "tool_call_update")
    assert (second["status"], texts(second)) == ("completed", ["done"])


@pytest.mark.parametrize(
    ("shell", "text"),
    [
        (ShellResult("a\nb\n", 0), ["```console\na\nb\n```\nExit code: 0"]),
        (ShellResult("see ``` and ````"), ["`````console\nsee ``` and ````\n`````"]),
        (ShellResult("", 2), ["Exit code: 2"]),
        (ShellResult(""), []),
    ],
)
def test_shell_output_is_a_fenced_block(shell: ShellResult, text: list[str]) -> None:
    """With the exit code where it is known; the fence is longer than any inside."""
    [update] = replayed(turn(call(shell=shell)))
    assert texts(update) == text
    assert "terminal" not in str(update)


def test_clients_with_terminals_get_one() -> None:
    """Zed's convention: info on the call, output and exit on an update."""
    first, second = replayed(turn(call(shell=ShellResult("hi\n", 1, "sub"))), terminal=True)
    assert first["content"] == [{"type": "terminal", "terminalId": "t1"}]
    assert first["_meta"] == {"terminal_info": {"terminal_id": "t1", "cwd": "/home/ada/sub"}}
    assert second == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t1",
        "_meta": {
            "terminal_output": {"terminal_id": "t1", "data": "hi\n"},
            "terminal_exit": {"terminal_id": "t1", "exit_code": 1},
        },
    }


def test_sub_agents_are_folded_into_their_call() -> None:
    """Prompt, texts, titles and conclusion, before the call's own result; bounded however long they are."""

    def turns(count: int) -> Iterator[Turn]:
        yield turn(Text("the task"), role="user")
        yield from (
            turn(Thought("hm"), Text(f"text {number}"), call(title=f"call {number}")) for number in range(count)
        )
        yield turn(Text("the conclusion"))

    def folded(count: int) -> str:
        run = SubagentRun("s1", "explorer", lambda: turns(count))
        [update] = replayed(turn(call(subagents=(run,), content=(Text("result"),))))
        first, second = texts(update)
        assert second == "result"
        return first

    assert folded(1).split("\n\n") == [
        "**Sub-agent explorer**",
        "**User:** the task",
        "text 0",
        "- ✓ `call 0`",
        "the conclusion",
    ]
    long = folded(5000)
    assert len(long) < LIMIT * 1.1
    assert "**User:** the task" in long
    assert long.endswith("the conclusion")
    assert "messages and calls left out …]" in long
    assert "characters (" not in long


def test_a_sub_agent_s_task_and_conclusion_are_not_said_twice() -> None:
    """The call repeats both; what its result adds stays."""

    def turns() -> Iterator[Turn]:
        yield turn(Text("the task"), role="user")
        yield turn(Text("done"), Text("the conclusion"))

    repeated = (Text("the task"), Text("the conclusion\n"), Text("conclusion"), Text("took 3 s"))
    [update] = replayed(turn(call(subagents=(SubagentRun("s1", "explorer", turns),), content=repeated)))
    assert texts(update)[1:] == ["conclusion", "took 3 s"]


def test_a_broken_sub_agent_costs_only_itself() -> None:
    """Its call is shown all the same."""

    def turns() -> Iterator[Turn]:
        yield turn(Text("begun"))
        raise OSError("gone")

    [update] = replayed(turn(call(subagents=(SubagentRun("s", "s", turns),))))
    assert "begun" in texts(update)[0]
    assert "cannot be read" in texts(update)[0]


def test_long_output_loses_its_middle_and_says_how_much() -> None:
    """The note is exact; what the user wrote is untouched."""
    output = "".join(f"{number:07}\n" for number in range(10_000))
    [update] = replayed(turn(call(content=(Text(output),))))
    head, note, tail = texts(update)[0].partition("\n[… ")[0], texts(update)[0], texts(update)[0].rpartition("…]\n")[2]
    left_out = len(output) - len(head) - len(tail)
    assert output.startswith(head)
    assert output.endswith(tail)
    assert f"[… {left_out:,} characters ({left_out:,} bytes) left out …]" in note
    assert LIMIT * 0.9 < len(texts(update)[0].encode()) < LIMIT * 1.1


def test_a_plan_replaces_the_one_before() -> None:
    """The whole list each time."""
    [update] = replayed(turn(Plan((PlanEntry("a", "completed"), PlanEntry("b", "pending", "high")))))
    assert update["entries"] == [
        {"content": "a", "status": "completed", "priority": "medium"},
        {"content": "b", "status": "pending", "priority": "high"},
    ]


def test_a_compaction_is_told_in_words_or_as_such() -> None:
    """By what the client can show; a long summary comes in several updates and complete."""
    [told] = replayed(turn(Compaction("c1", "what was")))
    assert told["content"]["text"].startswith("Conversation compacted.")
    assert told["content"]["text"].endswith("what was")
    first, *more = replayed(turn(Compaction("c1", "x" * 300_000)), compaction=True)
    assert (first["sessionUpdate"], first["status"]) == ("compaction_update", "completed")
    assert len(first["summary"][0]["text"]) + sum(len(update["content"]["text"]) for update in more) == 300_000
    [bare] = replayed(turn(Compaction("c2")), compaction=True)
    assert "summary" not in bare


def test_big_images_become_links_or_notes() -> None:
    """By whether they have an address that is not the image itself."""
    data = base64.b64encode(b"x" * LIMIT).decode()
    big, linked, inline, named = replayed(
        turn(
            Image("image/png", data),
            Image("image/png", data, "file:///shots/a%20b.png"),
            Image("image/png", data, "data:image/png;base64,aaaa"),
            Image("image/png", uri="https://example.org/x.png"),
        )
    )
    assert (
        big["content"]["text"]
        == inline["content"]["text"]
        == f"[Image image/png: {LIMIT + 2:,} bytes, too large to be sent]"
    )
    assert linked["content"]["name"] == "a b.png"
    assert named["content"]["uri"] == "https://example.org/x.png"


def test_attachments_are_complete_or_named() -> None:
    """Text in as many blocks as it takes, binary data as a link when it is too big."""
    *blocks, blob = replayed(
        turn(Resource("file:///a", "x" * 300_000), Resource("file:///b", blob="y" * 20_000), role="user")
    )
    assert "".join(block["content"]["resource"]["text"] for block in blocks) == "x" * 300_000
    assert blob["content"] == {"type": "resource_link", "uri": "file:///b", "name": "b", "size": 15_000}
