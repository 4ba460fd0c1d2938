"""The Qwen Code adapter, rule by rule."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_adapters.qwen_code import QwenCode
from acp_history_adapters.qwen_code.places import lies_at_home
from acp_history_bridge.adapter import RESCAN, Affected, Command, Known, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.jsonl import LINE_LIMIT
from acp_history_bridge.turns import (
    Compaction,
    Diff,
    Image,
    Notice,
    Plan,
    PlanEntry,
    Resource,
    ResourceLink,
    ShellResult,
    Text,
    Thought,
    ToolCall,
    Turn,
    Usage,
)
from tests.builders.qwen_code import (
    CWD,
    SESSION,
    SLUG,
    Lines,
    call,
    text,
    turns_of,
    unit_of,
    write_agent,
    write_document,
)
from tests.conftest import environment_at

HOME = Path("/home/me")
ROOT = HOME / ".qwen"
PROJECT = f"projects/{SLUG}"


def record_of(unit: Unit) -> SessionRecord:
    """What a list shows of a unit."""
    (record,) = QwenCode().inspect(unit).records
    return record


def call_of(turns: list[Turn]) -> ToolCall:
    """The one tool call."""
    (found,) = [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]
    return found


def texts_of(turns: list[Turn]) -> list[str]:
    """All texts."""
    return [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]


# Places


def test_the_environment_names_stores_beside_the_default() -> None:
    """What was said before the variable was set lies in the default place."""
    adapter = QwenCode()
    assert [store.root for store in adapter.stores(environment_at(HOME))] == [ROOT]
    stores = adapter.stores(environment_at(HOME, QWEN_RUNTIME_DIR="~/run", QWEN_HOME="/srv/qwen"))
    assert [store.root for store in stores] == [HOME / "run", Path("/srv/qwen"), ROOT]
    assert [store.root for store in adapter.stores(environment_at(HOME, QWEN_HOME=str(ROOT)))] == [ROOT]
    assert [store.root for store in adapter.stores(environment_at(HOME, QWEN_HOME="here"))] == [ROOT]


@pytest.mark.parametrize(
    ("path", "affected"),
    [
        (f"{PROJECT}/chats/{SESSION}.jsonl", f"{PROJECT}/chats/{SESSION}.jsonl"),
        (f"{PROJECT}/chats/archive/{SESSION}.jsonl", f"{PROJECT}/chats/archive/{SESSION}.jsonl"),
        (f"{PROJECT}/subagents/{SESSION}/agent-1.jsonl", f"{PROJECT}/chats/{SESSION}.jsonl"),
        (
            "tmp/abc/chats/session-2025-11-12T10-00-3de560b3.json",
            "tmp/abc/chats/session-2025-11-12T10-00-3de560b3.json",
        ),
        (f"{PROJECT}/chats/{SESSION}.runtime.json", None),
        (f"{PROJECT}/chats/notes.jsonl", None),
        ("tmp/abc/logs.json", None),
        ("settings.json", None),
        (f"{PROJECT}/chats", RESCAN),
        (PROJECT, RESCAN),
        ("", RESCAN),
    ],
)
def test_a_changed_path_concerns_its_transcript(path: str, affected: str | Affected | None) -> None:
    """Side files of a terminal run, logs and settings concern none."""
    (store,) = QwenCode().stores(environment_at(HOME))
    expected = Affected((ROOT / affected,)) if isinstance(affected, str) else affected or Affected()
    assert QwenCode().affected(store, ROOT / path) == expected


def test_only_transcripts_are_units(tmp_path: Path) -> None:
    """Also archived ones; no sub-agents, no links."""
    lines = Lines(tmp_path)
    archived = Lines(tmp_path, "1" * 36, folder="chats/archive")
    write_agent(tmp_path, "1", "call_1")
    document = write_document(tmp_path)
    document.with_name("notes.json").touch()
    (lines.path.parent / ("2" * 36 + ".jsonl")).symlink_to(lines.path)
    (store,) = QwenCode().stores(environment_at(tmp_path))
    assert {unit.path for unit in QwenCode().discover(store).units} == {lines.path, archived.path, document}


@pytest.mark.parametrize(
    ("cwd", "slug", "same"),
    [
        ("/home/me/shop", "-home-me-shop", True),
        ("/home/me/Großes Projekt (alt)", "-home-me-Gro-es-Projekt--alt-", True),
        ("/home/me/🚀", "-home-me---", True),
        ("C:\\Users\\Me", "c--users-me", True),
        ("/home/me/shop", "-home-me-blog", False),
    ],
)
def test_a_folder_is_named_after_the_directory(cwd: str, slug: str, same: object) -> None:
    """Each UTF-16 unit that is no ASCII letter or digit is a dash."""
    assert lies_at_home(slug, cwd) is same


# What a list shows


def test_a_record_tells_what_the_transcript_knows(tmp_path: Path) -> None:
    """Directory, times, branch, model, version; the time is that of the last message."""
    lines = Lines(tmp_path)
    lines.user("Hello", gitBranch="main")
    lines.answer("Hi", gitBranch="main")
    lines.system("ui_telemetry")
    record = record_of(lines.unit())
    assert (record.native_id, record.title, record.cwd, record.origin) == (SESSION, "Hello", CWD, SLUG)
    assert (record.branch, record.model, record.tool_version) == ("main", "qwen3", "0.24.4")
    assert record.updated_at.isoformat() == "2026-11-03T08:00:02+00:00"
    assert record.created_at is not None
    assert record.created_at.isoformat() == "2026-11-03T08:00:01+00:00"
    assert QwenCode().resume_command(record) == Command(("qwen", "--resume", SESSION), CWD)
    assert not record.displaced
    assert not record.archived


def test_a_session_in_anothers_folder_or_the_archive_says_so(tmp_path: Path) -> None:
    """Two directories can share a folder, so the slug proves nothing of the directory."""
    other = Lines(tmp_path, slug="-elsewhere", folder="chats/archive")
    other.user("Hello")
    record = record_of(other.unit())
    assert (record.cwd, record.displaced, record.archived, record.origin) == (CWD, True, True, "-elsewhere")


def test_a_name_given_by_the_user_is_the_title(tmp_path: Path) -> None:
    """The last one, wherever the tool looks for it: near the end, then near the start."""
    lines = Lines(tmp_path)
    lines.user("Hello")
    lines.system("custom_title", customTitle="First")
    assert record_of(lines.unit()).title == "First"
    for _ in range(40):
        lines.user("x" * 5000)
    assert record_of(lines.unit()).title == "First"
    lines.system("custom_title", customTitle="Second")
    assert record_of(lines.unit()).title == "Second"


def test_what_the_tool_says_to_itself_is_no_title(tmp_path: Path) -> None:
    """Nor is a notification; a goal stands in for a prompt, and so does a first command."""
    lines = Lines(tmp_path)
    lines.system("slash_command", phase="invocation", rawCommand="/help")
    assert record_of(lines.unit()).title == "/help"
    goals = Lines(tmp_path, "1" * 36)
    goals.system("goal_state", snapshot={"goal": {"objective": "ship it"}})
    goals.user("Continue working on the active Goal.", subtype="goal_runtime")
    goals.user("<task-notification>", subtype="notification", systemPayload={"displayText": "Done."})
    assert record_of(goals.unit()).title == "ship it"
    goals.user("Now me")
    assert record_of(goals.unit()).title == "Now me"


def test_a_prompt_behind_the_first_window_is_found(tmp_path: Path) -> None:
    """Reading goes on as far as it must."""
    lines = Lines(tmp_path)
    for _ in range(30):
        lines.system("ui_telemetry", uiEvent={"x": "y" * 5000})
    lines.user("Far behind")
    assert record_of(lines.unit()).title == "Far behind"


def test_a_fork_names_its_source(tmp_path: Path) -> None:
    """Each copied record does."""
    lines = Lines(tmp_path)
    lines.user("Hello", forkedFrom={"sessionId": "1" * 36, "messageUuid": "m"})
    record = record_of(lines.unit())
    assert (record.kind, record.parent, record.listed) == ("fork", "1" * 36, True)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 100, b"not JSON\n", b"[1]\n"])
@pytest.mark.fault("F9")
def test_a_file_without_records_is_not_listed(tmp_path: Path, content: bytes) -> None:
    """And can be opened all the same."""
    lines = Lines(tmp_path)
    lines.raw(content)
    assert not record_of(lines.unit()).listed
    assert lines.turns() == []


@pytest.mark.fault("T1")
def test_the_time_of_a_session_is_never_later_than_that_of_its_file(tmp_path: Path) -> None:
    """Lists stop early because of this."""
    lines = Lines(tmp_path)
    lines.user("Hello")
    os.utime(lines.path, ns=(0, 10**18))
    assert record_of(lines.unit()).updated_at.timestamp() == 10**9


@pytest.mark.fault("Z3")
def test_reading_on_gives_what_reading_anew_gives(tmp_path: Path) -> None:
    """With state that was saved behind the first window, before and after a prompt was found."""
    lines = Lines(tmp_path)
    known: Known | None = None
    for number in range(80):
        if number == 50:
            lines.user("A prompt, late")
        lines.system("custom_title" if number == 60 else "ui_telemetry", customTitle="T", padding="x" * 4000)
        fresh = QwenCode().inspect(lines.unit())
        continued = QwenCode().inspect(lines.unit(), known)
        assert (continued.records, continued.offset) == (fresh.records, fresh.offset)
        known = Known(continued.offset, continued.state, continued.records)
    assert known is not None
    assert known.state["prompt"] == "A prompt, late"


# The chain


def test_only_what_leads_to_the_last_record_is_shown(tmp_path: Path) -> None:
    """A rewind as the last act, one in the middle, and one to the very beginning."""
    lines = Lines(tmp_path)
    lines.user("one")
    kept = lines.answer("two")
    lines.user("gone")
    lines.answer("gone, too")
    lines.system("rewind", kept)
    assert texts_of(lines.turns()) == ["one", "two"]
    lines.user("three")
    assert texts_of(lines.turns()) == ["one", "two", "three"]
    lines.last = None
    lines.system("rewind")
    lines.user("anew")
    transcript = QwenCode().open(lines.unit(), record_of(lines.unit()))
    assert texts_of(list(transcript.turns())) == ["anew"]
    assert transcript.left_out == 5


@pytest.mark.fault("T2")
def test_a_damaged_chain_loses_nothing(tmp_path: Path) -> None:
    """A parent that is missing, that comes later, or that is the record itself; a uuid that is used twice."""
    lines = Lines(tmp_path)
    lines.user("one")
    lines.last = "never written"
    lines.answer("two")
    lines.last = f"u{lines.count + 1}"
    lines.user("three")
    lines.last = f"u{lines.count + 2}"
    lines.answer("four")
    lines.answer("five", uuid="u1")
    lines.last = None
    lines.user("six")
    turns = lines.turns()
    assert texts_of(turns) == ["one", "two", "three", "four", "five", "six"]
    assert len({turn.id for turn in turns}) == 6


@pytest.mark.fault("F8")
def test_unknown_records_are_reported_and_stay_in_the_chain(tmp_path: Path) -> None:
    """A subtype of a later version; user text of an unknown subtype is shown."""
    lines = Lines(tmp_path)
    lines.user("one")
    lines.system("hologram")
    lines.record("video")
    lines.user("two", subtype="mid_turn_user_message")
    transcript = QwenCode().open(lines.unit(), record_of(lines.unit()))
    assert texts_of(list(transcript.turns())) == ["one", "two"]
    assert [(problem.kind, problem.detail) for problem in transcript.problems] == [
        ("unknown-record", "system/hologram"),
        ("unknown-record", "video/"),
    ]


# What was said


def test_a_prompt_is_text_links_and_files(tmp_path: Path) -> None:
    """What the tool shows in place of the message counts."""
    lines = Lines(tmp_path)
    link = {"name": "cart.py", "uri": "file:///home/me/shop/cart.py"}
    lines.user("expanded", systemPayload={"displayText": "typed", "resourceLinks": [link]})
    lines.user(
        "Explain @a b.md",
        "\n--- Content from referenced files ---",
        "\nContent from a b.md:\n",
        "one\nContent from nothing",
        "\nContent from @/x/c.md:\n",
        "two",
        "\n--- End of content ---",
    )
    lines.user({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, {"fileData": {"fileUri": "gs://x"}})
    assert [turn.parts for turn in lines.turns()] == [
        (Text("typed"), ResourceLink("file:///home/me/shop/cart.py", "cart.py")),
        (
            Text("Explain @a b.md"),
            Resource("file:///home/me/shop/a%20b.md", text="one\nContent from nothing"),
            Resource("file:///x/c.md", text="two"),
        ),
        (Image("image/png", "QUJD"), ResourceLink("gs://x", "gs://x")),
    ]


def test_an_answer_is_thought_text_and_calls_in_order(tmp_path: Path) -> None:
    """With the model, and the numbers of the model's context."""
    lines = Lines(tmp_path)
    usage = {"totalTokenCount": 120}
    lines.answer(text("Hm.", thought=True), "Hello", text(""), usageMetadata=usage, contextWindowSize=1000)
    transcript = QwenCode().open(lines.unit(), record_of(lines.unit()))
    (turn,) = transcript.turns()
    assert (turn.parts, turn.model, turn.role) == ((Thought("Hm."), Text("Hello")), "qwen3", "agent")
    assert transcript.usage == Usage(120, 1000)


