"""Codex CLI: rollouts, in five formats, below `$CODEX_HOME` (`~/.codex`)."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from acp_history_adapters.codex.document import DocumentTranscript, inspect_document
from acp_history_adapters.codex.lines import open_source
from acp_history_adapters.codex.metadata import Facts, facts_of, more_facts
from acp_history_adapters.codex.names import ThreadNames
from acp_history_adapters.codex.rollouts import COMPRESSED, Rollouts, parse_name, twins, walk
from acp_history_adapters.codex.sessions import inherited_prompt, native_id, record_of
from acp_history_adapters.codex.transcript import RolloutTranscript
from acp_history_bridge.adapter import (
    RESCAN,
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Fingerprint,
    Fork,
    Inspection,
    Known,
    Passage,
    Problem,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import path_of, stat_regular
from acp_history_bridge.timestamps import from_ns

__all__ = ["Codex"]

_ACTIVE, _ARCHIVED = "sessions", "archived_sessions"
_NAMES = "session_index.jsonl"


class Codex(Adapter):
    """Reads the histories of Codex CLI."""

    name = "codex"
    prefix = "codex"
    title = "Codex CLI"

    def __init__(self) -> None:
        self._names: dict[Path, ThreadNames] = {}

    def stores(self, environment: Environment) -> Iterable[Store]:
        """One home, with the active and the archived sessions in it; archiving moves a file from one to the other."""
        named = environment.variables.get("CODEX_HOME", "")
        root = Path(named) if named and Path(named).is_absolute() else environment.home / ".codex"
        return (Store(self.name, root, watched=(_ACTIVE, _ARCHIVED)),)

    def discover(self, store: Store) -> Discovery:
        """List all rollouts."""
        problems: list[Problem] = []
        names = self._names_of(store)
        units: list[Unit] = []
        for root in _roots(store.root):
            for entry, name in walk(root, problems):
                status = stat_regular(entry)
                if status is not None:
                    mark = Fingerprint(status.st_size, status.st_mtime_ns, status.st_ino, names.mark(name.thread))
                    units.append(Unit(store, path_of(entry.path), mark))
        return Discovery(tuple(units), tuple(problems), complete=not problems)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat a rollout; a compressed one counts only while its plain twin is not there."""
        name = parse_name(path.name)
        status = stat_regular(path)
        if name is None or status is None or not any(_is_below(root, path) for root in _roots(store.root)):
            return None
        if name.suffix == COMPRESSED and stat_regular(twins(path)[0]) is not None:
            return None
        mark = self._names_of(store).mark(name.thread)
        return Unit(store, path, Fingerprint(status.st_size, status.st_mtime_ns, status.st_ino, mark))

    def affected(self, store: Store, path: Path) -> Affected:
        """A rollout and its twin; everything, when a folder moves or somebody renames a thread."""
        if path == store.root / _NAMES:
            return RESCAN
        if path not in _roots(store.root) and not any(_is_below(root, path) for root in _roots(store.root)):
            return Affected()
        name = parse_name(path.name)
        if name is not None:
            return Affected((path,) if name.suffix == ".json" else twins(path))
        return Affected() if path.suffix else RESCAN

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Look at head and end of a rollout, or at what was appended to it."""
        if unit.path.name.endswith(".json"):
            return inspect_document(unit)
        problems: list[Problem] = []
        facts = None if known is None else Facts.restore(known.state)
        try:
            with open_source(unit.path) as source:
                if facts is None or known is None or source.compressed:
                    facts, offset = facts_of(source, source.size(), problems)
                else:
                    offset = more_facts(facts, source.descriptor, known.offset, source.size())
        except (TranscriptError, OSError) as error:
            return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)
        if not facts.headed:
            # Codex creates the file before it writes; an empty one says nothing about what was there before.
            return Inspection((), tuple(problems), complete=False)
        record = self._record(unit, facts, problems)
        return Inspection((record,), tuple(problems), 0 if source.compressed else offset, facts.state())

    def _record(self, unit: Unit, facts: Facts, problems: list[Problem]) -> SessionRecord:
        active, archived = _roots(unit.store.root)
        inherited = inherited_prompt(facts, unit.path, (active, archived), problems)
        return record_of(
            facts,
            unit.path,
            from_ns(unit.fingerprint.mtime_ns),
            title=self._names_of(unit.store).get(native_id(facts, unit.path)) or inherited,
            archived=_is_below(archived, unit.path),
        )

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a thread from its current rollout."""
        del record
        if unit.path.name.endswith(".json"):
            return DocumentTranscript(unit.path)
        return RolloutTranscript(unit.path, Rollouts(_roots(unit.store.root)))

    def passages(self, unit: Unit, record: SessionRecord, since: int = 0, *, output: bool = False) -> Iterator[Passage]:
        """Go on at a line of a plain rollout; the other formats do not grow, or only as a whole."""
        if unit.path.name.endswith((".json", COMPRESSED)):
            yield from super().passages(unit, record, since, output=output)
            return
        transcript = RolloutTranscript(unit.path, Rollouts(_roots(unit.store.root)))
        try:
            yield from transcript.passages(since, output=output)
        finally:
            transcript.close()

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`codex resume ID`; archived threads and the formats before envelopes (they name no version) cannot go on."""
        if record.tool_version is None or record.archived or record.native_id.startswith("-"):
            return None
        return Command(("codex", "resume", record.native_id), record.cwd)

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """A new rollout that goes on from this thread."""
        from acp_history_adapters.codex.fork import fork_thread

        return fork_thread(unit, record, unit.store.root / _ACTIVE)

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """All rollouts of the thread."""
        from acp_history_adapters.codex.owned import files_of

        return files_of(unit, record, _roots(unit.store.root))

    def _names_of(self, store: Store) -> ThreadNames:
        names = self._names.get(store.root) or self._names.setdefault(store.root, ThreadNames(store.root))
        names.refresh()
        return names


@lru_cache(maxsize=16)  # paths are slow to join, and there are thousands of rollouts in one home
def _roots(home: Path) -> tuple[Path, Path]:
    return home / _ACTIVE, home / _ARCHIVED


def _is_below(root: Path, path: Path) -> bool:
    return str(path).startswith(str(root) + os.sep)
