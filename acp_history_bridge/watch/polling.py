"""Finding changes by looking, for places where the kernel does not tell.

Policy: directories in which something happened lately are looked at every few seconds, all others rarely, so a large
archive on a network drive costs next to nothing. Links are not followed. What cannot be listed right now stays as it
was. Changes are reported exactly as the kernel's events are.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Happening", "PolledTree", "Poller", "Report"]

Happening = Literal["file", "directory", "gone"]
"""A file came, changed or went; a directory came; a directory went, and what was in it need not be reported."""

Report = Callable[[str, Happening], None]

ACTIVE_SECONDS = 600.0
_ALWAYS = float("inf")
_DIRECTORY = -1
_REST = 9  # a sweep may take at most one tenth of the time, whatever the file system


@dataclass(slots=True)
class _Listing:
    entries: dict[str, int]
    active_until: float


class PolledTree:
    """Directories that are looked at and, if recursive, every directory that appears in them later."""

    def __init__(self, report: Report, *, recursive: bool = True) -> None:
        self._report = report
        self._recursive = recursive
        self._lock = threading.Lock()
        self._listings: dict[str, _Listing] = {}

    def __len__(self) -> int:
        return len(self._listings)

    def add_tree(self, top: str) -> None:
        """Look at a directory, and at all below it if recursive, from now on; it need not exist yet."""
        with self._lock:
            self._add(top, report=False, deep=self._recursive)
            self._listings.setdefault(top, _Listing({}, 0.0)).active_until = _ALWAYS

    def set_directories(self, directories: frozenset[str]) -> bool:
        """Look at exactly these directories (and what appears in them) from now on; True when there are new ones."""
        with self._lock:
            for path in self._listings.keys() - directories:
                del self._listings[path]
            new = directories - self._listings.keys()
            for path in new:
                self._add(path, report=False, deep=False)
            return bool(new)

    def sweep(self, *, everything: bool) -> None:
        """Look at the recently active directories, or at everything, and report what changed."""
        with self._lock:
            now = time.monotonic()
            for path, listing in list(self._listings.items()):
                if everything or listing.active_until >= now:
                    self._look(path, listing)

    def _look(self, path: str, listing: _Listing) -> None:
        try:
            entries, _ = _list(path)
        except (FileNotFoundError, NotADirectoryError):
            self._lost(path, listing)
            return
        except OSError:
            return
        if entries == listing.entries:
            return
        before, listing.entries = listing.entries, entries
        listing.active_until = max(listing.active_until, time.monotonic() + ACTIVE_SECONDS)
        for name in before.keys() | entries.keys():
            if before.get(name) != entries.get(name):
                self._changed(f"{path}{os.sep}{name}", before.get(name), entries.get(name))

    def _changed(self, path: str, before: int | None, now: int | None) -> None:
        if now == _DIRECTORY:
            self._report(path, "directory")
            if self._recursive:
                self._add(path, report=True, deep=True)
        else:
            self._report(path, "gone" if before == _DIRECTORY else "file")

    def _lost(self, path: str, listing: _Listing) -> None:
        if listing.active_until == _ALWAYS:  # the top: kept, for it may come back
            if listing.entries:
                listing.entries = {}
                self._report(path, "gone")
        else:
            self._listings.pop(path, None)
            self._report(path, "gone")

    def _add(self, top: str, *, report: bool, deep: bool) -> None:
        pending = [top]
        while pending:
            path = pending.pop()
            try:
                entries, newest = _list(path)
            except OSError:
                continue
            age = max(0.0, time.time() - newest / 1e9)
            self._listings[path] = _Listing(entries, time.monotonic() + ACTIVE_SECONDS - age)
            for name, signature in entries.items():
                child = f"{path}{os.sep}{name}"
                if report:
                    self._report(child, "directory" if signature == _DIRECTORY else "file")
                if deep and signature == _DIRECTORY:
                    pending.append(child)


def _list(path: str) -> tuple[dict[str, int], int]:
    """The entries of a directory with a number that changes when they do, and the newest modification time."""
    entries: dict[str, int] = {}
    newest = 0
    with os.scandir(path) as found:
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    entries[entry.name] = _DIRECTORY
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone since it was listed
                continue
            entries[entry.name] = abs(hash((status.st_mtime_ns, status.st_size, status.st_ino)))
            newest = max(newest, status.st_mtime_ns)
    return entries, newest


class Poller:
    """The thread that sweeps; it starts when there is something to sweep."""

    def __init__(self, interval: float, full_interval: float) -> None:
        """Prepare a poller.

        Args:
            interval: Seconds between two looks at the active directories.
            full_interval: Seconds between two looks at everything.
        """
        self._interval = interval
        self._full_interval = full_interval
        self._trees: dict[Hashable, PolledTree] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def directories(self) -> int:
        """How many directories are looked at."""
        return sum(len(tree) for tree in list(self._trees.values()))

    def set(self, key: Hashable, tree: PolledTree | None) -> None:
        """Sweep this tree under this key from now on; None ends it."""
        trees = {known: value for known, value in self._trees.items() if known != key}
        self._trees = trees if tree is None else trees | {key: tree}  # replaced, never changed: the thread iterates it
        self.keep_running()

    def keep_running(self) -> None:
        """Start the thread if there is work and it does not run, whatever ended it."""
        if self._trees and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="history-poller", daemon=True)
            self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread; one that hangs in a dead network drive is left behind (it is a daemon)."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        next_full = time.monotonic() + self._full_interval
        pause = self._interval
        while not self._stop.wait(pause):
            begun = time.monotonic()
            everything = begun >= next_full
            for tree in self._trees.values():
                tree.sweep(everything=everything)
            ended = time.monotonic()
            if everything:
                next_full = ended + self._full_interval
            pause = max(self._interval, (ended - begun) * _REST)
