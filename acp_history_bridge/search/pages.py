"""Searching the library: titles and texts together, filters, and pages of the outcome.

A session whose title holds all the words comes before those in which they were only said. While the text index is
missing or being built, titles and what is there already are the answer, and the page says so.

A ranking changes whenever anything is indexed, so the order of a search is fixed when its first page is made: cursors
lead into a list of ids that is kept for the last few searches of this process.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from acp_history_bridge.errors import CursorError
from acp_history_bridge.search.engine import Hit, SearchEngine
from acp_history_bridge.search.query import Query, parse_query
from acp_history_bridge.sessions import Page, Session, SessionQuery, Snippet, TextIndexState

__all__ = ["SearchPages", "Searchable"]

_KEPT_SEARCHES = 16
_TITLE_HITS = 500


class Searchable(Protocol):
    """What a search needs of the index; implemented by `acp_history_bridge.index.catalogue.Catalogue`."""

    def page(self, wanted: SessionQuery, limit: int, cursor: str | None) -> Page: ...  # noqa: D102 - see Catalogue
    def times(self, wanted: SessionQuery, ids: Collection[str]) -> Mapping[str, datetime]: ...  # noqa: D102
    def by_ids(self, wanted: SessionQuery, ids: Sequence[str]) -> tuple[Session, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Search:
    """One search with its fixed order; sessions that only their title found have no hit."""

    asked: SessionQuery
    query: Query
    filters: SessionQuery
    order: tuple[str, ...]
    hits: Mapping[str, Hit]


class SearchPages:
    """Answers searches. Used from one thread."""

    def __init__(self, index: Searchable, text_index: Path | None, home: Path) -> None:
        """Bind the index and the place of the text index; None means that there is none."""
        self._index = index
        self._path = text_index
        self._home = home
        self._engine: SearchEngine | None = None
        self._kept: OrderedDict[str, _Search] = OrderedDict()

    def close(self) -> None:
        """Close the text index. Idempotent."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def page(self, asked: SessionQuery, limit: int, cursor: str | None) -> Page:
        """One page of what `asked.search` finds, best first.

        Raises:
            CursorError: The cursor was not made by this process for this search, or so long ago that it is forgotten.
            QueryError: A filter in the search makes no sense.
        """
        token, start = self._position(asked, cursor)
        search = self._kept[token]
        ids = search.order[start : start + limit]
        sessions = self._index.by_ids(search.filters, ids)
        end = start + len(ids)
        return Page(
            sessions,
            f"{token}.{end}" if end < len(search.order) else None,
            self._snippets(search, sessions),
            self._state(),
        )

    def count(self, asked: SessionQuery) -> int:
        """How many sessions a search finds.

        Raises:
            QueryError: As `page`.
        """
        return len(self._search(asked).order)

    def _position(self, asked: SessionQuery, cursor: str | None) -> tuple[str, int]:
        if cursor is None:
            token = secrets.token_urlsafe(12)
            self._kept[token] = self._search(asked)
            while len(self._kept) > _KEPT_SEARCHES:
                self._kept.popitem(last=False)
            return token, 0
        token, _, position = cursor.partition(".")
        search = self._kept.get(token)
        if search is None or search.asked != asked or not (position.isascii() and position.isdigit()):
            raise CursorError("this cursor was made for another search, or too long ago")
        if not 0 < int(position) < len(search.order):
            raise CursorError("this cursor was not made here")
        self._kept.move_to_end(token)
        return token, int(position)

    def _search(self, asked: SessionQuery) -> _Search:
        query = parse_query(asked.search, self._home)
        filters = _combined(asked, query)
        engine = self._opened()
        hits = {} if engine is None else {hit.session_id: hit for hit in engine.search(query, self._times(filters))}
        titles = self._titled(filters, query)
        order = (*titles, *(session_id for session_id in hits if session_id not in titles))
        return _Search(asked, query, filters, order, hits)

    def _times(self, filters: SessionQuery) -> Callable[[Collection[str]], Mapping[str, datetime]]:
        return lambda ids: self._index.times(filters, ids)

    def _titled(self, filters: SessionQuery, query: Query) -> dict[str, None]:
        """Sessions whose title holds all wanted words and none of the excluded; filters alone allow every title."""
        words = " ".join(term.text for term in query.wanted)
        if query.terms and not words:
            return {}
        page = self._index.page(replace(filters, words=words), _TITLE_HITS, None)
        excluded = [term.text.casefold() for term in query.terms if term.excluded]
        return {
            session.id: None
            for session in page.sessions
            if not any(word in (session.title or "").casefold() for word in excluded)
        }

    def _snippets(self, search: _Search, sessions: Sequence[Session]) -> dict[str, Snippet]:
        engine = self._engine
        if engine is None:
            return {}
        found = ((session.id, search.hits.get(session.id)) for session in sessions)
        return {session_id: engine.snippet(hit, search.query) for session_id, hit in found if hit is not None}

    def _opened(self) -> SearchEngine | None:
        if self._engine is None and self._path is not None:
            self._engine = SearchEngine(self._path)
        return self._engine

    def _state(self) -> TextIndexState:
        if self._engine is None:
            return "off"
        return "complete" if self._engine.complete else "building"


def _combined(asked: SessionQuery, query: Query) -> SessionQuery:
    """The filters of the list and those of the search together."""
    tools = asked.tools if not query.tools else query.tools if asked.tools is None else asked.tools & query.tools
    times = [time for time in (asked.since, query.since) if time is not None]
    return replace(
        asked,
        search="",
        tools=tools,
        since=max(times, default=None),
        below=asked.below if query.cwd is None else Path(query.cwd),
    )
