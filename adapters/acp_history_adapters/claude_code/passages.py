"""What the text index holds of a session: what was said, and what tool calls were about.

Policy: each line stands for itself, so that reading can begin anywhere. Results of tools, copies of files, thoughts and
everything else that is not looked for is passed over by the first bytes of its line. Rewound messages are included.
"""

from collections.abc import Iterator

from acp_history_bridge.adapter import Passage
from acp_history_bridge.jsonl import decode, select_lines
from acp_history_bridge.search.passages import tool_passage
from acp_history_bridge.turns import Text
from acp_history_bridge.values import JsonMap, first_string, items, mapping, string

from .calls import CALL_BLOCKS
from .content import to_content
from .plans import PLAN_TOOLS
from .prompts import joined_text, remove_spans
from .records import Kind, classify
from .said import content_of, turn_of
from .skeleton import METADATA_START, Node
from .tools import Call, look_of

__all__ = ["passages_in"]

_RESULT = (b'"role":"user","content":[{"tool_use_id":', b'"role":"user","content":[{"type":"tool_result",')
_THOUGHT = b'"role":"assistant","content":[{"type":"thinking",'
# Further blocks that are worth decoding. A result made of several texts looks the same and is decoded in vain.
_MORE_TEXT = b'},{"type":"text"'
_MORE_BLOCKS = b'},{"type":"t'
_ATTACHMENT = b'"attachment":{"type":'
_QUEUED = b'"attachment":{"type":"queued_command"'
_PROGRESS = b'"type":"progress","data":'
_HEAD = 512
_UNSAID = frozenset({None, Kind.RESULT, Kind.BOUNDARY, Kind.CONTEXT})
_PLANS = PLAN_TOOLS | {"TodoWrite"}


def passages_in(descriptor: int, since: int, home: str | None) -> Iterator[Passage]:
    """Yield the passages of the lines from byte `since` on; `home` shortens the paths in titles."""
    for line in select_lines(descriptor, since, _is_wanted):
        data = line.data or b""
        if _is_silent(data):
            continue
        try:
            record = mapping(decode(data))
        except ValueError:
            continue
        yield from _passages(record, home, line.end)


def _is_wanted(head: bytes) -> bool:
    if METADATA_START.match(head) or _PROGRESS in head:
        return False
    return _ATTACHMENT not in head or _QUEUED in head


def _is_silent(data: bytes) -> bool:
    head = data[:_HEAD]
    if _RESULT[0] in head or _RESULT[1] in head:
        return _MORE_TEXT not in data
    return _THOUGHT in head and _MORE_BLOCKS not in data


def _passages(record: JsonMap, home: str | None, end: int) -> Iterator[Passage]:
    if record.get("isSidechain") is True:
        return
    kind = classify(record)
    if kind is Kind.ASSISTANT:
        yield from _answer(record, home, end)
    elif kind is Kind.SUMMARY:
        text = remove_spans(joined_text(content_of(record)), "system-reminder").strip()
        yield Passage("message", text, end)
    elif kind is not None and kind not in _UNSAID and (turn := turn_of(record, Node(0, 0, 0, kind))):
        yield from (Passage("message", part.text, end) for part in turn.parts if isinstance(part, Text))


def _answer(record: JsonMap, home: str | None, end: int) -> Iterator[Passage]:
    content = mapping(record.get("message")).get("content")
    for item in [content] if isinstance(content, str) else items(content):
        block = mapping(item)
        if string(block.get("type")) in CALL_BLOCKS:
            yield from _call(block, record, home, end)
        elif not isinstance(block.get("tool_use_id"), str):
            parts = to_content(item if isinstance(item, str) else [item])
            yield from (Passage("message", part.text, end) for part in parts if isinstance(part, Text))


def _call(block: JsonMap, record: JsonMap, home: str | None, end: int) -> Iterator[Passage]:
    name = first_string(block, "name") or "tool"
    if name not in _PLANS:
        server = first_string(block, "server_name") if block.get("type") == "mcp_tool_use" else ""
        look = look_of(Call("", name, mapping(block.get("input")), server, string(record.get("cwd")) or home, home))
        yield tool_passage(look.title, look.locations, end)