def test_what_happens_beside_the_conversation_is_shown_but_not_counted(tmp_path: Path) -> None:
    """Notifications, commands' output, compressions, failed requests; hidden commands and goals' prompts are not."""
    lines = Lines(tmp_path)
    lines.user("<task-notification>", subtype="notification", systemPayload={"displayText": "Agent completed."})
    lines.system("slash_command", phase="invocation", rawCommand="/about", hiddenInvocation=True)
    lines.system("slash_command", phase="invocation", rawCommand="/rename x")
    items = [{"type": "info", "text": "Renamed\nto x"}, {"type": "about", "text": "no"}]
    lines.system("slash_command", phase="result", rawCommand="/rename x", outputHistoryItems=items)
    lines.user("Continue working", subtype="goal_runtime")
    compressed = lines.system("chat_compression", compressedHistory=[{"role": "user", "parts": [text("In short")]}])
    lines.system("chat_compression", compressedHistory=[])
    lines.system("ui_telemetry", uiEvent={"event.name": "qwen-code.api_error", "error_message": "400 refused"})
    turns = lines.turns()
    assert [(turn.role, turn.synthetic, turn.parts) for turn in turns] == [
        ("user", True, (Text("Agent completed."),)),
        ("user", False, (Text("/rename x"),)),
        ("agent", True, (Text("Renamed  \nto x"),)),
        ("agent", True, (Compaction(compressed, "In short"),)),
        ("agent", True, (Notice("API error: 400 refused"),)),
    ]


