"""The table of sessions on a terminal.

rich measures wide characters and respects NO_COLOR, but passes escape sequences through and reads strings as markup:
whatever comes from a transcript is sanitised first and wrapped in `Text`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acp_history_bridge.cli.groups import Group
from acp_history_bridge.cli.output import age, home_relative
from acp_history_bridge.cli.rows import Row
from acp_history_bridge.text import terminal_safe

__all__ = ["make_console", "print_groups", "print_table"]


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    style: str = ""
    justify: Literal["left", "right"] = "left"


_COLUMNS = (
    _Column("Age", "dim"),
    _Column("Tool"),
    _Column("Title", "bold"),
    _Column("Directory"),
    _Column("Messages", justify="right"),
)
_TITLE, _DIRECTORY = 2, 3
_NARROWEST = 10
_GAP = 2


class _Console(Console):
    """rich's console, but for its own way of dying when the reader has left."""

    def on_broken_pipe(self) -> None:
        """Let the error through; the program's boundary knows what it means."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that takes no string for more than it is; a `file` is taken for a terminal of that width."""
    terminal = None if file is None else True
    return _Console(
        stderr=stderr, file=file, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False
    )


def print_table(rows: Sequence[Row], titles: Mapping[str, str], home: Path, now: datetime) -> None:
    """Print sessions as a table that fits the terminal; `titles` are the tools' names as people write them."""
    cells = [_cells(row, titles, home, now) for row in rows]
    console = make_console()
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for column, width in zip(_COLUMNS, _widths(cells, console.width), strict=True):
        table.add_column(column.heading, width=width, no_wrap=True, justify=column.justify, style=column.style)
    for row_cells in cells:
        table.add_row(*map(Text, row_cells))
    console.print(table)


def print_groups(found: Sequence[Group], titles: Mapping[str, str], home: Path, now: datetime) -> None:
    """Print groups of sessions: how many, how long ago, which."""
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Sessions", justify="right", no_wrap=True)
    table.add_column("Age", style="dim", no_wrap=True)
    table.add_column("", style="bold", no_wrap=True, overflow="ellipsis")
    for group in found:
        name = home_relative(titles.get(group.name, group.name), home)
        table.add_row(f"{group.sessions:,}", age(group.updated_at, now), Text(name))
    make_console().print(table)


def _cells(row: Row, titles: Mapping[str, str], home: Path, now: datetime) -> tuple[str, ...]:
    session = row.session
    return (
        age(session.updated_at, now),
        terminal_safe(titles.get(session.tool, session.tool)),
        terminal_safe(session.title or "(no title)"),
        home_relative(session.cwd, home) if session.cwd_known else "?",
        "" if row.messages is None else str(row.messages),
    )


def _widths(cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Give age, tool and count what they need; title and directory share the rest, the title getting most of it."""
    needed = [
        max(cell_len(column.heading), *(cell_len(row[place]) for row in cells)) for place, column in enumerate(_COLUMNS)
    ]
    gaps = _GAP * (len(_COLUMNS) - 1)
    rest = max(width - gaps - sum(needed) + needed[_TITLE] + needed[_DIRECTORY], 2 * _NARROWEST)
    needed[_DIRECTORY] = min(needed[_DIRECTORY], max(rest - needed[_TITLE], rest * 2 // 5))
    needed[_TITLE] = min(needed[_TITLE], rest - needed[_DIRECTORY])
    return needed
