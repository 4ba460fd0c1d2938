"""The transcripts of 0.1: one JSON document of messages, rewritten as a whole, without the directory's name.

The directory is known by its hash only, which the folder and the document carry.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_history_adapters.qwen_code.records import prompt_parts, prompt_text
from acp_history_adapters.qwen_code.tools import ToolContext, tool_part
from acp_history_bridge.adapter import Inspection, Problem, SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import read_small, stat_regular
from acp_history_bridge.jsonl import LINE_LIMIT, decode
from acp_history_bridge.timestamps import from_ns, parse_time
from acp_history_bridge.turns import Notice, Part, Thought, Turn, Usage
from acp_history_bridge.values import JsonMap, first_string, integer, items, mapping, maps, string

__all__ = ["DOCUMENT_RANK", "DocumentTranscript", "inspect_document"]

DOCUMENT_RANK = 0
"""The rank of a session that no later version can resume."""

_AGENT = frozenset({"qwen", "gemini", "model"})
_TOLD = frozenset({"info", "error", "warning"})


def inspect_document(unit: Unit) -> Inspection:
    """Read the whole document: it is small, because tool calls are not stored."""
    document = _read(unit.path)
    if document is None:
        kind = "too-large" if unit.fingerprint.size > LINE_LIMIT else "half-written"
        return Inspection((), (Problem(unit.path, kind, "the document is not whole"),), complete=kind == "too-large")
    modified = from_ns(unit.fingerprint.mtime_ns)
    messages = maps(document.get("messages"))
    digest = string(document.get("projectHash")) or unit.path.parents[1].name
    prompts = (prompt_text(_as_record(message)).strip() for message in messages if message.get("type") == "user")
    record = SessionRecord(
        string(document.get("sessionId")) or unit.path.stem,
        min(parse_time(document.get("lastUpdated")) or modified, modified),
        origin=unit.path.parents[1].name,
        rank=DOCUMENT_RANK,
        title=next(filter(None, prompts), None),
        cwd_digest=f"sha256:{digest}",
        created_at=parse_time(document.get("startTime")),
        listed=bool(messages),
        message_count=sum(string(message.get("type")) not in _TOLD and bool(_text(message)) for message in messages),
        model=next((model for message in reversed(messages) if (model := string(message.get("model")))), None),
    )
    return Inspection((record,))


def _read(path: Path) -> JsonMap | None:
    try:
        return mapping(decode(read_small(path, LINE_LIMIT) or b"")) or None
    except ValueError:
        return None


def _as_record(message: JsonMap) -> JsonMap:
    """A message in the shape of the later records."""
    content = message.get("content")
    pieces = [content] if isinstance(content, str) else items(content)
    return {"message": {"parts": [{"text": piece} if isinstance(piece, str) else piece for piece in pieces]}}


def _text(message: JsonMap) -> str:
    return prompt_text(_as_record(message))


class DocumentTranscript:
    """The turns of one document."""

    def __init__(self, path: Path, context: ToolContext) -> None:
        """Look whether it is there.

        Raises:
            TranscriptError: It is not.
        """
        if stat_regular(path) is None:
            raise TranscriptError(f"cannot open {path.name}: no such file")
        self._path = path
        self._context = context
        self._numbers: dict[str, int] = {}
        self._shown: dict[str, int] = {}  # how many parts of a message
        self._usage: Usage | None = None
        self._problems: list[Problem] = []

    def turns(self) -> Iterator[Turn]:
        """Yield the messages; later what was added to them."""
        document = _read(self._path)
        if document is None:
            self._problems.append(Problem(self._path, "half-written", "the document is not whole"))
            return
        for number, message in enumerate(maps(document.get("messages"))):
            turn_id = string(message.get("id")) or f"message-{number}"
            if number != self._numbers.setdefault(turn_id, number):
                turn_id = f"{turn_id}#{number}"
            yield from self._turn(turn_id, message)

    def _turn(self, turn_id: str, message: JsonMap) -> Iterator[Turn]:
        parts = tuple(self._parts(turn_id, message))
        known = self._shown.get(turn_id, 0)
        self._shown[turn_id] = len(parts)
        if parts[known:]:
            by_user = message.get("type") == "user"
            model = string(message.get("model")) or None
            time = parse_time(message.get("timestamp"))
            yield Turn(turn_id, "user" if by_user else "agent", parts[known:], time, model)

    def _parts(self, turn_id: str, message: JsonMap) -> Iterator[Part]:
        kind = string(message.get("type"))
        if kind in _TOLD:
            yield Notice(_text(message))
            return
        if kind != "user":
            if kind not in _AGENT:
                self._problems.append(Problem(self._path, "unknown-record", f"message {kind[:80]}"))
            for thought in maps(message.get("thoughts")):
                told = [first_string(thought, name) for name in ("subject", "description")]
                if text := "\n\n".join(filter(None, told)):
                    yield Thought(text)
            used = integer(mapping(message.get("tokens")).get("total"))
            self._usage = Usage(used) if used and used > 0 else self._usage
        yield from prompt_parts(_as_record(message))
        for number, call in enumerate(maps(message.get("toolCalls"))):
            result = {
                "message": {"parts": call.get("result")},
                "toolCallResult": {"status": call.get("status"), "resultDisplay": call.get("resultDisplay")},
            }
            call_id = string(call.get("id")) or f"{turn_id}-{number}"
            yield tool_part(call_id, call, result if call.get("result") else None, self._context)

    @property
    def left_out(self) -> int:
        """Nothing is kept of what was taken back."""
        return 0

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the last answer."""
        return self._usage

    def close(self) -> None:
        """Nothing is kept open."""
