"""`bridge try`: what the bridge finds here, and the agent at work, spoken to as an editor speaks to it.

A machine without histories sees the bundled sample. Nothing but the installed package is needed.
"""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from acp_history_bridge import __version__
from acp_history_bridge.cli.context import Context, opened
from acp_history_bridge.cli.index import print_sessions
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.peer import AgentProcess
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.errors import BridgeError
from acp_history_bridge.sessions import SessionQuery
from acp_history_bridge.text import one_line
from acp_history_bridge.values import JsonMap, mapping, maps, string

__all__ = ["run"]

_ROWS = 10
_EXCERPT = 8
_WIDTH = 100

_COUNTED = {
    "user_message_chunk": "user message",
    "agent_message_chunk": "agent message",
    "agent_thought_chunk": "thought",
    "tool_call": "tool call",
    "plan": "plan",
}
_SPEAKERS = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}


def run(arguments: Namespace, context: Context) -> int:
    """Show the list, then list and replay through the agent."""
    prepare_stdout()
    write_lines([f"acp-history-bridge {__version__}", ""])
    if context.demo:
        write_lines(["The bundled sample:", ""])
    if not _print_list(context):
        write_lines(["This machine has no histories of the tools that are supported; here is the bundled sample:", ""])
        arguments.demo = True
        with opened(arguments) as sample:
            _print_list(sample)
    _talk(arguments)
    write_lines(["", "An editor that speaks ACP starts `acp-history-bridge acp`; README.md says how to tell it so."])
    return 0


def _print_list(context: Context) -> int:
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        scan(library)
        return print_sessions(context, adapters, library, SessionQuery(), _ROWS)


def _talk(arguments: Namespace) -> None:
    """Start the agent as a process of its own and go through what an editor does to show a session."""
    options = ["--demo"] if arguments.demo else []
    if arguments.config is not None:
        options += ["--config", str(arguments.config)]
    write_lines(["", f"The agent, started as an editor starts it: acp-history-bridge acp {' '.join(options)}".rstrip()])
    with AgentProcess([sys.executable, "-m", "acp_history_bridge", "acp", *options]) as agent:
        hello = agent.request("initialize", protocolVersion=1, clientCapabilities={})
        info = mapping(hello.get("agentInfo"))
        _report(agent, "initialize", f"{string(info.get('name'))} {string(info.get('version'))}")
        sessions = maps(agent.request("session/list").get("sessions"))
        _report(agent, "session/list", f"{len(sessions)} sessions on the first page")
        if not sessions:
            raise BridgeError("the agent lists no session")
        newest = sessions[0]
        agent.request("session/load", sessionId=newest.get("sessionId"), cwd=newest.get("cwd"), mcpServers=[])
        _report(agent, "session/load", f"{len(agent.updates)} updates: {_summary(agent.updates)}")
        write_lines(["", _safe(string(newest.get("title")) or "(no title)"), *_excerpt(agent.updates)])


def _report(agent: AgentProcess, method: str, text: str) -> None:
    write_lines([f"  {method:<13} {agent.seconds * 1000:6.0f} ms   {_safe(text)}"])


def _summary(updates: Iterable[JsonMap]) -> str:
    """How many messages, thoughts, … a replay has; the chunks of one message count once."""
    ids = {(update.get("sessionUpdate"), _identity(update, place)) for place, update in enumerate(updates)}
    counts = Counter(kind for kind, _ in ids)
    parts = [f"{counts[kind]} {name}{'s' * (counts[kind] > 1)}" for kind, name in _COUNTED.items() if counts[kind]]
    return ", ".join(parts) or "nothing to show"


def _identity(update: JsonMap, place: int) -> str:
    return string(update.get("messageId")) or string(update.get("toolCallId")) or str(place)


def _excerpt(updates: Sequence[JsonMap]) -> Iterator[str]:
    """The first few things of a replay, a line each."""
    lines = [line for update in updates if (line := _line(update))]
    yield from lines[:_EXCERPT]
    if len(lines) > _EXCERPT:
        yield f"  … and {len(lines) - _EXCERPT} more"


def _line(update: JsonMap) -> str | None:
    kind = string(update.get("sessionUpdate"))
    if kind in _SPEAKERS:
        text = string(mapping(update.get("content")).get("text"))
        return f"  {_SPEAKERS[kind]:<8} {_safe(text)}" if text.strip() else None
    if kind == "tool_call":
        return f"  {'tool':<8} {_safe(string(update.get('title')))} ({_safe(string(update.get('status')))})"
    return None


def _safe(text: str) -> str:
    return one_line(text, _WIDTH)
