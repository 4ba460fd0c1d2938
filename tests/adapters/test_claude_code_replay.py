"""Rules of the replay, one at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from acp_history_bridge.jsonl import LINE_LIMIT
from acp_history_bridge.turns import Compaction, Diff, Image, Location, Notice, Resource, ResourceLink, Text
from tests.builders.claude_code import CWD, ClaudeLines, calls_of, open_at, said_in, save_data, turns_at

_NOTE = (
    "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>{call}</tool-use-id>\n<status>{status}</status>\n"
    "<summary>Agent done</summary>\n<result>{result}</result>\n</task-notification>"
)


def _said(lines: ClaudeLines, home: Path) -> list[str]:
    return said_in(turns_at(lines.save(home)))


def test_lines_with_one_message_id_are_one_turn(tmp_path: Path) -> None:
    """Also when the result of a tool that started early lies between them."""
    lines = ClaudeLines()
    lines.prompt("Look")
    lines.answer({"type": "thinking", "thinking": "Hm."}, group="m1")
    lines.call("Read", {"file_path": f"{CWD}/a.py", "offset": 3, "limit": 2}, group="m1")
    lines.result("3\tx")
    lines.answer("Done.", group="m1")
    turns = turns_at(lines.save(tmp_path))
    assert [turn.id for turn in turns][1:] == ["m1"]
    assert said_in(turns[1:]) == ["agent: [thought] Hm.", "agent: {Read a.py (3 - 4)}", "agent: Done."]
    (call,) = calls_of(turns)
    assert call.status == "completed"
    assert call.content == (Text("3\tx"),)
    assert call.locations == (Location(f"{CWD}/a.py", 3),)


def test_a_rewound_prompt_is_left_out_with_all_that_followed(tmp_path: Path) -> None:
    """The tree forks at the place the user went back to."""
    lines = ClaudeLines()
    lines.prompt("One")
    place = lines.answer("1")
    lines.prompt("Two")
    lines.call("Bash", {"command": "ls"})
    lines.result("a.py")
    lines.add("attachment", attachment={"type": "queued_command", "prompt": "and three"})
    lines.prompt("Two, better", parent=place)
    lines.answer("2b")
    transcript = open_at(lines.save(tmp_path))
    assert said_in(list(transcript.turns())) == ["user: One", "agent: 1", "user: Two, better", "agent: 2b"]
    assert transcript.left_out == 3
    transcript.close()


def test_a_rewind_to_the_first_prompt_starts_over(tmp_path: Path) -> None:
    """Then the new prompt has no parent."""
    lines = ClaudeLines()
    lines.prompt("One", parent=None)
    lines.answer("1")
    lines.prompt("Uno", parent=None)
    lines.answer("2")
    assert _said(lines, tmp_path) == ["user: Uno", "agent: 2"]


def test_parallel_results_beside_the_chain_are_kept(tmp_path: Path) -> None:
    """From 2.0.77 on each result hangs on its own call, so the tree forks without a rewind."""
    lines = ClaudeLines()
    lines.prompt("Look")
    first = lines.call("Bash", {"command": "a"}, call="t1", group="m1")
    second = lines.call("Bash", {"command": "b"}, call="t2", group="m1")
    lines.result("B", call="t2", parent=second)
    last = lines.result("A", call="t1", parent=first)
    lines.answer("Done.", parent=last)
    turns = turns_at(lines.save(tmp_path))
    assert [(call.title, call.shell and call.shell.output) for call in calls_of(turns)] == [("a", "A"), ("b", "B")]
    assert said_in(turns)[-1] == "agent: Done."


def test_a_missing_parent_does_not_cut_off_the_history(tmp_path: Path) -> None:
    """The line before stands in for a parent that was never written."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("1")
    lines.prompt("Two", parent="never-written")
    assert _said(lines, tmp_path) == ["user: One", "agent: 1", "user: Two"]


