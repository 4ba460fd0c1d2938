"""Turns → `session/update`: the mapping, and nothing but the mapping.

Policy:

- Everything the user and the agent wrote is replayed, in order, one chunk per part, with the turn's id as `messageId`.
- What has no place in protocol version 1 is told in words (a compaction, for clients without the capability), or in
  `_meta` (time, model); notices are not replayed, as the protocol asks.
- A tool call that comes again because its outcome has arrived becomes a `tool_call_update`.
- Blank parts give nothing. No frame reaches 1 MiB (`bounds.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.blocks import part_blocks
from acp_history_bridge.protocol.bounds import Budget, bounded_id, pieces
from acp_history_bridge.protocol.tools import ToolOptions, tool_updates
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.text import one_line
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import (
    Compaction,
    Notice,
    Plan,
    PlanEntry,
    Thought,
    ToolCall,
    Turn,
)

__all__ = ["Replay", "ReplayOptions", "compaction_text"]

_PLAN_LIMIT = 500
_PLAN_ENTRY_LIMIT = 4096
_COMPACTED = "Conversation compacted. The agent went on with a summary of everything above."


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What the client can show, and how much of a payload it gets.

    Attributes:
        tools: How tool calls are shown.
        compaction: The client announced `session.compaction`.
    """

    tools: ToolOptions
    compaction: bool = False


class Replay:
    """The replay of one session to one client; it remembers which tool calls the client has seen.

    Attributes:
        live: The session is running, so a tool call without outcome is in progress rather than failed.
    """

    def __init__(self, options: ReplayOptions, *, live: bool) -> None:
        self._options = options
        self._calls: set[str] = set()
        self.live = live

    def updates(self, turn: Turn) -> Iterator[Json]:
        """Map one turn."""
        facts = _facts(turn)
        identity = bounded_id(turn.id)
        for part in turn.parts:
            if isinstance(part, ToolCall):
                yield from self._tool(part, facts)
            elif isinstance(part, Plan):
                yield wire.plan(_plan_entries(part)) | wire.meta(facts)
            elif isinstance(part, Compaction):
                yield from self._compaction(part, identity, facts)
            elif not isinstance(part, Notice):
                kind = "agent_thought_chunk" if isinstance(part, Thought) else f"{turn.role}_message_chunk"
                for block in part_blocks(part, self._options.tools.image_limit):
                    yield wire.chunk(kind, block, identity, facts)

    def _tool(self, call: ToolCall, facts: Json) -> Iterator[Json]:
        known = call.id in self._calls
        self._calls.add(call.id)
        yield from tool_updates(call, self._options.tools, live=self.live, known=known, facts=facts)

    def _compaction(self, part: Compaction, turn_id: str, facts: Json) -> Iterator[Json]:
        if self._options.compaction:
            identity = bounded_id(part.id)
            first, *more = pieces(part.summary)
            yield wire.compaction(identity, first) | wire.meta(facts)
            for piece in more:
                yield wire.compaction_summary(identity, piece)
            return
        for piece in pieces(compaction_text(part)):
            yield wire.chunk("agent_message_chunk", wire.text(piece), f"{turn_id}/compaction", facts)


def compaction_text(part: Compaction) -> str:
    """A compaction in words."""
    return f"{_COMPACTED}\n\n{part.summary}" if part.summary.strip() else _COMPACTED


def _facts(turn: Turn) -> Json:
    """What protocol version 1 has no field for."""
    return wire.present(
        {
            "timestamp": None if turn.timestamp is None else format_time(turn.timestamp),
            "model": None if turn.model is None else one_line(turn.model),
            "synthetic": turn.synthetic or None,
        }
    )


def _plan_entries(plan: Plan) -> Iterator[PlanEntry]:
    budget = Budget()
    for entry in plan.entries[:_PLAN_LIMIT]:
        yield PlanEntry(budget.text(entry.content, _PLAN_ENTRY_LIMIT), entry.status, entry.priority)
    if len(plan.entries) > _PLAN_LIMIT:
        yield PlanEntry(f"[… {len(plan.entries) - _PLAN_LIMIT:,} more left out …]", "pending")
