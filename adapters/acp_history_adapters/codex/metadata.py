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
from collections.abc import Iterable
from dataclasses import dataclass, field

from acp_history_adapters.codex.backward import end_of_lines, lines_backward, marked_lines_backward
from acp_history_adapters.codex.chains import meta_of
from acp_history_adapters.codex.lines import Source
from acp_history_adapters.codex.prompts import event_prompt, item_prompt, message_parts, prompt_text, wrapped_cwd
from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines
from acp_history_bridge.values import JsonMap, integer, mapping, maps, string

__all__ = ["Facts", "facts_of", "more_facts"]

_HEAD = 24 * 1024
# Beyond this the file is read line by line instead, so that memory stays bounded.
_LARGEST_HEAD = 16 * _HEAD
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
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def look(self, data: bytes) -> None:
        """Take what a line says, in file order."""
        if not self.headed or self.bare:
            self.look_closely(data)
            return
        self.last = _time(data) or self.last
        if _CONTEXT in data:
            self.take_context(_record(data))
        if self.prompt is None and (_GOAL in data or any(mark in data for mark in _PROMPTS)):
            self.take_prompt(_record(data))
        if not self.talked and any(mark in data for mark in _ANSWERS):
            self.talked = _is_answer(_record(data))

    def look_closely(self, data: bytes) -> None:
        """Take what the first line says, or any line of the format without envelopes."""
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
            self.last = _time(data) or self.last
            self.take_context(record)
            self.take_prompt(record)
            self.talked = self.talked or _is_answer(record)
        elif self.prompt is None and record.get("type") == "message":
            self._take_bare(record)

    def _take_bare(self, message: JsonMap) -> None:
        said = message_parts(message)
        if message.get("role") == "user":
            self.prompt = prompt_text(said) or None
            for part in maps(message.get("content")):
                self.cwd = self.cwd or wrapped_cwd(string(part.get("text")))
        self.talked = self.talked or (bool(said) and string(message.get("role")) in {"user", "assistant"})

    def take_context(self, record: JsonMap) -> bool:
        """Take directory, model and mode of a `turn_context`; False for another record."""
        if record.get("type") == "turn_context":
            context = mapping(record.get("payload"))
            self.cwd = string(context.get("cwd")) or None
            self.model = string(context.get("model")) or None
            self.mode = string(context.get("approval_policy")) or None
            return True
        return False

    def take_prompt(self, record: JsonMap) -> None:
        """Take the text of a prompt, or the goal that stands for one."""
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
    if not _look_at_head(facts, descriptor, end):
        facts = Facts()
        _look_forward(facts, read_lines(descriptor, 0, end), until_prompt=True)
        if facts.bare or facts.prompt is None:
            return facts, end
    facts.last = next((time for data in lines_backward(descriptor, 0, end) if (time := _time(data))), None)
    for data in marked_lines_backward(descriptor, _CONTEXT, 0, end):
        if facts.take_context(_record(data)):
            break
    return facts, end


def more_facts(facts: Facts, descriptor: int, start: int, size: int) -> int:
    """Look at what was appended; the outcome is the same as that of `facts_of`."""
    return _look_forward(facts, read_lines(descriptor, start, size)) or start


def _look_at_head(facts: Facts, descriptor: int, end: int) -> bool:
    """Look for the first record and the first prompt in a growing piece of the file.

    Returns:
        Whether that is enough; the format without envelopes, and files without prompts, are read line by line.
    """
    size = _HEAD
    while facts.prompt is None:
        data = read_at(descriptor, 0, min(size, end))
        first = data.find(b"\n") + 1
        if not facts.headed and first:
            facts.look_closely(data[:first])
        if facts.bare:
            return False
        if facts.headed:
            _look_for_prompt(facts, data, first)
        if size >= min(end, _LARGEST_HEAD):
            break
        size *= 4
    return facts.prompt is not None


def _look_for_prompt(facts: Facts, data: bytes, position: int) -> None:
    while facts.prompt is None and (found := _first_mark(data, position)) >= 0:
        start, position = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found) + 1
        if position == 0:  # the line goes on behind this piece
            return
        facts.take_prompt(_record(data[start:position]))


def _first_mark(data: bytes, start: int) -> int:
    first = -1
    for mark in _PROMPTS:
        found = data.find(mark, start, first if first >= 0 else len(data))
        first = found if found >= 0 else first
    return first


def _look_forward(facts: Facts, lines: Iterable[Line], *, until_prompt: bool = False) -> int:
    offset = 0
    for line in lines:
        if not line.pending:
            offset = line.end
            if line.data is not None:
                facts.look(line.data)
        if until_prompt and facts.prompt is not None:
            break
    return offset


def _time(data: bytes) -> str | None:
    """The time of a record that counts as activity."""
    if _SETTINGS in data:
        return None
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
    return event.get("type") == "agent_message" or string(mapping(event.get("item")).get("type")) in {
        "AgentMessage",
        "Plan",
    }
