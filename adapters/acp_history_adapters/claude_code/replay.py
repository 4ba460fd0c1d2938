"""From the nodes of a skeleton to turns.

Policy: lines are read again one at a time, by their offset, so that memory is bounded by the largest one. An answer's
lines are one turn. A tool call stands where the agent made it and carries its outcome, wherever that lies; results
have no turns of their own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from acp_history_bridge.adapter import Problem
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Compaction, Part, Thought, Turn
from acp_history_bridge.values import JsonMap, integer, items, mapping, string

from .calls import CALL_BLOCKS, CallReader, Surroundings
from .content import is_known_block, to_content
from .lines import LineReader
from .prompts import joined_text, read_notification, remove_spans
from .records import Kind, ProblemLog
from .said import content_of, turn_of
from .skeleton import Node, Skeleton, notification_text

__all__ = ["Replay"]

_SILENT = frozenset({Kind.CONTEXT, Kind.RESULT})
_SYNTHETIC_MODEL = "<synthetic>"
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(slots=True)
class _Draft:
    """A turn of the agent whose lines are still being gathered."""

    group: str
    timestamp: datetime | None
    model: str | None
    synthetic: bool
    parts: list[Part] = field(default_factory=list[Part])

    def turn(self, turn_id: str) -> Turn:
        return Turn(turn_id, "agent", tuple(self.parts), self.timestamp, self.model, self.synthetic)


class Replay:
    """The turns of one conversation: a session, an inline sub-agent, or an agent's file.

    Attributes:
        used: Tokens in the model's context after the last answer.
    """

    def __init__(self, skeleton: Skeleton, around: Surroundings, problems: ProblemLog) -> None:
        self.used = 0
        self._skeleton = skeleton
        self._calls = CallReader(skeleton, around)
        self._problems = problems
        self._ids: dict[str, int] = {}
        self._last_group = ""
        self._boundary: Turn | None = None  # waits for its summary, which the next line brings

    def turns(self, lines: LineReader, indexes: Iterable[int]) -> Iterator[Turn]:
        """Turn these nodes, which are in file order, into turns."""
        draft: _Draft | None = None
        for index in indexes:
            node = self._skeleton.nodes[index]
            if node.kind in _SILENT:
                continue
            record = mapping(None) if node.kind is Kind.TOO_LARGE else lines.record(node.offset, node.size)
            if node.kind is not Kind.ASSISTANT:
                yield from self._finish(draft)
                draft = None
                yield from self._other_turns(lines, record, node)
                continue
            if draft is None or draft.group != node.group:
                yield from self._finish(draft)
                draft = _start(record, node)
            draft.parts += self._answer_parts(lines, record, index)
        yield from self._finish(draft)

    def calls_again(self, lines: LineReader, calls: Iterable[str], before: int) -> Iterator[Turn]:
        """Turns that hold these calls once more, because their outcome came after node `before` was read."""
        for call in calls:
            index = next((made for made in reversed(self._skeleton.calls.get(call, [])) if made < before), -1)
            if index < 0 or self._skeleton.nodes[index].side:
                continue
            node = self._skeleton.nodes[index]
            record = lines.record(node.offset, node.size)
            draft = _start(record, node)
            for block in items(mapping(record.get("message")).get("content")):
                if mapping(block).get("id") == call:
                    draft.parts += self._calls.parts(lines, mapping(block), record, index)
            if draft.parts:
                self._last_group = node.group
                yield draft.turn(self._current(node.group))

    def _finish(self, draft: _Draft | None) -> Iterator[Turn]:
        if draft is None or not draft.parts:
            return
        yield from self._take_boundary()
        # An answer that went on after the last call of `turns` goes on under its id.
        goes_on = draft.group == self._last_group
        self._last_group = draft.group
        yield draft.turn(self._current(draft.group) if goes_on else self._unique(draft.group))

    def _unique(self, wanted: str) -> str:
        self._ids[wanted] = self._ids.get(wanted, 0) + 1
        return self._current(wanted)

    def _current(self, wanted: str) -> str:
        count = self._ids.get(wanted, 1)
        return wanted if count == 1 else f"{wanted}~{count}"

    def _answer_parts(self, lines: LineReader, record: JsonMap, index: int) -> Iterator[Part]:
        message = mapping(record.get("message"))
        usage = mapping(message.get("usage"))
        self.used = sum(integer(usage.get(key)) or 0 for key in _COUNTED) or self.used
        content = message.get("content")
        for item in [content] if isinstance(content, str) else items(content):
            block = mapping(item)
            if string(block.get("type")) in CALL_BLOCKS:
                yield from self._calls.parts(lines, block, record, index)
            elif block.get("type") == "thinking":
                if thought := string(block.get("thinking")).strip():
                    yield Thought(thought)
            elif not isinstance(block.get("tool_use_id"), str):  # outcomes stand at their call
                self._note_unknown(lines, item, self._skeleton.nodes[index])
                yield from to_content(item if isinstance(item, str) else [item])

    def _note_unknown(self, lines: LineReader, item: object, node: Node) -> None:
        kind = mapping(item).get("type")
        if not isinstance(item, str) and not is_known_block(kind):
            detail = f"block {kind}"[:80] if isinstance(kind, str) else "block without a type"
            self._problems.add(Problem(lines.path, "unknown-record", detail, node.number))

    def _other_turns(self, lines: LineReader, record: JsonMap, node: Node) -> Iterator[Turn]:
        if node.kind is Kind.BOUNDARY:
            yield from self._take_boundary()
            name = string(record.get("uuid")) or f"line-{node.number}"
            self._boundary = Turn(
                name, "agent", (Compaction(name),), parse_time(record.get("timestamp")), synthetic=True
            )
            return
        if node.kind is Kind.SUMMARY:
            yield self._summary(record, node)
            return
        if node.kind is Kind.NOTIFICATION:
            if read_notification(notification_text(record)).tool_use_id in self._skeleton.calls:
                return  # told where the call stands
        elif node.kind is not Kind.COMMAND:
            for item in items(content_of(record)):
                if mapping(item).get("type") != "tool_result":
                    self._note_unknown(lines, item, node)
        turn = turn_of(record, node)
        if turn is not None:
            yield from self._take_boundary()
            self._last_group = ""
            yield replace(turn, id=self._unique(turn.id))

    def _summary(self, record: JsonMap, node: Node) -> Turn:
        # The line after the boundary; the oldest versions wrote it without one.
        name = string(record.get("uuid")) or f"line-{node.number}"
        start = self._boundary or Turn(name, "agent", (Compaction(name),), parse_time(record.get("timestamp")))
        self._boundary = None
        self._last_group = ""
        text = remove_spans(joined_text(content_of(record)), "system-reminder").strip()
        return replace(start, id=self._unique(start.id), parts=(Compaction(start.id, text),), synthetic=True)

    def _take_boundary(self) -> Iterator[Turn]:
        boundary, self._boundary = self._boundary, None
        if boundary is not None:
            self._last_group = ""
            yield replace(boundary, id=self._unique(boundary.id))


def _start(record: JsonMap, node: Node) -> _Draft:
    model = string(mapping(record.get("message")).get("model"))
    synthetic = model == _SYNTHETIC_MODEL
    return _Draft(node.group, parse_time(record.get("timestamp")), None if synthetic else model or None, synthetic)
