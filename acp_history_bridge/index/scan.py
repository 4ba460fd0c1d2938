"""What a scan has still to do, newest files first, and what it tells about its progress."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from acp_history_bridge.adapter import Unit
from acp_history_bridge.index.resolve import sort_key
from acp_history_bridge.sessions import Change, Page, SessionQuery
from acp_history_bridge.timestamps import from_ns

__all__ = ["Backlog", "ScanStep"]


@dataclass(frozen=True, slots=True)
class ScanStep:
    """One short step of a scan.

    Attributes:
        changes: What this step changed.
        done: Units dealt with so far, of those that are new or changed.
        total: All such units that are known of so far.
        done_bytes: The sizes of the units dealt with.
        total_bytes: The sizes of all.
        complete: The scan has ended.
    """

    changes: tuple[Change, ...] = ()
    done: int = 0
    total: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    complete: bool = False


class Backlog:
    """The units that a scan has found to be new or changed and has not looked at yet.

    Attributes:
        started: All stores are listed, and the units are in order.
    """

    def __init__(self) -> None:
        self._units: list[tuple[Unit, bool]] = []  # after `start` the newest is last
        self._total = self._total_bytes = self._done = self._done_bytes = 0
        self.started = False

    def __len__(self) -> int:
        return len(self._units)

    def add(self, units: Sequence[tuple[Unit, bool]]) -> None:
        """Take note of units, in any order, before `start`; each with whether it was looked at before."""
        self.started = False
        self._units += units
        self._total += len(units)
        self._total_bytes += sum(unit.fingerprint.size for unit, _ in units)

    def start(self) -> None:
        """All stores are known: put the newest units first."""
        self._units.sort(key=lambda item: item[0].fingerprint.mtime_ns)
        self.started = True

    def take(self) -> tuple[Unit, bool]:
        """Remove the newest unit, and say whether it was looked at before."""
        unit, seen_before = self._units.pop()
        self._done += 1
        self._done_bytes += unit.fingerprint.size
        return unit, seen_before

    def step(self, changes: tuple[Change, ...]) -> ScanStep:
        """Describe where the scan is."""
        return ScanStep(changes, self._done, self._total, self._done_bytes, self._total_bytes)

    def end(self) -> ScanStep:
        """Describe the end of the scan."""
        return replace(self.step(()), complete=True)

    def can_change(self, page: Page, query: SessionQuery, limit: int) -> bool:
        """Whether a unit still to be looked at could bring another session onto this page, or belongs to one on it."""
        newest = self._newest(query.tools)
        if newest is None:
            return False
        mtime = sort_key(from_ns(newest.fingerprint.mtime_ns))  # no session in the file can be newer
        if query.since is None or mtime >= sort_key(query.since):
            full = len(page.sessions) >= limit
            if not full or sort_key(page.sessions[-1].updated_at) <= mtime:
                return True
        shown = {session.unit.path for session in page.sessions}
        return any(unit.path in shown for unit, _ in self._units)

    def _newest(self, tools: frozenset[str] | None) -> Unit | None:
        return next((unit for unit, _ in reversed(self._units) if tools is None or unit.store.tool in tools), None)
