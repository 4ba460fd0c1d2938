"""Which files are one session's alone: its transcript, what a terminal left beside it, and its sub-agents.

A fork shows the sub-agents of the session that it was copied from, so those stay where there is one.
"""

from pathlib import Path

from acp_history_adapters.qwen_code.places import is_document, project_of, subagent_directory
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import list_directory, open_regular, stat_regular
from acp_history_bridge.jsonl import read_at

__all__ = ["files_of"]

_HEAD = 64 * 1024


def files_of(unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
    """All that is there of it."""
    if is_document(unit.path):
        return (unit.path,)
    beside = unit.path.with_name(f"{unit.path.stem}.runtime.json")
    agents = subagent_directory(unit.path, unit.path.stem)
    found = [unit.path]
    if stat_regular(beside) is not None:
        found.append(beside)
    if agents is not None and agents.is_dir() and not agents.is_symlink() and not _has_forks(unit.path, record):
        found.append(agents)
    return tuple(found)


def _has_forks(path: Path, record: SessionRecord) -> bool:
    chats = project_of(path) / "chats"
    mark = f'"forkedFrom":{{"sessionId":"{record.native_id}"'.encode()
    entries = [entry for folder in (chats, chats / "archive") for entry in list_directory(folder, []) or ()]
    return any(entry.name.endswith(".jsonl") and mark in _head(Path(entry.path)) for entry in entries)


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as descriptor:
            return read_at(descriptor, 0, _HEAD)
    except TranscriptError:
        return b""
