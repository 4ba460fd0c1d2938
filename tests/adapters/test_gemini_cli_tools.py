"""How Gemini CLI's tool calls read: titles, kinds, outcomes, changes, shell results, plans, sub-agents, side files."""

import json
from pathlib import Path

import pytest

from acp_history_bridge.turns import Diff, Image, Location, Plan, PlanEntry, ShellResult, Text, ToolCall
from tests.builders.gemini_cli import CWD, SESSION, Chat, call, calls, mark, opened, parts_in, replay, response, said

CHANGE = {"fileDiff": "…", "fileName": "a.py", "filePath": f"{CWD}/a.py", "originalContent": "1\n", "newContent": "2\n"}
OLD_LAYOUT = (
    "Command: ls\nDirectory: (root)\nOutput: one\nthree\nError: (none)\nExit Code: 0\nSignal: (none)\n"
    "Background PIDs: 14\nProcess Group PGID: (none)"
)
CUT = "Output too large. Showing first 8 and last 3 characters. For full output see: {}\n1\n…"


def shown(home: Path, entry: object) -> ToolCall:
    """One call as it is shown."""
    (found,) = calls(replay(home, Chat().agent("", toolCalls=[entry]).write(home)))
    return found


@pytest.mark.parametrize(
    ("name", "args", "title", "kind"),
    [
        ("read_file", {"file_path": f"{CWD}/a.py"}, "Read a.py", "read"),
        ("read_file", {"absolute_path": "/etc/hosts", "offset": 9, "limit": 5}, "Read /etc/hosts (10 - 14)", "read"),
        ("read_file", {"file_path": "a.py", "start_line": 3, "end_line": 7}, "Read a.py (3 - 7)", "read"),
        ("read_file", {"file_path": "a.py", "start_line": 3}, "Read a.py (from 3)", "read"),
        ("read_many_files", {"include": ["a.py", "b.py"]}, "Read a.py, b.py", "read"),
        ("list_directory", {"dir_path": "src"}, "List src", "search"),
        ("glob", {"pattern": "**/*.py"}, "Find **/*.py", "search"),
        ("search_file_content", {"pattern": "TODO"}, "Search TODO", "search"),
        ("grep_search", {"pattern": "TODO"}, "Search TODO", "search"),
        ("write_file", {"file_path": "a.py", "content": ""}, "Write a.py", "edit"),
        ("replace", {"file_path": "a.py"}, "Edit a.py", "edit"),
        ("run_shell_command", {"command": "ls -l\nrm x"}, "ls -l rm x", "execute"),
        ("web_fetch", {"prompt": "Read https://example.org"}, "Fetch Read https://example.org", "fetch"),
        ("google_web_search", {"query": "ACP"}, "Search the web: ACP", "search"),
        ("update_topic", {"title": "Discounts"}, "Topic: Discounts", "think"),
        ("invoke_agent", {"agent_name": "generalist"}, "Delegate to generalist", "think"),
        ("ask_user", {"questions": [{"question": "Which?"}]}, "Ask: Which?", "other"),
        ("enter_plan_mode", {}, "enter_plan_mode", "switch_mode"),
        ("mcp_stock_stock_level", {"sku": "tea"}, "stock: stock_level", "other"),
        ("stock__stock_level", {}, "stock: stock_level", "other"),
        ("novelty", {}, "novelty", "other"),
    ],
)
def test_a_call_names_its_object(tmp_path: Path, name: str, args: object, title: str, kind: str) -> None:
    """Under the parameter names of all versions."""
    found = shown(tmp_path, call(name, args))
    assert (found.title, found.kind, found.input) == (title, kind, args)


def test_labels_of_the_interface_help_where_names_do_not(tmp_path: Path) -> None:
    """A server's name with an underscore; a short description of an unknown tool, but not its manual."""
    server = call("mcp_my_stock_level", {}, displayName="level (my_stock MCP Server)")
    short, long = call("novelty", {}, description="Shake well"), call("novelty", {}, description="m" * 200)
    titles = [shown(tmp_path, entry).title for entry in (server, short, long)]
    assert titles == ["my_stock: level", "Shake well", "novelty"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("success", "completed"),
        ("error", "failed"),
        ("cancelled", "failed"),
        ("executing", "unfinished"),
        (7, "unfinished"),
    ],
)
def test_outcomes(tmp_path: Path, status: object, expected: str) -> None:
    """Only what the tool calls success is one."""
    assert shown(tmp_path, call("glob", status=status)).status == expected


