"""Browse sessions: what `session/new` gives, because clients cannot start without one.

A browse session is a small command line over the histories. Its id is good for ever: clients store it and load it after
a restart, and are welcomed again. Long answers come in pages; what `/more` shows next is all the state there is, and it
is forgotten with the process.
"""

import os
import shlex
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice

import anyio
from anyio import to_thread

from acp_history_bridge.adapter import Command
from acp_history_bridge.errors import CursorError, QueryError, TranscriptError
from acp_history_bridge.protocol import digest, wire
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Page, Session, SessionQuery, SessionSource
from acp_history_bridge.text import shorten
from acp_history_bridge.turns import Turn

__all__ = ["COMMANDS", "WELCOME", "Browser", "commands_update", "describe", "is_browse_id", "new_browse_id"]

_PREFIX = "browse:"
_PAGE = 20
_PAGE_TURNS = 100
_PAGE_CHARACTERS = 100_000
_BATCH_SECONDS = 0.05
_KEPT = 256

COMMANDS: tuple[tuple[str, str, str | None], ...] = (
    ("list", "List the latest sessions, or those whose title has all these words", "words of the title"),
    ("search", "Find sessions by what was said in them", 'words, "phrases", prefix*, tool:, cwd:, since:'),
    ("show", "Show a session's conversation", "session id"),
    ("more", "Show what follows the last answer", None),
    ("tools", "List the tools whose histories are read", None),
    ("hidden", "List the sessions that you hid", None),
    ("help", "Say what can be done here", None),
)

WELCOME = """\
This is the History Bridge: it lists and replays the sessions of the coding agents on this machine, and writes nothing.

- `/list` shows the latest sessions, `/list WORDS` those whose title has all these words.
- `/search WORDS` finds sessions by what was said in them; plain text does the same.
- `/show ID` shows a session's conversation, `/more` what follows a long answer.
- `/tools` names the tools whose histories are read, `/hidden` the sessions that you hid.

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


@dataclass(frozen=True, slots=True)
class _Listing:
    """A list from some point on."""

    query: SessionQuery
    nothing: str
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class _Showing:
    """A conversation from some turn on."""

    session: Session
    start: int = 0


_Wanted = _Listing | _Showing | str


class Browser:
    """Answers the prompts of one client's browse sessions with Markdown."""

    def __init__(self) -> None:
        self._more: dict[str, _Listing | _Showing] = {}
        self._commands: dict[str, Callable[[str, SessionSource], _Wanted]] = {
            "/help": lambda _words, _source: WELCOME,
            "/tools": lambda _words, source: _tools(source),
            "/list": lambda words, _source: _Listing(SessionQuery(words=words), _no_title(words)),
            "/search": lambda words, _source: _search(words),
            "/hidden": lambda _words, _source: _Listing(SessionQuery(hidden="only"), "No session is hidden."),
        }

    async def answer(self, session_id: str, prompt: str, source: SessionSource) -> AsyncGenerator[str, None]:
        """Answer a prompt, in pieces."""
        wanted = await self._wanted(session_id, prompt, source)
        if isinstance(wanted, str):
            yield wanted
            return
        self._more.pop(session_id, None)
        if isinstance(wanted, _Listing):
            pieces = self._list(session_id, wanted, source)
        else:
            pieces = self._show(session_id, wanted, source)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def _wanted(self, session_id: str, prompt: str, source: SessionSource) -> _Wanted:
        command, _, argument = prompt.partition(" ")
        argument = argument.strip()
        if command == "/more":
            return self._more.get(session_id, "There is nothing more.")
        if command == "/show":
            session = await source.find(argument) if argument else None
            no_such = f"There is no session `{shorten(argument, 200)}`. `/list` shows the ids."
            return no_such if session is None else _Showing(session)
        if command in self._commands:
            return self._commands[command](argument, source)
        if command.startswith("/"):
            return f"There is no command `{shorten(command, 50)}`.\n\n{WELCOME}"
        return _search(prompt) if prompt else WELCOME

    async def _list(self, session_id: str, wanted: _Listing, source: SessionSource) -> AsyncGenerator[str, None]:
        try:
            page = await source.page(wanted.query, _PAGE, wanted.cursor)
        except (QueryError, CursorError) as error:
            yield f"This cannot be searched for: {error}."
            return
        yield "\n".join(_lines(page, source)) if page.sessions else wanted.nothing
        if page.text_index == "building" and wanted.query.search:
            yield "\n\nThe full-text index is still being built; there may be more."
        if page.next_cursor is not None:
            self._keep(session_id, _Listing(wanted.query, wanted.nothing, page.next_cursor))
            yield "\n\n`/more` shows what follows."

    async def _show(self, session_id: str, wanted: _Showing, source: SessionSource) -> AsyncGenerator[str, None]:
        if wanted.start == 0:
            yield describe(wanted.session, source)
        try:
            transcript = await source.open(wanted.session)
        except TranscriptError as error:
            yield f"\n\nIt cannot be read: {error}."
            return
        try:
            reading = _Reading(islice(transcript.turns(), wanted.start, None))
            while not reading.done:
                for paragraph in await to_thread.run_sync(reading.some):
                    yield f"\n\n{paragraph}"
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(transcript.close)
        if reading.more:
            self._keep(session_id, _Showing(wanted.session, wanted.start + reading.turns))
            yield "\n\n`/more` shows what follows."

    def _keep(self, session_id: str, more: _Listing | _Showing) -> None:
        self._more[session_id] = more
        if len(self._more) > _KEPT:
            del self._more[next(iter(self._more))]