@pytest.mark.fault("T2")
def test_cycles_end_and_lose_nothing(tmp_path: Path) -> None:
    """A line can name itself, or one that comes later."""
    lines = ClaudeLines()
    first = lines.prompt("One", parent="later")
    lines.add("assistant", parent=first, uuid="later", message={"id": "m", "content": [{"type": "text", "text": "1"}]})
    lines.add("user", parent="self", uuid="self", message={"content": "Two"})
    assert _said(lines, tmp_path) == ["user: One", "agent: 1", "user: Two"]


def test_a_compaction_shows_its_summary_once_and_what_was_before(tmp_path: Path) -> None:
    """The summary is no prompt."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("1")
    boundary = lines.compaction("This session is being continued from a previous conversation: ones.")
    lines.prompt("Two")
    turns = turns_at(lines.save(tmp_path))
    assert said_in(turns) == ["user: One", "agent: 1", "agent: [compaction]", "user: Two"]
    summary = "This session is being continued from a previous conversation: ones."
    assert turns[2].parts == (Compaction(boundary, summary),)
    assert turns[2].synthetic


def test_an_old_compaction_without_a_boundary_is_one(tmp_path: Path) -> None:
    """Up to 1.0.83 only the summary was written, as a root."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.prompt("This session is being continued from a previous conversation: ones.", parent=None)
    lines.prompt("Two")
    assert _said(lines, tmp_path) == ["user: One", "agent: [compaction]", "user: Two"]


@pytest.mark.fault("T2")
def test_a_line_written_twice_is_shown_once_with_its_later_text(tmp_path: Path) -> None:
    """Some versions copied lines under the same uuid; the tool lets the later one win."""
    lines = ClaudeLines()
    one = lines.prompt("One")
    lines.answer("1")
    lines.prompt("One!", uuid=one)
    assert _said(lines, tmp_path) == ["user: One!", "agent: 1"]


def test_the_oldest_lines_need_neither_uuid_nor_parent(tmp_path: Path) -> None:
    """Then file order is the conversation."""
    data = b'{"type":"user","message":{"content":"One"}}\n{"type":"assistant","message":{"content":"1"}}\n'
    assert said_in(turns_at(save_data(tmp_path, data))) == ["user: One", "agent: 1"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<command-name>/review</command-name>\n<command-args>a.py</command-args>", ["user: /review a.py"]),
        ("<command-name>/clear</command-name><command-args></command-args>", ["user: /clear"]),
        ("<bash-input>ls</bash-input>", ["user: ! ls"]),
        ("<bash-stdout>\x1b[1ma\x1b[0m</bash-stdout><bash-stderr>b</bash-stderr>", ["user: ```console\na\nb\n```"]),
        ("<local-command-stdout>Set model</local-command-stdout>", ["user: [notice] Set model"]),
        ("[Request interrupted by user for tool use]", ["user: [notice] [Request interrupted by user for tool use]"]),
        ('See <pasted_content id="1">\nA\nB</pasted_content>', ["user: See A\nB"]),
        ("Hi<system-reminder>psst</system-reminder>", ["user: Hi"]),
        ("<system-reminder>psst</system-reminder>", []),
        ("Caveat: The messages below were generated by the user", []),
        ("<ide_selection>x</ide_selection>\nWhy?", ["user: [notice] x", "user: Why?"]),
        ("<div> is a tag, and <system-reminder> too", ["user: <div> is a tag, and <system-reminder> too"]),
        ("  indented\n", ["user:   indented\n"]),
    ],
)
def test_wrappers_are_taken_off(tmp_path: Path, content: str, expected: list[str]) -> None:
    """What frames the user's words goes, the words stay as they are."""
    lines = ClaudeLines()
    lines.prompt(content)
    assert _said(lines, tmp_path) == expected


