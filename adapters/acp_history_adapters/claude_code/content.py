"""Content blocks of messages and tool results, turned into parts.

Policy: nothing a person could read is lost; what is only for the model (signatures, encrypted thoughts, cache marks)
becomes nothing. A named file or address is passed on as a name and never opened.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import quote

from acp_history_bridge.turns import Image, Resource, ResourceLink, Text
from acp_history_bridge.values import JsonMap, first_string, items, mapping, maps, string

from .prompts import joined_text

__all__ = ["Shown", "fenced", "is_known_block", "plain_text", "to_content"]

Shown = Text | Image | Resource | ResourceLink

_SILENT = frozenset({"thinking", "redacted_thinking", "tool_addition", "compaction"})
_BACKTICKS = re.compile("`{3,}")


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block whose fence is longer than any inside."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def to_content(content: object) -> Iterator[Shown]:
    """Turn a string or a list of blocks into what is shown of it."""
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for block in items(content):
        if isinstance(block, str):
            yield from _text({"text": block})
        else:
            yield from _of_block(mapping(block))


def is_known_block(kind: object) -> bool:
    """Whether a block of this type is understood, be it that it is left out on purpose."""
    return isinstance(kind, str) and (kind in _SILENT or kind in _READERS)


def plain_text(content: Sequence[Shown]) -> str:
    """All text among the parts."""
    return "\n".join(part.text for part in content if isinstance(part, Text))


def _of_block(block: JsonMap) -> Iterator[Shown]:
    reader = _READERS.get(string(block.get("type")))
    if reader is not None:
        yield from reader(block)


def _text(block: JsonMap) -> Iterator[Shown]:
    if text := string(block.get("text")):
        yield Text(text)


def _image(block: JsonMap) -> Iterator[Shown]:
    source = mapping(block.get("source"))
    mime_type = first_string(source, "media_type") or "image/png"
    data, uri = string(source.get("data")), first_string(source, "url")
    if data or uri:
        yield Image(mime_type, data, uri or None)
    elif file := first_string(source, "file_id"):
        yield ResourceLink(f"attachment:{quote(file, errors='replace')}", file)


def _document(block: JsonMap) -> Iterator[Shown]:
    source = mapping(block.get("source"))
    name = first_string(block, "title") or "Document"
    uri = f"attachment:{quote(name, errors='replace')}"
    mime_type = first_string(source, "media_type") or None
    data = string(source.get("data"))
    if url := first_string(source, "url"):
        yield ResourceLink(url, name, mime_type)
    elif file := first_string(source, "file_id"):
        yield ResourceLink(f"attachment:{quote(file, errors='replace')}", name)
    elif source.get("type") == "base64":
        yield Resource(uri, blob=data, mime_type=mime_type)
    elif text := data or joined_text(source.get("content")):
        yield Resource(uri, text=text, mime_type=mime_type)


def _search_result(block: JsonMap) -> Iterator[Shown]:
    source = first_string(block, "source", "url")
    title = first_string(block, "title") or source
    text = joined_text(block.get("content"))
    if text:
        yield Resource(source or "attachment:search-result", text=f"{title}\n\n{text}" if title else text)
    elif source:
        yield ResourceLink(source, title)


def _container_upload(block: JsonMap) -> Iterator[Shown]:
    if file := first_string(block, "file_id"):
        yield ResourceLink(f"attachment:{quote(file, errors='replace')}", file)


def _web_search_result(block: JsonMap) -> Iterator[Shown]:
    if url := first_string(block, "url"):
        yield ResourceLink(url, first_string(block, "title") or url)


def _web_fetch_result(block: JsonMap) -> Iterator[Shown]:
    yield from _web_search_result(block)
    yield from to_content([block.get("content")])


def _resource_link(block: JsonMap) -> Iterator[Shown]:
    if uri := first_string(block, "uri"):
        yield ResourceLink(uri, first_string(block, "name", "title") or uri, first_string(block, "mimeType") or None)


def _resource(block: JsonMap) -> Iterator[Shown]:
    resource = mapping(block.get("resource"))
    text, blob = string(resource.get("text")), string(resource.get("blob"))
    if text or blob:
        uri = first_string(resource, "uri") or "attachment:resource"
        yield Resource(uri, text or None, blob or None, first_string(resource, "mimeType") or None)


def _tool_reference(block: JsonMap) -> Iterator[Shown]:
    if name := first_string(block, "tool_name"):
        yield Text(f"Tool: {name}")


def _execution_result(block: JsonMap) -> Iterator[Shown]:
    for key in ("stdout", "stderr"):
        if text := string(block.get(key)):
            yield Text(fenced(text))
    for part in maps(block.get("content")):
        yield from _of_block(part)


_READERS: Mapping[str, Callable[[JsonMap], Iterator[Shown]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "container_upload": _container_upload,
    "web_search_result": _web_search_result,
    "web_fetch_result": _web_fetch_result,
    "resource_link": _resource_link,
    "resource": _resource,
    "tool_reference": _tool_reference,
    "code_execution_result": _execution_result,
    "bash_code_execution_result": _execution_result,
}
