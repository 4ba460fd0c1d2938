"""Turns as adapters yield them, with every kind of part."""

from collections.abc import Iterator

from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import (
    Compaction,
    Diff,
    Image,
    Location,
    Notice,
    Part,
    Plan,
    PlanEntry,
    Resource,
    ResourceLink,
    Role,
    ShellResult,
    SubagentRun,
    Text,
    Thought,
    ToolCall,
    Turn,
)

__all__ = ["call", "every_kind", "turn"]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def turn(role: Role, *parts: Part | str, identity: str = "t") -> Turn:
    """A turn; strings are texts."""
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Turn(identity, role, made, parse_time("2026-11-18T09:13:33Z"))


def call(title: str = "Edit src/cart.py", *, diff: Diff | None = None, runs: tuple[SubagentRun, ...] = ()) -> ToolCall:
    """A finished tool call."""
    content = () if diff is None else (diff,)
    return ToolCall(
        "c", "tool", title, "edit", "completed", {"a": 1}, None, content, (Location("/w/x", 3),), None, runs
    )


def every_kind() -> list[Turn]:
    """A conversation in which every kind of part occurs, each with a word of its own."""

    def inner() -> Iterator[Turn]:
        yield turn("agent", "subagent-word")

    shell = ToolCall("s", "bash", "shell-title", "execute", "failed", shell=ShellResult("shell-word", 3, "/w"))
    other = ToolCall("o", "mcp", "other-title", "other", "unfinished", {"k": "input-word"}, {"k": "output-word"})
    return [
        turn("user", "prompt-word", Image("image/png", PIXEL), ResourceLink("file:///l", "link-word"), identity="1"),
        turn("agent", Thought("thought-word"), "**answer-word**", identity="2"),
        turn("agent", call(diff=Diff("/w/cart.py", "new-word\n", "old-word\n")), shell, other, identity="2"),
        turn("agent", call("task-title", runs=(SubagentRun("r", "run-word", inner),)), identity="3"),
        turn("agent", Plan((PlanEntry("plan-word", "in_progress"),)), Notice("notice-word"), identity="4"),
        turn("user", Compaction("k", "summary-word"), Resource("file:///r", "resource-word"), identity="5"),
    ]
