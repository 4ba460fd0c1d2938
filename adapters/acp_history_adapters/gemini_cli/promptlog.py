"""The prompt log `logs.json`: everything typed into the interactive interface of one project.

The oldest versions (0.2) kept nothing else, and deleted sessions live on in it. A session of the log is listed with its
user turns alone, unless there is a transcript: that copy always wins, because it is listed and newer (`log_records`).
Commands (`/…`, `?…`, `exit`, `quit`) are no prompts.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from acp_history_adapters.gemini_cli.messages import is_command
from acp_history_adapters.gemini_cli.metadata import session_time
from acp_history_adapters.gemini_cli.paths import short_id
from acp_history_adapters.gemini_cli.projects import Project, is_path_hash
from acp_history_bridge.adapter import Inspection, Problem, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import read_small
from acp_history_bridge.jsonl import LINE_LIMIT, decode
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Text, Turn, Usage
from acp_history_bridge.values import JsonMap, maps, string

__all__ = ["LOG_RANK", "PromptLog", "inspect_log"]

LOG_RANK = -1
"""The rank of a session that is only in the log; the tool cannot resume it."""

_LEAVING = frozenset({"exit", "quit"})


def inspect_log(unit: Unit, project: Project, path_hash: str, transcripts: frozenset[str]) -> Inspection:
    """Find the sessions of a log.

    Args:
        unit: The log.
        project: Its project.
        path_hash: What transcripts of the project carry as `projectHash`; empty when unknown.
        transcripts: What the names of the project's transcripts say of their session ids.
    """
    entries = _entries(unit)
    if entries is None:
        return Inspection((), (Problem(unit.path, "half-written", "the document is not whole"),), complete=False)
    prompts: dict[str, list[JsonMap]] = {}
    for entry in entries:
        if (native_id := string(entry.get("sessionId"))) and _is_prompt(entry):
            prompts.setdefault(native_id, []).append(entry)
    records = [
        SessionRecord(
            native_id=native_id,
            updated_at=_time(unit, said, has_transcript=short_id(native_id) in transcripts),
            origin=path_hash or project.name,
            rank=LOG_RANK,
            title=string(said[0].get("message")).strip(),
            cwd=project.cwd,
            cwd_digest=f"sha256:{path_hash}" if project.cwd is None and is_path_hash(path_hash) else None,
            created_at=parse_time(said[0].get("timestamp")),
            message_count=len(said),
        )
        for native_id, said in prompts.items()
    ]
    return Inspection(tuple(records))


def _time(unit: Unit, said: Sequence[JsonMap], *, has_transcript: bool) -> datetime:
    """When the session was last active. The first prompt's time where a transcript exists, which is newer for sure."""
    return session_time(unit, string(said[0 if has_transcript else -1].get("timestamp")))


def _entries(unit: Unit) -> list[JsonMap] | None:
    try:
        value = decode(read_small(unit.path, LINE_LIMIT) or b"")
    except ValueError:
        return None
    return maps(value)


def _is_prompt(entry: JsonMap) -> bool:
    text = string(entry.get("message")).strip()
    return bool(text) and not is_command(text) and text not in _LEAVING and entry.get("type") == "user"


class PromptLog:
    """The prompts of one session as turns."""

    def __init__(self, unit: Unit, native_id: str) -> None:
        self._unit = unit
        self._native_id = native_id
        self._shown = 0
        if _entries(unit) is None:
            raise TranscriptError(f"cannot read {unit.path.name}")

    def turns(self) -> Iterator[Turn]:
        """Yield the prompts, later only new ones."""
        entries = [entry for entry in _entries(self._unit) or () if entry.get("sessionId") == self._native_id]
        prompts = [entry for entry in entries if _is_prompt(entry)]
        for number in range(self._shown, len(prompts)):
            self._shown = number + 1
            entry = prompts[number]
            text = string(entry.get("message"))
            yield Turn(f"{number}", "user", (Text(text),), parse_time(entry.get("timestamp")))

    @property
    def left_out(self) -> int:
        """Nothing is."""
        return 0

    @property
    def problems(self) -> Sequence[Problem]:
        """None: a log is read as a whole or not at all."""
        return ()

    @property
    def usage(self) -> Usage | None:
        """The log has none."""
        return None

    def close(self) -> None:
        """Nothing is kept open."""
