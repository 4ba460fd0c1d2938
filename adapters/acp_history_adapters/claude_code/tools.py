"""Claude Code's tools: what a call is called, of which kind it is and what it touches, by its input alone.

Policy: names and inputs follow the official agent's titles where it has good ones; a tool nobody knows keeps its name.
Inputs can lack any field and hold any type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from acp_history_bridge.text import one_line
from acp_history_bridge.toolcalls import display_path, locations, mcp_title, shell_title, title
from acp_history_bridge.turns import Location, Text, ToolContent, ToolKind
from acp_history_bridge.values import JsonMap, boolean, first_string, integer, maps, string

__all__ = ["AGENT_TOOLS", "EDIT_TOOLS", "PLAN_TITLE", "SHELL_TOOLS", "Call", "Look", "look_of"]

AGENT_TOOLS = frozenset({"Agent", "Task"})
EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
SHELL_TOOLS = frozenset({"Bash", "PowerShell", "bash_code_execution"})

PLAN_TITLE = "Approve Plan"

_MCP = "mcp__"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the transcript has it.

    Attributes:
        server: The MCP server, where the line names it.
        cwd: The working directory at that moment, which relative paths refer to.
        home: The session's directory, which titles are shortened by.
    """

    id: str
    name: str
    input: JsonMap
    server: str = ""
    cwd: str | None = None
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """How a call is shown before its outcome is known."""

    kind: ToolKind
    title: str
    content: tuple[ToolContent, ...] = ()
    locations: tuple[Location, ...] = ()


def look_of(call: Call) -> Look:
    """Describe a call."""
    if call.server:
        return Look("other", mcp_title(call.server, call.name))
    if call.name.startswith(_MCP):
        server, _, tool = call.name.removeprefix(_MCP).partition("__")
        return Look("other", mcp_title(server, tool) if tool else one_line(call.name))
    describe = _TOOLS.get(call.name)
    return describe(call) if describe else Look("other", one_line(call.name) or "Tool")


def _path(call: Call) -> str:
    return first_string(call.input, "file_path", "notebook_path", "path")


def _texts(*texts: str) -> tuple[ToolContent, ...]:
    return tuple(Text(text) for text in texts if text)


def _read(call: Call) -> Look:
    start = integer(call.input.get("offset"))
    limit = integer(call.input.get("limit"))
    path = display_path(_path(call), call.home)
    first = max(start or 1, 1)
    detail = ""
    if limit and limit > 0:
        detail = f"{first} - {first + limit - 1}"
    elif start:
        detail = f"from line {first}"
    return Look("read", title("Read", path or "File", detail), locations=locations(call.cwd, _path(call), line=first))


def _edit(call: Call) -> Look:
    verb = "Write" if call.name == "Write" else "Edit"
    path = display_path(_path(call), call.home)
    return Look("edit", title(verb, path or "File"), locations=locations(call.cwd, _path(call)))


def _list(call: Call) -> Look:
    return Look("read", title("List", display_path(_path(call), call.home)), locations=locations(call.cwd, _path(call)))


def _shell(call: Call) -> Look:
    described = _texts(first_string(call.input, "description"))
    return Look("execute", shell_title(first_string(call.input, "command")), described)


def _background_output(call: Call) -> Look:
    return Look("execute", title("Output of", first_string(call.input, "task_id", "bash_id", "shell_id") or "a task"))


def _background_stop(call: Call) -> Look:
    return Look("execute", title("Stop", first_string(call.input, "task_id", "shell_id", "bash_id") or "a task"))


def _grep(call: Call) -> Look:
    given = call.input
    words = ["grep", *(flag for flag in ("-i", "-n") if boolean(given.get(flag)))]
    words += [f"{flag} {count}" for flag in ("-A", "-B", "-C") if (count := integer(given.get(flag))) is not None]
    words += {"files_with_matches": ["-l"], "count": ["-c"]}.get(string(given.get("output_mode")), [])
    if (head := integer(given.get("head_limit"))) is not None:
        words.append(f"| head -{head}")
    words += [f'--include="{glob}"'] if (glob := first_string(given, "glob")) else []
    words += [f"--type={kind}"] if (kind := first_string(given, "type")) else []
    words += ["-P"] if boolean(given.get("multiline")) else []
    words.append(f'"{first_string(given, "pattern")}"')
    words.append(display_path(_path(call), call.home))
    return Look("search", one_line(" ".join(words)), locations=locations(call.cwd, _path(call)))


def _glob(call: Call) -> Look:
    named = (display_path(_path(call), call.home), first_string(call.input, "pattern"))
    subject = " ".join(f"`{name}`" for name in named if name)
    return Look("search", title("Find", subject), locations=locations(call.cwd, _path(call)))


def _web_fetch(call: Call) -> Look:
    return Look("fetch", title("Fetch", first_string(call.input, "url")), _texts(first_string(call.input, "prompt")))


def _web_search(call: Call) -> Look:
    return Look("fetch", title("Search", f'"{first_string(call.input, "query")}"'))


def _agent(call: Call) -> Look:
    prompt = _texts(first_string(call.input, "prompt"))
    return Look("think", one_line(first_string(call.input, "description")) or "Task", prompt)


def _leave_plan_mode(call: Call) -> Look:
    return Look("switch_mode", PLAN_TITLE, _texts(first_string(call.input, "plan")))


def _enter_plan_mode(call: Call) -> Look:
    return Look("switch_mode", one_line(call.name))


def _ask(call: Call) -> Look:
    questions = [text for question in maps(call.input.get("questions")) if (text := first_string(question, "question"))]
    name = one_line(questions[0]) if len(questions) == 1 else "Asking for your input"
    return Look("other", name, _texts(*questions))


def _skill(call: Call) -> Look:
    return Look("other", title("Load skill:", first_string(call.input, "skill", "command")))


def _slash_command(call: Call) -> Look:
    return Look("other", title("Run", first_string(call.input, "command") or "a command"))


def _findings(call: Call) -> Look:
    findings = maps(call.input.get("findings"))
    texts = [first_string(finding, "summary", "description", "title") for finding in findings]
    return Look("think", f"Report {len(findings)} findings", _texts(*texts))


def _code(call: Call) -> Look:
    return Look("execute", "Run code", _texts(first_string(call.input, "code")))


_TOOLS: Mapping[str, Callable[[Call], Look]] = {
    "Agent": _agent,
    "AskUserQuestion": _ask,
    "Bash": _shell,
    "BashOutput": _background_output,
    "Edit": _edit,
    "EnterPlanMode": _enter_plan_mode,
    "ExitPlanMode": _leave_plan_mode,
    "Glob": _glob,
    "Grep": _grep,
    "KillBash": _background_stop,
    "KillShell": _background_stop,
    "LS": _list,
    "MultiEdit": _edit,
    "NotebookEdit": _edit,
    "NotebookRead": _read,
    "PowerShell": _shell,
    "Read": _read,
    "ReportFindings": _findings,
    "Skill": _skill,
    "SlashCommand": _slash_command,
    "Task": _agent,
    "TaskOutput": _background_output,
    "TaskStop": _background_stop,
    "WebFetch": _web_fetch,
    "WebSearch": _web_search,
    "Write": _edit,
    "bash_code_execution": _shell,
    "code_execution": _code,
    "exit_plan_mode": _leave_plan_mode,
    "web_fetch": _web_fetch,
    "web_search": _web_search,
}