def test_unclosed_wrappers_take_linear_time(tmp_path: Path) -> None:
    """A hostile prompt of opening tags would need hours with a backtracking search."""
    lines = ClaudeLines()
    lines.prompt("<system-reminder>" * 200_000)
    (said,) = _said(lines, tmp_path)
    assert len(said) == len("user: ") + 17 * 200_000


def test_only_what_the_user_typed_counts_as_a_message(tmp_path: Path) -> None:
    """Notices, output and commands of the terminal are synthetic."""
    lines = ClaudeLines()
    lines.prompt("<command-name>/model</command-name>")
    lines.prompt("<bash-stdout>a</bash-stdout>")
    lines.prompt("[Request interrupted by user]")
    lines.prompt("Real")
    lines.answer("No response requested.", model="<synthetic>")
    assert [turn.synthetic for turn in turns_at(lines.save(tmp_path))] == [True, True, True, False, True]


def test_injected_lines_are_dropped_but_messages_of_other_agents_are_shown(tmp_path: Path) -> None:
    """Both are flagged as meta."""
    lines = ClaudeLines()
    lines.prompt("context", isMeta=True)
    lines.prompt("from a peer", isMeta=True, origin={"kind": "peer"})
    turns = turns_at(lines.save(tmp_path))
    assert said_in(turns) == ["user: from a peer"]
    assert turns[0].synthetic


def test_a_prompt_that_was_taken_into_the_running_turn_is_shown(tmp_path: Path) -> None:
    """It lies in an attachment and has its own id."""
    lines = ClaudeLines()
    lines.prompt("Build")
    lines.add("attachment", attachment={"type": "queued_command", "prompt": "and test", "source_uuid": "q"})
    turns = turns_at(lines.save(tmp_path))
    assert said_in(turns) == ["user: Build", "user: and test"]
    assert turns[1].id == "q"


def test_attachments_of_a_prompt_are_not_lost(tmp_path: Path) -> None:
    """Images, documents and search results become parts; named ones stay names."""
    sources = [
        ("image", {"type": "base64", "media_type": "image/png", "data": "aWNv"}),
        ("image", {"type": "url", "url": "https://example.org/a.png"}),
        ("document", {"type": "text", "media_type": "text/plain", "data": "doc"}),
        ("document", {"type": "base64", "media_type": "application/pdf", "data": "eA"}),
    ]
    blocks: list[dict[str, object]] = [{"type": kind, "title": "T", "source": source} for kind, source in sources]
    blocks.append({"type": "search_result", "source": "https://example.org", "title": "S"})
    blocks.append({"type": "text", "text": "Look"})
    lines = ClaudeLines()
    lines.prompt(blocks)
    (turn,) = turns_at(lines.save(tmp_path))
    assert turn.parts == (
        Image("image/png", "aWNv"),
        Image("image/png", uri="https://example.org/a.png"),
        Resource("attachment:T", text="doc", mime_type="text/plain"),
        Resource("attachment:T", blob="eA", mime_type="application/pdf"),
        ResourceLink("https://example.org", "S"),
        Text("Look"),
    )


def test_a_call_without_an_outcome_is_unfinished(tmp_path: Path) -> None:
    """The core decides whether that still runs."""
    lines = ClaudeLines()
    lines.call("Bash", {"command": "sleep 99"})
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert (call.status, call.shell) == ("unfinished", None)


@pytest.mark.fault("T2")
def test_a_call_id_that_is_used_twice_names_two_calls(tmp_path: Path) -> None:
    """Each gets the outcome that follows it, and an id of its own."""
    lines = ClaudeLines()
    for name in ("a", "b"):
        lines.call("Read", {"file_path": f"/{name}"})
        lines.result(name.upper())
    found = calls_of(turns_at(lines.save(tmp_path)))
    assert [(call.id, call.content) for call in found] == [("toolu_1", (Text("A"),)), ("toolu_1~2", (Text("B"),))]


