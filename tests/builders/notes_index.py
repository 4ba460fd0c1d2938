"""A complete small session index for tests of whoever uses one: every `*.note` file of a directory is a session."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Inspection,
    Known,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.decisions import Decisions
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import fingerprint_of
from acp_history_bridge.sessions import Change, Page, Session, SessionQuery, plain_id

__all__ = ["NotesAdapter", "NotesIndex", "NotesStep", "note_session"]


@dataclass(frozen=True, slots=True)
class NotesStep:
    """One step of a scan."""

    changes: tuple[Change, ...] = ()


class NotesAdapter(Adapter):
    """As much of an adapter as an index' user sees."""

    name, prefix, title = "notes", "notes", "Notes"

    def __init__(self) -> None:
        self.active: frozenset[str] = frozenset()

    def stores(self, environment: Environment) -> Iterable[Store]:  # noqa: D102
        return (Store("notes", environment.home),)

    def discover(self, store: Store) -> Discovery:  # noqa: D102
        return Discovery(tuple(unit for path in store.root.glob("*.note") if (unit := self.unit(store, path))))

    def unit(self, store: Store, path: Path) -> Unit | None:  # noqa: D102
        try:
            return Unit(store, path, fingerprint_of(path.stat()))
        except OSError:
            return None

    def affected(self, store: Store, path: Path) -> Affected:  # noqa: D102
        del store
        return Affected((path,)) if path.suffix == ".note" else Affected()

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:  # noqa: D102
        del known
        return Inspection((note_session(unit).record,))

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:  # noqa: D102
        raise TranscriptError(f"{record.native_id} in {unit.path.name} cannot be opened")

    def resume_command(self, record: SessionRecord) -> Command | None:  # noqa: D102
        return Command(("notes", "--resume", record.native_id))

    def active_sessions(self, store: Store) -> frozenset[str]:  # noqa: D102
        del store
        return self.active


def note_session(unit: Unit, title: str | None = None) -> Session:
    """The session of a unit."""
    updated_at = datetime.fromtimestamp(unit.fingerprint.mtime_ns / 1e9, UTC)
    record = SessionRecord(unit.path.stem, updated_at, title=title)
    return Session(plain_id("notes", record.native_id), "notes", unit, record, title, "/")


class NotesIndex:
    """The sessions of a directory. Notes which threads use it, and can be made to take its time."""

    def __init__(self, root: Path, *, pauses: Callable[[], Iterator[NotesStep]] = lambda: iter(())) -> None:
        """Bind the index to a directory.

        Args:
            root: Where the notes lie.
            pauses: Makes steps that come after the first two files of every scan.
        """
        self.notes = NotesAdapter()
        self.decisions = Decisions(None)
        self.stores = (Store("notes", root),)
        self.sessions: dict[str, Session] = {}
        self.refreshes: list[list[Path]] = []
        self.threads: set[int] = set()
        self.scans = 0
        self.closed = False
        self._pauses = pauses

    def scan(self) -> Iterator[NotesStep]:  # noqa: D102
        self.scans += 1
        store = self.stores[0]
        units = sorted(self.notes.discover(store).units, key=lambda unit: -unit.fingerprint.mtime_ns)
        for number, unit in enumerate(units):
            if number == 2:
                yield from self._pauses()
            yield NotesStep(self._look(unit.path))
        gone = [session.unit.path for session in self.sessions.values()]
        yield NotesStep(tuple(change for path in gone for change in self._look(path)))

    def rescan(self, store: Store) -> Iterator[NotesStep]:  # noqa: D102
        assert store in self.stores
        yield from self.scan()

    def decided(self) -> tuple[Change, ...]:  # noqa: D102
        return ()

    def refresh(self, paths: Iterable[Path]) -> tuple[Change, ...]:  # noqa: D102
        self.refreshes.append(list(paths))
        notes = [path for path in self.refreshes[-1] if path.suffix == ".note"]
        return tuple(change for path in notes for change in self._look(path))

    def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page:  # noqa: D102
        del query, cursor
        self.threads.add(threading.get_ident())
        return Page(tuple(sorted(self.sessions.values(), key=lambda session: session.updated_at, reverse=True)[:limit]))

    def settled(self, query: SessionQuery, limit: int, cursor: str | None = None) -> bool:  # noqa: D102
        del query, cursor
        return len(self.sessions) >= limit

    def count(self, query: SessionQuery) -> int:  # noqa: D102
        del query
        return len(self.sessions)

    def find(self, session_id: str) -> Session | None:  # noqa: D102
        self.threads.add(threading.get_ident())
        return self.sessions.get(session_id)

    def open(self, session: Session) -> Transcript:  # noqa: D102
        return self.notes.open(session.unit, session.record)

    def adapter(self, tool: str) -> Adapter:  # noqa: D102
        assert tool == "notes"
        return self.notes

    def close(self) -> None:  # noqa: D102
        self.threads.add(threading.get_ident())
        self.decisions.close()
        self.closed = True

    def _look(self, path: Path) -> tuple[Change, ...]:
        self.threads.add(threading.get_ident())
        unit = self.notes.unit(self.stores[0], path)
        session_id = plain_id("notes", path.stem)
        before = self.sessions.get(session_id)
        if unit is None:
            return () if before is None else (Change("removed", self.sessions.pop(session_id)),)
        if before is not None and before.unit == unit:
            return ()
        session = self.sessions[session_id] = note_session(unit)
        return (Change("added" if before is None else "changed", session, before),)
