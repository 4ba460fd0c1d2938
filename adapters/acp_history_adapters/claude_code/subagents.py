"""Which sub-agent's transcript belongs to which tool call.

Policy: the launching call's id in the agent's side file is best (2.1.170 on), then the agent's id in the call's result
(2.0.42 on), then, for inline side chains and for calls without an outcome, the very prompt. Agents are looked up among
the files that are there; no id from a transcript becomes a path.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import list_directory, open_regular, read_small
from acp_history_bridge.jsonl import decode, read_lines
from acp_history_bridge.values import JsonMap, first_string, mapping

from .paths import session_directory
from .prompts import joined_text
from .tools import Call

__all__ = ["AgentFile", "AgentFiles"]

_META_LIMIT = 64 * 1024
_PREFIX, _SUFFIX, _META_SUFFIX = "agent-", ".jsonl", ".meta.json"
_FIRST_LINES = 8


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A sub-agent's transcript: where it lies, and what its side file says."""

    id: str
    path: Path
    name: str = ""
    call_id: str = ""


class AgentFiles:
    """All sub-agents of one session; the directories are listed when the first one is asked for."""

    def __init__(self, transcript: Path) -> None:
        self._transcript = transcript
        self._listed = False
        self._own: dict[str, AgentFile] = {}
        self._by_call: dict[str, list[AgentFile]] = {}
        self._shared: dict[str, AgentFile] = {}
        self._by_prompt: dict[int, list[AgentFile]] | None = None

    def started_by(self, call: Call, agent_id: str) -> list[AgentFile]:
        """The agents that a call started; `agent_id` is what its result says, or empty."""
        self._list_once()
        if linked := self._by_call.get(call.id):
            return linked
        if agent_id:
            named = self._own.get(agent_id) or self._shared.get(agent_id)
            return [named] if named else []
        prompt = first_string(call.input, "prompt").strip()
        # Two calls with one prompt have two agents: each takes the next one.
        waiting = self._prompts().get(hash(prompt), []) if prompt else []
        return [waiting.pop(0)] if waiting else []

    def look_again(self) -> None:
        """List the directories anew when the next agent is asked for."""
        self._listed = False

    def _list_once(self) -> None:
        if self._listed:
            return
        self._listed = True
        self._by_call, self._by_prompt = {}, None
        directory = session_directory(self._transcript) / "subagents"
        self._own = {agent.id: agent for agent in self._agents_in(directory, with_meta=True)}
        for agent in self._own.values():
            if agent.call_id:
                self._by_call.setdefault(agent.call_id, []).append(agent)
        # Up to 2.0.77 the agents of all sessions of a project lay side by side.
        self._shared = {agent.id: agent for agent in self._agents_in(self._transcript.parent, with_meta=False)}

    def _agents_in(self, directory: Path, *, with_meta: bool) -> Iterator[AgentFile]:
        problems: list[Problem] = []  # a directory that cannot be listed has no agents to show
        for entry in list_directory(directory, problems) or ():
            if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)):
                continue
            name = entry.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            meta = self._meta(directory / f"{_PREFIX}{name}{_META_SUFFIX}") if with_meta else mapping(None)
            agent_type = first_string(meta, "agentType")
            yield AgentFile(name, directory / entry.name, agent_type, first_string(meta, "toolUseId"))

    @staticmethod
    def _meta(path: Path) -> JsonMap:
        data = read_small(path, _META_LIMIT)
        if data is None:
            return {}
        try:
            return mapping(decode(data))
        except ValueError:
            return {}

    def _prompts(self) -> dict[int, list[AgentFile]]:
        if self._by_prompt is None:
            self._by_prompt = {}
            session = self._transcript.stem
            for agent in [*self._own.values(), *self._shared.values()]:
                owner, prompt = ("", "") if agent.call_id else _first_prompt(agent.path)
                if prompt and (agent.id not in self._shared or owner == session):
                    self._by_prompt.setdefault(hash(prompt), []).append(agent)
        return self._by_prompt


def _first_prompt(path: Path) -> tuple[str, str]:
    try:
        with open_regular(path) as descriptor:
            for number, line in enumerate(read_lines(descriptor)):
                if number >= _FIRST_LINES:
                    break
                record = mapping(_decoded(line.data))
                if record.get("type") == "user":
                    text = joined_text(mapping(record.get("message")).get("content"))
                    return first_string(record, "sessionId"), text.strip()
    except (TranscriptError, OSError):
        return "", ""
    return "", ""


def _decoded(data: bytes | None) -> object:
    try:
        return decode(data) if data else None
    except ValueError:
        return None