def test_a_failed_shell_command_has_its_exit_code(tmp_path: Path) -> None:
    """The tool stores it only in the error's text."""
    lines = ClaudeLines()
    lines.call("Bash", {"command": "false"})
    lines.result("Exit code 2\nno such file", error=True, toolUseResult="Error: Exit code 2\nno such file")
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert call.status == "failed"
    assert call.shell is not None
    assert (call.shell.output, call.shell.exit_code) == ("no such file", 2)


def test_the_output_takes_the_place_of_a_command_s_description(tmp_path: Path) -> None:
    """As in the tool itself; the input has the description still."""
    lines = ClaudeLines()
    arguments = {"command": "make", "description": "Build it"}
    lines.call("Bash", arguments)
    (running,) = calls_of(turns_at(lines.save(tmp_path)))
    lines.result("built")
    (done,) = calls_of(turns_at(lines.save(tmp_path)))
    assert (running.content, done.content, done.input) == ((Text("Build it"),), (), arguments)


def test_shell_output_has_both_streams(tmp_path: Path) -> None:
    """The structured result is complete where the text for the model is not."""
    lines = ClaudeLines()
    lines.call("Bash", {"command": "make"})
    lines.result("(Bash completed with no output)", toolUseResult={"stdout": "out\n", "stderr": "err"})
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert call.shell is not None
    assert call.shell.output == "out\nerr"


def test_a_structured_output_that_was_cut_is_not_preferred(tmp_path: Path) -> None:
    """The longer of the two is the whole one."""
    lines = ClaudeLines()
    lines.call("Bash", {"command": "cat log"})
    lines.result("one\ntwo\nthree", toolUseResult={"stdout": "(as above)", "stderr": ""})
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert call.shell is not None
    assert call.shell.output == "one\ntwo\nthree"


def test_found_tools_are_named(tmp_path: Path) -> None:
    """A search for tools answers with references to them."""
    lines = ClaudeLines()
    lines.call("ToolSearch", {"query": "web"})
    lines.result([{"type": "tool_reference", "tool_name": "WebFetch"}])
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert call.content == (Text("Tool: WebFetch"),)


def test_edits_are_shown_with_the_lines_around_them(tmp_path: Path) -> None:
    """The tool's own record of the change has them, and says where it is."""
    patch = [{"oldStart": 4, "newStart": 4, "lines": [" a", "-b", "+c", " d", "\\ No newline at end of file"]}]
    lines = ClaudeLines()
    lines.call("Edit", {"file_path": "x.py", "old_string": "b", "new_string": "c"})
    lines.result("ok", toolUseResult={"filePath": f"{CWD}/x.py", "structuredPatch": patch, "originalFile": "a\nb\nd"})
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert call.content == (Diff(f"{CWD}/x.py", "a\nc\nd\n", "a\nb\nd\n"),)
    assert call.locations == (Location(f"{CWD}/x.py", 5),)
    assert (call.title, call.kind) == ("Edit x.py", "edit")


def test_an_edit_that_makes_a_file_has_no_old_text(tmp_path: Path) -> None:
    """An insertion into a file that was there has an empty one."""
    patch = [{"oldStart": 0, "newStart": 1, "lines": ["+a"]}]
    for original, old in (("", None), ("b", "")):
        lines = ClaudeLines()
        lines.call("Edit", {"file_path": "/n", "old_string": "", "new_string": "a\n"})
        lines.result("ok", toolUseResult={"structuredPatch": patch, "originalFile": original})
        (call,) = calls_of(turns_at(lines.save(tmp_path)))
        assert call.content == (Diff("/n", "a\n", old),)


