"""Search hits on a terminal: title, id, age and place, and what was said with the found words marked."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from rich.text import Text

from acp_history_bridge.cli.output import age, home_relative
from acp_history_bridge.cli.table import make_console
from acp_history_bridge.sessions import Page, Snippet
from acp_history_bridge.text import terminal_safe

__all__ = ["print_hits"]


def print_hits(page: Page, remarks: Iterable[str], home: Path, now: datetime) -> None:
    """Print the sessions of a search, then the remarks."""
    console = make_console()
    for session in page.sessions:
        title = Text(terminal_safe(session.title or "(no title)"), style="bold")
        console.print(title, no_wrap=True, overflow="ellipsis")
        place = home_relative(session.cwd, home) if session.cwd_known else "?"
        console.print(Text(f"  {session.id}  {age(session.updated_at, now)}  {place}", style="dim"), soft_wrap=True)
        if (snippet := page.snippets.get(session.id)) is not None:
            console.print(Text("  ").append_text(_marked(snippet)))
    for line in remarks:
        console.print(Text(line, style="dim"))


def _marked(snippet: Snippet) -> Text:
    """The snippet with its matches highlighted; sanitised piece by piece, so that the marks stay where they belong."""
    text = Text()
    position = 0
    for start, end in snippet.marks:
        text.append(terminal_safe(snippet.text[position:start]))
        text.append(terminal_safe(snippet.text[start:end]), style="bold reverse")
        position = end
    return text.append(terminal_safe(snippet.text[position:]))
