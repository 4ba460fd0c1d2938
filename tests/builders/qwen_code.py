"""Builders of Qwen Code transcripts."""

import json
from collections.abc import Mapping
from pathlib import Path

from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Unit
from acp_history_bridge.turns import Turn
from tests.conftest import environment_at

SESSION = "0b10a6e2-1111-4222-8333-444455556666"
CWD = "/home/me/shop"
SLUG = "-home-me-shop"

Json = Mapping[str, object]


def text(value: str, **fields: object) -> Json:
    """A part of text."""
    return {"text": value, **fields}


def call(name: str, call_id: str = "call_1", **arguments: object) -> Json:
    """A part that calls a tool."""
    return {"functionCall": {"id": call_id, "name": name, "args": arguments}}


class Lines:
    """A transcript being written; each record follows the one before unless it says otherwise."""

    def __init__(self, home: Path, session: str = SESSION, *, slug: str = SLUG, folder: str = "chats") -> None:
        self.home = home
        self.path = home / ".qwen" / "projects" / slug / folder / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self.session = session
        self.last: str | None = None
        self.count = 0

    def record(self, kind: str, **fields: object) -> str:
        """Append a record; gives its uuid."""
        self.count += 1
        record: dict[str, object] = {
            "uuid": f"u{self.count}",
            "parentUuid": self.last,
            "sessionId": self.session,
            "timestamp": f"2026-11-03T08:{self.count // 60 % 60:02}:{self.count % 60:02}.000Z",
            "type": kind,
            "cwd": CWD,
            "version": "0.24.4",
            **fields,
        }
        self.raw(json.dumps(record).encode() + b"\n")
        self.last = str(record["uuid"])
        return self.last

    def raw(self, data: bytes) -> None:
        """Append bytes."""
        with self.path.open("ab") as stream:
            stream.write(data)

    def user(self, *parts: Json | str, **fields: object) -> str:
        """Append a prompt."""
        return self.record("user", message=_message("user", parts), **fields)

    def answer(self, *parts: Json | str, **fields: object) -> str:
        """Append an answer."""
        return self.record("assistant", **{"model": "qwen3", "message": _message("model", parts), **fields})

    def result(self, response: Json, call_id: str = "call_1", status: str | None = "success", **result: object) -> str:
        """Append the outcome of a call."""
        part = {"functionResponse": {"id": call_id, "name": "tool", "response": response}}
        outcome = {"callId": call_id, **({"status": status} if status else {}), **result}
        return self.record("tool_result", message=_message("user", (part,)), toolCallResult=outcome)

    def system(self, subtype: str, parent: str | None = None, **payload: object) -> str:
        """Append a system record, behind another parent than the last record if one is named."""
        self.last = parent or self.last
        return self.record("system", subtype=subtype, systemPayload=payload)

    def unit(self) -> Unit:
        """The transcript as a unit."""
        return unit_of(self.home, self.path)

    def turns(self) -> list[Turn]:
        """All turns."""
        return turns_of(self.unit())


def _message(role: str, parts: tuple[Json | str, ...]) -> Json:
    return {"role": role, "parts": [text(part) if isinstance(part, str) else part for part in parts]}


def write_agent(home: Path, agent: str, call_id: str, *, session: str = SESSION, **card: object) -> Lines:
    """Write a sub-agent's card, and give its transcript."""
    lines = Lines(home, f"agent-{agent}", folder=f"subagents/{session}")
    values = {"agentId": agent, "agentType": "general-purpose", "toolUseId": call_id, **card}
    lines.path.with_name(f"agent-{agent}.meta.json").write_text(json.dumps(values), encoding="utf-8")
    return lines


def write_document(home: Path, *messages: Json, **fields: object) -> Path:
    """Write a transcript of 0.1."""
    path = home / ".qwen" / "tmp" / ("ab" * 32) / "chats" / "session-2025-11-12T10-00-3de560b3.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {
        "sessionId": "3de560b3-8a5b-49e6-8101-70ebd335dc6b",
        "projectHash": "ab" * 32,
        "startTime": "2025-11-12T10:00:00.000Z",
        "lastUpdated": "2025-11-12T10:00:09.000Z",
        "messages": messages,
        **fields,
    }
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def unit_of(home: Path, path: Path) -> Unit:
    """A unit in a home."""
    (store,) = QwenCode().stores(environment_at(home))
    unit = QwenCode().unit(store, path)
    assert unit is not None
    return unit


def turns_of(unit: Unit) -> list[Turn]:
    """All turns of a unit's session."""
    transcript = QwenCode().open(unit, QwenCode().inspect(unit).records[0])
    turns = list(transcript.turns())
    transcript.close()
    return turns
