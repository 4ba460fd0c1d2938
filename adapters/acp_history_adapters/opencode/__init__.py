"""opencode: a database of all sessions since 1.2, JSON trees of three earlier shapes before."""

from collections.abc import Iterable
from pathlib import Path

from acp_history_adapters.opencode.database import DatabaseStorage
from acp_history_adapters.opencode.metadata import RANKS, session_record
from acp_history_adapters.opencode.places import affected_by, discover, era_of, messages_of, stores_at, unit_at
from acp_history_adapters.opencode.replay import SessionTranscript
from acp_history_adapters.opencode.storage import Reader
from acp_history_adapters.opencode.trees import TreeStorage
from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Fork,
    Inspection,
    Known,
    Problem,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import ForkError, TranscriptError, TrashError
from acp_history_bridge.timestamps import from_ns
from acp_history_bridge.values import JsonMap, string

__all__ = ["Opencode"]


class Opencode(Adapter):
    """Reads the histories of opencode."""

    name = "opencode"
    prefix = "opencode"
    title = "opencode"

    def stores(self, environment: Environment) -> Iterable[Store]:
        """One data directory, and where `OPENCODE_DB` points."""
        return stores_at(self.name, environment)

    def discover(self, store: Store) -> Discovery:
        """List databases and session files."""
        return discover(store)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat a database or a session file."""
        return unit_at(store, path)

    def affected(self, store: Store, path: Path) -> Affected:
        """Map a changed path."""
        return affected_by(store, path)

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Read the sessions of a database, or one session of a tree; both are small next to the messages."""
        del known
        try:
            if era_of(unit.store, unit.path) == "database":
                return _inspect_database(unit)
            return _inspect_tree(unit)
        except TranscriptError as error:
            return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a session."""
        storage = _storage(unit)
        with storage.reading() as reader:
            if not reader.info(record.native_id):
                raise TranscriptError(f"{unit.path.name} no longer holds the session")
        return SessionTranscript(storage, record.native_id, record.cwd)

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`opencode --session ID`; no version can go on with a session of the 0.x trees."""
        if record.rank == RANKS["project"] or record.native_id.startswith("-"):
            return None
        return Command(("opencode", "--session", record.native_id), record.cwd)

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """Refuse: a database with a writer of its own is no place for ours, and nothing reads the trees any more."""
        del unit, record
        raise ForkError("opencode keeps its sessions in a database, which is never written to; fork it in opencode")

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """Refuse: a database is all sessions', and in the trees a session's messages lie among the others'."""
        del unit, record
        raise TrashError("opencode keeps all sessions in one place; delete it in opencode")


def _storage(unit: Unit) -> DatabaseStorage | TreeStorage:
    outputs = unit.store.root / "tool-output"
    era = era_of(unit.store, unit.path)
    if era == "database":
        return DatabaseStorage(unit.path, outputs)
    messages = messages_of(unit.store, unit.path).parent
    parts = messages.with_name("part")
    return TreeStorage(unit.path.parent, messages, parts, outputs, parts_by_session=era == "project")


def _inspect_database(unit: Unit) -> Inspection:
    with DatabaseStorage(unit.path, unit.store.root).reading() as reader:
        sessions = reader.sessions()
        existing = {string(info.get("id")) for info in sessions}
        records = tuple(
            _record(unit, reader, info, orphan=string(info.get("parentID")) not in existing) for info in sessions
        )
        return Inspection(records, tuple(reader.problems))


def _inspect_tree(unit: Unit) -> Inspection:
    with _storage(unit).reading() as reader:
        info = {**reader.info(unit.path.stem), "id": unit.path.stem}
        if reader.problems:  # being written right now, or damaged: what is known of it stays
            return Inspection((), tuple(reader.problems), complete=False)
        parent = string(info.get("parentID"))
        record = _record(unit, reader, info, orphan=bool(parent) and not reader.info(parent))
        return Inspection((record,), tuple(reader.problems))


def _record(unit: Unit, reader: Reader, info: JsonMap, *, orphan: bool) -> SessionRecord:
    era = era_of(unit.store, unit.path)
    return session_record(
        reader, info, modified=from_ns(unit.fingerprint.mtime_ns), rank=RANKS[era or "project"], orphan=orphan
    )
