"""Damaged, growing and hostile transcripts."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyfakefs.fake_filesystem_unittest import Patcher

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import Transcript
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.turns import Text, ToolCall, Turn
from tests.builders.claude_code import (
    ClaudeLines,
    calls_of,
    inspect_at,
    open_at,
    record_at,
    said_in,
    save_data,
    turns_at,
    unit_at,
)

_HOME = Path("/home/ada")
_NEEDED = ("parentUuid", "type", "uuid", "message")

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
JsonPath: TypeAlias = tuple[str | int, ...]


def _conversation() -> ClaudeLines:
    lines = ClaudeLines()
    lines.prompt("Grüße, 世界 🙂")
    lines.answer("1")
    lines.call("Bash", {"command": "ls"}, call="t1", group="m")
    lines.call("Agent", {"prompt": "Look"}, call="t2", group="m")
    lines.result("a.py", call="t1", toolUseResult={"stdout": "a.py", "stderr": ""})
    lines.result("Found it.", call="t2", toolUseResult={"agentId": "a1"})
    lines.call("TodoWrite", {"todos": [{"content": "a", "status": "pending"}]}, call="t3")
    lines.compaction()
    lines.prompt("Zwei — 二")
    lines.answer("2")
    return lines


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _merged(turns: Sequence[Turn]) -> list[str]:
    """What a follower shows in the end: a call that comes again replaces the first one."""
    places: dict[str, int] = {}
    shown: list[str] = []
    for turn in turns:
        for part in turn.parts:
            line = repr((turn.role, part))
            if isinstance(part, ToolCall) and part.id in places:
                shown[places[part.id]] = line
                continue
            if isinstance(part, ToolCall):
                places[part.id] = len(shown)
            shown.append(line)
    return shown


@pytest.mark.fault("F1")
def test_a_cut_anywhere_in_the_last_three_lines_loses_nothing_before_it(tmp_path: Path) -> None:
    """What is torn waits, without a problem, and is complete when its writer has finished."""
    lines = _conversation()
    lines.records[-3:] = [{key: record[key] for key in _NEEDED} for record in lines.records[-3:]]
    data = lines.data()
    starts = [0, *(place + 1 for place, byte in enumerate(data) if byte == 10)]
    whole = _merged(turns_at(save_data(tmp_path, data)))
    for cut in range(starts[-4], len(data)):
        path = save_data(tmp_path, data[:cut])
        inspection = inspect_at(path)
        assert inspection.complete
        assert inspection.offset == max(start for start in starts if start <= cut)
        with closing(open_at(path)) as transcript:
            first = list(transcript.turns())
            assert transcript.problems == ()
            assert _merged(first) == whole[: len(_merged(first))]
            _append(path, data[cut:])
            assert _merged([*first, *transcript.turns()]) == whole


@given(cuts=st.lists(st.integers(min_value=1), max_size=6))
@settings(max_examples=60, deadline=None)
@pytest.mark.fault("R4", "Z3")
def test_following_in_pieces_gives_what_a_whole_reading_gives(cuts: list[int]) -> None:
    """Every record exactly once and in order, wherever the writes were cut."""
    data = _conversation().data()
    places = sorted({cut % len(data) for cut in cuts})
    with Patcher():
        path = save_data(_HOME, b"")
        with closing(open_at(path)) as transcript:
            turns = list(transcript.turns())
            for start, end in zip([0, *places], [*places, len(data)], strict=True):
                _append(path, data[start:end])
                turns += transcript.turns()
            assert transcript.problems == ()
        assert _merged(turns) == _merged(turns_at(save_data(_HOME, data)))


def test_a_result_that_comes_later_brings_its_call_back(tmp_path: Path) -> None:
    """In a turn with the id of the message that made the call."""
    lines = ClaudeLines()
    lines.prompt("Go")
    lines.call("Bash", {"command": "ls"}, group="m")
    path = lines.save(tmp_path)
    transcript = open_at(path)
    assert calls_of(list(transcript.turns()))[0].status == "unfinished"
    before = len(lines.data())
    lines.result("a.py")
    lines.answer("Done.")
    _append(path, lines.data()[before:])
    again, done = transcript.turns()
    assert (again.id, calls_of([again])[0].status) == ("m", "completed")
    assert said_in([done]) == ["agent: Done."]
    assert list(transcript.turns()) == []
    transcript.close()


def test_a_background_report_that_comes_later_brings_its_call_back(tmp_path: Path) -> None:
    """The call was launched, and reported on minutes afterwards."""
    lines = ClaudeLines()
    lines.call("Agent", {"prompt": "Look"}, call="t1")
    lines.result("Async agent launched", call="t1", toolUseResult={"status": "async_launched"})
    path = lines.save(tmp_path)
    with closing(open_at(path)) as transcript:
        assert calls_of(list(transcript.turns()))[0].status == "unfinished"
        before = len(lines.data())
        note = "<tool-use-id>t1</tool-use-id><status>completed</status><result>Found.</result>"
        lines.prompt(f"<task-notification>{note}</task-notification>")
        _append(path, lines.data()[before:])
        (call,) = calls_of(list(transcript.turns()))
        assert (call.status, call.content[-1]) == ("completed", Text("Found."))


def test_an_agent_that_is_started_later_is_found(tmp_path: Path) -> None:
    """Its files appear after the session was opened."""
    lines = ClaudeLines()
    lines.call("Agent", {"prompt": "Look"}, call="t1")
    path = lines.save(tmp_path)
    with closing(open_at(path)) as transcript:
        assert calls_of(list(transcript.turns()))[0].subagents == ()
        agents = path.with_suffix("") / "subagents"
        agents.mkdir(parents=True)
        (agents / "agent-a1.jsonl").write_bytes(lines.data())
        before = len(lines.data())
        lines.result("Found it.", call="t1", toolUseResult={"agentId": "a1"})
        _append(path, lines.data()[before:])
        (call,) = calls_of(list(transcript.turns()))
        assert [run.id for run in call.subagents] == ["a1"]


def test_an_answer_that_goes_on_later_keeps_its_id(tmp_path: Path) -> None:
    """Its lines are written one by one."""
    lines = ClaudeLines()
    lines.answer("1", group="m")
    path = lines.save(tmp_path)
    transcript = open_at(path)
    first = list(transcript.turns())
    before = len(lines.data())
    lines.answer("2", group="m")
    _append(path, lines.data()[before:])
    assert [turn.id for turn in (*first, *transcript.turns())] == ["m", "m"]
    transcript.close()


@pytest.mark.fault("R3")
def test_a_file_whose_end_was_taken_back_shows_what_is_new(tmp_path: Path) -> None:
    """A version rewrites the end of the file in place."""
    lines = _conversation()
    path = lines.save(tmp_path)
    transcript = open_at(path)
    list(transcript.turns())
    del lines.records[-2:]
    path.write_bytes(lines.data())
    assert list(transcript.turns()) == []
    before = len(lines.data())
    lines.prompt("Instead", uuid="new", parent=str(lines.records[-1]["uuid"]))
    _append(path, lines.data()[before:])
    assert said_in(list(transcript.turns())) == ["user: Instead"]
    transcript.close()


@pytest.mark.parametrize(
    ("damage", "problems"),
    [
        (b"\n  \n\r\n", 0),
        (b"\x00" * 300 + b"\n", 1),
        (b"not json\n", 1),
        (b"[1]\n7\nnull\n", 1),
        (b'{"a":1}{"b":2}\n', 1),
        (b'{"type":"user",}\n', 1),
        (b"\xff\xfe\n", 1),
        (b"[" * 5000 + b"\n", 1),
        (b'{"type":"user","uuid":"n","message":{"content":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}}\n", None),
        (b'{"type":"mode","mode":NaN,"n":123456789012345678901234567890,"n":2}\n', 0),
    ],
)
@pytest.mark.fault("F2", "F3", "F6", "F7")
def test_damaged_lines_cost_no_neighbour(tmp_path: Path, damage: bytes, problems: int | None) -> None:
    """Each is counted with its line."""
    lines = ClaudeLines()
    lines.prompt("One")
    first = lines.data()
    lines.answer("1")
    path = save_data(tmp_path, first + damage + lines.data()[len(first) :])
    transcript = open_at(path)
    assert said_in(list(transcript.turns())) == ["user: One", "agent: 1"]
    if problems is not None:
        assert len(transcript.problems) == problems
    assert record_at(path).title == "One"
    transcript.close()


@pytest.mark.fault("F3", "F6", "F7")
def test_line_ends_byte_order_marks_and_nul_before_a_record_are_read(tmp_path: Path) -> None:
    """The official reader loses the first line by the mark."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("1\ud83d")
    data = b"\xef\xbb\xbf" + lines.data().replace(b"\n", b"\r\n\x00\x00", 1).rstrip(b"\n")
    assert said_in(turns_at(save_data(tmp_path, data))) == ["user: One", "agent: 1\ud83d"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _paths_of(value: Json, path: JsonPath = ()) -> list[JsonPath]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [inner for key, item in value.items() for inner in _paths_of(item, (*path, key))]
    if isinstance(value, list):
        return found + [inner for place, item in enumerate(value) for inner in _paths_of(item, (*path, place))]
    return found


def _rich() -> Json:
    lines = _conversation()
    source = {"type": "base64", "data": "eA"}
    lines.prompt([{"type": "image", "source": source}, {"type": "document", "source": source}])
    patch = [{"oldStart": 1, "newStart": 1, "lines": ["-a", "+b"]}]
    tools: dict[str, dict[str, object]] = {
        "Edit": {"file_path": "/a", "old_string": "a", "new_string": "b"},
        "MultiEdit": {"file_path": "/a", "edits": [{"old_string": "a"}]},
        "Grep": {"pattern": "a", "-A": 1, "head_limit": 2},
        "AskUserQuestion": {"questions": [{"question": "q"}]},
        "TaskCreate": {"subject": "s"},
        "TaskUpdate": {"taskId": "1", "status": "completed"},
        "TaskList": {},
    }
    for number, (name, arguments) in enumerate(tools.items()):
        lines.call(name, arguments, call=f"z{number}")
        detail = {"structuredPatch": patch, "task": {"id": "1"}, "tasks": [{"id": "1"}], "answers": {"q": "a"}}
        lines.result([{"type": "text", "text": "x"}], call=f"z{number}", toolUseResult=detail)
    attachment = {"type": "queued_command", "prompt": "q", "source_uuid": "s", "timestamp": "2026-11-20T10:00:00Z"}
    lines.add("attachment", attachment=attachment)
    lines.add("system", subtype="local_command", content="<command-name>/x</command-name>")
    lines.metadata("cost-state", totalCostUSD=1)
    lines.metadata("custom-title", customTitle="T")
    return cast("Json", lines.records)


_RICH = cast("list[Json]", _rich())
_PLACES = [(number, path) for number, record in enumerate(_RICH) for path in _paths_of(record)]


def _replaced(value: Json, path: JsonPath, new: Json) -> Json:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: _replaced(item, path[1:], new) if key == path[0] else item for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, path[1:], new) if place == path[0] else item for place, item in enumerate(value)]
    return value  # an earlier replacement took the place away


