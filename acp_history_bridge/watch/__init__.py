"""Noticing that something changed below the stores' roots.

The kernel tells (through watchdog) where it can; a sweep of our own looks where it cannot. Whoever listens gets nothing
but paths that may have changed and roots that have to be scanned again; what that means is the adapters' business.
Importing this package does not import watchdog: that happens when a watcher starts.
"""

from acp_history_bridge.watch.dirty import Dirty
from acp_history_bridge.watch.root import RootStatus, WatchOptions
from acp_history_bridge.watch.watcher import Watcher, WatchStatus

__all__ = ["Dirty", "RootStatus", "WatchOptions", "WatchStatus", "Watcher"]
