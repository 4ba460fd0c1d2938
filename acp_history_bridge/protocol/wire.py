"""What goes over the wire: the one place where ACP's camelCase meets our names.

Policy:

- An absent field is left out; `null` is never written (CodeCompanion and acp.el stumble over it), but for the id of an
  error whose request could not be read.
- Messages are plain dicts, encoded by orjson; pydantic would cost five times as much and is for input only.
- Text that strict parsers refuse (lone surrogates) is repaired, but only once orjson has refused it.
- Everything of ours beside the protocol lives in `_meta["acp-history-bridge"]`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

import orjson

from acp_history_bridge import __version__
from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import PlanEntry, Usage

__all__ = [
    "META_KEY",
    "Json",
    "RequestId",
    "available_commands",
    "chunk",
    "compaction",
    "compaction_summary",
    "config_options_update",
    "content",
    "diff",
    "encode",
    "failure",
    "image",
    "initialize_result",
    "meta",
    "mode_update",
    "notification",
    "plan",
    "resource",
    "resource_link",
    "response",
    "session_info_update",
    "terminal",
    "text",
    "update",
    "usage",
]

META_KEY = "acp-history-bridge"

Json = dict[str, object]
RequestId = str | int | None

_INTEGER_BOUND = 2**63


def encode(message: Json) -> bytes:
    """One frame, with its newline."""
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return orjson.dumps(_repaired(message), option=orjson.OPT_APPEND_NEWLINE)


def _repaired(value: object) -> object:
    """Replace lone surrogates and integers beyond 64 bits everywhere, which orjson refuses."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, int) and not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        return str(value)
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {replace_surrogates(key): _repaired(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_repaired(item) for item in cast("Sequence[object]", value)]
    return value


def response(id_: RequestId, result: Json) -> bytes:
    """The answer to a request that worked."""
    return encode({"jsonrpc": "2.0", "id": id_, "result": result})


def failure(id_: RequestId, error: ProtocolError) -> bytes:
    """The answer to a request that did not; Toad shows `reason` as heading, Toad and acpx print `details`."""
    body: Json = {"code": error.code, "message": str(error)}
    if error.details is not None:
        body["data"] = present({"reason": str(error), "details": error.details, "sessionId": error.session_id})
    return encode({"jsonrpc": "2.0", "id": id_, "error": body})


def notification(method: str, params: Json) -> bytes:
    """A notification that is none of the protocol's own."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def update(session_id: str, body: Json) -> bytes:
    """A `session/update` notification."""
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": body}})


def meta(fields: Mapping[str, object]) -> Json:
    """A `_meta` member with our namespace; empty when there is nothing to say."""
    known = present(fields)
    return {"_meta": {META_KEY: known}} if known else {}


def present(fields: Mapping[str, object]) -> Json:
    """Only the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


# Content blocks


def text(value: str) -> Json:
    """A text block."""
    return {"type": "text", "text": value}


def image(data: str, mime_type: str, uri: str | None = None) -> Json:
    """An image block."""
    return present({"type": "image", "data": data, "mimeType": mime_type, "uri": uri})


def resource(uri: str, mime_type: str | None, *, text_: str | None = None, blob: str | None = None) -> Json:
    """An embedded resource block with either text or base64."""
    return {"type": "resource", "resource": present({"uri": uri, "mimeType": mime_type, "text": text_, "blob": blob})}


def resource_link(uri: str, name: str, mime_type: str | None = None, size: int | None = None) -> Json:
    """A link to something that is only named."""
    return present({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime_type, "size": size})


# What a tool call contains


def content(block: Json) -> Json:
    """A content block inside a tool call."""
    return {"type": "content", "content": block}


def diff(path: str, new_text: str, old_text: str | None) -> Json:
    """A file's change inside a tool call."""
    return present({"type": "diff", "path": path, "newText": new_text, "oldText": old_text})


def terminal(terminal_id: str) -> Json:
    """A display-only terminal inside a tool call; only for clients that announced `_meta.terminal_output`."""
    return {"type": "terminal", "terminalId": terminal_id}


# Updates


def chunk(kind: str, block: Json, message_id: str, facts: Mapping[str, object]) -> Json:
    """A piece of a message; `kind` is `user_message_chunk`, `agent_message_chunk` or `agent_thought_chunk`."""
    return {"sessionUpdate": kind, "content": block, "messageId": message_id, **meta(facts)}


def plan(entries: Iterable[PlanEntry]) -> Json:
    """The whole todo list; it replaces the one before."""
    lines = [{"content": entry.content, "priority": entry.priority, "status": entry.status} for entry in entries]
    return {"sessionUpdate": "plan", "entries": lines}


def compaction(id_: str, summary: str) -> Json:
    """A finished compaction; only for clients with the capability."""
    blocks = [text(summary)] if summary else None
    return present(
        {"sessionUpdate": "compaction_update", "compactionId": id_, "status": "completed", "summary": blocks}
    )


def compaction_summary(id_: str, piece: str) -> Json:
    """More of a compaction's summary."""
    return {"sessionUpdate": "compaction_summary_chunk", "compactionId": id_, "content": text(piece)}


def usage(recorded: Usage) -> Json | None:
    """Tokens in use; None where the size of the context is not recorded, for the protocol demands it."""
    if recorded.size is None or recorded.size < 0 or recorded.used < 0:
        return None
    cost = None if recorded.cost is None else {"amount": recorded.cost, "currency": recorded.currency}
    return present({"sessionUpdate": "usage_update", "used": recorded.used, "size": recorded.size, "cost": cost})


def session_info_update(title: str | None, updated_at: datetime | None) -> Json:
    """What changed about a session; what is None stays as the client knows it."""
    time = None if updated_at is None else format_time(updated_at)
    return present({"sessionUpdate": "session_info_update", "title": title, "updatedAt": time})


def mode_update(mode_id: str) -> Json:
    """The mode is another one now."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}


def config_options_update(options: Sequence[Json]) -> Json:
    """The configuration options are these now."""
    return {"sessionUpdate": "config_option_update", "configOptions": list(options)}


def available_commands(commands: Iterable[tuple[str, str, str | None]]) -> Json:
    """Slash commands as name, description and the hint for their input."""
    listed = [
        present({"name": name, "description": description, "input": None if hint is None else {"hint": hint}})
        for name, description, hint in commands
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


# Results


def initialize_result(capabilities: Json) -> Json:
    """The answer to `initialize`; the version is always 1, and the client decides whether to go on."""
    return {
        "protocolVersion": 1,
        "agentCapabilities": capabilities,
        "agentInfo": {"name": "acp-history-bridge", "title": "History Bridge", "version": __version__},
        "authMethods": [],
    }
