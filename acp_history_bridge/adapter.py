"""The contract between the core and one tool's histories. Whoever adds a tool reads this file and one adapter.

Policy:

- An adapter only reads. It never writes below a store, never prints, and never opens a path that a transcript names.
  What a fork holds, or which files go to the trash, it says; the core writes and moves.
- Content is hostile: wrong types, missing fields, cycles and garbage become a `Problem` or nothing, never an exception,
  and never cost a neighbouring record. An unopenable file raises `TranscriptError` from `Adapter.open` only.
- The environment is handed in; adapters read neither `os.environ` nor the current directory.
- A session is not a file: a unit can hold many sessions, and copies of one session can lie in many units.
- Every method is called from worker threads, never twice at once for the same unit or transcript; only `fork` with
  its content and `files`, which can take long, are asked for beside the others.

Order of calls: `stores` → `discover` → `inspect` for each new or changed unit → `open` when somebody wants the turns.
A change seen on disk goes through `affected`, then `unit`, then `inspect`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from acp_history_bridge.errors import ForkError, TrashError
from acp_history_bridge.turns import Turn, Usage

__all__ = [
    "RESCAN",
    "Adapter",
    "Affected",
    "Command",
    "Discovery",
    "Environment",
    "Fingerprint",
    "Fork",
    "Inspection",
    "Known",
    "Passage",
    "PassageKind",
    "Problem",
    "SessionKind",
    "SessionRecord",
    "Store",
    "Transcript",
    "Unit",
]

SessionKind = Literal["main", "fork", "subagent"]
PassageKind = Literal["message", "tool", "output"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine as an adapter may see it.

    Attributes:
        home: The user's home directory; absolute.
        variables: Environment variables.
        platform: As `sys.platform` names it.
    """

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    platform: str = "linux"


