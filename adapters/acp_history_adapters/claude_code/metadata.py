"""What a list shows of a session, found in the first and last lines of its transcript.

Policy: the tool's own picker names a session by what stands in the first and last 64 KiB, and so do we; where those do
not hold a message, a directory or a title, reading goes on until they are found. As few lines as possible are decoded:
what a line is shows in its first bytes. What the head says never changes while a file grows, so it is kept as the
inspection's state and only the tail is read again.

Not listed: files without any message of the main conversation, unless the user gave them a name.
"""

import os
import re
from dataclasses import dataclass, fields

from acp_history_bridge.adapter import Inspection, Known, Problem, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular, read_small
from acp_history_bridge.jsonl import WINDOW, decode, lines_backward, read_at, read_lines
from acp_history_bridge.timestamps import from_ns, parse_time
from acp_history_bridge.values import JsonMap, integer, items, mapping, string

from .paths import TITLE_FILE, lies_at_home, session_directory
from .prompts import title_of

__all__ = ["inspect"]

_TITLE_LIMIT = 1000  # enough for the core to make one line of it
_SIDE_FILE_LIMIT = 64 * 1024
_SMALL = 4096
_DIRECTORIES = b'"additionalWorkingDirectories":["'
_ARCHIVED = "[archived] "

_MESSAGE_START = b'{"parentUuid"'
_MESSAGES = frozenset({"message", "user", "assistant"})
_TYPE_FIRST = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]{1,60})"')
_NOT_SAID = re.compile(rb'"isSidechain"\s*:\s*true|"attachment"\s*:\s*\{')
_ASSISTANT = re.compile(rb'"role"\s*:\s*"assistant"')
# Only these are decoded while a prompt is looked for; an escaped quote inside a text cannot look like them.
_NO_PROMPT = re.compile(rb'"role"\s*:\s*"assistant"|"attachment"\s*:\s*\{|"tool_result"')
_FLAGS_WITHIN = 700

# The last record of each kind counts; in which field its value is.
_TAIL_FIELDS = {
    "custom-title": ("custom_title", "customTitle"),
    "ai-title": ("ai_title", "aiTitle"),
    "last-prompt": ("last_prompt", "lastPrompt"),
    "summary": ("summary", "summary"),
    "permission-mode": ("mode", "permissionMode"),
    "relocated": ("relocated", "relocatedCwd"),
    "continued-in": ("continued_in", "continuedInSessionId"),
}
_HEAD_FIELDS = {"custom-title": ("custom_title", "customTitle"), "ai-title": ("ai_title", "aiTitle")}


@dataclass(slots=True)
class _Head:
    """What the first lines say; texts are empty while unknown."""

    scanned: int = 0
    closed: bool = False  # the first window is full, so its titles cannot change any more
    cwd: str = ""
    created: str = ""
    parent: str = ""
    entrypoint: str = ""
    prompt: str = ""
    command: str = ""
    attachment: str = ""
    custom_title: str = ""
    ai_title: str = ""
    directories: str = ""  # one per line

    @classmethod
    def of_state(cls, known: Known | None) -> "_Head":
        """What the last inspection found, if it had seen the whole first window."""
        if known is None or known.state.get("closed") is not True:
            return cls()
        head = cls(scanned=integer(known.state.get("scanned")) or 0, closed=True)
        for field in fields(cls)[2:]:
            setattr(head, field.name, string(known.state.get(field.name)))
        return head

    def state(self) -> dict[str, object]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    def complete(self, *, prompt_wanted: bool) -> bool:
        """Whether reading on could not tell anything that is needed."""
        return bool(self.cwd and self.created and (self.prompt or not prompt_wanted))

    def take(self, data: bytes) -> None:
        """Look at the next line."""
        kind = _kind(data)
        if kind in _HEAD_FIELDS and not self.closed:
            name, field = _HEAD_FIELDS[kind]
            setattr(self, name, string(_object(data).get(field))[:_TITLE_LIMIT] or getattr(self, name))
        elif (not kind or kind in _MESSAGES) and self._wants(data):
            self._take_message(_object(data))

    def take_directories(self, data: bytes) -> None:
        """Look at the line that lists further directories."""
        snapshot = mapping(mapping(_object(data).get("attachment")).get("snapshot"))
        found = [path for path in items(snapshot.get("additionalWorkingDirectories")) if isinstance(path, str)]
        self.directories = "\n".join(found)

    def _wants(self, data: bytes) -> bool:
        if not self.cwd or not self.created:
            return True
        return not self.prompt and not _NO_PROMPT.search(data, 0, _FLAGS_WITHIN)

    def _take_message(self, record: JsonMap) -> None:
        if record.get("isSidechain") is True:
            return
        self.cwd = self.cwd or string(record.get("cwd"))
        self.created = self.created or string(record.get("timestamp"))
        self.entrypoint = self.entrypoint or string(record.get("entrypoint"))
        self.parent = self.parent or string(mapping(record.get("forkedFrom")).get("sessionId"))
        if record.get("type") == "user":
            kind, text = title_of(record)
            if kind and not getattr(self, kind):
                setattr(self, kind, text[:_TITLE_LIMIT])


