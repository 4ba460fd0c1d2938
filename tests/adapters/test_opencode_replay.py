"""How opencode's messages become turns, at once and while they are written."""

import base64
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_adapters.opencode import Opencode
from acp_history_adapters.opencode.database import DatabaseReader
from acp_history_adapters.opencode.metadata import session_record
from acp_history_adapters.opencode.replay import SessionTranscript
from acp_history_adapters.opencode.storage import Head, Message, MessagePart
from acp_history_bridge.adapter import Problem, Transcript
from acp_history_bridge.timestamps import from_ns
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
    ShellResult,
    Text,
    Thought,
    ToolCall,
    Turn,
    Usage,
)
from acp_history_bridge.values import JsonMap
from tests.builders.opencode import Database, Json, text_part, tool_part_of, turns_of, unit_of, write_json, write_tree

CWD = "/home/me/shop"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with one session."""
    with Database(tmp_path) as made:
        made.session()
        yield made


def opened(database: Database) -> Transcript:
    """The first session, opened."""
    unit = database.unit()
    return Opencode().open(unit, Opencode().inspect(unit).records[0])


def parts_of(database: Database, *parts: Json, role: str = "assistant", error: object = None) -> tuple[Part, ...]:
    """What a message with these parts is replayed as."""
    database.message(role, *parts, error=error)
    return tuple(part for turn in turns_of(database.unit()) for part in turn.parts)


def call_of(database: Database, part: Json) -> ToolCall:
    """The tool call that a part is replayed as."""
    (call,) = parts_of(database, part)
    assert isinstance(call, ToolCall)
    return call


def merged(turns: list[Turn]) -> dict[str, list[Part]]:
    """Turns as a client has them in the end: continued turns joined, calls replaced by their later selves."""
    result: dict[str, list[Part]] = {}
    for turn in turns:
        shown = result.setdefault(turn.id, [])
        for part in turn.parts:
            place = next((i for i, old in enumerate(shown) if isinstance(part, ToolCall) and is_same(old, part)), None)
            if place is None:
                shown.append(part)
            else:
                shown[place] = part
    return result


def is_same(part: Part, call: ToolCall) -> bool:
    """Whether a part is an earlier state of a call."""
    return isinstance(part, ToolCall) and part.id == call.id


def test_text_that_opencode_added_to_a_prompt_is_not_shown(database: Database) -> None:
    """What the user sees but the model does not is; so are files."""
    link = {"type": "file", "url": "file:///home/me/shop/a.md", "filename": "a.md", "mime": "text/plain"}
    parts = parts_of(
        database,
        text_part("Called the Read tool", synthetic=True),
        text_part("Look at this"),
        text_part("(only for you)", ignored=True),
        link,
        role="user",
    )
    assert parts == (
        Text("Look at this"),
        Text("(only for you)"),
        ResourceLink("file:///home/me/shop/a.md", "a.md", "text/plain"),
    )


@pytest.mark.parametrize(
    ("url", "mime", "shown"),
    [
        ("data:image/png;base64,QUJD", "image/png", Image("image/png", "QUJD", "file:///a%20b")),
        ("data:text/plain;base64,QUJD", "text/plain", Resource("file:///a%20b", text="ABC", mime_type="text/plain")),
        ("data:text/plain,A%20B", "", Resource("file:///a%20b", text="A B", mime_type="text/plain")),
        (
            "data:application/pdf;base64,//8=",
            "application/pdf",
            Resource("file:///a%20b", None, "//8=", "application/pdf"),
        ),
        ("https://example.org/x", "", ResourceLink("https://example.org/x", "a b")),
        ("data:application/pdf;base64,!", "application/pdf", None),
        ("", "", None),
    ],
)
def test_a_file_is_a_picture_a_document_or_a_link(database: Database, url: str, mime: str, shown: Part | None) -> None:
    """Whatever its URL holds; nothing is fetched."""
    parts = parts_of(database, {"type": "file", "url": url, "mime": mime, "filename": "a b"}, role="user")
    assert parts == ((shown,) if shown else ())


def test_a_compaction_is_shown_at_its_summary(database: Database) -> None:
    """What was said before it is still there."""
    database.message("user", text_part("Hello"))
    database.message("user", {"type": "compaction", "auto": True})
    summary = database.message("assistant", text_part("We said hello."), summary=True)
    database.message("user", text_part("And now?"))
    turns = turns_of(database.unit())
    assert [turn.parts for turn in turns] == [
        (Text("Hello"),),
        (Compaction(summary, "We said hello."),),
        (Text("And now?"),),
    ]
    assert [turn.synthetic for turn in turns] == [False, True, False]


def test_a_pending_revert_hides_and_counts_what_lies_behind_it(tmp_path: Path) -> None:
    """From a message on, or from a part of it on."""
    with Database(tmp_path) as database:
        database.session(revert='{"messageID": "msg_0003", "partID": "prt_0005"}')
        database.message("user", text_part("kept"))
        assert database.message("assistant", text_part("kept, too"), text_part("gone")) == "msg_0003"
        database.message("user", text_part("gone"))
        transcript = opened(database)
        assert [turn.parts for turn in transcript.turns()] == [(Text("kept"),), (Text("kept, too"),)]
        assert transcript.left_out == 2
        assert list(transcript.turns()) == []
        database.connection.execute("""UPDATE session SET revert = '{"messageID": "msg_0003"}'""")
        assert len(turns_of(database.unit())) == 1
        database.connection.execute("UPDATE session SET revert = NULL")
        assert len(turns_of(database.unit())) == 3
        assert [turn.parts for turn in transcript.turns()] == [(Text("gone"),), (Text("gone"),)]


def test_an_error_is_a_notice(database: Database) -> None:
    """The message of a failed request has no parts."""
    error = {"name": "APIError", "data": {"message": "too many requests"}}
    assert parts_of(database, error=error) == (Notice("APIError: too many requests"),)


@pytest.mark.fault("F8")
def test_bookkeeping_is_silent_and_unknown_parts_are_problems(database: Database) -> None:
    """A type that a later version adds is counted, not lost without a word."""
    database.message("assistant", {"type": "step-start"}, {"type": "patch"}, {"type": "hologram"}, text_part("Hi"))
    transcript = opened(database)
    assert [turn.parts for turn in transcript.turns()] == [(Text("Hi"),)]
    assert [(problem.kind, problem.detail) for problem in transcript.problems] == [("unknown-record", "part hologram")]


def test_usage_is_that_of_the_last_request_and_the_cost_of_all(database: Database) -> None:
    """A failed request, which used no tokens, changes neither."""
    tokens = {"input": 100, "output": 20, "reasoning": 3, "cache": {"read": 1000, "write": 1}}
    database.message("assistant", text_part("one"), cost=0.5, tokens={"input": 1})
    database.message("assistant", text_part("two"), cost=0.25, tokens=tokens)
    database.message("assistant", cost=0, tokens={"input": 0})
    transcript = opened(database)
    list(transcript.turns())
    assert transcript.usage == Usage(1124, cost=0.75)


def test_a_command_is_a_terminal_with_its_exit_code(database: Database) -> None:
    """A failing command is a completed call to opencode."""
    call = call_of(database, tool_part_of("bash", output="no\n", input={"command": "false"}, metadata={"exit": 1}))
    assert (call.kind, call.title, call.status) == ("execute", "false", "completed")
    assert call.shell == ShellResult("no\n", 1, CWD)
    assert call.content == ()


def test_a_shortened_output_is_read_in_full_from_opencodes_own_directory(database: Database) -> None:
    """Only the file's name counts: no transcript can make us open something else."""
    outputs = database.root / "tool-output"
    outputs.mkdir()
    (outputs / "tool_1").write_text("all of it", encoding="utf-8")
    (outputs / "other").write_text("secret", encoding="utf-8")
    for path, shown in (
        ("/elsewhere/tool_1", "all of it"),
        ("tool_2", "a piece"),
        ("/elsewhere/other", "a piece"),
        ("..\\other", "a piece"),
    ):
        database.message("assistant", tool_part_of("bash", output="a piece", metadata={"outputPath": path}))
        call = turns_of(database.unit())[-1].parts[0]
        assert isinstance(call, ToolCall)
        assert call.shell == ShellResult(shown, None, CWD)


