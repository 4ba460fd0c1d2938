"""File parts: pictures and documents inside the transcript, and links to what is only named."""

import base64
import posixpath
from urllib.parse import quote, unquote, unquote_to_bytes

from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.turns import Image, Resource, ResourceLink
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["attachment"]


def attachment(data: JsonMap) -> Image | Resource | ResourceLink | None:
    """Make what a file part holds; None when it names nothing. Nothing is opened or fetched."""
    url = replace_surrogates(string(data.get("url")))
    mime = string(data.get("mime"))
    name = string(data.get("filename")) or unquote(posixpath.basename(url[:4096].split("?")[0]))
    if url.startswith("data:"):
        path = string(mapping(data.get("source")).get("path")) or string(data.get("filename")) or "attachment"
        return _embedded(url, mime, f"file:///{quote(replace_surrogates(path).lstrip('/'))}")
    return ResourceLink(url, name or url, mime or None) if url else None


def _embedded(url: str, mime: str, uri: str) -> Image | Resource | None:
    header, comma, body = url[5:].partition(",")
    mime = mime or header.split(";")[0] or "text/plain"
    if not comma:
        return None
    if not header.endswith(";base64"):
        content = unquote_to_bytes(body)
    elif mime.startswith("image/"):
        return Image(mime, body, uri)
    else:
        try:
            content = base64.b64decode(body, validate=True)
        except ValueError:  # also for signs beyond ASCII
            return None
    if mime.startswith("image/"):
        return Image(mime, base64.b64encode(content).decode("ascii"), uri)
    try:
        return Resource(uri, text=content.decode("utf-8"), mime_type=mime)
    except UnicodeDecodeError:
        return Resource(uri, blob=base64.b64encode(content).decode("ascii"), mime_type=mime)
