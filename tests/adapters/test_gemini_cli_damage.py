"""Damaged, odd and hostile transcripts of Gemini CLI: never an exception, never a lost neighbour."""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_bridge.adapter import SessionRecord
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.values import items, mapping
from tests.builders.gemini_cli import (
    CONTEXT,
    SNAPSHOT,
    START,
    Chat,
    call,
    inspect,
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


def talk() -> Chat:
    """A transcript with a record of every sort."""
    pixel = {"inlineData": {"mimeType": "image/png", "data": "aaaa"}}
    todos = [{"description": "Read", "status": "pending"}]
    change = {"fileDiff": "…", "filePath": "/a", "originalContent": "1", "newContent": "2"}
    chat = Chat().rebuild(message("c", "user", [{"text": CONTEXT}]))
    chat.parts({"text": "Hello"}, {"text": "\n--- Content from referenced files ---"}, {"text": "\nContent from @a:\n"})
    chat.parts({"text": "And this"}, pixel)
    chat.say("gemini", "Hi", "a", thoughts=[{"subject": "S", "description": "d"}], tokens={"total": 3}, model="pro")
    chat.agent("", "b", toolCalls=[call("replace", {"file_path": "a"}, resultDisplay=change, agentId="agent")])
    shell = call("run_shell_command", {"command": "ls"}, "Output: a", identifier="s")
    chat.agent("", "d", toolCalls=[call("write_todos", {"todos": todos}, identifier="t"), shell])
    chat.say("gemini", [{"functionCall": {"id": "f", "name": "glob", "args": {"pattern": "*"}}}])
    chat.parts(response("f", "glob", "a")).say("info", "Note").user("typed", displayContent=[{"text": "Shown"}])
    chat.rewind("nowhere").user("More").set(summary="Title", directories=["/x"]).touch()
    return chat.rebuild(message("s", "user", SNAPSHOT), message("k", "gemini", "Kept")).user("End")


# -- torn and odd lines ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F1", "F2")
def test_a_transcript_cut_anywhere_shows_all_whole_records(tmp_path: Path) -> None:
    """At every byte of the last three records; the rest is waited for, and read when it has come."""
    chat = Chat().user("eins").agent("ünï", "a").user("drei 🌹").touch()
    path = chat.write(tmp_path)
    expected = said(replay(tmp_path, path))
    ends = [sum(map(len, chat.lines[: count + 1])) for count in range(len(chat.lines))]
    for size in range(ends[0], len(chat.data)):
        path.write_bytes(chat.data[:size])
        found = inspect(tmp_path, path)
        whole = sum(end <= size + 1 for end in ends[1:-1])  # a record that only lacks its newline is whole
        with opened(tmp_path, path) as transcript:
            assert said(list(transcript.turns())) == expected[:whole]
            with path.open("ab") as file:
                file.write(chat.data[size:])
            assert said(list(transcript.turns())) == expected[whole:]
            assert transcript.problems == ()
        assert found.problems == ()
        assert found.offset == max(end for end in ends if end <= size)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\xfa\n",
        b"\x00" * 40 + b"\n",
        b'{"id":"torn","type":"user","content":"x\n',
        b'{"id":"x","type":"user","content":"a"}{"id":"y","type":"user","content":"b"}\n',
        b'{"id":"x","type":"user","content":"a"},\n',
        b"[1, 2]\n",
        b"null\n",
        b'{"novelty": 1}\n',
        b"[" * 5_000 + b"]" * 5_000 + b"\n",
        b'{"id":"deep","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    ],
)
@pytest.mark.fault("F2", "F3", "F6", "F7")
def test_a_bad_line_costs_nothing_but_itself(tmp_path: Path, line: bytes) -> None:
    """Its neighbours are shown, and it is reported with its place."""
    path = Chat().user("one").raw(line).user("two").write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert [text for _, text in said(list(transcript.turns()))] == ["one", "two"]
        assert len(transcript.problems) == 1
        assert " at byte " in transcript.problems[0].detail
    assert record_of(tmp_path, path).title == "one"


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"   \n"])
@pytest.mark.fault("F6")
def test_blank_lines_are_nothing(tmp_path: Path, line: bytes) -> None:
    """They are not even reported."""
    path = Chat().user("one").raw(line).user("two").write(tmp_path)
    with opened(tmp_path, path) as transcript:
        assert [text for _, text in said(list(transcript.turns()))] == ["one", "two"]
        assert transcript.problems == ()


@pytest.mark.fault("F3", "F6")
def test_other_line_ends_and_marks_are_accepted(tmp_path: Path) -> None:
    """CRLF, a byte order mark, blanks inside objects, no last newline, NUL before a record."""
    chat = Chat().user("one").user("two")
    path = chat.write(tmp_path)
    spaced = b"\n".join(json.dumps(json.loads(line)).encode() for line in chat.lines)
    variants = [chat.data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + chat.data, spaced, chat.data[:-1]]
    variants.append(chat.lines[0] + b"\x00" * 9 + b"".join(chat.lines[1:]))
    for data in variants:
        path.write_bytes(data)
        assert [text for _, text in said(replay(tmp_path, path))] == ["one", "two"]
        assert (record_of(tmp_path, path).native_id, record_of(tmp_path, path).title) == (chat.session, "one")


def test_a_damaged_new_version_of_a_message_leaves_the_old_one(tmp_path: Path) -> None:
    """The answer was written twice; the second time a crash tore it."""
    path = Chat().agent("Hi", "a").raw(b'{"id":"a","type":"gemini","content":"Hi}\n').user("Bye").write(tmp_path)
    assert [text for _, text in said(replay(tmp_path, path))] == ["Hi", "Bye"]