@pytest.mark.parametrize(
    ("name", "arguments", "diffs"),
    [
        ("Write", {"file_path": "/n", "content": "new"}, [Diff("/n", "new")]),
        ("Edit", {"file_path": "/n", "old_string": "", "new_string": "new"}, [Diff("/n", "new")]),
        (
            "MultiEdit",
            {
                "file_path": "/n",
                "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c"}],
            },
            [Diff("/n", "b", "a"), Diff("/n", "", "c")],
        ),
        ("NotebookEdit", {"notebook_path": "/n", "new_source": "x"}, [Diff("/n", "x", "")]),
        ("NotebookEdit", {"notebook_path": "/n", "new_source": "x", "edit_mode": "insert"}, [Diff("/n", "x")]),
        ("Write", {"file_path": "/n"}, []),
        ("Edit", {}, []),
    ],
)
def test_edits_without_a_record_show_their_input(
    tmp_path: Path, name: str, arguments: dict[str, object], diffs: list[Diff]
) -> None:
    """Copied histories have no structured results."""
    lines = ClaudeLines()
    lines.call(name, arguments)
    lines.result("ok")
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert list(call.content) == diffs


@pytest.mark.parametrize(
    ("name", "arguments", "title", "kind"),
    [
        (
            "Grep",
            {"pattern": "x", "-i": True, "output_mode": "count", "glob": "*.py"},
            'grep -i -c --include="*.py" "x"',
            "search",
        ),
        ("Glob", {"pattern": "*.py", "path": f"{CWD}/src"}, "Find `src` `*.py`", "search"),
        ("WebFetch", {"url": "https://example.org"}, "Fetch https://example.org", "fetch"),
        ("WebSearch", {"query": "q"}, 'Search "q"', "fetch"),
        ("Task", {"description": "Look", "prompt": "p"}, "Look", "think"),
        ("ExitPlanMode", {"plan": "# P"}, "Exited Plan Mode", "switch_mode"),
        ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Which?", "other"),
        ("mcp__stock__lookup", {"sku": 1}, "stock: lookup", "other"),
        ("Skill", {"skill": "pdf"}, "Load skill: pdf", "other"),
        ("BrandNew", {"a": 1}, "BrandNew", "other"),
        ("Bash", {"command": "a\nb"}, "a b", "execute"),
    ],
)
def test_tools_are_called_by_what_they_do(
    tmp_path: Path, name: str, arguments: dict[str, object], title: str, kind: str
) -> None:
    """One line each; an unknown tool keeps its name."""
    lines = ClaudeLines()
    lines.call(name, arguments)
    lines.result("ok")
    (call,) = calls_of(turns_at(lines.save(tmp_path)))
    assert (call.title, call.kind, call.input) == (title, kind, arguments)


def test_to_do_lists_are_plans(tmp_path: Path) -> None:
    """`TodoWrite` writes the whole list, the later tools one entry at a time."""
    lines = ClaudeLines()
    lines.call("TodoWrite", {"todos": [{"content": "a", "activeForm": "doing a", "status": "in_progress"}]}, call="t0")
    lines.call("TaskCreate", {"subject": "x"}, call="t1")
    lines.result("Task #1 created successfully: x", call="t1")
    lines.call("TaskUpdate", {"taskId": "1", "status": "completed"}, call="t2")
    lines.result("Updated", call="t2")
    lines.call("TaskUpdate", {"taskId": "1", "status": "deleted"}, call="t3")
    lines.result("no", call="t3", error=True)
    lines.call("TaskUpdate", {"taskId": "1", "status": "deleted"}, call="t4")
    lines.result("yes", call="t4")
    said = _said(lines, tmp_path)
    assert said == ["agent: (in_progress) doing a", "agent: (pending) x", "agent: (completed) x", "agent: "]


