"""One session as the terminal shows it, in each of the forms that programs may rely on (docs/cli.md)."""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from acp_history_bridge.cli.output import terminal_line
from acp_history_bridge.counting import count_messages
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.timestamps import format_time

__all__ = ["Row", "as_json", "as_line", "rows_of"]

_log = logging.getLogger(__name__)

# Counting messages means reading a transcript. Whoever lists ten gigabytes did not ask for that: the newest sessions
# are counted until their sizes add up to this.
_BYTES_TO_COUNT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """A session and how many messages it has, where that is known or cheap to find out."""

    session: Session
    messages: int | None


def rows_of(library: Library, sessions: Iterable[Session]) -> Iterator[Row]:
    """Add the number of messages to each session, within a fixed budget of bytes to read."""
    budget = _BYTES_TO_COUNT
    for session in sessions:
        messages, size = session.record.message_count, session.unit.fingerprint.size
        if messages is None and size <= budget:
            budget -= size
            messages = _count(library, session)
        yield Row(session, messages)


def _count(library: Library, session: Session) -> int | None:
    """Count the messages of one session; whatever goes wrong with it costs this number and not the list."""
    try:
        with closing(library.open(session)) as transcript:
            return count_messages(transcript.turns())
    except TranscriptError:  # it went away since the scan
        return None
    except Exception as error:  # noqa: BLE001 - adapters can be third parties' code
        # Only the kind of error: its text can quote the transcript.
        _log.error("%s: counting its messages failed: %s", session.id, type(error).__name__)
        return None


def as_json(row: Row) -> dict[str, object]:
    """The documented JSON form; what is unknown is left out, never null."""
    session, record = row.session, row.session.record
    fields: dict[str, object] = {
        "id": session.id,
        "tool": session.tool,
        "title": session.title,
        "cwd": session.cwd,
        "cwdKnown": session.cwd_known,
        "createdAt": record.created_at and format_time(record.created_at),
        "updatedAt": format_time(session.updated_at),
        "messageCount": row.messages,
        "archived": record.archived,
        "branch": record.branch,
        "model": record.model,
        "path": os.fspath(session.unit.path),
    }
    return {
        name: replace_surrogates(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


def as_line(row: Row) -> str:
    """The documented plain form: fields separated by tabs, `-` for what is unknown, the title last."""
    session = row.session
    fields = (
        session.id,
        session.tool,
        format_time(session.updated_at),
        "-" if row.messages is None else str(row.messages),
        session.cwd,
        session.title or "-",
    )
    return "\t".join(map(terminal_line, fields))
