"""Reading the JSON trees of opencode before 1.2: one small file per session, message and part.

Policy: ids ascend with time, so the order of the file names is the order of the conversation. Names that come from a
transcript (a child session's id) are only joined to a path when they consist of letters, digits, `_` and `-`.
Messages of 0.1 to 0.4 hold their parts; they are turned into the later shape here.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from acp_history_adapters.opencode.storage import Head, Message, MessagePart, too_large
from acp_history_bridge.adapter import Problem
from acp_history_bridge.files import list_directory, read_small, stat_regular
from acp_history_bridge.jsonl import LINE_LIMIT, decode
from acp_history_bridge.values import JsonMap, boolean, mapping, maps, string

__all__ = ["TreeReader", "TreeStorage"]

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class TreeStorage:
    """The tree that one session's info file belongs to.

    Args:
        infos: Directory of the info files.
        messages: Directory with a directory of messages for each session.
        parts: Directory with a directory of parts for each message; in 0.x below one for each session.
        parts_by_session: Whether there is that level.
        outputs: Directory with full tool outputs.
    """

    def __init__(self, infos: Path, messages: Path, parts: Path, outputs: Path, *, parts_by_session: bool) -> None:
        self.infos = infos
        self.messages = messages
        self.parts = parts
        self.outputs = outputs
        self.parts_by_session = parts_by_session

    @contextmanager
    def reading(self) -> "Generator[TreeReader]":
        """Nothing is kept open."""
        yield TreeReader(self)


class TreeReader:
    """Reads a tree."""

    def __init__(self, storage: TreeStorage) -> None:
        self._storage = storage
        self.problems: list[Problem] = []

    def info(self, session_id: str) -> JsonMap:
        """The info file of a session; empty when there is none, or when it is damaged."""
        path = self._storage.infos / f"{session_id}.json"
        if not _SAFE_ID.fullmatch(session_id) or stat_regular(path) is None:
            return {}
        return self._read(path) or {}

    def heads(self, session_id: str, after: object = None) -> Sequence[Head]:
        """The messages of a session by their file names."""
        if not _SAFE_ID.fullmatch(session_id):
            return []
        names = self._names(self._storage.messages / session_id)
        return [Head(name, name) for name in names if not isinstance(after, str) or name > after]

    def message(self, session_id: str, head: Head) -> Message | None:
        """Read a message's file and those of its parts."""
        data = self._read(self._storage.messages / session_id / f"{head.id}.json")
        if data is None:
            return Message(head.id, {"role": "assistant"}, (too_large(head.id),))
        if not data:
            return None
        if "parts" in data:
            return _early_message(head.id, data)
        return Message(head.id, data, tuple(self._parts(session_id, head.id)))

    def _parts(self, session_id: str, message_id: str) -> Generator[MessagePart]:
        directory = self._storage.parts
        if self._storage.parts_by_session:
            directory /= session_id
        for name in self._names(directory / message_id):
            data = self._read(directory / message_id / f"{name}.json")
            if data is None:
                yield too_large(name)
            elif data:
                yield MessagePart(name, data)

    def _names(self, directory: Path) -> list[str]:
        entries = list_directory(directory, self.problems) or ()
        return sorted(entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json"))

    def _read(self, path: Path) -> JsonMap | None:
        """The JSON object in a file: None when it is too large, empty when it is gone or no JSON."""
        content = read_small(path, LINE_LIMIT)
        if content is None:
            size = stat_regular(path)
            large = size is not None and size.st_size > LINE_LIMIT
            self.problems.append(Problem(path, "too-large" if large else "unreadable"))
            return None if large else {}
        try:
            return mapping(decode(content))
        except ValueError:
            self.problems.append(Problem(path, "bad-record", "not JSON"))
            return {}


def _early_message(message_id: str, data: JsonMap) -> Message:
    """Turn a message of 0.1 to 0.4 into the later shape."""
    metadata = mapping(data.get("metadata"))
    assistant = mapping(metadata.get("assistant"))
    parts: list[MessagePart] = []
    for number, part in enumerate(maps(data.get("parts"))):
        part_id = f"{message_id}.{number}"
        if part.get("type") == "tool-invocation":
            invocation = mapping(part.get("toolInvocation"))
            outcome = mapping(mapping(metadata.get("tool")).get(string(invocation.get("toolCallId"))))
            parts.append(MessagePart(part_id, _early_call(invocation, outcome)))
        elif part.get("type") == "text" and parts and parts[-1].data.get("type") == "text":
            # Text was stored in the pieces in which the model's answer had come.
            joined = string(parts[-1].data.get("text")) + string(part.get("text"))
            parts[-1] = MessagePart(parts[-1].id, {"type": "text", "text": joined})
        else:
            parts.append(MessagePart(part_id, part))
    later: dict[str, object] = {**assistant, "role": data.get("role"), "time": metadata.get("time")}
    return Message(message_id, {**later, "error": metadata.get("error")}, tuple(parts))


def _early_call(invocation: JsonMap, outcome: JsonMap) -> JsonMap:
    result = string(invocation.get("result"))
    failed = boolean(outcome.get("error"))
    printed = "".join(string(outcome.get(name)) for name in ("stdout", "stderr"))
    finished = "error" if failed else "completed"
    return {
        "type": "tool",
        "callID": invocation.get("toolCallId"),
        "tool": invocation.get("toolName"),
        "state": {
            "status": finished if invocation.get("state") == "result" else "running",
            "input": invocation.get("args"),
            "output": printed or result,
            "error": string(outcome.get("message")) or result,
            "title": outcome.get("title"),
            "metadata": outcome,
        },
    }
