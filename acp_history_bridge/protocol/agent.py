"""The agent of one connection: what it announces, and who answers which method.

Policy:

- A session that does not exist is -32002 with its id, never another code: acpx would start a new session instead.
- Errors and logs never repeat what was sent beyond ids.
- What is announced works, and what is not announced but harmless is answered all the same.

Each family of methods is a module with a table of handlers; docs/protocol.md describes them all.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.client import Client
from acp_history_bridge.protocol.deciding import Deciding
from acp_history_bridge.protocol.getting import SESSION_GET, Getting
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS, Handler, NotificationHandler, Reply
from acp_history_bridge.protocol.link import Link
from acp_history_bridge.protocol.listing import MAX_RESULTS, Listing
from acp_history_bridge.protocol.live import LiveLists
from acp_history_bridge.protocol.opening import Opening
from acp_history_bridge.protocol.prompting import Prompting
from acp_history_bridge.protocol.wire import META_KEY, Json
from acp_history_bridge.sessions import Change, SessionSource
from acp_history_bridge.settings import Settings
from acp_history_bridge.values import JsonMap, integer, mapping

__all__ = ["Agent"]

_AIR: Json = {"version": 1, "capabilities": ["sessionIndex", "sessionListSubscribe"]}


class Agent:
    """One connection's agent.

    Attributes:
        initialized: Set when `initialize` has been answered; nothing may touch the disk before.
    """

    def __init__(
        self, settings: Settings, send: Callable[[bytes], Awaitable[None]], drain: Callable[[], Awaitable[None]]
    ) -> None:
        self._link = Link(settings, send, drain)
        self._listing = Listing(self._link)
        self._opening = Opening(self._link)
        self._prompting = Prompting(self._link)
        self._deciding = Deciding(self._link)
        self._getting = Getting(self._link)
        self._live = LiveLists(self._link)
        self.initialized = anyio.Event()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            **self._listing.requests,
            **self._opening.requests,
            **self._prompting.requests,
            **self._deciding.requests,
            **self._getting.requests,
            **self._live.requests,
        }

    @property
    def notifications(self) -> Mapping[str, NotificationHandler]:
        """What can be told."""
        return {"session/cancel": self._cancel}

    async def serve(self, source: SessionSource) -> None:
        """Answer from this source, and pass its changes on, until cancelled."""
        link = self._link
        async with source.changes() as changes, anyio.create_task_group() as tasks:
            link.provide(source)
            tasks.start_soon(link.pushes.run)
            tasks.start_soon(link.open.run)
            tasks.start_soon(self._live.run)
            try:
                async for batch in changes:
                    self._changed(batch)
            finally:
                with anyio.CancelScope(shield=True):
                    await link.open.close_all()
                    await self._getting.close()

    def fail(self) -> None:
        """There will be no source: requests for sessions are answered with an error."""
        self._link.provide(None)

    def _changed(self, changes: Iterable[Change]) -> None:
        changes = tuple(changes)
        self._link.pushes.changed(changes)
        self._link.open.changed(changes)
        self._live.changed(changes)

    async def _initialize(self, params: JsonMap) -> Reply:
        version = integer(params.get("protocolVersion"))
        if version is None:
            raise ProtocolError(INVALID_PARAMS, "Invalid params", "params.protocolVersion: must be an integer")
        self._link.client = Client.of(mapping(params.get("clientCapabilities")))

        async def then() -> None:
            self.initialized.set()

        return Reply(wire.initialize_result(self._capabilities()), then)

    def _capabilities(self) -> Json:
        settings, client = self._link.settings, self._link.client
        session: Json = {"list": {}, "close": {}, "fork": {}}
        if settings.delete != "off":
            session["delete"] = {}
        if settings.unstable:
            session |= {"archive": {}, "status": {}, "title": {}}
        return {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": session,
            # Outside `_meta`, against the protocol's rule: clients of the older proposal look for it here.
            "sessionHistory": {"supported": True, "maxResults": MAX_RESULTS},
            "_meta": {
                META_KEY: self._extensions(),
                **({"jetbrains": {"air": _AIR}} if client.air else {}),
            },
        }

    def _extensions(self) -> Json:
        settings = self._link.settings
        return {
            "list": {"limit": True, "tool": True, "since": True, "search": True, "includeHidden": True},
            "sessionGet": {"method": SESSION_GET, "maxResults": MAX_RESULTS},
            "liveLists": {},
            "delete": settings.delete,
            "pushes": settings.pushes,
            "follow": settings.replay.follow,
        }

    async def _authenticate(self, _params: JsonMap) -> Reply:
        return Reply({})

    def _cancel(self, params: JsonMap) -> None:
        session_id = params.get("sessionId")
        if isinstance(session_id, str):
            self._link.stop(session_id)
