"""Tool calls as the model wrote them: function calls, custom calls and the hosted tools of the model's API.

Policy: one table from tool names to a reader. What releases call a shell (`shell`, `shell_command`, `exec_command`)
is one thing here, and a patch is a patch whether it came as its own tool, as an argument vector or in a here-document.
Used for the formats that have no items; paginated rollouts have items (`items.py`).
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace

from acp_history_adapters.codex.outputs import Output, read_output, tool_contents
from acp_history_adapters.codex.patches import BEGIN, FileChange, changes_of_patch
from acp_history_adapters.codex.prompts import file_path
from acp_history_bridge.jsonl import decode
from acp_history_bridge.toolcalls import (
    absolute_path,
    display_path,
    locations,
    mcp_title,
    plan_entry,
    shell_title,
    title,
)
from acp_history_bridge.turns import Plan, ResourceLink, ShellResult, Text, ToolCall, ToolKind, ToolStatus
from acp_history_bridge.values import JsonMap, first_string, items, mapping, maps, string

__all__ = [
    "CALL_TYPES",
    "OUTPUT_TYPES",
    "Call",
    "command_line",
    "edit_call",
    "plan_of",
    "read_call",
    "web_title",
]

CALL_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output"})

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
_PATCH_COMMAND = re.compile(r"^\s*(?:cd\s+\S+\s*&&\s*)?apply_?patch\b")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits for its output.

    Attributes:
        arguments: Decoded where they are JSON, else the string itself under `input`.
    """

    id: str
    name: str
    namespace: str
    arguments: JsonMap
    raw: object
    cwd: str | None

    def finished(self, output: object, *, answered: bool = True) -> ToolCall:
        """The call with its outcome; `answered` is False for one whose outcome never came."""
        result = read_output(output)
        status: ToolStatus = "failed" if result.failed else "completed" if answered else "unfinished"
        build = _BUILDERS.get(self.name, _mcp_or_other)
        return replace(build(self, result), id=self.id, status=status)


def read_call(item: JsonMap, cwd: str | None) -> Call:
    """Read a call of any kind."""
    kind = string(item.get("type"))
    raw = item.get("arguments", item.get("input", item.get("action")))
    arguments: JsonMap = mapping(raw)
    if isinstance(raw, str):
        arguments = _arguments(raw)
    name = string(item.get("name")) or kind.removesuffix("_call")
    identifier = first_string(item, "call_id", "id")
    return Call(identifier, name, string(item.get("namespace")), arguments, arguments or raw, cwd)


def _arguments(raw: str) -> JsonMap:
    if raw.lstrip().startswith("{"):
        try:
            return mapping(decode(raw.encode("utf-8", errors="surrogatepass")))
        except ValueError:  # the model wrote broken JSON, or plain text that starts like it
            pass
    return {"input": raw} if raw else {}


def command_line(value: object) -> str:
    """A command as a person would type it, from a string or an argument vector; `bash -lc` wrappers are taken off."""
    if isinstance(value, str):
        return value
    argv = [string(one) for one in items(value)]
    if len(argv) == 3 and argv[0].rsplit("/", 1)[-1] in _SHELLS and argv[1] in {"-lc", "-c"}:
        return argv[2]
    return shlex.join(argv) if any(argv) else ""


def plan_of(arguments: JsonMap) -> Plan | None:
    """The todo list of an `update_plan` call; None when it has no entries."""
    entries = (plan_entry(one, "step", "content") for one in maps(arguments.get("plan")))
    found = tuple(entry for entry in entries if entry is not None)
    return Plan(found) if found else None


def edit_call(name: str, changes: list[FileChange], cwd: str | None) -> ToolCall:
    """A call that changed files."""
    kinds = {change.kind for change in changes}
    kind: ToolKind = "delete" if kinds == {"delete"} else "move" if kinds == {"move"} else "edit"
    verb = {"delete": "Delete", "move": "Move"}.get(kind, "Edit")
    paths = [change.path for change in changes]
    return ToolCall(
        id="",
        name=name,
        title=title(verb, ", ".join(display_path(path, cwd) for path in paths) or "files"),
        kind=kind,
        status="completed",
        content=tuple(diff for change in changes for diff in change.diffs),
        locations=locations(cwd, *paths),
    )