@pytest.mark.fault("S6")
def test_only_the_base_name_of_a_named_output_file_is_opened(tmp_path: Path) -> None:
    """A transcript cannot make us read elsewhere."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    lines = ClaudeLines()
    lines.call("Bash", {"command": "x"})
    text = f"<persisted-output>\nFull output saved to: {secret}\n\nPreview:\nhead\n</persisted-output>"
    lines.result(text, toolUseResult={"stdout": "", "persistedOutputPath": str(secret)})
    path = lines.save(tmp_path)
    (call,) = calls_of(turns_at(path))
    assert call.shell is not None
    assert "secret\n" not in call.shell.output
    assert "Preview:\nhead" in call.shell.output
    own = path.with_suffix("") / "tool-results" / "secret.txt"
    own.parent.mkdir(parents=True)
    own.write_text("whole\n", encoding="utf-8")
    (call,) = calls_of(turns_at(path))
    assert call.shell is not None
    assert call.shell.output == "whole\n"


def test_a_stored_picture_is_not_read_as_text(tmp_path: Path) -> None:
    """Tools store other things than text there, too."""
    lines = ClaudeLines()
    lines.call("mcp__stock__picture", {})
    lines.result("<persisted-output>\nsaved to: /x/a.png\n\nPreview</persisted-output>")
    path = lines.save(tmp_path)
    stored = path.with_suffix("") / "tool-results" / "a.png"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"\x89PNG")
    (call,) = calls_of(turns_at(path))
    assert call.content == (Text("saved to: /x/a.png\n\nPreview"),)


def _background_call(lines: ClaudeLines) -> None:
    lines.call("Agent", {"description": "Look", "prompt": "p"})
    lines.result("Async agent launched", toolUseResult={"status": "async_launched", "agentId": "a1"})


def _tell_as_user(lines: ClaudeLines, text: str) -> None:
    lines.prompt(text, origin={"kind": "task-notification"})


def _tell_as_attachment(lines: ClaudeLines, text: str) -> None:
    attachment = {"type": "queued_command", "prompt": text, "commandMode": "task-notification"}
    lines.add("attachment", attachment=attachment)


def _tell_in_the_queue(lines: ClaudeLines, text: str) -> None:
    lines.metadata("queue-operation", operation="enqueue", content=text)


@pytest.mark.parametrize("tell", [_tell_as_user, _tell_as_attachment, _tell_in_the_queue])
@pytest.mark.parametrize(("word", "status"), [("completed", "completed"), ("failed", "failed")])
def test_a_background_report_becomes_the_outcome(
    tmp_path: Path, tell: Callable[[ClaudeLines, str], None], word: str, status: str
) -> None:
    """Whichever kind of line brings it, and told only once."""
    lines = ClaudeLines()
    _background_call(lines)
    assert calls_of(turns_at(lines.save(tmp_path)))[0].status == "unfinished"
    tell(lines, _NOTE.format(call="toolu_1", status=word, result="Found it."))
    tell(lines, _NOTE.format(call="toolu_1", status=word, result="Found it."))
    turns = turns_at(lines.save(tmp_path))
    (call,) = calls_of(turns)
    assert (call.status, call.content) == (status, (Text("p"), Text("Found it.")))
    assert said_in(turns) == ["agent: {Look}"]


def test_a_report_without_its_call_is_a_turn_of_its_own(tmp_path: Path) -> None:
    """It is never a prompt."""
    lines = ClaudeLines()
    lines.prompt(_NOTE.format(call="gone", status="completed", result="Found it."))
    (turn,) = turns_at(lines.save(tmp_path))
    assert (turn.role, turn.synthetic, turn.parts) == ("agent", True, (Text("Found it."),))


@pytest.mark.fault("T2")
def test_an_agent_cannot_contain_itself(tmp_path: Path) -> None:
    """A side file that names the agent's own call does not recurse for ever."""
    lines = ClaudeLines()
    lines.call("Agent", {"prompt": "p"})
    path = lines.save(tmp_path)
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a1.jsonl").write_bytes(lines.data())
    (agents / "agent-a1.meta.json").write_text('{"toolUseId":"toolu_1","agentType":"Explore"}', encoding="utf-8")
    (run,) = calls_of(turns_at(path))[0].subagents
    assert (run.id, run.name) == ("a1", "Explore")
    (inner,) = calls_of(list(run.turns()))
    assert inner.subagents == ()


