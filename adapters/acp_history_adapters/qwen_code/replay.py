"""Turns of a transcript's active branch, and what was added to it since.

Policy: one turn per record. A call is shown with its outcome, in its own place; one whose outcome arrives later is
shown again. Slash commands are what the user typed; what they answered is shown where it is text. The prompts that the
tool writes for itself while it pursues a goal are not shown: no person wrote or saw them.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from acp_history_adapters.qwen_code.chain import Chain, Node
from acp_history_adapters.qwen_code.places import outputs_of
from acp_history_adapters.qwen_code.records import Kind, blob_part, content_parts, display_text, prompt_parts
from acp_history_adapters.qwen_code.subagents import Subagent, Subagents
from acp_history_adapters.qwen_code.tools import ToolContext, tool_part
from acp_history_bridge.adapter import Problem, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Compaction, Notice, Part, Role, SubagentRun, Text, Thought, ToolCall, Turn, Usage
from acp_history_bridge.values import JsonMap, first_string, integer, mapping, maps, string

__all__ = ["LinesTranscript", "open_session"]

_TEXT_ITEMS = frozenset({"info", "assistant", "text", "gemini", "error", "warning", "success"})


def open_session(unit: Unit, cwd: str | None, parent: str | None) -> "LinesTranscript":
    """Open a session.

    Args:
        unit: Where it lies.
        cwd: Its directory.
        parent: The session it was forked from, whose sub-agents it shows where it copied their calls.

    Raises:
        TranscriptError: It is gone or cannot be opened.
    """
    return _Session(unit, cwd, parent).opened(unit.path, frozenset())


class _Session:
    """What a session's own transcript shares with those of its sub-agents."""

    def __init__(self, unit: Unit, cwd: str | None, parent: str | None) -> None:
        self._cwd = cwd
        self._outputs = outputs_of(unit.store, cwd)
        self._subagents = Subagents(unit.path, [unit.path.stem, *([parent] if parent else [])])
        self._problems: list[Problem] = []

    def opened(self, path: Path, ancestors: frozenset[Path]) -> "LinesTranscript":
        """Open one of the transcripts; `ancestors` are those that led to it."""
        runs = partial(self._runs, ancestors | {path})
        return LinesTranscript(path, ToolContext(self._cwd, self._outputs, runs), self._problems)

    def _runs(self, ancestors: frozenset[Path], call_id: str) -> tuple[SubagentRun, ...]:
        return tuple(
            SubagentRun(agent.id, agent.name, partial(self._turns, agent, ancestors))
            for agent in self._subagents.of_call(call_id)
            if agent.path not in ancestors
        )

    def _turns(self, agent: Subagent, ancestors: frozenset[Path]) -> "Iterator[Turn]":
        try:
            transcript = self.opened(agent.path, ancestors)
        except TranscriptError as error:
            self._problems.append(Problem(agent.path, "unreadable", str(error)))
            return
        with closing(transcript):
            yield from transcript.turns()