@dataclass(slots=True)
class _Tail:
    """What the last lines say; the first finding of each kind is the newest."""

    updated: str = ""
    conversation: bool = False
    model: str = ""
    branch: str = ""
    version: str = ""
    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    mode: str | None = None
    relocated: str | None = None
    continued_in: str | None = None

    def take(self, data: bytes) -> None:
        """Look at the line before the one looked at last."""
        kind = _kind(data)
        if kind in _MESSAGES:
            if not (self.updated and self.model) and self._wants(data):
                self._take_message(_object(data))
        elif kind in _TAIL_FIELDS:
            self._take_metadata(kind, data)
        elif not kind and (len(data) < _SMALL or not self.conversation):
            record = _object(data)
            if (other := string(record.get("type"))) in _TAIL_FIELDS:
                self._take_metadata(other, data)
            else:
                self._take_message(record)

    def _take_metadata(self, kind: str, data: bytes) -> None:
        name, field = _TAIL_FIELDS[kind]
        if getattr(self, name) is None and (value := _object(data).get(field)) is not None:
            setattr(self, name, string(value)[:_TITLE_LIMIT])

    def _wants(self, data: bytes) -> bool:
        if _NOT_SAID.search(data, 0, _FLAGS_WITHIN):
            return False
        return not self.updated or (not self.model and _ASSISTANT.search(data, 0, _FLAGS_WITHIN) is not None)

    def _take_message(self, record: JsonMap) -> None:
        message = mapping(record.get("message"))
        if string(record.get("type")) not in {"user", "assistant"} or not message:
            return
        if record.get("isSidechain") is True or record.get("isMeta") is True:
            return
        self.conversation = True
        self.branch = self.branch or string(record.get("gitBranch"))
        self.version = self.version or string(record.get("version"))
        if not self.updated and parse_time(record.get("timestamp")):
            self.updated = string(record.get("timestamp"))
        if self.mode is None:
            self.mode = string(record.get("permissionMode")) or None
        model = string(message.get("model"))
        if not self.model and model != "<synthetic>":
            self.model = model


def _kind(data: bytes) -> str:
    """The type of a line by its first bytes; empty where those do not tell."""
    if data.startswith(_MESSAGE_START):
        return "message"
    match = _TYPE_FIRST.match(data)
    return match[1].decode("ascii", "replace") if match else ""


def _object(data: bytes) -> JsonMap:
    try:
        return mapping(decode(data))
    except ValueError:
        return {}


def inspect(unit: Unit, known: Known | None) -> Inspection:
    """Find what a list shows of the session, reading as little as possible."""
    try:
        with open_regular(unit.path) as descriptor:
            return _inspect(unit, descriptor, known)
    except (TranscriptError, OSError) as error:
        return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)


