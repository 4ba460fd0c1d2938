"""What a person wrote: the content of messages, and which messages only wrap context for the model.

Policy: events and items hold prompts as they were typed. The older formats have nothing but the messages that were
sent to the model, so there what Codex itself put into the user's mouth is told by how it begins. Attachments stay data:
a data URL becomes an image, a path becomes a link that nobody opens.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote, urlsplit

from acp_history_bridge.turns import Image, Part, ResourceLink, Text, Thought
from acp_history_bridge.values import JsonMap, first_string, items, mapping, maps, string

__all__ = [
    "event_prompt",
    "file_path",
    "is_wrapper",
    "item_prompt",
    "message_parts",
    "picture",
    "prompt_text",
    "shell_notice",
    "thoughts",
    "wrapped_cwd",
]

_WRAPPERS = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<user_action>",
    "<codex_internal_context",
    "<skill>",
    "<image name=",
    "</image>",
)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,", re.ASCII)
_WRAPPED_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|^Current working directory: (.+)$", re.MULTILINE)
_SHELL_TAG = re.compile(r"</?(?:user_shell_command|command|result)>")
_ENVIRONMENT = "<environment_context>"


def is_wrapper(text: str) -> bool:
    """Whether a text of the user's role was written by Codex."""
    return text.lstrip().startswith(_WRAPPERS)


def wrapped_cwd(text: str) -> str | None:
    """The working directory that an environment wrapper names."""
    if not text.lstrip().startswith(_ENVIRONMENT):
        return None
    match = _WRAPPED_CWD.search(text)
    return (match[1] or match[2]).strip() if match else None


def picture(url: str) -> Image | None:
    """An image from a data URL, or one that only has an address; None for an empty one."""
    match = _DATA_URL.match(url)
    if match:
        return Image(match[1] or "image/png", data=url[match.end() :])
    return Image("image/*", uri=url) if url else None


def file_path(value: object) -> str:
    """A path from a plain path or a `file://` URL."""
    text = string(value)
    if not text.startswith("file://"):
        return text
    try:
        return unquote(urlsplit(text).path)
    except ValueError:  # a malformed host
        return text


def _link(path: str, name: str = "") -> ResourceLink:
    uri = "file://" + quote(path, errors="replace") if path.startswith("/") else path
    return ResourceLink(uri, name or path.rsplit("/", 1)[-1] or path)


def item_prompt(content: object) -> tuple[Part, ...]:
    """The parts of a `UserMessage` item."""
    parts: list[Part] = []
    for one in maps(content):
        match one.get("type"):
            case "text" | "Text":
                parts += _texts(one.get("text"))
            case "image":
                parts += _pictures([first_string(one, "image_url", "url")])
            case "local_image" | "mention":
                parts += [_link(path, string(one.get("name"))) for path in [file_path(one.get("path"))] if path]
            case "skill":
                parts += _texts(f"skill:{string(one.get('name'))} ({string(one.get('path'))})")
            case _:
                pass
    return tuple(parts)


def event_prompt(event: JsonMap) -> tuple[Part, ...]:
    """The parts of a `user_message` event."""
    parts: list[Part] = [*_texts(event.get("message")), *_pictures(items(event.get("images")))]
    parts += [_link(path) for value in items(event.get("local_images")) if (path := file_path(value))]
    return tuple(parts)


def message_parts(message: JsonMap) -> tuple[Part, ...]:
    """The parts of a message as it was sent to or came from the model, without wrappers."""
    wrapped = message.get("role") == "user"
    parts: list[Part] = []
    for one in maps(message.get("content")):
        match one.get("type"):
            case "input_text" | "output_text" | "text":
                parts += [part for part in _texts(one.get("text")) if not (wrapped and is_wrapper(part.text))]
            case "input_image":
                parts += _pictures([string(one.get("image_url"))])
            case "refusal":
                parts += _texts(one.get("refusal"))
            case _:
                pass
    return tuple(parts)


def thoughts(*groups: object) -> tuple[Thought, ...]:
    """One thought for each part of the first group that has any; parts are strings or objects with a text."""
    for group in groups:
        texts = [string(one) or string(mapping(one).get("text")) for one in items(group)]
        if any(text.strip() for text in texts):
            return tuple(Thought(text) for text in texts if text.strip())
    return ()


def shell_notice(message: JsonMap) -> str:
    """What a person ran with `!`, of which legacy rollouts keep only a message to the model; empty for others."""
    text = "".join(string(part.get("text")) for part in maps(message.get("content")))
    if message.get("role") != "user" or not text.startswith("<user_shell_command>"):
        return ""
    return "\n".join(line for line in text.splitlines() if not _SHELL_TAG.fullmatch(line)).strip()


def prompt_text(parts: Sequence[Part]) -> str:
    """The text of a prompt as Codex makes a title of it."""
    return " ".join(part.text for part in parts if isinstance(part, Text)).strip()


def _texts(value: object) -> list[Text]:
    text = string(value)
    return [Text(text)] if text.strip() else []


def _pictures(urls: Sequence[object]) -> list[Image]:
    return [image for url in urls if (image := picture(string(url))) is not None]