def test_locations_are_absolute(tmp_path: Path) -> None:
    """Relative paths lie below the project; a line where the arguments name one."""
    found = shown(tmp_path, call("read_file", {"file_path": "src/a.py", "offset": 9}))
    assert found.locations == (Location(f"{CWD}/src/a.py", 10),)
    assert shown(tmp_path, call("replace", {"file_path": "a.py"}, resultDisplay=CHANGE)).locations == (
        Location(f"{CWD}/a.py"),
    )


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([response("1", "x", "plain")], "plain"),
        ([response("1", "x", "<untrusted_context>\nwrapped\n</untrusted_context>")], "wrapped"),
        ([response("1", "x", error="broken")], "broken"),
        ([response("1", "x", {"count": 1})], '{\n  "count": 1\n}'),
        (response("1", "x", "one part"), "one part"),
        ([response("other", "y", "not this"), response("call-1", "x", "its own"), {"text": "note"}], "its own\nnote"),
        ("a string", "a string"),
        ([{"functionResponse": {"response": {"content": "other field"}}}], '{\n  "content": "other field"\n}'),
        (None, "shown"),
        ([response("1", "x", "")], "shown"),
    ],
)
def test_what_the_model_was_told_is_shown_else_what_the_interface_showed(
    tmp_path: Path, result: object, text: str
) -> None:
    """In any of the shapes the field can have."""
    assert shown(tmp_path, call("x", result=result, resultDisplay="shown")).content == (Text(text),)


def test_an_answer_of_the_user_is_shown_in_words(tmp_path: Path) -> None:
    """The model is told numbers."""
    answered = call("ask_user", output='{"answers":{"0":"Blue"}}', resultDisplay="Colour → Blue")
    assert shown(tmp_path, answered).content == (Text("Colour → Blue"),)
    assert shown(tmp_path, call("ask_user", output="told")).content == (Text("told"),)


def test_pictures_in_results_are_pictures(tmp_path: Path) -> None:
    """Beside the response, or inside it."""
    pixel = {"inlineData": {"mimeType": "image/png", "data": "aaaa"}}
    inside = {"functionResponse": {"response": {"output": "A picture"}, "parts": [pixel]}}
    for result in ([response("1", "x", "A picture"), pixel], [inside]):
        assert shown(tmp_path, call("read_file", result=result)).content == (
            Text("A picture"),
            Image("image/png", "aaaa"),
        )


@pytest.mark.parametrize(
    ("entry", "diff"),
    [
        (call("replace", {"file_path": "a.py"}, resultDisplay=CHANGE), Diff(f"{CWD}/a.py", "2\n", "1\n")),
        (call("write_file", {}, resultDisplay={**CHANGE, "isNewFile": True}), Diff(f"{CWD}/a.py", "2\n")),
        (call("write_file", {}, resultDisplay={**CHANGE, "originalContent": None}), Diff(f"{CWD}/a.py", "2\n")),
        (call("write_file", {}, resultDisplay={**CHANGE, "originalContent": ""}), Diff(f"{CWD}/a.py", "2\n", "")),
        (call("replace", {"file_path": "a.py", "old_string": "1", "new_string": "2"}), Diff(f"{CWD}/a.py", "2", "1")),
        (call("write_file", {"file_path": "/a.py", "content": "2"}), Diff("/a.py", "2")),
    ],
)
def test_edits_are_diffs(tmp_path: Path, entry: object, diff: Diff) -> None:
    """From what the interface recorded, and before 0.25 from the arguments; with absolute paths."""
    assert shown(tmp_path, entry).content == (diff,)


def test_a_failed_edit_shows_why_and_no_change(tmp_path: Path) -> None:
    """The change was not made."""
    entry = call("replace", {"file_path": "a", "old_string": "1", "new_string": "2"}, status="error")
    assert shown(tmp_path, {**entry, "result": [response("1", "replace", error="no match")]}).content == (
        Text("no match"),
    )