# Tools


def test_a_question_to_the_user_is_the_title(tmp_path: Path) -> None:
    """All of them, when there are several; without any the call has a name all the same."""
    lines = Lines(tmp_path)
    lines.answer(call("ask_user_question", questions=[{"question": "Which colour?"}, {"question": "Sure?"}]))
    assert call_of(lines.turns()).title == "Ask: Which colour? / Sure?"
    lines.path.write_bytes(b"")
    lines.answer(call("ask_user_question", questions=7))
    assert call_of(lines.turns()).title == "Ask"


@pytest.mark.parametrize(
    ("status", "response", "shown"),
    [
        ("success", {"output": "ok"}, "completed"),
        ("error", {"error": "no"}, "failed"),
        ("cancelled", {"error": "[Operation Cancelled]"}, "failed"),
        (None, {"output": "ok"}, "completed"),
        (None, {"error": "no"}, "failed"),
    ],
)
def test_a_call_has_the_status_of_its_outcome(
    tmp_path: Path, status: str | None, response: dict[str, str], shown: str
) -> None:
    """Results of sub-agents' calls have none, so their response tells."""
    lines = Lines(tmp_path)
    lines.answer(call("mcp__stock__level", sku="tea"))
    assert call_of(lines.turns()).status == "unfinished"
    lines.result(response, status=status)
    made = call_of(lines.turns())
    assert (made.status, made.title, made.kind) == (shown, "stock: level", "other")
    assert made.content == (Text(next(iter(response.values()))),)


