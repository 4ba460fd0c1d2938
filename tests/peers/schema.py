"""The ACP schema as an oracle: every object closed, so that an invented or misspelt field fails.

Stable methods are checked against the stable schema and unstable ones against the unstable one. What goes further is
named here, and nowhere else: the older chat history proposal's fields, where they were asked for, and our extensions.
"""

import functools
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

SCHEMAS = Path(__file__).parent.parent / "data" / "acp-schema"

_OPEN = {"ExtRequest", "ExtResponse", "ExtNotification"}
# Values of the tools themselves, which may be any JSON.
_RAW = {"rawInput", "rawOutput"}
_FRAME_LIMIT = 1024 * 1024


STABLE, UNSTABLE = "schema.json", "schema.unstable.json"

# What each part of the older proposal, and each extension, has to look like.
_OURS: dict[str, dict[str, Any]] = {
    "sessionHistory": {"supported": {"const": True}, "maxResults": {"type": "integer", "minimum": 1}},
    "list": {"total": {"type": "integer", "minimum": 0}},
    "row": {
        "createdAt": {"type": "string"},
        "lastModified": {"type": "string"},
        "source": {"type": "string"},
        "messageCount": {"type": "integer", "minimum": 0},
    },
    "get": {
        "sessionId": {"type": "string"},
        "title": {"type": "string"},
        "createdAt": {"type": "string"},
        "turns": {"type": "array"},
        "nextOffset": {"type": "integer", "minimum": 1},
        "_meta": {"type": "object"},
    },
    "turn": {
        "id": {"type": "string"},
        "role": {"enum": ["user", "assistant"]},
        "timestamp": {"type": "string"},
        "content": {"type": "array"},
        "toolCalls": {"type": "array"},
        "_meta": {"type": "object"},
    },
    "subscribe": {"subscriptionId": {"type": "string"}},
    "unsubscribe": {},
    "changes": {
        "subscriptionId": {"type": "string"},
        "sessions": {"type": "array"},
        "removed": {"type": "array", "items": {"type": "string"}},
    },
}
_OPTIONAL = {"title", "createdAt", "nextOffset", "_meta", "timestamp", "messageCount"}
_UNSTABLE_CAPABILITIES = ("fork", "archive", "status", "title")


@functools.cache
def _definitions(schema: str) -> dict[str, Any]:
    document = json.loads((SCHEMAS / "v1" / schema).read_text(encoding="utf-8"))
    definitions: dict[str, Any] = document["$defs"]
    closed = {name: _pointing_to_strict(definition) for name, definition in definitions.items()}
    return closed | {
        f"{name}__strict": {"$ref": f"#/$defs/{name}", **({} if name in _OPEN else {"unevaluatedProperties": False})}
        for name in definitions
    }


def _pointing_to_strict(node: object, *, inside: bool = False) -> Any:  # noqa: ANN401 - a JSON schema
    """Send references below properties, items and additionalProperties to the closed twin of their target."""
    if isinstance(node, list):
        return [_pointing_to_strict(item, inside=inside) for item in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    rewritten: dict[str, object] = {}
    for key, value in cast("dict[str, object]", node).items():
        if key == "$ref" and inside:
            rewritten[key] = f"{value}__strict"
        elif key == "properties":
            properties = cast("dict[str, object]", value).items()
            rewritten[key] = {name: _pointing_to_strict(item, inside=True) for name, item in properties}
        else:
            rewritten[key] = _pointing_to_strict(value, inside=inside or key in ("items", "additionalProperties"))
    return rewritten


@functools.cache
def _methods(schema: str) -> dict[str, dict[str, str]]:
    methods: dict[str, dict[str, dict[str, str]]] = json.loads((SCHEMAS / "methods.json").read_text(encoding="utf-8"))
    return methods[f"v1/{schema}"]


@functools.cache
def _validator(name: str, schema: str = STABLE) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}__strict", "$defs": _definitions(schema)})


@functools.cache
def _our_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    fields = _OURS[name]
    return jsonschema_rs.Draft202012Validator(
        {
            "type": "object",
            "properties": fields,
            "required": sorted(fields.keys() - _OPTIONAL),
            "additionalProperties": False,
        }
    )


def _without(value: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in fields}


def _only(value: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name in fields}


def request_kind(method: str, params: object) -> str:
    """Which answer a request gets: a list that the older proposal asks for has an answer of its own."""
    asked = cast("dict[str, object]", params) if isinstance(params, dict) else {}
    older = method == "session/list" and any(asked.get(name) is not None for name in ("limit", "offset", "search"))
    return "session/list of the older proposal" if older else method


