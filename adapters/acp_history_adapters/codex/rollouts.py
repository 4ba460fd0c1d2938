"""Rollouts: how Codex names its transcripts, and how one is found by the id in its name.

Policy: ids come from transcripts, so they are only ever compared with names that are on the disk, never joined to a
path. A rollout is looked for in the day folder that its UUIDv7 tells first, and only then in the whole home, because a
file in the wrong folder still counts. Of a plain file and its compressed twin the plain one wins: Codex writes to it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from acp_history_bridge.adapter import Problem
from acp_history_bridge.files import list_directory

__all__ = ["COMPRESSED", "RolloutName", "Rollouts", "parse_name", "plain_path", "twins", "walk"]

COMPRESSED = ".jsonl.zst"

_NAME = re.compile(
    r"rollout-(?P<time>\d{4}-\d\d-\d\d(?:T\d\d-\d\d-\d\d)?)?-?(?P<thread>[^_]*)(?:_(?P<rollout>.+))?"
    r"(?P<suffix>\.jsonl\.zst|\.jsonl|\.json)",
    re.DOTALL,
)
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
# Deeper than this lies nothing that Codex wrote; a loop of bind mounts ends here.
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class RolloutName:
    """What the name of a rollout says.

    Attributes:
        thread: The thread it belongs to; `session_meta.id` has the last word.
        rollout: Its own id, which differs from the thread's after a rewind.
        rank: Its time as digits; the newest rollout of a thread is the current one.
        suffix: `.jsonl`, `.jsonl.zst` or `.json`.
    """

    thread: str
    rollout: str
    rank: int
    suffix: str


@lru_cache(maxsize=8192)  # one rollout is asked for its name several times, one of thousands
def parse_name(name: str) -> RolloutName | None:
    """Take a file name apart; None when it is not a rollout's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    thread = match["thread"]
    digits = re.sub(r"\D", "", match["time"] or "").ljust(14, "0")
    return RolloutName(thread, match["rollout"] or thread, int(digits), match["suffix"])


def plain_path(path: Path) -> Path:
    """The path of the uncompressed twin; the path itself for a plain file."""
    return path.with_suffix("") if path.name.endswith(COMPRESSED) else path


def twins(path: Path) -> tuple[Path, Path]:
    """The plain and the compressed path under which a rollout can lie."""
    plain = plain_path(path)
    return plain, plain.with_name(plain.name + ".zst")


def walk(root: Path, problems: list[Problem]) -> Iterator[tuple[os.DirEntry[str], RolloutName]]:
    """Yield every rollout below a root, compressed twins of plain files left out; links are not followed."""
    pending = [(root, 0)]
    while pending:
        directory, depth = pending.pop()
        entries = list_directory(directory, problems) or ()
        names = {entry.name for entry in entries}
        for entry in entries:
            name = parse_name(entry.name)
            if name is None:
                if depth < _DEPTH and _is_directory(entry):
                    pending.append((Path(entry.path), depth + 1))
            elif name.suffix != COMPRESSED or entry.name.removesuffix(".zst") not in names:
                yield entry, name


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


class Rollouts:
    """The rollouts of one Codex home, both the active and the archived ones, by the ids in their names."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots
        self._days: dict[str, list[tuple[RolloutName, Path]]] = {}
        self._all: list[tuple[RolloutName, Path]] | None = None

    def by_rollout(self, rollout: str) -> Path | None:
        """Find a rollout by its own id; the newest one when several claim it."""
        return _newest([(name, path) for name, path in self._near(rollout) if name.rollout == rollout]) or _newest(
            [(name, path) for name, path in self._everything() if name.rollout == rollout]
        )

    def current(self, thread: str) -> Path | None:
        """Find the rollout that holds the present state of a thread."""
        return _newest([(name, path) for name, path in self._near(thread) if name.thread == thread]) or _newest(
            [(name, path) for name, path in self._everything() if name.thread == thread]
        )

    def of_thread(self, thread: str) -> list[Path]:
        """All rollouts of a thread: the rewound ones and the current one."""
        return [path for name, path in self._everything() if name.thread == thread]

    def _near(self, uuid: str) -> list[tuple[RolloutName, Path]]:
        match = _UUID7.fullmatch(uuid)
        if match is None:
            return []
        made = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(match[1] + match[2], 16))
        found: list[tuple[RolloutName, Path]] = []
        # Folders are named in local time, which is up to a day off.
        for days in (-1, 0, 1):
            found += self._day((made + timedelta(days=days)).strftime("%Y/%m/%d"))
        return found

    def _day(self, day: str) -> list[tuple[RolloutName, Path]]:
        if day not in self._days:
            self._days[day] = [(name, Path(entry.path)) for root in self._roots for entry, name in walk(root / day, [])]
        return self._days[day]

    def _everything(self) -> list[tuple[RolloutName, Path]]:
        if self._all is None:
            self._all = [(name, Path(entry.path)) for root in self._roots for entry, name in walk(root, [])]
        return self._all


def _newest(found: list[tuple[RolloutName, Path]]) -> Path | None:
    return max(found, key=lambda one: (one[0].rank, one[1].name))[1] if found else None
