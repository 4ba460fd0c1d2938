"""Tool calls of Gemini CLI: names, kinds, titles, and where each tool leaves its result.

Policy:

- The result given to the model is shown, not the interface's abbreviation of it; but where that was cut ("Output too
  large"), the interface's full text or the side file is.
- Parameter names changed over the versions, so all of them are accepted.
- `success` is completed whatever a shell command's exit code was; that one stands in the shell result.
"""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

from acp_history_adapters.gemini_cli.messages import media, parts_of
from acp_history_adapters.gemini_cli.shell import shell_result, unwrap
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
    Location,
    Plan,
    SubagentRun,
    Text,
    ToolCall,
    ToolContent,
    ToolKind,
    ToolStatus,
)
from acp_history_bridge.values import JsonMap, boolean, first_string, integer, items, mapping, maps, string

__all__ = ["Surroundings", "call_id", "call_part", "call_with_response", "subject_of"]

_PATHS = ("file_path", "absolute_path", "path", "dir_path")
_KINDS: dict[str, ToolKind] = {
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "search",
    "glob": "search",
    "grep_search": "search",
    "search_file_content": "search",
    "google_web_search": "search",
    "write_file": "edit",
    "replace": "edit",
    "run_shell_command": "execute",
    "web_fetch": "fetch",
    "update_topic": "think",
    "invoke_agent": "think",
    "enter_plan_mode": "switch_mode",
    "exit_plan_mode": "switch_mode",
}
_VERBS = {
    "read_file": "Read",
    "list_directory": "List",
    "write_file": "Write",
    "replace": "Edit",
}
_SUBJECTS = {
    "read_many_files": ("Read", ("include", "paths")),
    "glob": ("Find", ("pattern",)),
    "grep_search": ("Search", ("pattern",)),
    "search_file_content": ("Search", ("pattern",)),
    "google_web_search": ("Search the web:", ("query",)),
    "web_fetch": ("Fetch", ("prompt", "url")),
    "update_topic": ("Topic:", ("title",)),
    "invoke_agent": ("Delegate to", ("agent_name",)),
    "save_memory": ("Remember:", ("fact",)),
    "activate_skill": ("Use skill", ("name",)),
}
_MCP_DISPLAY = re.compile(r"(?P<tool>.+) \((?P<server>.+) MCP Server\)")
_MCP_NAME = re.compile(r"mcp_(?P<server>[^_]+)_(?P<tool>.+)|(?P<server2>.+?)__(?P<tool2>.+)")
_CUT = re.compile(r"Output too large\. .*?For full output see: (?P<path>[^\n]+)", re.DOTALL)
_LABEL_LIMIT = 120
_STATUSES: dict[str, ToolStatus] = {"success": "completed", "error": "failed", "cancelled": "failed"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a call needs to know of its session.

    Attributes:
        cwd: Makes paths absolute.
        spilled: Reads the side file of a cut output by its base name; None when there is none.
        subagent: Finds a sub-agent's own transcript by its id and name.
    """

    cwd: str | None
    spilled: Callable[[str], str | None]
    subagent: Callable[[str, str], SubagentRun | None]


def call_id(call: JsonMap, key: str, number: int) -> str:
    """The id of a call; one without gets a name by its place."""
    return string(call.get("id")) or f"{key}-{number}"


def call_with_response(call: JsonMap, response: JsonMap | None) -> JsonMap:
    """Put a `functionCall` and the `functionResponse` to it into the shape of a `toolCalls` entry."""
    if response is None:
        return {**call, "status": "executing"}
    failed = bool(mapping(response.get("response")).get("error"))
    result = [{"functionResponse": response}]
    return {"name": response.get("name"), **call, "status": "error" if failed else "success", "result": result}


def call_part(identity: str, call: JsonMap, surroundings: Surroundings) -> ToolCall | Plan:
    """Describe one `toolCalls` entry; a todo list becomes a plan."""
    name = string(call.get("name"))
    args = mapping(call.get("args"))
    status = _STATUSES.get(string(call.get("status")), "unfinished")
    if name == "write_todos" and status == "completed" and (plan := _plan(call, args)):
        return plan
    output = _Output(call, surroundings)
    is_shell = name == "run_shell_command" and bool(output.told or output.shown)
    shell = shell_result(output.told, output.shown, status, output.full) if is_shell else None
    change = _change(name, call, args, surroundings.cwd) if status == "completed" else None
    run = surroundings.subagent(string(call.get("agentId")), string(args.get("agent_name")))
    return ToolCall(
        id=identity,
        name=name,
        title=_title(name, call, args, surroundings.cwd),
        kind=_KINDS.get(name, "other"),
        status=status,
        input=call.get("args"),
        content=() if shell else (change,) if change else output.content(),
        locations=_locations(call, args, surroundings.cwd),
        shell=shell,
        subagents=(run,) if run else (),
    )


def subject_of(call: JsonMap, cwd: str | None) -> tuple[str, tuple[Location, ...]]:
    """What a call is about, without its outcome: the title, and the paths it touches."""
    args = mapping(call.get("args"))
    return _title(string(call.get("name")), call, args, cwd), _locations(call, args, cwd)


def _plan(call: JsonMap, args: JsonMap) -> Plan | None:
    todos = maps(mapping(call.get("resultDisplay")).get("todos")) or maps(args.get("todos"))
    entries = [entry for todo in todos if (entry := plan_entry(todo, "description", "content"))]
    return Plan(tuple(entries)) if entries else None


class _Output:
    """What a call returned: as the model was told, as the interface showed it, in full where the two were cut."""

    def __init__(self, call: JsonMap, surroundings: Surroundings) -> None:
        texts: list[str] = []
        self._media: list[ToolContent] = []
        for part in _own_parts(call):
            response = mapping(part.get("functionResponse"))
            texts.append(string(part.get("text")) or _response_text(mapping(response.get("response"))))
            self._media += (found for piece in (part, *maps(response.get("parts"))) if (found := media(piece)))
        display = call.get("resultDisplay")
        self._preferred = call.get("name") == "ask_user"
        self.told = "\n".join(text for text in texts if text.strip())  # the side file holds it in full
        self.shown = display if isinstance(display, str) else first_string(mapping(display), "result", "summary")
        self.full = ""
        if cut := _CUT.match(self.told):
            spilled = surroundings.spilled(posixpath.basename(cut["path"].strip().replace("\\", "/")))
            self.full = self.shown if not spilled and len(self.shown) > len(self.told) else ""
            self.told = unwrap(spilled or self.told)

    def content(self) -> tuple[ToolContent, ...]:
        """The readable result; of a question to the user, the answer in words instead of numbered JSON."""
        text = self.full or (self._preferred and self.shown) or self.told or self.shown
        return ((Text(text),) if text.strip() else ()) + tuple(self._media)


def _own_parts(call: JsonMap) -> list[JsonMap]:
    """The result without the answers to the calls beside it, which sessions converted to lines hold with each call."""
    parts = list(parts_of(call.get("result")))
    answered = [string(mapping(part.get("functionResponse")).get("id")) for part in parts]
    if call.get("id") not in answered:
        return parts
    return [part for part, own in zip(parts, answered, strict=True) if own in {"", call.get("id")}]


def _response_text(response: JsonMap) -> str:
    for value in (response.get("error"), response.get("output")):
        if isinstance(value, str) and value:
            return unwrap(value)
        if value is not None and value != "":
            return _json(value)
    rest = {name: value for name, value in response.items() if name not in {"error", "output"}}
    return _json(rest) if rest else ""


def _json(value: object) -> str:
    import orjson

    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # lone surrogates, numbers beyond 64 bits
        return repr(value)


def _change(name: str, call: JsonMap, args: JsonMap, cwd: str | None) -> Diff | None:
    """The change of an edit: as the interface recorded it, else (before 0.25) from the arguments."""
    display = mapping(call.get("resultDisplay"))
    path = absolute_path(first_string(display, "filePath") or first_string(args, *_PATHS), cwd)
    if isinstance(new := display.get("newContent"), str) and "fileDiff" in display:
        old = display.get("originalContent")
        is_new = boolean(display.get("isNewFile")) or not isinstance(old, str)
        return Diff(path, new, None if is_new else string(old))
    if name == "replace" and isinstance(new := args.get("new_string"), str):
        return Diff(path, new, string(args.get("old_string")) or None)
    if name == "write_file" and isinstance(new := args.get("content"), str):
        return Diff(path, new)
    return None


def _locations(call: JsonMap, args: JsonMap, cwd: str | None) -> tuple[Location, ...]:
    paths = [string(args.get(name)) for name in _PATHS]
    line = integer(args.get("start_line"))
    if line is None and (offset := integer(args.get("offset"))) is not None:
        line = offset + 1
    return locations(cwd, string(mapping(call.get("resultDisplay")).get("filePath")), *paths, line=line)


def _title(name: str, call: JsonMap, args: JsonMap, cwd: str | None) -> str:
    if name == "run_shell_command":
        return shell_title(string(args.get("command")))
    if name in _VERBS and (path := first_string(args, *_PATHS)):
        return title(_VERBS[name], display_path(absolute_path(path, cwd), cwd), _line_range(args))
    if name in _SUBJECTS:
        verb, keys = _SUBJECTS[name]
        subjects = [string(value) for key in keys for value in (args.get(key), *items(args.get(key)))]
        if subject := ", ".join(subject for subject in subjects if subject):
            return title(verb, subject)
    if name == "ask_user":
        return title("Ask:", " / ".join(string(question.get("question")) for question in maps(args.get("questions"))))
    return _other_title(name, call)


def _other_title(name: str, call: JsonMap) -> str:
    label, description = string(call.get("displayName")), string(call.get("description"))
    mcp = _MCP_DISPLAY.fullmatch(label)
    if mcp:
        return mcp_title(mcp["server"], mcp["tool"])
    if mcp := _MCP_NAME.fullmatch(name):
        return mcp_title(mcp["server"] or mcp["server2"], mcp["tool"] or mcp["tool2"])
    short = description if 0 < len(description) <= _LABEL_LIMIT and "\n" not in description else ""
    return title(short or label or name or "Tool call")


def _line_range(args: JsonMap) -> str:
    first, last = integer(args.get("start_line")), integer(args.get("end_line"))
    if first is None and (offset := integer(args.get("offset"))) is not None:
        limit = integer(args.get("limit"))
        first, last = offset + 1, offset + limit if limit else None
    return "" if first is None else f"{first} - {last}" if last else f"from {first}"
