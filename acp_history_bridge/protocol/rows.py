"""Sessions as rows of a list.

A row is the protocol's `SessionInfo`; what that has no field for is in `_meta["acp-history-bridge"]`. Three kinds of
clients get more, each only what it has asked for: the older chat history proposal's fields beside the protocol's, the
`_meta.jetbrains.air` of AIR's session index, and `archived` while the unstable methods are announced.
"""

from dataclasses import dataclass

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.wire import META_KEY, Json
from acp_history_bridge.sessions import Session, Snippet, plain_id
from acp_history_bridge.timestamps import format_time

__all__ = ["RowStyle", "row"]

_DIRECTORIES_LIMIT = 100


@dataclass(frozen=True, slots=True)
class RowStyle:
    """What rows have beside the protocol's own.

    Attributes:
        older: The fields of the older proposal.
        air: The `_meta` of AIR's session index.
        archived: The unstable field of that name.
    """

    older: bool = False
    air: bool = False
    archived: bool = False


def row(
    session: Session, style: RowStyle, *, active: bool, snippet: Snippet | None = None, messages: int | None = None
) -> Json:
    """A session as a list shows it.

    Args:
        session: The session.
        style: What the client wants to see.
        active: A process of its tool has it open.
        snippet: What a search found in it.
        messages: How many messages it has, if somebody counted them.
    """
    messages = session.record.message_count if messages is None else messages
    return {
        **_info(session),
        **({"archived": session.archived} if style.archived else {}),
        **(_older(session, messages) if style.older else {}),
        "_meta": {
            META_KEY: {**_facts(session, active=active, messages=messages), **_found(snippet)},
            **({"jetbrains": {"air": _air(session, active=active)}} if style.air else {}),
        },
    }


def _info(session: Session) -> Json:
    directories = [path for path in session.record.additional_directories[:_DIRECTORIES_LIMIT] if path.startswith("/")]
    return wire.present(
        {
            "sessionId": session.id,
            "cwd": session.cwd,
            "title": session.title or None,
            "updatedAt": format_time(session.updated_at),
            "additionalDirectories": directories or None,
        }
    )


def _facts(session: Session, *, active: bool, messages: int | None) -> Json:
    record = session.record
    return wire.present(
        {
            "tool": session.tool,
            "createdAt": _created_at(session),
            "messageCount": messages,
            "model": record.model,
            "branch": record.branch,
            "parent": _related(session, record.parent),
            "continuedIn": _related(session, record.continued_in),
            "mode": record.mode,
            "archived": session.archived or None,
            "active": active or None,
            "headless": record.headless or None,
            "hidden": session.hidden or None,
            "cwdKnown": None if session.cwd_known else False,
        }
    )


def _older(session: Session, messages: int | None) -> Json:
    return wire.present(
        {
            "createdAt": _created_at(session),
            "lastModified": format_time(session.updated_at),
            "source": session.tool,
            "messageCount": messages,
        }
    )


def _air(session: Session, *, active: bool) -> Json:
    record = session.record
    return wire.present(
        {
            "archived": session.archived,
            "model": record.model,
            "state": "running" if active else "idle",
            "forkedFrom": _related(session, record.parent),
        }
    )


def _found(snippet: Snippet | None) -> Json:
    if snippet is None:
        return {}
    return {"snippet": {"text": snippet.text, "marks": [list(mark) for mark in snippet.marks]}}


def _created_at(session: Session) -> str | None:
    return None if session.record.created_at is None else format_time(session.record.created_at)


def _related(session: Session, native_id: str | None) -> str | None:
    """The wire id of another session of the same tool."""
    return None if native_id is None else plain_id(session.id.partition(":")[0], native_id)