@pytest.mark.fault("T2")
def test_ids_that_a_model_server_counts_anew_do_not_mix_up_calls(tmp_path: Path) -> None:
    """Each call has the outcome before the next call of that id, and an id of its own."""
    lines = Lines(tmp_path)
    for output in ("first", "second"):
        lines.answer(call("glob", pattern="*"))
        lines.result({"output": output})
    lines.answer(call("glob", pattern="*"))
    calls = [part for turn in lines.turns() for part in turn.parts if isinstance(part, ToolCall)]
    assert [(made.id, made.content) for made in calls] == [
        ("call_1", (Text("first"),)),
        ("call_1#2", (Text("second"),)),
        ("call_1#3", ()),
    ]


def test_a_command_is_a_terminal_in_all_forms_of_its_outcome(tmp_path: Path) -> None:
    """The structured one, the text that the model is told, and anything else."""
    told = "Command: x\nDirectory: (root)\nOutput: {}\nError: {}\nExit Code: {}\nSignal: (none)"
    structured = {"type": "shell_result", "output": "3 files", "exitCode": 3, "directory": "/srv"}
    for response, display, expected in (
        ({"output": "wrapped"}, structured, ShellResult("3 files", 3, "/srv")),
        ({"output": told.format("(empty)", "(none)", 0)}, "", ShellResult("", 0, CWD)),
        ({"error": told.format("a\nb", "bad", 2)}, "", ShellResult("a\nb\nbad", 2, CWD)),
        ({"error": told.format("", "x", "(none)")}, "", ShellResult("\nx", None, CWD)),
        ({"output": "plain"}, "other", ShellResult("plain", None, CWD)),
        ({}, "shown", ShellResult("shown", None, CWD)),
    ):
        lines = Lines(tmp_path)
        lines.path.write_bytes(b"")
        lines.answer(call("run_shell_command", command="ls"))
        lines.result(response, resultDisplay=display)
        made = call_of(lines.turns())
        assert (made.kind, made.title, made.content, made.shell) == ("execute", "ls", (), expected)


