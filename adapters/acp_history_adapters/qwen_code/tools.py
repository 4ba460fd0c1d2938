"""Qwen Code's tools as tool calls and plans.

Policy: `toolCallResult.status` says how a call ended; a refused one counts as failed. Text comes from the response to
the model, whose wrapping of shell output is taken off; edits from the whole files that are stored with them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.qwen_code.records import blob_part, content_parts
from acp_history_bridge.files import read_small
from acp_history_bridge.toolcalls import (
    absolute_path,
    display_path,
    locations,
    mcp_title,
    plan_entry,
    shell_title,
    title,
)
from acp_history_bridge.turns import (
    Diff,
    Plan,
    ShellResult,
    SubagentRun,
    Text,
    ToolCall,
    ToolContent,
    ToolKind,
    ToolStatus,
)
from acp_history_bridge.values import JsonMap, first_string, integer, items, mapping, maps, string

__all__ = ["ToolContext", "tool_part"]

_STATUSES: dict[str, ToolStatus] = {"success": "completed", "error": "failed", "cancelled": "failed"}
# Name to kind, verb and the arguments that name the object; the first that is there is shown.
_TOOLS: dict[str, tuple[ToolKind, str, tuple[str, ...]]] = {
    "read_file": ("read", "Read", ("file_path", "absolute_path")),
    "list_directory": ("read", "List", ("path",)),
    "read_many_files": ("read", "Read files", ()),
    "glob": ("search", "Find", ("pattern",)),
    "grep_search": ("search", "Search", ("pattern",)),
    "search_file_content": ("search", "Search", ("pattern",)),
    "edit": ("edit", "Edit", ("file_path",)),
    "replace": ("edit", "Edit", ("file_path",)),
    "write_file": ("edit", "Write", ("file_path",)),
    "web_fetch": ("fetch", "Fetch", ("url", "prompt")),
    "web_search": ("fetch", "Search the web", ("query",)),
    "agent": ("think", "Agent", ("description",)),
    "task": ("think", "Agent", ("description",)),
    "save_memory": ("other", "Remember", ("fact",)),
    "skill": ("other", "Skill", ("skill", "name")),
    "exit_plan_mode": ("switch_mode", "Leave plan mode", ()),
    "todo_write": ("think", "Update todo list", ()),
}
_SHELL = "run_shell_command"
_EDITS = ("edit", "replace", "write_file")
_AGENTS = ("agent", "task")
_PATHS = ("file_path", "absolute_path", "path")
_OUTPUT_NAME = re.compile(r"run_shell_command_[0-9a-f]{1,64}\.output")
_OUTPUT_LIMIT = 8 * 1024 * 1024
# What the model is told of a command; `(empty)` and `(none)` stand for nothing.
_SHELL_TEXT = re.compile(
    r"Command: .*?\nDirectory: [^\n]*\n(?:Output|Stdout): (.*)\nError: (.*?)\nExit Code: (\S+)", re.DOTALL
)
_NO_TEXT = frozenset({"(empty)", "(none)"})


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call cannot say of itself.

    Attributes:
        cwd: The session's directory.
        outputs: Where shortened outputs lie in full.
        subagents: The conversations that a call with this id started.
    """

    cwd: str | None
    outputs: Path
    subagents: Callable[[str], tuple[SubagentRun, ...]]


def tool_part(call_id: str, call: JsonMap, result: JsonMap | None, context: ToolContext) -> ToolCall | Plan:
    """Make the call, or the plan that it wrote.

    Args:
        call_id: Unique in the session.
        call: The `functionCall`.
        result: The record with its outcome; None while there is none.
        context: What else is needed.
    """
    name = string(call.get("name"))
    arguments = mapping(call.get("args"))
    outcome = mapping((result or {}).get("toolCallResult"))
    response = _response(string(call.get("id")), result or {})
    status = "unfinished" if result is None else _status(outcome, response)
    if name == "todo_write" and status != "failed" and (plan := _plan(arguments)):
        return plan
    kind, called = _label(name, arguments, context.cwd)
    display = mapping(outcome.get("resultDisplay"))
    edits = [_diff(name, arguments, display, context.cwd)] if name in _EDITS and status == "completed" else []
    shell = _shell_result(outcome, response, context) if name == _SHELL and result is not None else None
    return ToolCall(
        id=call_id,
        name=name,
        title=called,
        kind=kind,
        status=status,
        input=call.get("args"),
        content=() if shell else (*edits, *_content(name, arguments, display, response)),
        locations=locations(context.cwd, first_string(arguments, *_PATHS)),
        shell=shell,
        subagents=context.subagents(string(call.get("id"))) if name in _AGENTS else (),
    )


