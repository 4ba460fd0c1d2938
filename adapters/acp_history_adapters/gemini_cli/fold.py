"""The message list of a JSON Lines transcript, as the tool itself derives it from the file.

Policy (formats: one JSON object a line, classified in this order):

- `$rewindTo` drops a message and all after it; with an unknown id, all.
- A message replaces an earlier one with the same id at its old place.
- `$set` merges into the metadata; with a `messages` array the list is cleared and rebuilt from it.
- A header merges into the metadata; there can be several.

Further than the tool: what was dropped is remembered (`dropped`), and a rebuild that brings a new `<state_snapshot>` is
a compaction, before which all messages stay (`_archive`). The messages that a compaction kept come again under new ids
behind the snapshot; these copies are not shown twice.

Only places and ids are held, never content.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from acp_history_adapters.gemini_cli.messages import said, snapshot_of
from acp_history_adapters.gemini_cli.records import Problems, Ref, Source, array_of, key_of, message_id, object_of
from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["Changes", "Fold", "is_header"]

_HEAD = 4096


def is_header(record: JsonMap) -> bool:
    """Whether a record names the session; such lines can come again."""
    return isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)


@dataclass(slots=True)
class Changes:
    """What reading on has touched: messages in order, and whether the list was rebuilt, perhaps under new ids."""

    keys: dict[str, Ref] = field(default_factory=dict[str, Ref])
    rebuilt: bool = False


class Fold:
    """Folds the lines of one file; `advance` reads what is new."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.dropped: dict[str, Ref] = {}
        self._source = source
        self._problems = problems
        self._offset = 0
        self._current: dict[str, Ref] = {}
        self._earlier: dict[str, Ref] = {}  # the version before the last one, should that turn out to be damaged
        self._archive: list[tuple[str, Ref]] = []  # messages before the last compaction
        self._archived: list[int] = []  # what they said
        self._snapshots: set[str] = set()
        self._copies: set[str] = set()
        self._changes = Changes()

    @property
    def end(self) -> int:
        """How far the file was read."""
        return self._offset

    def advance(self) -> Changes:
        """Read the lines that were added; an unfinished last line waits for its end."""
        self._changes = Changes()
        for line in read_lines(self._source.descriptor, self._offset):
            if not self._take(line):
                break
            self._offset = line.end
        return self._changes

    def view(self) -> Iterator[tuple[str, Ref]]:
        """The messages to show, in order: all before the last compaction, then the tool's own list."""
        yield from self._archive
        for key, ref in self._current.items():
            if key not in self._copies:
                yield key, ref

    def message(self, key: str, ref: Ref) -> JsonMap | None:
        """Read one message; a damaged one falls back to the version it replaced."""
        message = self._source.message(ref)
        if message is None:
            self._problem("bad-line", "message", ref.offset)
            if earlier := self._earlier.get(key):
                message = self._source.message(earlier)
        return message

    def _problem(self, kind: str, detail: str, offset: int) -> None:
        self._problems.add(Problem(self._source.path, kind, f"{detail} at byte {offset}"))

    def _take(self, line: Line) -> bool:
        """Fold one line in; False when it is not finished yet."""
        if line.data is None:
            self._take_oversized(line)
            return not line.pending
        data = line.data.strip()
        if not data:
            return True
        if not line.pending and (key := message_id(data)) and data.endswith(b"}"):
            self._upsert(key, Ref(line.offset, line.size))
            return True
        try:
            record = object_of(decode(data))
        except ValueError:
            record = None
        if record is not None:
            self._take_record(record, line)
        elif not line.pending:
            self._problem("bad-line", "no JSON object", line.offset)
        return record is not None or not line.pending

    def _take_oversized(self, line: Line) -> None:
        if not line.pending:
            self._problem("too-large", f"a record of {line.size} bytes", line.offset)
            if key := message_id(read_at(self._source.descriptor, line.offset, _HEAD)):
                self._upsert(key, Ref(line.offset, line.size))

    def _take_record(self, record: JsonMap, line: Line) -> None:
        rewind, key = record.get("$rewindTo"), record.get("id")
        if isinstance(rewind, str):
            self._rewind(rewind)
        elif isinstance(key, str):
            self._upsert(key, Ref(line.offset, line.size))
        elif isinstance(record.get("$set"), dict):
            if (messages := array_of(record)) is not None:
                self._rebuild(messages, line)
        elif is_header(record):
            for index, message in enumerate(array_of(record) or ()):
                if fields := object_of(message):
                    self._upsert(key_of(fields, index), Ref(line.offset, line.size, index))
        else:
            names = ",".join(sorted(str(name)[:40] for name in record)[:4])
            self._problem("unknown-record", f"line:{names}", line.offset)

    def _upsert(self, key: str, ref: Ref) -> None:
        if before := self._current.get(key):
            self._earlier[key] = before
        self._current[key] = ref
        self._changes.keys[key] = ref

    def _rewind(self, key: str) -> None:
        keys = list(self._current)
        if key not in self._current:
            self._rewind_archive(key)
        for name in keys[keys.index(key) :] if key in self._current else keys:
            self.dropped[name] = self._current.pop(name)
            self._changes.keys.pop(name, None)

    def _rewind_archive(self, key: str) -> None:
        start = next((place for place, (archived, _) in enumerate(self._archive) if archived == key), 0)
        self.dropped.update(self._archive[start:])
        del self._archive[start:]
        self._archived = self._words(self._source.message(ref) for _, ref in self._archive)

    def _rebuild(self, messages: Sequence[object], line: Line) -> None:
        decoded = [(key_of(mapping(item), place), mapping(item)) for place, item in enumerate(messages)]
        listed = {key: Ref(line.offset, line.size, place) for place, (key, message) in enumerate(decoded) if message}
        snapshots = {text for _, message in decoded if (text := snapshot_of(message)) is not None}
        gone = [(key, ref) for key, ref in self._current.items() if key not in listed]
        if gone and snapshots - self._snapshots:
            self._archive_current()
        else:
            self.dropped.update(gone)
        self._snapshots |= snapshots
        self._current = listed
        for key in listed:
            self.dropped.pop(key, None)
        self._copies = self._find_copies(decoded) if self._archive else set()
        self._changes = Changes(dict(listed), rebuilt=True)

    def _archive_current(self) -> None:
        kept = [(key, ref) for key, ref in self._current.items() if key not in self._copies]
        self._archive += kept
        self._archived += self._words(self._source.message(ref) for _, ref in kept)

    @staticmethod
    def _words(messages: Iterable[JsonMap | None]) -> list[int]:
        return [words for message in messages if message and (words := said(message)) is not None]

    def _find_copies(self, decoded: list[tuple[str, JsonMap]]) -> set[str]:
        """The messages behind the snapshot that repeat the end of what came before it."""
        start = next((place for place, (_, message) in enumerate(decoded) if snapshot_of(message) is not None), None)
        if start is None:
            return set()
        behind = decoded[start + 1 :]
        spoken = [(place, number) for place, (_, message) in enumerate(behind) if (number := said(message)) is not None]
        words = [number for _, number in spoken]
        for length in range(min(len(words), len(self._archived)), 0, -1):
            if words[:length] == self._archived[-length:]:
                return {key for key, _ in behind[: spoken[length - 1][0] + 1]}
        return set()
