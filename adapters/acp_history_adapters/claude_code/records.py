"""Which lines of a transcript there are, and what each is for the conversation.

Policy: a line is judged by its type and a few flags; a type nobody knows is normal in every new version, is counted,
and never stands between its neighbours.
"""

from enum import IntEnum

from acp_history_bridge.adapter import Problem
from acp_history_bridge.values import JsonMap, items, mapping, maps, string

from .prompts import is_notification, is_summary, joined_text

__all__ = ["METADATA_PREFIXES", "METADATA_TYPES", "Kind", "ProblemLog", "classify", "results_in"]


class Kind(IntEnum):
    """What a line is for the conversation."""

    PROMPT = 1  # the user said something
    RESULT = 2  # only results of tools
    MIXED = 3  # results of tools, and something else beside them
    ASSISTANT = 4
    SUMMARY = 5  # stands in for what was compacted
    BOUNDARY = 6  # where a compaction happened
    QUEUED = 7  # a prompt that was taken into the running turn
    NOTIFICATION = 8  # a background task came to its end
    COMMAND = 9  # a local command, kept as a system line
    CONTEXT = 10  # in the tree, but not for people
    TOO_LARGE = 11


METADATA_TYPES = frozenset(
    {
        *("agent-color", "agent-name", "agent-setting", "ai-title", "api-request", "api-request-blob"),
        *("api-request-shape", "atis-latch", "attribution-snapshot", "bridge-session", "content-replacement"),
        *("continued-in", "cost-state", "custom-title", "file-history-delta", "file-history-snapshot"),
        *("fork-context-ref", "frame-link", "history-suppression", "last-prompt", "marble-origami-commit"),
        *("marble-origami-snapshot", "mode", "permission-mode", "pr-link", "queue-operation", "relocated", "result"),
        *("saved_hook_context", "speculation-accept", "started", "summary", "tag", "task-summary", "teleported-from"),
        *("tools-used", "worktree-state"),
    },
)
# Copies of requests and of files are most of a transcript's bytes; they are told by their first bytes and not decoded.
METADATA_PREFIXES = (
    b'{"type":"api-request',
    b'{"type":"file-history-',
    b'{"type":"tools-used"',
    b'{"type":"atis-latch"',
)

# Sent by another agent or through a channel, to be read by people although they are flagged as injected.
_VISIBLE_ORIGINS = frozenset({"peer", "channel", "teammate"})


def classify(record: JsonMap) -> Kind | None:
    """Say what a line is; None for metadata and for types nobody knows."""
    match record.get("type"):
        case "user":
            return _classify_user(record)
        case "assistant":
            return Kind.ASSISTANT if isinstance(record.get("message"), dict) else Kind.CONTEXT
        case "system":
            kinds = {"compact_boundary": Kind.BOUNDARY, "local_command": Kind.COMMAND}
            return kinds.get(string(record.get("subtype")), Kind.CONTEXT)
        case "attachment":
            return _classify_attachment(mapping(record.get("attachment")))
        case "progress":
            return Kind.CONTEXT
        case _:
            return None


def _classify_user(record: JsonMap) -> Kind:
    content = mapping(record.get("message")).get("content")
    results = sum(block.get("type") == "tool_result" for block in maps(content))
    if results:
        return Kind.RESULT if results == len(items(content)) else Kind.MIXED
    text = joined_text(content)
    if record.get("isCompactSummary") is True or is_summary(text):
        return Kind.SUMMARY
    origin = string(mapping(record.get("origin")).get("kind"))
    if origin == "task-notification" or is_notification(text):
        return Kind.NOTIFICATION
    if record.get("isMeta") is True and origin not in _VISIBLE_ORIGINS:
        return Kind.CONTEXT
    return Kind.PROMPT if content else Kind.CONTEXT


def _classify_attachment(attachment: JsonMap) -> Kind:
    if attachment.get("type") != "queued_command":
        return Kind.CONTEXT
    text = joined_text(attachment.get("prompt"))
    if attachment.get("commandMode") == "task-notification" or is_notification(text):
        return Kind.NOTIFICATION
    return Kind.QUEUED


def results_in(record: JsonMap) -> list[JsonMap]:
    """The blocks of a line that hold the outcome of a tool call, whoever ran the tool."""
    blocks = maps(mapping(record.get("message")).get("content"))
    return [block for block in blocks if isinstance(block.get("tool_use_id"), str)]


class ProblemLog:
    """Problems with equal ones counted, so that a damaged or a much newer file does not fill the memory."""

    def __init__(self) -> None:
        self._found: dict[Problem, list[int]] = {}

    def add(self, problem: Problem) -> None:
        """Count a problem; of equal ones the first line is kept."""
        key = Problem(problem.path, problem.kind, problem.detail)
        entry = self._found.setdefault(key, [0, problem.line or 0])
        entry[0] += 1

    def all(self) -> tuple[Problem, ...]:
        """One problem per kind and detail, with how often it was met."""
        return tuple(
            Problem(
                problem.path,
                problem.kind,
                f"{problem.detail} (x{count})" if count > 1 else problem.detail,
                line or None,
            )
            for problem, (count, line) in self._found.items()
        )
