"""Transcripts of Gemini CLI in both forms, built record by record.

Times run one second per record from `START`. A conversation reads as one expression::

    Chat().user("Hello").agent("Hi").write(home)
"""

import hashlib
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_bridge.adapter import Environment, Inspection, SessionRecord, Store, Transcript, Unit
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import Part, Text, ToolCall, Turn

__all__ = [
    "ACKNOWLEDGEMENT",
    "CONTEXT",
    "CWD",
    "SESSION",
    "SNAPSHOT",
    "START",
    "Chat",
    "best",
    "call",
    "calls",
    "inspect",
    "log_entry",
    "mark",
    "message",
    "opened",
    "parts_in",
    "path_hash",
    "record_of",
    "replay",
    "response",
    "said",
    "store_at",
    "unit_at",
    "write_log",
]

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
SESSION = "89515a8d-8d0e-4c54-b29a-30dcbb49a232"
CWD = "/home/ada/src/shop"
SNAPSHOT = "<state_snapshot>\nWe greeted.\n</state_snapshot>"
ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"
CONTEXT = "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n</session_context>"


def path_hash(directory: str = CWD) -> str:
    """What the tool stores of a project's directory."""
    return hashlib.sha256(directory.encode()).hexdigest()


def message(identifier: str, kind: str, content: object, **fields: object) -> dict[str, object]:
    """A message record without a time."""
    return {"id": identifier, "type": kind, "content": content, **fields}


def response(identifier: str, name: str, output: object = None, error: object = None) -> dict[str, object]:
    """A part that holds the result of a call."""
    outcome = {"output": output} if error is None else {"error": error}
    return {"functionResponse": {"id": identifier, "name": name, "response": outcome}}


def call(
    name: str, args: object = None, output: object = "", *, identifier: str = "call-1", **fields: object
) -> dict[str, object]:
    """A finished entry of `toolCalls`."""
    result = [response(identifier, name, output)]
    return {"id": identifier, "name": name, "args": args, "result": result, "status": "success", **fields}


