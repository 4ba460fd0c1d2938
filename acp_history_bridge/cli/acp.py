"""`bridge acp`: the agent, as editors start it.

Nothing is opened here: the histories are made by a function that the server calls once `initialize` is answered.
"""

import sys
from argparse import Namespace
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_history_bridge.cli.context import Context
from acp_history_bridge.protocol.server import serve

if TYPE_CHECKING:  # loaded when the histories are opened, after `initialize` has been answered
    from acp_history_bridge.history import History
    from acp_history_bridge.index.library import Library

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Serve the client on standard input and output until it leaves."""

    def open_library() -> "Library":
        return context.library(context.adapters())

    def make_source() -> "AbstractAsyncContextManager[History]":
        from acp_history_bridge.history import History, HistoryOptions
        from acp_history_bridge.search.background import with_text_index
        from acp_history_bridge.watch.root import WatchOptions

        watch = context.settings.watch
        options = HistoryOptions(
            watch=watch.mode != "off",
            debounce=watch.debounce_ms / 1000,
            ceiling=watch.ceiling_ms / 1000,
            reconcile=watch.reconcile_seconds,
            watching=WatchOptions(force_polling=watch.mode == "poll", poll_interval=watch.poll_seconds),
        )
        history = History(open_library, options)
        return history if context.text_index() is None else with_text_index(history, _update_command(arguments))

    return serve(make_source, context.settings)


def _update_command(arguments: Namespace) -> list[str]:
    """What brings the full-text index up to date, with the settings of this process."""
    named: Path | None = arguments.config
    config = [] if named is None else ["--config", str(named.absolute())]
    return [sys.executable, "-m", "acp_history_bridge", "search", "--update", "--quiet", *config]
