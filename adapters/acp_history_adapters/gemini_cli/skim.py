"""What a list needs to know of a JSON Lines transcript, from a single look at its lines.

Nearly all lines are messages, and only those up to the first prompt are decoded; of the rest the lines that change
metadata are. The title can stand anywhere (the tool writes it at a later start, and the session may go on after that),
so all bytes are looked at, but once: `state` lets the next look begin where this one ended.

When a rewind or a rebuild of the message list may have removed the first prompt, `unsure` is set: then only the fold
knows.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from acp_history_adapters.gemini_cli.fold import is_header
from acp_history_adapters.gemini_cli.messages import is_command, message_type, read_agent, read_user
from acp_history_adapters.gemini_cli.records import array_of, object_of
from acp_history_bridge.jsonl import CHUNK, LINE_LIMIT, decode, read_at
from acp_history_bridge.values import JsonMap, items, mapping, maps, string

__all__ = ["Facts", "Skim"]

_TITLE_SOURCE = 4000
_MESSAGE = b'{"id":"'
_ANSWER = b'"type":"gemini"'
_TRIVIAL = b'{"$set":{"lastUpdated":"'
_TIMESTAMP = re.compile(rb'"timestamp":\s?"([^"\\]{1,40})"')
_MODEL = re.compile(rb'"model":\s?"([^"\\]{1,100})"')


@dataclass(slots=True)
class Facts:
    """What is known of a session; JSON values only.

    Attributes:
        prompt: The first prompt of the history as it is shown, and
        prompt_id: its message.
        fallback: What to be called by without a prompt: the first dropped prompt, or the first command of the file.
        conversation: Whether the user or the agent said or did anything, dropped or not.
        newest: Timestamp of the last message.
        bad_lines: How many lines are no records.
    """

    session_id: str = ""
    project_hash: str = ""
    created: str = ""
    updated: str = ""
    newest: str = ""
    kind: str = ""
    parent: str = ""
    summary: str = ""
    model: str = ""
    directories: list[str] = field(default_factory=list[str])
    prompt: str = ""
    prompt_id: str = ""
    fallback: str = ""
    conversation: bool = False
    bad_lines: int = 0

    @classmethod
    def restored(cls, state: Mapping[str, object]) -> "Facts":
        """What `state` of an earlier look holds; a value of the wrong type counts as missing."""
        facts = cls()
        for item in fields(cls):
            value = state.get(item.name)
            if type(value) is type(getattr(facts, item.name)):
                setattr(facts, item.name, value)
        return facts

    def state(self) -> dict[str, object]:
        """The values to be restored later."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def metadata(self, record: JsonMap) -> None:
        """Merge what a header, a `$set` or a document says; the last one wins, but for the time of creation."""
        self.session_id = string(record.get("sessionId")) or self.session_id
        self.project_hash = string(record.get("projectHash")) or self.project_hash
        self.created = self.created or string(record.get("startTime"))
        self.updated = string(record.get("lastUpdated")) or self.updated
        self.kind = string(record.get("kind")) or self.kind
        self.parent = self.parent or string(mapping(record.get("forkedFrom")).get("sessionId"))
        self.summary = string(record.get("summary"))[:_TITLE_SOURCE] or self.summary
        if isinstance(record.get("directories"), list):
            self.directories = [name for name in items(record["directories"]) if isinstance(name, str)]

    def message(self, key: str, message: JsonMap) -> None:
        """Take in a message, in order; only until there is a prompt."""
        match message_type(message):
            case "user":
                self._user(key, message)
            case "gemini":
                agent = read_agent(message)
                self.conversation |= bool(agent.parts or agent.calls or message.get("toolCalls"))
            case _:
                pass

    def _user(self, key: str, message: JsonMap) -> None:
        user = read_user(message, None)
        self.conversation |= bool(user.parts)
        text = user.text.strip()[:_TITLE_SOURCE]
        if not text or self.prompt:
            return
        if is_command(text):
            self.fallback = self.fallback or text
        else:
            self.prompt, self.prompt_id = text, key