class LinesTranscript:
    """The turns of one `.jsonl` transcript, be it a session's or a sub-agent's."""

    def __init__(self, path: Path, context: ToolContext, problems: list[Problem]) -> None:
        """Open the file.

        Raises:
            TranscriptError: It is gone or cannot be opened.
        """
        self._path = path
        self._context = context
        self._problems = problems
        self._chain = Chain(path, problems)
        self._started = False
        self._left_out = 0
        self._usage: Usage | None = None
        self._files = ExitStack()
        self._descriptor = self._files.enter_context(open_regular(path))

    def turns(self) -> Iterator[Turn]:
        """Yield the history; later what was added."""
        first = self._chain.read(self._descriptor)
        shown, left_out = self._chain.active(first)
        self._left_out += left_out
        if self._started:
            yield from self._calls_again(first)
        self._started = True
        for index in shown:
            yield from self._turn(self._chain.nodes[index], index)

    @property
    def left_out(self) -> int:
        """Messages that were rewound."""
        return self._left_out

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems)

    @property
    def usage(self) -> Usage | None:
        """What the last answer says of the model's context."""
        return self._usage

    def close(self) -> None:
        """Free the descriptor."""
        self._files.close()

    def _calls_again(self, first: int) -> Iterator[Turn]:
        """The calls shown before whose outcome is new."""
        late = self._chain.touched
        places = {place for call in late for place in self._chain.calls.get(call, ()) if place < first}
        for index in sorted(places):
            node = self._chain.nodes[index]
            record = self._chain.record(self._descriptor, index)
            ids = [string(mapping(part.get("functionCall")).get("id")) for part in content_parts(record)]
            calls = tuple(
                part
                for call, part in zip(ids, self._answer(record, index), strict=True)
                if call in late and isinstance(part, ToolCall)
            )
            if calls:
                yield self._made(node, record, "agent", calls)

    def _turn(self, node: Node, index: int) -> Iterator[Turn]:
        if node.kind in {Kind.SILENT, Kind.RESULT, Kind.REWIND}:
            return
        if node.kind is Kind.TOO_LARGE:
            note = Text(f"[record too large to show: {node.size // 1_000_000} MB]")
            yield Turn(node.id, "agent", (note,), synthetic=True)
            return
        record = self._chain.record(self._descriptor, index)
        payload = mapping(record.get("systemPayload"))
        match node.kind:
            case Kind.PROMPT:
                yield from self._made_if(node, record, "user", prompt_parts(record))
            case Kind.ANSWER:
                self._count(record)
                yield from self._made_if(node, record, "agent", [part for part in self._answer(record, index) if part])
            case Kind.NOTIFICATION:
                shown = display_text(record)
                parts: list[Part] = [Text(shown)] if shown else prompt_parts(record)
                yield from self._made_if(node, record, "user", parts, synthetic=True)
            case Kind.COMMAND:
                yield from self._command(node, record, payload)
            case Kind.COMPRESSION:
                if history := maps(payload.get("compressedHistory")):
                    summary = "".join(string(part.get("text")) for part in maps(history[0].get("parts")))
                    yield self._made(node, record, "agent", (Compaction(node.id, summary),), synthetic=True)
            case _:
                event = mapping(payload.get("uiEvent"))
                text = first_string(event, "error_message", "error", "error_type") or "the request failed"
                yield self._made(node, record, "agent", (Notice(f"API error: {text}"),), synthetic=True)

    def _command(self, node: Node, record: JsonMap, payload: JsonMap) -> Iterator[Turn]:
        if payload.get("phase") == "invocation":
            typed = string(payload.get("rawCommand"))
            if payload.get("hiddenInvocation") is not True and typed:
                yield self._made(node, record, "user", (Text(typed),))
            return
        items = [item for item in maps(payload.get("outputHistoryItems")) if string(item.get("type")) in _TEXT_ITEMS]
        # The output of a command is no Markdown: without hard breaks its lines would run together.
        parts: list[Part] = [Text(text.replace("\n", "  \n")) for item in items if (text := string(item.get("text")))]
        yield from self._made_if(node, record, "agent", parts, synthetic=True)

    def _answer(self, record: JsonMap, index: int) -> Iterator[Part | None]:
        """The parts of an answer, None for an empty one."""
        for part in content_parts(record):
            call = mapping(part.get("functionCall"))
            text = string(part.get("text"))
            if call:
                yield self._call(call, index)
            elif text:
                yield Thought(text) if part.get("thought") is True else Text(text)
            else:
                yield blob_part(part)

    def _call(self, call: JsonMap, index: int) -> Part:
        native = string(call.get("id"))
        places = self._chain.calls.get(native, [])
        number = places.index(index) if index in places else 0
        # Some model servers count their calls anew for each answer: the outcome is the one before the next such call.
        end = places[number + 1] if number + 1 < len(places) else len(self._chain.nodes)
        results = [place for place in self._chain.results.get(native, ()) if index < place < end]
        result = self._chain.record(self._descriptor, results[0]) if results else None
        call_id = native or f"{self._chain.nodes[index].id}-call"
        return tool_part(call_id if number == 0 else f"{call_id}#{number + 1}", call, result, self._context)

    def _count(self, record: JsonMap) -> None:
        used = integer(mapping(record.get("usageMetadata")).get("totalTokenCount"))
        if used and used > 0:
            self._usage = Usage(used, integer(record.get("contextWindowSize")))

    def _made_if(
        self, node: Node, record: JsonMap, role: Role, parts: Sequence[Part], *, synthetic: bool = False
    ) -> Iterator[Turn]:
        if parts:
            yield self._made(node, record, role, tuple(parts), synthetic=synthetic)

    def _made(
        self, node: Node, record: JsonMap, role: Role, parts: tuple[Part, ...], *, synthetic: bool = False
    ) -> Turn:
        model = string(record.get("model")) or None
        return Turn(node.id, role, parts, parse_time(record.get("timestamp")), model, synthetic=synthetic)
