"""Every statement that touches units, records, directories and problems, on one connection within one transaction."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_history_bridge.adapter import Fingerprint, Problem, SessionRecord, Store, Unit
from acp_history_bridge.files import path_of
from acp_history_bridge.index.directories import digests_of
from acp_history_bridge.index.records import DamagedIndexError, decode_record

__all__ = ["Place", "ProblemCount", "RecordRow", "SessionRow", "Tables", "UnitRow", "fingerprint_text"]

# The columns of `session`, in the order of the schema.
SessionRow = tuple[str, str, str, int, int, str, int, str | None, str, bytes | None, bytes | None, bool, bool]
# Unit id, position, plain id, digest of the working directory, data.
RecordRow = tuple[int, int, str, str | None, bytes]


@dataclass(frozen=True, slots=True)
class Place:
    """One record in one unit."""

    unit: Unit
    unit_id: int
    position: int
    record: SessionRecord


@dataclass(frozen=True, slots=True)
class UnitRow:
    """What the last look at a unit left behind."""

    id: int
    fingerprint: str
    again: bool
    offset: int
    prefix: bytes | None
    state: bytes


@dataclass(frozen=True, slots=True)
class ProblemCount:
    """How often one kind of problem was met in one tool's histories, with one example."""

    tool: str
    kind: str
    number: int
    example: Problem


def fingerprint_text(fingerprint: Fingerprint) -> str:
    """A fingerprint as it is stored; equal texts mean equal fingerprints."""
    return f"{fingerprint.size} {fingerprint.mtime_ns} {fingerprint.inode} {fingerprint.beside}"


def _fingerprint(text: str) -> Fingerprint:
    try:
        size, mtime_ns, inode, beside = map(int, text.split(" "))
    except ValueError as error:
        raise DamagedIndexError("a stored fingerprint cannot be read") from error
    return Fingerprint(size, mtime_ns, inode, beside)


def _list(values: Iterable[str]) -> str:
    return json.dumps(list(values))


