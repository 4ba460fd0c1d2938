"""Opening a session for `show` and `export`."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager

from acp_history_bridge.adapter import Command, Transcript
from acp_history_bridge.cli.rows import Row, as_json
from acp_history_bridge.export.conversation import Conversation
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session

__all__ = ["open_conversation", "resume_command", "shell_line"]


@contextmanager
def open_conversation(library: Library, session: Session) -> Generator[tuple[Conversation, Transcript]]:
    """Open a session; its turns can be read once.

    Raises:
        TranscriptError: It is gone or cannot be read.
    """
    transcript = library.open(session)
    try:
        yield _conversation(library, session, transcript), transcript
    finally:
        transcript.close()


def _conversation(library: Library, session: Session, transcript: Transcript) -> Conversation:
    command = resume_command(library, session)
    return Conversation(
        id=session.id,
        title=session.title or "Untitled",
        tool=library.adapter(session.tool).title,
        turns=transcript.turns(),
        cwd=session.cwd if session.cwd_known else None,
        updated_at=session.updated_at,
        model=session.record.model,
        branch=session.record.branch,
        resume=None if command is None else shell_line(command),
        row=as_json(Row(session, session.record.message_count)),
    )


def resume_command(library: Library, session: Session) -> Command | None:
    """How its own tool goes on with a session; None where it cannot."""
    return library.adapter(session.tool).resume_command(session.record)


def shell_line(command: Command) -> str:
    """A command as a line for a POSIX shell."""
    line = shlex.join(command.argv)
    return line if command.cwd is None else f"cd {shlex.quote(command.cwd)} && {line}"
