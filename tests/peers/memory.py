"""Histories in memory: a `SessionSource` whose sessions a test writes as turns."""

import dataclasses
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from acp_history_bridge.adapter import Command, Fingerprint, Problem, SessionRecord, Store, Unit
from acp_history_bridge.errors import BridgeError, CursorError, QueryError, TranscriptError
from acp_history_bridge.sessions import (
    Change,
    ChangeKind,
    Inclusion,
    Page,
    Session,
    SessionQuery,
    Snippet,
    TextIndexState,
    ToolSummary,
)
from acp_history_bridge.turns import Text, Turn, Usage

LONG_AGO = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def session(
    session_id: str = "made:1",
    title: str | None = "A title",
    *,
    updated_at: datetime = LONG_AGO,
    cwd: str = "/home/ada/demo",
    **facts: object,
) -> Session:
    """A session; `facts` are fields of its record."""
    native = session_id.partition(":")[2]
    record = dataclasses.replace(SessionRecord(native, updated_at, title=title), **facts)  # type: ignore[arg-type]  # any field
    fingerprint = Fingerprint(size=1, mtime_ns=int(updated_at.timestamp() * 1e9), inode=1)
    unit = Unit(Store("made", Path("/made")), Path("/made") / native, fingerprint)
    return Session(session_id, "made", unit, record, title, cwd)


def say(number: int, text: str | None = None) -> Turn:
    """A turn of one text; even numbers are the user's."""
    return Turn(f"m{number}", "agent" if number % 2 else "user", (Text(text or f"text {number}"),))


class MemoryTranscript:
    """Turns in a list that a test may extend; the first call yields all of them, later ones what is new."""

    def __init__(self, turns: Iterable[Turn], usage: Usage | None, left_out: int) -> None:
        self._turns = turns
        self._position = 0
        self.usage = usage
        self.left_out = left_out
        self.problems: Sequence[Problem] = ()
        self.closed = False

    def turns(self) -> Iterator[Turn]:
        """Yield what was not yielded before."""
        for number, turn in enumerate(self._turns):
            if number >= self._position:
                self._position = number + 1
                yield turn

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


class MemorySource:
    """A source over a dict of sessions, newest first."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.turns: dict[str, Iterable[Turn]] = {}
        self.opened: list[MemoryTranscript] = []
        self.active: frozenset[str] = frozenset()
        self.usage: Usage | None = None
        self.left_out = 0
        self.refusal: BridgeError | None = None
        self.decided: list[str] = []
        self.text_index: TextIndexState = "complete"
        self.before_page: Callable[[], None] = lambda: None
        self._listeners: list[MemoryObjectSendStream[tuple[Change, ...]]] = []

    def add(self, added: Session, turns: Iterable[Turn] = ()) -> Session:
        """Add a session."""
        self.sessions[added.id] = added
        self.turns[added.id] = turns
        return added

    def change(self, changed: Session, kind: ChangeKind = "changed") -> None:
        """Tell the agent that a session was added, changed or removed."""
        before = self.sessions.get(changed.id)
        if kind == "removed":
            self.sessions.pop(changed.id)
        else:
            self.sessions[changed.id] = changed
        for listener in self._listeners:
            listener.send_nowait((Change(kind, changed, before),))

    async def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page:
        """List sessions; the cursor is a position."""
        self.before_page()
        if cursor is not None and not cursor.isdigit():
            raise CursorError("unknown cursor")
        start = int(cursor or 0)
        if query.search.startswith("since:x"):
            raise QueryError("since:x is no time")
        found = sorted((item for item in self.sessions.values() if self._matches(item, query)), key=_order)
        end = start + limit
        shown = tuple(found[start:end])
        snippets = {item.id: Snippet(f"… {query.search} …", ((2, 2 + len(query.search)),)) for item in shown}
        return Page(
            shown,
            str(end) if end < len(found) else None,
            snippets if query.search else {},
            self.text_index if query.search else "off",
        )

    async def count(self, query: SessionQuery) -> int:
        """Count them."""
        return sum(1 for item in self.sessions.values() if self._matches(item, query))

    async def find(self, session_id: str) -> Session | None:
        """Look a session up."""
        return self.sessions.get(session_id)

    async def hide(self, session: Session) -> None:
        """Hide it for good."""
        self._store(session.id)
        hidden = dataclasses.replace(session, hidden=True, listed=False)
        self.change(session, "removed")
        self.sessions[session.id] = hidden

    async def archive(self, session: Session, *, archived: bool) -> None:
        """Put it away, or back."""
        self._store(session.id)
        self.change(dataclasses.replace(session, put_away=archived))

    async def set_title(self, session: Session, title: str) -> None:
        """Rename it."""
        self._store(session.id)
        self.change(dataclasses.replace(session, title=title))

    async def trash(self, session: Session) -> None:
        """Remove it, unless the test wants it to fail."""
        self._store(session.id)
        self.change(session, "removed")

    async def fork(self, session: Session) -> Session:
        """Copy it, unless the test wants it to fail."""
        self._store(session.id)
        record = dataclasses.replace(session.record, parent=session.record.native_id)
        copy = dataclasses.replace(session, id=f"{session.id}-fork", record=record)
        self.turns[copy.id] = self.turns[session.id]
        self.change(copy, "added")
        return copy

    def _store(self, session_id: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.decided.append(session_id)

    async def open(self, session: Session) -> MemoryTranscript:
        """Open a session."""
        if session.id not in self.turns:
            raise TranscriptError("the file has gone")
        self.opened.append(MemoryTranscript(self.turns[session.id], self.usage, self.left_out))
        return self.opened[-1]

    async def active_sessions(self) -> frozenset[str]:
        """What the test says."""
        return self.active

    def resume_command(self, session: Session) -> Command | None:
        """A made-up tool's command."""
        return Command(("made", "--resume", session.record.native_id), session.cwd)

    def tools(self) -> tuple[ToolSummary, ...]:
        """The one made-up tool."""
        return (ToolSummary("made", "Made Up", len(self.sessions)),)

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[MemoryObjectReceiveStream[tuple[Change, ...]]]:
        """Subscribe."""
        send, receive = anyio.create_memory_object_stream[tuple[Change, ...]](100)
        self._listeners.append(send)
        with send, receive:
            yield receive
        self._listeners.remove(send)

    def _matches(self, item: Session, query: SessionQuery) -> bool:
        """A search finds words of the title and of the turns."""
        turns = self.turns.get(item.id, ()) if query.search else ()
        said = [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]
        return (
            (query.cwd is None or str(query.cwd) == item.cwd)
            and (query.tools is None or item.tool in query.tools)
            and (query.since is None or item.updated_at >= query.since)
            and _included(query.hidden, flag=item.hidden)
            and _included(query.archived, flag=item.archived)
            and all(word.lower() in (item.title or "").lower() for word in query.words.split())
            and query.search.lower() in "\n".join([item.title or "", *said]).lower()
        )


def later(changed: Session, seconds: float = 60) -> Session:
    """The same session after more activity."""
    record = dataclasses.replace(changed.record, updated_at=changed.updated_at + timedelta(seconds=seconds))
    return dataclasses.replace(changed, record=record)


def _included(wanted: Inclusion, *, flag: bool) -> bool:
    return wanted == "include" or flag == (wanted == "only")


def _order(item: Session) -> tuple[float, str]:
    return (-item.updated_at.timestamp(), item.id)