def test_edits_show_whole_files_where_they_are_stored(database: Database) -> None:
    """Else the two pieces of text; a written file has no text before."""
    change = {"filePath": "shop/cart.py", "oldString": "a", "newString": "b"}
    path = f"{CWD}/shop/cart.py"
    stored = {"filediff": {"before": "xa", "after": "xb"}}
    database.message(
        "assistant",
        tool_part_of("edit", input=change, metadata=stored),
        tool_part_of("edit", input=change, metadata={"filediff": {"patch": "@@"}}),
        tool_part_of("multiedit", input={"filePath": "shop/cart.py", "edits": [change, change]}),
        tool_part_of("write", input={"filePath": "shop/cart.py", "content": "new"}),
        tool_part_of("apply_patch", metadata={"files": [{"filePath": path, "before": "1", "after": "2"}]}),
        tool_part_of("edit", "error", input=change, error="not found"),
    )
    calls = [part for part in turns_of(database.unit())[0].parts if isinstance(part, ToolCall)]
    assert [call.content for call in calls] == [
        (Diff(path, "xb", "xa"),),
        (Diff(path, "b", "a"),),
        (Diff(path, "b", "a"), Diff(path, "b", "a")),
        (Diff(path, "new"),),
        (Diff(path, "2", "1"),),
        (Text("not found"),),
    ]
    assert {call.locations for call in calls} == {(Location(path),)}
    assert [call.status for call in calls] == ["completed"] * 5 + ["failed"]
    assert [call.title for call in calls[:4]] == ["Edit shop/cart.py"] * 3 + ["Write shop/cart.py"]


