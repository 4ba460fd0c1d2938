"""The library: all sessions of all tools, kept up to date; the only part of the index that others use.

Policy:

- Everything is synchronous and belongs to one thread. A scan is a generator of short steps, so that its owner can
  answer somebody in between; every other call takes about as long as its answer is big.
- Nothing is lost: only a complete listing that lacks a unit removes it, or its file being gone when asked for by name.
- One adapter's failure is that adapter's: it is logged and counted, its sessions stay, the others go on.
- All adapters are always given; whoever wants one tool says so in the query. What a missing adapter had found is
  dropped from the index.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from acp_history_bridge.adapter import Adapter, Environment, Problem, Store, Transcript, Unit
from acp_history_bridge.decisions import Decisions
from acp_history_bridge.index.adapters import Adapters
from acp_history_bridge.index.catalogue import Catalogue
from acp_history_bridge.index.look import Finding, look
from acp_history_bridge.index.scan import Backlog, ScanStep
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.index.tables import ProblemCount, fingerprint_text
from acp_history_bridge.index.visibility import Visibility
from acp_history_bridge.search.pages import SearchPages
from acp_history_bridge.sessions import Change, Page, Session, SessionQuery

__all__ = ["Library", "LibraryOptions", "ProblemCount", "ScanStep"]

_STEP_SECONDS = 0.02
_STEP_UNITS = 200
_PASSES = 3  # a database that breaks again and again is not worth a fourth

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LibraryOptions:
    """What a library has besides its index.

    Attributes:
        text_index: Where the full-text index lies; None for none.
        decisions: Where the user's decisions lie; None keeps them in memory.
        headless: Whether sessions that a program made are listed.
    """

    text_index: Path | None = None
    decisions: Path | None = None
    headless: bool = True


class Library:
    """All sessions of all tools.

    Attributes:
        stores: Where all tools keep histories, each real directory once per tool and layout.
        decisions: What the user decided; each takes effect at once, and is reported by `decided`.
    """

    def __init__(
        self,
        adapters: Sequence[Adapter],
        environment: Environment,
        store: IndexStore,
        options: LibraryOptions | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Bind adapters, machine and databases.

        Args:
            adapters: All of them.
            environment: The machine.
            store: The index.
            options: See `LibraryOptions`.
            clock: Tells the nanoseconds since the epoch.
        """
        options = options or LibraryOptions()
        self._adapters = Adapters(adapters, environment)
        self.decisions = Decisions(options.decisions)
        self._visibility = Visibility(self.decisions, headless=options.headless)
        self.stores = self._adapters.stores
        self._catalogue = Catalogue(
            store,
            {place: self._adapters.reader(place) for place in self.stores},
            {adapter.name: adapter.prefix for adapter in adapters},
            environment.home,
            self._visibility,
        )
        self._search = SearchPages(self._catalogue, options.text_index, environment.home)
        self._clock = clock
        self._epoch = 0  # grows with every refresh: what a running scan has listed may be outdated then
        self._backlog: Backlog | None = None  # of the running scan of everything
        self._scanned = False
        self._unreported: tuple[Change, ...] = ()

    def scan(self) -> Iterator[ScanStep]:
        """Look at everything that is new or changed, newest files first over all tools, in short steps.

        The last step is the one that is `complete`. Between steps every other method can be called.
        """
        self._catalogue.claim()
        backlog = self._backlog = Backlog()
        yield from self._passes(self.stores, backlog)
        self._backlog, self._scanned = None, True
        yield backlog.end()

    def rescan(self, store: Store) -> Iterator[ScanStep]:
        """Look at everything that is new or changed in one store, as `scan` does."""
        backlog = Backlog()
        yield from self._passes([store], backlog)
        yield backlog.end()

    def refresh(self, paths: Iterable[Path]) -> tuple[Change, ...]:
        """Look at what these changed paths concern; work does not depend on how much else there is.

        Only a change that an adapter cannot pin down, such as a moved directory, lists its whole store.
        """
        self._epoch += 1
        units: dict[tuple[Store, Path], None] = {}
        stores: dict[Store, None] = {}
        for path in paths:
            for store, inside, affected in self._adapters.affected(path):
                if affected.rescan:
                    stores[store] = None
                units.update(dict.fromkeys((store, unit) for unit in affected.units))
                if not os.path.lexists(inside):
                    units.update(dict.fromkeys((store, unit) for unit in self._catalogue.units_below(store, inside)))
        changes = self._answered(lambda: self._look_again(units), repeat=False)
        for store in stores:
            for step in self._passes([store], Backlog()):
                changes += step.changes
        return self._with_unreported(changes)

    def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page:
        """List sessions: newest activity first, ties by id; a search best match first.

        Raises:
            CursorError: The cursor was not made by this process for this very query.
            QueryError: A filter in `query.search` makes no sense.
        """
        if query.cwd is not None:  # somebody who asks for a directory tells us that there is one
            cwd = query.cwd
            self._unreported += self._answered(lambda: self._catalogue.learn(cwd), repeat=False)
        if query.search:
            return self._answered(lambda: self._search.page(query, limit, cursor))
        return self._answered(lambda: self._catalogue.page(query, limit, cursor))

    def count(self, query: SessionQuery) -> int:
        """How many sessions all pages of a query hold together."""
        if query.search:
            return self._answered(lambda: self._search.count(query))
        return self._answered(lambda: self._catalogue.count(query))

    def find(self, session_id: str) -> Session | None:
        """Look a wire id up. A suffixed id also finds the session that has the plain one."""
        return self._answered(lambda: self._catalogue.find(session_id))

    def settled(self, query: SessionQuery, limit: int, cursor: str | None = None) -> bool:
        """Whether this page is already what it will be after the first scan.

        A session is never newer than its file, and files are looked at newest first. So a full page is settled as soon
        as the next file is older than its last session.

        Raises:
            CursorError: As `page`.
        """
        if self._scanned or query.search:  # a search says what it could not search
            return True
        if self._backlog is None or not self._backlog.started:
            return False
        return not self._backlog.can_change(self.page(query, limit, cursor), query, limit)

    def decided(self) -> tuple[Change, ...]:
        """What has been decided about sessions since the last changes, here or by another process."""
        return self._catalogue.decided()

    def open(self, session: Session) -> Transcript:
        """Open a session for reading its turns.

        Raises:
            TranscriptError: It is gone or cannot be opened.
        """
        return self._adapters.open(session)

    def adapter(self, tool: str) -> Adapter:
        """The adapter of a tool.

        Raises:
            AdapterError: There is none of this name.
        """
        return self._adapters.named(tool)

    def problems(self) -> tuple[ProblemCount, ...]:
        """What could not be read or understood, counted by tool and kind, the most frequent first."""
        counts: Counter[tuple[str, str]] = Counter()
        examples: dict[tuple[str, str], Problem] = {}
        for found in (*self._answered(self._catalogue.problems), *self._adapters.problem_counts()):
            counts[found.tool, found.kind] += found.number
            examples.setdefault((found.tool, found.kind), found.example)
        return tuple(
            ProblemCount(tool, kind, number, examples[tool, kind])
            for (tool, kind), number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )

    def close(self) -> None:
        """Close the databases; nothing may be asked afterwards. Idempotent."""
        self._search.close()
        self._catalogue.close()
        self.decisions.close()

    def _answered(self, ask: Callable[[], T], *, repeat: bool = True) -> T:
        """Ask the catalogue; if it has just lost its database, find everything again first.

        What that brings back is not reported as changes: nobody knows that it was ever lost.
        """
        generation = self._catalogue.generation
        answer = ask()
        if generation == self._catalogue.generation:
            return answer
        for _ in self._passes(self.stores, Backlog()):
            pass
        return ask() if repeat else answer

    def _passes(self, stores: Sequence[Store], backlog: Backlog) -> Iterator[ScanStep]:
        for _ in range(_PASSES):
            generation = self._catalogue.generation
            yield from self._pass(stores, backlog)
            if generation == self._catalogue.generation:
                return
            stores = self.stores

    def _pass(self, stores: Sequence[Store], backlog: Backlog) -> Iterator[ScanStep]:
        epoch = self._epoch
        for number, store in enumerate(stores, 1):
            changes = self._compare(store, backlog)
            if number == len(stores):
                backlog.start()
            yield backlog.step(self._with_unreported(changes))
        while backlog:
            yield backlog.step(self._with_unreported(self._look_at_some(backlog, epoch)))

    def _compare(self, store: Store, backlog: Backlog) -> tuple[Change, ...]:
        """List a store: what is new or changed goes to the backlog, what is gone is dropped."""
        before = self._catalogue.fingerprints(store)
        discovery = self._adapters.discover(store)
        present: set[bytes] = set()
        changed: list[tuple[Unit, bool]] = []
        for unit in discovery.units:
            path = os.fsencode(unit.path)
            if path not in present:
                present.add(path)
                if before.get(path) != (fingerprint_text(unit.fingerprint), False):
                    changed.append((unit, path in before))
        backlog.add(changed)
        gone = before.keys() - present if discovery.complete else ()
        return self._catalogue.put((), ((store, Path(os.fsdecode(path))) for path in gone))

    def _look_at_some(self, backlog: Backlog, epoch: int) -> tuple[Change, ...]:
        findings: list[Finding] = []
        outdated: dict[tuple[Store, Path], None] = {}
        deadline = time.monotonic() + _STEP_SECONDS
        while backlog and len(findings) + len(outdated) < _STEP_UNITS:
            unit, seen_before = backlog.take()
            if epoch == self._epoch:
                findings.append(self._look(unit, seen_before=seen_before))
            else:
                outdated[unit.store, unit.path] = None
            if time.monotonic() > deadline:
                break
        return self._catalogue.put(findings, ()) + self._look_again(outdated)

    def _look_again(self, units: Iterable[tuple[Store, Path]]) -> tuple[Change, ...]:
        """Look at those of these units that are not as they were when they were last looked at."""
        findings: list[Finding] = []
        gone: list[tuple[Store, Path]] = []
        for store, path in units:
            unit, certainly_gone = self._adapters.unit(store, path)
            if certainly_gone:
                gone.append((store, path))
            elif unit is not None:
                last = self._catalogue.last_look(store, unit.path)
                if last != (fingerprint_text(unit.fingerprint), False):
                    findings.append(self._look(unit, seen_before=last is not None))
        return self._catalogue.put(findings, gone)

    def _look(self, unit: Unit, *, seen_before: bool) -> Finding:
        known = self._catalogue.known(unit) if seen_before else None
        return look(self.adapter(unit.store.tool), unit, known, self._clock())

    def _with_unreported(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        changes, self._unreported = (*self._unreported, *changes), ()
        return (*self._visibility.told(changes), *self.decided())
