"""What a list shows of a transcript, found in its first and last lines.

Policy: the title is the last name that the user gave the session, as far as the first or last 64 KiB hold it (the tool
looks no further); else the first prompt; else the goal or the command the session began with, where the tool shows
"(session)". Reading goes on until a prompt is found. As few lines as possible are decoded. What the head says never
changes while a file grows, so it is kept as the inspection's state.
"""

import os
import re
from dataclasses import dataclass, fields

from acp_history_adapters.qwen_code.places import is_archived, lies_at_home, project_of
from acp_history_adapters.qwen_code.records import Kind, classify, prompt_text
from acp_history_bridge.adapter import Inspection, Known, SessionRecord, Unit
from acp_history_bridge.files import open_regular
from acp_history_bridge.jsonl import WINDOW, decode, lines_backward, read_at, read_lines
from acp_history_bridge.timestamps import from_ns, parse_time
from acp_history_bridge.values import JsonMap, boolean, integer, mapping, string

__all__ = ["LINES_RANK", "inspect_lines"]

LINES_RANK = 1

_TITLE_LIMIT = 1000  # enough for the core to make one line of it
_START = 2048  # the fields before the content
_TITLE = b"custom_title"
_NAMED = re.compile(rb'"subtype"\s*:\s*"custom_title"')
_PROMPT = re.compile(rb'"type"\s*:\s*"user"')
_BEGINNING = re.compile(rb'"type"\s*:\s*"user"|"subtype"\s*:\s*"(?:goal_state|slash_command)"')
_SAID = re.compile(rb'"type"\s*:\s*"(?:user|assistant|tool_result)"')


@dataclass(slots=True)
class _Head:
    """What the first lines say; texts are empty while unknown."""

    scanned: int = 0
    closed: bool = False  # the first window is full, so what it says cannot change any more
    begun: bool = False
    cwd: str = ""
    created: str = ""
    parent: str = ""
    prompt: str = ""
    fallback: str = ""
    name: str = ""

    @classmethod
    def of_state(cls, known: Known | None) -> "_Head":
        """What the last inspection found, if it had seen the whole first window."""
        if known is None or not boolean(known.state.get("closed")):
            return cls()
        scanned, begun = integer(known.state.get("scanned")) or 0, boolean(known.state.get("begun"))
        head = cls(scanned, closed=True, begun=begun)
        for field in fields(cls)[3:]:
            setattr(head, field.name, string(known.state.get(field.name)))
        return head

    def state(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)} if self.closed else {}

    def titled(self) -> bool:
        """Whether reading on could tell nothing better."""
        return bool(self.prompt or self.name)

    def take(self, data: bytes) -> None:
        """Look at the next line."""
        if self.begun and not self._wants(data):
            return
        record = _object(data)
        if not record:
            return
        self.begun = True
        self.cwd = self.cwd or string(record.get("cwd"))
        self.created = self.created or string(record.get("timestamp"))
        self.parent = self.parent or string(mapping(record.get("forkedFrom")).get("sessionId"))
        self.name = _name(record) or self.name
        if not self.prompt and classify(record) is Kind.PROMPT:
            self.prompt = prompt_text(record).strip()[:_TITLE_LIMIT]
        self.fallback = self.fallback or _fallback(record)[:_TITLE_LIMIT]

    def _wants(self, data: bytes) -> bool:
        if not self.cwd or _NAMED.search(data, 0, _START):
            return True
        if self.prompt:
            return False
        return (_PROMPT if self.fallback else _BEGINNING).search(data, 0, _START) is not None


@dataclass(slots=True)
class _Tail:
    """What the last lines say; the first finding of each kind is the newest."""

    said: str = ""
    written: str = ""
    model: str = ""
    branch: str = ""
    version: str = ""
    name: str = ""

    def take(self, data: bytes) -> None:
        """Look at the line before the one looked at last."""
        named = not self.name and _NAMED.search(data, 0, _START)
        spoken = not (self.said and self.model) and _SAID.search(data, 0, _START)
        if not named and not spoken and self.written:
            return
        record = _object(data)
        self.written = self.written or _time(record)
        self.branch = self.branch or string(record.get("gitBranch"))
        self.version = self.version or string(record.get("version"))
        self.model = self.model or string(record.get("model"))
        self.name = self.name or _name(record)
        if string(record.get("type")) in {"user", "assistant", "tool_result"}:
            self.said = self.said or _time(record)


