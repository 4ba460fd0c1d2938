"""What the client announced in `initialize`, as far as it matters here."""

from dataclasses import dataclass

from acp_history_bridge.protocol.wire import META_KEY
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["Client"]


@dataclass(frozen=True, slots=True)
class Client:
    """The client's abilities.

    Attributes:
        compaction: It understands `compaction_update`.
        terminal: It draws display-only terminals, by Zed's convention.
        air: It speaks JetBrains AIR's session index (`_meta.jetbrains.air`).
        live_lists: It takes `_session/list/changes`, by that extension or by ours.
    """

    compaction: bool = False
    terminal: bool = False
    air: bool = False
    live_lists: bool = False

    @classmethod
    def of(cls, capabilities: JsonMap) -> "Client":
        """Read `clientCapabilities`; anything unexpected counts as not announced."""
        meta = mapping(capabilities.get("_meta"))
        air_abilities = mapping(mapping(meta.get("jetbrains")).get("air")).get("capabilities")
        air = isinstance(air_abilities, list) and "sessionIndex" in air_abilities
        return cls(
            compaction=isinstance(mapping(capabilities.get("session")).get("compaction"), dict),
            terminal=meta.get("terminal_output") is True,
            air=air,
            live_lists=air or isinstance(mapping(meta.get(META_KEY)).get("liveLists"), dict),
        )
