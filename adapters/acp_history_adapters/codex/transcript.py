"""The opened transcript of a thread: its chain of rollouts on the first reading, what was appended on the next ones.

Policy: the rollout's descriptor stays open, so a file that is archived or replaced meanwhile is still read to its end.
A record over the line limit is replaced by a line that says so. The last line counts once it is whole JSON, with or
without its newline.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from acp_history_adapters.codex.chains import (
    Segment,
    Skipped,
    bases_of,
    count_messages,
    has_marker,
    meta_of,
    rolled_back,
)
from acp_history_adapters.codex.items import Spawned
from acp_history_adapters.codex.lines import Source, first_record, open_source
from acp_history_adapters.codex.reader import Reader
from acp_history_adapters.codex.rollouts import Rollouts
from acp_history_bridge.adapter import Passage, Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.jsonl import Line, decode, select_lines
from acp_history_bridge.turns import SubagentRun, Text, Turn, Usage
from acp_history_bridge.values import JsonMap, integer, string

__all__ = ["RolloutTranscript"]

_PROBLEM_LIMIT = 200
# Type and subtype of a record stand within its first bytes.
_HEAD = 200
# Nobody looks for these; what the agent said stands in an event as well.
_SILENT = (
    b'"payload":{"type":"token_count"',
    b'"payload":{"type":"agent_reasoning"',
    b'"payload":{"type":"reasoning"',
    b'"payload":{"type":"message","role":"assistant"',
)


class RolloutTranscript:
    """One thread, read from its current rollout.

    Raises:
        TranscriptError: The rollout cannot be opened.
    """

    def __init__(self, path: Path, rollouts: Rollouts, ancestors: frozenset[str] = frozenset()) -> None:
        self._path = path
        self._rollouts = rollouts
        self._stack = ExitStack()
        self._source = self._stack.enter_context(open_source(path))
        self._problems: list[Problem] = []
        self._told: set[tuple[str, str]] = set()
        self._meta = meta_of(first_record(self._source, []))
        self._thread = string(self._meta.get("id"))
        self._ancestors = ancestors | {self._thread}
        self._reader = Reader(self._run, self._unknown)
        # Records before this one are the parent's context, which a sub-agent started with.
        self._first = integer(self._meta.get("subagent_history_start_ordinal")) or 0
        self._offset = 0
        self._line = 0
        self._left_out = 0
        self._begun = False

    def turns(self) -> Iterator[Turn]:
        """Yield the history, then, call by call, what was added to it."""
        if not self._begun:
            self._begun = True
            yield from self._bases()
            skipped = rolled_back(self._lines()) if has_marker(self._lines()) else []
            self._left_out += sum(one.messages for one in skipped)
            yield from self._own(skipped)
        elif not self._source.compressed:
            yield from self._own([])
        yield from self._reader.unanswered()

    def passages(self, since: int, *, output: bool) -> Iterator[Passage]:
        """Yield what the text index holds from byte `since` on; tool output is not even decoded unless wanted."""
        from acp_history_bridge.search.passages import passages_of

        if not since:
            yield from passages_of(self._bases(), output=output)
        end = since
        wanted = _is_decoded if output else _is_worth_finding
        for number, line in enumerate(select_lines(self._source.descriptor, since, wanted), 1):
            record = self._record(line, self._path, number)
            if line.pending and record is None:
                break
            end = line.end
            for passage in passages_of(self._turns(line, record, str(line.offset)), output=output):
                yield Passage(passage.kind, passage.text, end)
        for passage in passages_of(self._reader.unanswered(), output=output):
            yield Passage(passage.kind, passage.text, end)

    @property
    def left_out(self) -> int:
        """Messages that were rolled back, or left behind by a rewind."""
        return self._left_out

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read."""
        return self._problems

    @property
    def usage(self) -> Usage | None:
        """Tokens in the context as last counted."""
        return self._reader.usage

    def close(self) -> None:
        """Close the rollout."""
        self._stack.close()

    def _lines(self) -> Iterator[Line]:
        return self._source.lines([])

    def _own(self, skipped: list[Skipped]) -> Iterator[Turn]:
        ranges = iter(skipped)
        skip = next(ranges, None)
        for line in self._source.lines(self._problems, self._offset):
            self._line += 1
            record = self._record(line, self._path, self._line)
            if line.pending and record is None:
                return
            self._offset = line.end
            while skip is not None and line.offset >= skip.end:
                skip = next(ranges, None)
            if skip is None or line.offset < skip.start:
                yield from self._turns(line, record, str(line.offset))

    def _bases(self) -> Iterator[Turn]:
        segments = bases_of(self._meta, self._path, self._rollouts, self._problems)
        for number, segment in enumerate(segments):
            try:
                with open_source(segment.path) as source:
                    yield from self._base(source, segment, f"{len(segments) - number}.")
            except TranscriptError as error:
                self._problems.append(Problem(segment.path, "unreadable", str(error)))
        if segments and any(segment.thread == self._thread for segment in segments):
            self._left_out += self._off_the_chain({self._path, *(segment.path for segment in segments)})

    def _base(self, source: Source, segment: Segment, prefix: str) -> Iterator[Turn]:
        lines = source.lines(self._problems)
        for number, line in enumerate(lines, 1):
            record = self._record(line, segment.path, number)
            if segment.end is not None and record and not _is_before(record, segment.end, default=True):
                break
            yield from self._turns(line, record, f"{prefix}{line.offset}")
        if segment.end is not None and segment.thread == self._thread:
            self._left_out += count_messages(source.lines([]), segment.end)

    def _off_the_chain(self, chain: set[Path]) -> int:
        """Messages in rollouts of this thread that were rewound altogether."""
        count = 0
        for path in self._rollouts.of_thread(self._thread):
            if path not in chain:
                try:
                    with open_source(path) as source:
                        count += count_messages(source.lines([]))
                except TranscriptError as error:
                    self._problems.append(Problem(path, "unreadable", str(error)))
        return count

    def _turns(self, line: Line, record: JsonMap | None, key: str) -> Iterator[Turn]:
        if line.data is None:
            megabytes = line.size / 1_000_000
            note = Text(f"[A record of {megabytes:.0f} MB is too large to be shown.]")
            yield Turn(key, "agent", (note,), synthetic=True)
        elif record and not _is_before(record, self._first):
            yield from self._reader.read(record, key)

    def _record(self, line: Line, path: Path, number: int) -> JsonMap | None:
        """Decode a line; None for one that holds no record."""
        if line.data is None:
            self._problem(Problem(path, "too-large", f"{line.size} bytes", number))
            return None
        if not line.data.strip():
            return None
        try:
            value = decode(line.data)
        except ValueError:
            if not line.pending:
                self._problem(Problem(path, "bad-line", "not JSON", number))
            return None
        if isinstance(value, dict):
            return cast("JsonMap", value)
        if not line.pending:
            self._problem(Problem(path, "wrong-type", "not an object", number))
        return None

    def _problem(self, problem: Problem) -> None:
        if len(self._problems) < _PROBLEM_LIMIT:
            self._problems.append(problem)

    def _unknown(self, what: str, kind: str) -> None:
        """Report a kind of record once, however often it occurs."""
        if len(self._told) < _PROBLEM_LIMIT and (what, kind) not in self._told:
            self._told.add((what, kind))
            self._problem(Problem(self._path, f"unknown-{what}", kind[:80]))

    def _run(self, agent: Spawned) -> SubagentRun | None:
        if agent.thread in self._ancestors:
            return None
        path = self._rollouts.current(agent.thread)
        return None if path is None else SubagentRun(agent.thread, agent.name, lambda: self._folded(path))

    def _folded(self, path: Path) -> Iterator[Turn]:
        transcript = RolloutTranscript(path, self._rollouts, self._ancestors)
        try:
            yield from transcript.turns()
        finally:
            transcript.close()


def _is_decoded(head: bytes) -> bool:
    """Whether a record can hold anything for the text index; what it repeats is told by its first bytes."""
    head = head[:_HEAD]
    if b'"ordinal"' in head and b'"response_item"' in head:
        return False
    return not any(kind in head for kind in _SILENT)


def _is_worth_finding(head: bytes) -> bool:
    return b'_call_output"' not in head[:_HEAD] and _is_decoded(head)


def _is_before(record: JsonMap, ordinal: int, *, default: bool = False) -> bool:
    own = integer(record.get("ordinal"))
    return default if own is None else own < ordinal
