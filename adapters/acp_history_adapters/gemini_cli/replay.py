"""From message records to turns: one turn for each record that says or does something.

- A call whose result is not stored with it is paired with the response that follows, by id, else by name and order.
- A response without any call (a permission denied over ACP leaves nothing else) becomes a call of its own.
- Notes of the tool are notices, its summaries compactions; neither counts as a message.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from acp_history_adapters.gemini_cli.messages import (
    ACKNOWLEDGEMENT,
    AgentMessage,
    UserMessage,
    message_type,
    parts_of,
    read_agent,
    read_user,
)
from acp_history_adapters.gemini_cli.records import OVERSIZED
from acp_history_adapters.gemini_cli.tools import Surroundings, call_id, call_part, call_with_response
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Compaction, Notice, Part, Role, Text, ToolCall, Turn, Usage
from acp_history_bridge.values import JsonMap, integer, mapping, maps, string

__all__ = ["Record", "Replay"]

_NOTES = frozenset({"info", "error", "warning"})
_MEGABYTE = 1_000_000


@dataclass(slots=True)
class Record:
    """One message on its way to a turn; `key` is its id, made unique."""

    key: str
    message: JsonMap
    user: UserMessage | None = None


@dataclass(slots=True)
class _Group:
    """A record and, behind one of the agent, the records that hold responses to its calls."""

    first: Record
    answers: list[Record] = field(default_factory=list[Record])

    def responses(self) -> list[JsonMap]:
        return [response for record in self.answers if record.user for response in record.user.responses]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that was shown: its name and arguments as a number, and what it looked like while its outcome is open."""

    signature: int | None
    open: ToolCall | None = None


