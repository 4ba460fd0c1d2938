"""What came back from a tool call: text, pictures, exit codes, in every shape that Codex has given them.

Policy: the wrapping that a release puts around an output (JSON with metadata, `Exit code:` and `Process exited` lines)
is taken off, what is left is shown as it is. A call that Codex refused never ran and counts as failed.
"""

import json
import re
from dataclasses import dataclass

from acp_history_adapters.codex.prompts import picture
from acp_history_bridge.jsonl import decode
from acp_history_bridge.turns import Image, Resource, ResourceLink, Text, ToolContent
from acp_history_bridge.values import JsonMap, integer, items, mapping, maps, string

__all__ = ["Output", "contents", "read_output", "tool_contents"]

# `Exit code: 1`, `Wall time: …`, `Chunk ID: …` lines and the like, up to `Output:`.
_HEADER = re.compile(
    r"(?:Exit code: (?P<exit>-?\d+)|Process exited with code (?P<code>-?\d+)|Process running with session ID \d+"
    r"|Command: [^\n]*|Wall time:? [^\n]*|Chunk ID: [^\n]*|Original token count: \d+|Total output lines: \d+"
    r"|Script completed|Script failed|Script running[^\n]*|Warning: [^\n]*)\n"
)
_OUTPUT = re.compile(r"Output:(?:\n|\Z)")
_REFUSALS = (
    "unsupported call",
    "unsupported custom tool call",
    "apply_patch verification failed",
    "failed to parse function arguments",
    "invalid arguments: ",
    "execution error",
    "exec_command failed",
    "aborted",
    "err: ",
    "Script failed\n",
)


@dataclass(frozen=True, slots=True)
class Output:
    """An output without its wrapping.

    Attributes:
        running: The process had not ended when this was reported.
    """

    content: tuple[ToolContent, ...] = ()
    exit_code: int | None = None
    failed: bool = False
    running: bool = False

    @property
    def text(self) -> str:
        """All text of the output."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


def read_output(value: object) -> Output:
    """Read the `output` of a function call's result: a string, or a list of content."""
    if items(value):
        content = contents(value)
        lead = content[0].text if content and isinstance(content[0], Text) else ""
        text, exit_code, running = _unwrap(lead)
        rest = content[1:] if lead else content
        return Output((*_text(text), *rest), exit_code, _failed(lead, exit_code), running)
    raw = string(value)
    unwrapped = _unwrap_json(raw)
    if unwrapped is not None:
        text, exit_code = unwrapped
        return Output(_text(text), exit_code, _failed(text, exit_code))
    text, exit_code, running = _unwrap(raw)
    return Output(_text(text), exit_code, _failed(raw, exit_code), running)


def _failed(text: str, exit_code: int | None) -> bool:
    return exit_code not in (None, 0) or (exit_code is None and text.startswith(_REFUSALS))


def _unwrap_json(text: str) -> tuple[str, int | None] | None:
    if not text.startswith('{"output":'):
        return None
    try:
        wrapped = mapping(decode(text.encode("utf-8", errors="surrogatepass")))
    except ValueError:  # cut by the tool; shown as it is
        return None
    return string(wrapped.get("output")), integer(mapping(wrapped.get("metadata")).get("exit_code"))


def _unwrap(text: str) -> tuple[str, int | None, bool]:
    position, exit_code, running = 0, None, False
    while header := _HEADER.match(text, position):
        position = header.end()
        found = header["exit"] or header["code"]
        # More digits than any exit status has are no exit status, and slow to convert.
        exit_code = int(found) if found and len(found) < 12 else exit_code
        running = running or header[0].startswith(("Process running", "Script running"))
    end = _OUTPUT.match(text, position)
    if position == 0 or end is None:
        return text, exit_code, running
    return text[end.end() :], exit_code, running


def _text(text: str) -> tuple[Text, ...]:
    return (Text(text),) if text else ()


def contents(value: object) -> tuple[ToolContent, ...]:
    """Read a list of content as the model's API and MCP write it; anything else is shown as JSON."""
    return tuple(part for one in maps(value) if (part := _content(one)) is not None)


def tool_contents(output: Output) -> tuple[ToolContent, ...]:
    """The content of an output whose text may itself be a JSON list of content, as older releases wrote MCP results."""
    text = output.text
    if len(output.content) == 1 and text.startswith("[{"):
        try:
            listed = items(decode(text.encode("utf-8", errors="surrogatepass")))
        except ValueError:  # only looked like JSON
            return output.content
        return contents(listed) or output.content
    return output.content


def _content(one: JsonMap) -> ToolContent | None:
    match one.get("type"):
        case "text" | "Text" | "input_text" | "output_text":
            return Text(string(one.get("text")))
        case "input_image":
            return picture(string(one.get("image_url")))
        case "image":
            return Image(string(one.get("mimeType")) or "image/png", data=string(one.get("data")))
        case "resource":
            return _resource(mapping(one.get("resource")))
        case "resource_link":
            uri = string(one.get("uri"))
            return ResourceLink(uri, string(one.get("name")) or uri, string(one.get("mimeType")) or None)
        case "encrypted_content":
            return None
        case _:
            return Text(json.dumps(one, ensure_ascii=False))


def _resource(resource: JsonMap) -> Resource:
    text = resource.get("text")
    return Resource(
        string(resource.get("uri")),
        text=text if isinstance(text, str) else None,
        blob=string(resource.get("blob")) or None,
        mime_type=string(resource.get("mimeType")) or None,
    )