class _Reading:
    """One page of a conversation, read a moment at a time so that it can be cancelled.

    Attributes:
        turns: How many turns have been read.
        done: The page is complete, or the conversation at its end.
        more: There is at least one turn after the page.
    """

    def __init__(self, turns: Iterator[Turn]) -> None:
        self._turns = turns
        self._shown = 0
        self._characters = 0
        self.turns = 0
        self.done = False
        self.more = False

    def some(self) -> list[str]:
        """The paragraphs of the next turns."""
        paragraphs: list[str] = []
        deadline = time.monotonic() + _BATCH_SECONDS
        for turn in self._turns:
            if self._shown >= _PAGE_TURNS or self._characters >= _PAGE_CHARACTERS:
                self.done = self.more = True
                return paragraphs
            found = list(digest.paragraphs([turn]))
            paragraphs += found
            self.turns += 1
            self._shown += bool(found)
            self._characters += sum(map(len, found))
            if time.monotonic() > deadline:
                return paragraphs
        self.done = True
        return paragraphs


def _search(words: str) -> _Wanted:
    if not words:
        return "What is to be found? `/search WORDS`"
    return _Listing(SessionQuery(search=words), f"Nothing was found for “{shorten(words, 200)}”.")


def _no_title(words: str) -> str:
    return f"No session has “{shorten(words, 200)}” in its title." if words else "There are no sessions yet."


def _lines(page: Page, source: SessionSource) -> Iterator[str]:
    titles = {tool.name: tool.title for tool in source.tools()}
    for session in page.sessions:
        when = session.updated_at.strftime("%Y-%m-%d %H:%M UTC")
        yield f"- **{session.title or 'Untitled'}**  "
        yield f"  {titles.get(session.tool, session.tool)}, {when}, `{session.cwd}`  "
        if (snippet := page.snippets.get(session.id)) is not None:
            yield f"  “{snippet.text}”  "
        command = source.resume_command(session)
        how = f"`/show {session.id}`" if command is None else f"`/show {session.id}` or `{_shell_line(command)}`"
        yield f"  {how}; `bridge unhide {session.id}` shows it again" if session.hidden else f"  {how}"


def _tools(source: SessionSource) -> str:
    lines = [f"- **{tool.title}** (`{tool.name}`): {tool.sessions:,} sessions" for tool in source.tools()]
    return "\n".join(lines) or "No tool is being read; the setting `tools` may be too narrow."


def describe(session: Session, source: SessionSource) -> str:
    """What a session is, and how a person goes on with it."""
    tool = next((tool.title for tool in source.tools() if tool.name == session.tool), session.tool)
    about = f"a record of a {tool} session in `{session.cwd}`" if session.cwd_known else f"a record of a {tool} session"
    told = f"This is {about}, last active {session.updated_at.strftime('%Y-%m-%d %H:%M UTC')}."
    command = source.resume_command(session)
    if command is None:
        return told
    return f"{told} To continue it, run this in a terminal:\n\n```sh\n{_shell_line(command)}\n```"


def _shell_line(command: Command) -> str:
    line = shlex.join(command.argv)
    return line if command.cwd is None else f"cd {shlex.quote(command.cwd)} && {line}"
