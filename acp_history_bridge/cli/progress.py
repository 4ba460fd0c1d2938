"""Progress for a person who waits longer than a second: on standard error of a terminal, and gone afterwards."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from acp_history_bridge.cli.output import is_terminal
from acp_history_bridge.index.library import Library, ScanStep

if TYPE_CHECKING:  # rich is loaded when there is something to show
    from rich.progress import Progress

__all__ = ["counted", "scan"]

_T = TypeVar("_T")

_PATIENCE_SECONDS = 1.0


def scan(library: Library) -> None:
    """Bring the index up to date."""
    steps = library.scan()
    shown_from = time.monotonic() + _PATIENCE_SECONDS
    for _ in steps:
        if is_terminal() and sys.stderr.isatty() and time.monotonic() > shown_from:
            _with_bar(steps)


def _with_bar(steps: Iterator[ScanStep]) -> None:
    with _progress() as progress:
        task = progress.add_task("Reading histories", total=None)
        for step in steps:
            progress.update(task, completed=step.done, total=step.total)


def counted(text: str, items: Iterable[_T], total: int | None = None) -> Iterator[_T]:
    """Yield the items, and show how many are done once a second has gone by; `total` is how many there will be."""
    if not sys.stderr.isatty():
        yield from items
        return
    shown_from = time.monotonic() + _PATIENCE_SECONDS
    with _progress() as progress:
        task = progress.add_task(text, total=total, visible=False)
        for item in items:
            yield item
            progress.update(task, advance=1, visible=time.monotonic() > shown_from)


def _progress() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from acp_history_bridge.cli.table import make_console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=make_console(stderr=True), transient=True)
