"""A conversation as one HTML page that needs nothing else.

Policy:

- The page's own policy forbids everything but its inline style and images that lie in it; there is no script, and
  nothing a transcript names is fetched. Folding is `<details>`.
- Everything is escaped. What was said is rendered as Markdown without raw HTML; a picture it links to becomes a link.
- The list of prompts comes last in the file, for they are known only then; the style puts it beside the text.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from importlib.resources import files

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from acp_history_bridge.export.conversation import Conversation, Numbered, numbered, subagent_turns
from acp_history_bridge.export.diffs import diff_lines
from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.export.words import COMPACTED, MARKS, attachment_line, clock_time, outcome, speaker, tool_input
from acp_history_bridge.text import one_line
from acp_history_bridge.turns import (
    Compaction,
    Diff,
    Image,
    Notice,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
)

__all__ = ["html", "page_end", "page_start", "safe"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_MARKDOWN_LIMIT = 200_000  # beyond it, text is shown as it was written; no renderer is linear on everything
_NAVIGATION_WIDTH = 90
_DIFF_CLASSES = {"+": "a", "-": "d", "@": "h"}


def html(conversation: Conversation) -> Iterator[str]:
    """The whole page."""
    yield page_start(conversation.title)
    yield f"<header>\n<h1>{safe(conversation.title)}</h1>\n"
    for line in _facts(conversation):
        yield f"<p>{line}</p>\n"
    yield "</header>\n<main>\n"
    prompts: list[tuple[int, str]] = []
    yield from _messages(numbered(conversation.turns), 0, prompts)
    yield "</main>\n<nav><ol>\n"
    for number, text in prompts:
        yield f'<li><a href="#m{number}">{safe(text)}</a></li>\n'
    yield f"</ol></nav>\n{page_end()}"


def page_start(title: str) -> str:
    """Everything before the visible part of a page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{safe(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
    )


def page_end() -> str:
    """Everything after it."""
    return "</body>\n</html>\n"


def safe(text: str) -> str:
    """Escape text, also for attributes; control characters, which HTML has no place for, become U+FFFD."""
    return escape(_CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n")))


@cache
def _style() -> str:
    return files("acp_history_bridge.export").joinpath("page.css").read_text(encoding="utf-8")


def _facts(conversation: Conversation) -> Iterator[str]:
    yield f"{safe(conversation.tool)} · <code>{safe(conversation.id)}</code>"
    if conversation.cwd is not None:
        branch = f" · branch {safe(conversation.branch)}" if conversation.branch else ""
        yield f"<code>{safe(conversation.cwd)}</code>{branch}"
    if conversation.updated_at is not None:
        yield f"Last active {clock_time(conversation.updated_at)}"
    if conversation.resume is not None:
        yield f"Continue with <code>{safe(conversation.resume)}</code>"


def _messages(messages: Iterator[Numbered], depth: int, prompts: list[tuple[int, str]] | None) -> Iterator[str]:
    open_message = False
    for message in messages:
        turn = message.turn
        shown = [part for part in turn.parts if not _is_blank(part)]
        if not shown and not message.continues:
            continue
        if not (message.continues and open_message):
            yield ("</section>\n" if open_message else "") + _message_start(message, depth)
            open_message = True
            if prompts is not None and turn.role == "user" and not turn.synthetic:
                prompts.append((message.number, _excerpt(shown)))
        for part in shown:
            yield from _part(part, depth)
    yield "</section>\n" if open_message else ""


def _message_start(message: Numbered, depth: int) -> str:
    turn = message.turn
    anchor = f' id="m{message.number}"' if depth == 0 else ""
    time = "" if turn.timestamp is None else f" · {clock_time(turn.timestamp)}"
    model = "" if turn.model is None else f" · {safe(one_line(turn.model))}"
    number = f'<a href="#m{message.number}">{message.number}</a> · ' if depth == 0 else ""
    kind = "note" if turn.synthetic else turn.role
    return f'<section class="m {kind}"{anchor}>\n<p class="who">{number}<b>{speaker(turn)}</b>{time}{model}</p>\n'


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text | Thought | Notice) and not part.text.strip()


def _excerpt(parts: list[Part]) -> str:
    return next((one_line(part.text, _NAVIGATION_WIDTH) for part in parts if isinstance(part, Text)), "[attachment]")


def _part(part: Part, depth: int) -> Iterator[str]:
    if isinstance(part, ToolCall):
        yield from _tool(part, depth)
    else:
        yield from _FORMS[type(part)](part)


def _text(part: Text) -> Iterator[str]:
    yield f'<div dir="auto">\n{_rendered(part.text)}</div>\n'


def _rendered(text: str) -> str:
    if len(text) > _MARKDOWN_LIMIT:
        return _pre(text)
    rendered: str = _markdown().render(_CONTROL.sub("\ufffd", text))
    return rendered


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False})
    markdown.add_render_rule("image", _image_link)
    markdown.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign] # its documented hook
    return markdown


