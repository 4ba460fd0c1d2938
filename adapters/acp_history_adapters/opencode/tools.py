"""opencode's tools as tool calls and plans.

Policy: a tool part holds the call and its outcome. `status` is opencode's own, so a command that ended with an exit
code other than 0 is completed; its code is in `shell`. What opencode shortened is taken from the file in its own
`tool-output` directory where that still exists. Unknown tools (MCP servers, plugins) keep their name and stored title.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.opencode.attachments import attachment
from acp_history_bridge.files import read_small
from acp_history_bridge.toolcalls import absolute_path, display_path, locations, plan_entry, shell_title, title
from acp_history_bridge.turns import (
    Diff,
    Location,
    Part,
    Plan,
    ShellResult,
    SubagentRun,
    Text,
    ToolCall,
    ToolContent,
    ToolKind,
    ToolStatus,
)
from acp_history_bridge.values import JsonMap, first_string, integer, mapping, maps, string

__all__ = ["ToolContext", "tool_part"]

_STATUSES: dict[str, ToolStatus] = {"completed": "completed", "error": "failed"}
# Name to kind, verb and the inputs that name the object; the first that is there is shown.
_TOOLS: dict[str, tuple[ToolKind, str, tuple[str, ...]]] = {
    "read": ("read", "Read", ("filePath",)),
    "list": ("read", "List", ("path",)),
    "glob": ("search", "Find", ("pattern",)),
    "grep": ("search", "Search", ("pattern",)),
    "edit": ("edit", "Edit", ("filePath",)),
    "multiedit": ("edit", "Edit", ("filePath",)),
    "write": ("edit", "Write", ("filePath",)),
    "patch": ("edit", "Apply patch", ()),
    "apply_patch": ("edit", "Apply patch", ()),
    "webfetch": ("fetch", "Fetch", ("url",)),
    "websearch": ("fetch", "Search the web", ("query",)),
    "codesearch": ("fetch", "Search code", ("query",)),
    "task": ("think", "Task", ("description",)),
    "skill": ("other", "Skill", ("name",)),
    "plan_enter": ("switch_mode", "Plan", ()),
    "plan_exit": ("switch_mode", "Leave plan mode", ()),
    "invalid": ("other", "Invalid tool call", ("tool",)),
}
_PATHS = ("filePath", "path")
_SHELLS = ("bash", "shell")
_OUTPUT_NAME = re.compile(r"tool_[A-Za-z0-9]{1,64}")
_OUTPUT_LIMIT = 8 * 1024 * 1024
_CHILD = re.compile(r'(?:<task id="|task_id: )(ses_[A-Za-z0-9]+)')
_TASK_RESULT = re.compile(r"<task_result>\n?(.*?)\n?</task_result>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool part cannot say of itself.

    Attributes:
        cwd: The session's directory.
        outputs: Where shortened outputs lie in full.
        subagent: Makes the conversation of a child session; None when there is no such session.
    """

    cwd: str | None
    outputs: Path
    subagent: Callable[[str, str], SubagentRun | None]


def tool_part(part_id: str, data: JsonMap, context: ToolContext) -> Part:
    """Make the plan or the call that a tool part stands for."""
    name = string(data.get("tool"))
    state = mapping(data.get("state"))
    arguments = mapping(state.get("input"))
    status = _STATUSES.get(string(state.get("status")), "unfinished")
    if name == "todowrite" and status != "failed" and (plan := _plan(arguments)):
        return plan
    kind, called = _label(name, arguments, state, context.cwd)
    text = _output(state, context.outputs)
    shell = name in _SHELLS
    return ToolCall(
        id=part_id,
        name=name,
        title=called,
        kind=kind,
        status="failed" if name == "invalid" else status,
        input=state.get("input"),
        content=_content(name, arguments, state, "" if shell else text, context.cwd),
        locations=_locations(arguments, state, context.cwd),
        shell=_shell_result(arguments, state, text, context.cwd) if shell else None,
        subagents=_subagents(arguments, state, text, context) if name == "task" else (),
    )


def _plan(arguments: JsonMap) -> Plan | None:
    entries = tuple(entry for item in maps(arguments.get("todos")) if (entry := plan_entry(item, "content")))
    return Plan(entries) if entries else None