def _response(call_id: str, result: JsonMap) -> JsonMap:
    """The part that answers a call; a record holds one, older versions may have put several into it."""
    responses = [mapping(part.get("functionResponse")) for part in content_parts(result)]
    own = [response for response in responses if response.get("id") == call_id]
    return mapping((own or responses or [{}])[0].get("response"))


def _status(outcome: JsonMap, response: JsonMap) -> ToolStatus:
    # A sub-agent's results have no status.
    return _STATUSES.get(string(outcome.get("status"))) or ("failed" if "error" in response else "completed")


def _plan(arguments: JsonMap) -> Plan | None:
    entries = tuple(entry for item in maps(arguments.get("todos")) if (entry := plan_entry(item, "content")))
    return Plan(entries) if entries else None


def _label(name: str, arguments: JsonMap, cwd: str | None) -> tuple[ToolKind, str]:
    if name == _SHELL:
        return "execute", shell_title(string(arguments.get("command")))
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return "other", mcp_title(server, tool) if tool else title(server)
    if name == "ask_user_question":
        asked = " / ".join(string(question.get("question")) for question in maps(arguments.get("questions")))
        return "other", title("Ask:", asked) if asked else "Ask"
    if name not in _TOOLS:
        return "other", title(name)
    kind, verb, keys = _TOOLS[name]
    subject = first_string(arguments, *keys)
    first, count = integer(arguments.get("offset")), integer(arguments.get("limit"))
    detail = f"{(first or 0) + 1} - {(first or 0) + count}" if count else ""  # `offset` counts from 0
    return kind, title(verb, display_path(subject, cwd) if set(keys) & set(_PATHS) else subject, detail)


def _content(name: str, arguments: JsonMap, display: JsonMap, response: JsonMap) -> list[ToolContent]:
    content: list[ToolContent] = []
    text = string(response.get("error")) or string(response.get("output")) or string(display.get("text"))
    if name == "exit_plan_mode":
        text = "\n\n".join(filter(None, (string(arguments.get("plan")), text)))
    if text:
        content.append(Text(text))
    content += [made for part in maps(response.get("parts")) if (made := blob_part(part))]
    return content


def _diff(name: str, arguments: JsonMap, display: JsonMap, cwd: str | None) -> Diff:
    path = absolute_path(string(arguments.get("file_path")), cwd)
    before, after = display.get("originalContent"), display.get("newContent")
    if isinstance(after, str):
        return Diff(path, after, before if isinstance(before, str) and before else None)
    if name == "write_file":
        return Diff(path, string(arguments.get("content")))
    return Diff(path, string(arguments.get("new_string")), string(arguments.get("old_string")) or None)


def _shell_result(outcome: JsonMap, response: JsonMap, context: ToolContext) -> ShellResult:
    display = mapping(outcome.get("resultDisplay"))
    told = string(response.get("output")) or string(response.get("error"))
    wrapped = _SHELL_TEXT.search(told)
    if display.get("type") == "shell_result":
        full = _full_output(display, context.outputs)
        text = _unwrapped(full) or string(display.get("output"))
        return ShellResult(text, integer(display.get("exitCode")), string(display.get("directory")) or context.cwd)
    if wrapped:
        return ShellResult(_unwrapped(told), int(wrapped[3]) if wrapped[3].isdecimal() else None, context.cwd)
    return ShellResult(told or string(outcome.get("resultDisplay")), None, context.cwd)


def _unwrapped(told: str) -> str:
    wrapped = _SHELL_TEXT.search(told)
    if wrapped is None:
        return told
    return "\n".join(piece for piece in wrapped.groups()[:2] if piece not in _NO_TEXT)


def _full_output(display: JsonMap, outputs: Path) -> str:
    for path in items(display.get("outputFiles")):
        # Only the last part of the path is used: a transcript does not say what is opened.
        name = re.split(r"[/\\]", string(path))[-1]
        if _OUTPUT_NAME.fullmatch(name) and (full := read_small(outputs / name, _OUTPUT_LIMIT)) is not None:
            return full.decode("utf-8", "replace")
    return ""
