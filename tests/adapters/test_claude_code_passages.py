"""What the text index gets of a transcript: what was said and done, nothing that a tool printed, from any line on."""

from pathlib import Path

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import Passage
from acp_history_bridge.errors import TranscriptError
from tests.builders.claude_code import ClaudeLines, record_at, save_data, store_at, unit_at
from tests.conftest import copy_home

Found = list[tuple[str, str]]


def _passages(path: Path, since: int = 0, *, output: bool = False) -> list[Passage]:
    return list(ClaudeCode().passages(unit_at(path), record_at(path), since, output=output))


def _found(path: Path) -> Found:
    return [(passage.kind, passage.text) for passage in _passages(path)]


def test_what_was_said_and_what_calls_were_about_is_found(tmp_path: Path) -> None:
    """Thoughts, results, plans, reminders and lines that are no messages are not; summaries and rewound prompts are."""
    lines = ClaudeLines()
    lines.metadata("file-history-snapshot", snapshot={"text": "snapshot"})
    first = lines.prompt("First<system-reminder>reminder</system-reminder>")
    lines.answer({"type": "thinking", "thinking": "thought"})
    lines.answer({"type": "thinking", "thinking": "thought"}, "Said after a thought")
    lines.call("Read", {"file_path": "/home/ada/src/shop/cart.py"})
    lines.result([{"type": "text", "text": "printed"}])
    lines.call("TodoWrite", {"todos": [{"content": "todo", "status": "pending"}]}, "toolu_2")
    lines.add("progress", data={"type": "hook", "text": "progress"})
    lines.add("attachment", attachment={"type": "file", "content": "attached"})
    lines.add("attachment", attachment={"type": "queued_command", "prompt": "Queued"})
    lines.compaction("This session is being continued from a previous conversation: summary")
    lines.prompt("Rewound", parent=first)
    lines.prompt("Last", parent=first)

    assert _found(lines.save(tmp_path)) == [
        ("message", "First"),
        ("message", "Said after a thought"),
        ("tool", "Read cart.py\n/home/ada/src/shop/cart.py"),
        ("message", "Queued"),
        ("message", "This session is being continued from a previous conversation: summary"),
        ("message", "Rewound"),
        ("message", "Last"),
    ]


def test_words_beside_a_tool_result_are_found(tmp_path: Path) -> None:
    """A line that starts like a result can hold more than results."""
    lines = ClaudeLines()
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "printed"}
    lines.prompt([result, {"type": "text", "text": "No, use tabs"}])

    assert _found(lines.save(tmp_path)) == [("message", "No, use tabs")]


def test_reading_goes_on_behind_a_passage(tmp_path: Path) -> None:
    """From the end of any passage on, exactly the rest comes; damaged lines cost only themselves."""
    lines = ClaudeLines()
    for number in range(5):
        lines.prompt(f"Prompt {number}")
        lines.answer(f"Answer {number}", {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}})
        lines.result("x" * 3000, f"t{number}")
    data = lines.data().replace(b"\n", b"\n{damaged\n", 1)
    path = save_data(tmp_path, data)
    whole = _passages(path)

    assert len(whole) == 15
    for passage in whole:
        rest = [later for later in whole if later.end > passage.end]
        assert _passages(path, passage.end) == rest


def test_output_is_found_when_it_is_wanted(tmp_path: Path) -> None:
    """Then the calls come with what they printed."""
    lines = ClaudeLines()
    lines.call("Bash", {"command": "ls"})
    lines.result("README")

    kinds = [(passage.kind, passage.text) for passage in _passages(lines.save(tmp_path), output=True)]
    assert kinds == [("tool", "ls"), ("output", "README")]


def test_the_talk_of_agents_is_not_their_sessions(tmp_path: Path) -> None:
    """An inline sub-agent's lines are not the session's; in the replay they are folded into a call."""
    lines = ClaudeLines()
    lines.prompt("Ask an agent")
    lines.prompt("Do it", isSidechain=True)

    assert _found(lines.save(tmp_path)) == [("message", "Ask an agent")]


def test_a_transcript_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """It is the one that the index expects."""
    path = ClaudeLines().save(tmp_path)
    unit, record = unit_at(path), record_at(path)
    path.unlink()

    with pytest.raises(TranscriptError):
        list(ClaudeCode().passages(unit, record))


def test_all_that_replays_of_recorded_sessions_say_is_found(tmp_path: Path) -> None:
    """In every recorded session, each passage of the replay is there, but for the one title that tells an outcome."""
    copy_home("claude-code", tmp_path)
    adapter = ClaudeCode()
    compared = 0
    for unit in adapter.discover(store_at(tmp_path)).units:
        for record in adapter.inspect(unit).records:
            found = {passage.text for passage in adapter.passages(unit, record)} | {"Exited Plan Mode"}
            replayed = super(ClaudeCode, adapter).passages(unit, record)
            missing = [passage.text for passage in replayed if passage.text not in found]
            assert not missing, (unit.path, missing)
            compared += len(found)
    assert compared > 100
