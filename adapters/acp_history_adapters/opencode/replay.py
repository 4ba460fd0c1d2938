"""Turns of a session, and what was added to it since.

Policy:

- One turn per message. opencode makes one message of the agent per request to the model, so an answer has many.
- Text that opencode added to a prompt for the model (`synthetic`) is not shown; attached files are, as files.
- A pending revert hides the messages behind it: they are counted, and come back in a fresh replay if it is undone.
- A compaction is shown at its summary; the messages before it are all still there.
- A message that is being written stays open: later calls show what its parts have become.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile

from acp_history_adapters.opencode.attachments import attachment
from acp_history_adapters.opencode.storage import Head, Message, MessagePart, Reader, Storage
from acp_history_adapters.opencode.tools import ToolContext, tool_part
from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Compaction, Notice, Part, SubagentRun, Text, Thought, Turn, Usage
from acp_history_bridge.values import JsonMap, boolean, integer, mapping, number, string

__all__ = ["SessionTranscript"]

_OPEN_LIMIT = 8  # messages; an answer that was cut off by a crash stays unfinished for ever
_PROBLEM_LIMIT = 1000
_KNOWN = frozenset(
    # What is shown, unless it is empty, and what is bookkeeping.
    {"reasoning", "file", "subtask", "step-start", "step-finish", "snapshot", "patch", "agent", "compaction"}
)


@dataclass(slots=True)
class _Progress:
    """What was shown of a message that may still change.

    Attributes:
        parts: Of each part, the length of its text or the status of its call.
        error: Whether its error was shown.
        cost: What of its cost is counted already.
        unfinished: The agent may still be writing it.
    """

    head: Head
    parts: dict[str, int | str] = field(default_factory=dict[str, int | str])
    error: bool = False
    cost: float = 0.0
    unfinished: bool = False


class SessionTranscript:
    """One session, in whichever storage."""

    def __init__(
        self, storage: Storage, session_id: str, cwd: str | None, ancestors: frozenset[str] = frozenset()
    ) -> None:
        self._storage = storage
        self._id = session_id
        self._ancestors = ancestors | {session_id}
        self._cwd = cwd
        self._position: object = None
        self._open: list[_Progress] = []
        self._problems: list[Problem] = []
        self._left_out = 0
        self._used = 0
        self._cost = 0.0

    @property
    def left_out(self) -> int:
        """Messages behind a pending revert."""
        return self._left_out

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the last request to the model, and the cost of all."""
        return Usage(self._used, cost=self._cost or None) if self._used else None

    def close(self) -> None:
        """Nothing is kept open between two calls of `turns`."""

    def turns(self) -> Iterator[Turn]:
        """Yield the history; later what was added."""
        try:
            with self._storage.reading() as reader:
                yield from self._turns(reader)
        except TranscriptError as error:  # damaged half-way: what was read stays
            self._problems.append(Problem(self._storage.outputs.parent, "unreadable", str(error)))

    def _turns(self, reader: Reader) -> Iterator[Turn]:
        tools = ToolContext(self._cwd, self._storage.outputs, partial(self._subagent, reader))
        revert = mapping(reader.info(self._id).get("revert"))
        reverted, first_part = string(revert.get("messageID")), string(revert.get("partID"))
        for progress in [*self._open]:
            if progress.head.id == reverted:
                break
            yield from self._message(reader, progress, tools)
        heads = reader.heads(self._id, self._position)
        for number_of_head, head in enumerate(heads):
            if head.id == reverted:
                self._left_out = len(heads) - number_of_head
                if first_part:
                    yield from self._message(reader, self._progress(head), tools, first_part)
                break
            self._position = head.position
            yield from self._message(reader, self._progress(head), tools)
        self._problems += reader.problems[: _PROBLEM_LIMIT - len(self._problems)]

    def _progress(self, head: Head) -> _Progress:
        """What was shown of a message; the last one stays open, too, because its parts are written after it."""
        known = next((item for item in self._open if item.head == head), None)
        if known is None:
            known = _Progress(head)
            self._open = [*(item for item in self._open if item.unfinished), known][-_OPEN_LIMIT:]
        return known

    def _message(self, reader: Reader, progress: _Progress, tools: ToolContext, until: str = "") -> Iterator[Turn]:
        message = reader.message(self._id, progress.head)
        progress.unfinished = message is None or bool(until) or _is_unfinished(message)
        if message is None:
            return
        shown = takewhile(lambda part: part.id != until, message.parts) if until else message.parts
        parts = tuple(self._parts(message, shown, progress, tools))
        self._count(message.data, progress)
        if parts:
            by_user = message.data.get("role") == "user"
            yield Turn(
                message.id,
                "user" if by_user else "agent",
                parts,
                parse_time(mapping(message.data.get("time")).get("created")),
                None if by_user else string(message.data.get("modelID")) or None,
                synthetic=any(isinstance(part, Compaction) for part in parts),
            )

    def _parts(
        self, message: Message, shown: Iterable[MessagePart], progress: _Progress, tools: ToolContext
    ) -> Iterator[Part]:
        for part in shown:
            before = progress.parts.get(part.id)
            progress.parts[part.id] = now = _signature(part.data)
            if before == now:
                continue
            if part.data.get("type") == "tool":
                yield tool_part(part.id, part.data, tools)
            else:
                yield from self._part(message, part.data, before if isinstance(before, int) else 0)
        error = mapping(message.data.get("error"))
        if error and not progress.error:
            progress.error = True
            yield Notice(_error_text(error))

    def _part(self, message: Message, data: JsonMap, shown: int) -> Iterator[Part]:
        kind = string(data.get("type"))
        if kind == "text":
            yield from _texts(message, data, shown)
        elif kind == "reasoning" and (thought := string(data.get("text"))[shown:]):
            yield Thought(thought)
        elif kind == "file" and (made := attachment(data)):
            yield made
        elif kind == "subtask" and (prompt := string(data.get("prompt"))):
            yield Text(prompt)  # a slash command that starts a sub-agent; the message has no other text
        elif kind == "retry":
            yield Notice(_error_text(mapping(data.get("error"))))
        elif kind not in _KNOWN and len(self._problems) < _PROBLEM_LIMIT:
            self._problems.append(Problem(self._storage.outputs.parent, "unknown-record", f"part {kind[:80]}"))

    def _count(self, data: JsonMap, progress: _Progress) -> None:
        cost = number(data.get("cost")) or 0.0
        self._cost += cost - progress.cost
        progress.cost = cost
        self._used = _tokens(mapping(data.get("tokens"))) or self._used

    def _subagent(self, reader: Reader, child: str, name: str) -> SubagentRun | None:
        info = reader.info(child)
        if child in self._ancestors or not info:
            return None
        cwd = string(info.get("directory")) or self._cwd
        return SubagentRun(child, name, SessionTranscript(self._storage, child, cwd, self._ancestors).turns)


