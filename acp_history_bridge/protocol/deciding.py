"""What the user decides about sessions: delete, and the unstable archive, unarchive, status and set_title.

Policy:

- Deleting hides: the transcript belongs to its tool. A session that is open stays open, and goes on being followed,
  until it is closed; what its tool goes on writing changes nothing. Deleting what is unknown or deleted succeeds.
- With the setting `delete = "trash"` the files go to the desktop's trash. The session is closed first; one that its
  tool has open is refused, because the tool would go on writing into a file that nobody finds again.
- The unstable methods exist only with the setting `unstable`; what they decide is kept in the bridge's own database.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from acp_history_bridge.errors import IndexStoreError, ProtocolError
from acp_history_bridge.protocol import browse
from acp_history_bridge.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Handler, Reply
from acp_history_bridge.protocol.link import Link, refusing
from acp_history_bridge.sessions import Session
from acp_history_bridge.text import one_line
from acp_history_bridge.values import JsonMap

__all__ = ["Deciding"]


class Deciding:
    """The methods that decide about sessions."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked, with these settings."""
        settings = self._link.settings
        handlers: dict[str, Handler] = {} if settings.delete == "off" else {"session/delete": self._delete}
        if settings.unstable:
            handlers |= {
                "session/archive": self._archive,
                "session/unarchive": self._unarchive,
                "session/status": self._status,
                "session/set_title": self._set_title,
            }
        return handlers

    async def _delete(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SessionParams, validated

        session_id = validated(SessionParams, params).session_id
        source = await self._link.source()
        session = None if browse.is_browse_id(session_id) else await source.find(session_id)
        if session is None:
            await self._link.let_go(session_id)
        elif self._link.settings.delete == "trash":
            await self._trash(session)
        else:
            with _storing():
                await source.hide(session)
        return Reply({})

    async def _trash(self, session: Session) -> None:
        source = await self._link.source()
        with refusing("moved to the trash"):
            if session.id in await source.active_sessions():
                raise ProtocolError(INVALID_PARAMS, "This session is in use", "Its tool has it open; close it there.")
            await self._link.let_go(session.id)
            await source.trash(session)

    async def _archive(self, params: JsonMap) -> Reply:
        session = await self._named(params)
        await self._link.let_go(session.id)
        with _storing():
            await (await self._link.source()).archive(session, archived=True)
        return Reply({})

    async def _unarchive(self, params: JsonMap) -> Reply:
        session = await self._named(params)
        if session.record.archived:
            title = "This session is archived in its tool"
            raise ProtocolError(INVALID_PARAMS, title, "Take it out of the archive there; the bridge only reads.")
        with _storing():
            await (await self._link.source()).archive(session, archived=False)
        return Reply({})

    async def _status(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SessionParams, validated

        session_id = validated(SessionParams, params).session_id
        if not browse.is_browse_id(session_id):
            await self._link.find(session_id)
        return Reply({"status": "open" if session_id in self._link.opened else "saved"})

    async def _set_title(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SetTitleParams, validated

        session = await self._named(params)
        title = one_line(validated(SetTitleParams, params).title)
        if not title:
            raise ProtocolError(INVALID_PARAMS, "Invalid params", "params.title: must not be blank")
        with _storing():
            await (await self._link.source()).set_title(session, title)
        return Reply({"title": title})

    async def _named(self, params: JsonMap) -> Session:
        from acp_history_bridge.protocol.params import SessionParams, validated

        return await self._link.find(validated(SessionParams, params).session_id)


@contextmanager
def _storing() -> Generator[None]:
    """A decision that cannot be stored is no fault of the request.

    Raises:
        ProtocolError: It was not stored.
    """
    try:
        yield
    except IndexStoreError as error:
        raise ProtocolError(INTERNAL_ERROR, "Not stored", str(error)) from error
