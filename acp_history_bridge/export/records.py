"""Turns as JSON, the form that `bridge export` and `bridge show --json` print (docs/cli.md describes it).

Policy: everything a turn holds, nothing shortened; what is unknown is left out, never null. Sub-agents can be larger
than all the rest, so a turn is written in pieces.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from acp_history_bridge.export.conversation import Conversation, subagent_turns
from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import (
    Compaction,
    Diff,
    Image,
    Location,
    Notice,
    Part,
    Plan,
    Resource,
    ResourceLink,
    SubagentRun,
    Text,
    Thought,
    ToolCall,
    Turn,
)

__all__ = ["json_document", "json_lines"]


def json_document(conversation: Conversation) -> Iterator[str]:
    """One object: `session` and `turns`."""
    yield f'{{"session":{dumps(conversation.row)},"turns":['
    yield from _joined((_turn(turn, 0) for turn in conversation.turns), "\n")
    yield "\n]}\n"


def json_lines(conversation: Conversation) -> Iterator[str]:
    """The session on the first line, then a turn per line."""
    yield f'{{"session":{dumps(conversation.row)}}}\n'
    for turn in conversation.turns:
        yield '{"turn":'
        yield from _turn(turn, 0)
        yield "}\n"


def _turn(turn: Turn, depth: int) -> Iterator[str]:
    fields = _present(
        id=turn.id,
        role=turn.role,
        timestamp=None if turn.timestamp is None else format_time(turn.timestamp),
        model=turn.model,
        synthetic=turn.synthetic or None,
    )
    yield from _with_list(fields, "parts", (_part(part, depth) for part in turn.parts))


def _part(part: Part, depth: int) -> Iterator[str]:
    if isinstance(part, ToolCall) and part.subagents:
        yield from _with_list(_tool_call(part), "subagents", (_subagent(run, depth + 1) for run in part.subagents))
    else:
        yield dumps(_fields(part))


def _subagent(run: SubagentRun, depth: int) -> Iterator[str]:
    turns = (_turn(turn, depth) for turn in subagent_turns(run, depth))
    yield from _with_list({"id": run.id, "name": run.name}, "turns", turns)


def _with_list(fields: Mapping[str, object], name: str, items: Iterable[Iterable[str]]) -> Iterator[str]:
    """An object whose last member is a list that is written as it comes."""
    yield f"{dumps(fields)[:-1]},{dumps(name)}:["
    yield from _joined(items, "")
    yield "]}"


def _joined(items: Iterable[Iterable[str]], before: str) -> Iterator[str]:
    for place, item in enumerate(items):
        yield f",{before}" if place else before
        yield from item


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _fields(part: Part | Diff) -> dict[str, object]:
    return _FORMS[type(part)](part)


def _tool_call(call: ToolCall) -> dict[str, object]:
    shell = call.shell
    return _present(
        type="tool_call",
        id=call.id,
        name=call.name,
        title=call.title,
        kind=call.kind,
        status=call.status,
        input=call.input,
        output=call.output,
        content=[_fields(item) for item in call.content] or None,
        locations=[_location(location) for location in call.locations] or None,
        shell=None if shell is None else _present(output=shell.output, exitCode=shell.exit_code, cwd=shell.cwd),
    )


def _location(location: Location) -> dict[str, object]:
    return _present(path=location.path, line=location.line)


def _text(part: Text | Thought | Notice) -> dict[str, object]:
    return {"type": type(part).__name__.lower(), "text": part.text}


def _image(part: Image) -> dict[str, object]:
    return _present(type="image", mimeType=part.mime_type, data=part.data or None, uri=part.uri)


def _resource(part: Resource) -> dict[str, object]:
    return _present(type="resource", uri=part.uri, text=part.text, blob=part.blob, mimeType=part.mime_type)


def _link(part: ResourceLink) -> dict[str, object]:
    return _present(type="resource_link", uri=part.uri, name=part.name, mimeType=part.mime_type, size=part.size)


def _diff(part: Diff) -> dict[str, object]:
    return _present(type="diff", path=part.path, newText=part.new_text, oldText=part.old_text)


def _plan(part: Plan) -> dict[str, object]:
    entries = [{"content": entry.content, "status": entry.status, "priority": entry.priority} for entry in part.entries]
    return {"type": "plan", "entries": entries}


def _compaction(part: Compaction) -> dict[str, object]:
    return _present(type="compaction", id=part.id, summary=part.summary or None)


_FORMS: dict[type, Callable[..., dict[str, object]]] = {
    Text: _text,
    Thought: _text,
    Notice: _text,
    Image: _image,
    Resource: _resource,
    ResourceLink: _link,
    Diff: _diff,
    ToolCall: _tool_call,
    Plan: _plan,
    Compaction: _compaction,
}
