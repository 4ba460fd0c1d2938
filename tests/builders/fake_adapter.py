"""A small complete adapter over JSON Lines "notes", for tests of everything that is not about one tool's format.

A unit is `<home>/.notes/<folder>/<name>.jsonl`. Each line is one message of one session, so a file can hold many
sessions and a session can lie in many files::

    {"id": "one", "role": "user", "text": "Hello", "time": "2026-01-02T03:04:05Z", "cwd": "/work"}

`note` makes such a line. Further fields set the record's fields of the same name. `notes_at` writes files. Faults are
set on the adapter: paths in `unreadable` cannot be read, those in `exploding` make `inspect` raise, folders in
`unlisted` make a listing incomplete.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from acp_history_bridge.adapter import (
    RESCAN,
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Inspection,
    Known,
    Problem,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import fingerprint_of, list_directory, open_regular, stat_regular
from acp_history_bridge.jsonl import decode, read_lines
from acp_history_bridge.timestamps import format_time, from_ns, parse_time
from acp_history_bridge.turns import Role, Text, Turn, Usage
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["START", "FakeAdapter", "note", "notes_at", "texts"]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_RECORD_FIELDS = frozenset(field.name for field in fields(SessionRecord))


def note(session: str, text: str = "Hello", *, minute: float = 0, role: str = "user", **record_fields: object) -> str:
    """One line of a notes file; `minute` counts from `START`."""
    time = format_time(START + timedelta(minutes=minute))
    return json.dumps({"id": session, "role": role, "text": text, "time": time, **record_fields}) + "\n"


def notes_at(home: Path, name: str, *lines: str, minute: float | None = None, folder: str = ".notes") -> Path:
    """Write `<home>/.notes/<name>`, whose time is `minute` minutes after `START`, or now."""
    path = home / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
    if minute is not None:
        nanoseconds = int((START + timedelta(minutes=minute)).timestamp()) * 1_000_000_000
        os.utime(path, ns=(nanoseconds, nanoseconds))
    return path


class FakeAdapter(Adapter):
    """The adapter. Its counters and faults are for tests."""

    def __init__(self, name: str = "notes", folder: str = ".notes") -> None:
        self.name = name
        self.prefix = name
        self.title = name.title()
        self.inspected: list[Path] = []
        self.continued: list[Path] = []
        self.unreadable: set[Path] = set()
        self.exploding: set[Path] = set()
        self.unlisted: set[str] = set()
        self._folder = folder

    def stores(self, environment: Environment) -> Iterable[Store]:
        """One store in the home directory, more where `NOTES_DIRS` names them."""
        yield Store(self.name, environment.home / self._folder)
        for name in environment.variables.get("NOTES_DIRS", "").split(os.pathsep):
            if name:
                yield Store(self.name, Path(name))

    def discover(self, store: Store) -> Discovery:
        """All files in all folders."""
        problems: list[Problem] = []
        units: list[Unit] = []
        for folder in list_directory(store.root, problems) or ():
            if folder.name in self.unlisted:
                problems.append(Problem(Path(folder.path), "unreadable"))
            elif folder.is_dir(follow_symlinks=False):
                found = list_directory(Path(folder.path), problems) or ()
                units += [unit for entry in found if (unit := self.unit(store, Path(entry.path)))]
        return Discovery(tuple(units), tuple(problems), complete=not problems)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """A `.jsonl` file in a folder."""
        if path.suffix != ".jsonl" or path.parent.parent != store.root:
            return None
        stat = stat_regular(path)
        return None if stat is None else Unit(store, path, fingerprint_of(stat))

    def affected(self, store: Store, path: Path) -> Affected:
        """A file is itself; a folder can be anything."""
        if path.suffix == ".jsonl":
            return Affected((path,))
        return RESCAN if path.parent == store.root and path.is_dir() else Affected()

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Fold all lines, or the new ones into the known records."""
        self.inspected.append(unit.path)
        if known is not None:
            self.continued.append(unit.path)
        if unit.path in self.exploding:
            raise KeyError("a secret out of a transcript")
        if unit.path in self.unreadable:
            return Inspection((), (Problem(unit.path, "unreadable"),), complete=False)
        fold = _Fold(unit, known)
        try:
            with open_regular(unit.path) as descriptor:
                for line in read_lines(descriptor, fold.offset):
                    if line.pending:
                        break
                    fold.add(line.data or b"")
                    fold.offset = line.end
        except TranscriptError as error:
            return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)
        return fold.inspection()

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open one session of a file."""
        if unit.path in self.exploding:
            raise KeyError("a secret out of a transcript")
        if stat_regular(unit.path) is None:
            raise TranscriptError(f"cannot open {unit.path.name}")
        return _Notes(unit.path, record.native_id)

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`notes resume ID` in the session's directory."""
        return Command(("notes", "resume", record.native_id), record.cwd)

    def active_sessions(self, store: Store) -> frozenset[str]:
        """The sessions that the file `active` in the store's root names."""
        active = store.root / "active"
        return frozenset(active.read_text(encoding="utf-8").split()) if active.is_file() else frozenset()


