"""Following a session of Gemini CLI while the tool writes it: only what is new is shown, and each thing once."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_bridge.turns import Compaction, Text
from tests.builders.gemini_cli import (
    ACKNOWLEDGEMENT,
    CONTEXT,
    SNAPSHOT,
    Chat,
    call,
    calls,
    log_entry,
    message,
    opened,
    parts_in,
    record_of,
    replay,
    response,
    said,
    unit_at,
    write_log,
)


def test_later_turns_are_the_added_ones(tmp_path: Path) -> None:
    """Also an answer that is written again with its calls: only the calls are new."""
    chat = Chat().user("Hello")
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert said(list(transcript.turns())) == [("user", "Hello")]
        assert list(transcript.turns()) == []
        chat.agent("Hi", "a").touch().write(tmp_path)
        assert said(list(transcript.turns())) == [("agent", "Hi")]
        chat.agent("Hi", "a", toolCalls=[call("glob")]).write(tmp_path)
        (turn,) = transcript.turns()
        assert (turn.id, len(calls([turn])), said([turn])) == ("a", 1, [])


def test_a_call_is_sent_again_when_its_outcome_arrives(tmp_path: Path) -> None:
    """It was shown as unfinished."""
    chat = Chat().agent("", "a", toolCalls=[call("glob", {"pattern": "*"}, status="executing", result=None)])
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert [found.status for found in calls(list(transcript.turns()))] == ["unfinished"]
        chat.agent("", "a", toolCalls=[call("glob", {"pattern": "*"}, "a.py")]).write(tmp_path)
        (found,) = calls(list(transcript.turns()))
        assert (found.id, found.status, found.content) == ("call-1", "completed", (Text("a.py"),))


def test_a_late_response_completes_its_call(tmp_path: Path) -> None:
    """The call was only a part of the answer."""
    part = {"functionCall": {"id": "call-1", "name": "glob", "args": {"pattern": "*"}}}
    chat = Chat().say("gemini", [part])
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert [found.status for found in calls(list(transcript.turns()))] == ["unfinished"]
        chat.parts(response("call-1", "glob", "a.py")).write(tmp_path)
        (found,) = calls(list(transcript.turns()))
        assert (found.id, found.title, found.status) == ("call-1", "Find *", "completed")


def test_a_list_rebuilt_with_the_same_messages_shows_nothing_new(tmp_path: Path) -> None:
    """Under the same ids, in another shape, or under new ids."""
    chat = Chat().user("one", "u").agent("1", "a", thoughts=[{"subject": "S", "description": "d"}])
    path = chat.write(tmp_path)
    other = [message("u", "user", "one"), message("a", "gemini", [{"text": "**S** d", "thought": True}, {"text": "1"}])]
    renamed = [message("x", "user", [{"text": CONTEXT}, {"text": "one"}]), message("y", "gemini", [{"text": "1"}])]
    with opened(tmp_path, path) as transcript:
        assert len(list(transcript.turns())) == 2
        chat.rebuild(*other).write(tmp_path)
        assert list(transcript.turns()) == []
        chat.rebuild(*renamed, message("z", "user", "two")).write(tmp_path)
        assert said(list(transcript.turns())) == [("user", "two")]


def test_a_prompt_typed_twice_is_shown_twice(tmp_path: Path) -> None:
    """Only a rebuilt list brings copies."""
    chat = Chat().user("go on").agent("1")
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        list(transcript.turns())
        chat.user("go on").write(tmp_path)
        assert said(list(transcript.turns())) == [("user", "go on")]


def test_a_compaction_is_followed(tmp_path: Path) -> None:
    """The summary is new, the kept messages are not."""
    chat = Chat().user("one").agent("1")
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        list(transcript.turns())
        kept = message("n", "gemini", [{"text": "1"}])
        chat.rebuild(message("s", "user", SNAPSHOT), message("k", "gemini", ACKNOWLEDGEMENT), kept).user("two")
        chat.write(tmp_path)
        assert parts_in(list(transcript.turns())) == [Compaction("s", "We greeted."), Text("two")]


def test_a_rewritten_document_shows_what_was_added(tmp_path: Path) -> None:
    """It is written as a whole on each change; half a document shows nothing wrong."""
    chat = Chat().user("one").agent("1", "a")
    path = chat.write_document(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert len(list(transcript.turns())) == 2
        whole = chat.user("two").document()
        path.write_bytes(whole[: len(whole) // 2])
        assert list(transcript.turns()) == []
        path.write_bytes(whole)
        assert said(list(transcript.turns())) == [("user", "two")]


@pytest.mark.fault("R2")
def test_a_replaced_file_is_opened_again(tmp_path: Path) -> None:
    """When a resumed file was unreadable the tool writes a new one under its name."""
    chat = Chat().user("one")
    path = chat.write(tmp_path)
    with opened(tmp_path, path) as transcript:
        list(transcript.turns())
        path.rename(path.with_name(path.name + ".unreadable-1"))
        chat.user("two").write(tmp_path)
        assert said(list(transcript.turns())) == [("user", "two")]


@pytest.mark.fault("R1")
def test_a_deleted_file_is_read_to_its_end(tmp_path: Path) -> None:
    """What is open can still be read."""
    path = Chat().user("one").write(tmp_path)
    with opened(tmp_path, path) as transcript:
        path.unlink()
        assert said(list(transcript.turns())) == [("user", "one")]
        assert list(transcript.turns()) == []


def test_a_prompt_log_is_followed(tmp_path: Path) -> None:
    """Only the session's own prompts are its turns."""
    entries = [log_entry("one"), log_entry("/help", 1), log_entry("other", 2, "other")]
    path = write_log(tmp_path, entries)
    with opened(tmp_path, path) as transcript:
        assert said(list(transcript.turns())) == [("user", "one")]
        write_log(tmp_path, [*entries, log_entry("two", 3)])
        assert said(list(transcript.turns())) == [("user", "two")]


