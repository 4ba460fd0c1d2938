"""The oldest format: the TypeScript CLI of early 2025 wrote one JSON document per agent run, rewritten as a whole.

Policy: a document that does not parse is being written right now, or damaged; what is known of it stays. It has neither
times nor a working directory. Its items are bare records, so the reader of the lines reads them, too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_history_adapters.codex.prompts import message_parts, prompt_text
from acp_history_adapters.codex.reader import Reader
from acp_history_adapters.codex.rollouts import parse_name
from acp_history_bridge.adapter import Inspection, Problem, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import read_small
from acp_history_bridge.jsonl import decode
from acp_history_bridge.timestamps import from_ns, parse_time
from acp_history_bridge.turns import Turn, Usage
from acp_history_bridge.values import JsonMap, mapping, maps, string

__all__ = ["DocumentTranscript", "inspect_document"]

_DOCUMENT_LIMIT = 64 * 1024 * 1024


def _load(path: Path) -> JsonMap:
    data = read_small(path, _DOCUMENT_LIMIT)
    if data is None:
        raise TranscriptError(f"cannot open {path.name}: gone, not readable, or over {_DOCUMENT_LIMIT >> 20} MiB")
    try:
        return mapping(decode(data))
    except ValueError as error:
        raise TranscriptError(f"cannot read {path.name}: not JSON") from error


def inspect_document(unit: Unit) -> Inspection:
    """Find the session of a document."""
    try:
        document = _load(unit.path)
    except TranscriptError as error:
        return Inspection((), (Problem(unit.path, "unreadable", str(error)),), complete=False)
    session, items = mapping(document.get("session")), maps(document.get("items"))
    if not session and not items:
        return Inspection((), (Problem(unit.path, "wrong-type", "not a session document"),))
    name = parse_name(unit.path.name)
    prompts = (prompt_text(message_parts(item)) for item in items if item.get("role") == "user")
    record = SessionRecord(
        native_id=string(session.get("id")) or (name.thread if name else "") or unit.path.stem,
        updated_at=from_ns(unit.fingerprint.mtime_ns),
        rank=name.rank if name else 0,
        title=next((text for text in prompts if text), None),
        created_at=parse_time(session.get("timestamp")),
        listed=any(item.get("type") == "message" and message_parts(item) for item in items),
    )
    return Inspection((record,))


class DocumentTranscript:
    """One document.

    Raises:
        TranscriptError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._items: list[JsonMap] | None = maps(_load(path).get("items"))
        self._count = 0
        self._problems: list[Problem] = []
        self._reader = Reader(lambda _agent: None, lambda what, kind: self._problem(f"unknown-{what}", kind))

    def turns(self) -> Iterator[Turn]:
        """Yield the history, then, call by call, what was added to it."""
        try:
            items = maps(_load(self._path).get("items")) if self._items is None else self._items
        except TranscriptError as error:  # being rewritten; the next call sees it whole
            self._problem("unreadable", str(error))
            return
        self._items = None
        for number in range(self._count, len(items)):
            self._count = number + 1
            yield from self._reader.read(items[number], str(number))
        yield from self._reader.unanswered()

    @property
    def left_out(self) -> int:
        """This format has no rewinds."""
        return 0

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read."""
        return self._problems

    @property
    def usage(self) -> Usage | None:
        """This format has no counts."""
        return None

    def close(self) -> None:
        """Nothing stays open."""

    def _problem(self, kind: str, detail: str) -> None:
        problem = Problem(self._path, kind, detail[:200])
        if problem not in self._problems:
            self._problems.append(problem)
