"""A fork of a thread as Codex makes it.

Policy: a fork of a paginated thread is a new rollout that holds nothing but its head, which names the original as its
base up to the last record. A fork of a legacy thread is a head, then everything that the original holds, its head
included. Codex stamps those copies with the time of the fork; here they keep the time at which they were said.

A thread's name lies in an index that all threads share and that is never written here: a fork has the title of its
original until somebody names it.
"""

import secrets
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_history_adapters.codex.chains import meta_of
from acp_history_adapters.codex.lines import first_record, open_source
from acp_history_adapters.codex.rollouts import parse_name
from acp_history_bridge.adapter import Fork, Problem, SessionRecord, Unit
from acp_history_bridge.errors import ForkError
from acp_history_bridge.forking import encode_line
from acp_history_bridge.jsonl import decode
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.values import JsonMap, integer, mapping, string

__all__ = ["fork_thread"]

_OF_THE_BASE = frozenset({"history_base", "forked_from_ordinal_exclusive", "parent_thread_id"})


@dataclass(frozen=True, slots=True)
class _End:
    """Where a rollout ends now: behind its last whole record."""

    ordinal: int
    offset: int


def fork_thread(unit: Unit, record: SessionRecord, sessions: Path) -> Fork:
    """A new rollout in today's folder.

    Raises:
        ForkError: No version can go on with this format.
        TranscriptError: The rollout is gone.
    """
    if record.tool_version is None:
        raise ForkError("this session is older than the format that Codex CLI can go on with")
    with open_source(unit.path) as source:
        meta = meta_of(first_record(source, []))
    if not meta:
        raise ForkError("this rollout has no head")
    native_id = _uuid7()
    now = datetime.now(UTC)
    local = now.astimezone()  # Codex names folders and files by the clock on the wall
    path = sessions / f"{local:%Y/%m/%d}" / f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{native_id}.jsonl"
    head = _head(meta, record.native_id, native_id, format_time(now))
    if meta.get("history_mode") == "paginated":
        return Fork(native_id, path, _continuation(unit.path, head))
    return Fork(native_id, path, _copy(unit.path, head))


def _head(meta: JsonMap, source: str, native_id: str, now: str) -> JsonMap:
    kept = {name: value for name, value in meta.items() if name not in _OF_THE_BASE}
    own = {"session_id": native_id} if "session_id" in meta else {}
    return {**own, "id": native_id, "forked_from_id": source, "timestamp": now} | {
        name: value for name, value in kept.items() if name not in {"session_id", "id", "forked_from_id", "timestamp"}
    }


def _continuation(path: Path, head: JsonMap) -> Iterator[bytes]:
    end = _end_of(path)
    name = parse_name(path.name)
    rollout = name.rollout if name else string(head.get("forked_from_id"))
    base = {"thread_id": rollout, "end_ordinal_exclusive": end.ordinal, "end_byte_offset": end.offset}
    payload = {**head, "forked_from_ordinal_exclusive": end.ordinal, "history_base": base}
    fields = {"timestamp": head["timestamp"], "ordinal": end.ordinal, "type": "session_meta", "payload": payload}
    yield encode_line(fields)


def _end_of(path: Path) -> _End:
    end = _End(-1, 0)
    problems: list[Problem] = []
    with open_source(path) as source:
        for line in source.lines(problems):
            if not line.pending and line.data is not None:
                ordinal = _ordinal(line.data)
                end = _End(max(end.ordinal, ordinal + 1), line.end)
    if end.ordinal < 0 or problems:
        raise ForkError("the records of this rollout have no order that a fork could build on")
    return end


def _ordinal(data: bytes) -> int:
    try:
        found = integer(mapping(decode(data)).get("ordinal"))
    except ValueError:
        found = None
    return -1 if found is None else found


def _copy(path: Path, head: JsonMap) -> Iterator[bytes]:
    yield encode_line({"timestamp": head["timestamp"], "type": "session_meta", "payload": head})
    problems: list[Problem] = []
    with open_source(path) as source:
        for line in source.lines(problems):
            if line.data is None:
                raise ForkError(f"a record of {line.size >> 20} MiB is too large to be copied")
            if not line.pending:
                yield line.data + b"\n"
    if problems:
        raise ForkError("this rollout is damaged")


def _uuid7() -> str:
    """An id as Codex gives it: it begins with the time, by which the folder of a thread is found."""
    value = time.time_ns() // 1_000_000 << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