class Replay:
    """Makes turns. It remembers the ids of calls, because the tool stores calls and results several times.

    Attributes:
        calls: Every call that was shown, by id.
        usage: Tokens as last recorded.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        dropped_call: Callable[[str], JsonMap | None],
        unknown: Callable[[str], None],
    ) -> None:
        self.calls: dict[str, _Call] = {}
        self.usage: Usage | None = None
        self._surroundings = surroundings
        self._dropped_call = dropped_call
        self._unknown = unknown
        self._after_snapshot = False

    def turns(self, records: Iterable[Record]) -> Iterator[tuple[str, Turn]]:
        """Yield turns with the key of the record each comes from."""
        for group in self._grouped(records):
            yield from self._first(group)
            for answer in group.answers:
                yield from self._user(answer)

    def _grouped(self, records: Iterable[Record]) -> Iterator[_Group]:
        group: _Group | None = None
        for record in records:
            if message_type(record.message) == "user":
                record.user = read_user(record.message, self._surroundings.cwd)
            is_answer = record.user is not None and bool(record.user.responses)
            if group and is_answer and message_type(group.first.message) == "gemini":
                group.answers.append(record)
                continue
            if group:
                yield group
            group = _Group(record)
        if group:
            yield group

    def _first(self, group: _Group) -> Iterator[tuple[str, Turn]]:
        record = group.first
        match message_type(record.message):
            case "user":
                yield from self._user(record)
            case "gemini":
                yield from self._agent(record, group.responses())
            case kind if kind in _NOTES:
                yield from self._note(record)
            case kind if kind == OVERSIZED:
                yield from self._placeholder(record)
            case kind:
                self._unknown(f"message:{kind[:40]}")
                yield from self._note(record)

    def _user(self, record: Record) -> Iterator[tuple[str, Turn]]:
        user = record.user or UserMessage()
        for name in user.unknown:
            self._unknown(name)
        if failed := [call for response in user.responses if (call := self._late_outcome(response))]:
            yield record.key, _turn(record, "agent", failed)
        own = [part for part in user.parts if not isinstance(part, Compaction | ToolCall)]
        marks = [part for part in user.parts if isinstance(part, Compaction | ToolCall)]
        if marks:
            self._after_snapshot = any(isinstance(part, Compaction) for part in marks)
            yield record.key, _turn(record, "agent", marks, suffix="-mark" if own else "", synthetic=True)
        if own:
            self._after_snapshot = False
            yield record.key, _turn(record, "user", own)

    def _late_outcome(self, response: JsonMap) -> ToolCall | None:
        """The call a response belongs to, unless its outcome is known already."""
        identity = string(response.get("id"))
        known = self.calls.get(identity)
        if not identity or (known and known.open is None):
            return None
        outcome = call_part(identity, call_with_response({"id": identity}, response), self._surroundings)
        self.calls[identity] = _Call(known.signature if known else None)
        if not isinstance(outcome, ToolCall) or known is None or known.open is None:
            return outcome if isinstance(outcome, ToolCall) else None
        return replace(known.open, status=outcome.status, content=outcome.content, shell=outcome.shell)

    def _agent(self, record: Record, responses: list[JsonMap]) -> Iterator[tuple[str, Turn]]:
        agent = read_agent(record.message)
        for name in agent.unknown:
            self._unknown(name)
        acknowledges = self._after_snapshot and agent.text == ACKNOWLEDGEMENT
        self._after_snapshot = False
        self._count_tokens(record.message)
        parts: list[Part] = [] if acknowledges else list(agent.parts)
        parts += self._calls(record, agent, responses)
        if parts:
            yield record.key, _turn(record, "agent", parts)

    def _calls(self, record: Record, agent: AgentMessage, responses: list[JsonMap]) -> Iterator[Part]:
        stored = maps(record.message.get("toolCalls"))
        listed = {string(call.get("id")) for call in stored}
        for number, call in enumerate(stored):
            yield from self._call(call_id(call, record.key, number), call)
        for number, call in enumerate(agent.calls, start=len(stored)):
            identity = string(call.get("id"))
            if identity and (identity in listed or identity in self.calls):
                continue
            response = _response_to(call, responses)
            identity = identity or string((response or {}).get("id")) or call_id(call, record.key, number)
            if identity in listed or identity in self.calls:
                continue
            full = self._dropped_call(identity)
            yield from self._call(identity, full or call_with_response(call, response))

    def _call(self, identity: str, call: JsonMap) -> Iterator[Part]:
        signature = hash((string(call.get("name")), repr(call.get("args"))))
        number = 1
        while (known := self.calls.get(identity)) and known.signature not in {None, signature}:
            number += 1  # another call under the same id is not that call
            identity = f"{identity.partition('#')[0]}#{number}"
        if known and known.open is None:
            return
        part = call_part(identity, call, self._surroundings)
        unfinished = part if isinstance(part, ToolCall) and part.status == "unfinished" else None
        if known and unfinished:
            return
        self.calls[identity] = _Call(signature, unfinished)
        yield part

    def _count_tokens(self, message: JsonMap) -> None:
        tokens = mapping(message.get("tokens"))
        if used := integer(tokens.get("total")):
            self.usage = Usage(used)

    @staticmethod
    def _note(record: Record) -> Iterator[tuple[str, Turn]]:
        text = "".join(string(part.get("text")) for part in parts_of(record.message.get("content")))
        if text.strip():
            yield record.key, _turn(record, "agent", [Notice(text)], synthetic=True)

    @staticmethod
    def _placeholder(record: Record) -> Iterator[tuple[str, Turn]]:
        megabytes = (integer(record.message.get("content")) or 0) // _MEGABYTE
        text = Text(f"[record too large to show: {megabytes} MB]")
        role: Role = "user" if record.message.get("role") == "user" else "agent"
        yield record.key, _turn(record, role, [text], synthetic=True)


def _response_to(call: JsonMap, responses: list[JsonMap]) -> JsonMap | None:
    """The response with the call's id; for a call without one, the next unused one of its name."""
    field_name = "id" if string(call.get("id")) else "name"
    wanted = call.get(field_name)
    for place, response in enumerate(responses):
        if isinstance(wanted, str) and response.get(field_name) == wanted:
            return responses.pop(place)
    return None


def _turn(record: Record, role: Role, parts: Iterable[Part], *, suffix: str = "", synthetic: bool = False) -> Turn:
    return Turn(
        id=record.key + suffix,
        role=role,
        parts=tuple(parts),
        timestamp=parse_time(record.message.get("timestamp")),
        model=string(record.message.get("model")) or None if role == "agent" else None,
        synthetic=synthetic,
    )