class Tables:
    """The index' tables. `stores` are the known stores in their order; rows of others do not exist after `register`."""

    def __init__(self, connection: sqlite3.Connection, stores: Sequence[Store]) -> None:
        self.sql = connection
        self._stores = self._load_stores(stores)
        self._store_ids = {store: store_id for store_id, store in self._stores.items()}

    # Stores

    def _load_stores(self, stores: Sequence[Store]) -> dict[int, Store]:
        by_name = {_store_name(store): store for store in stores}
        rows = self.sql.execute("SELECT id, tool, root, layout FROM store").fetchall()
        return {row[0]: by_name[row[1:]] for row in rows if row[1:] in by_name}

    def register(self, stores: Sequence[tuple[Store, str]]) -> set[str]:
        """Make the database's stores these, each with the version of the code that reads it.

        Units of stores that are no more go; units whose adapter has changed are looked at again.

        Returns:
            The plain ids of sessions that may look different now.
        """
        rows = self.sql.execute("SELECT tool, root, layout, id, position, reader FROM store").fetchall()
        known: dict[tuple[str, bytes, str], tuple[int, int, str]] = {row[:3]: row[3:] for row in rows}
        touched: set[str] = set()
        for position, (store, reader) in enumerate(stores):
            store_id, old_position, old_reader = known.pop(_store_name(store), (None, position, reader))
            if store_id is None:
                self.sql.execute(
                    "INSERT INTO store (tool, root, layout, position, reader) VALUES (?, ?, ?, ?, ?)",
                    (*_store_name(store), position, reader),
                )
            elif (position, reader) != (old_position, old_reader):
                self.sql.execute("UPDATE store SET position = ?, reader = ? WHERE id = ?", (position, reader, store_id))
                touched |= self._contested() if position != old_position else set()
                if reader != old_reader:
                    self.sql.execute(
                        "UPDATE unit SET again = 1, offset = 0, prefix = NULL WHERE store_id = ?", (store_id,)
                    )
        for store_id, _, _ in known.values():
            unit_ids = [row[0] for row in self.sql.execute("SELECT id FROM unit WHERE store_id = ?", (store_id,))]
            touched |= self.plain_ids(unit_ids)
            self.remove_units(unit_ids)
            self.sql.execute("DELETE FROM store WHERE id = ?", (store_id,))
        self._stores = self._load_stores([store for store, _ in stores])
        self._store_ids = {store: store_id for store_id, store in self._stores.items()}
        return touched

    def _contested(self) -> set[str]:
        rows = self.sql.execute("SELECT plain_id FROM session GROUP BY plain_id HAVING count(*) > 1")
        return {plain_id for (plain_id,) in rows}

    # Units

    def fingerprints(self, store: Store) -> dict[bytes, tuple[str, bool]]:
        """Path, fingerprint, and whether it needs another look, of every unit of a store."""
        rows = self.sql.execute("SELECT path, fingerprint, again FROM unit WHERE store_id = ?", (self._id(store),))
        return {path: (fingerprint, bool(again)) for path, fingerprint, again in rows}

    def unit(self, store: Store, path: Path) -> UnitRow | None:
        """One unit; None when it was never looked at."""
        row = self.sql.execute(
            "SELECT id, fingerprint, again, offset, prefix, state FROM unit WHERE store_id = ? AND path = ?",
            (self._id(store), os.fsencode(path)),
        ).fetchone()
        return None if row is None else UnitRow(row[0], row[1], bool(row[2]), *row[3:])

    def units_below(self, store: Store, directory: Path) -> list[Path]:
        """The known units in a directory that may not exist any more."""
        start = os.fsencode(directory) + os.fsencode(os.sep)
        rows = self.sql.execute(
            "SELECT path FROM unit WHERE store_id = ? AND path > ? AND path < ?",
            (self._id(store), start, start[:-1] + bytes([start[-1] + 1])),
        )
        return [Path(os.fsdecode(path)) for (path,) in rows]

    def put_unit(self, unit: Unit, row: UnitRow | None, values: tuple[bool, int, bytes | None, bytes]) -> int:
        """Insert or update a unit, without its records; `values` are again, offset, prefix and state."""
        fingerprint = fingerprint_text(unit.fingerprint)
        if row is not None:
            self.sql.execute(
                "UPDATE unit SET fingerprint = ?, again = ?, offset = ?, prefix = ?, state = ? WHERE id = ?",
                (fingerprint, *values, row.id),
            )
            self.sql.execute("DELETE FROM record WHERE unit_id = ?", (row.id,))
            return row.id
        cursor = self.sql.execute(
            "INSERT INTO unit (store_id, path, fingerprint, again, offset, prefix, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._id(unit.store), os.fsencode(unit.path), fingerprint, *values),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def remove_units(self, unit_ids: Sequence[int]) -> None:
        """Remove units with all that was found in them; their sessions are for the caller to resolve."""
        rows = [(unit_id,) for unit_id in unit_ids]
        for statement in (
            "DELETE FROM unit WHERE id = ?",
            "DELETE FROM record WHERE unit_id = ?",
            "DELETE FROM problem WHERE unit_id = ?",
        ):
            self.sql.executemany(statement, rows)

    def _id(self, store: Store) -> int:
        return self._store_ids[store]

    # Records

    def records(self, unit_id: int) -> tuple[SessionRecord, ...]:
        """The records of a unit."""
        rows = self.sql.execute("SELECT data FROM record WHERE unit_id = ? ORDER BY position", (unit_id,))
        return tuple(decode_record(data) for (data,) in rows)

    def plain_ids(self, unit_ids: Sequence[int]) -> set[str]:
        """The plain ids of all records in these units."""
        rows = self.sql.execute(
            "SELECT plain_id FROM record WHERE unit_id IN (SELECT value FROM json_each(?))", (json.dumps(unit_ids),)
        )
        return {plain_id for (plain_id,) in rows}

    def put_records(self, rows: Iterable[RecordRow]) -> None:
        """Add records; `put_unit` has removed the old ones."""
        self.sql.executemany(
            "INSERT INTO record (unit_id, position, plain_id, digest, data) VALUES (?, ?, ?, ?, ?)", rows
        )

    def places(self, plain_ids: Iterable[str], fresh: Mapping[tuple[int, int], Place]) -> dict[str, list[Place]]:
        """Every record of these plain ids; `fresh` ones need not be decoded again."""
        rows = self.sql.execute(
            "SELECT r.plain_id, r.unit_id, r.position, r.data, u.store_id, u.path, u.fingerprint"
            " FROM json_each(?) AS wanted CROSS JOIN record AS r ON r.plain_id = wanted.value"
            " JOIN unit AS u ON u.id = r.unit_id",
            (_list(plain_ids),),
        )
        found: dict[str, list[Place]] = {}
        for plain_id, unit_id, position, data, *unit in rows:
            place = fresh.get((unit_id, position))
            if place is None:
                place = Place(self.make_unit(*unit), unit_id, position, decode_record(data))
            found.setdefault(plain_id, []).append(place)
        return found

    def make_unit(self, store_id: int, path: bytes, fingerprint: str) -> Unit:
        """A unit from its columns."""
        if (store := self._stores.get(store_id)) is None:
            raise DamagedIndexError("a unit lies in no store")
        return Unit(store, path_of(os.fsdecode(path)), _fingerprint(fingerprint))

    # Sessions

    def replace_sessions(self, plain_ids: Iterable[str], rows: Sequence[SessionRow]) -> None:
        """Put these sessions in the place of all that have one of these plain ids."""
        self.sql.execute("DELETE FROM session WHERE plain_id IN (SELECT value FROM json_each(?))", (_list(plain_ids),))
        self.sql.executemany("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    # Directories

    def learn(self, families: Sequence[Sequence[str]]) -> set[str]:
        """Remember directories, each given with its parents, nearest first.

        Returns:
            The plain ids of the records that were waiting for one of them.
        """
        known = set(self.directories(digests_of(family[0])[0] for family in families).values())
        new: list[str] = []
        for family in families:
            if family[0] in known:
                continue
            for path in family:
                digests = digests_of(path)
                data = path.encode("utf-8", errors="surrogatepass")
                rows = [(digest, data) for digest in digests]
                cursor = self.sql.executemany("INSERT OR IGNORE INTO directory (digest, path) VALUES (?, ?)", rows)
                if cursor.rowcount <= 0:
                    break  # known, and so are its parents
                new += digests
        waiting = self.sql.execute(
            "SELECT r.plain_id FROM json_each(?) AS known CROSS JOIN record AS r ON r.digest = known.value"
            " WHERE r.digest IS NOT NULL",
            (_list(new),),
        )
        return {plain_id for (plain_id,) in waiting}

    def directories(self, digests: Iterable[str]) -> dict[str, str]:
        """The known directories among these digests."""
        rows = self.sql.execute(
            "SELECT digest, path FROM directory WHERE digest IN (SELECT value FROM json_each(?))", (_list(digests),)
        )
        return {digest: path.decode("utf-8", errors="surrogatepass") for digest, path in rows}

    # Problems

    def forget_problems(self, unit_id: int) -> None:
        """Remove the problems of a unit."""
        self.sql.execute("DELETE FROM problem WHERE unit_id = ?", (unit_id,))

    def add_problems(self, unit_id: int, problems: Iterable[tuple[int, Problem]]) -> None:
        """Add to a unit's problems: how many of each kind, and the first as an example."""
        self.sql.executemany(
            "INSERT INTO problem (unit_id, number, kind, path, detail, line) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (unit_id, kind) DO UPDATE SET number = number + excluded.number",
            [
                (unit_id, number, problem.kind, os.fsencode(problem.path), problem.detail, problem.line)
                for number, problem in problems
            ],
        )

    def problems(self) -> list[ProblemCount]:
        """All problems by tool and kind, the most frequent first."""
        # SQLite takes the bare columns from the row that max() found.
        rows = self.sql.execute(
            "SELECT s.tool, p.kind, sum(p.number), p.path, p.detail, p.line, max(p.number)"
            " FROM problem AS p JOIN unit AS u ON u.id = p.unit_id JOIN store AS s ON s.id = u.store_id"
            " GROUP BY s.tool, p.kind"
        ).fetchall()
        return [
            ProblemCount(tool, kind, number, Problem(Path(os.fsdecode(path)), kind, detail, line))
            for tool, kind, number, path, detail, line, _ in rows
        ]


def _store_name(store: Store) -> tuple[str, bytes, str]:
    return store.tool, os.fsencode(store.root), store.layout
