"""The ACP schema as an oracle: every object closed, so that an invented or misspelt field fails."""

import functools
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

SCHEMAS = Path(__file__).parent.parent / "data" / "acp-schema"

_OPEN = {"ExtRequest", "ExtResponse", "ExtNotification"}
# Values of the tools themselves, which may be any JSON.
_RAW = {"rawInput", "rawOutput"}
_FRAME_LIMIT = 1024 * 1024


@functools.cache
def _definitions() -> dict[str, Any]:
    document = json.loads((SCHEMAS / "v1" / "schema.json").read_text(encoding="utf-8"))
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
def _methods() -> dict[str, dict[str, str]]:
    methods: dict[str, dict[str, dict[str, str]]] = json.loads((SCHEMAS / "methods.json").read_text(encoding="utf-8"))
    return methods["v1/schema.json"]


@functools.cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}__strict", "$defs": _definitions()})


def check_frame(line: bytes, methods_by_id: Mapping[object, str]) -> dict[str, Any]:
    """Check one line the agent wrote against everything that can be said of a line alone.

    Args:
        line: With its newline.
        methods_by_id: Which method each request used.

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
        _validator(_methods()[message["method"]]["notificationParams"]).validate(message["params"])
    elif "error" in message:
        assert set(message) == {"jsonrpc", "id", "error"}
        _validator("Error").validate(message["error"])
    else:
        assert set(message) == {"jsonrpc", "id", "result"}
        _validator(_methods()[methods_by_id[message["id"]]]["result"]).validate(message["result"])


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