def test_reading_shows_the_text_without_line_numbers_and_what_was_attached(database: Database) -> None:
    """Newer versions store the text as a person sees it."""
    display = {"text": "two\nthree\n", "lineStart": 2}
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"}
    call = call_of(
        database,
        tool_part_of(
            "read",
            output="<content>\n2: two</content>",
            input={"filePath": f"{CWD}/a.txt", "offset": 2, "limit": 2},
            metadata={"display": display},
            attachments=[picture],
        ),
    )
    assert (call.kind, call.title) == ("read", "Read a.txt (2 - 3)")
    assert call.content == (Text("two\nthree\n"), Image("image/png", "QUJD", "file:///attachment"))
    assert call.locations == (Location(f"{CWD}/a.txt", 2),)


def test_a_todo_list_is_a_plan(database: Database) -> None:
    """One that failed or holds nothing readable stays a call."""
    todos = [{"content": "Read", "status": "completed", "priority": "high"}, {"content": "Test", "status": "pending"}]
    parts = parts_of(
        database, tool_part_of("todowrite", input={"todos": todos}), tool_part_of("todowrite", "error", error="no")
    )
    assert parts[0] == Plan((PlanEntry("Read", "completed", "high"), PlanEntry("Test", "pending")))
    assert isinstance(parts[1], ToolCall)


def test_unknown_tools_keep_their_name_and_stored_title(database: Database) -> None:
    """MCP servers and plugins; a call to a tool that does not exist has failed."""
    call = call_of(database, tool_part_of("jira_search", title="Search PROJ", output="none"))
    assert (call.name, call.title, call.kind, call.content) == ("jira_search", "Search PROJ", "other", (Text("none"),))
    database.message("assistant", tool_part_of("invalid", input={"tool": "nope"}))
    (invalid,) = turns_of(database.unit())[-1].parts
    assert isinstance(invalid, ToolCall)
    assert (invalid.title, invalid.status) == ("Invalid tool call nope", "failed")


@pytest.mark.parametrize(
    "outcome",
    [
        {"metadata": {"sessionId": "ses_2"}},
        {"metadata": {"summary": [{"sessionID": "ses_2"}]}},
        {"output": '<task id="ses_2" state="completed">\n<task_result>\ndone\n</task_result>\n</task>'},
        {"output": "task_id: ses_2 (for resuming)\n\n<task_result>\ndone\n</task_result>"},
    ],
)
def test_a_task_holds_the_conversation_it_started(database: Database, outcome: dict[str, object]) -> None:
    """However the version at hand names the child; its result is shown without its wrapper."""
    database.session("ses_2", parent_id="ses_1")
    database.message("user", text_part("Count"), session="ses_2")
    state: dict[str, object] = {"output": "done", "input": {"subagent_type": "general"}, **outcome}
    part: Json = {"type": "tool", "tool": "task", "state": {"status": "completed", **state}}
    database.message("assistant", part)
    (call,) = turns_of(database.unit())[0].parts
    assert isinstance(call, ToolCall)
    assert call.content == (Text("done"),)
    (run,) = call.subagents
    assert (run.id, run.name) == ("ses_2", "general")
    assert [turn.parts for turn in run.turns()] == [(Text("Count"),)]