def _inspect(unit: Unit, descriptor: int, known: Known | None) -> Inspection:
    size = os.fstat(descriptor).st_size
    tail, offset = _read_tail(descriptor, size)
    head = _Head.of_state(known)
    side_title = _side_title(unit) if unit.fingerprint.beside else ""
    titled = bool(tail.custom_title or side_title or tail.ai_title or tail.last_prompt or tail.summary)
    _read_head(descriptor, size, head, titled=titled)
    record = _record(unit, head, tail, side_title)
    return Inspection((record,), offset=offset, state=head.state())


def _read_tail(descriptor: int, size: int) -> tuple[_Tail, int]:
    tail = _Tail()
    offset: int | None = None
    for start, data in lines_backward(descriptor, size, lambda: tail.conversation):
        if start < size - WINDOW and tail.conversation:
            break
        if offset is None:
            offset = start  # what follows the last newline: nothing, or a line that is still being written
        if data:
            tail.take(data)
    return tail, offset or 0


def _read_head(descriptor: int, size: int, head: _Head, *, titled: bool) -> None:
    if not head.closed:
        _read_first_window(descriptor, size, head)
    titled = titled or bool(head.custom_title or head.ai_title)
    if not head.closed or head.complete(prompt_wanted=not titled):
        return
    for line in read_lines(descriptor, head.scanned, size):
        if line.data:
            head.take(line.data)
        if not line.pending:
            head.scanned = line.end
        if head.complete(prompt_wanted=not titled):
            return


def _read_first_window(descriptor: int, size: int, head: _Head) -> None:
    window = read_at(descriptor, 0, min(WINDOW, size))
    start = 0
    while (end := window.find(b"\n", start)) >= 0:
        # Once all is found, only titles are of interest, and they are no messages.
        if not head.complete(prompt_wanted=True) or not window.startswith(_MESSAGE_START, start):
            head.take(window[start:end])
        start = end + 1
    if len(window) == size and start < size:
        head.take(window[start:])
    if (listed := window.rfind(_DIRECTORIES)) >= 0:
        end = window.find(b"\n", listed)
        head.take_directories(window[window.rfind(b"\n", 0, listed) + 1 : end if end >= 0 else None])
    head.scanned = start
    head.closed = size > WINDOW


def _side_title(unit: Unit) -> str:
    data = read_small(session_directory(unit.path) / TITLE_FILE, _SIDE_FILE_LIMIT)
    return string(_object(data).get("customTitle"))[:_TITLE_LIMIT] if data else ""


def _record(unit: Unit, head: _Head, tail: _Tail, side_title: str) -> SessionRecord:
    # An empty title in the tail was set to take the one before it away.
    custom = tail.custom_title or side_title or (head.custom_title if tail.custom_title is None else "")
    title = custom or tail.ai_title or head.ai_title or tail.last_prompt or tail.summary
    title = title or head.prompt or head.command or head.attachment
    modified = from_ns(unit.fingerprint.mtime_ns)
    updated = parse_time(tail.updated) if tail.updated else None
    slug = unit.path.parent.name
    return SessionRecord(
        native_id=unit.path.stem,
        updated_at=min(updated, modified) if updated else modified,
        origin=slug,
        displaced=not lies_at_home(slug, head.cwd or None),
        title=title or None,
        cwd=tail.relocated or head.cwd or None,
        additional_directories=tuple(head.directories.splitlines()),
        created_at=parse_time(head.created) if head.created else None,
        kind="fork" if head.parent else "main",
        listed=tail.conversation or bool(custom),
        parent=head.parent or None,
        archived=title.startswith(_ARCHIVED),
        headless=head.entrypoint.startswith("sdk-"),
        branch=tail.branch or None,
        model=tail.model or None,
        mode=tail.mode,
        tool_version=tail.version or None,
        continued_in=tail.continued_in or None,
    )
