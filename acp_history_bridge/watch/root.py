"""One watched root, whatever happens to it.

Policy: a root is always in one of four states, and `settle` moves it to the one that fits what is on disk now.

    waiting     it does not exist; parents.py waits for it
    unreadable  it exists but may not be listed: tried again every time
    events      the kernel reports; directories below that it cannot report on are polled
    polling     the kernel cannot report: a network mount, no watch or instance left, or the user wants it so

Whenever a root changes its state or is watched anew it is marked for a rescan *after* the watch stands, so nothing
falls in between. A root that is a link is watched at its target and reported under its own name.
"""

import errno
import logging
import os
import stat
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from acp_history_bridge.watch.coverage import deaf_directories
from acp_history_bridge.watch.dirty import DirtySet
from acp_history_bridge.watch.mounts import MOUNTINFO, filesystem_of, needs_polling, read_mounts
from acp_history_bridge.watch.polling import Happening, PolledTree, Poller

if TYPE_CHECKING:  # watchdog is imported when a watcher starts
    from acp_history_bridge.watch.events import EventSource, Subscription

__all__ = ["Means", "Mode", "RootStatus", "Target", "WatchOptions", "WatchedRoot", "identity_of"]

Mode = Literal["waiting", "unreadable", "events", "polling"]

_LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How to watch.

    Attributes:
        force_polling: Never use kernel events.
        poll_interval: Seconds between two looks at recently active directories.
        full_interval: Seconds between two looks at all polled directories.
        retry_interval: Seconds before a limit of the kernel is tried again.
        mountinfo: Where this process' mounts are listed.
    """

    force_polling: bool = False
    poll_interval: float = 2.0
    full_interval: float = 30.0
    retry_interval: float = 600.0
    mountinfo: Path = MOUNTINFO


@dataclass(frozen=True, slots=True)
class Target:
    """A directory to watch.

    Attributes:
        path: The directory; it need not exist.
        root: The store's root, which is marked when more may have changed than single paths.
        recursive: Whether all below it is watched, too.
    """

    path: Path
    root: Path
    recursive: bool = True


@dataclass(frozen=True, slots=True)
class RootStatus:
    """How one root is watched, why not by events, and how many directories are polled."""

    path: Path
    mode: Mode
    reason: str = ""
    polled: int = 0


@dataclass(slots=True)
class Means:
    """What all roots of a watcher share.

    Attributes:
        events: None while the kernel gives none.
        shape_changed: Set when a root may have come, gone or been replaced.
        restarts: How often something that had died was started again.
        notices: What the user should know, each once, in order.
    """

    options: WatchOptions
    dirty: DirtySet
    poller: Poller
    events: "EventSource | None" = None
    shape_changed: threading.Event = field(default_factory=threading.Event)
    restarts: int = 0
    notices: dict[str, None] = field(default_factory=dict[str, None])

    def notice(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self.notices:
            self.notices[text] = None
            _log.warning("%s", text)

    def reshape(self) -> None:
        """Have the watches brought in line with the disk soon; safe from any thread."""
        self.shape_changed.set()
        self.dirty.poke()


class WatchedRoot:
    """The state of one target. Not thread-safe but for what observer threads report."""

    def __init__(self, target: Target, means: Means) -> None:
        self.path = target.path
        self.mode: Mode = "waiting"
        self._root = target.root
        self._recursive = target.recursive
        self._means = means
        self._real = target.path
        self._identity: tuple[int, int] | None = None
        self._subscription: Subscription | None = None
        self._tree: PolledTree | None = None
        self._reason = ""
        self._limited_since: float | None = None
        self._blind: frozenset[str] = frozenset()
        self._audit_due = True

    @property
    def status(self) -> RootStatus:
        """How it is watched."""
        return RootStatus(self.path, self.mode, self._reason, len(self._tree) if self._tree is not None else 0)

    def begin(self) -> None:
        """Enter the first state; nothing is marked."""
        self._enter(identity_of(self.path))

    def settle(self) -> None:
        """Enter the state that fits what is on disk now."""
        if not self._fits(identity_of(self.path)):
            self.renew()

    def renew(self) -> None:
        """Watch from scratch, whatever the state was."""
        self._leave()
        self._enter(identity_of(self.path))
        self._means.dirty.mark_root(self._root)

    def forget_events(self) -> None:
        """The source of events has gone, and the subscription with it."""
        self._subscription = None

    def cover(self, *, audit: bool) -> None:
        """Poll the directories below that the kernel does not report on, and watch what has become readable.

        Args:
            audit: Count the directories even if none came or went since the last time.
        """
        if self.mode != "events" or not self._recursive or not (audit or self._audit_due):
            return
        deaf = deaf_directories(self._real)
        blind = frozenset(path for path in deaf if not _listable(Path(path)))
        if self._blind & (deaf - blind):
            self.renew()
        else:
            self._blind = blind
            self._poll_deaf(deaf - blind)
            self._audit_due = bool(deaf)

    def _fits(self, identity: tuple[int, int] | None) -> bool:
        retry = self._means.options.retry_interval
        if self._limited_since is not None and time.monotonic() - self._limited_since >= retry:
            return False
        match self.mode:
            case "waiting":
                return identity is None
            case "unreadable":
                return identity is not None and not _listable(self.path)
            case "events":
                return identity == self._identity and self._delivers()
            case "polling":
                return True  # the sweep itself sees a root come, go and change

    def _delivers(self) -> bool:
        events = self._means.events
        if self._subscription is None or events is None:  # they died together and were counted then
            return False
        if events.watching(self._subscription):
            return True
        self._means.restarts += 1
        return False

    def _leave(self) -> None:
        if self._subscription is not None and self._means.events is not None:
            self._means.events.unwatch(self._subscription)
        self._stop_polling()
        self._subscription = None
        self._blind = frozenset()
        self._reason = ""

    def _enter(self, identity: tuple[int, int] | None) -> None:
        self._identity = identity
        self._real = Path(os.path.realpath(self.path))
        options, events = self._means.options, self._means.events
        filesystem = filesystem_of(self._real, read_mounts(options.mountinfo))
        if options.force_polling:
            self._poll("as the settings say")
        elif needs_polling(filesystem):
            self._poll(f"{filesystem} reports no changes made elsewhere")
        elif events is None:
            self._poll("the system allows no more file watching", limited=True)
        elif identity is None:
            self.mode = "waiting"
        elif not _listable(self.path):
            self.mode, self._reason = "unreadable", "permission denied"
            self._means.notice(f"{self.path} may not be read")
        else:
            self._subscribe(events)

    def _subscribe(self, events: "EventSource") -> None:
        try:
            self._subscription = events.watch(self._real, self._report, recursive=self._recursive)
        except FileNotFoundError:  # gone since we looked
            self.mode, self._identity = "waiting", None
        except OSError as error:
            self._poll(error.strerror or type(error).__name__, limited=error.errno in _LIMITS)
            self._means.notice(f"{self.path} cannot be watched ({self._reason}); looking every few seconds instead")
        else:
            self.mode, self._audit_due = "events", True

    def _poll(self, reason: str, *, limited: bool = False) -> None:
        self.mode, self._reason = "polling", reason
        tree = self._start_polling(limited=limited)
        tree.add_tree(str(self._real))

    def _poll_deaf(self, directories: frozenset[str]) -> None:
        if not directories:
            self._stop_polling()
            return
        tree = self._tree
        if tree is None:
            tree = self._start_polling(limited=True)
            self._means.notice(f"the kernel's watch limit leaves out directories below {self.path}; looking instead")
        if tree.set_directories(directories):
            self._means.dirty.mark_root(self._root)  # they were deaf until now

    def _start_polling(self, *, limited: bool) -> PolledTree:
        self._limited_since = time.monotonic() if limited else None
        self._tree = PolledTree(self._report, recursive=self._recursive)
        self._means.poller.set(self, self._tree)
        return self._tree

    def _stop_polling(self) -> None:
        if self._tree is not None:
            self._means.poller.set(self, None)
        self._tree = self._limited_since = None

    def _report(self, path: str, happening: Happening) -> None:
        real = str(self._real)
        if happening != "file":
            self._audit_due = True
        if path == real:
            self._means.dirty.mark_root(self._root)
            self._means.reshape()
        else:
            self._means.dirty.mark(self._root, f"{self.path}{path[len(real) :]}")


def identity_of(path: Path) -> tuple[int, int] | None:
    """Device and inode of a directory or of the one a link leads to; None when there is none to be seen."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _listable(path: Path) -> bool:
    return os.access(path, os.R_OK | os.X_OK)
