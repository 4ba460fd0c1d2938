"""Claude Code: one JSON Lines file per session, a tree of messages in each. See docs/tools/claude-code.md."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Fork,
    Inspection,
    Known,
    Passage,
    Problem,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.files import list_directory, open_regular, read_small
from acp_history_bridge.jsonl import decode
from acp_history_bridge.values import integer, mapping, string

from . import paths
from .metadata import inspect
from .transcript import ClaudeTranscript

__all__ = ["ClaudeCode"]

_PROCESS_FILE_LIMIT = 64 * 1024


class ClaudeCode(Adapter):
    """Histories of Anthropic's Claude Code, of all versions since 0.2."""

    name = "claude-code"
    prefix = "claude"
    title = "Claude Code"

    def stores(self, environment: Environment) -> Iterable[Store]:
        """The configured root, and the one of versions 1.0.30 and 1.0.31."""
        return paths.stores(self.name, environment)

    def discover(self, store: Store) -> Discovery:
        """List `<slug>/<uuid>.jsonl`."""
        return paths.discover(store)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat one session now."""
        return paths.unit(store, path)

    def affected(self, store: Store, path: Path) -> Affected:
        """Map a changed path to its session."""
        return paths.affected(store, path)

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Find what a list shows of a session in its first and last lines."""
        return inspect(unit, known)

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a session's transcript."""
        return ClaudeTranscript(unit.path, record.cwd)

    def passages(self, unit: Unit, record: SessionRecord, since: int = 0, *, output: bool = False) -> Iterator[Passage]:
        """Go on at a line; with output, whose place is known only after the whole file, read everything again."""
        if output:
            yield from super().passages(unit, record, output=True)
            return
        # Search is loaded by those who build its index.
        from .passages import passages_in

        with open_regular(unit.path) as descriptor:
            yield from passages_in(descriptor, since, record.cwd)

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`claude --resume ID`, from the session's directory."""
        if not paths.is_session_id(record.native_id):
            return None
        return Command(("claude", "--resume", record.native_id), record.cwd)

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """A copy of the conversation under new ids."""
        from .fork import fork_session

        return fork_session(unit, record)

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """The transcript, and the directory of its own with sub-agents, titles and long results."""
        del record
        directory = paths.session_directory(unit.path)
        return (unit.path, directory) if directory.is_dir() and not directory.is_symlink() else (unit.path,)

    def active_sessions(self, store: Store) -> frozenset[str]:
        """Sessions of the processes that have a file in `sessions/` and are still there."""
        problems: list[Problem] = []  # without the directory nothing is known to run
        entries = list_directory(store.root.parent / "sessions", problems) or ()
        # A `.key` file lies beside each: it holds a secret and is not opened.
        found = (_running_session(Path(entry.path)) for entry in entries if entry.name.endswith(".json"))
        return frozenset(session for session in found if session)


def _running_session(path: Path) -> str:
    data = read_small(path, _PROCESS_FILE_LIMIT)
    try:
        record = mapping(decode(data or b"null"))
    except ValueError:  # it is rewritten in place, so it can be met half-written
        return ""
    pid = integer(record.get("pid"))
    return string(record.get("sessionId")) if pid is not None and _is_alive(pid) else ""


def _is_alive(pid: int) -> bool:
    if pid <= 0:  # 0 and below mean process groups
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