def test_a_shortened_output_is_read_in_full_from_the_tools_own_directory(tmp_path: Path) -> None:
    """Only the file's name counts, so no transcript can make us open something else."""
    outputs = tmp_path / ".qwen" / "tmp" / hashlib.sha256(CWD.encode()).hexdigest()
    outputs.mkdir(parents=True)
    (outputs / "run_shell_command_0a.output").write_text("all of it", encoding="utf-8")
    told = "Command: ls\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 0\nSignal: (none)"
    (outputs / "run_shell_command_0b.output").write_text(told, encoding="utf-8")
    (outputs / "secret").write_text("secret", encoding="utf-8")
    for path, shown in (
        ("/elsewhere/run_shell_command_0a.output", "all of it"),
        ("run_shell_command_0b.output", "a\nb"),
        ("/x/secret", "a piece"),
        (5, "a piece"),
    ):
        lines = Lines(tmp_path)
        lines.path.write_bytes(b"")
        lines.answer(call("run_shell_command", command="ls"))
        lines.result({}, resultDisplay={"type": "shell_result", "output": "a piece", "outputFiles": [path]})
        assert call_of(lines.turns()).shell == ShellResult(shown, None, CWD)


@pytest.mark.parametrize(
    ("tool", "display", "diff"),
    [
        ("edit", {"originalContent": "xa", "newContent": "xb"}, Diff(f"{CWD}/a.py", "xb", "xa")),
        ("write_file", {"originalContent": "", "newContent": "new"}, Diff(f"{CWD}/a.py", "new")),
        ("edit", "", Diff(f"{CWD}/a.py", "b", "a")),
        ("write_file", "", Diff(f"{CWD}/a.py", "whole")),
    ],
)
def test_an_edit_is_a_diff_of_whole_files_where_they_are_stored(
    tmp_path: Path, tool: str, display: object, diff: Diff
) -> None:
    """Else of the texts in the call; a failed edit is its message."""
    lines = Lines(tmp_path)
    lines.answer(call(tool, file_path="a.py", old_string="a", new_string="b", content="whole"))
    lines.result({"output": "done"}, resultDisplay=display)
    made = call_of(lines.turns())
    assert made.content == (diff, Text("done"))
    assert [location.path for location in made.locations] == [f"{CWD}/a.py"]
    lines.answer(call(tool, "call_2", file_path="a.py"))
    lines.result({"error": "not read yet"}, "call_2", "error")
    failed = lines.turns()[-1].parts[0]
    assert isinstance(failed, ToolCall)
    assert (failed.status, failed.content) == ("failed", (Text("not read yet"),))


