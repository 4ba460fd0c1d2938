"""What a message record says, with everything taken out that the tool put in for its model alone.

Policy:

- Injected context is recognised part by part: after a cancelled prompt the tool keeps its context and the user's first
  prompt as two parts of one message.
- `displayContent` is what the user typed and wins over `content`, which may hold files and expanded commands.
- The files an `@path` pulled in become resources beside the prompt, not text of the prompt.
- Thoughts and calls are stored twice in records the tool wrote again; each is read once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

from acp_history_bridge.toolcalls import absolute_path, shell_title
from acp_history_bridge.turns import (
    Compaction,
    Image,
    Part,
    Resource,
    ResourceLink,
    ShellResult,
    Text,
    Thought,
    ToolCall,
)
from acp_history_bridge.values import JsonMap, boolean, integer, items, mapping, maps, string

__all__ = [
    "ACKNOWLEDGEMENT",
    "AgentMessage",
    "UserMessage",
    "is_command",
    "media",
    "message_type",
    "number_of",
    "parts_of",
    "read_agent",
    "read_user",
    "said",
    "snapshot_of",
    "spoken",
]

ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"

_WRAPPED = re.compile(r"\s*<(session_context|hook_context)>.*?(?:</\1>|\Z)", re.DOTALL)
_INJECTED = (
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "- **Workspace Directories:**",
    "Here is the user's editor context as a JSON object",
    "Here is a summary of changes in the user's editor context",
)
_SNAPSHOT = "<state_snapshot>"
_SNAPSHOT_TAGS = re.compile(r"\A<state_snapshot>\s*|\s*</state_snapshot>\s*\Z")
_SHELL = re.compile(
    r"I ran the following shell command:\n```sh\n(?P<command>.*?)\n```\n\n"
    r"This produced the following result:\n```\n(?P<output>.*)\n```\s*",
    re.DOTALL,
)
_SHELL_EXIT = re.compile(r"Command exited with code (\d+)\.\n?")
_REFERENCES = re.compile(r"(?:\A|\n)--- Content from referenced (?:files|context) ---(?:\n|\Z)")
_REFERENCES_END = re.compile(r"(?:\A|\n)--- End of content ---\s*")
_REFERENCE = re.compile(r"(?:\A|\n)Content from @?([^\n]+):\n")


@dataclass(slots=True)
class UserMessage:
    """A `user` record: what the user gave, and the tool results that came in the user's name."""

    parts: list[Part] = field(default_factory=list[Part])
    responses: list[JsonMap] = field(default_factory=list[JsonMap])
    unknown: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """What the user wrote."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(slots=True)
class AgentMessage:
    """A `gemini` record without its `toolCalls`."""

    parts: list[Part] = field(default_factory=list[Part])
    calls: list[JsonMap] = field(default_factory=list[JsonMap])
    unknown: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """What the agent answered."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def message_type(message: JsonMap) -> str:
    """The record's `type`."""
    return string(message.get("type"))


def parts_of(content: object) -> list[JsonMap]:
    """The parts of a content, which can be a string, a part, or a list of strings and parts."""
    return [
        {"text": item} if isinstance(item, str) else cast("JsonMap", item)
        for item in (items(content) or (content,))
        if isinstance(item, str | dict)
    ]


def is_command(prompt: str) -> bool:
    """Whether the tool takes a text for one of its own commands, which never name a session."""
    return prompt.lstrip().startswith(("/", "?"))


def snapshot_of(message: JsonMap) -> str | None:
    """The summary by which the tool replaced earlier messages, if this is the message that holds it."""
    if message_type(message) == "user":
        for part in parts_of(message.get("content")):
            if (text := string(part.get("text"))).startswith(_SNAPSHOT):
                return text
    return None


def spoken(message: JsonMap) -> str:
    """What the user or the agent said in this record; empty for everything else."""
    match message_type(message):
        case "user":
            return read_user(message, None).text
        case "gemini":
            text = read_agent(message).text
            return "" if text == ACKNOWLEDGEMENT else text
        case _:
            return ""


def said(message: JsonMap) -> int | None:
    """A number that is equal for copies of one message under different ids; None for messages without words."""
    return number_of(message_type(message), spoken(message))


def number_of(kind: str, text: str) -> int | None:
    """A number for a text that is the same however its blanks are set; None for nothing but blanks."""
    words = " ".join(text.split())
    return hash((kind, words)) if words else None


def read_user(message: JsonMap, cwd: str | None) -> UserMessage:
    """Read a `user` record; `cwd` makes the paths of attached files absolute."""
    reader = _UserReader(cwd)
    for part in parts_of(message.get("content")):
        reader.take(part, string(message.get("id")))
    result = reader.result
    typed = "".join(string(part.get("text")) for part in parts_of(message.get("displayContent")))
    if typed.strip() and not result.responses:
        result.parts = [Text(typed), *(part for part in result.parts if not isinstance(part, Text))]
    return result


