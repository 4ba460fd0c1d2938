"""From Gemini CLI's records to turns: the fold, what is no prompt, calls and their results."""

from pathlib import Path

import pytest

from acp_history_bridge.jsonl import LINE_LIMIT
from acp_history_bridge.turns import (
    Compaction,
    Image,
    Notice,
    Resource,
    ResourceLink,
    ShellResult,
    Text,
    Thought,
    Turn,
)
from tests.builders.gemini_cli import (
    ACKNOWLEDGEMENT,
    CONTEXT,
    SNAPSHOT,
    Chat,
    call,
    calls,
    message,
    opened,
    parts_in,
    replay,
    response,
    said,
)

BEGIN = "\n--- Content from referenced files ---"
THOUGHT = {"subject": "Recalling", "description": "Easy."}
PIXEL = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def turns_of(home: Path, chat: Chat) -> list[Turn]:
    """Replay a transcript in the form of lines."""
    return replay(home, chat.write(home))


# -- the fold ----------------------------------------------------------------------------------------------------------


def test_a_record_written_again_replaces_the_first_at_its_place(tmp_path: Path) -> None:
    """An answer is written first without its calls."""
    chat = Chat().user("Hello").agent("Hi", "a").user("More").agent("Hi", "a", toolCalls=[call("glob")])
    turns = turns_of(tmp_path, chat)
    assert said(turns) == [("user", "Hello"), ("agent", "Hi"), ("user", "More")]
    assert len(calls(turns)) == 1


def test_a_rewind_drops_a_message_and_all_after_it(tmp_path: Path) -> None:
    """What was dropped is counted, not shown."""
    path = Chat().user("one").user("two", "u").agent("2").rewind("u").user("three").write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert said(list(transcript.turns())) == [("user", "one"), ("user", "three")]
        assert transcript.left_out == 2


def test_a_rewind_to_an_unknown_message_drops_everything(tmp_path: Path) -> None:
    """As in the tool itself."""
    assert said(turns_of(tmp_path, Chat().user("one").rewind("?").user("two"))) == [("user", "two")]


def test_a_rebuilt_list_replaces_the_one_before(tmp_path: Path) -> None:
    """A cancelled prompt is gone; what stands behind the line follows."""
    kept = message("u", "user", [{"text": "Hello"}])
    chat = Chat().user("Hello", "u").user("cancelled").rebuild(message("c", "user", CONTEXT), kept).user("More")
    assert said(turns_of(tmp_path, chat)) == [("user", "Hello"), ("user", "More")]


def test_a_header_can_bring_messages(tmp_path: Path) -> None:
    """A document on one line is such a header."""
    chat = Chat(messages=[message("u", "user", "Hello")]).agent("Hi")
    assert said(turns_of(tmp_path, chat)) == [("user", "Hello"), ("agent", "Hi")]


def test_dropped_prompts_are_shown_when_nothing_else_is_left(tmp_path: Path) -> None:
    """The tool hides such a session; its prompt is still on disk."""
    path = Chat().user("fails").rebuild(message("c", "user", CONTEXT)).write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert said(list(transcript.turns())) == [("user", "fails")]
        assert transcript.left_out == 0


def test_messages_kept_under_new_ids_are_not_counted_as_lost(tmp_path: Path) -> None:
    """After a denied call the tool writes the kept history again, context and first prompt in one message."""
    again = [message("n1", "user", [{"text": CONTEXT}, {"text": "one"}]), message("n2", "gemini", [{"text": "1"}])]
    chat = Chat().user("one").agent("1").user("denied").agent("", toolCalls=[call("glob", status="cancelled")])
    path = chat.raw(again[0]).raw(again[1]).rebuild(*again).write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert said(list(transcript.turns())) == [("user", "one"), ("agent", "1")]
        assert transcript.left_out == 2


