"""`session/prompt`: answers in words, never with an error that clients would show as a crash.

A prompt to a record says what it is and how to continue it in its own tool. A prompt to a browse session is a command
(`browse.py`).
"""

import os
from collections.abc import Mapping
from contextlib import aclosing

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol import browse
from acp_history_bridge.protocol.browse import Browser
from acp_history_bridge.protocol.jsonrpc import CANCELLED, Handler, Reply
from acp_history_bridge.protocol.link import Link
from acp_history_bridge.values import JsonMap

__all__ = ["Prompting"]


class Prompting:
    """The method that takes prompts."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._browser = Browser()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {"session/prompt": self._prompt}

    async def _prompt(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import PromptParams, validated

        asked = validated(PromptParams, params)
        message_id = os.urandom(16).hex()
        try:
            with self._link.working(asked.session_id):
                await self._answer(asked.session_id, asked.text, message_id)
        except ProtocolError as error:
            if error.code == CANCELLED:
                return Reply({"stopReason": "cancelled"})
            raise
        return Reply({"stopReason": "end_turn"})

    async def _answer(self, session_id: str, prompt: str, message_id: str) -> None:
        source = await self._link.source()
        if not browse.is_browse_id(session_id):
            session = await self._link.find(session_id)
            await self._link.say(session_id, browse.describe(session, source), message_id)
            return
        async with aclosing(self._browser.answer(session_id, prompt, source)) as answer:
            async for text in answer:
                await self._link.say(session_id, text, message_id)
