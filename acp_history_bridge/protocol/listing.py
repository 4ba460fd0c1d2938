"""`session/list`: the protocol's own, with our filters, and as the older chat history proposal has it.

Policy:

- Our filters are in `_meta["acp-history-bridge"]`. A wrong value is -32602: a filter that is ignored would answer
  another question.
- A request with one of the older proposal's root parameters (`limit`, `offset`, `search`) gets its fields as well; no
  other answer has a field that the protocol does not know.
- The older proposal wants the number of messages, for which a transcript may have to be read: the sessions of a page
  are counted until a budget is spent, and what was counted is remembered.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from acp_history_bridge.adapter import Fingerprint, Transcript
from acp_history_bridge.counting import count_messages
from acp_history_bridge.errors import CursorError, ProtocolError, QueryError, TranscriptError
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS, Handler, Reply, where
from acp_history_bridge.protocol.link import Link
from acp_history_bridge.protocol.rows import row
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Page, Session, SessionQuery, SessionSource
from acp_history_bridge.values import JsonMap

if TYPE_CHECKING:  # pydantic is loaded by the first request after initialize
    from acp_history_bridge.protocol.params import ListFilter, ListParams

__all__ = ["MAX_RESULTS", "Listing"]

MAX_RESULTS = 1000

_FRAME_LIMIT = 1024 * 1024
_COUNTED_BYTES = 32 * 1024 * 1024
_REMEMBERED = 10_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Request:
    """A list that was asked for, whichever way.

    Attributes:
        offset: Sessions to pass over, where there is no cursor.
        older: It came by the older proposal.
    """

    query: SessionQuery
    limit: int
    cursor: str | None = None
    offset: int = 0
    older: bool = False


class Listing:
    """The method that lists sessions."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._counts: OrderedDict[tuple[str, Fingerprint], int] = OrderedDict()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {"session/list": self._list}

    async def _list(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import ListParams, list_filter, validated

        asked = self._request(validated(ListParams, params), list_filter(params, air=self._link.client.air))
        source = await self._link.source()
        while True:
            page = await _page(source, asked)
            result = await self._result(page, asked, source)
            # Hostile titles and directories can make a page too long for a frame; then it becomes a shorter page.
            if asked.limit == 1 or len(wire.encode(result)) < _FRAME_LIMIT:
                break
            asked = replace(asked, limit=max(min(asked.limit, len(page.sessions)) // 2, 1))
        self._link.pushes.listed(page.sessions)
        return Reply(result)

    def _request(self, asked: "ListParams", extra: "ListFilter") -> _Request:
        older = (asked.limit, asked.offset, asked.search) != (None, None, None)
        if asked.cursor is not None and asked.offset:
            raise ProtocolError(INVALID_PARAMS, "Invalid params", "params.offset: not together with a cursor")
        archived = asked.archived or ("exclude" if self._link.settings.unstable else "include")
        query = SessionQuery(
            cwd=None if asked.cwd is None else Path(asked.cwd),
            tools=None if extra.tool is None else frozenset(extra.tool),
            since=extra.since,
            search=(asked.search or extra.search or "").strip(),
            hidden="include" if extra.include_hidden else "exclude",
            archived=extra.archived or (archived if self._link.settings.unstable else "include"),
        )
        limit = asked.limit or extra.limit or min(self._link.settings.page_size, MAX_RESULTS)
        return _Request(query, limit, asked.cursor, asked.offset or 0, older)

    async def _result(self, page: Page, asked: _Request, source: SessionSource) -> Json:
        active = await source.active_sessions()
        counts = await self._messages(page.sessions, source) if asked.older else {}
        style = self._link.row_style(older=asked.older)
        rows = [
            row(
                session,
                style,
                active=session.id in active,
                snippet=page.snippets.get(session.id),
                messages=counts.get(session.id),
            )
            for session in page.sessions
        ]
        total = await source.count(asked.query) if asked.older else None
        return {
            **wire.present({"sessions": rows, "nextCursor": page.next_cursor or None, "total": total}),
            **wire.meta({"textIndex": page.text_index if asked.query.search else None}),
        }

    async def _messages(self, sessions: tuple[Session, ...], source: SessionSource) -> dict[str, int]:
        """How many messages these sessions have, as far as the budget reaches."""
        counts: dict[str, int] = {}
        budget = _COUNTED_BYTES
        for session in sessions:
            fingerprint = session.unit.fingerprint
            key = (session.id, fingerprint)
            known = session.record.message_count
            if known is None and key not in self._counts and fingerprint.size <= budget:
                budget -= fingerprint.size
                await self._count(session, source)
            number = self._counts.get(key) if known is None else known
            if number is not None:
                counts[session.id] = number
        return counts

    async def _count(self, session: Session, source: SessionSource) -> None:
        """Count one session; whatever goes wrong with it costs this number and not the list."""
        try:
            number = await to_thread.run_sync(_count, await source.open(session))
        except TranscriptError:  # it went away since it was listed
            return
        except Exception as error:  # noqa: BLE001 - adapters can be third parties' code
            _log.error("%s: counting its messages failed: %s", session.id, where(error))
            return
        self._counts[session.id, session.unit.fingerprint] = number
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)


def _count(transcript: Transcript) -> int:
    with closing(transcript):
        return count_messages(transcript.turns())


async def _page(source: SessionSource, asked: _Request) -> Page:
    try:
        page = await source.page(asked.query, asked.offset + asked.limit, asked.cursor)
    except CursorError as error:
        raise ProtocolError(INVALID_PARAMS, "Invalid params", f"params.cursor: {error}") from error
    except QueryError as error:
        raise ProtocolError(INVALID_PARAMS, "Invalid params", f"search: {error}") from error
    return replace(page, sessions=page.sessions[asked.offset :])
