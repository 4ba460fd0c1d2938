"""Sessions as the core knows them: an adapter's record with a wire id, a resolved directory and a clean title.

A wire id is `prefix:native-id`. Two sessions that share a native id (a mirrored directory, two stores) differ by a
suffix made from where they lie: `prefix:native-id~1a2b3c4d`. The session with the best claim also answers to the plain
id; every suffixed id stays valid for ever, whether or not the plain one is contested. Ids are looked up, never joined
to paths.
"""

import hashlib
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from acp_history_bridge.adapter import Command, SessionRecord, Store, Transcript, Unit

if TYPE_CHECKING:  # anyio must not be loaded by the terminal commands, which are synchronous
    from anyio.streams.memory import MemoryObjectReceiveStream

__all__ = [
    "Change",
    "ChangeKind",
    "Inclusion",
    "Page",
    "Session",
    "SessionQuery",
    "SessionSource",
    "Snippet",
    "TextIndexState",
    "ToolSummary",
    "plain_id",
    "suffixed_id",
]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_ID_LIMIT = 200
_SUFFIX_LENGTH = 8

ChangeKind = Literal["added", "changed", "removed"]
Inclusion = Literal["exclude", "include", "only"]
TextIndexState = Literal["complete", "building", "off"]


def plain_id(prefix: str, native_id: str) -> str:
    """The wire id of a session whose native id nobody contests; file-name safe but for its colon."""
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in _bytes(match[0])), native_id)
    if len(safe) > _ID_LIMIT:
        safe = f"{safe[: _ID_LIMIT - 33]}-{hashlib.sha256(_bytes(native_id)).hexdigest()[:32]}"
    return f"{prefix}:{safe}"


def suffixed_id(prefix: str, native_id: str, store: Store, origin: str) -> str:
    """The wire id that also says where the session lies."""
    place = hashlib.sha256(_bytes(f"{store.root}\0{origin}")).hexdigest()[:_SUFFIX_LENGTH]
    return f"{plain_id(prefix, native_id)}~{place}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


@dataclass(frozen=True, slots=True)
class Session:
    """One session of any tool, as lists show it.

    Attributes:
        id: The wire id.
        tool: Name of its adapter.
        unit: Where its best copy lies, with the fingerprint it was last inspected at.
        record: What the adapter said of that copy.
        title: One line, at most 200 characters; the user's own, else the tool's or the first prompt's, if any.
        cwd: Absolute; the home directory when unknown.
        cwd_known: Whether `cwd` is the session's own.
        hidden: The user does not want to see it in lists.
        put_away: The user archived it in the bridge.
        listed: Whether lists show it: not hidden, nor made by a program while those are not wanted.
    """

    id: str
    tool: str
    unit: Unit
    record: SessionRecord
    title: str | None
    cwd: str
    cwd_known: bool = True
    hidden: bool = False
    put_away: bool = False
    listed: bool = True

    @property
    def updated_at(self) -> datetime:
        """Time of the last activity; what lists are ordered by."""
        return self.record.updated_at

    @property
    def archived(self) -> bool:
        """Put away, in the bridge or in its own tool."""
        return self.put_away or self.record.archived


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """Which sessions a list shows; newest activity first, ties by id.

    Attributes:
        cwd: Only this very directory, compared after normalising both sides (trailing slash, `.` parts, links).
        tools: Only these adapters; None for all.
        below: Only sessions of this directory or of one below it.
        since: Only sessions with activity at or after this time.
        words: Only sessions whose title contains every one of these blank-separated words, in any case.
        search: Only sessions that a full-text query finds (`acp_history_bridge.search.query`), best match first.
        hidden: What to do with sessions that the user hid.
        archived: What to do with archived ones.
    """

    cwd: Path | None = None
    tools: frozenset[str] | None = None
    below: Path | None = None
    since: datetime | None = None
    words: str = ""
    search: str = ""
    hidden: Inclusion = "exclude"
    archived: Inclusion = "include"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of what was said, on one line; `marks` are the start and end of each match in it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions.

    Attributes:
        next_cursor: Continues after them; None at the end.
        snippets: For a search, what was found in which session, by wire id; a match of the title alone has none.
        text_index: For a search, whether everything that was said could be searched: `building` is not yet, and `off`
            is titles only.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None = None
    snippets: Mapping[str, Snippet] = field(default_factory=dict[str, Snippet])
    text_index: TextIndexState = "off"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a session. One that lists leave out (`listed` is False) is reported, too: it may be open.

    Attributes:
        session: As it is now; for a removed one, as it was last.
        before: As it was, for a changed one.
    """

    kind: ChangeKind
    session: Session
    before: Session | None = None


@dataclass(frozen=True, slots=True)
class ToolSummary:
    """One tool whose histories are read.

    Attributes:
        name: The adapter's name, as filters take it.
        title: As people write it.
        sessions: How many of its sessions are listed, as far as is known now.
    """

    name: str
    title: str
    sessions: int


class SessionSource(Protocol):
    """What the agent front-end asks of the index; implemented by `acp_history_bridge.history.History`."""

    async def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page:
        """List sessions, as complete as a list needs to be even while the first scan still runs.

        Raises:
            CursorError: The cursor was not made by this process for this very query.
            QueryError: `query.search` has a filter that makes no sense.
        """
        ...

    async def count(self, query: SessionQuery) -> int:
        """How many sessions all pages hold together; waits for the first scan.

        Raises:
            QueryError: As `page`.
        """
        ...

    async def find(self, session_id: str) -> Session | None:
        """Look a wire id up, listed or not; waits for the first scan before it says that there is none."""
        ...

    async def hide(self, session: Session) -> None:
        """Leave a session out of every list from now on; its transcript stays as it is.

        Raises:
            IndexStoreError: It could not be stored.
        """
        ...

    async def archive(self, session: Session, *, archived: bool) -> None:
        """Put a session away in the bridge, or take that back; what its tool thinks of it stays.

        Raises:
            IndexStoreError: It could not be stored.
        """
        ...

    async def set_title(self, session: Session, title: str) -> None:
        """Give a session a title that no generated one replaces.

        Raises:
            IndexStoreError: It could not be stored.
        """
        ...

    async def trash(self, session: Session) -> None:
        """Move the files that belong to this session alone to the desktop's trash.

        Raises:
            BridgeError: They cannot be moved; says why.
        """
        ...

    async def fork(self, session: Session) -> Session:
        """Make a new session of the same tool that goes on from where this one ends; this one stays as it is.

        Raises:
            BridgeError: The tool's format does not allow it, or it could not be written; says why.
        """
        ...

    async def open(self, session: Session) -> Transcript:
        """Open a session for reading; the transcript's methods block and belong into a worker thread.

        Raises:
            TranscriptError: It has gone or cannot be read.
        """
        ...

    async def active_sessions(self) -> frozenset[str]:
        """Wire ids of the sessions that a running process of their tool has open, as far as the tools tell."""
        ...

    def resume_command(self, session: Session) -> Command | None:
        """How a person goes on with this session in its own tool; None where the tool cannot."""
        ...

    def tools(self) -> tuple[ToolSummary, ...]:
        """The tools whose histories are read, in the registry's order; touches no disk."""
        ...

    def changes(self) -> "AbstractAsyncContextManager[MemoryObjectReceiveStream[tuple[Change, ...]]]":
        """Subscribe to what happens from now on, in batches; a slow reader gets changes merged, never unbounded."""
        ...