@given(seed=st.integers(0, 10_000), size=st.integers(1, 400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@pytest.mark.fault("R4", "Z3")
def test_following_in_pieces_shows_what_the_whole_shows(tmp_path: Path, seed: int, size: int) -> None:
    """Over a transcript that is written in pieces of any size, torn anywhere."""
    chooser = random.Random(seed)
    chat = Chat()
    for number in range(chooser.randrange(1, 8)):
        chat.user(f"Prompt {number}: ünï").touch()
        chat.agent("", f"a{number}").touch()
        chat.agent("", f"a{number}", toolCalls=[call("glob", {"pattern": "*"}, "x", identifier=f"c{number}")])
        chat.agent(f"Answer {number}", thoughts=[{"subject": "S", "description": str(number)}]).touch()
    path = chat.write(tmp_path)
    expected = parts_in(replay(tmp_path, path))
    path.write_bytes(b"")
    with opened(tmp_path, path) as transcript:
        followed = parts_in(list(transcript.turns()))
        for start in range(0, len(chat.data), size):
            with path.open("ab") as file:
                file.write(chat.data[start : start + size])
            followed += parts_in(list(transcript.turns()))
    assert followed == expected


# -- the text index ----------------------------------------------------------------------------------------------------


def passages(home: Path, path: Path, since: int = 0, *, output: bool = False) -> list[tuple[str, str]]:
    """What is worth finding in a transcript."""
    found = GeminiCli().passages(unit_at(home, path), record_of(home, path), since, output=output)
    return [(passage.kind, passage.text) for passage in found]


def test_what_was_said_can_be_found_once(tmp_path: Path) -> None:
    """Also what a rewritten list repeats, or alone holds; printed text only when it is wanted."""
    kept = [message("u", "user", "one"), message("s", "user", SNAPSHOT)]
    chat = Chat().user("one", "u").agent("1", "a").agent("1", "a", toolCalls=[call("glob", {"pattern": "*"}, "x.py")])
    path = chat.parts(response("call-1", "glob", "x.py")).rebuild(*kept).write(tmp_path)
    expected = [("message", "one"), ("message", "1"), ("tool", "Find *"), ("message", "We greeted.")]
    assert passages(tmp_path, path) == expected
    assert passages(tmp_path, path, output=True) == [*expected[:3], ("output", "x.py"), expected[3]]


def test_only_new_lines_are_looked_at_for_the_text_index(tmp_path: Path) -> None:
    """Each passage says from where to go on; an unfinished line is left for the next time."""
    chat = Chat().user("one", "u")
    path = chat.write(tmp_path)
    (first,) = GeminiCli().passages(unit_at(tmp_path, path), record_of(tmp_path, path))
    assert first.end == path.stat().st_size
    chat.rebuild(message("u", "user", "one")).user("two").raw(b'{"id":"x","type":"user","content":"three"}')
    assert passages(tmp_path, chat.write(tmp_path), first.end) == [("message", "two")]


def test_documents_and_logs_are_looked_at_as_a_whole(tmp_path: Path) -> None:
    """They are rewritten as a whole, too."""
    document = Chat().user("one").agent("1").write_document(tmp_path)
    assert passages(tmp_path, document) == [("message", "one"), ("message", "1")]
    assert passages(tmp_path, write_log(tmp_path, [log_entry("typed")])) == [("message", "typed")]
