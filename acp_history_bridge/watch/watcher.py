"""Watching the stores' roots: the one object the rest of the program sees.

Policy: events are a hint, never the truth. Everything that the kernel or watchdog may keep to themselves (dead threads,
lost events, limits, replaced roots) is looked for in `check`, and ends in a rescan rather than in a guess.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acp_history_bridge.adapter import Store
from acp_history_bridge.watch.coverage import watched_inodes
from acp_history_bridge.watch.dirty import Dirty, DirtySet
from acp_history_bridge.watch.polling import Poller
from acp_history_bridge.watch.root import Means, RootStatus, Target, WatchedRoot, WatchOptions

if TYPE_CHECKING:  # it imports watchdog, which happens when a watcher starts
    from acp_history_bridge.watch.parents import ParentWatch

__all__ = ["WatchStatus", "Watcher"]

_STOP_SECONDS = 0.4
_ATTEMPTS = 8  # a path that appears part by part moves the place to wait at while we get there
_AUDIT_EVERY = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """What `bridge doctor` shows; `watches` is None where the system does not tell."""

    roots: tuple[RootStatus, ...]
    watches: int | None
    overflows: int
    restarts: int
    notices: tuple[str, ...]


class Watcher:
    """Marks what changes below some roots. All methods block briefly and belong into a worker thread."""

    def __init__(self, stores: Iterable[Store], wake: Callable[[], None], options: WatchOptions | None = None) -> None:
        """Prepare watching; nothing happens before `start`.

        Args:
            stores: Whose roots (existing or not) are watched, as far down as each store wants it.
            wake: Called once per batch from any thread; the consumer then calls `take`.
            options: See `WatchOptions`.
        """
        options = options or WatchOptions()
        self._means = Means(options, DirtySet(wake), Poller(options.poll_interval, options.full_interval))
        self._roots = tuple(WatchedRoot(target, self._means) for target in _targets(stores))
        self._parents: ParentWatch | None = None
        self._lock = threading.Lock()  # start, take, check and stop may come from different worker threads
        self._lost = threading.Event()
        self._retry_events_at = 0.0
        self._checks = self._overflows = 0
        self._stopped = False

    @property
    def last_change(self) -> float:
        """When anything was last marked, on the monotonic clock."""
        return self._means.dirty.last_mark

    def start(self) -> None:
        """Begin to watch. What happened before is the consumer's business: scan after this has returned."""
        with self._lock:
            self._open_events()
            for root in self._roots:
                root.begin()
            self._settle()

    def take(self) -> Dirty:
        """Hand over what was marked, after bringing the watches in line with roots that came or went."""
        dirty = self._means.dirty.take()
        if self._means.shape_changed.is_set():
            self._means.shape_changed.clear()
            with self._lock:
                self._settle()
            dirty |= self._means.dirty.take()
        return dirty

    def check(self) -> None:
        """Look for everything that the kernel does not tell; to be called every half minute or so."""
        with self._lock:
            self._checks += 1
            self._revive()
            self._settle(audit=self._checks % _AUDIT_EVERY == 0)

    def stop(self) -> None:
        """End watching. Threads that are stuck in a dead file system are left behind; they are daemons."""
        with self._lock:
            self._stopped = True
            self._means.poller.stop(_STOP_SECONDS)
            if self._means.events is not None:
                self._means.events.close(_STOP_SECONDS)

    def status(self) -> WatchStatus:
        """Describe how well everything is watched."""
        watched = watched_inodes()
        return WatchStatus(
            roots=tuple(root.status for root in self._roots),
            watches=None if watched is None else len(watched),
            overflows=self._overflows,
            restarts=self._means.restarts,
            notices=tuple(self._means.notices),
        )

    def _settle(self, *, audit: bool = False) -> None:
        if self._stopped:
            return
        for _ in range(_ATTEMPTS):
            self._replace_lost()
            for root in self._roots:
                root.settle()
            missing = [root.path for root in self._roots if root.mode == "waiting"]
            if self._parents is None or self._parents.wait_for(missing):
                break
        for root in self._roots:
            root.cover(audit=audit)

    def _revive(self) -> None:
        self._means.poller.keep_running()
        events = self._means.events
        if events is not None and not events.alive:
            _log.error("the threads that watch files died; starting them again")
            self._means.restarts += 1
            events.close(_STOP_SECONDS)
            self._means.events = self._parents = None
            for root in self._roots:
                root.forget_events()
        if self._means.events is None and time.monotonic() >= self._retry_events_at:
            self._open_events()

    def _open_events(self) -> None:
        if self._means.options.force_polling or self._stopped:
            return
        from acp_history_bridge.watch.events import EventSource
        from acp_history_bridge.watch.parents import ParentWatch

        try:
            self._means.events = EventSource(self._overflowed)
        except OSError as error:
            self._retry_events_at = time.monotonic() + self._means.options.retry_interval
            self._means.notice(f"the system allows no file watching ({error.strerror}); looking every few seconds")
        else:
            self._parents = ParentWatch(self._means.events, self._means)

    def _overflowed(self) -> None:
        self._overflows += 1
        self._lost.set()
        self._means.reshape()

    def _replace_lost(self) -> None:
        # watchdog makes its watches anew too, but does not say when they stand: a rescan of ours could come too early.
        if self._lost.is_set():
            self._lost.clear()
            for root in self._roots:
                if root.mode == "events":
                    root.renew()


def _targets(stores: Iterable[Store]) -> list[Target]:
    targets: dict[Target, None] = {}
    for store in stores:
        targets[Target(store.root, store.root, recursive=store.watched is None)] = None
        for name in store.watched or ():
            targets[Target(store.root / name, store.root)] = None
    return list(targets)