class Skim:
    """Takes in lines; `facts` says what they tell."""

    def __init__(self, state: Mapping[str, object] | None = None) -> None:
        self.facts = Facts.restored(state or {})
        self.unsure = False
        self._trivial = b""  # the last line that only moves `lastUpdated`

    def read(self, descriptor: int, start: int) -> int:
        """Take in all whole lines from `start` on; the offset behind them."""
        offset = start
        for end, lines in _batches(descriptor, start):
            self._take_all(lines)
            offset = end
        self._settle_time()
        return offset

    def read_rest(self, descriptor: int, offset: int) -> None:
        """Take in a last line that only lacks its newline."""
        rest = read_at(descriptor, offset, LINE_LIMIT + 1)
        if 0 < len(rest) <= LINE_LIMIT and rest.rstrip().endswith(b"}") and b"\n" not in rest:
            bad_lines = self.facts.bad_lines
            self._take(rest)
            self._settle_time()
            self.facts.bad_lines = bad_lines  # it may not be finished after all

    def _take_all(self, lines: list[bytes]) -> None:
        number = 0
        while number < len(lines) and not self.facts.prompt:
            self._take(lines[number])
            number += 1
        rest = lines[number:]
        for line in [line for line in rest if not line.startswith(_MESSAGE)]:
            self._take(line)
        self._keep_last(rest)

    def _keep_last(self, lines: list[bytes]) -> None:
        """Note the time of the last message, and the model of the agent's last one."""
        time = model = None
        for line in reversed(lines):
            if line.startswith(_MESSAGE):
                time = time or _TIMESTAMP.search(line)
                model = model or (_MODEL.search(line) if _ANSWER in line[:200] else None)
                if time and model:
                    break
        self.facts.newest = _text(time) or self.facts.newest
        self.facts.model = _text(model) or self.facts.model

    def _take(self, line: bytes) -> None:
        if line.startswith(_MESSAGE):
            self._keep_last([line])
            if not self.facts.prompt:
                self._decode(line)
        elif line.startswith(_TRIVIAL) and len(line) < 80 and line.endswith(b'"}}'):
            self._trivial = line
        elif line and not line.isspace():
            self._decode(line)

    def _decode(self, line: bytes) -> None:
        try:
            record = object_of(decode(line))
        except ValueError:
            record = None
        if record is not None:
            self._record(record, line)
        elif not line.startswith(_MESSAGE):  # a damaged message is noticed when it is replayed
            self.facts.bad_lines += 1

    def _record(self, record: JsonMap, line: bytes) -> None:
        if isinstance(record.get("$rewindTo"), str):
            self.unsure = True
        elif isinstance(key := record.get("id"), str):
            self.facts.newest = string(record.get("timestamp")) or self.facts.newest
            self.facts.message(key, record)
        elif isinstance(record.get("$set"), dict):
            self._settle_time()
            self.facts.metadata(mapping(record["$set"]))
            self._messages(record, line)
        elif is_header(record):
            self._settle_time()
            self.facts.metadata(record)
            self._messages(record, line)
        else:
            self.facts.bad_lines += 1

    def _messages(self, record: JsonMap, line: bytes) -> None:
        messages = array_of(record)
        if not messages:
            self.unsure |= messages is not None and bool(self.facts.prompt) and "$set" in record
            return
        if "$set" not in record:
            self.facts.newest = self.facts.newest or string(mapping(messages[-1]).get("timestamp"))
        if not self.facts.prompt:
            for message in maps(messages):
                self.facts.message(string(message.get("id")), message)
        elif "$set" in record:
            self.unsure |= b'"id":"%b"' % self.facts.prompt_id.encode(errors="replace") not in line

    def _settle_time(self) -> None:
        if self._trivial:
            time = self._trivial[len(_TRIVIAL) : -3]
            self.facts.updated = time.decode("utf-8", errors="replace") or self.facts.updated
            self._trivial = b""


def _text(found: re.Match[bytes] | None) -> str:
    return found[1].decode("utf-8", errors="replace") if found else ""


def _batches(descriptor: int, position: int) -> Iterator[tuple[int, list[bytes]]]:
    """Whole lines, many at a time, with the offset behind them; one over the limit is left out."""
    parts: list[bytes] = []  # of the line that is not whole yet, as long as it is within the limit
    size = 0
    while chunk := read_at(descriptor, position, CHUNK):
        position += len(chunk)
        newline = chunk.find(b"\n")
        if newline < 0:
            size += len(chunk)
            parts.append(chunk)
            if size > LINE_LIMIT:
                parts.clear()
            continue
        lines = b"".join((*parts, chunk)).split(b"\n")
        if size + newline > LINE_LIMIT:
            del lines[0]
        rest = lines.pop()
        yield position - len(rest), lines
        parts, size = [rest], len(rest)
