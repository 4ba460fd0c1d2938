"""A tool whose transcripts are lines of text, and a full-text index over them."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Discovery,
    Environment,
    Inspection,
    Known,
    Passage,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import fingerprint_of, open_regular
from acp_history_bridge.jsonl import read_lines
from acp_history_bridge.search.build import BuildReport, update_text_index
from acp_history_bridge.search.engine import Hit, SearchEngine
from acp_history_bridge.search.query import parse_query
from acp_history_bridge.search.store import TextStore
from acp_history_bridge.sessions import Session

NOW = datetime(2026, 11, 20, tzinfo=UTC)


class Lines(Adapter):
    """Each line is a passage; lines that start with `>` are tool output."""

    name = "lines"
    prefix = "lines"
    title = "Lines"

    def __init__(self) -> None:
        self.bytes_read = 0

    def stores(self, environment: Environment) -> list[Store]:
        """One store below the home directory."""
        return [Store(self.name, environment.home)]

    def discover(self, store: Store) -> Discovery:
        """Every file."""
        return Discovery(tuple(filter(None, (self.unit(store, path) for path in sorted(store.root.glob("*.txt"))))))

    def unit(self, store: Store, path: Path) -> Unit | None:
        """A file."""
        return Unit(store, path, fingerprint_of(path.stat())) if path.exists() else None

    def affected(self, store: Store, path: Path) -> Affected:
        """The file itself."""
        del store
        return Affected((path,))

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """A record named like the file."""
        del known
        return Inspection((SessionRecord(unit.path.stem, NOW),))

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Has no turns."""
        raise TranscriptError(f"{unit.path.name} {record.native_id} has no turns")

    def passages(self, unit: Unit, record: SessionRecord, since: int = 0, *, output: bool = False) -> Iterator[Passage]:
        """Whole lines from `since` on."""
        del record
        with open_regular(unit.path) as descriptor:
            for line in read_lines(descriptor, since):
                self.bytes_read += line.size
                text = (line.data or b"").decode()
                if not line.pending and (output or not text.startswith(">")):
                    yield Passage("message", text, line.end)


class Corpus:
    """Transcripts on disk, the index, and what is found in it."""

    def __init__(self, directory: Path) -> None:
        self.adapter = Lines()
        self.directory = directory / "home"
        self.directory.mkdir()
        self.database = directory / "cache" / "text.db"
        self.ages: dict[str, int] = {}

    def write(self, name: str, *lines: str, days_old: int = 0) -> Path:
        """Write a whole transcript."""
        path = self.directory / f"{name}.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.ages[f"lines:{name}"] = days_old
        return path

    def append(self, name: str, *lines: str) -> None:
        """Add lines to a transcript."""
        with (self.directory / f"{name}.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def sessions(self) -> list[Session]:
        """All transcripts as sessions."""
        (store,) = self.adapter.stores(Environment(self.directory))
        return [
            Session(f"lines:{unit.path.stem}", "lines", unit, SessionRecord(unit.path.stem, NOW), None, "/")
            for unit in self.adapter.discover(store).units
        ]

    def update(self, *, output: bool = False) -> BuildReport:
        """Bring the index up to date."""
        store = TextStore(self.database)
        try:
            return update_text_index(store, self.sessions(), lambda _: self.adapter, output=output)
        finally:
            store.close()

    def hits(self, query: str) -> list[Hit]:
        """Search."""
        engine = SearchEngine(self.database)
        try:
            return engine.search(parse_query(query, Path("/")), self._times, NOW)
        finally:
            engine.close()

    def find(self, query: str) -> list[str]:
        """Names of the sessions found, best first."""
        return [hit.session_id.removeprefix("lines:") for hit in self.hits(query)]

    def _times(self, session_ids: Collection[str]) -> dict[str, datetime]:
        return {name: NOW - timedelta(days=self.ages[name]) for name in session_ids if name in self.ages}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """An empty corpus."""
    return Corpus(tmp_path)
