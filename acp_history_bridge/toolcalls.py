"""The vocabulary in which every adapter describes tool calls, so that all tools read alike in an editor.

Each adapter has one table from its tool names to kinds and titles and builds them with these helpers; nothing here
knows a particular tool. Titles are one line and name the object: `Read src/cart.py (10 - 40)`, `Edit src/cart.py`, the
command itself for shells, `server: tool` for MCP.
"""

import posixpath
import re

from acp_history_bridge.text import one_line
from acp_history_bridge.turns import Location, PlanEntry, PlanPriority, PlanStatus
from acp_history_bridge.values import JsonMap, first_string, string

__all__ = [
    "absolute_path",
    "display_path",
    "locations",
    "mcp_title",
    "plan_entry",
    "shell_title",
    "title",
]

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_PLAN_STATUSES: dict[str, PlanStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "inProgress": "in_progress",
    "active": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    # ACP v1 has no cancelled entry; what was dropped is not to be done any more.
    "cancelled": "completed",
    "canceled": "completed",
}
_PLAN_PRIORITIES: dict[str, PlanPriority] = {"high": "high", "medium": "medium", "low": "low"}


def absolute_path(path: str, cwd: str | None) -> str:
    """Make a path absolute as text, without touching the disk; unchanged when that is impossible."""
    if path.startswith("/") or _DRIVE.match(path) or not cwd or not path:
        return path
    if path.startswith("~"):
        return path
    return posixpath.normpath(posixpath.join(cwd, path))


def display_path(path: str, cwd: str | None) -> str:
    """Shorten a path below the working directory to its relative form."""
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path[len(cwd.rstrip("/")) + 1 :]
    return path


def locations(cwd: str | None, *paths: str, line: int | None = None) -> tuple[Location, ...]:
    """The places a call touched: absolute, each once, unknown ones left out."""
    absolute = dict.fromkeys(absolute_path(path, cwd) for path in paths if path)
    return tuple(
        Location(path, line if line is None or line > 0 else None)
        for path in absolute
        if path.startswith("/") or _DRIVE.match(path)
    )


def title(verb: str, subject: str = "", detail: str = "") -> str:
    """`Verb subject (detail)`, on one line."""
    text = f"{verb} {subject}".strip()
    return one_line(f"{text} ({detail})" if detail else text)


def shell_title(command: str) -> str:
    """A shell call is called by its command."""
    return one_line(command) or "Terminal"


def mcp_title(server: str, tool: str) -> str:
    """An MCP call names the server and the tool."""
    return one_line(f"{server}: {tool}" if server else tool)


def plan_entry(item: JsonMap, *content_keys: str) -> PlanEntry | None:
    """Read one line of a todo list; None when it says nothing. Unknown states count as pending."""
    content = first_string(item, *content_keys)
    if not content.strip():
        return None
    return PlanEntry(
        content=content,
        status=_PLAN_STATUSES.get(string(item.get("status")), "pending"),
        priority=_PLAN_PRIORITIES.get(string(item.get("priority")), "medium"),
    )
