"""Rollouts that nobody sane wrote: nothing raises, and neighbours are shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_history_adapters.codex import Codex
from acp_history_adapters.codex.reader import Reader
from acp_history_bridge.adapter import SessionRecord
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.jsonl import LINE_LIMIT
from acp_history_bridge.turns import (
    Turn,
)
from tests.builders.codex import (
    CWD,
    START,
    THREAD,
    Paginated,
    replay,
    said,
    unit_at,
)


@pytest.mark.fault("F4")
def test_a_record_over_the_limit_is_replaced_by_a_note(tmp_path: Path) -> None:
    """Its neighbours are shown."""
    rollout = Paginated().user("Before").raw(b"x" * (LINE_LIMIT + 1) + b"\n").user("After")
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert [text for _, text in said(turns)] == ["Before", "[A record of 17 MB is too large to be shown.]", "After"]
    assert turns[1].synthetic


@pytest.mark.fault("R1")
def test_an_unopenable_rollout_is_an_error(tmp_path: Path) -> None:
    """It is the one thing that `open` raises for."""
    path = Paginated().write(tmp_path)
    unit = unit_at(tmp_path, path)
    path.unlink()
    with pytest.raises(TranscriptError):
        Codex().open(unit, SessionRecord(THREAD, START))


KEYS = st.sampled_from(
    [
        "type",
        "payload",
        "item",
        "content",
        "text",
        "id",
        "call_id",
        "arguments",
        "output",
        "name",
        "namespace",
        "changes",
        "command",
        "cwd",
        "parsed_cmd",
        "status",
        "role",
        "summary",
        "plan",
        "ordinal",
        "message",
        "images",
        "action",
        "result",
        "error",
        "review_output",
        "findings",
        "agents_states",
        "receiver_agents",
        "history_base",
        "info",
        "num_turns",
        "timestamp",
        "kind",
        "path",
        "query",
        "unified_diff",
    ]
)
TYPES = st.sampled_from(
    [
        "event_msg",
        "response_item",
        "session_meta",
        "turn_context",
        "compacted",
        "item_completed",
        "user_message",
        "agent_message",
        "UserMessage",
        "AgentMessage",
        "Reasoning",
        "CommandExecution",
        "FileChange",
        "McpToolCall",
        "WebSearch",
        "ImageView",
        "CollabAgentToolCall",
        "SubAgentActivity",
        "ExitedReviewMode",
        "ContextCompaction",
        "Plan",
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "function_call_output",
        "message",
        "reasoning",
        "shell",
        "apply_patch",
        "update_plan",
        "spawn_agent",
        "exec_command",
        "patch_apply_end",
        "mcp_tool_call_end",
        "exec_command_end",
        "collab_agent_spawn_end",
        "token_count",
        "thread_rolled_back",
        "task_complete",
        "add",
        "delete",
        "update",
        "read",
        "search",
        "list_files",
        "input_text",
        "image",
        "text",
        "user",
        "assistant",
    ]
)
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=6),
    max_leaves=8,
)


@st.composite
def hostile_records(draw: st.DrawFn) -> dict[str, object]:
    """Records of the right shape at the top and anything below."""
    payload = draw(st.dictionaries(KEYS, VALUES, max_size=8)) | {"type": draw(TYPES), "item": draw(VALUES)}
    kind = draw(st.sampled_from(["event_msg", "response_item", "turn_context", "compacted", "session_meta"]))
    return draw(
        st.sampled_from([payload, {"type": kind, "payload": payload}, {"type": kind, "payload": payload, "ordinal": 1}])
    )


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(hostile_records(), max_size=6))
@pytest.mark.fault("F8")
def test_no_record_makes_the_reader_fail(records: list[dict[str, object]]) -> None:
    """Every field can have any type; turns come out, or nothing."""

    def turns(reader: Reader) -> Iterator[Turn]:
        for number, record in enumerate(records):
            yield from reader.read(record, str(number))
        yield from reader.unanswered()

    for turn in turns(Reader(lambda _agent: None, lambda _what, _kind: None, CWD)):
        assert turn.parts
