"""Which rollouts, and which parts of them, make up the history of a thread.

Policy:

- A fork or rewind of a paginated thread holds only what is new and names its base: another rollout and the ordinal at
  which that one's history ends for it. The history is the chain of bases, oldest first, then the rollout itself. A base
  that is not there is a problem; what exists is shown.
- A legacy rewind is a marker in the same file that takes the last turns back: those are skipped.
- What a rewind left behind is counted, not shown: the rest of bases of the same thread, and its rollouts off the chain.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.codex.lines import first_record, open_source
from acp_history_adapters.codex.prompts import event_prompt, item_prompt
from acp_history_adapters.codex.rollouts import Rollouts
from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.jsonl import Line, decode
from acp_history_bridge.values import JsonMap, integer, mapping, string

__all__ = [
    "Base",
    "Segment",
    "Skipped",
    "base_of",
    "bases_of",
    "count_messages",
    "has_marker",
    "meta_of",
    "rolled_back",
]

# A chain grows by one for each fork of a fork; nobody forks a thousand times.
_CHAIN_LIMIT = 1000
_ROLLED_BACK = b'"thread_rolled_back"'
_MESSAGE_MARKS = (b'"user_message"', b'"agent_message"', b'"UserMessage"', b'"AgentMessage"')
_TURN_MARKS = (
    *_MESSAGE_MARKS,
    b'"task_started"',
    b'"task_complete"',
    b'"turn_started"',
    b'"turn_complete"',
    b'"turn_aborted"',
    _ROLLED_BACK,
)


@dataclass(frozen=True, slots=True)
class Base:
    """Where the history of a rollout begins: in another one, up to an ordinal that is not included."""

    rollout: str
    end: int | None


@dataclass(frozen=True, slots=True)
class Segment:
    """A rollout of a chain, up to an ordinal that is not included, and the thread that it belongs to."""

    path: Path
    end: int | None
    thread: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Bytes of a rollout that were rolled back, and the messages in them."""

    start: int
    end: int
    messages: int


def meta_of(record: JsonMap) -> JsonMap:
    """The `session_meta` payload of a rollout's first record; the record itself where there was no envelope."""
    if "payload" in record:
        return mapping(record["payload"]) if record.get("type") == "session_meta" else {}
    return record if "type" not in record and "record_type" not in record else {}


def base_of(meta: JsonMap) -> Base | None:
    """What a rollout continues, if it does."""
    base = mapping(meta.get("history_base"))
    rollout = string(base.get("thread_id"))
    return Base(rollout, integer(base.get("end_ordinal_exclusive"))) if rollout else None


def bases_of(meta: JsonMap, path: Path, rollouts: Rollouts, problems: list[Problem]) -> list[Segment]:
    """The segments that come before a rollout, oldest first."""
    segments: list[Segment] = []
    visited = {path}
    base = base_of(meta)
    end: int | None = None
    while base is not None:
        found = rollouts.by_rollout(base.rollout)
        if found is None or found in visited or len(visited) > _CHAIN_LIMIT:
            problems.append(Problem(path, "missing-base", "the history before this rollout is not there"))
            break
        visited.add(found)
        try:
            with open_source(found) as source:
                meta = meta_of(first_record(source, problems))
        except TranscriptError as error:
            problems.append(Problem(found, "unreadable", str(error)))
            break
        end = base.end if end is None or base.end is None else min(end, base.end)
        segments.insert(0, Segment(found, end, string(meta.get("id"))))
        base = base_of(meta)
    return segments


def count_messages(lines: Iterable[Line], start: int | None = None) -> int:
    """Count the messages of a paginated rollout from an ordinal on."""
    messages = (record for _, record in _marked(lines, _MESSAGE_MARKS) if _is_message(record))
    return sum((integer(record.get("ordinal")) or 0) >= (start or 0) for record in messages)


def rolled_back(lines: Iterable[Line]) -> list[Skipped]:
    """What the markers of a rollout took back, in file order and without overlap."""
    history = _History()
    for line, record in _marked(lines, _TURN_MARKS):
        history.add(line, mapping(record.get("payload")), is_message=_is_message(record))
    return history.skipped


class _History:
    """Follows where turns begin, so that a marker can take the last ones back.

    A turn begins with its start event, where the release wrote one, else with the prompt. Several prompts within a
    started turn are one turn.
    """

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self._turns: list[tuple[int, int]] = []  # start, messages
        self._started: int | None = None
        self._prompted = False

    def add(self, line: Line, payload: JsonMap, *, is_message: bool) -> None:
        match payload.get("type"):
            case "task_started" | "turn_started":
                self._started, self._prompted = line.offset, False
            case "task_complete" | "turn_complete" | "turn_aborted":
                self._started = None
            case "thread_rolled_back":
                self._take_back(integer(payload.get("num_turns")) or 0, line.end)
            case _ if is_message:
                self._message(line.offset, by_user=_is_prompt(payload))
            case _:
                pass

    def _message(self, offset: int, *, by_user: bool) -> None:
        if by_user and not (self._started is not None and self._prompted):
            self._turns.append((offset if self._started is None else self._started, 0))
            self._prompted = True
        if self._turns:
            start, messages = self._turns[-1]
            self._turns[-1] = (start, messages + 1)

    def _take_back(self, count: int, end: int) -> None:
        if count <= 0 or not self._turns:
            return
        taken = self._turns[-count:]
        del self._turns[-count:]
        start, messages = taken[0][0], sum(one[1] for one in taken)
        while self.skipped and self.skipped[-1].start >= start:
            messages += self.skipped.pop().messages
        self.skipped.append(Skipped(start, end, messages))


def _is_prompt(payload: JsonMap) -> bool:
    return payload.get("type") == "user_message" or mapping(payload.get("item")).get("type") == "UserMessage"


def _is_message(record: JsonMap) -> bool:
    payload = mapping(record.get("payload"))
    if record.get("type") != "event_msg":
        return False
    item = mapping(payload.get("item"))
    match payload.get("type"):
        case "user_message":
            return bool(event_prompt(payload))
        case "agent_message":
            return bool(string(payload.get("message")).strip())
        case "item_completed":
            return string(item.get("type")) in {"UserMessage", "AgentMessage"} and bool(
                item_prompt(item.get("content"))
            )
        case _:
            return False


def _marked(lines: Iterable[Line], marks: tuple[bytes, ...]) -> Iterator[tuple[Line, JsonMap]]:
    """The records that hold one of the marks; the others are not even decoded."""
    for line in lines:
        data = line.data
        if data is not None and any(mark in data for mark in marks):
            try:
                yield line, mapping(decode(data))
            except ValueError:  # reported by whoever reads the whole transcript
                continue


def has_marker(lines: Iterable[Line]) -> bool:
    """Whether anything was rolled back in a rollout at all."""
    return any(line.data is not None and _ROLLED_BACK in line.data for line in lines)