@pytest.mark.parametrize(
    ("text", "status", "result"),
    [
        ("<untrusted_context>\nOutput: 7\nProcess Group PGID: 2\n</untrusted_context>", "success", ShellResult("7", 0)),
        ("Output: no\nExit Code: 3\nProcess Group PGID: 2", "success", ShellResult("no", 3)),
        ("Output: (empty)\nProcess Group PGID: 2", "success", ShellResult("", 0)),
        ("Output: a\nSignal: 9\nProcess Group PGID: 2", "success", ShellResult("a")),
        ("Output: a\nExit Code: x\nb\nProcess Group PGID: 2", "success", ShellResult("a\nExit Code: x\nb", 0)),
        ("Output: a\nError: broken\nExit Code: 1", "success", ShellResult("a\nbroken", 1)),
        (
            OLD_LAYOUT,
            "success",
            ShellResult("one\nthree", 0),
        ),
        (
            "Command: ls\nDirectory: (root)\nStdout: one\nStderr: two\nError: (none)\nExit Code: 2\nSignal: (none)",
            "success",
            ShellResult("one\ntwo", 2),
        ),
        ("[Operation Cancelled] Reason: …", "cancelled", ShellResult("[Operation Cancelled] Reason: …")),
        ("anything else", "success", ShellResult("anything else")),
    ],
)  # fmt: skip
def test_a_shell_result_is_what_was_printed_and_how_it_ended(
    tmp_path: Path, text: str, status: str, result: ShellResult
) -> None:
    """In the layouts of all versions; a label inside the output is output."""
    entry = call("run_shell_command", {"command": "ls"}, text, status=status)
    found = shown(tmp_path, entry)
    assert (found.shell, found.content) == (result, ())


# -- side files --------------------------------------------------------------------------------------------------------


def spill(home: Path, text: str, folder: str = f"tool-outputs/session-{SESSION}") -> Path:
    """Write the full text of a cut output."""
    path = home / ".gemini" / "tmp" / "shop" / folder / "out.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_cut_output_is_read_from_its_side_file(tmp_path: Path) -> None:
    """By its base name alone: the home may have moved."""
    spill(tmp_path, "<untrusted_context>\nOutput: 1\n2\n3\nExit Code: 4\n</untrusted_context>")
    cut = CUT.format("/elsewhere/.gemini/tmp/shop/tool-outputs/session-x/out.txt")
    found = shown(tmp_path, call("run_shell_command", {"command": "seq"}, cut))
    assert found.shell == ShellResult("1\n2\n3", 4)
    assert shown(tmp_path, call("web_fetch", {}, cut)).content[0] == Text("Output: 1\n2\n3\nExit Code: 4")


def test_without_a_side_file_the_interface_had_the_whole_text(tmp_path: Path) -> None:
    """It is longer than what the model was told."""
    whole = "1\n" * 300
    cut = CUT.format("/gone/out.txt")
    assert shown(tmp_path, call("web_fetch", {}, cut, resultDisplay=whole)).content == (Text(whole),)
    shell = call("run_shell_command", {}, f"{cut}\nExit Code: 5\n</untrusted_context>", resultDisplay=whole)
    assert shown(tmp_path, shell).shell == ShellResult(whole, 5)


@pytest.mark.parametrize("name", ["../../../secret", "/etc/hostname", "..", "a/../../out.txt", "x\x00"])
@pytest.mark.fault("S6")
def test_a_named_path_is_never_followed(tmp_path: Path, name: str) -> None:
    """Only base names, and only in the session's own folder."""
    (tmp_path / ".gemini" / "tmp" / "shop" / "tool-outputs").mkdir(parents=True)
    (tmp_path / ".gemini" / "tmp" / "shop" / "tool-outputs" / "secret").write_text("secret", encoding="utf-8")
    (found,) = shown(tmp_path, call("web_fetch", {}, CUT.format(name))).content
    assert isinstance(found, Text)
    assert found.text.startswith("Output too large.")


