"""What a list shows of a rollout, from as few bytes as will do.

Policy:

- The head is read until the first prompt is found, wherever that is; then the end, backwards, for the time of the last
  record and the last `turn_context`. With what an earlier look left behind only the new bytes are read, forwards.
- Lines are told apart by the marks in their bytes and decoded only when something in them is wanted.
- Only the first `session_meta` counts: copies and sub-agents carry their source's as a second one.
- The last record's time is the session's, but for a trailing `thread_settings_applied`: merely looking at a session in
  another client writes that.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

from acp_history_adapters.codex.backward import end_of_lines, lines_backward
from acp_history_adapters.codex.chains import meta_of
from acp_history_adapters.codex.lines import Source
from acp_history_adapters.codex.prompts import event_prompt, item_prompt, message_parts, prompt_text, wrapped_cwd
from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines, split_lines
from acp_history_bridge.values import JsonMap, integer, mapping, maps, string

__all__ = ["Facts", "facts_of", "more_facts"]

_HEAD = 64 * 1024
_TIME = re.compile(rb'\s*\{"timestamp":\s*"([0-9T:.Z+-]{10,40})"')
_SETTINGS = b'"thread_settings_applied"'
_CONTEXT = b'"turn_context"'
_PROMPTS = (b'"user_message"', b'"UserMessage"')
_ANSWERS = (b'"agent_message"', b'"AgentMessage"', b'"Plan"')
_GOAL = b'"thread_goal_updated"'
_META_KEYS = (
    "id",
    "timestamp",
    "cwd",
    "cli_version",
    "originator",
    "source",
    "thread_source",
    "session_id",
    "forked_from_id",
    "parent_thread_id",
    "history_base",
    "subagent_history_start_ordinal",
    "runtime_workspace_roots",
)


@dataclass(slots=True)
class Facts:
    """What is known of a rollout. All values are JSON, so that it can be kept between two looks.

    Attributes:
        headed: The first record has been seen.
        bare: It was one of the format without envelopes.
        meta: What is wanted of `session_meta`.
        prompt: Text of the first prompt.
        prompt_ordinal: Where it stands, for whoever continues this rollout.
        talked: There is a message of anybody.
        last: Time of the last record.
    """

    headed: bool = False
    bare: bool = False
    meta: dict[str, object] = field(default_factory=dict[str, object])
    branch: str | None = None
    cwd: str | None = None
    model: str | None = None
    mode: str | None = None
    prompt: str | None = None
    prompt_ordinal: int = 0
    goal: str | None = None
    talked: bool = False
    last: str | None = None

    @classmethod
    def restore(cls, state: object) -> "Facts | None":
        """What `state` made; None for anything else, as another version of this adapter may have left it."""
        kept = mapping(state)
        if kept.keys() != cls.__dataclass_fields__.keys() or not isinstance(kept["meta"], dict):
            return None
        return cls(**dict(kept))  # type: ignore[arg-type]  # our own values, of this very shape

    def state(self) -> dict[str, object]:
        """For `restore`."""
        return asdict(self)

    def look(self, data: bytes) -> None:
        """Take what a line says, in file order."""
        if not self.headed or self.bare:
            self._look_closely(data)
            return
        self.look_at_end(data, newest=False)
        if self.prompt is None and (_GOAL in data or any(mark in data for mark in _PROMPTS)):
            self._take_prompt(_record(data))
        if not self.talked and any(mark in data for mark in _ANSWERS):
            self.talked = _is_answer(_record(data))

    def look_at_end(self, data: bytes, *, newest: bool) -> bool:
        """Take time and context of a line; `newest` when lines come last one first, so that only the first counts.

        Returns:
            Whether both are known now.
        """
        if not (newest and self.last is not None) and _SETTINGS not in data:
            self.last = _time(data) or self.last
        if not (newest and self.cwd is not None) and _CONTEXT in data:
            self._take_context(_record(data))
        return self.last is not None and self.cwd is not None

    def _look_closely(self, data: bytes) -> None:
        record = _record(data)
        if not record:
            return
        if not self.headed:
            self.headed = True
            meta = meta_of(record)
            self.bare = "payload" not in record
            self.meta = {key: meta[key] for key in _META_KEYS if key in meta}
            self.branch = string(mapping(meta.get("git")).get("branch")) or None
        if not self.bare:
            self.look_at_end(data, newest=False)
            self._take_prompt(record)
            self.talked = self.talked or _is_answer(record)
        elif self.prompt is None and record.get("type") == "message":
            self._take_bare(record)

    def _take_bare(self, message: JsonMap) -> None:
        said = message_parts(message)
        if message.get("role") == "user":
            self.prompt = prompt_text(said) or None
            for part in maps(message.get("content")):
                self.cwd = self.cwd or wrapped_cwd(string(part.get("text")))
        self.talked = self.talked or (bool(said) and message.get("role") in {"user", "assistant"})

    def _take_context(self, record: JsonMap) -> None:
        if record.get("type") == "turn_context":
            context = mapping(record.get("payload"))
            self.cwd = string(context.get("cwd")) or self.cwd
            self.model = string(context.get("model")) or self.model
            self.mode = string(context.get("approval_policy")) or self.mode

    def _take_prompt(self, record: JsonMap) -> None:
        event = mapping(record.get("payload") if record.get("type") == "event_msg" else None)
        item = mapping(event.get("item"))
        if event.get("type") == "user_message":
            said = event_prompt(event)
        elif item.get("type") == "UserMessage":
            said = item_prompt(item.get("content"))
        else:
            if event.get("type") == "thread_goal_updated":
                self.goal = self.goal or string(mapping(event.get("goal")).get("objective")) or None
            return
        self.talked = self.talked or bool(said)
        self.prompt = prompt_text(said) or None
        self.prompt_ordinal = integer(record.get("ordinal")) or 0


def facts_of(source: Source, size: int, problems: list[Problem]) -> tuple[Facts, int]:
    """Look at a rollout for the first time.

    Returns:
        What is known, and the offset behind the last whole line.
    """
    facts = Facts()
    if source.compressed:
        return facts, _look_forward(facts, source.lines(problems))
    descriptor = source.descriptor
    end = end_of_lines(descriptor, 0, size)
    read = _look_until_prompt(facts, _head_first(descriptor, end))
    if read < end and not facts.bare:
        # What the head said of the end is out of date.
        facts.last = facts.cwd = None
        for data in lines_backward(descriptor, 0, end):
            if facts.look_at_end(data, newest=True):
                break
    return facts, end


def more_facts(facts: Facts, descriptor: int, start: int, size: int) -> int:
    """Look at what was appended; the outcome is the same as that of `facts_of`."""
    return _look_forward(facts, read_lines(descriptor, start, size)) or start


def _head_first(descriptor: int, end: int) -> Iterator[Line]:
    """The lines of a range, read in a small piece first, because the first prompt is nearly always there."""

    def chunks() -> Iterator[bytes]:
        yield read_at(descriptor, 0, min(_HEAD, end))
        position = _HEAD
        while position < end:
            data = read_at(descriptor, position, min(_HEAD * 4, end - position))
            if not data:
                return
            position += len(data)
            yield data

    return split_lines(chunks())


def _look_until_prompt(facts: Facts, lines: Iterable[Line]) -> int:
    offset = 0
    for line in lines:
        if line.data is not None:
            facts.look(line.data)
        offset = line.end
        if facts.prompt is not None:
            break
    return offset


def _look_forward(facts: Facts, lines: Iterable[Line]) -> int:
    offset = 0
    for line in lines:
        if not line.pending:
            offset = line.end
            if line.data is not None:
                facts.look(line.data)
    return offset


def _time(data: bytes) -> str | None:
    match = _TIME.match(data)
    if match:
        return match[1].decode("ascii")
    return string(_record(data).get("timestamp")) or None


def _record(data: bytes) -> JsonMap:
    try:
        return mapping(decode(data))
    except ValueError:  # reported when the transcript is read
        return {}


def _is_answer(record: JsonMap) -> bool:
    event = mapping(record.get("payload"))
    if record.get("type") != "event_msg":
        return False
    return event.get("type") == "agent_message" or mapping(event.get("item")).get("type") in {"AgentMessage", "Plan"}
