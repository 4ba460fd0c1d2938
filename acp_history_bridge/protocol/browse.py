"""Browse sessions: what `session/new` gives, because clients cannot start without one.

A browse session is a small command line over the histories. It has no state, so its id is good for ever: clients store
it and load it after a restart, and are welcomed again.
"""

import os

from acp_history_bridge.adapter import Command
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Session, SessionQuery, SessionSource
from acp_history_bridge.text import shorten

__all__ = ["COMMANDS", "WELCOME", "browse", "commands_update", "describe", "is_browse_id", "new_browse_id"]

_PREFIX = "browse:"
_PAGE = 20

COMMANDS: tuple[tuple[str, str, str | None], ...] = (
    ("list", "List the latest sessions, or those whose title has all these words", "words of the title"),
    ("show", "Show a session's conversation", "session id"),
    ("tools", "List the tools whose histories are read", None),
    ("help", "Say what can be done here", None),
)

WELCOME = """\
This is the History Bridge: it lists and replays the sessions of the coding agents on this machine, and writes nothing.

- `/list` shows the latest sessions, `/list WORDS` those whose title has all these words; plain text does the same.
- `/show ID` shows a session's conversation.
- `/tools` names the tools whose histories are read.

Your editor's own session list shows the same sessions, and opening one there replays it in full."""


def new_browse_id() -> str:
    """A new session's id."""
    return f"{_PREFIX}{os.urandom(16).hex()}"


def is_browse_id(session_id: str) -> bool:
    """Whether an id is a browse session's, made in this process or long ago."""
    return session_id.startswith(_PREFIX)


def commands_update() -> Json:
    """The slash commands for the client's menu."""
    return wire.available_commands(COMMANDS)


async def browse(prompt: str, source: SessionSource) -> str | Session:
    """Answer a prompt with Markdown, or with the session whose conversation is to be shown."""
    command, _, argument = prompt.partition(" ")
    argument = argument.strip()
    if command in ("/help", ""):
        return WELCOME
    if command == "/tools":
        return _tools(source)
    if command == "/show":
        session = await source.find(argument) if argument else None
        return session or f"There is no session `{shorten(argument, 200)}`. `/list` shows the ids."
    if command == "/list":
        return await _list(argument, source)
    if command.startswith("/"):
        return f"There is no command `{shorten(command, 50)}`.\n\n{WELCOME}"
    return await _list(prompt, source)


async def _list(words: str, source: SessionSource) -> str:
    page = await source.page(SessionQuery(words=words), _PAGE)
    if not page.sessions:
        return f"No session has “{shorten(words, 200)}” in its title." if words else "There are no sessions yet."
    titles = {tool.name: tool.title for tool in source.tools()}
    lines = [_line(session, titles.get(session.tool, session.tool)) for session in page.sessions]
    if page.next_cursor is not None:
        lines.append(f"\nThese are the latest {_PAGE}; words after `/list` narrow it down.")
    return "\n".join(lines)


def _line(session: Session, tool: str) -> str:
    when = session.updated_at.strftime("%Y-%m-%d %H:%M UTC")
    return f"- **{session.title or 'Untitled'}**  \n  {tool}, {when}, `{session.cwd}`  \n  `/show {session.id}`"


def _tools(source: SessionSource) -> str:
    lines = [f"- **{tool.title}** (`{tool.name}`): {tool.sessions:,} sessions" for tool in source.tools()]
    return "\n".join(lines) or "No tool is being read; the setting `tools` may be too narrow."


def describe(session: Session, tool: str, command: Command | None) -> str:
    """What a session is, and how a person goes on with it."""
    about = f"a record of a {tool} session in `{session.cwd}`" if session.cwd_known else f"a record of a {tool} session"
    how = "" if command is None else _how(command)
    return f"This is {about}, last active {session.updated_at.strftime('%Y-%m-%d %H:%M UTC')}. {how}".rstrip()


def _how(command: Command) -> str:
    import shlex

    line = shlex.join(command.argv)
    if command.cwd is not None:
        line = f"cd {shlex.quote(command.cwd)} && {line}"
    return f"To continue it, run this in a terminal:\n\n```sh\n{line}\n```"
