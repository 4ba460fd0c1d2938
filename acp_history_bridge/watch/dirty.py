"""What may have changed since the consumer last asked: marked by the threads that notice, taken by one consumer.

Policy: marking is a set insertion under a lock and nothing else, because a slow observer thread overflows the kernel's
queue. The consumer is woken once per batch, not once per event. The set is bounded: a root with too many dirty paths
becomes "scan this root again".
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Dirty", "DirtySet"]

PATHS_PER_ROOT = 8192


@dataclass(frozen=True, slots=True)
class Dirty:
    """One batch of what may have changed.

    Attributes:
        paths: Files and directories that were created, changed, moved or deleted.
        roots_to_rescan: Roots about which more is unknown than these paths say; none of `paths` lies below them only.
    """

    paths: frozenset[Path] = frozenset()
    roots_to_rescan: frozenset[Path] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.paths or self.roots_to_rescan)

    def __or__(self, other: "Dirty") -> "Dirty":
        return Dirty(self.paths | other.paths, self.roots_to_rescan | other.roots_to_rescan)


class DirtySet:
    """The lock-guarded set between the threads that notice and the one that acts."""

    def __init__(self, wake: Callable[[], None], limit: int = PATHS_PER_ROOT) -> None:
        """Make an empty set.

        Args:
            wake: Called from any thread when the set stops being empty; must be thread-safe and quick.
            limit: Paths kept per root before the root as a whole is marked.
        """
        self._wake = wake
        self._limit = limit
        self._lock = threading.Lock()
        self._paths: dict[Path, set[str]] = {}
        self._rescan: set[Path] = set()
        self._pending = False
        self._last_mark = time.monotonic()

    @property
    def last_mark(self) -> float:
        """When anything was last marked, on the monotonic clock."""
        return self._last_mark

    def mark(self, root: Path, path: str) -> None:
        """A path below a root may have changed."""
        with self._lock:
            if root not in self._rescan:
                paths = self._paths.setdefault(root, set())
                paths.add(path)
                if len(paths) > self._limit:
                    self._give_up_on(root)
            first = self._note()
        if first:
            self._wake()

    def mark_root(self, root: Path) -> None:
        """Anything below this root may have changed."""
        with self._lock:
            self._give_up_on(root)
            first = self._note()
        if first:
            self._wake()

    def poke(self) -> None:
        """Wake the consumer although no path is known to have changed."""
        with self._lock:
            first = self._note()
        if first:
            self._wake()

    def take(self) -> Dirty:
        """Hand over the batch and start a new one."""
        with self._lock:
            paths, rescan = self._paths, self._rescan
            self._paths, self._rescan, self._pending = {}, set(), False
        return Dirty(frozenset(Path(path) for marked in paths.values() for path in marked), frozenset(rescan))

    def _give_up_on(self, root: Path) -> None:
        self._paths.pop(root, None)
        self._rescan.add(root)

    def _note(self) -> bool:
        self._last_mark = time.monotonic()
        first, self._pending = not self._pending, True
        return first