def web_title(query: str, action: JsonMap) -> tuple[str, ToolKind]:
    """How a web search is called, and whether it searched or fetched."""
    url = string(action.get("url"))
    match action.get("type"):
        case "open_page":
            return title("Open", url or query or "page"), "fetch"
        case "find_in_page":
            return title("Find", f"“{string(action.get('pattern'))}” in {url or 'page'}"), "fetch"
        case _:
            found = (
                query or string(action.get("query")) or next((string(one) for one in items(action.get("queries"))), "")
            )
            return title("Search the web:" if found else "Search the web", found), "search"


def _plain(call: Call, output: Output, heading: str, kind: ToolKind) -> ToolCall:
    return ToolCall(
        id=call.id,
        name=call.name,
        title=heading,
        kind=kind,
        status="completed",
        input=call.raw,
        content=tool_contents(output),
    )


def _shell(call: Call, output: Output) -> ToolCall:
    arguments = call.arguments
    command = arguments.get("command", arguments.get("cmd"))
    line = command_line(command)
    patch = next((string(one) for one in items(command) if BEGIN in string(one)), "")
    if BEGIN in line and (_PATCH_COMMAND.match(line) or items(command)[:1] in (["apply_patch"], ["applypatch"])):
        return _patched(call, output, patch or line)
    cwd = absolute_path(first_string(arguments, "workdir", "working_directory", "cwd"), call.cwd) or call.cwd
    result = ShellResult(output.text, output.exit_code, cwd)
    pictures = tuple(part for part in output.content if not isinstance(part, Text))
    return replace(_plain(call, output, shell_title(line), "execute"), content=pictures, shell=result)


def _stdin(call: Call, output: Output) -> ToolCall:
    typed = string(call.arguments.get("chars"))
    heading = title("Type", typed) if typed.strip() else title("Wait for the terminal")
    return replace(
        _plain(call, output, heading, "execute"), content=(), shell=ShellResult(output.text, output.exit_code)
    )


def _patch(call: Call, output: Output) -> ToolCall:
    return _patched(call, output, first_string(call.arguments, "input", "patch"))


def _patched(call: Call, output: Output, patch: str) -> ToolCall:
    edited = edit_call(call.name, changes_of_patch(patch, call.cwd), call.cwd)
    # What went wrong is worth reading; "Success. Updated the following files" is not.
    complaint = output.content if output.failed else ()
    return replace(edited, input=call.raw, content=(*edited.content, *complaint))


def _update_plan(call: Call, output: Output) -> ToolCall:
    explanation = string(call.arguments.get("explanation"))
    told = (Text(explanation),) if explanation else ()
    return replace(
        _plain(call, output, "Update the plan", "think"), content=(*told, *(output.content if output.failed else ()))
    )


def _view_image(call: Call, output: Output) -> ToolCall:
    path = absolute_path(file_path(call.arguments.get("path")), call.cwd)
    call_made = _plain(call, output, title("View", display_path(path, call.cwd)), "read")
    link = () if call_made.content else (ResourceLink(f"file://{path}", path.rsplit("/", 1)[-1]),)
    return replace(call_made, content=(*call_made.content, *link), locations=locations(call.cwd, path))


def _web_search(call: Call, output: Output) -> ToolCall:
    return _plain(call, output, *web_title(string(call.arguments.get("query")), call.arguments))


def _script(call: Call, output: Output) -> ToolCall:
    return _plain(call, output, "Run a script", "execute")


def _spawn(call: Call, output: Output) -> ToolCall:
    return _plain(call, output, title("Start a sub-agent:", first_string(call.arguments, "message", "prompt")), "think")


def _mcp_or_other(call: Call, output: Output) -> ToolCall:
    server, tool = _mcp_name(call.name, call.namespace)
    return _plain(call, output, mcp_title(server, tool), "other")


def _mcp_name(name: str, namespace: str) -> tuple[str, str]:
    if namespace.startswith("mcp__"):
        return namespace.removeprefix("mcp__").removesuffix("__"), name
    server, separator, tool = name.removeprefix("mcp__").partition("__")
    return (server, tool) if separator and server and tool else ("", name or "tool")


_BUILDERS: dict[str, Callable[[Call, Output], ToolCall]] = {
    "shell": _shell,
    "container.exec": _shell,
    "local_shell": _shell,
    "shell_command": _shell,
    "exec_command": _shell,
    "write_stdin": _stdin,
    "apply_patch": _patch,
    "update_plan": _update_plan,
    "view_image": _view_image,
    "web_search": _web_search,
    "exec": _script,
    "spawn_agent": _spawn,
}
