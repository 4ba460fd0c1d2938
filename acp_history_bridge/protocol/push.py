"""`session_info_update` for sessions in the client's list.

Policy:

- Only fields that changed since the client last heard of them; a title that vanished is not sent, for clients choke on
  null. Removed sessions are missing in the next list; the protocol has no message for it.
- Which sessions: by the setting `pushes`, those that are open here, those that were listed too, or also those that
  appeared since the first list, however old they are: a copied or restored transcript is new to the client.
- At most one burst per second over all sessions, never around a load (`calm.py`).
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import anyio

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.calm import Calm
from acp_history_bridge.sessions import Change, Session
from acp_history_bridge.settings import PushMode

__all__ = ["Pushes"]

_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the client knows of a session."""

    title: str | None
    updated_at: datetime


class Pushes:
    """What one client has heard of which sessions, and what it has yet to hear."""

    def __init__(self, mode: PushMode, send: Callable[[bytes], Awaitable[None]], calm: Calm) -> None:
        self._mode = mode
        self._send = send
        self._calm = calm
        self._listed: dict[str, _Heard] = {}
        self._open: dict[str, _Heard] = {}
        self._has_listed = False
        self._pending: dict[str, Session] = {}
        self._wake = anyio.Event()

    def listed(self, sessions: Iterable[Session]) -> None:
        """The client is being told of these sessions."""
        self._has_listed = True
        if self._mode in ("listed", "all"):
            self._listed.update((session.id, _Heard(session.title, session.updated_at)) for session in sessions)

    def opened(self, session: Session) -> None:
        """The client has loaded this session."""
        if self._mode != "off":
            self._open[session.id] = _Heard(session.title, session.updated_at)

    def closed(self, session_id: str) -> None:
        """The client has let go of this session."""
        self._open.pop(session_id, None)

    def changed(self, changes: Iterable[Change]) -> None:
        """Note what happened; it is sent when its time comes."""
        for change in changes:
            session = change.session
            if change.kind == "removed" or not (session.listed or session.id in self._open):
                self._pending.pop(session.id, None)
                self._listed.pop(session.id, None)
            elif session.id in self._open or session.id in self._listed or self._is_new(change):
                self._pending[session.id] = session
        if self._pending:
            self._wake.set()

    async def run(self) -> None:
        """Send what is pending, for ever."""
        while True:
            await self._wake.wait()
            await self._calm.wait()
            self._wake = anyio.Event()
            pending, self._pending = self._pending, {}
            frames = b"".join(filter(None, map(self._news, pending.values())))
            if frames:
                await self._send(frames)
                await anyio.sleep(_INTERVAL)

    def _is_new(self, change: Change) -> bool:
        return self._mode == "all" and self._has_listed and change.kind == "added"

    def _news(self, session: Session) -> bytes | None:
        heard = self._open.get(session.id) or self._listed.get(session.id)
        title = session.title if heard is None or session.title != heard.title else None
        updated_at = session.updated_at if heard is None or session.updated_at != heard.updated_at else None
        if title is None and updated_at is None:
            return None
        news = _Heard(session.title, session.updated_at)
        if session.id in self._open:
            self._open[session.id] = news
        if heard is None or session.id in self._listed:
            self._listed[session.id] = news
        return wire.update(session.id, wire.session_info_update(title, updated_at))
