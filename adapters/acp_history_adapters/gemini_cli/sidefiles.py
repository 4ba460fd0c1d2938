"""Files beside a transcript: the full text of cut outputs, and the transcripts of sub-agents.

Transcripts name them, and transcripts are hostile: only a base name is taken, and it is looked for nowhere but in the
session's own folders. Links are not followed.
"""

from collections.abc import Iterator
from pathlib import Path

from acp_history_bridge.files import read_small, stat_regular

__all__ = ["SideFiles"]

_SPILLED_LIMIT = 8 * 1024 * 1024
_NAME_LIMIT = 255


class SideFiles:
    """The side files of one session, or of a sub-agent (`nested`), which shares its parent's folders."""

    def __init__(self, transcript: Path, native_id: str, *, nested: bool) -> None:
        self._chats = transcript.parent.parent if nested else transcript.parent
        self._owners = tuple(
            name for name in (native_id, transcript.parent.name if nested else "") if _is_base_name(name)
        )

    def spilled(self, name: str) -> str | None:
        """The text of a cut tool output."""
        if not _is_base_name(name):
            return None
        for owner in self._owners:
            folder = self._chats.parent / "tool-outputs" / f"session-{owner}"
            data = None if _leads_away(folder) else read_small(folder / name, _SPILLED_LIMIT)
            if data is not None:
                return data.decode("utf-8", errors="replace")
        return None

    def subagent(self, agent_id: str) -> Path | None:
        """Where a sub-agent's transcript lies."""
        return next((path for path in self._candidates(agent_id) if stat_regular(path)), None)

    def _candidates(self, agent_id: str) -> Iterator[Path]:
        if _is_base_name(f"{agent_id}.jsonl"):
            for owner in self._owners:
                if not _leads_away(self._chats / owner):
                    yield self._chats / owner / f"{agent_id}.jsonl"


def _is_base_name(name: str) -> bool:
    return 0 < len(name) <= _NAME_LIMIT and name not in {".", ".."} and not any(sign in name for sign in "/\\\x00")


def _leads_away(folder: Path) -> bool:
    return folder.is_symlink() or folder.parent.is_symlink()
