"""Qwen Code: one JSON Lines file per session; in 0.1 one JSON document."""

from collections.abc import Iterable
from pathlib import Path

from acp_history_adapters.qwen_code.document import DOCUMENT_RANK, DocumentTranscript, inspect_document
from acp_history_adapters.qwen_code.metadata import inspect_lines
from acp_history_adapters.qwen_code.places import affected_by, discover, is_document, outputs_of, stores_at, unit_at
from acp_history_adapters.qwen_code.replay import open_session
from acp_history_adapters.qwen_code.tools import ToolContext
from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Command,
    Discovery,
    Environment,
    Fork,
    Inspection,
    Known,
    Problem,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import ForkError, TranscriptError

__all__ = ["QwenCode"]


class QwenCode(Adapter):
    """Reads the histories of Qwen Code."""

    name = "qwen-code"
    prefix = "qwen"
    title = "Qwen Code"

    def stores(self, environment: Environment) -> Iterable[Store]:
        """`~/.qwen`, and what replaces it."""
        return stores_at(self.name, environment)

    def discover(self, store: Store) -> Discovery:
        """List all transcripts."""
        return discover(store)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat a transcript."""
        return unit_at(store, path)

    def affected(self, store: Store, path: Path) -> Affected:
        """Map a changed path."""
        return affected_by(store, path)

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Look at the first and last lines."""
        try:
            return inspect_document(unit) if is_document(unit.path) else inspect_lines(unit, known)
        except (TranscriptError, OSError) as error:
            return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a session."""
        if is_document(unit.path):
            context = ToolContext(record.cwd, outputs_of(unit.store, record.cwd), lambda _: ())
            return DocumentTranscript(unit.path, context)
        return open_session(unit, record.cwd, record.parent)

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`qwen --resume ID`; no version can go on with a document of 0.1."""
        if record.rank == DOCUMENT_RANK:
            return None
        return Command(("qwen", "--resume", record.native_id), record.cwd)

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """A copy of the active branch under a new id."""
        from acp_history_adapters.qwen_code.fork import fork_session

        if is_document(unit.path):
            raise ForkError("this session is older than the format that Qwen Code can go on with")
        return fork_session(unit, record)

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """The transcript, what lies beside it, and its sub-agents."""
        from acp_history_adapters.qwen_code.owned import files_of

        return files_of(unit, record)
