"""Modes: what a prompt to a session does. The client's mode picker is where the user consents to more than reading.

Today there is one, `read-only`. The same choice is offered as a configuration option, for clients that show those
instead; when it is made in one way, the other way is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS
from acp_history_bridge.protocol.wire import Json

__all__ = ["CONFIG_ID", "READ_ONLY", "Mode", "Modes"]

CONFIG_ID = "mode"


@dataclass(frozen=True, slots=True)
class Mode:
    """One choice."""

    id: str
    name: str
    description: str


READ_ONLY = Mode("read-only", "Read only", "Shows the record. A prompt is answered with how to continue in the tool.")


class Modes:
    """Which modes there are, and which one each open session is in."""

    def __init__(self, offered: Sequence[Mode] = (READ_ONLY,)) -> None:
        """Offer these modes; sessions start in the first."""
        self._offered = offered
        self._chosen: dict[str, str] = {}

    def current(self, session_id: str) -> str:
        """The mode a session is in."""
        return self._chosen.get(session_id, self._offered[0].id)

    def choose(self, session_id: str, mode_id: str, place: str) -> bool:
        """Put a session into a mode; False when it was in it already.

        Raises:
            ProtocolError: There is no such mode; `place` names the parameter.
        """
        if mode_id not in {mode.id for mode in self._offered}:
            known = ", ".join(mode.id for mode in self._offered)
            raise ProtocolError(INVALID_PARAMS, "Invalid params", f"{place}: not one of {known}")
        before = self.current(session_id)
        self._chosen[session_id] = mode_id
        return mode_id != before

    def forget(self, session_id: str) -> None:
        """The session is closed; opened again, it starts in the first mode."""
        self._chosen.pop(session_id, None)

    def fields(self, session_id: str) -> Json:
        """The fields `modes` and `configOptions` of an answer that opens a session."""
        modes = [{"id": mode.id, "name": mode.name, "description": mode.description} for mode in self._offered]
        state: Json = {"currentModeId": self.current(session_id), "availableModes": modes}
        return {"modes": state, "configOptions": self.options(session_id)}

    def options(self, session_id: str) -> list[Json]:
        """The same choice as the complete list of configuration options."""
        values = [{"value": mode.id, "name": mode.name, "description": mode.description} for mode in self._offered]
        option: Json = {
            "id": CONFIG_ID,
            "name": "Mode",
            "description": "What a prompt to this session does.",
            "category": "mode",
            "type": "select",
            "currentValue": self.current(session_id),
            "options": values,
        }
        return [option]
