"""The table of sessions on a terminal.

rich measures wide characters and respects NO_COLOR, but passes escape sequences through and reads strings as markup:
whatever comes from a transcript is sanitised first and wrapped in `Text`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acp_history_bridge.cli.output import age, home_relative
from acp_history_bridge.cli.rows import Row
from acp_history_bridge.text import terminal_safe

__all__ = ["make_console", "print_table"]


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes no string for more than it is."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def print_table(rows: Sequence[Row], titles: Mapping[str, str], home: Path, now: datetime) -> None:
    """Print sessions as a table that fits the terminal; `titles` are the tools' names as people write them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("Age", no_wrap=True, style="dim")
    table.add_column("Tool", no_wrap=True)
    table.add_column("Title", no_wrap=True, overflow="ellipsis", ratio=3, style="bold")
    table.add_column("Directory", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("Messages", no_wrap=True, justify="right")
    for row in rows:
        session = row.session
        table.add_row(
            Text(age(session.updated_at, now)),
            Text(terminal_safe(titles.get(session.tool, session.tool))),
            Text(terminal_safe(session.title or "(no title)")),
            Text(home_relative(session.cwd, home) if session.cwd_known else "?"),
            Text("" if row.messages is None else str(row.messages)),
        )
    make_console().print(table)