@pytest.mark.fault("F7")
def test_odd_text_is_salvaged(tmp_path: Path) -> None:
    """Lone surrogates, NUL escapes, NaN and huge numbers."""
    line = b'{"id":"u","type":"user","content":"a\\ud800b\\u0000c","x":NaN,"y":18446744073709551616000}\n'
    path = Chat().raw(line).agent("Hi").write(tmp_path)
    assert [replace_surrogates(text) for _, text in said(replay(tmp_path, path))] == ["a\ufffdb\x00c", "Hi"]
    assert record_of(tmp_path, path).title is not None


# -- documents ---------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F1")
def test_a_document_cut_anywhere_shows_its_whole_messages(tmp_path: Path) -> None:
    """It may be being rewritten: what is listed stays listed, and nothing wrong is shown."""
    chat = Chat().user("eins").agent("ünï").user("drei")
    path = chat.write_document(tmp_path, summary="A title")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = inspect(tmp_path, path)
        texts = [text for _, text in said(replay(tmp_path, path))]
        assert texts == ["eins", "ünï", "drei"][: len(texts)]
        assert not found.complete
        assert all(record.native_id == chat.session for record in found.records)
    path.write_bytes(whole)
    assert (inspect(tmp_path, path).complete, record_of(tmp_path, path).title) == (True, "A title")


@pytest.mark.fault("F9")
def test_a_document_without_messages_is_not_listed(tmp_path: Path) -> None:
    """Also with a message list of another type."""
    assert not record_of(tmp_path, Chat().write_document(tmp_path)).listed
    assert not record_of(tmp_path, Chat().write_document(tmp_path, messages={"a": 1})).listed


def test_a_long_document_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its head, and its tail."""
    path = Chat().user("one").agent("x" * 3_000_000).user("y" * 200_000).write_document(tmp_path, summary="A title")
    unit = unit_at(tmp_path, path)
    read: list[int] = []
    original = os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = original(descriptor, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    (record,) = GeminiCli().inspect(unit).records
    assert (record.title, record.updated_at.second) == ("A title", 3)
    assert sum(read) < 1_500_000


# -- wrong types -------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places_in(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path to every value inside a JSON value."""
    children: list[tuple[str | int, object]] = [*mapping(value).items(), *enumerate(items(value))]
    for name, child in children:
        yield (*path, name)
        yield from places_in(child, (*path, name))


def with_message(value: object) -> dict[str, object]:
    """A log entry that says something else."""
    return {**log_entry("Hello"), "message": value}


RECORDS: list[dict[str, object]] = [json.loads(line) for line in talk().lines]
PLACES = list(places_in(RECORDS))


@given(place=st.sampled_from(PLACES), value=VALUES, document=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@pytest.mark.fault("F8")
def test_any_value_in_any_place_raises_nothing(
    tmp_path: Path, place: tuple[str | int, ...], value: object, *, document: bool
) -> None:
    """And a record that was not touched is still shown."""
    records = copy.deepcopy(RECORDS)
    target: Any = records
    for name in place[:-1]:
        target = target[name]
    target[place[-1]] = value
    chat = Chat(header=False)
    chat.records = [json.dumps(record).encode() + b"\n" for record in records]
    path = chat.write(tmp_path)
    if document:
        chat.records = [mapping(record) for record in records]
        path.unlink()
        path = chat.write_document(tmp_path)
    found = inspect(tmp_path, path)
    json.dumps(found.state)
    turns = replay(tmp_path, path)
    hash(tuple(turn.id for turn in turns))
    if place[0] != len(RECORDS) - 1:
        assert ("user", "End") in said(turns)
    path.unlink()


@given(entries=st.lists(VALUES | st.builds(with_message, VALUES), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@pytest.mark.fault("F8")
def test_any_value_in_a_prompt_log_raises_nothing(tmp_path: Path, entries: list[object]) -> None:
    """And a sound entry is still listed."""
    path = write_log(tmp_path, [*entries, log_entry("Sound", 1, "sound")])
    found = inspect(tmp_path, path)
    assert [record.title for record in found.records if record.native_id == "sound"] == ["Sound"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"projects": 7}', '{"projects": {"/a": 7, "b": "shop"}}', "\x00"])
def test_a_damaged_registry_is_an_empty_one(tmp_path: Path, text: str) -> None:
    """As in the tool itself."""
    path = Chat().user("Hello").write(tmp_path)
    (path.parent.parent / ".project_root").unlink()
    (tmp_path / ".gemini" / "projects.json").write_text(text, encoding="utf-8")
    assert record_of(tmp_path, path).cwd is None


# -- files that are none -----------------------------------------------------------------------------------------------


@pytest.mark.fault("F10")
def test_what_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    """Gone since the scan, or no regular file any more: records are kept, and opening says so."""
    path = Chat().user("Hello").write(tmp_path)
    log = write_log(tmp_path, [log_entry("Hello")])
    units = [unit_at(tmp_path, path), unit_at(tmp_path, log)]
    path.unlink()
    os.mkfifo(path)
    log.unlink()
    for unit in units:
        found = GeminiCli().inspect(unit)
        assert (found.records, found.complete) == ((), False)
        with pytest.raises(TranscriptError):
            GeminiCli().open(unit, SessionRecord("x", START))


def test_problems_of_a_hostile_file_are_bounded(tmp_path: Path) -> None:
    """The first ones are kept, the rest counted."""
    chat = Chat().user("Hello")
    for _ in range(1_000):
        chat.raw(b"garbage\n")
    with opened(tmp_path, chat.write(tmp_path)) as transcript:
        assert len(parts_in(list(transcript.turns()))) == 1
        assert len(transcript.problems) == 101
        assert transcript.problems[-1].detail == "900 further problems"
