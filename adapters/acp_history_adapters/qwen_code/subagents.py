"""Sub-agents' transcripts, found by the cards beside them: `agent-<id>.meta.json` names the call that started it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.qwen_code.places import subagent_directory
from acp_history_bridge.adapter import Problem
from acp_history_bridge.files import list_directory, read_small
from acp_history_bridge.jsonl import decode
from acp_history_bridge.values import first_string, mapping, string

__all__ = ["Subagent", "Subagents"]

_CARD = ".meta.json"
_CARD_LIMIT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Subagent:
    """One sub-agent's transcript."""

    id: str
    name: str
    path: Path


class Subagents:
    """The sub-agents of a session. Cards are read when the first call asks, and again for a call that is not known."""

    def __init__(self, path: Path, sessions: Iterable[str]) -> None:
        self._directories = [found for session in sessions if (found := subagent_directory(path, session))]
        self._by_call: dict[str, list[Subagent]] = {}
        self._seen: set[Path] = set()

    def of_call(self, call_id: str) -> list[Subagent]:
        """What a call started."""
        if call_id not in self._by_call:
            self._read()
        return self._by_call.get(call_id, [])

    def _read(self) -> None:
        unread: list[Problem] = []  # no directory means no sub-agents
        for directory in self._directories:
            for entry in list_directory(directory, unread) or ():
                path = Path(entry.path)
                if entry.name.endswith(_CARD) and path not in self._seen:
                    self._read_card(path)

    def _read_card(self, path: Path) -> None:
        try:
            card = mapping(decode(read_small(path, _CARD_LIMIT) or b""))
        except ValueError:  # being written; it is looked at again
            return
        self._seen.add(path)
        stem = path.name.removesuffix(_CARD)
        name = first_string(card, "agentType", "subagentName") or "agent"
        agent = Subagent(string(card.get("agentId")) or stem, name, path.with_name(f"{stem}.jsonl"))
        self._by_call.setdefault(string(card.get("toolUseId")), []).append(agent)
