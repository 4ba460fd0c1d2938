"""Live lists: `_session/list/subscribe` and `_session/list/changes`, as JetBrains AIR's session index has them.

Policy:

- Only for clients that announced AIR's `sessionIndex` or our own `liveLists`; for others the methods do not exist.
- A notification has whole rows and the ids of sessions that are not in the list any more; there is no first one, for a
  subscriber lists first. A change of `updatedAt` or of the number of messages alone is no change of the list.
- A row a second per session at the most, never around a load (`calm.py`), and 128 subscriptions per connection.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import anyio
from anyio import to_thread

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Handler, Reply
from acp_history_bridge.protocol.link import Link
from acp_history_bridge.protocol.rows import row
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Change, Session
from acp_history_bridge.values import JsonMap

__all__ = ["LiveLists"]

_INTERVAL = 1.0
_SUBSCRIPTION_LIMIT = 128
_FRAME_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class _News:
    """What is to be told of a session.

    Attributes:
        session: As it is now; None when no list has it any more.
        directories: Where it has been since the last notification.
    """

    session: Session | None
    directories: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Subscription:
    """One list that is kept up to date.

    Attributes:
        directory: Only sessions of this directory, with links resolved; None for all.
        pending: What has yet to be told, by session.
    """

    id: str
    directory: str | None
    pending: dict[str, _News] = field(default_factory=dict[str, _News])


class LiveLists:
    """The lists that one client is subscribed to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._subscriptions: dict[str, _Subscription] = {}
        self._wake = anyio.Event()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {"_session/list/subscribe": self._subscribe, "_session/list/unsubscribe": self._unsubscribe}

    def changed(self, changes: Iterable[Change]) -> None:
        """Note what happened; it is sent when its time comes."""
        if not self._subscriptions:
            return
        for change in changes:
            if _is_visible(change):
                for subscription in self._subscriptions.values():
                    _note(subscription, change)
        if any(subscription.pending for subscription in self._subscriptions.values()):
            self._wake.set()

    async def run(self) -> None:
        """Send what is pending, for ever."""
        source = await self._link.source()
        while True:
            await self._wake.wait()
            await self._link.calm.wait()
            self._wake = anyio.Event()
            active = await source.active_sessions()
            for subscription in list(self._subscriptions.values()):
                pending = dict(subscription.pending)
                subscription.pending.clear()
                # Comparing directories asks the disk, which can be a dead network drive.
                rows, removed = await to_thread.run_sync(_sorted_out, subscription, pending)
                for frame in self._frames(subscription.id, rows, removed, active):
                    await self._link.send(frame)
            await anyio.sleep(_INTERVAL)

    async def _subscribe(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SubscribeParams, validated

        self._admit()
        asked = validated(SubscribeParams, params)
        if len(self._subscriptions) >= _SUBSCRIPTION_LIMIT:
            raise ProtocolError(INVALID_PARAMS, "Too many subscriptions", f"At most {_SUBSCRIPTION_LIMIT} at a time.")
        directory = None if asked.cwd is None else await to_thread.run_sync(_resolved, asked.cwd)
        subscription = _Subscription(os.urandom(8).hex(), directory)
        self._subscriptions[subscription.id] = subscription
        return Reply({"subscriptionId": subscription.id})

    async def _unsubscribe(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SubscriptionParams, validated

        self._admit()
        self._subscriptions.pop(validated(SubscriptionParams, params).subscription_id, None)
        return Reply({})

    def _admit(self) -> None:
        if not self._link.client.live_lists:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")

    def _frames(
        self, subscription_id: str, sessions: Iterable[Session], removed: list[str], active: frozenset[str]
    ) -> Iterator[bytes]:
        """As many notifications as it takes."""
        style = self._link.row_style()
        rows: list[Json] = []
        size = 0
        for session in sessions:
            rows.append(row(session, style, active=session.id in active))
            size += len(wire.encode(rows[-1]))
            if size > _FRAME_BYTES:
                yield _changes(subscription_id, rows, removed)
                rows, removed, size = [], [], 0
        if rows or removed:
            yield _changes(subscription_id, rows, removed)


def _note(subscription: _Subscription, change: Change) -> None:
    session = change.session
    directories = {session.cwd} if change.before is None else {session.cwd, change.before.cwd}
    if (earlier := subscription.pending.get(session.id)) is not None:
        directories |= earlier.directories
    gone = change.kind == "removed" or not session.listed
    news = _News(None if gone else session, frozenset(directories))
    subscription.pending[session.id] = news


def _sorted_out(subscription: _Subscription, pending: Mapping[str, _News]) -> tuple[list[Session], list[str]]:
    """What the subscribed list shows now, and what it does not show any more."""
    rows: list[Session] = []
    removed: list[str] = []
    for session_id, news in pending.items():
        if news.session is not None and _belongs(subscription, news.session.cwd):
            rows.append(news.session)
        elif any(_belongs(subscription, directory) for directory in news.directories):
            removed.append(session_id)
    return rows, removed


def _belongs(subscription: _Subscription, directory: str) -> bool:
    return subscription.directory is None or _resolved(directory) == subscription.directory


def _resolved(directory: str) -> str:
    """The directory without dot parts and links; Windows' network paths are not looked up."""
    return os.path.realpath(directory) if directory.startswith("/") else os.path.normpath(directory)


def _changes(subscription_id: str, rows: list[Json], removed: list[str]) -> bytes:
    params: Json = {"subscriptionId": subscription_id, "sessions": rows, "removed": removed}
    return wire.notification("_session/list/changes", params)


def _is_visible(change: Change) -> bool:
    """Whether anything but the time and the number of messages differs."""
    before, now = change.before, change.session
    if change.kind != "changed" or before is None:
        return True
    record = replace(now.record, updated_at=before.updated_at, message_count=before.record.message_count)
    return replace(now, record=record, unit=before.unit) != before
