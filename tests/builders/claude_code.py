"""Transcripts of Claude Code, line by line: every line hangs on the one before unless a test says otherwise."""

import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import Inspection, Known, SessionRecord, Store, Transcript, Unit
from acp_history_bridge.turns import Image, Notice, Part, Plan, Text, Thought, ToolCall, Turn
from tests.conftest import environment_at

__all__ = [
    "CWD",
    "SESSION",
    "START",
    "ClaudeLines",
    "calls_of",
    "inspect_at",
    "open_at",
    "record_at",
    "said_in",
    "save_data",
    "store_at",
    "turns_at",
    "unit_at",
]

SESSION = "11111111-2222-4333-8444-555555555555"
CWD = "/home/ada/src/shop"
SLUG = "-home-ada-src-shop"
START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)

Json = Mapping[str, object]


class ClaudeLines:
    """The lines of one transcript; each method adds one and returns its uuid."""

    def __init__(self, *, session: str = SESSION, cwd: str = CWD, version: str = "2.1.328") -> None:
        self.records: list[dict[str, object]] = []
        self.last: str | None = None
        self._envelope: dict[str, object] = {"sessionId": session, "cwd": cwd, "version": version, "gitBranch": "main"}
        self._count = 0

    def add(self, kind: str, **fields: object) -> str:
        """Add a message line; `parent` says what it hangs on: not the line before, or None for a root."""
        self._count += 1
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._envelope['sessionId']} {self._count}"))
        time = (START + timedelta(seconds=self._count)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {
            "parentUuid": fields.pop("parent", self.last),
            "isSidechain": False,
            "type": kind,
            "uuid": name,
            "timestamp": time,
            **self._envelope,
            **fields,
        }
        self.records.append(record)
        self.last = str(record["uuid"])
        return self.last

    def prompt(self, content: object, **fields: object) -> str:
        """Add what the user said."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answer(self, *content: Json | str, **fields: object) -> str:
        """Add what the agent said: texts, or whole blocks; lines with one `group` are one message."""
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
        group, model = fields.pop("group", f"msg_{self._count + 1}"), fields.pop("model", "claude-opus-5")
        body = {"id": group, "role": "assistant", "model": model, "content": blocks}
        return self.add("assistant", message=body, **fields)

    def call(self, name: str, arguments: Json, call: str = "toolu_1", **fields: object) -> str:
        """Add a line with one tool call."""
        return self.answer({"type": "tool_use", "id": call, "name": name, "input": arguments}, **fields)

    def result(self, content: object, call: str = "toolu_1", *, error: bool = False, **fields: object) -> str:
        """Add a line with one tool result."""
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": error}
        return self.add("user", message={"role": "user", "content": [block]}, **fields)

    def metadata(self, kind: str, **fields: object) -> None:
        """Add a line that is no message."""
        self.records.append({"type": kind, **fields, "sessionId": self._envelope["sessionId"]})

    def compaction(self, summary: str = "This session is being continued from a previous conversation: short.") -> str:
        """Add a boundary and the summary that stands in for what was before."""
        old = self.last
        boundary = self.add("system", parent=None, subtype="compact_boundary", logicalParentUuid=old)
        self.prompt(summary, isCompactSummary=True)
        return boundary

    def data(self) -> bytes:
        """The file's bytes."""
        return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in self.records)

    def save(self, home: Path, *, slug: str = SLUG, session: str = SESSION) -> Path:
        """Write the file where the tool would."""
        return save_data(home, self.data(), slug=slug, session=session)


def save_data(home: Path, data: bytes, *, slug: str = SLUG, session: str = SESSION) -> Path:
    """Write any bytes as a transcript."""
    path = home / ".claude" / "projects" / slug / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    modified = (START + timedelta(days=1)).timestamp()
    os.utime(path, (modified, modified))
    return path


def store_at(home: Path) -> Store:
    """The first store of a home."""
    return next(iter(ClaudeCode().stores(environment_at(home))))


def unit_at(path: Path) -> Unit:
    """The unit of a transcript."""
    store = Store("claude-code", path.parent.parent)
    unit = ClaudeCode().unit(store, path)
    assert unit is not None
    return unit


def inspect_at(path: Path, known: Inspection | None = None) -> Inspection:
    """Inspect a transcript, anew or with what an earlier inspection left."""
    before = Known(known.offset, known.state, known.records) if known else None
    return ClaudeCode().inspect(unit_at(path), before)


def record_at(path: Path) -> SessionRecord:
    """The one session of a transcript."""
    (record,) = inspect_at(path).records
    return record


def open_at(path: Path) -> Transcript:
    """Open a transcript."""
    return ClaudeCode().open(unit_at(path), record_at(path))


def turns_at(path: Path) -> list[Turn]:
    """All turns of a transcript."""
    transcript = open_at(path)
    try:
        return list(transcript.turns())
    finally:
        transcript.close()


def said_in(turns: list[Turn]) -> list[str]:
    """What was said, one short line per part: `user: Hello`."""
    return [f"{turn.role}: {_shown(part)}" for turn in turns for part in turn.parts]


def _shown(part: Part) -> str:
    match part:
        case Text() | Thought() | Notice():
            return f"{'' if isinstance(part, Text) else f'[{type(part).__name__.lower()}] '}{part.text}"
        case ToolCall():
            return f"{{{part.title}}}"
        case Plan():
            return " ".join(f"({entry.status}) {entry.content}" for entry in part.entries)
        case Image():
            return f"<{part.mime_type}>"
        case _:
            return f"[{type(part).__name__.lower()}]"


def calls_of(turns: list[Turn]) -> list[ToolCall]:
    """All tool calls."""
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]