@dataclass(frozen=True, slots=True)
class Store:
    """One place where a tool keeps histories; a tool can have several (overrides, old and new layouts).

    Attributes:
        tool: The adapter's `name`.
        root: The directory below which all units lie, and which is watched with all its subdirectories. It need not
            exist yet.
        layout: The adapter's own word for how this store is arranged.
        watched: For a root that also holds large trees without histories: watch the root without its subdirectories,
            and of these only the named ones (relative paths with `/`, existing or not) with everything below them.
    """

    tool: str
    root: Path
    layout: str = ""
    watched: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What `stat` says of a unit; equal fingerprints mean "not changed".

    Attributes:
        size: Bytes.
        mtime_ns: Modification time in nanoseconds since the epoch; for a unit of several files the newest.
        inode: Tells a replaced file from a grown one.
        beside: A number made of the `stat` of companion files (a title side file, a database's `-wal`), 0 for none.
    """

    size: int
    mtime_ns: int
    inode: int
    beside: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest thing whose change is seen on disk: a file, a folder, a database."""

    store: Store
    path: Path
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a store that could not be read or understood; counted, and reported by `bridge doctor`.

    Attributes:
        path: The file or directory.
        kind: A short stable word: `unreadable`, `bad-line`, `unknown-record`, `too-large`, `wrong-type`, …
        detail: Which record type, which error; never content of the conversation.
        line: 1-based, where it is known.
    """

    path: Path
    kind: str
    detail: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """All units of a store. `complete` is False when any part could not be listed: then nothing may be removed."""

    units: tuple[Unit, ...]
    problems: tuple[Problem, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What is known of a session without replaying it.

    Attributes:
        native_id: The tool's own id.
        updated_at: Time of the last record of the conversation, else the unit's mtime; never later than that mtime.
            Aware, UTC.
        origin: Tells sessions apart that share a native id (copies in two project directories). Records with the same
            native id *and* origin, in whatever units, are copies of one session; the best copy is shown: one that is
            `listed` before one that is not, then the later `updated_at`, then the higher `rank`.
        displaced: This session lies where its tool would not have put it (a mirrored directory), so another session
            with the same native id has the better claim to the plain id.
        rank: See `origin`.
        title: What the tool's own picker shows, else the first real prompt; None when there is neither. Any length and
            any characters: the core makes it one line.
        cwd: Absolute working directory by the tool's own rule; None when unknown.
        cwd_digest: For tools that store only a hash of it: `sha256:HEX` (or `md5:HEX`) of the UTF-8 path. The core
            compares it with all directories known from elsewhere.
        created_at: Aware, UTC.
        kind: `subagent` sessions are folded into their parent and not listed.
        listed: False for what is no conversation: a sub-agent's file, a file with context only.
        parent: Native id of the session this one was forked from or belongs to.
        message_count: User and agent messages of the whole history, only where they are known without reading it all.
        headless: Made by a program (print mode, an SDK), not typed by a person.
        mode: The permission or approval mode the transcript last recorded.
        continued_in: Native id of the session in which the conversation went on.
    """

    native_id: str
    updated_at: datetime
    origin: str = ""
    displaced: bool = False
    rank: int = 0
    title: str | None = None
    cwd: str | None = None
    cwd_digest: str | None = None
    additional_directories: tuple[str, ...] = ()
    created_at: datetime | None = None
    kind: SessionKind = "main"
    listed: bool = True
    parent: str | None = None
    message_count: int | None = None
    archived: bool = False
    headless: bool = False
    branch: str | None = None
    model: str | None = None
    mode: str | None = None
    tool_version: str | None = None
    continued_in: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the last inspection of a unit left behind.

    It is handed back only when the unit grew and the core has seen that the bytes just before `offset` are unchanged.
    """

    offset: int
    state: Mapping[str, object]
    records: tuple[SessionRecord, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The outcome of looking at one unit.

    Attributes:
        records: The sessions of the unit.
        problems: What was odd.
        offset: Bytes of the unit that are dealt with, ending after a newline; 0 for units that only change as a whole.
        state: Whatever the adapter wants to see again in `Known.state`; JSON values only.
        complete: False when the unit could not be read to the end (an I/O error, a half-written document): records the
            index has of this unit and that are missing here then stay as they are.
    """

    records: tuple[SessionRecord, ...]
    problems: tuple[Problem, ...] = ()
    offset: int = 0
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Affected:
    """What a changed path means: these units, or the whole store when the adapter cannot tell; empty for nothing."""

    units: tuple[Path, ...] = ()
    rescan: bool = False


RESCAN = Affected(rescan=True)


@dataclass(frozen=True, slots=True)
class Command:
    """How to go on with a session in its own tool: an argument vector, never a shell line, and where to run it."""

    argv: tuple[str, ...]
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a session that is worth finding by its words.

    Attributes:
        kind: What the user or the agent said; a tool call's title and paths; or what a tool printed.
        end: Byte offset behind the record the text comes from, from where reading can go on later; 0 where the format
            cannot be read from the middle.
    """

    kind: PassageKind
    text: str
    end: int = 0


@dataclass(frozen=True, slots=True)
class Fork:
    """A new session in the format of its tool, before it is written.

    Attributes:
        native_id: Its id.
        path: The file that is to hold it, below the store's root; it must not exist.
        content: Its bytes, in pieces of bounded size. They are made while they are taken, so a problem with the
            original can show up late, as a `ForkError` or `TranscriptError`.
    """

    native_id: str
    path: Path
    content: Iterable[bytes]


class Transcript(Protocol):
    """The opened transcript of one session."""

    def turns(self) -> Iterator[Turn]:
        """Yield the turns of the active branch in conversation order, across compactions.

        The first call yields the whole history. Each later call yields what was added since the call before, reading
        only the new bytes where the format allows it: new turns, and for a tool call whose outcome has arrived since
        a turn that holds that call again. Memory stays bounded by the largest record, not by the file.
        """
        ...

    @property
    def left_out(self) -> int:
        """How many messages lie off the active branch (rewound, abandoned), after `turns` has ended."""
        ...

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        ...

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost as last recorded, after `turns` has ended."""
        ...

    def close(self) -> None:
        """Free the descriptor. Idempotent."""
        ...


@runtime_checkable
class Adapter(Protocol):
    """One tool. Subclass it to inherit the defaults of the optional abilities.

    Attributes:
        name: The tool's name in settings and filters: lower case, words joined by `-`.
        prefix: What its wire ids start with, before the colon.
        title: The tool's name as people write it.
    """

    name: str
    prefix: str
    title: str

    def stores(self, environment: Environment) -> Iterable[Store]:
        """Name every place where this tool may keep histories, existing or not, without touching the disk much."""
        ...

    def discover(self, store: Store) -> Discovery:
        """List all units by `scandir` and `stat` alone; no transcript is opened."""
        ...

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat one unit now; None when it is gone or is not (or no longer) a unit."""
        ...

    def affected(self, store: Store, path: Path) -> Affected:
        """Map a created, changed, moved or deleted path below the store's root to the units it concerns."""
        ...

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Find the sessions of a unit and what a list shows of them, reading as little as possible.

        With `known`, the outcome must be the same as without it; only less is read.
        """
        ...

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a session for reading its turns.

        Raises:
            TranscriptError: The unit is gone or cannot be opened.
        """
        ...

    def passages(self, unit: Unit, record: SessionRecord, since: int = 0, *, output: bool = False) -> Iterator[Passage]:
        """Yield what the text index holds of a session, in file order, from byte `since` on.

        The default goes through `open` and reads everything again each time. A format of lines does better: it goes on
        at `since`, and looks at the first bytes of a record to skip tool output without decoding it. Text that was
        rewound may be included.

        Args:
            unit: Where the session lies.
            record: Which session of the unit.
            since: The `end` of the last passage already indexed.
            output: Whether what tools printed is wanted as well.

        Raises:
            TranscriptError: The unit is gone or cannot be opened.
        """
        from acp_history_bridge.search.passages import passages_of

        del since
        transcript = self.open(unit, record)
        try:
            yield from passages_of(transcript.turns(), output=output)
        finally:
            transcript.close()

    def resume_command(self, record: SessionRecord) -> Command | None:
        """How a person goes on with this session in the tool itself; None where the tool cannot."""
        del record
        return None

    def active_sessions(self, store: Store) -> frozenset[str]:
        """Native ids of the sessions that a running process of the tool has open, as far as it tells."""
        del store
        return frozenset()

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """Say what a new session holds that goes on from where this one ends, so that the tool itself can resume it.

        Ids and references to a parent are rewritten as the tool does it, and the title is `forking.fork_title`.

        Raises:
            ForkError: The tool's format does not allow it; says why.
            TranscriptError: The unit is gone or cannot be opened.
        """
        del unit, record
        raise ForkError(f"sessions of {self.title} cannot be forked")

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """Name the files and directories, existing now, that belong to this session and to no other.

        Raises:
            TrashError: The session shares a file with others, or others need it; says why.
        """
        del unit, record
        raise TrashError(f"sessions of {self.title} cannot be moved to the trash")
