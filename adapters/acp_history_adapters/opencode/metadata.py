"""What a list shows of a session, from its stored info alone wherever that is enough.

Policy: the title is the stored one; opencode's default ("New session - <time>") says nothing, so the first prompt
takes its place. `opencode run` stores its prompt in double quotes, which a title drops and a replay keeps. Messages
are read only for what the info lacks: a default title, or the working directory (0.x does not store it).
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

from acp_history_adapters.opencode.storage import Message, Reader
from acp_history_bridge.adapter import SessionRecord
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.values import JsonMap, boolean, mapping, string

__all__ = ["RANKS", "session_record"]

RANKS = {"database": 3, "storage": 2, "project": 1}

_DEFAULT_TITLE = re.compile(r"(?:new|child) session - \d{4}-\d{2}-\d{2}T", re.IGNORECASE)
_FORK = re.compile(r" \(fork #\d+\)$")
_LOOK_AT = 20  # messages at most; the first prompt and the first answer come first

_Found = TypeVar("_Found")


def session_record(reader: Reader, info: JsonMap, *, modified: datetime, rank: int, orphan: bool) -> SessionRecord:
    """Describe a session.

    Args:
        reader: For what the info lacks.
        info: The session as stored.
        modified: When the unit was written last.
        rank: How new the storage is.
        orphan: The session's parent does not exist (any more), so nothing would show this one if the list did not.
    """
    native_id = string(info.get("id"))
    times = mapping(info.get("time"))
    title = string(info.get("title"))
    parent = string(info.get("parentID")) or None
    if not title or _DEFAULT_TITLE.match(title):
        title = _first(reader, native_id, _prompt_of) or title
    return SessionRecord(
        native_id,
        min(parse_time(times.get("updated")) or modified, modified),
        rank=rank,
        title=title or None,
        cwd=string(info.get("directory")) or _first(reader, native_id, _cwd_of) or None,
        created_at=parse_time(times.get("created")),
        kind="subagent" if parent else "fork" if _FORK.search(title) else "main",
        listed=parent is None or orphan,
        parent=parent,
        archived=parse_time(times.get("archived")) is not None,
        model=string(mapping(info.get("model")).get("id")) or None,
        mode=string(info.get("agent")) or None,
        tool_version=string(info.get("version")) or None,
    )


def _first(reader: Reader, session_id: str, find: Callable[[Message], _Found]) -> _Found | None:
    return next((found for message in _opening(reader, session_id) if (found := find(message))), None)


def _opening(reader: Reader, session_id: str) -> Iterator[Message]:
    for head in reader.heads(session_id)[:_LOOK_AT]:
        if message := reader.message(session_id, head):
            yield message


def _prompt_of(message: Message) -> str:
    """The first text in a message that its user wrote, without the quotes of `opencode run`; empty if there is none."""
    if message.data.get("role") != "user":
        return ""
    for part in message.parts:
        if part.data.get("type") == "text" and not boolean(part.data.get("synthetic")):
            text = string(part.data.get("text")).strip()
            quoted = len(text) > 2 and text[0] == text[-1] == '"'
            if text:
                return text[1:-1] if quoted else text
    return ""


def _cwd_of(message: Message) -> str:
    return string(mapping(message.data.get("path")).get("cwd"))