def test_everything_before_a_compaction_stays(tmp_path: Path) -> None:
    """The messages that the tool kept come again under new ids, and are shown once."""
    chat = Chat().user("one").agent("1").user("two").agent("2")
    kept = [message("n1", "user", [{"text": "two"}]), message("n2", "gemini", [{"text": "2"}])]
    summary = [message("c", "user", CONTEXT), message("s", "user", SNAPSHOT), message("k", "gemini", ACKNOWLEDGEMENT)]
    chat.rebuild(*summary, *kept).say("info", "").user("three")
    turns = turns_of(tmp_path, chat)
    assert [text for _, text in said(turns)] == ["one", "1", "two", "2", "three"]
    assert [part for part in parts_in(turns) if isinstance(part, Compaction)] == [Compaction("s", "We greeted.")]
    assert parts_in(turns)[4] == Compaction("s", "We greeted.")


def test_the_list_rebuilt_after_a_compaction_keeps_what_was_before(tmp_path: Path) -> None:
    """A later cancel rewrites the list, which begins with the snapshot; also under new ids."""
    summary = [message("s", "user", SNAPSHOT), message("k", "gemini", ACKNOWLEDGEMENT)]
    renamed = [message("s2", "user", SNAPSHOT), message("n2", "user", "one"), message("t2", "user", "two")]
    chat = Chat().user("one").rebuild(*summary, message("n", "user", "one")).user("two").user("cancelled")
    turns = turns_of(tmp_path, chat.rebuild(*renamed).user("three"))
    assert [text for _, text in said(turns)] == ["one", "two", "three"]
    assert sum(isinstance(part, Compaction) for part in parts_in(turns)) == 1


def test_a_second_compaction_comes_after_the_first(tmp_path: Path) -> None:
    """Nothing is lost over several."""
    chat = Chat().user("one").rebuild(message("s", "user", SNAPSHOT)).user("two")
    chat.rebuild(message("z", "user", "<state_snapshot>more</state_snapshot>")).user("three")
    shown = [Text("one"), Compaction("s", "We greeted."), Text("two"), Compaction("z", "more"), Text("three")]
    assert parts_in(turns_of(tmp_path, chat)) == shown


def test_a_document_is_taken_as_it_is(tmp_path: Path) -> None:
    """Nothing is folded: a repeated id is a message of its own."""
    chat = Chat().user("Hello", "u").agent("Hi", "a").agent("Hi again", "a").user("Bye")
    turns = replay(tmp_path, chat.write_document(tmp_path))
    assert [text for _, text in said(turns)] == ["Hello", "Hi", "Hi again", "Bye"]
    assert len({turn.id for turn in turns}) == 4


@pytest.mark.parametrize("indent", [1, 4])
def test_a_document_in_another_layout_is_read_too(tmp_path: Path, indent: int) -> None:
    """Somebody formatted it."""
    path = Chat().user("Hello").agent("Hi").write_document(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\n" + b"  ", b"\n" + b" " * indent))
    assert said(replay(tmp_path, path)) == [("user", "Hello"), ("agent", "Hi")]


# -- messages ----------------------------------------------------------------------------------------------------------


def test_injected_context_is_recognised_part_by_part(tmp_path: Path) -> None:
    """The prompt may share its message with the context."""
    chat = Chat().parts({"text": CONTEXT}, {"text": "Hello"}).user("<hook_context>x</hook_context>Bye")
    assert said(turns_of(tmp_path, chat)) == [("user", "Hello"), ("user", "Bye")]


@pytest.mark.parametrize(
    "parts",
    [
        [
            {"text": f"See @a.py{BEGIN}\nContent from @a.py:\nx = 1\n--- End of content ---"},
        ],
        [
            {"text": "See @a.py"},
            {"text": BEGIN},
            {"text": "\nContent from @a.py:\n"},
            {"text": "x = 1"},
            {"text": "\n--- End of content ---"},
        ],
        [
            {"text": "See @a.py"},
            {"text": "\n--- Content from referenced context ---"},
            {"text": "\nContent from @file:///home/ada/src/shop/a.py:\n"},
            {"text": "x = 1"},
        ],
    ],
)
def test_attached_files_are_resources(tmp_path: Path, parts: list[object]) -> None:
    """In one string (to 0.25), in parts, and as an editor attaches them."""
    (turn,) = turns_of(tmp_path, Chat().parts(*parts))
    assert turn.parts == (Text("See @a.py"), Resource("file:///home/ada/src/shop/a.py", text="x = 1"))


def test_an_attached_file_may_hold_the_same_markers(tmp_path: Path) -> None:
    """Its content is the part behind its name, whatever stands in it."""
    content = "a\n--- End of content ---\nContent from @b:\n"
    begin = [{"text": "See"}, {"text": BEGIN}, {"text": "\nContent from @/a.py:\n"}]
    (turn,) = turns_of(tmp_path, Chat().parts(*begin, {"text": content}, {"text": "\n--- End of content ---"}))
    assert turn.parts == (Text("See"), Resource("file:///a.py", text=content))


def test_the_prompt_is_shown_as_it_was_typed(tmp_path: Path) -> None:
    """`displayContent` wins; pictures stay."""
    chat = Chat().say("user", [{"text": "expanded"}, PIXEL], displayContent=[{"text": "typed"}])
    (turn,) = turns_of(tmp_path, chat)
    assert turn.parts == (Text("typed"), Image("image/png", "iVBORw0KGgo="))


def test_parts_of_other_kinds_are_kept(tmp_path: Path) -> None:
    """Files by reference, sound, and code that ran on the service's side; what is unknown is reported."""
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}
    link = {"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf"}}
    code = [{"executableCode": {"language": "PYTHON", "code": "1+1"}}, {"codeExecutionResult": {"output": "2"}}]
    path = Chat().parts({"text": "Look"}, sound, link, {"novelty": 1}).say("gemini", code).write(tmp_path)
    with opened(tmp_path, path) as transcript:
        user, agent = list(transcript.turns())
        assert [problem.detail for problem in transcript.problems] == ["part:novelty"]
    assert user.parts[1:] == (
        Resource("attachment", blob="UklG", mime_type="audio/wav"),
        ResourceLink("gs://bucket/a.pdf", "a.pdf", "application/pdf"),
    )
    assert ["1+1" in str(agent.parts[0]), "2" in str(agent.parts[1])] == [True, True]


