"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json[l]`. Format and decisions: docs/tools/gemini-cli.md."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from acp_history_adapters.gemini_cli.metadata import inspect_chat
from acp_history_adapters.gemini_cli.passages import document_passages, line_passages
from acp_history_adapters.gemini_cli.paths import (
    LOG,
    affected,
    discover,
    stores,
    transcript_hash,
    transcript_ids,
    unit_at,
)
from acp_history_adapters.gemini_cli.projects import Projects
from acp_history_adapters.gemini_cli.promptlog import LOG_RANK, PromptLog, inspect_log
from acp_history_adapters.gemini_cli.transcript import ChatTranscript
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
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular

__all__ = ["GeminiCli"]


class GeminiCli(Adapter):
    """Histories of Google's Gemini CLI, version 0.2 and later."""

    name = "gemini-cli"
    prefix = "gemini"
    title = "Gemini CLI"

    def __init__(self) -> None:
        self._projects = Projects()

    def stores(self, environment: Environment) -> Iterable[Store]:
        """Name the one store."""
        return stores(self.name, environment)

    def discover(self, store: Store) -> Discovery:
        """List transcripts and prompt logs."""
        return discover(store)

    def unit(self, store: Store, path: Path) -> Unit | None:
        """Stat one of them."""
        return unit_at(store, path)

    def affected(self, store: Store, path: Path) -> Affected:
        """Map a changed path to units."""
        return affected(store, path)

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """Find the session of a transcript, or those of a prompt log."""
        if unit.path.name == LOG:
            folder = unit.path.parent
            project = self._projects.project(folder)
            return inspect_log(unit, project, project.path_hash or transcript_hash(folder), transcript_ids(folder))
        try:
            with open_regular(unit.path) as descriptor:
                return inspect_chat(descriptor, unit, self._projects, known)
        except (TranscriptError, OSError) as error:
            return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Open a session."""
        if unit.path.name == LOG:
            return PromptLog(unit, record.native_id)
        return ChatTranscript(unit.path, record.native_id, record.cwd)

    def passages(self, unit: Unit, record: SessionRecord, since: int = 0, *, output: bool = False) -> Iterator[Passage]:
        """Yield what the text index holds; of lines only the new ones."""
        lines = unit.path.suffix == ".jsonl"
        if not lines and (output or unit.path.name == LOG):
            yield from super().passages(unit, record, since, output=output)
            return
        with open_regular(unit.path) as descriptor:
            if lines:
                yield from line_passages(descriptor, record.cwd, since, output=output)
            else:
                yield from document_passages(unit.path, descriptor, record.cwd)

    def resume_command(self, record: SessionRecord) -> Command | None:
        """`gemini --resume ID` in the project's directory, the only place where the tool finds the session."""
        if record.cwd is None or record.rank == LOG_RANK or record.native_id.startswith("-"):
            return None
        return Command(("gemini", "--resume", record.native_id), record.cwd)

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """A copy of the chat under a new id."""
        from acp_history_adapters.gemini_cli.fork import fork_chat

        return fork_chat(unit, record)

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """All transcripts with its id, its sub-agents and its long outputs."""
        from acp_history_adapters.gemini_cli.owned import files_of

        return files_of(unit, record, self._projects)
