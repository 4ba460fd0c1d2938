"""Turns that are not the agent's answers: prompts, what the tool said to its user, reports of background tasks.

Policy: only what a person typed is a message of the user. What the tool wrote into the user's mouth is synthetic, a
notice, or nothing.
"""

from collections.abc import Iterator

from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Notice, Part, Text, Turn
from acp_history_bridge.values import JsonMap, items, mapping, string

from .content import fenced, to_content
from .prompts import Prompt, read_notification, read_prompt
from .records import Kind
from .skeleton import Node, notification_text

__all__ = ["content_of", "turn_of"]


def content_of(record: JsonMap) -> object:
    """The content of a user line, of a prompt that was taken into the running turn, or of a local command."""
    if record.get("type") == "attachment":
        return mapping(record.get("attachment")).get("prompt")
    if record.get("type") == "system":
        return record.get("content")
    return mapping(record.get("message")).get("content")


def turn_of(record: JsonMap, node: Node) -> Turn | None:
    """The turn of a line that is no answer; None when there is nothing to show. Its id is not made unique yet."""
    attachment = mapping(record.get("attachment"))
    name = string(attachment.get("source_uuid")) or string(record.get("uuid")) or f"line-{node.number}"
    timestamp = parse_time(attachment.get("timestamp")) or parse_time(record.get("timestamp"))
    if node.kind is Kind.TOO_LARGE:
        text = f"[record too large to show: {max(1, round(node.size / 1_000_000))} MB]"
        return Turn(name, "agent", (Text(text),), timestamp, synthetic=True)
    if node.kind is Kind.NOTIFICATION:
        note = read_notification(notification_text(record))
        parts = tuple(Text(text) for text in (note.result or note.summary,) if text)
        return Turn(name, "agent", parts, timestamp, synthetic=True) if parts else None
    found = list(_parts(content_of(record)))
    if not found:
        return None
    # What a terminal answers by itself, and what it prints, is shown, but is no message to the agent.
    synthetic = record.get("isMeta") is True or not any(typed for _, typed in found)
    return Turn(name, "user", tuple(part for part, _ in found), timestamp, synthetic=synthetic)


def _parts(content: object) -> Iterator[tuple[Part, bool]]:
    """Each part, and whether the user gave it."""
    for item in [content] if isinstance(content, str) else items(content):
        block = mapping(item)
        if isinstance(item, str):
            yield from _of_prompt(read_prompt(item))
        elif block.get("type") == "text":
            yield from _of_prompt(read_prompt(string(block.get("text"))))
        elif block.get("type") != "tool_result":
            yield from ((part, True) for part in to_content([item]))


def _of_prompt(prompt: Prompt) -> Iterator[tuple[Part, bool]]:
    if prompt.notice:
        yield Notice(prompt.notice), False
    if prompt.text.strip():
        yield Text(prompt.text), not prompt.local
    if prompt.output:
        yield Text(fenced(prompt.output, "console")), False
