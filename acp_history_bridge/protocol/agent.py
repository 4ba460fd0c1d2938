"""The agent's methods: what each request means and which errors it can end in.

Policy:

- A session that does not exist is -32002 with its id, never another code: acpx would start a new session instead.
- `session/load` accepts any directory; it is usually the editor's own, not the session's.
- A prompt to a recorded session is answered with words, never with an error, which clients show as a crash.
- Errors and logs never repeat what was sent beyond ids.

A new method is a handler and a line in `Agent.requests`.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from acp_history_bridge.errors import CursorError, ProtocolError, TranscriptError
from acp_history_bridge.protocol import browse, digest, wire
from acp_history_bridge.protocol.bounds import pieces
from acp_history_bridge.protocol.calm import Calm
from acp_history_bridge.protocol.follow import OpenSessions
from acp_history_bridge.protocol.jsonrpc import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Handler,
    NotificationHandler,
    Reply,
)
from acp_history_bridge.protocol.push import Pushes
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Change, Page, Session, SessionQuery, SessionSource
from acp_history_bridge.settings import Settings
from acp_history_bridge.text import shorten
from acp_history_bridge.timestamps import from_ns
from acp_history_bridge.values import JsonMap, integer, mapping

if TYPE_CHECKING:  # pydantic is loaded by the first request after initialize
    from acp_history_bridge.protocol.params import ListFilter, ListParams

__all__ = ["Agent", "Client"]

_LIVE_FOR = timedelta(minutes=10)
_LIST_FRAME_LIMIT = 1024 * 1024
_IMAGE_LIMIT = 900 * 1024


@dataclass(frozen=True, slots=True)
class Client:
    """What the client announced in `initialize`, as far as it matters here."""

    compaction: bool = False
    terminal: bool = False

    @classmethod
    def of(cls, capabilities: JsonMap) -> "Client":
        """Read `clientCapabilities`; anything unexpected counts as not announced."""
        session = capabilities.get("session")
        return cls(
            compaction=isinstance(mapping(session).get("compaction"), dict),
            terminal=mapping(capabilities.get("_meta")).get("terminal_output") is True,
        )


class Agent:
    """One connection's agent.

    Attributes:
        initialized: Set when `initialize` has been answered; nothing may touch the disk before.
    """

    def __init__(
        self, settings: Settings, send: Callable[[bytes], Awaitable[None]], drain: Callable[[], Awaitable[None]]
    ) -> None:
        self._settings = settings
        self._send = send
        self._drain = drain
        self._client = Client()
        self._calm = Calm()
        self._pushes = Pushes(settings.pushes, send, self._calm)
        self._open = OpenSessions(send, self._calm, follow=settings.replay.follow)
        self._source: SessionSource | None = None
        self._ready = anyio.Event()
        self._work: dict[str, set[anyio.CancelScope]] = {}
        self.initialized = anyio.Event()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/list": self._list,
            "session/load": self._load,
            "session/new": self._new,
            "session/prompt": self._prompt,
            "session/close": self._close,
        }

    @property
    def notifications(self) -> Mapping[str, NotificationHandler]:
        """What can be told."""
        return {"session/cancel": self._cancel}

    async def serve(self, source: SessionSource) -> None:
        """Answer from this source, and pass its changes on, until cancelled."""
        async with source.changes() as changes, anyio.create_task_group() as tasks:
            self._source = source
            self._ready.set()
            tasks.start_soon(self._pushes.run)
            tasks.start_soon(self._open.run)
            try:
                async for batch in changes:
                    self._changed(batch)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._open.close_all()

    def fail(self) -> None:
        """There will be no source: requests for sessions are answered with an error."""
        self._source = None
        self._ready.set()

    def _changed(self, changes: Iterable[Change]) -> None:
        changes = tuple(changes)
        self._pushes.changed(changes)
        self._open.changed(changes)

    async def _histories(self) -> SessionSource:
        await self._ready.wait()
        if self._source is None:
            raise ProtocolError(INTERNAL_ERROR, "Histories unavailable", "The histories cannot be read; see the log.")
        return self._source

    # Requests

    async def _initialize(self, params: JsonMap) -> Reply:
        version = integer(params.get("protocolVersion"))
        if version is None:
            raise ProtocolError(INVALID_PARAMS, "Invalid params", "params.protocolVersion: must be an integer")
        self._client = Client.of(mapping(params.get("clientCapabilities")))
        capabilities: Json = {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "close": {}},
        }
        extensions: Json = {
            "list": {"limit": True, "tool": True, "since": True},
            "pushes": self._settings.pushes,
            "follow": self._settings.replay.follow,
        }

        async def then() -> None:
            self.initialized.set()

        return Reply(wire.initialize_result(capabilities, extensions), then)

    async def _authenticate(self, _params: JsonMap) -> Reply:
        return Reply({})

    async def _list(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import MAX_PAGE, ListParams, list_filter, validated

        asked, extra = validated(ListParams, params), list_filter(params)
        source = await self._histories()
        limit = extra.limit or min(self._settings.page_size, MAX_PAGE)
        active = await source.active_sessions()
        while True:
            page = await _page(source, asked, extra, limit)
            result = _page_result(page, active)
            # Hostile titles and directories can make a page too long for a frame; then it becomes a shorter page.
            if limit == 1 or len(wire.encode(result)) < _LIST_FRAME_LIMIT:
                break
            limit = max(min(limit, len(page.sessions)) // 2, 1)
        self._pushes.listed(page.sessions)
        return Reply(result)

    async def _load(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import LoadParams, validated

        asked = validated(LoadParams, params)
        self._calm.begin()
        try:
            with self._working(asked.session_id):
                result = await self._replay(asked.session_id)
        except BaseException:
            self._calm.end()
            raise

        async def then() -> None:
            await self._drain()
            self._calm.end()
            await self._after_opening(asked.session_id)

        return Reply(result, then)

    async def _new(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import NewParams, validated

        validated(NewParams, params)
        session_id = browse.new_browse_id()

        async def then() -> None:
            await self._after_opening(session_id)

        return Reply({"sessionId": session_id}, then)

    async def _prompt(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import PromptParams, validated

        asked = validated(PromptParams, params)
        message_id = os.urandom(16).hex()
        try:
            with self._working(asked.session_id):
                await self._answer(asked.session_id, asked.text, message_id)
        except ProtocolError as error:
            if error.code == CANCELLED:
                return Reply({"stopReason": "cancelled"})
            raise
        return Reply({"stopReason": "end_turn"})

    async def _close(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SessionParams, validated

        session_id = validated(SessionParams, params).session_id
        self._stop(session_id)
        self._pushes.closed(session_id)
        await self._open.close(session_id)
        return Reply({})

    def _cancel(self, params: JsonMap) -> None:
        session_id = params.get("sessionId")
        if isinstance(session_id, str):
            self._stop(session_id)

    # Work on a session that `session/cancel` and `session/close` end

    @contextmanager
    def _working(self, session_id: str) -> Generator[None]:
        scope = anyio.CancelScope()
        self._work.setdefault(session_id, set()).add(scope)
        try:
            with scope:
                yield
        finally:
            self._work[session_id].discard(scope)
            if not self._work[session_id]:
                del self._work[session_id]
        if scope.cancelled_caught:
            raise ProtocolError(CANCELLED, "Request cancelled")

    def _stop(self, session_id: str) -> None:
        for scope in self._work.get(session_id, ()):
            scope.cancel()

    # What the requests share

    async def _find(self, session_id: str) -> Session:
        source = await self._histories()
        session = await source.find(session_id)
        if session is None:
            raise _not_found(session_id, "There is no such session in any history on this machine.")
        return session

    async def _replay(self, session_id: str) -> Json:
        if browse.is_browse_id(session_id):
            await self._say(session_id, browse.WELCOME, "welcome")
            return {}
        session = await self._find(session_id)
        source = await self._histories()
        replay = Replay(self._replay_options(session), live=await self._is_live(session, source))
        try:
            ending = await self._open.load(session, lambda: source.open(session), replay)
        except TranscriptError as error:
            raise _not_found(session_id, str(error)) from error
        self._pushes.opened(session)
        return wire.meta({"leftOut": ending.left_out or None, "problems": ending.problems or None})

    def _replay_options(self, session: Session) -> ReplayOptions:
        settings = self._settings.replay
        tools = ToolOptions(
            cwd=session.cwd,
            terminal=self._client.terminal,
            output_limit=settings.tool_output_kib * 1024,
            image_limit=min(settings.image_kib * 1024, _IMAGE_LIMIT),
        )
        return ReplayOptions(tools, compaction=self._client.compaction)

    async def _is_live(self, session: Session, source: SessionSource) -> bool:
        changed_at = from_ns(session.unit.fingerprint.mtime_ns)
        return datetime.now(UTC) - changed_at < _LIVE_FOR or session.id in await source.active_sessions()

    async def _answer(self, session_id: str, prompt: str, message_id: str) -> None:
        if not browse.is_browse_id(session_id):
            session = await self._find(session_id)
            await self._say(session_id, self._describe(session, await self._histories()), message_id)
            return
        source = await self._histories()
        shown = await browse.browse(prompt, source)
        if isinstance(shown, str):
            await self._say(session_id, shown, message_id)
            return
        await self._say(session_id, self._describe(shown, source), message_id)
        async with _opened(shown, source) as paragraphs:
            while (paragraph := await to_thread.run_sync(next, paragraphs, None)) is not None:
                await self._say(session_id, f"\n\n{paragraph}", message_id)

    def _describe(self, session: Session, source: SessionSource) -> str:
        titles = {tool.name: tool.title for tool in source.tools()}
        return browse.describe(session, titles.get(session.tool, session.tool), source.resume_command(session))

    async def _say(self, session_id: str, text: str, message_id: str) -> None:
        for piece in pieces(text):
            body = wire.chunk("agent_message_chunk", wire.text(piece), message_id, {})
            await self._send(wire.update(session_id, body))

    async def _after_opening(self, session_id: str) -> None:
        # Zed drops what comes for a session before the answer that creates it.
        if browse.is_browse_id(session_id):
            await self._calm.wait()
            await self._send(wire.update(session_id, browse.commands_update()))


async def _page(source: SessionSource, asked: "ListParams", extra: "ListFilter", limit: int) -> Page:
    query = SessionQuery(
        cwd=None if asked.cwd is None else Path(asked.cwd),
        tools=None if extra.tool is None else frozenset(extra.tool),
        since=extra.since,
    )
    try:
        return await source.page(query, limit, asked.cursor)
    except CursorError as error:
        raise ProtocolError(INVALID_PARAMS, "Invalid params", f"params.cursor: {error}") from error


def _page_result(page: Page, active: frozenset[str]) -> Json:
    sessions = [wire.session_info(session, active=session.id in active) for session in page.sessions]
    return wire.present({"sessions": sessions, "nextCursor": page.next_cursor or None})


@asynccontextmanager
async def _opened(session: Session, source: SessionSource) -> AsyncGenerator[Iterator[str]]:
    """A session's conversation as Markdown paragraphs; taking the next one blocks."""
    try:
        transcript = await source.open(session)
    except TranscriptError as error:
        raise _not_found(session.id, str(error)) from error
    try:
        yield digest.paragraphs(transcript.turns())
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(transcript.close)


def _not_found(session_id: str, details: str) -> ProtocolError:
    name = shorten(session_id, 300)
    return ProtocolError(RESOURCE_NOT_FOUND, f"Resource not found: {name}", f"Session not found: {name}. {details}")
