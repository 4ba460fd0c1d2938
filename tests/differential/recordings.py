"""One recorded session of each tool, taken apart into its records so that tests can change them and write them back.

Beside it lies a neighbour that nothing is done to.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from acp_history_bridge.adapter import Adapter, SessionRecord, Transcript, Unit
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.registry import load_adapters
from tests.builders.opencode import Database
from tests.conftest import DATA, environment_at

__all__ = ["TOOLS", "Recording", "Replaying", "recording_of", "records_in", "replaying"]

_PROJECTS = ".claude/projects/-home-ada-src-shop"
_ROLLOUTS = ".codex/sessions/2026/11/20"
_CHATS = ".gemini/tmp/shop/chats"
_QWEN = ".qwen/projects/-home-ben-src-shop/chats"
_LINES = {
    "claude-code": (
        f"{_PROJECTS}/8807984d-b6f9-4a57-9efe-90f86752fbdd.jsonl",
        f"{_PROJECTS}/76abebf8-2e4a-43de-81b8-2cdd26d06cc5.jsonl",
    ),
    "codex": (
        f"{_ROLLOUTS}/rollout-2026-11-20T10-10-45-01a1f86f-e656-7853-bbd9-e6c99478dcc5.jsonl",
        f"{_ROLLOUTS}/rollout-2026-11-20T10-09-03-01a1f86e-584a-7e90-9600-c0c2c5e3355a.jsonl",
    ),
    "gemini-cli": (
        f"{_CHATS}/session-2026-11-02T14-10-3db656a1.jsonl",
        f"{_CHATS}/session-2026-04-16T08-00-f220208c.jsonl",
    ),
    "qwen-code": (
        f"{_QWEN}/d51dd0eb-0099-4464-963b-0bd3d7216c6e.jsonl",
        f"{_QWEN}/2f64283f-4456-4462-8631-43e37945551e.jsonl",
    ),
}
_DATABASE = DATA / "opencode" / "home" / ".local" / "share" / "opencode" / "opencode.db"
_ROWS = ("ses_e0765ab48ffeqqwgRJy97DuN6g", "ses_e0766153affeFWbAPM6oKE6WNJ")
_FRAME_LIMIT = 1024 * 1024

TOOLS = (*_LINES, "opencode")


@dataclass(frozen=True)
class Recording:
    """A session in pieces.

    Attributes:
        adapter: Reads it.
        native_id: The tool's id of the session.
        neighbour: The id of the session beside it.
        records: Its lines or rows, as JSON texts.
        write: Writes records as that session into a home, beside the neighbour.
        within: The member of a record that is the tool's own; empty where the whole record is.
    """

    adapter: Adapter
    native_id: str
    neighbour: str
    records: tuple[bytes, ...]
    write: Callable[[Path, Sequence[bytes]], None]
    within: tuple[str, ...] = ()


@cache
def recording_of(tool: str) -> Recording:
    """The recording of a tool."""
    (adapter,) = load_adapters([tool], third_party=False)
    return _rows_of(adapter) if tool == "opencode" else _lines_of(adapter)


def records_in(adapter: Adapter, home: Path) -> Iterator[tuple[Unit, SessionRecord]]:
    """All sessions of a home, without the index' safety net."""
    for store in adapter.stores(environment_at(home)):
        for unit in adapter.discover(store).units:
            for record in adapter.inspect(unit).records:
                yield unit, record


class Replaying:
    """An opened session: each call of `frames` gives what has been added, as a client gets it."""

    def __init__(self, transcript: Transcript, *, live: bool = False) -> None:
        options = ToolOptions("/home/ben", terminal=False, output_limit=100 * 1024, image_limit=700 * 1024)
        self._replay = Replay(ReplayOptions(options), live=live)
        self._transcript = transcript

    def frames(self) -> list[bytes]:
        """Encoded updates, each below the limit."""
        updates = [update for turn in self._transcript.turns() for update in self._replay.updates(turn)]
        frames = [wire.update("made:1", update) for update in updates]
        assert all(len(frame) < _FRAME_LIMIT for frame in frames)
        return frames


def replaying(adapter: Adapter, home: Path) -> dict[str, list[bytes]]:
    """The frames of all sessions in a home by native id; whatever an adapter raises comes through."""
    replays: dict[str, list[bytes]] = {}
    for unit, record in records_in(adapter, home):
        with closing(adapter.open(unit, record)) as transcript:
            session = Replaying(transcript)
            replays[record.native_id] = session.frames()
            assert session.frames() == []
        for _ in adapter.passages(unit, record, output=True):
            pass
        adapter.resume_command(record)
    return replays


def _lines_of(adapter: Adapter) -> Recording:
    changed, beside = _LINES[adapter.name]
    home = DATA / adapter.name / "home"
    records = tuple((home / changed).read_bytes().split(b"\n")[:-1])
    native_id, neighbour = (_native_id(adapter, home / path) for path in (changed, beside))
    return Recording(adapter, native_id, neighbour, records, partial(_write_lines, home, changed, beside))


def _native_id(adapter: Adapter, path: Path) -> str:
    store = next(iter(adapter.stores(environment_at(DATA / adapter.name / "home"))))
    unit = adapter.unit(store, path)
    assert unit is not None
    (record,) = adapter.inspect(unit).records
    return record.native_id


def _write_lines(source: Path, changed: str, beside: str, home: Path, records: Sequence[bytes]) -> None:
    (home / changed).parent.mkdir(parents=True, exist_ok=True)
    (home / beside).write_bytes((source / beside).read_bytes())
    (home / changed).write_bytes(b"".join(record + b"\n" for record in records))


def _rows_of(adapter: Adapter) -> Recording:
    """Rows of messages and parts; a record holds its table and keys beside the data."""
    with closing(sqlite3.connect(f"file:{_DATABASE}?mode=ro", uri=True)) as connection:
        rows = {session: tuple(_read_rows(connection, session)) for session in _ROWS}
    return Recording(adapter, *_ROWS, rows[_ROWS[0]], partial(_write_rows, rows[_ROWS[1]]), ("data",))


def _read_rows(connection: sqlite3.Connection, session: str) -> Iterator[bytes]:
    query = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY id"
    for message, time, data in connection.execute(query, [session]).fetchall():
        yield json.dumps({"message": message, "time": time, "data": json.loads(data)}).encode()
        parts = connection.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", [message])
        for part, part_data in parts.fetchall():
            yield json.dumps({"message": message, "part": part, "data": json.loads(part_data)}).encode()


def _write_rows(beside: Sequence[bytes], home: Path, records: Sequence[bytes]) -> None:
    path = home / _DATABASE.relative_to(DATA / "opencode" / "home")
    if not path.exists():
        with Database(home) as database:
            database.connection.execute("PRAGMA synchronous=OFF")
            for session in _ROWS:
                database.session(session)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        for session, rows in zip(_ROWS, (records, beside), strict=True):
            for row in rows:
                _insert(connection, session, row)


def _insert(connection: sqlite3.Connection, session: str, row: bytes) -> None:
    head, _, data = row.decode(errors="surrogatepass").partition('"data": ')
    keys = json.loads(head.rstrip().rstrip(",") + "}")
    text = data.removesuffix("}").encode(errors="replace").decode()
    if "part" in keys:
        values = [keys["part"], keys["message"], session, text]
        connection.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?)", values)
    else:
        values = [keys["message"], session, keys["time"], keys["time"], text]
        connection.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?)", values)
