"""From the options of a list to a query, and from a query to its sessions."""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.errors import ConfigurationError
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.timestamps import parse_since

__all__ = ["make_query", "sessions_of", "tool_named"]

_PAGE = 500


def make_query(arguments: Namespace, adapters: Sequence[Adapter]) -> SessionQuery:
    """Read the filter options.

    Raises:
        ConfigurationError: A tool or a time that there is not.
    """
    return SessionQuery(
        cwd=None if arguments.cwd is None else Path(os.path.abspath(arguments.cwd)),  # noqa: PTH100 - Path keeps `..`
        tools=None if arguments.tool is None else _tools(arguments.tool, adapters),
        since=None if arguments.since is None else _since(arguments.since),
        words=getattr(arguments, "search", ""),
        search=" ".join(getattr(arguments, "query", ())),
        hidden="only" if getattr(arguments, "hidden", False) else "exclude",
    )


def tool_named(name: str, adapters: Sequence[Adapter], said: str) -> str:
    """The adapter with this name or prefix; `said` is what the person typed.

    Raises:
        ConfigurationError: There is none.
    """
    for adapter in adapters:
        if name.lower() in {adapter.name, adapter.prefix}:
            return adapter.name
    raise ConfigurationError(f"{said}: not one of {', '.join(adapter.name for adapter in adapters)}")


def _tools(names: Iterable[str], adapters: Sequence[Adapter]) -> frozenset[str]:
    return frozenset(tool_named(name, adapters, f"--tool {name}") for name in names)


def _since(text: str) -> datetime:
    moment = parse_since(text, datetime.now(UTC))
    if moment is None:
        raise ConfigurationError(f"--since {text}: not a time like 2026-11-01, 2026-11-01T09:30, 12h, 7d")
    return moment


def sessions_of(library: Library, query: SessionQuery, limit: int) -> Iterator[Session]:
    """Yield the newest `limit` sessions of a query, page by page; 0 for all."""
    cursor: str | None = None
    left = limit
    while True:
        page = library.page(query, min(left, _PAGE) if limit else _PAGE, cursor)
        yield from page.sessions
        left -= len(page.sessions)
        cursor = page.next_cursor
        if cursor is None or (limit and left <= 0):
            return
