"""Which files are one chat's alone: its transcripts, its sub-agents and its long outputs.

Policy: ids are compared with the names that are there, never joined to a path. Each resume leaves a further transcript
with the same id, so all of them are looked for. The prompt log is everybody's, and stays.
"""

from collections.abc import Iterator
from pathlib import Path

from acp_history_adapters.gemini_cli.metadata import inspect_chat
from acp_history_adapters.gemini_cli.paths import LOG, is_transcript, short_id, unit_at
from acp_history_adapters.gemini_cli.projects import Projects
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError, TrashError
from acp_history_bridge.files import list_directory, open_regular

__all__ = ["files_of"]


def files_of(unit: Unit, record: SessionRecord, projects: Projects) -> tuple[Path, ...]:
    """All that is there of it.

    Raises:
        TrashError: Only the log that it shares with others knows of it.
    """
    if unit.path.name == LOG:
        raise TrashError("this session is a part of its project's prompt log, which holds others, too")
    chats = unit.path.parent
    found = [unit.path, *_copies(unit, record, projects)]
    for folder, name in ((chats, record.native_id), (chats.parent / "tool-outputs", f"session-{record.native_id}")):
        found += (
            Path(entry.path)
            for entry in list_directory(folder, []) or ()
            if entry.name == name and entry.is_dir(follow_symlinks=False)
        )
    return tuple(dict.fromkeys(found))


def _copies(unit: Unit, record: SessionRecord, projects: Projects) -> Iterator[Path]:
    mark = f"-{short_id(record.native_id)}."
    for entry in list_directory(unit.path.parent, []) or ():
        if mark in entry.name and is_transcript(entry.name) and (copy := unit_at(unit.store, Path(entry.path))):
            try:
                with open_regular(copy.path) as descriptor:
                    records = inspect_chat(descriptor, copy, projects, None).records
            except TranscriptError:  # gone meanwhile
                continue
            if any(found.native_id == record.native_id for found in records):
                yield copy.path