def test_a_todo_list_is_a_plan(tmp_path: Path) -> None:
    """Unless it failed."""
    lines = Lines(tmp_path)
    lines.answer(call("todo_write", todos=[{"id": "1", "content": "Read", "status": "completed"}, "x"]))
    lines.result({"output": "ok"})
    assert [turn.parts for turn in lines.turns()] == [(Plan((PlanEntry("Read", "completed"),)),)]
    lines.answer(call("todo_write", "call_2", todos=[]))
    assert call_of(lines.turns()).name == "todo_write"


@pytest.mark.fault("T2")
def test_sub_agents_nest_and_end(tmp_path: Path) -> None:
    """An agent inside an agent; one that names itself is left out; a fork shows those of its source."""
    lines = Lines(tmp_path)
    lines.user("Go", forkedFrom={"sessionId": "1" * 36})
    lines.answer(call("agent", "call_1"), call("agent", "call_9"), call("task", "call_5"))
    outer = write_agent(tmp_path, "outer", "call_1")
    outer.user("Outer prompt")
    outer.answer(call("agent", "call_2"), call("agent", "call_1"))
    write_agent(tmp_path, "inner", "call_2", agentType="tester").user("Inner prompt")
    write_agent(tmp_path, "copied", "call_5", session="1" * 36).user("Copied prompt")
    first, second, third = (part for part in lines.turns()[-1].parts if isinstance(part, ToolCall))
    assert second.subagents == ()
    assert texts_of(list(third.subagents[0].turns())) == ["Copied prompt"]
    turns = list(first.subagents[0].turns())
    assert texts_of(turns) == ["Outer prompt"]
    nested, itself = (part for part in turns[-1].parts if isinstance(part, ToolCall))
    assert nested.subagents[0].name == "tester"
    assert texts_of(list(nested.subagents[0].turns())) == ["Inner prompt"]
    assert itself.subagents == ()


@pytest.mark.fault("S4")
def test_a_fork_cannot_name_a_directory_elsewhere(tmp_path: Path) -> None:
    """Ids from a transcript are joined to paths only when they look like ids."""
    lines = Lines(tmp_path)
    lines.user("Go", forkedFrom={"sessionId": "../subagents"})
    lines.answer(call("agent", "call_5"))
    write_agent(tmp_path, "x", "call_5", session="../subagents")
    assert call_of(lines.turns()).subagents == ()