def _label(name: str, arguments: JsonMap, state: JsonMap, cwd: str | None) -> tuple[ToolKind, str]:
    if name in _SHELLS:
        return "execute", shell_title(string(arguments.get("command")) or string(state.get("title")))
    if name not in _TOOLS:
        return "other", title(string(state.get("title")) or name)
    kind, verb, keys = _TOOLS[name]
    subject = first_string(arguments, *keys)
    if keys and keys[0] in _PATHS:
        subject = display_path(subject, cwd)
    return kind, title(verb, subject, _range(arguments))


def _range(arguments: JsonMap) -> str:
    first, count = integer(arguments.get("offset")), integer(arguments.get("limit"))
    if first is None and count is None:
        return ""
    return f"{first or 1} - {(first or 1) + count - 1}" if count else f"from {first}"


def _output(state: JsonMap, outputs: Path) -> str:
    """What the tool answered: in full where opencode kept it, what it said so far while it runs."""
    metadata = mapping(state.get("metadata"))
    if state.get("status") == "error":
        return string(state.get("error")) or string(metadata.get("output"))
    # Only the last part of the path is used: a transcript does not say what is opened.
    name = re.split(r"[/\\]", string(metadata.get("outputPath")))[-1]
    if _OUTPUT_NAME.fullmatch(name) and (full := read_small(outputs / name, _OUTPUT_LIMIT)) is not None:
        return full.decode("utf-8", "replace")
    return string(state.get("output")) or string(metadata.get("output"))


def _shell_result(arguments: JsonMap, state: JsonMap, text: str, cwd: str | None) -> ShellResult:
    directory = string(arguments.get("workdir"))
    exit_code = integer(mapping(state.get("metadata")).get("exit"))
    return ShellResult(text, exit_code, absolute_path(directory, cwd) if directory else cwd)


def _content(name: str, arguments: JsonMap, state: JsonMap, text: str, cwd: str | None) -> tuple[ToolContent, ...]:
    content: list[ToolContent] = []
    if state.get("status") == "completed":
        content += _diffs(name, arguments, mapping(state.get("metadata")), cwd)
        if name == "read":
            display = mapping(mapping(state.get("metadata")).get("display"))
            text = string(display.get("text")) or text
        elif name == "task" and (result := _TASK_RESULT.search(text)):
            text = result[1]
    if text:
        content.append(Text(text))
    content += [made for item in maps(state.get("attachments")) if (made := attachment(item))]
    return tuple(content)


def _diffs(name: str, arguments: JsonMap, metadata: JsonMap, cwd: str | None) -> list[Diff]:
    path = absolute_path(string(arguments.get("filePath")), cwd)
    if name == "write":
        return [Diff(path, string(arguments.get("content")))]
    if name == "edit":
        return [_file_diff(mapping(metadata.get("filediff")), path) or _edit_diff(arguments, path)]
    if name == "multiedit":
        return [_edit_diff(edit, path) for edit in maps(arguments.get("edits"))]
    if name in ("patch", "apply_patch"):
        return [diff for item in maps(metadata.get("files")) if (diff := _file_diff(item, ""))]
    return []


def _file_diff(data: JsonMap, path: str) -> Diff | None:
    """A diff of whole files, which 1.0 to 1.15 store; later versions store a patch."""
    before, after = data.get("before"), data.get("after")
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    return Diff(path or first_string(data, "filePath", "file"), after, before or None)


def _edit_diff(arguments: JsonMap, path: str) -> Diff:
    return Diff(path, string(arguments.get("newString")), string(arguments.get("oldString")) or None)


def _locations(arguments: JsonMap, state: JsonMap, cwd: str | None) -> tuple[Location, ...]:
    metadata = mapping(state.get("metadata"))
    line = integer(mapping(metadata.get("display")).get("lineStart"))
    touched = [first_string(item, "filePath", "file") for item in maps(metadata.get("files"))]
    return locations(cwd, first_string(arguments, *_PATHS), *touched, line=line if line != 1 else None)


def _subagents(arguments: JsonMap, state: JsonMap, text: str, context: ToolContext) -> tuple[SubagentRun, ...]:
    metadata = mapping(state.get("metadata"))
    mentioned = _CHILD.search(text)
    child = (
        first_string(metadata, "sessionId", "sessionID")
        # 0.5 names the child only in its summary of what the child did.
        or next((string(item.get("sessionID")) for item in maps(metadata.get("summary"))), "")
        or (mentioned[1] if mentioned else "")
    )
    run = context.subagent(child, string(arguments.get("subagent_type")) or "task") if child else None
    return (run,) if run else ()
