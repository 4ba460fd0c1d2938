"""A fork as `forkSession` of Claude's own SDK (0.3.316) writes it, line by line and in bounded memory.

Policy: every line of the conversation is copied with a new uuid and the new session id, and names what it was copied
from; what names another line is rewritten alike. Lines of inline sub-agents stay behind. Of the metadata only what a
resume needs goes along. The last message gets the time of the fork, and a custom title says what it is.

New uuids are derived from the old ones, so no table of them is needed. The SDK takes `progress` lines out of the chain;
here they stay in it, which needs no table either and reads the same.
"""

import hashlib
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from acp_history_bridge.adapter import Fork, SessionRecord, Unit
from acp_history_bridge.errors import ForkError
from acp_history_bridge.files import open_regular
from acp_history_bridge.forking import encode_line, fork_title
from acp_history_bridge.jsonl import Line, decode, read_lines
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.values import JsonMap, items, mapping, string

from .records import METADATA_PREFIXES

__all__ = ["fork_session"]

_MESSAGES = frozenset({"user", "assistant", "system", "attachment", "progress"})
_EVERY = "content-replacement"
_LAST = frozenset({"atis-latch", "tools-used", "relocated"})
_KEPT_PREFIXES = tuple(f'{{"type":"{name}"'.encode() for name in sorted({_EVERY, *_LAST}))

# Of the session, not of the message.
_LEFT_OUT = frozenset(
    {
        *("teamName", "agentName", "sessionKind", "slug", "sourceToolAssistantUUID", "summarizedTurnPromptUuids"),
        *("droppedPromptUuids", "sentAsUuid", "rowsAheadOfPutBack", "turnAttributionKey"),
    }
)


def fork_session(unit: Unit, record: SessionRecord) -> Fork:
    """A new session beside the original.

    Raises:
        ForkError: There is no message in it.
        TranscriptError: It is gone.
    """
    if not record.listed:
        raise ForkError("there is nothing in this session to go on from")
    with open_regular(unit.path):
        pass  # only to say at once that it is gone
    native_id = str(uuid.uuid4())
    copy = _Copy(unit.path, native_id)
    return Fork(native_id, unit.path.with_name(f"{native_id}.jsonl"), copy.lines(fork_title(record)))


class _Copy:
    """Rewrites the lines of one transcript."""

    def __init__(self, path: Path, native_id: str) -> None:
        self._path = path
        self._source = path.stem
        self._id = native_id

    def lines(self, title: str) -> Iterator[bytes]:
        """All lines of the fork."""
        now = format_time(datetime.now(UTC))
        metadata: dict[str, JsonMap] = {}
        last: JsonMap = {}
        with open_regular(self._path) as descriptor:
            for line in read_lines(descriptor, end=os.fstat(descriptor).st_size):
                record = _decoded(line)
                kind = string(record.get("type"))
                if kind in _LAST:
                    metadata[kind] = {**record, "sessionId": self._id}
                elif kind == _EVERY:
                    yield encode_line({**record, "sessionId": self._id})
                elif kind in _MESSAGES and record.get("isSidechain") is not True and string(record.get("uuid")):
                    if last:
                        yield encode_line(last)
                    last = self._message(record)
        if not last:
            raise ForkError("there is nothing in this session to go on from")
        yield encode_line({**last, "timestamp": now})
        yield from map(encode_line, metadata.values())
        own = {"uuid": str(uuid.uuid4()), "timestamp": now}
        yield encode_line({"type": "custom-title", "sessionId": self._id, "customTitle": title, **own})

    def _message(self, record: JsonMap) -> JsonMap:
        copied = {name: value for name, value in record.items() if name not in _LEFT_OUT}
        for name in ("uuid", "parentUuid", "logicalParentUuid"):
            if name in copied:
                copied[name] = self._new(copied[name])
        if "compactMetadata" in copied:
            copied["compactMetadata"] = self._compaction(mapping(copied["compactMetadata"]))
        if string(mapping(copied.get("attachment")).get("source_uuid")):
            attachment = mapping(copied["attachment"])
            copied["attachment"] = {**attachment, "source_uuid": self._new(attachment["source_uuid"])}
        origin = {"sessionId": self._source, "messageUuid": record["uuid"]}
        return {**copied, "sessionId": self._id, "isSidechain": False, "forkedFrom": origin}

    def _compaction(self, metadata: JsonMap) -> JsonMap:
        """What a compaction says it kept, in the new ids."""
        rewritten = dict(metadata)
        for name in ("preservedSegment", "preservedMessages"):
            if kept := mapping(metadata.get(name)):
                rewritten[name] = {key: self._renamed(key, value) for key, value in kept.items()}
        return rewritten

    def _renamed(self, name: str, value: object) -> object:
        if name.lower().endswith("uuids"):
            return [self._new(one) for one in items(value)]
        return self._new(value) if name.endswith("Uuid") else value

    def _new(self, old: object) -> object:
        if not isinstance(old, str):
            return old
        digest = hashlib.blake2b(f"{self._id} {old}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return str(uuid.UUID(bytes=digest, version=4))


def _decoded(line: Line) -> JsonMap:
    """A line that may go along; empty for one that does not, or that is damaged or not finished."""
    if line.data is None:
        raise ForkError(f"a record of {line.size >> 20} MiB is too large to be copied")
    if line.data.startswith(METADATA_PREFIXES) and not line.data.startswith(_KEPT_PREFIXES):
        return {}
    try:
        value = decode(line.data)
    except ValueError:
        return {}
    return cast("JsonMap", value) if isinstance(value, dict) else {}
