"""Turns as readable Markdown: what a sub-agent did inside a tool call, and what `/show` prints.

User and agent text is there in full, a tool call is one line. A sub-agent's digest is bounded while it is made, for
sub-agents can be many times larger than their parent.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.protocol.bounds import shorten_middle
from acp_history_bridge.text import one_line
from acp_history_bridge.turns import (
    Compaction,
    Image,
    Part,
    Plan,
    Resource,
    ResourceLink,
    SubagentRun,
    Text,
    ToolCall,
    Turn,
)

__all__ = ["fold_subagent", "paragraphs", "plan_text"]

_NOTES = 512  # for the heading and what is said of parts left out
_MARKS = {"completed": "✓", "failed": "✗", "unfinished": "…"}


def paragraphs(turns: Iterable[Turn]) -> Iterator[str]:
    """One Markdown paragraph for each part that says something."""
    for turn in turns:
        for part in turn.parts:
            shown = _paragraph(part)
            if shown:
                yield f"**User:** {shown}" if turn.role == "user" and isinstance(part, Text) else shown


def _paragraph(part: Part) -> str:
    if isinstance(part, Text):
        return part.text.strip()
    if isinstance(part, ToolCall):
        title = (one_line(part.title) or one_line(part.name)).replace("`", "'")
        return f"- {_MARKS[part.status]} `{title}`"
    if isinstance(part, Plan):
        return plan_text(part)
    if isinstance(part, Compaction):
        return "*Conversation compacted.*"
    if isinstance(part, Image):
        return f"[Image {part.mime_type}]"
    if isinstance(part, Resource | ResourceLink):
        return f"[Attachment {one_line(part.uri)}]"
    return ""  # thoughts and notices


def plan_text(plan: Plan) -> str:
    """A todo list as a Markdown task list."""
    return "\n".join(f"- [{'x' if entry.status == 'completed' else ' '}] {entry.content}" for entry in plan.entries)


def fold_subagent(run: SubagentRun, limit: int) -> str:
    """A sub-agent's prompt, texts, tool calls and conclusion in about `limit` bytes, the middle left out."""
    half = max(limit // 2 - _NOTES, _NOTES)
    head = [f"**Sub-agent {one_line(run.name) or one_line(run.id)}**"]
    tail: deque[str] = deque()
    head_room = tail_room = half
    dropped = 0
    try:
        for paragraph in paragraphs(run.turns()):
            piece = shorten_middle(paragraph, half)
            if not tail and _size(piece) <= head_room:
                head.append(piece)
                head_room -= _size(piece)
                continue
            tail.append(piece)
            tail_room -= _size(piece)
            while len(tail) > 1 and tail_room < 0:
                tail_room += _size(tail.popleft())
                dropped += 1
    except (OSError, TranscriptError):
        tail.append("[The rest of this sub-agent's transcript cannot be read.]")
    if dropped:
        head.append(f"[… {dropped:,} messages and calls left out …]")
    return "\n\n".join([*head, *tail])


def _size(paragraph: str) -> int:
    return len(paragraph.encode(errors="replace")) + 2  # the blank line after it
