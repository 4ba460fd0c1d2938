"""The records of a transcript: what each is, and what a person said in it.

Policy: a user record with an unknown subtype is a prompt, so no text is lost. Unknown system records are reported and
stay in the chain of parents. The content of `@file` references is no text of the prompt: it becomes attachments.
"""

import re
from enum import Enum
from urllib.parse import quote

from acp_history_bridge.toolcalls import absolute_path
from acp_history_bridge.turns import Image, Part, Resource, ResourceLink, Text
from acp_history_bridge.values import JsonMap, integer, mapping, maps, string

__all__ = ["Kind", "blob_part", "classify", "content_parts", "display_text", "prompt_parts", "prompt_text"]

_MARKER = "\n--- Content from referenced files ---"
_END = "\n--- End of content ---"
_FILE = re.compile(r"\nContent from @?([^\n]+):\n")


class Kind(Enum):
    """What a record is to a reader."""

    PROMPT = "a person's message"
    NOTIFICATION = "a message that the tool wrote to its user and the model"
    ANSWER = "the model's message"
    RESULT = "the outcome of a tool call"
    COMMAND = "a slash command or its output"
    COMPRESSION = "a summary took the place of the history for the model"
    ERROR = "a failed request to the model"
    REWIND = "what followed the parent was taken back"
    SILENT = "bookkeeping"
    TOO_LARGE = "over the limit for a line"


_SYSTEM = {
    "slash_command": Kind.COMMAND,
    "chat_compression": Kind.COMPRESSION,
    "rewind": Kind.REWIND,
    **dict.fromkeys(
        (
            *("at_command", "attribution_snapshot", "branch_checkpoint", "custom_title", "file_history_snapshot"),
            *("goal_state", "goal_turn_end", "parent_session", "session_model", "session_source"),
            *("session_sources_snapshot", "ui_telemetry", "user_text_elements"),
        ),
        Kind.SILENT,
    ),
}
_TYPES = {"assistant": Kind.ANSWER, "tool_result": Kind.RESULT}
_USER = {"notification": Kind.NOTIFICATION, "goal_runtime": Kind.SILENT}


def classify(record: JsonMap) -> Kind | None:
    """What a record is; None for one that is not known."""
    kind, subtype = string(record.get("type")), string(record.get("subtype"))
    if kind == "user":
        return _USER.get(subtype, Kind.PROMPT)
    if kind != "system":
        return _TYPES.get(kind)
    event = mapping(mapping(record.get("systemPayload")).get("uiEvent"))
    if subtype == "ui_telemetry" and string(event.get("event.name")).endswith("api_error"):
        return Kind.ERROR
    if subtype.startswith("session_artifact"):
        return Kind.SILENT
    return _SYSTEM.get(subtype)


def content_parts(record: JsonMap) -> list[JsonMap]:
    """The parts of a record's message."""
    return maps(mapping(record.get("message")).get("parts"))


def display_text(record: JsonMap) -> str:
    """What the tool itself shows in place of the message, if anything."""
    return string(mapping(record.get("systemPayload")).get("displayText"))


def prompt_text(record: JsonMap) -> str:
    """What a person typed, without the content of referenced files."""
    shown = display_text(record)
    return shown or "".join(string(part.get("text")) for part in content_parts(record)).partition(_MARKER)[0]


def prompt_parts(record: JsonMap) -> list[Part]:
    """A person's message: text, referenced files, pictures, links."""
    parts: list[Part] = []
    content = content_parts(record)
    whole = "".join(string(part.get("text")) for part in content)
    if shown := display_text(record):
        parts.append(Text(shown))
    elif _MARKER in whole:
        text, _, files = whole.partition(_MARKER)
        parts += [Text(text)] if text else []
        parts += _referenced(files.rpartition(_END)[0] or files, string(record.get("cwd")))
    else:
        parts += [Text(text) for part in content if (text := string(part.get("text")))]
    parts += [made for part in content if (made := blob_part(part))]
    for link in maps(mapping(record.get("systemPayload")).get("resourceLinks")):
        if uri := string(link.get("uri")):
            size = integer(link.get("size"))
            parts.append(ResourceLink(uri, string(link.get("name")) or uri, string(link.get("mimeType")) or None, size))
    return parts


def _referenced(text: str, cwd: str) -> list[Resource]:
    pieces = _FILE.split(text)
    return [Resource(_uri(path, cwd), text=content) for path, content in zip(pieces[1::2], pieces[2::2], strict=True)]


def _uri(path: str, cwd: str) -> str:
    path = absolute_path(path, cwd)
    return f"file://{quote(path, errors='replace')}" if path.startswith("/") else path or "attachment"


def blob_part(part: JsonMap) -> Image | Resource | ResourceLink | None:
    """A picture or document in a message, in the form of the Gemini API."""
    inline, file = mapping(part.get("inlineData")), mapping(part.get("fileData"))
    mime = string(inline.get("mimeType")) or string(file.get("mimeType"))
    name = string(inline.get("displayName")) or string(file.get("displayName"))
    if data := string(inline.get("data")):
        if mime.startswith("image/"):
            return Image(mime, data)
        return Resource(f"file:///{quote(name or 'attachment')}", blob=data, mime_type=mime or None)
    if uri := string(file.get("fileUri")):
        return ResourceLink(uri, name or uri, mime or None)
    return None
