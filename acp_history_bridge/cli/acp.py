"""`bridge acp`: the agent, as editors start it.

Nothing is opened here: the histories are made by a function that the server calls once `initialize` is answered.
"""

from argparse import Namespace
from typing import TYPE_CHECKING

from acp_history_bridge.cli.context import Context
from acp_history_bridge.protocol.server import serve

if TYPE_CHECKING:  # loaded when the histories are opened, after `initialize` has been answered
    from acp_history_bridge.history import History
    from acp_history_bridge.index.library import Library

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Serve the client on standard input and output until it leaves."""
    del arguments

    def open_library() -> "Library":
        return context.library(context.adapters())

    def make_source() -> "History":
        from acp_history_bridge.history import History, HistoryOptions
        from acp_history_bridge.watch.root import WatchOptions

        watch = context.settings.watch
        options = HistoryOptions(
            watch=watch.mode != "off",
            debounce=watch.debounce_ms / 1000,
            ceiling=watch.ceiling_ms / 1000,
            reconcile=watch.reconcile_seconds,
            watching=WatchOptions(force_polling=watch.mode == "poll", poll_interval=watch.poll_seconds),
        )
        return History(open_library, options)

    return serve(make_source, context.settings)