def _image_link(_renderer: RendererHTML, tokens: list[Token], place: int, *_: object) -> str:
    token = tokens[place]
    target = safe(str(token.attrGet("src") or ""))
    return f'<a href="{target}">{safe(token.content) or target}</a>'


def _pre(text: str) -> str:
    return f"<pre>{safe(text)}</pre>\n"


def _folded(summary: str, *content: str) -> Iterator[str]:
    yield f"<details>\n<summary>{summary}</summary>\n"
    yield from content
    yield "</details>\n"


def _thought(part: Thought) -> Iterator[str]:
    yield from _folded("Thought", _rendered(part.text))


def _notice(part: Notice) -> Iterator[str]:
    yield f"<p><em>{safe(part.text)}</em></p>\n"


def _attachment(part: Image | Resource | ResourceLink) -> Iterator[str]:
    if isinstance(part, Image) and part.mime_type in _IMAGE_TYPES and _BASE64.fullmatch(part.data):
        yield f'<img alt="image" src="data:{part.mime_type};base64,{part.data}">\n'
        return
    line = f"<code>{safe(attachment_line(part))}</code>"
    if isinstance(part, Resource) and part.text is not None:
        yield from _folded(line, _pre(part.text))
    else:
        yield f"<p>{line}</p>\n"


def _plan(part: Plan) -> Iterator[str]:
    items = "".join(f"<li>[{MARKS[entry.status]}] {safe(entry.content)}</li>\n" for entry in part.entries)
    yield from _folded(f"Plan, {len(part.entries)} steps", f'<ul class="plan">\n{items}</ul>\n')


def _compaction(part: Compaction) -> Iterator[str]:
    yield f'<p class="cut">{COMPACTED}</p>\n'
    if part.summary.strip():
        yield from _folded("Summary", _rendered(part.summary))


def _tool(call: ToolCall, depth: int) -> Iterator[str]:
    state = ' class="failed"' if call.status == "failed" else ""
    yield f"<details>\n<summary><b>{safe(call.title)}</b> · <span{state}>{safe(outcome(call))}</span></summary>\n"
    if not any(isinstance(item, Diff) for item in call.content) and (arguments := tool_input(call)):
        yield _pre(arguments)
    for item in call.content:
        if isinstance(item, Diff):
            yield from _diff(item)
        elif isinstance(item, Text):
            yield _pre(item.text)
        else:
            yield from _attachment(item)
    if call.shell is not None and call.shell.output:
        yield _pre(call.shell.output)
    if call.output is not None and not call.content and call.shell is None:
        yield _pre(call.output if isinstance(call.output, str) else dumps(call.output))
    for run in call.subagents:
        yield f'<div class="sub">\n<p class="who">Sub-agent <b>{safe(run.name)}</b></p>\n'
        yield from _messages(numbered(subagent_turns(run, depth + 1)), depth + 1, None)
        yield "</div>\n"
    yield "</details>\n"


def _diff(diff: Diff) -> Iterator[str]:
    yield f'<p class="who">{safe(diff.path)}</p>\n<pre class="diff">'
    for line in diff_lines(diff):
        yield f'<span class="{_DIFF_CLASSES.get(line[:1], "c")}">{safe(line)}\n</span>'
    yield "</pre>\n"


_FORMS: dict[type, Callable[..., Iterator[str]]] = {
    Text: _text,
    Thought: _thought,
    Notice: _notice,
    Image: _attachment,
    Resource: _attachment,
    ResourceLink: _attachment,
    Plan: _plan,
    Compaction: _compaction,
}
