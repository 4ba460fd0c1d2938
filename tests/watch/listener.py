"""A consumer of a watcher for tests: waits, with a bound, until something was marked."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from acp_history_bridge.adapter import Store
from acp_history_bridge.watch import Dirty, Watcher, WatchOptions

POLLING = WatchOptions(force_polling=True, poll_interval=0.02, full_interval=0.05)


class Listener:
    """Runs a watcher over some roots or stores and gathers what it marks."""

    def __init__(self, *places: Path | Store, options: WatchOptions | None = None) -> None:
        self.stores = [place if isinstance(place, Store) else Store("notes", place) for place in places]
        self.wakes = 0
        self.seen = Dirty()
        self.woken = threading.Event()
        self.watcher = Watcher(self.stores, self._wake, options)

    def __enter__(self) -> Self:
        self.watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.watcher.stop()

    def _wake(self) -> None:
        self.wakes += 1
        self.woken.set()

    def until(self, happened: Callable[[Dirty], object], seconds: float = 10) -> Dirty:
        """Take batches until what was gathered so far is enough."""
        deadline = time.monotonic() + seconds
        while not happened(self.seen):
            woken = self.woken.wait(deadline - time.monotonic())
            assert woken, f"only this was marked: {self.seen}"
            self.woken.clear()
            self.seen |= self.watcher.take()
        return self.seen

    def until_marked(self, *paths: Path) -> Dirty:
        """Take batches until all these paths were marked."""
        return self.until(lambda seen: seen.paths >= set(paths))

    def until_rescan(self, root: Path) -> Dirty:
        """Take batches until this root was marked for a rescan."""
        return self.until(lambda seen: root in seen.roots_to_rescan)

    def forget(self) -> None:
        """Gather anew."""
        self.seen = Dirty()

    @property
    def modes(self) -> list[str]:
        """How each target is watched."""
        return [root.mode for root in self.watcher.status().roots]


def append(path: Path, text: str = "line\n") -> Path:
    """Append to a file, as the tools do."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    return path


def make_directory(path: Path) -> Path:
    """Make a directory and its parents."""
    path.mkdir(parents=True, exist_ok=True)
    return path