# While it is written, and damage


def test_a_conversation_is_followed(tmp_path: Path) -> None:
    """New records, a call again when its outcome arrives, and a rewritten file without repetitions."""
    lines = Lines(tmp_path)
    lines.user("Go")
    transcript = QwenCode().open(lines.unit(), record_of(lines.unit()))
    assert texts_of(list(transcript.turns())) == ["Go"]
    assert list(transcript.turns()) == []
    place = lines.answer("Looking", call("glob", "call_1"), call("glob", "call_2"))
    assert [type(part) for turn in transcript.turns() for part in turn.parts] == [Text, ToolCall, ToolCall]
    lines.result({"output": "found"}, "call_2")
    lines.answer("Done, in many words")
    again, done = transcript.turns()
    assert again.id == place
    assert [(part.id, part.status) for part in again.parts if isinstance(part, ToolCall)] == [("call_2", "completed")]
    assert texts_of([done]) == ["Done, in many words"]
    kept = lines.path.read_bytes().splitlines(keepends=True)
    lines.path.write_bytes(b"".join(kept[:-1]))
    lines.last = "u3"
    lines.answer("Rewritten", uuid="other")
    assert texts_of(list(transcript.turns())) == ["Rewritten"]
    assert transcript.left_out == 0
    transcript.close()
    transcript.close()


@pytest.mark.fault("F1", "F2")
def test_a_transcript_cut_at_any_byte_shows_what_is_whole(tmp_path: Path) -> None:
    """The rest waits for its writer, also inside a character; then nothing is missing and nothing twice."""
    lines = Lines(tmp_path)
    lines.user("eins")
    start = lines.path.stat().st_size
    lines.answer("zwei … 👩‍💻")
    lines.user("drei")
    whole = lines.path.read_bytes()
    for length in range(start, len(whole)):
        lines.path.write_bytes(whole[:length])
        unit = lines.unit()
        assert record_of(unit).title == "eins"
        transcript = QwenCode().open(unit, record_of(unit))
        before = texts_of(list(transcript.turns()))
        lines.path.write_bytes(whole)
        assert before + texts_of(list(transcript.turns())) == ["eins", "zwei … 👩‍💻", "drei"]
        assert transcript.problems == ()
        transcript.close()


@pytest.mark.fault("F2", "F3", "F4")
def test_damaged_and_too_large_lines_cost_only_themselves(tmp_path: Path) -> None:
    """A placeholder stands where a record was too large; neighbours are shown."""
    lines = Lines(tmp_path)
    lines.user("one")
    lines.raw(b'{"uuid": "x", \xff\n\n\x00\x00\n')
    lines.user("x" * (LINE_LIMIT + 1))
    lines.user("two")
    unit = lines.unit()
    transcript = QwenCode().open(unit, record_of(unit))
    assert texts_of(list(transcript.turns())) == ["one", "[record too large to show: 16 MB]", "two"]
    assert [problem.kind for problem in transcript.problems] == ["bad-line", "bad-line", "too-large"]
    transcript.close()


@pytest.mark.fault("R1")
def test_a_transcript_that_is_gone_cannot_be_opened(tmp_path: Path) -> None:
    """And keeps what is known of it."""
    lines = Lines(tmp_path)
    lines.user("Hello")
    document = write_document(tmp_path)
    for unit in (lines.unit(), unit_of(tmp_path, document)):
        record = record_of(unit)
        unit.path.unlink()
        with pytest.raises(TranscriptError):
            QwenCode().open(unit, record)
        assert not QwenCode().inspect(unit).complete


# Documents of 0.1