@pytest.mark.fault("T2")
def test_sessions_that_name_each_other_as_children_end(database: Database) -> None:
    """A child that is one of its own ancestors, or that does not exist, is left out."""
    database.session("ses_2", parent_id="ses_1")
    database.message("assistant", tool_part_of("task", metadata={"sessionId": "ses_2"}))
    database.message("assistant", tool_part_of("task", metadata={"sessionId": "ses_1"}), session="ses_2")
    database.message("assistant", tool_part_of("task", metadata={"sessionId": "ses_9"}))
    first, second = (turn.parts[0] for turn in turns_of(database.unit()))
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    (child,) = (turn.parts[0] for turn in first.subagents[0].turns())
    assert isinstance(child, ToolCall)
    assert child.subagents == second.subagents == ()


@pytest.mark.fault("S4")
def test_a_child_of_a_tree_cannot_lead_out_of_it(tmp_path: Path) -> None:
    """Ids from a transcript are never joined to paths when they could be more than a name."""
    task = tool_part_of("task", metadata={"sessionId": "../../../ses_2"})
    path = write_tree(tmp_path, ({"role": "assistant"}, (task,)))
    write_json(path.parent / "../../../ses_2.json", {"id": "ses_2"})
    (call,) = turns_of(unit_of(tmp_path, path))[0].parts
    assert isinstance(call, ToolCall)
    assert call.subagents == ()


def test_a_turn_that_is_being_written_is_followed(database: Database) -> None:
    """A prompt's parts that come late, an answer's text when it is whole, a call again when it has ended."""
    transcript = opened(database)
    seen = list(transcript.turns())
    prompt = database.message("user")
    seen += transcript.turns()
    database.part(prompt, text_part("Hello"))
    seen += transcript.turns()
    answer = database.message("assistant", finished=False)
    text = database.part(answer, text_part(""))
    seen += transcript.turns()
    assert [turn.parts for turn in seen] == [(Text("Hello"),)]
    database.change("part", text, text_part("Wel"))
    seen += transcript.turns()
    database.change("part", text, text_part("Welcome"))
    call = database.part(answer, tool_part_of("bash", "running", input={"command": "ls"}))
    seen += transcript.turns()
    assert [turn.parts[0] for turn in seen[1:]] == [Text("Wel"), Text("come")]
    database.message("user", text_part("queued while you work"))
    seen += transcript.turns()
    database.change("part", call, tool_part_of("bash", output="cart.py", input={"command": "ls"}))
    seen += transcript.turns()
    database.change("message", answer, {"role": "assistant", "time": {"created": 1, "completed": 2}})
    assert [part.status for turn in seen for part in turn.parts if isinstance(part, ToolCall)] == [
        "unfinished",
        "completed",
    ]
    assert list(transcript.turns()) == []
    assert list(merged(seen)) == list(merged(turns_of(database.unit())))
    assert merged(seen)[answer][-1] == merged(turns_of(database.unit()))[answer][-1]


