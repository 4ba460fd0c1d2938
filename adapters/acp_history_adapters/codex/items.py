"""Items: what Codex itself shows of a conversation, one ready-made object for each thing that happened.

Policy: one table from item types to readers; a type that is not in the table shows nothing and is reported. Older
rollouts write some tool ends as events of their own; `item_of_event` turns those into the item of today.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from acp_history_adapters.codex.calls import command_line, edit_call, web_title
from acp_history_adapters.codex.outputs import contents
from acp_history_adapters.codex.patches import changes_of_item
from acp_history_adapters.codex.prompts import file_path
from acp_history_bridge.toolcalls import absolute_path, display_path, locations, mcp_title, shell_title, title
from acp_history_bridge.turns import (
    Location,
    ResourceLink,
    ShellResult,
    Text,
    ToolCall,
    ToolContent,
    ToolKind,
    ToolStatus,
)
from acp_history_bridge.values import JsonMap, boolean, first_string, integer, items, mapping, maps, string

__all__ = ["TOOL_ITEMS", "Spawned", "item_of_event", "review_text", "spawned_agents", "tool_of_item"]


@dataclass(frozen=True, slots=True)
class Spawned:
    """A sub-agent that a call started."""

    thread: str
    name: str


def tool_of_item(item: JsonMap, cwd: str | None) -> ToolCall:
    """Read a tool item; its type must be one of `TOOL_ITEMS`."""
    call = TOOL_ITEMS[string(item.get("type"))](item, cwd)
    return replace(call, id=string(item.get("id")), status=_status(item, call.status))


def _status(item: JsonMap, status: ToolStatus) -> ToolStatus:
    match item.get("status"):
        case "failed" | "declined" | "errored":
            return "failed"
        case "in_progress" | "inProgress":
            return "unfinished"
        case _:
            return status


def _command(item: JsonMap, cwd: str | None) -> ToolCall:
    line = command_line(item.get("command"))
    directory = file_path(item.get("cwd")) or cwd
    exit_code = integer(item.get("exit_code"))
    heading, kind, touched = _parsed(maps(item.get("parsed_cmd")), directory)
    return ToolCall(
        id="",
        name="exec_command",
        title=heading or shell_title(line),
        kind=kind,
        status="failed" if exit_code not in (None, 0) else "completed",
        input={"command": line, "cwd": directory},
        locations=touched,
        shell=ShellResult(first_string(item, "aggregated_output", "formatted_output"), exit_code, directory),
    )


def _parsed(parsed: list[JsonMap], cwd: str | None) -> tuple[str, ToolKind, tuple[Location, ...]]:
    """What one simple command does, as Codex understood it; several commands are called by their text."""
    if len(parsed) != 1:
        return "", "execute", ()
    command, path = parsed[0], file_path(parsed[0].get("path"))
    match command.get("type"):
        case "read":
            shown = string(command.get("name")) or display_path(path, cwd)
            return title("Read", shown), "read", locations(cwd, path)
        case "list_files":
            return title("List", display_path(path, cwd) or "files"), "read", locations(cwd, path)
        case "search":
            where = f" in {display_path(path, cwd)}" if path else ""
            return title("Search", f"“{string(command.get('query'))}”{where}"), "search", ()
        case _:
            return "", "execute", ()


def _file_change(item: JsonMap, cwd: str | None) -> ToolCall:
    call = edit_call("apply_patch", changes_of_item(mapping(item.get("changes"))), cwd)
    failed = string(item.get("status")) in {"failed", "declined"}
    complaint = first_string(item, "stderr", "stdout") if failed else ""
    return replace(call, content=(*call.content, *((Text(complaint),) if complaint else ())))


def _mcp(item: JsonMap, _cwd: str | None) -> ToolCall:
    result, error = mapping(item.get("result")), item.get("error")
    said = string(error) or string(mapping(error).get("message"))
    server, tool = string(item.get("server")), string(item.get("tool"))
    return ToolCall(
        id="",
        name=f"mcp__{server}__{tool}",
        title=mcp_title(server, tool),
        kind="other",
        status="failed" if said or boolean(result.get("isError")) else "completed",
        input=item.get("arguments"),
        output=result.get("structuredContent"),
        content=(*contents(result.get("content")), *((Text(said),) if said else ())),
    )


def _web_search(item: JsonMap, _cwd: str | None) -> ToolCall:
    action = mapping(item.get("action"))
    heading, kind = web_title(string(item.get("query")), action)
    return ToolCall("", "web_search", heading, kind, "completed", input={"query": item.get("query"), "action": action})


def _image_view(item: JsonMap, cwd: str | None) -> ToolCall:
    path = absolute_path(file_path(item.get("path")), cwd)
    return ToolCall(
        id="",
        name="view_image",
        title=title("View", display_path(path, cwd)),
        kind="read",
        status="completed",
        input={"path": path},
        content=(ResourceLink(f"file://{path}", path.rsplit("/", 1)[-1]),) if path else (),
        locations=locations(cwd, path),
    )


_COLLAB: dict[str, tuple[str, ToolKind]] = {
    "spawn_agent": ("Start a sub-agent", "think"),
    "send_input": ("Tell the sub-agent", "other"),
    "resume_agent": ("Resume the sub-agent", "other"),
    "wait": ("Wait for the sub-agents", "other"),
    "close_agent": ("Close the sub-agent", "other"),
}


def _collab(item: JsonMap, _cwd: str | None) -> ToolCall:
    tool, prompt = string(item.get("tool")), string(item.get("prompt"))
    verb, kind = _COLLAB.get(tool, (tool or "Sub-agent", "other"))
    subject = prompt or ", ".join(agent.name for agent in _receivers(item))
    return ToolCall(
        id="",
        name=tool or "agent",
        title=title(f"{verb}:", subject) if subject else verb,
        kind=kind,
        status="completed",
        input={"prompt": prompt} if prompt else None,
        content=tuple(_agent_reports(mapping(item.get("agents_states")))),
    )


def _agent_reports(states: JsonMap) -> Iterator[ToolContent]:
    for state in states.values():
        report = string(mapping(state).get("completed")) or string(mapping(state).get("errored"))
        if report:
            yield Text(report)


_ACTIVITY = {"started": "Start", "interacted": "Talk to", "interrupted": "Interrupt", "completed": "Finish"}


def _activity(item: JsonMap, _cwd: str | None) -> ToolCall:
    kind = string(item.get("kind"))
    subject = f"sub-agent {string(item.get('agent_path'))}".strip()
    return ToolCall(
        id="",
        name="agent",
        title=title(_ACTIVITY.get(kind, kind), subject),
        kind="think" if kind == "started" else "other",
        status="completed",
    )


def _image_generation(item: JsonMap, cwd: str | None) -> ToolCall:
    prompt, path = string(item.get("revised_prompt")), file_path(item.get("saved_path"))
    return ToolCall(
        id="",
        name="image_generation",
        title=title("Draw", prompt) if prompt else "Draw an image",
        kind="other",
        status="completed",
        content=(ResourceLink(f"file://{path}", path.rsplit("/", 1)[-1]),) if path else (),
        locations=locations(cwd, path),
    )


def _dynamic(item: JsonMap, _cwd: str | None) -> ToolCall:
    tool = string(item.get("tool")) or "tool"
    return ToolCall(
        id="",
        name=tool,
        title=title(tool),
        kind="other",
        status="failed" if item.get("success") is False else "completed",
        input=item.get("arguments"),
        content=contents(item.get("content_items")),
    )


TOOL_ITEMS: dict[str, Callable[[JsonMap, str | None], ToolCall]] = {
    "CommandExecution": _command,
    "FileChange": _file_change,
    "McpToolCall": _mcp,
    "WebSearch": _web_search,
    "ImageView": _image_view,
    "CollabAgentToolCall": _collab,
    "SubAgentActivity": _activity,
    "ImageGeneration": _image_generation,
    "DynamicToolCall": _dynamic,
}


def _receivers(item: JsonMap) -> list[Spawned]:
    names = {
        string(agent.get("thread_id")): first_string(agent, "agent_nickname", "agent_role")
        for agent in maps(item.get("receiver_agents"))
    }
    threads = [string(one) for one in items(item.get("receiver_thread_ids"))] or list(names)
    return [Spawned(thread, names.get(thread) or "sub-agent") for thread in threads if thread]


def spawned_agents(item: JsonMap) -> list[Spawned]:
    """The sub-agents that an item started."""
    if item.get("type") == "CollabAgentToolCall" and item.get("tool") == "spawn_agent":
        return _receivers(item)
    if item.get("type") == "SubAgentActivity" and item.get("kind") == "started":
        thread, path = string(item.get("agent_thread_id")), string(item.get("agent_path"))
        return [Spawned(thread, path.rsplit("/", 1)[-1] or "sub-agent")] if thread else []
    return []


def _ended_command(event: JsonMap) -> JsonMap:
    return {**event, "type": "CommandExecution"}


def _ended_patch(event: JsonMap) -> JsonMap:
    failed = event.get("success") is False
    return {**event, "type": "FileChange", "status": "failed" if failed else event.get("status")}


def _ended_mcp(event: JsonMap) -> JsonMap:
    result, invocation = mapping(event.get("result")), mapping(event.get("invocation"))
    return {**invocation, "type": "McpToolCall", "result": result.get("Ok"), "error": result.get("Err")}


def _ended_spawn(event: JsonMap) -> JsonMap:
    agent = {
        "thread_id": event.get("new_thread_id"),
        "agent_nickname": event.get("new_agent_nickname"),
        "agent_role": event.get("new_agent_role"),
    }
    return _collab_event("spawn_agent", event, [agent], {})


def _ended_wait(event: JsonMap) -> JsonMap:
    return _collab_event("wait", event, maps(event.get("agent_statuses")), mapping(event.get("statuses")))


def _ended_exchange(tool: str) -> Callable[[JsonMap], JsonMap]:
    def read(event: JsonMap) -> JsonMap:
        thread = string(event.get("receiver_thread_id"))
        agent = {"thread_id": thread, "agent_nickname": event.get("receiver_agent_nickname")}
        return _collab_event(tool, event, [agent], {thread: event.get("status")})

    return read


def _collab_event(tool: str, event: JsonMap, agents: object, states: JsonMap) -> JsonMap:
    return {
        "type": "CollabAgentToolCall",
        "tool": tool,
        "prompt": event.get("prompt"),
        "receiver_agents": agents,
        "agents_states": states,
    }


_EVENTS: dict[str, Callable[[JsonMap], JsonMap]] = {
    "exec_command_end": _ended_command,
    "patch_apply_end": _ended_patch,
    "mcp_tool_call_end": _ended_mcp,
    "web_search_end": lambda event: {**event, "type": "WebSearch"},
    "view_image_tool_call": lambda event: {**event, "type": "ImageView"},
    "collab_agent_spawn_end": _ended_spawn,
    "collab_waiting_end": _ended_wait,
    "collab_close_end": _ended_exchange("close_agent"),
    "collab_resume_end": _ended_exchange("resume_agent"),
    "collab_agent_interaction_end": _ended_exchange("send_input"),
}


def item_of_event(event: JsonMap) -> JsonMap | None:
    """The item of a tool end that a legacy rollout wrote as an event; None for other events."""
    read = _EVENTS.get(string(event.get("type")))
    return None if read is None else {**read(event), "id": string(event.get("call_id"))}


def review_text(review: JsonMap) -> str:
    """The outcome of a review as Codex words it."""
    parts = [string(review.get("overall_explanation")).strip()]
    findings = maps(review.get("findings"))
    if findings:
        parts.append("Review comment:" if len(findings) == 1 else "Full review comments:")
    for finding in findings:
        place = mapping(finding.get("code_location"))
        lines = mapping(place.get("line_range"))
        where = f"{string(place.get('absolute_file_path'))}:{integer(lines.get('start'))}-{integer(lines.get('end'))}"
        body = "\n".join(f"  {line}" for line in string(finding.get("body")).splitlines())
        parts.append(f"- {string(finding.get('title'))} — {where}\n{body}".rstrip())
    return "\n\n".join(part for part in parts if part)