class _Fold:
    """The records of a file as its lines are added; `latest` keeps times before the file's own time bounds them."""

    def __init__(self, unit: Unit, known: Known | None) -> None:
        self.offset = known.offset if known else 0
        self._unit = unit
        self._mtime = from_ns(unit.fingerprint.mtime_ns)
        latest = mapping(known.state.get("latest") if known else None)
        self._records = {record.native_id: record for record in (known.records if known else ())}
        self._latest = {key: datetime.fromisoformat(string(value)) for key, value in latest.items()}
        self._problems: list[Problem] = []

    def add(self, data: bytes) -> None:
        try:
            line = mapping(decode(data))
        except ValueError:
            line = mapping(None)
        if not (native_id := string(line.get("id"))):
            self._problems.append(Problem(self._unit.path, "bad-line"))
            return
        record = self._records.get(native_id) or SessionRecord(native_id, self._mtime)
        changed: dict[str, Any] = {name: value for name, value in line.items() if name in _RECORD_FIELDS}
        if "additional_directories" in changed:
            changed["additional_directories"] = tuple(changed["additional_directories"])
        if "created_at" in changed:
            changed["created_at"] = parse_time(changed["created_at"])
        if time := parse_time(line.get("time")):
            self._latest[native_id] = max(time, self._latest.get(native_id, time))
        if record.title is None and line.get("role") == "user":
            changed.setdefault("title", string(line.get("text")))
        self._records[native_id] = replace(record, **changed)

    def inspection(self) -> Inspection:
        records = [
            replace(record, updated_at=min(self._latest.get(native_id, self._mtime), self._mtime))
            for native_id, record in self._records.items()
        ]
        latest = {native_id: time.isoformat() for native_id, time in self._latest.items()}
        return Inspection(tuple(records), tuple(self._problems), self.offset, {"latest": latest})


class _Notes(Transcript):
    def __init__(self, path: Path, native_id: str) -> None:
        self._path = path
        self._native_id = native_id
        self._offset = 0
        self._problems: list[Problem] = []

    def turns(self) -> Iterator[Turn]:
        with open_regular(self._path) as descriptor:
            for line in read_lines(descriptor, self._offset):
                if line.pending:
                    return
                number, self._offset = self._offset, line.end
                if turn := self._turn(number, line.data or b""):
                    yield turn

    def _turn(self, number: int, data: bytes) -> Turn | None:
        try:
            line: JsonMap = mapping(decode(data))
        except ValueError:
            self._problems.append(Problem(self._path, "bad-line"))
            return None
        if line.get("id") != self._native_id:
            return None
        role: Role = "agent" if line.get("role") == "agent" else "user"
        return Turn(str(number), role, (Text(string(line.get("text"))),), parse_time(line.get("time")))

    @property
    def left_out(self) -> int:
        return 0

    @property
    def problems(self) -> Sequence[Problem]:
        return self._problems

    @property
    def usage(self) -> Usage | None:
        return None

    def close(self) -> None:
        """Nothing stays open between calls."""


def texts(transcript: Transcript) -> list[str]:
    """What the turns of a transcript say."""
    return [part.text for turn in transcript.turns() for part in turn.parts if isinstance(part, Text)]
