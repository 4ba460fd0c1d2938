"""The index as one thing: the database, the stores it is about, and what resolving sessions needs."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from acp_history_bridge.adapter import Known, Store, Unit
from acp_history_bridge.index import query
from acp_history_bridge.index.directories import Directories, digests_of
from acp_history_bridge.index.look import Finding, known_of
from acp_history_bridge.index.resolve import Surroundings
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.index.tables import ProblemCount, Tables
from acp_history_bridge.index.update import Gone, learn, resolve_again, store_findings
from acp_history_bridge.index.visibility import Visibility
from acp_history_bridge.sessions import Change, Page, Session, SessionQuery

__all__ = ["Catalogue"]

T = TypeVar("T")


class Catalogue:
    """What is known of all sessions. Every method is one transaction or one query.

    Sessions come out as lists show them (`visibility.py`); changes, as the index has seen them.
    """

    def __init__(
        self,
        database: IndexStore,
        stores: Mapping[Store, str],
        prefixes: Mapping[str, str],
        home: Path,
        visibility: Visibility,
    ) -> None:
        """Bind the database to its stores, each given with the version of the code that reads it."""
        self._visibility = visibility
        self._database = database
        self._stores = tuple(stores)
        self._readers = stores
        order = {store: position for position, store in enumerate(stores)}
        self._surroundings = Surroundings(prefixes, order, str(home), Directories())
        database.attach(self._register)

    @property
    def generation(self) -> int:
        """Grows whenever the database was lost and is empty again."""
        return self._database.generation

    def claim(self) -> None:
        """Go on writing the database file if the bridge that did so has gone."""
        self._database.claim()

    def fingerprints(self, store: Store) -> dict[bytes, tuple[str, bool]]:
        """Path, fingerprint, and whether it needs another look, of every unit of a store."""
        return self._read(lambda tables: tables.fingerprints(store))

    def last_look(self, store: Store, path: Path) -> tuple[str, bool] | None:
        """Fingerprint and need for another look of one unit; None when it is unknown."""
        row = self._read(lambda tables: tables.unit(store, path))
        return None if row is None else (row.fingerprint, row.again)

    def known(self, unit: Unit) -> Known | None:
        """What the adapter gets back for a unit that only grew."""
        return self._read(lambda tables: known_of(tables, tables.unit(unit.store, unit.path), unit))

    def units_below(self, store: Store, directory: Path) -> list[Path]:
        """The known units in a directory that may not exist any more."""
        return self._read(lambda tables: tables.units_below(store, directory))

    def put(self, findings: Sequence[Finding], gone: Iterable[Gone]) -> tuple[Change, ...]:
        """Store what was found, drop what is gone, and say what that changed."""
        gone = tuple(gone)
        if not findings and not gone:
            return ()
        return self._write(lambda tables: store_findings(tables, self._surroundings, findings, gone))

    def learn(self, directory: Path) -> tuple[Change, ...]:
        """Take note of a directory: sessions of which only a digest of it was known get it."""
        name = os.fspath(directory)
        digest, _ = digests_of(name)
        if self._read(lambda tables: tables.directories([digest])):
            return ()
        return self._write(lambda tables: learn(tables, self._surroundings, name))

    def page(self, wanted: SessionQuery, limit: int, cursor: str | None) -> Page:
        """One page of sessions.

        Raises:
            CursorError: The cursor was not made by this process for this query.
        """
        page = self._read(lambda tables: query.page(tables, self._filter(wanted), limit, cursor))
        return replace(page, sessions=self._visibility.applied(page.sessions))

    def count(self, wanted: SessionQuery) -> int:
        """How many sessions a query finds."""
        return self._read(lambda tables: query.count(tables, self._filter(wanted)))

    def times(self, wanted: SessionQuery, ids: Collection[str]) -> dict[str, datetime]:
        """When those of these sessions that the query allows were last active."""
        return self._read(lambda tables: query.times(tables, self._filter(wanted), ids))

    def by_ids(self, wanted: SessionQuery, ids: Sequence[str]) -> tuple[Session, ...]:
        """Those of these sessions that the query allows, in the order of the ids."""
        return self._visibility.applied(self._read(lambda tables: query.by_ids(tables, self._filter(wanted), ids)))

    def find(self, session_id: str) -> Session | None:
        """The session with this wire id, listed or not."""
        found = self._find(session_id)
        return None if found is None else self._visibility.applied([found])[0]

    def decided(self) -> tuple[Change, ...]:
        """What was decided about sessions since this was asked last, as lists show it."""
        return self._visibility.news(self._find)

    def problems(self) -> list[ProblemCount]:
        """What the units' adapters complained about."""
        return self._read(lambda tables: tables.problems())

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _find(self, session_id: str) -> Session | None:
        return self._read(lambda tables: query.find(tables, session_id, self._surroundings.home))

    def _filter(self, wanted: SessionQuery) -> query.Filter:
        return query.Filter(wanted, self._surroundings, self._visibility)

    def _read(self, work: Callable[[Tables], T]) -> T:
        return self._database.read(lambda connection: work(Tables(connection, self._stores)))

    def _write(self, work: Callable[[Tables], T]) -> T:
        return self._database.write(lambda connection: work(Tables(connection, self._stores)))

    def _register(self, connection: Connection) -> None:
        tables = Tables(connection, self._stores)
        touched = tables.register(list(self._readers.items()))
        resolve_again(tables, self._surroundings, touched)
        learn(tables, self._surroundings, self._surroundings.home)