class _UserReader:
    """Goes through the parts of one `user` record; attached files span several of them."""

    def __init__(self, cwd: str | None) -> None:
        self.result = UserMessage()
        self._cwd = cwd
        self._attaching = False
        self._attached = ""  # the file whose content comes next
        self._awaited = False  # its content is the next part as a whole, whatever markers stand in it

    def take(self, part: JsonMap, message_id: str) -> None:
        text = part.get("text")
        if isinstance(text, str):
            self._text(text, message_id)
        elif isinstance(part.get("functionResponse"), dict):
            self.result.responses.append(mapping(part["functionResponse"]))
        elif (found := media(part)) is not None:
            self.result.parts.append(found)
        elif "functionCall" not in part:
            self.result.unknown.append(_kind(part))

    def _text(self, text: str, message_id: str) -> None:
        if self._attaching:
            self._attachments(text)
            return
        begin = _REFERENCES.search(text)
        before = text[: begin.start()] if begin else text
        if before.startswith(_SNAPSHOT):
            self.result.parts.append(Compaction(message_id, _SNAPSHOT_TAGS.sub("", before)))
        elif shell := _SHELL.fullmatch(before):
            self.result.parts.append(_own_command(message_id, shell["command"], shell["output"]))
        elif (own := _without_context(before)).strip():
            self.result.parts.append(Text(own))
        if begin:
            self._attaching = True
            self._attachments(text[begin.end() :])

    def _attachments(self, text: str) -> None:
        if self._awaited:
            self._attach(text)
            self._awaited = False
            return
        ends = list(_REFERENCES_END.finditer(text))
        end = ends[-1] if ends else None  # the last one counts: a file can hold the same words
        pieces = _REFERENCE.split(text[: end.start()] if end else text)
        self._attach(pieces[0])
        for name, content in zip(pieces[1::2], pieces[2::2], strict=True):
            self._attached = name
            self._attach(content)
        self._awaited = len(pieces) > 1 and not pieces[-1] and not end
        if end:
            self._attaching = False
            if (rest := text[end.end() :]).strip():
                self.result.parts.append(Text(rest))

    def _attach(self, content: str) -> None:
        if content.strip():
            self.result.parts.append(Resource(_uri(self._attached, self._cwd), text=content))


def _without_context(text: str) -> str:
    if text.startswith(_INJECTED):
        return ""
    while text.lstrip().startswith(("<session_context>", "<hook_context>")):
        text = _WRAPPED.sub("", text, count=1)
    return text


def _own_command(message_id: str, command: str, output: str) -> ToolCall:
    code = _SHELL_EXIT.match(output)
    return ToolCall(
        id=f"{message_id}-shell",
        name="shell",
        title=shell_title(command),
        kind="execute",
        status="completed",
        input={"command": command},
        shell=ShellResult(output[code.end() :] if code else output, int(code[1]) if code else None),
    )


def _uri(name: str, cwd: str | None) -> str:
    path = name if "://" in name else absolute_path(name, cwd)
    return f"file://{quote(path, errors='replace')}" if path.startswith("/") else path or "attachment"


def read_agent(message: JsonMap) -> AgentMessage:
    """Read a `gemini` record: thoughts, then what was said, and the calls that are only parts of the content."""
    result = AgentMessage()
    thoughts = list(_thoughts(message))
    texts: list[str] = []
    for part in parts_of(message.get("content")):
        text = part.get("text")
        if isinstance(text, str) and boolean(part.get("thought")):
            if not thoughts and text.strip():
                result.parts.append(Thought(text))
        elif isinstance(text, str):
            texts.append(text)
        elif isinstance(part.get("functionCall"), dict):
            result.calls.append(mapping(part["functionCall"]))
        elif (found := _code(part) or media(part)) is not None:
            _say(result, texts)
            result.parts.append(found)
        elif "functionResponse" not in part:
            result.unknown.append(_kind(part))
    _say(result, texts)
    result.parts[:0] = thoughts
    return result


def _say(result: AgentMessage, texts: list[str]) -> None:
    if (text := "".join(texts)).strip():
        result.parts.append(Text(text))
    texts.clear()


def _thoughts(message: JsonMap) -> Iterator[Thought]:
    for thought in maps(message.get("thoughts")):
        subject, description = string(thought.get("subject")), string(thought.get("description"))
        text = "\n".join(piece for piece in (f"**{subject}**" if subject.strip() else "", description) if piece.strip())
        if text:
            yield Thought(text)


def _code(part: JsonMap) -> Text | None:
    """Code that the model ran on the service's side, and what it printed."""
    if isinstance(part.get("executableCode"), dict):
        code = mapping(part["executableCode"])
        return Text(f"\n```{string(code.get('language')).lower()}\n{string(code.get('code'))}\n```\n")
    if isinstance(part.get("codeExecutionResult"), dict):
        return Text(f"\n```\n{string(mapping(part['codeExecutionResult']).get('output'))}\n```\n")
    return None


def media(part: JsonMap) -> Image | Resource | ResourceLink | None:
    """A picture or file in a part of a content; None when the part is something else."""
    inline = mapping(part.get("inlineData"))
    if data := string(inline.get("data")):
        mime = string(inline.get("mimeType")) or "application/octet-stream"
        return Image(mime, data) if mime.startswith("image/") else Resource("attachment", blob=data, mime_type=mime)
    file = mapping(part.get("fileData"))
    if uri := string(file.get("fileUri")):
        name = string(file.get("displayName")) or uri.rpartition("/")[2] or uri
        return ResourceLink(uri, name, string(file.get("mimeType")) or None, integer(file.get("sizeBytes")))
    return None


def _kind(part: JsonMap) -> str:
    return "part:" + ",".join(sorted(str(key)[:40] for key in part)[:4])
