"""Content of turns as content blocks that fit a frame: images, attachments, links.

Nothing a transcript names is opened or fetched. What is too big for a frame is named with its type and size instead.
"""

import re
from collections.abc import Iterator

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.bounds import pieces
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.text import one_line
from acp_history_bridge.turns import Image, Part, Resource, ResourceLink, Text, Thought

__all__ = ["image_block", "link_block", "part_blocks", "resource_blocks"]

_URI_LIMIT = 8 * 1024
_MIME_LIMIT = 100
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_UNKNOWN_TYPE = "application/octet-stream"


def part_blocks(part: Part, image_limit: int) -> Iterator[Json]:
    """What a person or the agent said in one part; blank text is nothing."""
    if isinstance(part, Text | Thought):
        if part.text and not part.text.isspace():
            yield from map(wire.text, pieces(part.text))
    elif isinstance(part, Image):
        yield image_block(part, image_limit)
    elif isinstance(part, Resource):
        yield from resource_blocks(part, image_limit)
    elif isinstance(part, ResourceLink):
        yield link_block(part)


def image_block(image: Image, limit: int) -> Json:
    """An image; above `limit` bytes of base64 a link to it, or a note when it has no address."""
    mime_type = _mime(image.mime_type)
    uri = image.uri if image.uri and len(image.uri) <= _URI_LIMIT else None
    if image.data and _sendable(image.data, limit):
        return wire.image(image.data, mime_type, uri)
    size = len(image.data) * 3 // 4
    if uri is not None and not uri.startswith("data:"):
        return wire.resource_link(uri, _name(uri), mime_type, size or None)
    reason = "not stored in the transcript"
    if size:
        reason = f"{size:,} bytes, too large to be sent" if len(image.data) > limit else "damaged"
    return wire.text(f"[Image {mime_type}: {reason}]")


def resource_blocks(resource: Resource, limit: int) -> Iterator[Json]:
    """An attachment; a long text comes as several blocks with the same address, a big blob as a link."""
    uri = resource.uri[:_URI_LIMIT]
    mime_type = None if resource.mime_type is None else _mime(resource.mime_type)
    if resource.text is not None:
        for piece in pieces(resource.text):
            yield wire.resource(uri, mime_type, text_=piece)
    elif resource.blob is not None and _sendable(resource.blob, limit):
        yield wire.resource(uri, mime_type, blob=resource.blob)
    else:
        size = None if resource.blob is None else len(resource.blob) * 3 // 4
        yield wire.resource_link(uri, _name(uri), mime_type, size)


def link_block(link: ResourceLink) -> Json:
    """A link; one whose address is as long as a document is only named."""
    name = one_line(link.name) or _name(link.uri[:_URI_LIMIT])
    if len(link.uri) > _URI_LIMIT:
        return wire.text(f"[Attachment {name}: its address has {len(link.uri):,} characters and is left out]")
    size = link.size if link.size is not None and 0 <= link.size < 2**63 else None
    return wire.resource_link(link.uri, name, None if link.mime_type is None else _mime(link.mime_type), size)


def _sendable(data: str, limit: int) -> bool:
    # What is no base64 could take six times its length in JSON, and no client could show it.
    return len(data) <= limit and _BASE64.fullmatch(data) is not None


def _mime(mime_type: str) -> str:
    return one_line(mime_type, _MIME_LIMIT) or _UNKNOWN_TYPE


def _name(uri: str) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        path = urlsplit(uri).path
    except ValueError:  # a broken IPv6 host
        path = uri
    return one_line(unquote(path).rstrip("/").rpartition("/")[2]) or "attachment"