@pytest.mark.parametrize(
    ("content", "thoughts"),
    [
        ("Oslo.", [THOUGHT]),
        ([{"text": "**Recalling** Easy.", "thought": True}, {"text": "Oslo."}], [THOUGHT]),
        ([{"text": "**Recalling**\nEasy.", "thought": True}, {"text": "Oslo."}], []),
    ],
)  # fmt: skip
def test_a_thought_is_shown_once(tmp_path: Path, content: object, thoughts: object) -> None:
    """Records written again hold it twice."""
    (turn,) = turns_of(tmp_path, Chat().say("gemini", content, thoughts=thoughts))
    assert turn.parts == (Thought("**Recalling**\nEasy."), Text("Oslo."))


def test_notes_of_the_tool_are_notices(tmp_path: Path) -> None:
    """They are shown but are no message; empty ones are nothing."""
    chat = Chat().user("Hello").say("info", "Request cancelled.").say("error", "[API Error]").say("info", "")
    turns = turns_of(tmp_path, chat)[1:]
    assert [turn.parts for turn in turns] == [(Notice("Request cancelled."),), (Notice("[API Error]"),)]
    assert all(turn.synthetic for turn in turns)


@pytest.mark.fault("F8")
def test_a_message_of_an_unknown_type_is_reported_and_shown(tmp_path: Path) -> None:
    """A later version may add one."""
    path = Chat().user("Hello").say("banner", "New model!").write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert parts_in(list(transcript.turns()))[1:] == [Notice("New model!")]
        assert [problem.detail for problem in transcript.problems] == ["message:banner"]


def test_the_users_own_command_is_a_call(tmp_path: Path) -> None:
    """`!cmd` is recorded as if the user had told the model about it."""
    told = "I ran the following shell command:\n```sh\nls nowhere\n```\n\nThis produced the following result:\n"
    (turn,) = turns_of(tmp_path, Chat().user(f"{told}```\nCommand exited with code 2.\nno such file\n```"))
    (found,) = calls([turn])
    assert (found.title, found.shell, turn.synthetic) == ("ls nowhere", ShellResult("no such file", 2), True)


def test_tokens_and_models_are_those_of_the_last_answer(tmp_path: Path) -> None:
    """Records written again may have neither."""
    chat = Chat().agent("a", model="pro", tokens={"total": 10}).agent("b", tokens={"total": 25}).agent("c", tokens=None)
    with opened(tmp_path, chat.write(tmp_path)) as transcript:
        assert [turn.model for turn in transcript.turns()] == ["pro", None, None]
        assert transcript.usage is not None
        assert transcript.usage.used == 25


