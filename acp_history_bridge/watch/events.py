"""Kernel events through watchdog, with its sharp edges (7.1.0) covered. Imported only when a watcher starts.

- The event filter is explicit and the same everywhere. With the default one, opening directories makes events, and from
  4,000 directories on watchdog overflows its own queue for ever. A second watch on one directory with another filter
  would replace the first one's mask.
- watchdog tells nobody that the kernel's queue overflowed; it only logs it, so we listen to its log.
- A watch on a link watches the link, so callers resolve roots first.
- It logs every event at DEBUG, which feeds itself when the log lies in a watched tree.
- It warns (on stderr) when a second directory of a tree is unreadable.
"""

import logging
import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from acp_history_bridge.watch.polling import Happening, Report

__all__ = ["EventSource", "Subscription"]

EVENT_FILTER: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]

_INOTIFY_LOG = "watchdog.observers.inotify_c"
_OVERFLOW = "Inotify queue overflowed"


class _Handler(FileSystemEventHandler):
    """Everybody who listens to one directory; watchdog keeps one watch for it and drops all when one leaves."""

    def __init__(self) -> None:
        self.reports: tuple[Report, ...] = ()  # replaced, never changed: the observer's thread iterates it

    def dispatch(self, event: FileSystemEvent) -> None:
        if not event.is_directory:
            happening: Happening = "file"
        else:
            happening = "directory" if event.event_type == "created" else "gone"
        for report in self.reports:
            report(os.fsdecode(event.src_path), happening)
            if event.dest_path:
                report(os.fsdecode(event.dest_path), "directory" if event.is_directory else "file")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One listener on one directory."""

    watch: ObservedWatch
    report: Report


class _OverflowListener(logging.Handler):
    def __init__(self, overflowed: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._overflowed = overflowed

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith(_OVERFLOW):
            self._overflowed()


class EventSource:
    """One watchdog observer. After `alive` has turned False it is closed and another one is made."""

    def __init__(self, overflowed: Callable[[], None]) -> None:
        """Start the observer's threads.

        Args:
            overflowed: Called from an observer thread when the kernel has dropped events.

        Raises:
            OSError: The kernel allows no further inotify instance.
        """
        warnings.filterwarnings("ignore", message="Callback with id '", category=RuntimeWarning)
        logging.getLogger("watchdog").setLevel(logging.WARNING)
        self._handlers: dict[ObservedWatch, _Handler] = {}
        self._observer = Observer()
        self._observer.start()
        # The thread that reads the kernel's queue is not among the emitters, and its death is silent.
        self._reader: object = getattr(self._observer, "_inotify_fd", None)
        self._listener = _OverflowListener(overflowed)
        logging.getLogger(_INOTIFY_LOG).addHandler(self._listener)

    def watch(self, path: Path, report: Report, *, recursive: bool) -> Subscription:
        """Report what happens in a directory, or in the tree below it.

        Raises:
            OSError: It is gone, or the kernel allows no further watch.
        """
        watch = ObservedWatch(str(path), recursive=recursive, event_filter=EVENT_FILTER)
        handler = self._handlers.get(watch) or _Handler()
        handler.reports += (report,)
        if not self._emitting(watch):
            if watch in self._handlers:  # it ended when its directory was deleted, but still holds the place
                self._end(watch)
            self._observer.schedule(handler, str(path), recursive=recursive, event_filter=EVENT_FILTER)
            self._handlers[watch] = handler
        return Subscription(watch, report)

    def unwatch(self, subscription: Subscription) -> None:
        """End a subscription; one that has ended by itself is fine."""
        handler = self._handlers.get(subscription.watch)
        if handler is None:
            return
        handler.reports = tuple(report for report in handler.reports if report != subscription.report)
        if not handler.reports:
            self._end(subscription.watch)

    def watching(self, subscription: Subscription) -> bool:
        """Whether a subscription still delivers; it ends by itself when its directory is deleted."""
        return subscription.watch in self._handlers and self._emitting(subscription.watch)

    def _end(self, watch: ObservedWatch) -> None:
        del self._handlers[watch]
        self._observer.unschedule(watch)

    def _emitting(self, watch: ObservedWatch) -> bool:
        return any(emitter.watch == watch and emitter.is_alive() for emitter in self._observer.emitters)

    @property
    def alive(self) -> bool:
        """Whether the threads that all subscriptions share still run."""
        reader_alive = self._reader.is_alive() if isinstance(self._reader, threading.Thread) else True
        return self._observer.is_alive() and reader_alive

    def close(self, timeout: float) -> None:
        """End everything."""
        logging.getLogger(_INOTIFY_LOG).removeHandler(self._listener)
        self._observer.stop()
        self._observer.join(timeout)