def test_following_reads_only_what_is_open_or_new(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work per event does not grow with the session."""
    for number in range(50):
        database.message("user", text_part(f"prompt {number}"))
        database.message("assistant", text_part("answer"))
    transcript = opened(database)
    assert len(list(transcript.turns())) == 100
    reads: list[str] = []
    read = DatabaseReader.message

    def counted(reader: DatabaseReader, session_id: str, head: Head) -> Message | None:
        reads.append(head.id)
        return read(reader, session_id, head)

    monkeypatch.setattr(DatabaseReader, "message", counted)
    database.message("user", text_part("one more"))
    assert [turn.parts for turn in transcript.turns()] == [(Text("one more"),)]
    assert len(reads) == 2


@pytest.mark.fault("F1")
def test_a_message_whose_file_is_half_written_is_shown_when_it_is_whole(tmp_path: Path) -> None:
    """The trees' files are not replaced at once."""
    path = write_tree(tmp_path, ({"role": "user"}, (text_part("Hello"),)), ({"role": "user"}, (text_part("Again"),)))
    second = tmp_path / ".local/share/opencode/storage/message/ses_1/msg_0001.json"
    whole = second.read_bytes()
    second.write_bytes(whole[:5])
    unit = unit_of(tmp_path, path)
    transcript = Opencode().open(unit, Opencode().inspect(unit).records[0])
    assert [turn.parts for turn in transcript.turns()] == [(Text("Hello"),)]
    second.write_bytes(whole)
    assert [turn.parts for turn in transcript.turns()] == [(Text("Again"),)]


def test_a_finished_message_can_hold_a_call_without_a_readable_status(database: Database) -> None:
    """Such a call counts as unfinished."""
    call = call_of(database, {"type": "tool", "tool": "bash", "state": {"status": ["completed"]}})
    assert call.status == "unfinished"


class Memory:
    """A storage of one session in memory."""

    outputs = Path("/nowhere/tool-output")

    def __init__(self, info: JsonMap, messages: Sequence[Message]) -> None:
        self._info = info
        self._messages = messages
        self.problems: list[Problem] = []

    @contextmanager
    def reading(self) -> Generator["Memory"]:
        """Nothing to open."""
        yield self

    def info(self, session_id: str) -> JsonMap:
        """Any id names the one session."""
        del session_id
        return self._info

    def heads(self, session_id: str, after: object = None) -> Sequence[Head]:
        """All messages."""
        del session_id
        first = after + 1 if isinstance(after, int) else 0
        return [Head(message.id, number) for number, message in enumerate(self._messages)][first:]

    def message(self, session_id: str, head: Head) -> Message | None:
        """One of them."""
        del session_id
        return next((message for message in self._messages if message.id == head.id), None)


FIELDS = (
    *("role", "time", "type", "text", "tool", "state", "url", "mime", "filename", "source", "error", "summary", "path"),
    *("tokens", "cost", "modelID", "synthetic", "prompt", "title", "parentID", "directory", "revert", "version"),
)
STATE_FIELDS = ("status", "input", "output", "metadata", "error", "attachments", "title")
DEEP_FIELDS = (
    *("filePath", "path", "edits", "todos", "content", "command", "workdir", "offset", "limit", "display", "files"),
    *("filediff", "before", "after", "sessionId", "summary", "outputPath", "exit", "created", "completed", "updated"),
    *("messageID", "partID", "message", "cwd", "archived", "url", "data", "cache", "read"),
)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "text", "tool", "file", "reasoning", "compaction", "subtask", "retry", "completed"),
        *("error", "running", "read", "edit", "multiedit", "write", "bash", "task", "todowrite", "apply_patch"),
        *("data:image/png;base64,", "data:text/plain,%zz", "data:,", "file:///x", "\ud800", "", "m1"),
        base64.b64encode(b"x").decode(),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(DEEP_FIELDS + STATE_FIELDS), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8)
MESSAGES = st.lists(st.tuples(OBJECTS, st.lists(OBJECTS, max_size=4)), max_size=4)


@given(OBJECTS, MESSAGES)
@pytest.mark.fault("F8")
def test_any_field_can_have_any_type(info: dict[str, object], messages: list[tuple[JsonMap, list[JsonMap]]]) -> None:
    """Hostile content is never an exception, in a list or in a replay."""
    storage = Memory(
        {**info, "id": "ses_1"},
        [
            Message(f"m{number}", data, tuple(MessagePart(f"p{number}.{i}", part) for i, part in enumerate(parts)))
            for number, (data, parts) in enumerate(messages)
        ],
    )
    session_record(storage, storage.info("ses_1"), modified=from_ns(10**18), rank=1, orphan=False)
    transcript = SessionTranscript(storage, "ses_1", None)
    for turn in transcript.turns():
        assert turn.parts
        for part in turn.parts:
            assert not isinstance(part, Text | Thought) or part.text
    list(transcript.turns())
    assert transcript.usage is None or transcript.usage.used > 0
