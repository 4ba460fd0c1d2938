"""Scanning with a progress bar, for a person who waits longer than a second."""

import sys
import time
from collections.abc import Iterator

from acp_history_bridge.cli.output import is_terminal
from acp_history_bridge.index.library import Library, ScanStep

__all__ = ["scan"]

_PATIENCE_SECONDS = 1.0


def scan(library: Library) -> None:
    """Bring the index up to date; the bar goes to standard error and vanishes afterwards."""
    steps = library.scan()
    shown_from = time.monotonic() + _PATIENCE_SECONDS
    for _ in steps:
        if is_terminal() and sys.stderr.isatty() and time.monotonic() > shown_from:
            _with_bar(steps)


def _with_bar(steps: Iterator[ScanStep]) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from acp_history_bridge.cli.table import make_console

    columns = (TextColumn("Reading histories"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        for step in steps:
            progress.update(task, completed=step.done, total=step.total)
