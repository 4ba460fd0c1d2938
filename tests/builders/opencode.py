"""Builders of opencode histories: the database, and the JSON trees before it."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from acp_history_adapters.opencode import Opencode
from acp_history_bridge.adapter import Unit
from acp_history_bridge.turns import Turn
from tests.conftest import environment_at

START = 1_795_172_000_000  # milliseconds; 2026-11-20T10:53:20Z
NEW_COLUMNS = "agent text, model text, "

Json = Mapping[str, object]


def text_part(text: str, **fields: object) -> Json:
    """A part of text."""
    return {"type": "text", "text": text, **fields}


def tool_part_of(tool: str, status: str = "completed", output: str = "", **fields: object) -> Json:
    """A tool part; `fields` are those of its state."""
    return {"type": "tool", "tool": tool, "callID": "call_1", "state": {"status": status, "output": output, **fields}}


class Database:
    """A database in WAL mode with a writer that stays connected, as a running opencode has it."""

    def __init__(self, home: Path, *, columns: str = NEW_COLUMNS, name: str = "opencode.db") -> None:
        self.root = home / ".local" / "share" / "opencode"
        self.root.mkdir(parents=True, exist_ok=True)
        self.path = self.root / name
        self.count = 0
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(f"""
            CREATE TABLE session (id text PRIMARY KEY, {columns} parent_id text, directory text, title text,
                version text, revert text, time_created integer, time_updated integer, time_archived integer);
            CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer,
                data text);
            CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);
        """)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def session(self, session_id: str = "ses_1", **columns: object) -> str:
        """Insert a session."""
        row: dict[str, object] = {
            "id": session_id,
            "directory": "/home/me/shop",
            "title": "A title",
            "version": "1.18.33",
            "time_created": START,
            "time_updated": START + 1000,
            **columns,
        }
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO session ({names}) VALUES ({marks})", [*row.values()])
        return session_id

    def message(self, role: str, *parts: Json, session: str = "ses_1", finished: bool = True, **fields: object) -> str:
        """Insert a message with its parts."""
        self.count += 1
        message_id, created = f"msg_{self.count:04}", START + self.count * 10
        data = {"role": role, "time": {"created": created, **({"completed": created} if finished else {})}, **fields}
        self.connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message_id, session, created, created, json.dumps(data))
        )
        for part in parts:
            self.part(message_id, part, session=session)
        return message_id

    def part(self, message_id: str, data: Json, *, session: str = "ses_1") -> str:
        """Insert a part."""
        self.count += 1
        part_id = f"prt_{self.count:04}"
        self.connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?)", (part_id, message_id, session, json.dumps(data))
        )
        return part_id

    def change(self, table: str, row_id: str, data: Json) -> None:
        """Rewrite a message or a part."""
        self.connection.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (json.dumps(data), row_id))

    def unit(self) -> Unit:
        """The database as a unit."""
        return unit_of(self.root.parent.parent.parent, self.path)


def unit_of(home: Path, path: Path) -> Unit:
    """A unit in the data directory of a home."""
    (store,) = Opencode().stores(environment_at(home))
    unit = Opencode().unit(store, path)
    assert unit is not None
    return unit


def turns_of(unit: Unit, session_id: str = "ses_1") -> list[Turn]:
    """All turns of a session."""
    record = next(record for record in Opencode().inspect(unit).records if record.native_id == session_id)
    return list(Opencode().open(unit, record).turns())


def write_json(path: Path, value: object) -> Path:
    """Write a file of a tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_tree(home: Path, *messages: tuple[Json, tuple[Json, ...]], session: str = "ses_1", **info: object) -> Path:
    """Write a session in the tree of 1.x, with messages `(data, parts)`; gives its info file."""
    storage = home / ".local" / "share" / "opencode" / "storage"
    for number, (data, parts) in enumerate(messages):
        write_json(storage / "message" / session / f"msg_{number:04}.json", data)
        for index, part in enumerate(parts):
            write_json(storage / "part" / f"msg_{number:04}" / f"prt_{number:04}{index:04}.json", part)
    times = {"created": START, "updated": START + 1000}
    stored = {"id": session, "title": "A title", "directory": "/home/me/shop", "time": times, **info}
    return write_json(storage / "session" / "global" / f"{session}.json", stored)


def write_early_session(home: Path, *messages: Json, session: str = "ses_1", **info: object) -> Path:
    """Write a session in the tree of 0.1, whose messages hold their parts; gives its info file."""
    storage = home / ".local" / "share" / "opencode" / "project" / "home-me-shop" / "storage" / "session"
    for number, data in enumerate(messages):
        write_json(storage / "message" / session / f"msg_{number:04}.json", data)
    times = {"created": START, "updated": START + 1000}
    return write_json(storage / "info" / f"{session}.json", {"id": session, "title": "A title", "time": times, **info})