class Chat:
    """The lines of one transcript."""

    def __init__(self, session: str = SESSION, *, cwd: str = CWD, header: bool = True, **fields: object) -> None:
        self.session = session
        self.cwd = cwd
        self.records: list[bytes | Mapping[str, object]] = []
        if header:
            known = {"sessionId": session, "projectHash": path_hash(cwd), "startTime": self.time()}
            self.raw({**known, "lastUpdated": self.time(), "kind": "main", **fields})

    def time(self) -> str:
        """The time of the next record."""
        return format_time(START + timedelta(seconds=len(self.records)))

    def raw(self, record: bytes | Mapping[str, object]) -> Self:
        """Add a record as it is; bytes are a line of their own."""
        self.records.append(record)
        return self

    def say(self, kind: str, content: object, identifier: str | None = None, **fields: object) -> Self:
        """Add a message."""
        name = identifier or f"m{len(self.records)}"
        return self.raw({"id": name, "timestamp": self.time(), "type": kind, "content": content, **fields})

    def user(self, text: str, identifier: str | None = None, **fields: object) -> Self:
        """Add a prompt."""
        return self.say("user", [{"text": text}], identifier, **fields)

    def parts(self, *parts: object) -> Self:
        """Add a `user` message made of parts."""
        return self.say("user", list(parts))

    def agent(self, text: str, identifier: str | None = None, **fields: object) -> Self:
        """Add an answer."""
        return self.say("gemini", text, identifier, **fields)

    def set(self, **fields: object) -> Self:
        """Add a metadata line."""
        return self.raw({"$set": fields})

    def touch(self) -> Self:
        """Add the line that follows each message."""
        return self.set(lastUpdated=self.time())

    def rebuild(self, *messages: object) -> Self:
        """Add a line that replaces the message list."""
        return self.set(messages=list(messages), lastUpdated=self.time())

    def rewind(self, identifier: str) -> Self:
        """Add a rewind."""
        return self.raw({"$rewindTo": identifier})

    @property
    def lines(self) -> list[bytes]:
        """The lines of the file, each with its newline."""
        return [record if isinstance(record, bytes) else _compact(record) + b"\n" for record in self.records]

    @property
    def data(self) -> bytes:
        """The file in the JSON Lines form."""
        return b"".join(self.lines)

    def document(self, **fields: object) -> bytes:
        """The file in the form of a single document."""
        known = {"sessionId": self.session, "projectHash": path_hash(self.cwd), "startTime": format_time(START)}
        messages = [record for record in self.records if not isinstance(record, bytes) and "id" in record]
        whole = {**known, "lastUpdated": self.time(), "messages": messages, **fields}
        return json.dumps(whole, indent=2, ensure_ascii=False).encode()

    def path(self, home: Path, project: str = "shop", suffix: str = ".jsonl", minute: str = "2026-11-02T09-00") -> Path:
        """Where the file belongs."""
        return home / ".gemini" / "tmp" / project / "chats" / f"session-{minute}-{self.session[:8]}{suffix}"

    def write(self, home: Path, project: str = "shop", *, minute: str = "2026-11-02T09-00") -> Path:
        """Write the lines, and the project's marker."""
        return self._write(home, self.path(home, project, minute=minute), self.data)

    def write_document(self, home: Path, project: str = "shop", **fields: object) -> Path:
        """Write the document, and the project's marker."""
        return self._write(home, self.path(home, project, ".json"), self.document(**fields))

    def _write(self, home: Path, path: Path, data: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(path.parent.parent.name) < len(path_hash()):
            mark(home, path.parent.parent.name, self.cwd)
        path.write_bytes(data)
        later = (START + timedelta(days=1)).timestamp()
        os.utime(path, (later, later))
        return path


def _compact(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def mark(home: Path, project: str, directory: str) -> Path:
    """Write the marker of a project folder."""
    path = home / ".gemini" / "tmp" / project / ".project_root"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(directory, encoding="utf-8")
    return path


def log_entry(text: str, number: int = 0, session: str = SESSION) -> dict[str, object]:
    """One entry of a prompt log."""
    time = format_time(START + timedelta(minutes=number))
    return {"sessionId": session, "messageId": number, "type": "user", "message": text, "timestamp": time}


def write_log(home: Path, entries: Sequence[object], project: str = "shop") -> Path:
    """Write a prompt log."""
    path = home / ".gemini" / "tmp" / project / "logs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=2), encoding="utf-8")
    return path


def store_at(home: Path) -> Store:
    """The store of a home."""
    (store,) = GeminiCli().stores(Environment(home))
    return store


def unit_at(home: Path, path: Path) -> Unit:
    """The unit of a file."""
    unit = GeminiCli().unit(store_at(home), path)
    assert unit is not None
    return unit


def inspect(home: Path, path: Path) -> Inspection:
    """Look at a file."""
    return GeminiCli().inspect(unit_at(home, path))


def record_of(home: Path, path: Path) -> SessionRecord:
    """The only session of a file."""
    (record,) = inspect(home, path).records
    return record


def best(home: Path) -> dict[str, tuple[Unit, SessionRecord]]:
    """All listed sessions of a home by native id, each by its best copy, as the contract defines it."""
    adapter = GeminiCli()
    copies: dict[tuple[str, str], list[tuple[Unit, SessionRecord]]] = {}
    for unit in adapter.discover(store_at(home)).units:
        for record in adapter.inspect(unit).records:
            copies.setdefault((record.native_id, record.origin), []).append((unit, record))
    chosen = [max(group, key=lambda copy: _merit(copy[1])) for group in copies.values()]
    return {record.native_id: (unit, record) for unit, record in chosen if record.listed}


def _merit(record: SessionRecord) -> tuple[bool, datetime, int]:
    return record.listed, record.updated_at, record.rank


@contextmanager
def opened(home: Path, path: Path) -> Generator[Transcript]:
    """An open transcript of a file, whatever its record says."""
    transcript = GeminiCli().open(unit_at(home, path), SessionRecord(SESSION, START, cwd=CWD))
    try:
        yield transcript
    finally:
        transcript.close()


def replay(home: Path, path: Path) -> list[Turn]:
    """All turns of a file."""
    with opened(home, path) as transcript:
        return list(transcript.turns())


def parts_in(turns: Sequence[Turn]) -> list[Part]:
    """All parts of all turns."""
    return [part for turn in turns for part in turn.parts]


def said(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(turn.role, part.text) for turn in turns for part in turn.parts if isinstance(part, Text)]


def calls(turns: Sequence[Turn]) -> list[ToolCall]:
    """The tool calls."""
    return [part for part in parts_in(turns) if isinstance(part, ToolCall)]