def test_a_document_holds_messages_thoughts_and_calls(tmp_path: Path) -> None:
    """In the shape that Gemini CLI had then; a longer one later gives only what is new."""
    messages: list[Mapping[str, object]] = [
        {"id": "1", "type": "user", "timestamp": "2025-11-12T10:00:00Z", "content": "Hello"},
        {
            "id": "2",
            "type": "qwen",
            "content": [text("Hi"), "there"],
            "thoughts": [{"subject": "Greeting", "description": "Be kind."}],
            "tokens": {"total": 9},
            "model": "qwen3",
            "toolCalls": [
                {
                    "id": "c",
                    "name": "glob",
                    "args": {"pattern": "*"},
                    "status": "success",
                    "result": [{"functionResponse": {"id": "c", "response": {"output": "x"}}}],
                }
            ],
        },
        {"id": "1", "type": "info", "content": "Cancelled."},
    ]
    unit = unit_of(tmp_path, write_document(tmp_path, *messages[:1]))
    record = record_of(unit)
    assert (record.title, record.message_count, record.cwd_digest) == ("Hello", 1, "sha256:" + "ab" * 32)
    transcript = QwenCode().open(unit, record)
    assert texts_of(list(transcript.turns())) == ["Hello"]
    write_document(tmp_path, *messages)
    answer, notice = transcript.turns()
    assert answer.parts[:3] == (Thought("Greeting\n\nBe kind."), Text("Hi"), Text("there"))
    made = answer.parts[3]
    assert isinstance(made, ToolCall)
    assert (made.status, made.content) == ("completed", (Text("x"),))
    assert (notice.id, notice.parts) == ("1#2", (Notice("Cancelled."),))
    assert transcript.usage == Usage(9)


@pytest.mark.fault("F1")
def test_a_document_that_is_being_written_keeps_what_is_known(tmp_path: Path) -> None:
    """It is rewritten as a whole."""
    path = write_document(tmp_path, {"id": "1", "type": "user", "content": "Hello"})
    record = record_of(unit_of(tmp_path, path))
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        unit = unit_of(tmp_path, path)
        inspection = QwenCode().inspect(unit)
        assert (inspection.complete, inspection.records) == (False, ())
        assert list(QwenCode().open(unit, record).turns()) == []


# Hostile content

WORDS = st.sampled_from(
    [
        *("user", "assistant", "tool_result", "system", "slash_command", "chat_compression", "rewind", "ui_telemetry"),
        *(
            "custom_title",
            "goal_state",
            "notification",
            "qwen",
            "info",
            "u1",
            "u2",
            "call_1",
            "",
            "\ud800",
            "invocation",
        ),
        *("edit", "run_shell_command", "agent", "todo_write", "read_file", "mcp__", "shell_result", "success"),
        "\n--- Content from referenced files ---\nContent from x:\n",
    ]
)
TOP = (
    *("uuid", "parentUuid", "type", "subtype", "timestamp", "cwd", "message", "systemPayload", "toolCallResult"),
    *("forkedFrom", "usageMetadata", "contextWindowSize", "model", "content", "toolCalls", "thoughts", "tokens", "id"),
)
DEEP = (
    *("parts", "text", "thought", "functionCall", "functionResponse", "id", "name", "args", "response", "output"),
    *("error", "status", "resultDisplay", "type", "exitCode", "outputFiles", "file_path", "todos", "limit", "offset"),
    *("displayText", "resourceLinks", "uri", "phase", "rawCommand", "outputHistoryItems", "compressedHistory"),
    *("customTitle", "snapshot", "goal", "objective", "uiEvent", "event.name", "inlineData", "fileData", "data"),
    *("sessionId", "total", "totalTokenCount", "result", "originalContent", "newContent", "subject"),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(DEEP), inner, max_size=4),
    max_leaves=6,
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(TOP), VALUES, max_size=8), max_size=5)


@given(RECORDS)
@pytest.mark.fault("F8")
def test_any_field_can_have_any_type(records: list[dict[str, object]]) -> None:
    """Hostile content is never an exception, in a list or in a replay, in both forms of a transcript."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        lines = Lines(home)
        lines.raw(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        document = write_document(home, *records)
        for unit in (lines.unit(), unit_of(home, document)):
            assert QwenCode().inspect(unit).records
            for turn in turns_of(unit):
                assert turn.parts
