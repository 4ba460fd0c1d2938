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

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.index.directories import Directories
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
class _Subscription:
    """One list that is kept up to date.

    Attributes:
        directory: Only sessions of this directory, as `Directories.key` has it.
        pending: What has changed, by id; None for a session that is gone.
    """

    id: str
    directory: bytes | None
    pending: dict[str, Session | None] = field(default_factory=dict[str, Session | None])


class LiveLists:
    """The lists that one client is subscribed to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._subscriptions: dict[str, _Subscription] = {}
        self._directories = Directories()
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
                    self._note(subscription, change)
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
                for frame in self._frames(subscription, active):
                    await self._link.send(frame)
            await anyio.sleep(_INTERVAL)

    async def _subscribe(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SubscribeParams, validated

        self._admit()
        asked = validated(SubscribeParams, params)
        if len(self._subscriptions) >= _SUBSCRIPTION_LIMIT:
            raise ProtocolError(INVALID_PARAMS, "Too many subscriptions", f"At most {_SUBSCRIPTION_LIMIT} at a time.")
        directory = None if asked.cwd is None else self._directories.key(asked.cwd)
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

    def _note(self, subscription: _Subscription, change: Change) -> None:
        session = change.session
        was_in = change.before is not None and self._belongs(subscription, change.before)
        if change.kind != "removed" and session.listed and self._belongs(subscription, session):
            subscription.pending[session.id] = session
        elif was_in or self._belongs(subscription, session):
            subscription.pending[session.id] = None

    def _belongs(self, subscription: _Subscription, session: Session) -> bool:
        return subscription.directory is None or self._directories.key(session.cwd) == subscription.directory

    def _frames(self, subscription: _Subscription, active: frozenset[str]) -> Iterator[bytes]:
        """What is pending, in as many notifications as it takes."""
        pending = dict(subscription.pending)
        subscription.pending.clear()
        style = self._link.row_style()
        removed = [session_id for session_id, session in pending.items() if session is None]
        rows: list[Json] = []
        size = 0
        for session in pending.values():
            if session is None:
                continue
            rows.append(row(session, style, active=session.id in active))
            size += len(wire.encode(rows[-1]))
            if size > _FRAME_BYTES:
                yield _changes(subscription.id, rows, removed)
                rows, removed, size = [], [], 0
        if rows or removed:
            yield _changes(subscription.id, rows, removed)


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