def _texts(message: Message, data: JsonMap, shown: int) -> Iterator[Part]:
    text = string(data.get("text"))[shown:]
    if text and boolean(message.data.get("summary")):
        yield Compaction(message.id, text)
    elif text and not (message.data.get("role") == "user" and boolean(data.get("synthetic"))):
        yield Text(text)


def _signature(data: JsonMap) -> int | str:
    if data.get("type") == "tool":
        return string(mapping(data.get("state")).get("status"))
    return len(string(data.get("text")))


def _is_unfinished(message: Message) -> bool:
    """Whether the agent may still be writing it."""
    completed = mapping(message.data.get("time")).get("completed")
    states = (string(mapping(part.data.get("state")).get("status")) for part in message.parts)
    return message.data.get("role") != "user" and (completed is None or not {"pending", "running"}.isdisjoint(states))


def _error_text(error: JsonMap) -> str:
    text = string(mapping(error.get("data")).get("message")) or string(error.get("message"))
    name = string(error.get("name")) or "Error"
    return f"{name}: {text}" if text else name


def _tokens(tokens: JsonMap) -> int:
    """What a request had in the model's context, its answer included."""
    cache = mapping(tokens.get("cache"))
    counts = (*(tokens.get(name) for name in ("input", "output", "reasoning")), cache.get("read"), cache.get("write"))
    return sum(max(0, integer(count) or 0) for count in counts)
