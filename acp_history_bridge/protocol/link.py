"""One client's connection, as all families of methods share it."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio

from acp_history_bridge.errors import BridgeError, ProtocolError
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.bounds import pieces
from acp_history_bridge.protocol.calm import Calm
from acp_history_bridge.protocol.client import Client
from acp_history_bridge.protocol.follow import OpenSessions
from acp_history_bridge.protocol.jsonrpc import CANCELLED, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from acp_history_bridge.protocol.modes import Modes
from acp_history_bridge.protocol.push import Pushes
from acp_history_bridge.protocol.rows import RowStyle
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.sessions import Session, SessionSource
from acp_history_bridge.settings import Settings
from acp_history_bridge.text import shorten
from acp_history_bridge.timestamps import from_ns

__all__ = ["Link", "not_found", "refusing"]

_LIVE_FOR = timedelta(minutes=10)
_IMAGE_LIMIT = 900 * 1024


class Link:
    """What is known about one client, and the way to it.

    Attributes:
        settings: The user's.
        client: What the client announced.
        send: Puts frames into the pipe.
        drain: Waits until they have been taken.
        calm: When updates that nobody asked for may be sent.
        pushes: What the client has heard of which sessions.
        open: The transcripts that are followed.
        opened: Ids of the sessions that the client has opened and not closed.
        modes: Which mode each of these is in.
    """

    def __init__(
        self, settings: Settings, send: Callable[[bytes], Awaitable[None]], drain: Callable[[], Awaitable[None]]
    ) -> None:
        self.settings = settings
        self.client = Client()
        self.send = send
        self.drain = drain
        self.calm = Calm()
        self.pushes = Pushes(settings.pushes, send, self.calm)
        self.open = OpenSessions(send, self.calm, follow=settings.replay.follow)
        self.opened: set[str] = set()
        self.modes = Modes()
        self._source: SessionSource | None = None
        self._ready = anyio.Event()
        self._work: dict[str, set[anyio.CancelScope]] = {}

    def provide(self, source: SessionSource | None) -> None:
        """From now on there are histories; None: there will be none, and requests for them are answered so."""
        self._source = source
        self._ready.set()

    async def source(self) -> SessionSource:
        """The histories, once they are there.

        Raises:
            ProtocolError: They cannot be read.
        """
        await self._ready.wait()
        if self._source is None:
            raise ProtocolError(INTERNAL_ERROR, "Histories unavailable", "The histories cannot be read; see the log.")
        return self._source

    async def find(self, session_id: str) -> Session:
        """Look a session up.

        Raises:
            ProtocolError: There is none.
        """
        session = await (await self.source()).find(session_id)
        if session is None:
            raise not_found(session_id, "There is no such session in any history on this machine.")
        return session

    async def is_live(self, session: Session) -> bool:
        """Whether its tool is likely to be writing it at the moment."""
        changed_at = from_ns(session.unit.fingerprint.mtime_ns)
        return datetime.now(UTC) - changed_at < _LIVE_FOR or session.id in await (await self.source()).active_sessions()

    def row_style(self, *, older: bool = False) -> RowStyle:
        """How this client wants to see rows of lists."""
        return RowStyle(older, air=self.client.air, archived=self.settings.unstable)

    def tool_options(self, session: Session, *, terminal: bool) -> ToolOptions:
        """How tool calls of a session are shown."""
        replay = self.settings.replay
        return ToolOptions(
            cwd=session.cwd,
            terminal=terminal and self.client.terminal,
            output_limit=replay.tool_output_kib * 1024,
            image_limit=min(replay.image_kib * 1024, _IMAGE_LIMIT),
        )

    async def say(self, session_id: str, text: str, message_id: str) -> None:
        """Send a message of the agent."""
        for piece in pieces(text):
            body = wire.chunk("agent_message_chunk", wire.text(piece), message_id, {})
            await self.send(wire.update(session_id, body))

    # Work on a session that `session/cancel` and `session/close` end

    @contextmanager
    def working(self, session_id: str) -> Generator[None]:
        """What happens inside can be ended by `stop`.

        Raises:
            ProtocolError: It was.
        """
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

    def stop(self, session_id: str) -> None:
        """End what runs for a session."""
        for scope in self._work.get(session_id, ()):
            scope.cancel()

    async def let_go(self, session_id: str) -> None:
        """End everything for a session that the client does not want open any more."""
        self.stop(session_id)
        self.opened.discard(session_id)
        self.modes.forget(session_id)
        self.pushes.closed(session_id)
        await self.open.close(session_id)


def not_found(session_id: str, details: str) -> ProtocolError:
    """The error for a session that is not there, in words that acpx and VS Code recognise."""
    name = shorten(session_id, 300)
    text = f"Session not found: {name}. {details}"
    return ProtocolError(RESOURCE_NOT_FOUND, f"Resource not found: {name}", text, name)


@contextmanager
def refusing(action: str) -> Generator[None]:
    """Answer that something cannot be done with the session that was asked for, with the reason.

    Raises:
        ProtocolError: What happens inside raised a `BridgeError`.
    """
    try:
        yield
    except ProtocolError:
        raise
    except BridgeError as error:
        raise ProtocolError(INVALID_PARAMS, f"This session cannot be {action}", str(error)) from error
