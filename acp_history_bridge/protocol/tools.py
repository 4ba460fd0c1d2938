"""Tool calls as updates: one `tool_call` with its outcome, because half the messages is twice the speed in a client.

Policy:

- A call without an outcome has failed, and says so, unless the session is still running.
- Shell output is a fenced `console` block with the exit code. Clients that announced `_meta.terminal_output` (Zed) get
  a display-only terminal: `terminal_info` on the call, `terminal_output` and `terminal_exit` on an update after it. A
  `terminal` content is sent to nobody else; it would name a terminal that the client never created.
- Conversations of sub-agents are folded into the call that started them, as text before its result; the task and the
  conclusion are not said twice.
- Paths are absolute, as the protocol demands; they are only computed, never looked up on the disk.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.blocks import image_block, link_block, resource_blocks
from acp_history_bridge.protocol.bounds import Budget, bounded_id, shorten_middle
from acp_history_bridge.protocol.digest import fold_subagent
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.text import one_line
from acp_history_bridge.toolcalls import absolute_path
from acp_history_bridge.turns import (
    Diff,
    Image,
    Resource,
    ResourceLink,
    ShellResult,
    SubagentRun,
    Text,
    ToolCall,
    ToolContent,
)

__all__ = ["ToolOptions", "tool_updates"]

_RAW_LIMIT = 64 * 1024
_PATH_LIMIT = 4096
_PART_OVERHEAD = 256
_LOCATIONS_LIMIT = 200
_LINE_LIMIT = 2**32
_TOO_LARGE = "[An attachment was left out: there is too much in this call.]"
_NO_OUTCOME = "[No outcome was recorded for this call.]"
_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:[\\/]|\\\\)")
_BACKTICKS = re.compile("`{3,}")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How tool calls are shown.

    Attributes:
        cwd: The session's directory, for relative paths.
        terminal: The client draws terminals for `_meta.terminal_output`.
        output_limit: Encoded bytes of one piece of output.
        image_limit: Bytes of base64.
    """

    cwd: str
    terminal: bool
    output_limit: int
    image_limit: int


def tool_updates(
    call: ToolCall, options: ToolOptions, *, live: bool, known: bool, facts: Mapping[str, object]
) -> Iterator[Json]:
    """Make the updates for a call.

    Args:
        call: The call.
        options: How calls are shown.
        live: The session is running, so a call without outcome still may get one.
        known: The client has seen this call; it is updated instead of created.
        facts: For the update's `_meta`.
    """
    identity = bounded_id(call.id)
    budget = Budget()
    in_terminal = options.terminal and call.shell is not None
    body: Json = {
        "sessionUpdate": "tool_call_update" if known else "tool_call",
        "toolCallId": identity,
        "title": one_line(call.title) or one_line(call.name) or "Tool call",
        "kind": call.kind,
        "status": _status(call, live=live),
        **wire.present({"name": one_line(call.name) or None}),
    }
    body |= _raw(call, budget)
    if in_terminal:
        body["content"] = [wire.terminal(identity), *_contents(call, options, budget, live=live)]
        yield body | {"_meta": {**_namespaced(facts), "terminal_info": _terminal_info(call, identity, options)}}
        yield _terminal_end(call, identity, options)
        return
    contents = [*_shell_text(call.shell, options, budget), *_contents(call, options, budget, live=live)]
    if contents or known:
        body["content"] = contents
    yield body | wire.meta(facts)


def _status(call: ToolCall, *, live: bool) -> str:
    if call.status == "unfinished":
        return "in_progress" if live else "failed"
    return call.status


def _raw(call: ToolCall, budget: Budget) -> Json:
    fields: Json = {}
    if locations := list(_locations(call, budget)):
        fields["locations"] = locations
    if call.input is not None:
        fields["rawInput"] = budget.json(call.input, _RAW_LIMIT)
    if call.output is not None:
        fields["rawOutput"] = budget.json(call.output, _RAW_LIMIT)
    return fields