def check_frame(line: bytes, methods_by_id: Mapping[object, str]) -> dict[str, Any]:
    """Check one line the agent wrote against everything that can be said of a line alone.

    Args:
        line: With its newline.
        methods_by_id: Of each request, what `request_kind` said.

    Returns:
        The message.
    """
    assert line.endswith(b"\n")
    assert len(line) < _FRAME_LIMIT, f"a frame of {len(line)} bytes"
    message: dict[str, Any] = json.loads(line.decode("utf-8"))
    assert type(message) is dict
    assert message["jsonrpc"] == "2.0"
    _check_values(message)
    _check_envelope(message, methods_by_id)
    return message


def _check_envelope(message: dict[str, Any], methods_by_id: Mapping[object, str]) -> None:
    if "method" in message:
        assert set(message) == {"jsonrpc", "method", "params"}
        _check_notification(message["method"], message["params"])
    elif "error" in message:
        assert set(message) == {"jsonrpc", "id", "error"}
        _validator("Error").validate(message["error"])
    else:
        assert set(message) == {"jsonrpc", "id", "result"}
        _check_result(methods_by_id[message["id"]], message["result"])


def _check_notification(method: str, params: dict[str, Any]) -> None:
    if method == "_session/list/changes":
        _our_validator("changes").validate(params)
        _check_rows(params["sessions"])
    else:
        _validator(_methods(STABLE)[method]["notificationParams"]).validate(params)


def _check_result(kind: str, result: dict[str, Any]) -> None:
    if kind == "initialize":
        _check_capabilities(result)
    elif kind == "session/list":
        _check_rows(result["sessions"])
        _validator("ListSessionsResponse").validate({**result, "sessions": []})
    elif kind == "session/list of the older proposal":
        _our_validator("list").validate(_only(result, _OURS["list"]))
        for row in result["sessions"]:
            _our_validator("row").validate(_only(row, _OURS["row"]))
        _check_rows([_without(row, _OURS["row"]) for row in result["sessions"]])
        _validator("ListSessionsResponse").validate({**_without(result, _OURS["list"]), "sessions": []})
    elif kind in ("session/get", "_acp-history-bridge/session/get"):
        _check_conversation(result)
    elif kind.startswith("_session/list/"):
        _our_validator(kind.rpartition("/")[2]).validate(result)
    else:
        schema = STABLE if kind in _methods(STABLE) else UNSTABLE
        _validator(_methods(schema)[kind]["result"], schema).validate(result)


def _check_capabilities(result: dict[str, Any]) -> None:
    """All of it by the unstable schema; without the unstable capabilities by the stable one."""
    capabilities: dict[str, Any] = result["agentCapabilities"]
    _our_validator("sessionHistory").validate(capabilities["sessionHistory"])
    known = _without(capabilities, ["sessionHistory"])
    _validator("InitializeResponse", UNSTABLE).validate({**result, "agentCapabilities": known})
    known["sessionCapabilities"] = _without(known["sessionCapabilities"], _UNSTABLE_CAPABILITIES)
    _validator("InitializeResponse").validate({**result, "agentCapabilities": known})


def _check_rows(rows: list[dict[str, Any]]) -> None:
    assert len({row["sessionId"] for row in rows}) == len(rows)
    for row in rows:
        _validator("SessionInfo", UNSTABLE if "archived" in row else STABLE).validate(row)


def _check_conversation(result: dict[str, Any]) -> None:
    _our_validator("get").validate(result)
    for turn in result["turns"]:
        _our_validator("turn").validate(turn)
        for block in turn["content"]:
            _validator("ContentBlock").validate(block)
        for call in turn["toolCalls"]:
            _validator("ToolCall").validate(call)


def _check_values(value: object, key: str = "") -> None:
    """No nulls in objects, well-formed text, absolute paths, RFC 3339 times."""
    if isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            assert item is not None or name == "id", f"{name} is null"
            _check_values(item, "" if key in _RAW else name)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            _check_values(item, key)
    elif isinstance(value, str):
        _check_text(value, key)


def _check_text(value: str, key: str) -> None:
    assert not any("\ud800" <= character <= "\udfff" for character in value)
    if key in ("cwd", "path"):
        assert value.startswith("/")
    if key == "updatedAt":
        assert datetime.fromisoformat(value).tzinfo is not None