# -- calls and responses -----------------------------------------------------------------------------------------------


def test_responses_are_no_prompts(tmp_path: Path) -> None:
    """The result stands in the call; the user's record with the same is nothing more."""
    chat = Chat().agent("", toolCalls=[call("glob", output="a.py")]).parts(response("call-1", "glob", "a.py"))
    (turn,) = turns_of(tmp_path, chat)
    assert [found.content for found in calls([turn])] == [(Text("a.py"),)]


@pytest.mark.parametrize("identifier", ["call-1", None])
def test_a_call_that_is_only_a_part_gets_the_response_behind_it(tmp_path: Path, identifier: str | None) -> None:
    """By id, or by name when the call has none."""
    part = {"functionCall": {"id": identifier, "name": "read_file", "args": {"file_path": "a.py"}}}
    chat = Chat().say("gemini", [part]).parts(response("call-1", "read_file", "x = 1")).agent("Done")
    (found,) = calls(turns_of(tmp_path, chat))
    assert (found.id, found.title, found.status, found.content) == (
        "call-1",
        "Read a.py",
        "completed",
        (Text("x = 1"),),
    )


def test_a_call_whose_record_was_dropped_keeps_its_details(tmp_path: Path) -> None:
    """After a cancel only the parts for the model are left in the list; the record is still in the file."""
    change = {"fileDiff": "…", "filePath": "/a", "originalContent": "1", "newContent": "2"}
    part = {"functionCall": {"id": "call-1", "name": "replace"}}
    chat = Chat().agent("", "a").agent("", "b", toolCalls=[call("replace", {}, resultDisplay=change)])
    path = chat.rebuild(message("a", "gemini", [part]), message("r", "user", [response("call-1", "replace", "ok")]))
    with opened(tmp_path, path.write(tmp_path)) as transcript:
        (found,) = calls(list(transcript.turns()))
        assert "new_text='2'" in str(found.content)
        assert transcript.left_out == 0


def test_a_response_without_a_call_is_a_failed_call(tmp_path: Path) -> None:
    """A permission denied over ACP leaves nothing else."""
    denied = response("call-9", "run_shell_command", error="canceled by the user")
    turns = turns_of(tmp_path, Chat().user("Delete it").agent("").parts(denied).agent("Fine"))
    (found,) = calls(turns)
    assert (found.id, found.name, found.status, found.kind) == ("call-9", "run_shell_command", "failed", "execute")
    assert found.shell == ShellResult("canceled by the user")
    assert [turn.role for turn in turns] == ["user", "agent", "agent"]


def test_text_beside_a_response_is_shown(tmp_path: Path) -> None:
    """Nothing a user typed is lost, wherever the tool puts it."""
    chat = Chat().agent("", toolCalls=[call("glob")]).parts(response("call-1", "glob", ""), {"text": "Stop there"})
    assert said(turns_of(tmp_path, chat)) == [("user", "Stop there")]


@pytest.mark.fault("T2")
def test_another_call_under_a_known_id_is_a_call_of_its_own(tmp_path: Path) -> None:
    """Ids are unique in practice; should they not be, no call is lost."""
    first, second = call("glob", {"pattern": "a"}), call("glob", {"pattern": "b"})
    found = calls(turns_of(tmp_path, Chat().agent("", toolCalls=[first]).agent("", toolCalls=[second, first])))
    assert [(one.id, one.title) for one in found] == [("call-1", "Find a"), ("call-1#2", "Find b")]


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F4")
def test_a_record_too_large_for_memory_becomes_a_placeholder(tmp_path: Path) -> None:
    """Its neighbours are shown; what it was is said."""
    chat = Chat().user("Hello").agent("x" * (LINE_LIMIT + 1)).user("Bye")
    texts = [text for _, text in said(turns_of(tmp_path, chat))]
    assert texts == ["Hello", "[record too large to show: 16 MB]", "Bye"]
    texts = [text for _, text in said(replay(tmp_path, chat.write_document(tmp_path)))]
    assert texts == ["Hello", "[record too large to show: 16 MB]", "Bye"]