@given(places=st.lists(st.tuples(st.sampled_from(_PLACES), _VALUES), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.fault("F8")
def test_wrong_types_in_any_field_raise_nothing(places: list[tuple[tuple[int, JsonPath], Json]]) -> None:
    """Every field can hold anything; a turn's id stays unique."""
    records = list(_RICH)
    for (number, place), value in places:
        records[number] = _replaced(records[number], place, value)
    with Patcher():
        path = save_data(_HOME, b"".join(json.dumps(record).encode() + b"\n" for record in records))
        inspect_at(path)
        turns = turns_at(path)
        assert len({turn.id for turn in turns}) == len(turns)


def test_many_calls_with_one_id_or_one_result_line_take_linear_time(tmp_path: Path) -> None:
    """Made-up transcripts must not block a replay for minutes."""
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "Bash"} for number in range(20_000)]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "x"} for call in calls]
    lines = ClaudeLines()
    lines.answer(*calls)
    lines.prompt(results)
    for _ in range(20_000):
        lines.call("Task", {"prompt": "p"}, call="same")
    for _ in range(1000):
        lines.prompt("p", isSidechain=True, parent=None)
    turns = turns_at(lines.save(tmp_path))
    assert sum(call.status == "completed" for call in calls_of(turns)) == 20_000


@pytest.mark.fault("F5")
def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A link, a directory or a file that has gone is an error of `open` alone."""
    path = _conversation().save(tmp_path)
    unit, record = unit_at(path), record_at(path)
    path.unlink()
    with pytest.raises(TranscriptError):
        ClaudeCode().open(unit, record)
    path.mkdir()
    with pytest.raises(TranscriptError):
        ClaudeCode().open(unit, record)


@pytest.mark.fault("R1")
def test_a_vanished_file_is_still_read_to_its_end(tmp_path: Path) -> None:
    """The descriptor outlives the name; closing twice is fine."""
    path = _conversation().save(tmp_path)
    transcript: Transcript = open_at(path)
    path.unlink()
    assert said_in(list(transcript.turns()))[-1] == "agent: 2"
    transcript.close()
    transcript.close()
