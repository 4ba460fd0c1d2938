"""A fork of a chat, which Gemini CLI itself has no word for: a copy under a new session id, in the form of lines.

Policy: lines are copied as they are but for those that name the session, so the copy folds to the same messages, of the
same age, as the original. A chat of one document (up to 0.38) is written as lines, which is what 0.40 and later make of
it when they resume it. The summary says that it is a fork, and the header of which session; the tool keeps both.
"""

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from acp_history_adapters.gemini_cli.document import Document, is_document, root_fields
from acp_history_adapters.gemini_cli.fold import is_header
from acp_history_adapters.gemini_cli.paths import LOG, short_id
from acp_history_adapters.gemini_cli.records import Problems, Source, message_id
from acp_history_bridge.adapter import Fork, SessionRecord, Unit
from acp_history_bridge.errors import ForkError
from acp_history_bridge.files import open_regular
from acp_history_bridge.forking import encode_line, fork_title
from acp_history_bridge.jsonl import Line, decode, read_lines
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["fork_chat"]


def fork_chat(unit: Unit, record: SessionRecord) -> Fork:
    """A new chat beside the original.

    Raises:
        ForkError: Only its prompts are known.
        TranscriptError: It is gone.
    """
    if unit.path.name == LOG:
        raise ForkError("only the prompts of this session are kept, which Gemini CLI cannot go on from")
    with open_regular(unit.path) as descriptor:
        whole = is_document(descriptor)
    native_id = str(uuid.uuid4())
    name = f"session-{datetime.now(UTC):%Y-%m-%dT%H-%M}-{short_id(native_id)}.jsonl"
    content = _from_document(unit, record, native_id) if whole else _from_lines(unit, record, native_id)
    return Fork(native_id, unit.path.with_name(name), content)


def _from_lines(unit: Unit, record: SessionRecord, native_id: str) -> Iterator[bytes]:
    headed = False
    with open_regular(unit.path) as descriptor:
        for line in read_lines(descriptor, end=os.fstat(descriptor).st_size):
            data = _data(line)
            if message_id(data) and data.endswith(b"}"):
                yield data + b"\n"
            elif (fields := _decoded(data)) is not None:
                yield _renamed(fields, data, record, native_id)
                headed = headed or is_header(fields)
    if not headed:
        raise ForkError("this chat does not say which project it belongs to")
    yield _ending(record)


def _data(line: Line) -> bytes:
    if line.data is None:
        raise ForkError(f"a record of {line.size >> 20} MiB is too large to be copied")
    return line.data.strip()


def _decoded(data: bytes) -> JsonMap | None:
    """The record; None for what is none, such as a line that is still being written."""
    try:
        value = decode(data)
    except ValueError:
        return None
    return mapping(value) or None


def _renamed(fields: JsonMap, data: bytes, record: SessionRecord, native_id: str) -> bytes:
    if is_header(fields):
        return encode_line({**fields, **_identity(record, native_id)})
    changes = mapping(fields.get("$set"))
    if "sessionId" in changes and not isinstance(fields.get("id"), str):
        return encode_line({**fields, "$set": {**changes, "sessionId": native_id}})
    return data + b"\n"


def _identity(record: SessionRecord, native_id: str) -> JsonMap:
    return {"sessionId": native_id, "forkedFrom": {"sessionId": record.native_id}}


def _from_document(unit: Unit, record: SessionRecord, native_id: str) -> Iterator[bytes]:
    with open_regular(unit.path) as descriptor:
        fields = root_fields(descriptor) or {}
        if not string(fields.get("projectHash")):
            raise ForkError("this chat is not whole, or does not say which project it belongs to")
        kept = {name: value for name, value in fields.items() if name != "messages"}
        yield encode_line({**kept, **_identity(record, native_id)})
        document = Document(Source(unit.path, descriptor), Problems())
        document.advance()
        for key, ref in document.view():
            if message := document.message(key, ref):
                yield encode_line({"id": key, **{name: message[name] for name in message if name != "id"}})
    yield _ending(record)


def _ending(record: SessionRecord) -> bytes:
    return encode_line({"$set": {"summary": fork_title(record), "lastUpdated": format_time(datetime.now(UTC))}})
