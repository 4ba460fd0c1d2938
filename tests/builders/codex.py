"""Rollouts of Codex CLI, record by record, in its three line formats.

`Paginated`, `Legacy` and `Bare` collect records and write them as a rollout below a Codex home. Times run one second
per record from `START`. Methods return the rollout, so that a conversation reads as one expression::

    Paginated().user("Hello").agent("Hi").write(home)
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Self, cast

from acp_history_adapters.codex import Codex
from acp_history_bridge.adapter import Environment, Inspection, SessionRecord, Store, Transcript, Unit
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import Text, ToolCall, Turn

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "CWD",
    "START",
    "THREAD",
    "Bare",
    "Legacy",
    "Paginated",
    "Rollout",
    "calls",
    "compress",
    "inspect",
    "open_only",
    "replay",
    "said",
    "store_at",
    "thread_id",
    "unit_at",
]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CWD = "/home/mia/src/shop"


def thread_id(number: int = 1) -> str:
    """A UUIDv7 of the day on which all rollouts here are made."""
    return (
        f"{int(START.timestamp() * 1000):012x}"[:8]
        + f"-{int(START.timestamp() * 1000) & 0xFFFF:04x}-7000-8000-{number:012x}"
    )


THREAD = thread_id()


def compress(data: bytes) -> bytes:
    """What Codex makes of a rollout that was not touched for a week."""
    return zstd.compress(data)


class Rollout:
    """Records of one rollout file."""

    suffix: ClassVar[str] = ".jsonl"

    def __init__(self, thread: str = THREAD, *, rollout: str | None = None, minute: int = 0) -> None:
        self.thread = thread
        self.rollout = rollout
        self.start = START + timedelta(minutes=minute)
        self.records: list[object] = []

    def raw(self, record: object) -> Self:
        """Add a record as it is."""
        self.records.append(record)
        return self

    def time(self) -> str:
        """The time of the next record."""
        return format_time(self.start + timedelta(seconds=len(self.records)))

    @property
    def data(self) -> bytes:
        """The file."""
        return b"".join(self.lines)

    @property
    def lines(self) -> list[bytes]:
        """The lines of the file, each with its newline."""
        return [
            record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False).encode() + b"\n"
            for record in self.records
        ]

    def name(self) -> str:
        """The file's name."""
        own = f"_{self.rollout}" if self.rollout else ""
        return f"rollout-{self.start:%Y-%m-%dT%H-%M-%S}-{self.thread}{own}{self.suffix}"

    def path(self, home: Path, *, archived: bool = False) -> Path:
        """Where the file belongs."""
        below = "archived_sessions" if archived else f"sessions/{self.start:%Y/%m/%d}"
        return home / ".codex" / below / self.name()

    def write(self, home: Path, *, archived: bool = False) -> Path:
        """Write the file below a home; it was last changed an hour after it was made."""
        path = self.path(home, archived=archived)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        changed = (self.start + timedelta(hours=1)).timestamp()
        os.utime(path, (changed, changed))
        return path


class _Envelope(Rollout):
    """Rollouts whose records have an envelope."""

    mode: ClassVar[str] = "legacy"

    def __init__(
        self, thread: str = THREAD, *, rollout: str | None = None, minute: int = 0, ordinal: int = 0, **meta: object
    ) -> None:
        super().__init__(thread, rollout=rollout, minute=minute)
        self.first_ordinal = ordinal
        known = {"id": thread, "timestamp": self.time(), "cwd": CWD, "cli_version": "0.169.0", "source": "cli"}
        known["history_mode"] = self.mode
        self.record("session_meta", {**known, **meta})

    def record(self, kind: str, payload: object) -> Self:
        """Add a record."""
        return self.raw({"timestamp": self.time(), "type": kind, "payload": payload})

    def event(self, kind: str, **fields: object) -> Self:
        """Add an event."""
        return self.record("event_msg", {"type": kind, **fields})

    def response(self, kind: str, **fields: object) -> Self:
        """Add a response item."""
        return self.record("response_item", {"type": kind, **fields})

    def context(self, cwd: str = CWD, model: str = "gpt-5.5", approval: str = "on-request") -> Self:
        """Add a turn context."""
        return self.record("turn_context", {"cwd": cwd, "model": model, "approval_policy": approval})

    def call(self, identifier: str, name: str, arguments: object, **fields: object) -> Self:
        """Add a function call."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return self.response("function_call", name=name, arguments=text, call_id=identifier, **fields)

    def output(self, identifier: str, output: object) -> Self:
        """Add the output of a call."""
        return self.response("function_call_output", call_id=identifier, output=output)


class Legacy(_Envelope):
    """An envelope rollout whose messages are events."""

    def user(self, text: str, **fields: object) -> Self:
        """Add a prompt."""
        return self.event("user_message", message=text, **fields)

    def agent(self, text: str) -> Self:
        """Add an answer."""
        return self.event("agent_message", message=text)


class Paginated(_Envelope):
    """An envelope rollout whose messages are items; every record has an ordinal."""

    mode = "paginated"

    def raw(self, record: object) -> Self:
        """Add a record with the next ordinal."""
        if isinstance(record, dict):
            record = {**cast("dict[str, object]", record), "ordinal": self.ordinal}
        return super().raw(record)

    @property
    def ordinal(self) -> int:
        """The ordinal of the next record."""
        return self.first_ordinal + len(self.records)

    def item(self, kind: str, **fields: object) -> Self:
        """Add an item."""
        item = {"type": kind, "id": f"item-{self.ordinal}", **fields}
        return self.event("item_completed", thread_id=self.thread, turn_id="turn", item=item)

    def user(self, text: str, *more: object) -> Self:
        """Add a prompt."""
        return self.item("UserMessage", content=[{"type": "text", "text": text}, *more])

    def agent(self, text: str) -> Self:
        """Add an answer."""
        return self.item("AgentMessage", content=[{"type": "Text", "text": text}])


class Bare(Rollout):
    """A rollout of 2025: response items without an envelope."""

    def __init__(self, thread: str = THREAD) -> None:
        super().__init__(thread)
        self.raw({"id": thread, "timestamp": self.time(), "instructions": None})

    def message(self, role: str, text: str) -> Self:
        """Add a message."""
        kind = "output_text" if role == "assistant" else "input_text"
        return self.raw({"type": "message", "id": None, "role": role, "content": [{"type": kind, "text": text}]})


def store_at(home: Path) -> Store:
    """The store of a home."""
    (store,) = Codex().stores(Environment(home))
    return store


def unit_at(home: Path, path: Path) -> Unit:
    """The unit of a rollout."""
    unit = Codex().unit(store_at(home), path)
    assert unit is not None
    return unit


def inspect(home: Path, path: Path) -> Inspection:
    """Look at a rollout."""
    return Codex().inspect(unit_at(home, path))


def open_only(home: Path, path: Path) -> Transcript:
    """Open a rollout, whatever its record says."""
    return Codex().open(unit_at(home, path), SessionRecord(THREAD, START))


def replay(home: Path, path: Path) -> list[Turn]:
    """All turns of a rollout."""
    transcript = open_only(home, path)
    try:
        return list(transcript.turns())
    finally:
        transcript.close()


def said(turns: list[Turn]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(turn.role, part.text) for turn in turns for part in turn.parts if isinstance(part, Text)]


def calls(turns: list[Turn]) -> list[ToolCall]:
    """The tool calls."""
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]