@pytest.mark.fault("S5")
def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """It could lead anywhere."""
    secret = spill(tmp_path, "secret", "elsewhere")
    folder = secret.parent.parent / "tool-outputs"
    folder.mkdir()
    (folder / f"session-{SESSION}").symlink_to(secret.parent)
    (found,) = shown(tmp_path, call("web_fetch", {}, CUT.format("out.txt"))).content
    assert "secret" not in str(found)


# -- plans and sub-agents ----------------------------------------------------------------------------------------------


def test_a_todo_list_is_a_plan(tmp_path: Path) -> None:
    """It replaces the call."""
    todos = [{"description": "Read", "status": "completed"}, {"description": "Write", "status": "in_progress"}, {}]
    plan = Plan((PlanEntry("Read", "completed"), PlanEntry("Write", "in_progress")))
    for entry in (call("write_todos", {"todos": todos}), call("write_todos", {}, resultDisplay={"todos": todos})):
        turns = replay(tmp_path, Chat().agent("", toolCalls=[entry]).write(tmp_path))
        assert parts_in(turns) == [plan]


def test_a_failed_todo_list_stays_a_call(tmp_path: Path) -> None:
    """The plan did not change."""
    assert shown(tmp_path, call("write_todos", {"todos": [{"description": "x"}]}, status="error")).status == "failed"


def agent_file(home: Path, agent: str, chat: Chat, parent: str = SESSION) -> Path:
    """Write a sub-agent's transcript."""
    path = home / ".gemini" / "tmp" / "shop" / "chats" / parent / f"{agent}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chat.data)
    return path


def test_a_subagent_can_start_others(tmp_path: Path) -> None:
    """Each is read when it is asked for, from the folder of the session that began it all."""
    inner = call("invoke_agent", {"agent_name": "inner"}, agentId="two")
    agent_file(tmp_path, "one", Chat("one").user("Task").agent("", toolCalls=[inner]))
    agent_file(tmp_path, "two", Chat("two").user("Small task").agent("Done"))
    (run,) = shown(tmp_path, call("invoke_agent", {"agent_name": "outer"}, agentId="one")).subagents
    turns = list(run.turns())
    (nested,) = calls(turns)[0].subagents
    assert (run.name, said(turns)) == ("outer", [("user", "Task")])
    assert (nested.name, said(list(nested.turns()))) == ("inner", [("user", "Small task"), ("agent", "Done")])


@pytest.mark.fault("T2")
def test_a_subagent_that_starts_itself_ends(tmp_path: Path) -> None:
    """A cycle must not be followed."""
    agent_file(tmp_path, "one", Chat("one").agent("", toolCalls=[call("invoke_agent", agentId="one")]))
    (run,) = shown(tmp_path, call("invoke_agent", agentId="one")).subagents
    assert calls(list(run.turns()))[0].subagents == ()


@pytest.mark.parametrize("agent", ["../session-2026-11-02T09-00-89515a8d", "/etc/passwd", "", "missing", 7])
@pytest.mark.fault("S4")
def test_an_agent_id_is_only_a_name(tmp_path: Path, agent: object) -> None:
    """It is looked up in the session's folder and nowhere else."""
    assert shown(tmp_path, call("invoke_agent", agentId=agent)).subagents == ()


def test_a_subagent_that_went_away_has_no_turns(tmp_path: Path) -> None:
    """The tool deletes old ones; that is reported."""
    path = agent_file(tmp_path, "one", Chat("one").user("Task"))
    chat = Chat().agent("", toolCalls=[call("invoke_agent", agentId="one")]).write(tmp_path)
    with opened(tmp_path, chat) as transcript:
        (found,) = calls(list(transcript.turns()))
        path.unlink()
        assert list(found.subagents[0].turns()) == []
        assert [problem.kind for problem in transcript.problems] == ["unreadable"]


def test_output_holds_any_json(tmp_path: Path) -> None:
    """Lone surrogates and numbers beyond 64 bits, which the fast encoder refuses."""
    mark(tmp_path, "shop", CWD)
    line = json.dumps(
        {"id": "a", "type": "gemini", "content": "", "toolCalls": [call("x", output={"n": 2**70, "s": "\ud800"})]}
    )
    (found,) = calls(replay(tmp_path, Chat().raw(line.encode() + b"\n").write(tmp_path)))
    assert str(2**70) in str(found.content)
