"""Opening and closing sessions, and the modes of open ones: load, resume, new, fork, close, set_mode.

Policy:

- `session/load` and `session/resume` accept any directory; it is usually the editor's own, not the session's.
- `session/resume` sends nothing before its answer and follows the session afterwards. It is not announced, because
  clients prefer it to `session/load` and would then show an empty conversation.
- A hidden session opens as any other, and the answer says that it is hidden.
"""

from collections.abc import Mapping

from acp_history_bridge.errors import ProtocolError, TranscriptError
from acp_history_bridge.protocol import browse, wire
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS, Handler, Reply
from acp_history_bridge.protocol.link import Link, not_found, refusing
from acp_history_bridge.protocol.modes import CONFIG_ID
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Session
from acp_history_bridge.values import JsonMap

__all__ = ["Opening"]


class Opening:
    """The methods that open and close sessions."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {
            "session/load": self._load,
            "session/resume": self._resume,
            "session/new": self._new,
            "session/fork": self._fork,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }

    async def _load(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import LoadParams, validated

        session_id = validated(LoadParams, params).session_id
        calm = self._link.calm
        calm.begin()
        try:
            with self._link.working(session_id):
                result = await self._replay(session_id)
        except BaseException:
            calm.end()
            raise

        async def then() -> None:
            await self._link.drain()
            calm.end()
            await self._announce_commands(session_id)

        return Reply(self._opened(session_id, result), then)

    async def _resume(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import LoadParams, validated

        session_id = validated(LoadParams, params).session_id
        result: Json = {}
        if not browse.is_browse_id(session_id):
            session = await self._link.find(session_id)
            source = await self._link.source()
            with self._link.working(session_id):
                try:
                    await self._link.open.resume(session, lambda: source.open(session), await self._mapping(session))
                except TranscriptError as error:
                    raise not_found(session_id, str(error)) from error
            self._link.pushes.opened(session)
            result = wire.meta(_facts(session))

        async def then() -> None:
            await self._announce_commands(session_id)

        return Reply(self._opened(session_id, result), then)

    async def _new(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import NewParams, validated

        validated(NewParams, params)
        session_id = browse.new_browse_id()

        async def then() -> None:
            await self._announce_commands(session_id)

        return Reply(self._opened(session_id, {"sessionId": session_id}), then)

    async def _fork(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import LoadParams, validated

        session_id = validated(LoadParams, params).session_id
        with refusing("forked"):
            if browse.is_browse_id(session_id):
                raise ProtocolError(INVALID_PARAMS, "This session cannot be forked", "It is not the record of a tool.")
            parent = await self._link.find(session_id)
            forked = await (await self._link.source()).fork(parent)
        result = {"sessionId": forked.id, **wire.meta({"parent": parent.id})}
        return Reply(self._opened(forked.id, result))

    async def _close(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SessionParams, validated

        await self._link.let_go(validated(SessionParams, params).session_id)
        return Reply({})

    async def _set_mode(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SetModeParams, validated

        asked = validated(SetModeParams, params)
        await self._exists(asked.session_id)
        if not self._link.modes.choose(asked.session_id, asked.mode_id, "params.modeId"):
            return Reply({})

        async def then() -> None:
            options = self._link.modes.options(asked.session_id)
            await self._link.send(wire.update(asked.session_id, wire.config_options_update(options)))

        return Reply({}, then)

    async def _set_config_option(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import SetConfigOptionParams, validated

        asked = validated(SetConfigOptionParams, params)
        await self._exists(asked.session_id)
        if asked.config_id != CONFIG_ID:
            raise ProtocolError(INVALID_PARAMS, "Invalid params", f"params.configId: not one of {CONFIG_ID}")
        changed = self._link.modes.choose(asked.session_id, asked.value, "params.value")
        result: Json = {"configOptions": self._link.modes.options(asked.session_id)}

        async def then() -> None:
            await self._link.send(wire.update(asked.session_id, wire.mode_update(asked.value)))

        return Reply(result, then if changed else None)

    # What the methods share

    def _opened(self, session_id: str, result: Json) -> Json:
        self._link.opened.add(session_id)
        return {**result, **self._link.modes.fields(session_id)}

    async def _exists(self, session_id: str) -> None:
        if not browse.is_browse_id(session_id):
            await self._link.find(session_id)

    async def _replay(self, session_id: str) -> Json:
        if browse.is_browse_id(session_id):
            await self._link.say(session_id, browse.WELCOME, "welcome")
            return {}
        session = await self._link.find(session_id)
        source = await self._link.source()
        try:
            ending = await self._link.open.load(session, lambda: source.open(session), await self._mapping(session))
        except TranscriptError as error:
            raise not_found(session_id, str(error)) from error
        self._link.pushes.opened(session)
        facts = {"leftOut": ending.left_out or None, "problems": ending.problems or None}
        return wire.meta({**_facts(session), **facts})

    async def _mapping(self, session: Session) -> Replay:
        tools = self._link.tool_options(session, terminal=True)
        options = ReplayOptions(tools, compaction=self._link.client.compaction)
        return Replay(options, live=await self._link.is_live(session))

    async def _announce_commands(self, session_id: str) -> None:
        # Zed drops what comes for a session before the answer that creates it.
        if browse.is_browse_id(session_id):
            await self._link.calm.wait()
            await self._link.send(wire.update(session_id, browse.commands_update()))


def _facts(session: Session) -> Json:
    return {"mode": session.record.mode, "hidden": session.hidden or None}