def _locations(call: ToolCall, budget: Budget) -> Iterator[Json]:
    for location in call.locations[:_LOCATIONS_LIMIT]:
        if _ABSOLUTE.match(location.path) and len(location.path) <= _PATH_LIMIT and budget.allows(location.path):
            budget.spend(location.path)
            line = location.line if location.line is not None and 1 <= location.line < _LINE_LIMIT else None
            yield wire.present({"path": location.path, "line": line})


def _contents(call: ToolCall, options: ToolOptions, budget: Budget, *, live: bool) -> Iterator[Json]:
    parts = [*call.subagents, *call.content]
    runs: list[str] = []
    for count, part in enumerate(parts):
        if budget.is_spent:
            yield wire.content(wire.text(f"[… {len(parts) - count:,} more parts left out …]"))
            break
        budget.take(_PART_OVERHEAD)
        if isinstance(part, SubagentRun):
            runs.append(fold_subagent(part, options.output_limit))
            yield wire.content(wire.text(budget.text(runs[-1], options.output_limit)))
        elif not _is_told(part, runs):
            yield from _content(part, options, budget)
    if call.status == "unfinished" and not live:
        yield wire.content(wire.text(_NO_OUTCOME))


def _is_told(item: ToolContent, runs: list[str]) -> bool:
    """Whether a text is the task or the conclusion of a sub-agent whose conversation is shown above it."""
    if not isinstance(item, Text) or not (text := item.text.strip()):
        return False
    return any(run.endswith(f"\n\n{text}") or f"**User:** {text}\n\n" in run for run in runs)


def _content(item: ToolContent, options: ToolOptions, budget: Budget) -> Iterator[Json]:
    limit = options.output_limit
    if isinstance(item, Text):
        if item.text:
            yield wire.content(wire.text(budget.text(item.text, limit)))
    elif isinstance(item, Diff):
        path = _absolute(item.path, options.cwd)
        budget.spend(path)
        old = None if item.old_text is None else budget.text(item.old_text, limit)
        yield wire.diff(path, budget.text(item.new_text, limit), old)
    else:
        for block in _blocks(item, options):
            yield wire.content(block if budget.block(block) else wire.text(_TOO_LARGE))


def _blocks(item: Image | ResourceLink | Resource, options: ToolOptions) -> Iterator[Json]:
    if isinstance(item, Image):
        yield image_block(item, options.image_limit)
    elif isinstance(item, ResourceLink):
        yield link_block(item)
    elif item.text is None:
        yield from resource_blocks(item, options.image_limit)
    else:
        text = shorten_middle(item.text, options.output_limit)
        yield from resource_blocks(Resource(item.uri, text, None, item.mime_type), options.image_limit)


def _absolute(path: str, cwd: str) -> str:
    path = absolute_path(path[:_PATH_LIMIT], cwd)
    return path if _ABSOLUTE.match(path) else posixpath.join(cwd, path)


def _shell_text(shell: ShellResult | None, options: ToolOptions, budget: Budget) -> Iterator[Json]:
    if shell is None:
        return
    output = budget.text(shell.output.rstrip("\n"), options.output_limit)
    # A fence must be longer than any run of backticks inside it.
    longest = max(map(len, _BACKTICKS.findall(output))) if "```" in output else 0
    fence = "`" * max(3, 1 + longest)
    lines = [f"{fence}console\n{output}\n{fence}"] if output else []
    if shell.exit_code is not None:
        lines.append(f"Exit code: {shell.exit_code}")
    if lines:
        yield wire.content(wire.text("\n".join(lines)))


def _namespaced(facts: Mapping[str, object]) -> Json:
    return {wire.META_KEY: facts} if facts else {}


def _terminal_info(call: ToolCall, identity: str, options: ToolOptions) -> Json:
    assert call.shell is not None
    return {"terminal_id": identity, "cwd": _absolute(call.shell.cwd or options.cwd, options.cwd)}


def _terminal_end(call: ToolCall, identity: str, options: ToolOptions) -> Json:
    assert call.shell is not None
    output = Budget().text(call.shell.output, options.output_limit)
    ending = wire.present({"terminal_id": identity, "exit_code": call.shell.exit_code})
    shown: Json = {"terminal_output": {"terminal_id": identity, "data": output}, "terminal_exit": ending}
    return {"sessionUpdate": "tool_call_update", "toolCallId": identity, "_meta": shown}