def inspect_lines(unit: Unit, known: Known | None) -> Inspection:
    """Find what a list shows of a session, reading as little as possible.

    Raises:
        TranscriptError: The file cannot be opened.
    """
    head = _Head.of_state(known)
    with open_regular(unit.path) as descriptor:
        size = os.fstat(descriptor).st_size
        tail, offset = _read_tail(descriptor, size)
        _read_head(descriptor, size, head, named=bool(tail.name))
    return Inspection((_record(unit, head, tail),), offset=offset, state=head.state())


def _read_tail(descriptor: int, size: int) -> tuple[_Tail, int]:
    tail = _Tail()
    offset: int | None = None
    named = _TITLE in read_at(descriptor, max(0, size - WINDOW), WINDOW)
    for start, data in lines_backward(descriptor, size, lambda: bool(tail.said)):
        if offset is None:
            offset = start  # what follows the last newline: nothing, or a line that is still being written
        elif tail.said and (start < size - WINDOW or (tail.model and (tail.name or not named))):
            break
        if data:
            tail.take(data)
    return tail, offset or 0


def _read_head(descriptor: int, size: int, head: _Head, *, named: bool) -> None:
    if not head.closed:
        head.closed = _read_first_window(descriptor, size, head)
    if not head.closed or head.titled() or named:
        return
    for line in read_lines(descriptor, head.scanned, size):
        if line.data:
            head.take(line.data)
        if not line.pending:
            head.scanned = line.end
        if head.titled():
            return


def _read_first_window(descriptor: int, size: int, head: _Head) -> bool:
    """Look at the first lines; tells whether there are more than the window holds."""
    window = read_at(descriptor, 0, min(WINDOW, size))
    start = 0
    while (end := window.find(b"\n", start)) >= 0:
        head.take(window[start:end])
        start = end + 1
        if head.cwd and head.prompt and window.find(_TITLE, start) < 0:
            start = window.rfind(b"\n") + 1
            break
    if len(window) == size and start < size:
        head.take(window[start:])
    head.scanned = start
    return size > WINDOW


def _record(unit: Unit, head: _Head, tail: _Tail) -> SessionRecord:
    modified = from_ns(unit.fingerprint.mtime_ns)
    slug = project_of(unit.path).name
    return SessionRecord(
        unit.path.stem,
        min(parse_time(tail.said or tail.written) or modified, modified),
        origin=slug,
        displaced=bool(head.cwd) and not lies_at_home(slug, head.cwd),
        rank=LINES_RANK,
        title=tail.name or head.name or head.prompt or head.fallback or None,
        cwd=head.cwd or None,
        created_at=parse_time(head.created) if head.created else None,
        kind="fork" if head.parent else "main",
        listed=head.begun or bool(tail.written),
        parent=head.parent or None,
        archived=is_archived(unit.path),
        branch=tail.branch or None,
        model=tail.model or None,
        tool_version=tail.version or None,
    )


def _object(data: bytes) -> JsonMap:
    try:
        return mapping(decode(data))
    except ValueError:
        return {}


def _time(record: JsonMap) -> str:
    time = string(record.get("timestamp"))
    return time if parse_time(time) else ""


def _name(record: JsonMap) -> str:
    if record.get("subtype") != "custom_title":
        return ""
    return string(mapping(record.get("systemPayload")).get("customTitle")).strip()[:_TITLE_LIMIT]


def _fallback(record: JsonMap) -> str:
    payload = mapping(record.get("systemPayload"))
    goal = mapping(mapping(payload.get("snapshot")).get("goal"))
    return string(goal.get("objective")) or string(payload.get("rawCommand"))
