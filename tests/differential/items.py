"""What a client sees of a replay, in a form in which two agents can be compared.

Chunks are cut into lines, because agents cut messages into chunks differently; a call and its updates become one call
as it stands in the end; fences, trailing blanks and what is no conversation (commands, modes, titles) are left out.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["Call", "Item", "Replayed", "replayed"]

Update = Mapping[str, Any]

_FENCE = re.compile(r"^`{3,}\w*$")
_RAW_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a message, an image, a link, a plan, or the place of a tool call.

    Attributes:
        kind: `user`, `agent`, `thought`, `plan` or `call`; for other blocks `user image` and so on.
        text: What tells one from another: the line, a hash of the picture, the call's id.
    """

    kind: str
    text: str


@dataclass(slots=True)
class Call:
    """A tool call as it stands at the end of the replay."""

    name: str = ""
    title: str = ""
    kind: str = "other"
    status: str = ""
    locations: list[str] = field(default_factory=list[str])
    diffs: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    text: str = ""
    images: list[str] = field(default_factory=list[str])
    input: str = ""
    output: str = ""


@dataclass(slots=True)
class Replayed:
    """A whole replay; `attached` are the texts of attachments."""

    items: list[Item] = field(default_factory=list[Item])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    usage: tuple[int, int] | None = None
    attached: list[str] = field(default_factory=list[str])

    def shown(self) -> frozenset[str]:
        """Every line that can be read anywhere in the replay, without the blanks around it."""
        texts = [*(item.text for item in self.items), *self.attached]
        texts += [text for call in self.calls.values() for text in (call.text, call.title, call.input)]
        return frozenset(line.strip() for text in texts for line in text.splitlines())


def replayed(updates: Iterable[Update]) -> Replayed:
    """Make updates comparable."""
    result = Replayed()
    merged: dict[str, dict[str, Any]] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind.endswith("_chunk"):
            block = update["content"]
            result.items += _block(kind.split("_")[1 if "thought" in kind else 0], block)
            result.attached.append(block.get("resource", {}).get("text", ""))
        elif kind in {"tool_call", "tool_call_update"}:
            identity = update["toolCallId"]
            if identity not in merged:
                result.items.append(Item("call", identity))
            _merge(merged.setdefault(identity, {}), update)
        elif kind == "plan":
            result.items.append(Item("plan", _entries(update["entries"])))
        elif kind == "usage_update":
            result.usage = update["used"], update["size"]
    result.calls = {identity: _call(fields) for identity, fields in merged.items()}
    return result


def _entries(entries: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(f"[{entry['status']}, {entry['priority']}] {entry['content']}" for entry in entries)


def _block(role: str, block: Mapping[str, Any]) -> Iterator[Item]:
    if block["type"] == "text":
        yield from (Item(role, line.rstrip()) for line in _readable(block["text"]).splitlines() if line.strip())
    elif block["type"] == "image":
        yield Item(f"{role} image", _image(block))
    elif block["type"] == "resource":
        yield Item(f"{role} resource", block["resource"]["uri"])
    else:
        yield Item(f"{role} link", block["uri"])


def _readable(text: str) -> str:
    """Without halves of characters, which we replace because strict clients refuse them."""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _image(block: Mapping[str, Any]) -> str:
    return f"{block['mimeType']} {hashlib.sha256(block['data'].encode()).hexdigest()[:16]}"


def _merge(call: dict[str, Any], update: Update) -> None:
    call.update({key: value for key, value in update.items() if key not in {"_meta", "content"} and value is not None})
    if update.get("content"):
        call["content"] = [*update["content"]]
    meta: dict[str, dict[str, Any]] = update.get("_meta") or {}
    for key in ("terminal_output", "terminal_output_delta"):
        call["terminal"] = call.get("terminal", "") + meta.get(key, {}).get("data", "")


def _call(fields: Mapping[str, Any]) -> Call:
    contents = fields.get("content", ())
    blocks = [item["content"] for item in contents if item["type"] == "content"]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    texts += [block["uri"] for block in blocks if block["type"] == "resource_link"]
    return Call(
        name=fields.get("name", ""),
        title=fields.get("title", ""),
        kind=fields.get("kind", "other"),
        status=fields["status"],
        locations=[f"{place['path']}:{place.get('line') or ''}" for place in fields.get("locations", ())],
        diffs=[
            (item["path"], item.get("oldText") or "", item.get("newText", ""))
            for item in contents
            if item["type"] == "diff"
        ],
        text="\n".join(_lines("\n".join([*texts, fields.get("terminal", "")]))),
        images=[_image(block) for block in blocks if block["type"] == "image"],
        input=_raw(fields.get("rawInput")),
        output=_raw(fields.get("rawOutput")),
    )


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines() if line.strip() and not _FENCE.match(line))


def _raw(value: object) -> str:
    text = "" if value is None else _json(value)
    return text if len(text) <= _RAW_LIMIT else "(large)"


def _json(value: object) -> str:
    return json.dumps(_without_null(value), ensure_ascii=False, sort_keys=True)


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return {key: _without_null(item) for key, item in members if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in cast("list[object]", value)]
    return value
