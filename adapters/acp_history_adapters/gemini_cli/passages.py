"""What the text index holds of a transcript; of JSON Lines, from the middle on.

The lines are taken one by one, not folded: text that was rewound is found, too. A rebuilt message list repeats what
stands in lines before it, so from the middle on only its summaries are new. Unless output is wanted, a call is only
asked what it is about, which costs a fraction of reading its outcome.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

from acp_history_adapters.gemini_cli.document import Document
from acp_history_adapters.gemini_cli.messages import (
    ACKNOWLEDGEMENT,
    message_type,
    read_agent,
    read_user,
    snapshot_of,
)
from acp_history_adapters.gemini_cli.records import Problems, Source, array_of, key_of, object_of
from acp_history_adapters.gemini_cli.replay import Record, Replay
from acp_history_adapters.gemini_cli.tools import Surroundings, subject_of
from acp_history_bridge.adapter import Passage
from acp_history_bridge.jsonl import Line, decode, read_at, select_lines
from acp_history_bridge.search.passages import passages_of, tool_passage
from acp_history_bridge.turns import Text, Turn
from acp_history_bridge.values import JsonMap, mapping, maps, string

__all__ = ["document_passages", "line_passages"]

_RESPONSE = b'"content":[{"functionResponse":'
_TIME_ONLY = b'{"$set":{"lastUpdated":"'
_TODOS = "write_todos"
# Larger documents are read message by message, which takes several times as long but little memory.
_DECODED_WHOLE = 4 * 1024 * 1024


def document_passages(path: Path, descriptor: int, cwd: str | None) -> Iterator[Passage]:
    """Yield the passages of a document without output."""
    for record in _document_records(path, descriptor):
        yield from _subjects(record, cwd)


def _document_records(path: Path, descriptor: int) -> Iterator[Record]:
    size = os.fstat(descriptor).st_size
    if size <= _DECODED_WHOLE and (messages := _array_in(read_at(descriptor, 0, size))) is not None:
        yield from (Record("", mapping(message)) for message in messages)
        return
    document = Document(Source(path, descriptor), Problems())
    document.advance()
    yield from (Record(key, document.message(key, ref) or {}) for key, ref in document.view())


def _array_in(data: bytes) -> Sequence[object] | None:
    try:
        return array_of(mapping(decode(data)))
    except ValueError:
        return None


def line_passages(descriptor: int, cwd: str | None, since: int, *, output: bool) -> Iterator[Passage]:
    """Yield the passages of all whole lines from byte `since` on, each text once."""
    passages = partial(_with_output, _replay(cwd)) if output else partial(_subjects, cwd=cwd)
    seen: set[int] = set()
    for line in select_lines(descriptor, since, _is_message if output else _is_said):
        if line.pending:
            return
        for record in _records(line, from_start=not since):
            yield from _new(passages, record, seen, line.end)


def _is_message(head: bytes) -> bool:
    return not head.startswith(_TIME_ONLY)


def _is_said(head: bytes) -> bool:
    return not head.startswith(_TIME_ONLY) and _RESPONSE not in head[:300]


def _new(
    passages: Callable[[Record], Iterator[Passage]], record: Record, seen: set[int], end: int
) -> Iterator[Passage]:
    for passage in passages(record):
        number = hash((record.key, passage.kind, passage.text))
        if number not in seen:
            seen.add(number)
            yield Passage(passage.kind, passage.text, end)


def _records(line: Line, *, from_start: bool) -> Iterator[Record]:
    try:
        value = object_of(decode(line.data or b"")) or {}
    except ValueError:
        return
    if isinstance(key := value.get("id"), str):
        yield Record(key, value)
        return
    for place, item in enumerate(array_of(value) or ()):
        message = mapping(item)
        if from_start or snapshot_of(message) is not None:
            yield Record(key_of(message, place), message)


def _replay(cwd: str | None) -> Replay:
    nothing = Surroundings(cwd, spilled=lambda _: None, subagent=lambda _id, _name: None)
    return Replay(nothing, dropped_call=lambda _: None, unknown=lambda _: None)


def _with_output(replay: Replay, record: Record) -> Iterator[Passage]:
    return passages_of((turn for _, turn in replay.turns([record])), output=True)


def _subjects(record: Record, cwd: str | None) -> Iterator[Passage]:
    message = record.message
    match message_type(message):
        case "user":
            yield from passages_of([Turn(record.key, "user", tuple(read_user(message, cwd).parts))])
        case "gemini":
            calls = yield from _spoken(message)
            for call in (*maps(message.get("toolCalls")), *calls):
                if string(call.get("name")) != _TODOS:
                    yield tool_passage(*subject_of(call, cwd))
        case _:
            return


def _spoken(message: JsonMap) -> Generator[Passage, None, list[JsonMap]]:
    """Yield what the agent said; the calls that are only parts of the content are returned."""
    content = message.get("content")
    if isinstance(content, str):  # nearly always, and then nothing else needs to be read
        if content.strip() and content != ACKNOWLEDGEMENT:
            yield Passage("message", content)
        return []
    agent = read_agent(message)
    if agent.text != ACKNOWLEDGEMENT:
        yield from (Passage("message", part.text) for part in agent.parts if isinstance(part, Text))
    return agent.calls
