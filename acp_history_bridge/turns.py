"""Turns: what an adapter yields and everything else feeds on.

A turn is one message of the user or the agent. Turns are neutral: the ACP wire, the terminal, exports and the text
index are made from the same objects, so nothing here is specific to a protocol version. Field names follow ACP in
snake_case. Adapters put complete content into turns; whoever sends them shortens tool payloads to its own bounds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

__all__ = [
    "Compaction",
    "Diff",
    "Image",
    "Location",
    "Notice",
    "Part",
    "Plan",
    "PlanEntry",
    "PlanPriority",
    "PlanStatus",
    "Resource",
    "ResourceLink",
    "Role",
    "ShellResult",
    "SubagentRun",
    "Text",
    "Thought",
    "ToolCall",
    "ToolContent",
    "ToolKind",
    "ToolStatus",
    "Turn",
    "Usage",
]

Role = Literal["user", "agent"]
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolStatus = Literal["completed", "failed", "unfinished"]
PlanStatus = Literal["pending", "in_progress", "completed"]
PlanPriority = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Text:
    """Markdown text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """What the agent thought before it answered, as far as the tool stores it readably."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: base64 `data`, or only a `uri` where the transcript has no bytes. The uri is never fetched."""

    mime_type: str
    data: str = ""
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """An attachment whose content lies in the transcript: either `text`, or base64 in `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """An attachment that is only named. It is passed on as data and never opened or fetched."""

    uri: str
    name: str
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """One file's change. `old_text` is None for a new file; `path` is absolute where the transcript allows it."""

    path: str
    new_text: str
    old_text: str | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """A place a tool call touched: an absolute path and a 1-based line."""

    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a shell command printed, and how it ended. `exit_code` is None where the tool does not store it."""

    output: str
    exit_code: int | None = None
    cwd: str | None = None


ToolContent = Text | Image | Resource | ResourceLink | Diff


@dataclass(frozen=True, slots=True)
class SubagentRun:
    """A sub-agent's own conversation, folded into the tool call that started it.

    `turns` reads them when called, because sub-agents can be many times larger than their parent.
    """

    id: str
    name: str
    turns: Callable[[], Iterator["Turn"]] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call with its outcome.

    Attributes:
        id: Unique in the session; a later part with the same id replaces this one (live sessions only).
        name: The tool's programmatic name as the transcript has it.
        title: What a person reads: the command of a shell, `Edit src/cart.py`, …; one line.
        status: `unfinished` when the transcript holds no outcome; the core decides whether that is still running.
        input: The arguments, any JSON value, or None when not stored.
        output: The raw result, any JSON value, or None. Small structured results only; text belongs in `content`.
        content: The readable result, in order.
        shell: Set instead of text content for shell commands, so that clients can draw a terminal.
        subagents: The conversations this call started.
    """

    id: str
    name: str
    title: str
    kind: ToolKind
    status: ToolStatus
    input: object = None
    output: object = None
    content: tuple[ToolContent, ...] = ()
    locations: tuple[Location, ...] = ()
    shell: ShellResult | None = None
    subagents: tuple[SubagentRun, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One line of a todo list."""

    content: str
    status: PlanStatus
    priority: PlanPriority = "medium"


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole todo list as of this moment; it replaces the one before."""

    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class Compaction:
    """The tool replaced everything before this point by a summary for its model; the history itself goes on."""

    id: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the tool told its user beside the conversation, e.g. "Request cancelled."; shown, never replayed."""

    text: str


Part = Text | Thought | Image | Resource | ResourceLink | ToolCall | Plan | Compaction | Notice


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes:
        id: Stable over loads and unique in the session. A turn with the id of the turn just before it continues that
            message (an answer that is still being written, or that tool results interrupt).
        timestamp: Aware, UTC; None where the transcript has none.
        model: Which model answered, for turns of the agent.
        synthetic: The tool wrote this turn, not the user or the model; it is shown but not counted as a message.
    """

    id: str
    role: Role
    parts: tuple[Part, ...]
    timestamp: datetime | None = None
    model: str | None = None
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in the model's context, its size, and the cost so far, as far as the transcript records them."""

    used: int
    size: int | None = None
    cost: float | None = None
    currency: str = "USD"