def test_two_inline_agents_with_one_prompt_go_to_two_calls(tmp_path: Path) -> None:
    """Up to 2.0.14 only the prompt and the order link them."""
    lines = ClaudeLines(version="1.0.128")
    for number in ("1", "2"):
        call = lines.call("Task", {"prompt": "Look"}, call=f"t{number}")
        lines.prompt("Look", parent=None, isSidechain=True)
        lines.answer(f"Found {number}.", isSidechain=True)
        lines.result(f"Found {number}.", call=f"t{number}", parent=call)
    turns = turns_at(lines.save(tmp_path))
    assert said_in(turns) == ["agent: {Task}", "agent: {Task}"]
    inner = [said_in(list(run.turns())) for call in calls_of(turns) for run in call.subagents]
    assert inner == [["user: Look", "agent: Found 1."], ["user: Look", "agent: Found 2."]]


@pytest.mark.fault("F4")
def test_a_record_over_the_limit_leaves_a_placeholder(tmp_path: Path) -> None:
    """Its neighbours are shown, and what hung on it still is."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("x" * (LINE_LIMIT + 1))
    lines.prompt("Two")
    transcript = open_at(lines.save(tmp_path))
    said = said_in(list(transcript.turns()))
    assert said == ["user: One", "agent: [record too large to show: 17 MB]", "user: Two"]
    assert [problem.kind for problem in transcript.problems] == ["too-large"]
    transcript.close()


@pytest.mark.fault("F8")
def test_unknown_lines_and_blocks_are_counted_and_hide_nothing(tmp_path: Path) -> None:
    """Every release brings new ones."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.add("hologram")
    lines.add("hologram")
    lines.answer({"type": "mystery"}, "1")
    transcript = open_at(lines.save(tmp_path))
    assert said_in(list(transcript.turns())) == ["user: One", "agent: 1"]
    assert [(problem.detail, problem.line) for problem in transcript.problems] == [
        ("type hologram (x2)", 2),
        ("block mystery", 4),
    ]
    transcript.close()


def test_interrupts_are_notices(tmp_path: Path) -> None:
    """They are shown, and are no words of the user."""
    lines = ClaudeLines()
    lines.prompt([{"type": "text", "text": "[Request interrupted by user]"}])
    (turn,) = turns_at(lines.save(tmp_path))
    assert turn.parts == (Notice("[Request interrupted by user]"),)


def test_usage_is_that_of_the_last_answer(tmp_path: Path) -> None:
    """Tokens in the context after it, and the cost as last recorded."""
    lines = ClaudeLines()
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "output_tokens": 300}
    lines.add("assistant", message={"id": "m", "content": [{"type": "text", "text": "1"}], "usage": usage})
    lines.metadata("cost-state", totalCostUSD=0.5)
    transcript = open_at(lines.save(tmp_path))
    list(transcript.turns())
    assert transcript.usage is not None
    assert (transcript.usage.used, transcript.usage.cost) == (321, 0.5)
    transcript.close()


def test_results_far_from_their_calls_are_read_whatever_lies_between(tmp_path: Path) -> None:
    """Lines are read ahead; results in another order than their calls, and larger than what is read ahead, are too."""
    names = [f"toolu_{number}" for number in range(8)]
    lines = ClaudeLines()
    lines.prompt("Look")
    for name in names:
        lines.call("Read", {"file_path": f"{CWD}/{name}"}, name, group="m1")
    texts = {name: name * (20_000 if number % 3 == 0 else 3_000) for number, name in enumerate(names)}
    for name in reversed(names):
        lines.result(texts[name], name)
    lines.answer("Done.", group="m2")
    turns = turns_at(lines.save(tmp_path))
    assert {call.id: call.content for call in calls_of(turns)} == {name: (Text(texts[name]),) for name in names}
    assert said_in(turns)[-1] == "agent: Done."
