"""A conversation as Markdown: what was said stays as it was written, everything else is fenced.

Policy: complete; `brief` leaves the inner life of tool calls out (a line each stays). A fence is always longer than any
run of backticks it encloses, so content cannot break out of it.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain

from acp_history_bridge.export.conversation import Conversation, Numbered, numbered, subagent_turns
from acp_history_bridge.export.diffs import diff_lines
from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.export.words import (
    COMPACTED,
    attachment_line,
    clock_time,
    outcome,
    plan_lines,
    speaker,
    tool_input,
)
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

__all__ = ["markdown", "markdown_messages"]

_BACKTICKS = re.compile("`{3,}")
_LEVELS = 6


def markdown(conversation: Conversation) -> Iterator[str]:
    """The whole document."""
    yield f"# {conversation.title}\n\n"
    for line in _facts(conversation):
        yield f"- {line}\n"
    yield from markdown_messages(numbered(conversation.turns))


def markdown_messages(messages: Iterator[Numbered], *, brief: bool = False) -> Iterator[str]:
    """The messages, each under a heading."""
    return _messages(messages, 0, brief=brief)


def _facts(conversation: Conversation) -> Iterator[str]:
    yield f"{conversation.tool}, `{conversation.id}`"
    if conversation.cwd is not None:
        yield f"in `{one_line(conversation.cwd, 1000)}`" + (
            f", branch `{one_line(conversation.branch)}`" if conversation.branch else ""
        )
    if conversation.updated_at is not None:
        yield f"last active {clock_time(conversation.updated_at)}"
    if conversation.resume is not None:
        yield f"continue with `{one_line(conversation.resume, 1000)}`"


def _messages(messages: Iterator[Numbered], depth: int, *, brief: bool) -> Iterator[str]:
    level = "#" * min(2 + depth, _LEVELS)
    for message in messages:
        turn = message.turn
        pieces = [piece for part in turn.parts if (piece := _part(part, depth, brief=brief)) is not None]
        if pieces and not message.continues:
            time = "" if turn.timestamp is None else f" · {clock_time(turn.timestamp)}"
            yield f"\n{level} {message.number} · {speaker(turn)}{time}\n"
        yield from chain.from_iterable(pieces)


def _part(part: Part, depth: int, *, brief: bool) -> Iterator[str] | None:
    """A part's paragraphs, each with a blank line before it; None when there is nothing to see."""
    if isinstance(part, Text | Thought | Notice) and not part.text.strip():
        return None
    if isinstance(part, ToolCall):
        return _tool_line(part) if brief else _tool(part, depth)
    return _FORMS[type(part)](part)


def _text(part: Text) -> Iterator[str]:
    yield f"\n{part.text.strip()}\n"


def _thought(part: Thought) -> Iterator[str]:
    yield "\n*Thought*\n\n" + "".join(f"> {line}\n" for line in part.text.strip().split("\n"))


def _notice(part: Notice) -> Iterator[str]:
    yield f"\n*{one_line(part.text, 2000)}*\n"


def _attachment(part: Image | Resource | ResourceLink) -> Iterator[str]:
    yield f"\n`{attachment_line(part)}`\n"
    if isinstance(part, Resource) and part.text is not None:
        yield _fenced(part.text)


def _plan(part: Plan) -> Iterator[str]:
    yield "\n*Plan*\n\n" + "".join(f"{line}\n" for line in plan_lines(part))


def _compaction(part: Compaction) -> Iterator[str]:
    yield f"\n---\n\n*{COMPACTED}*\n"
    if part.summary.strip():
        yield _fenced(part.summary)


def _tool_line(call: ToolCall) -> Iterator[str]:
    yield f"\n**{call.kind}** `{one_line(call.title).replace('`', chr(39))}` ({outcome(call)})\n"


def _tool(call: ToolCall, depth: int) -> Iterator[str]:
    yield from _tool_line(call)
    has_diff = any(isinstance(item, Diff) for item in call.content)
    if not has_diff and (arguments := tool_input(call)):
        yield _fenced(arguments, "json")
    for item in call.content:
        if isinstance(item, Diff):
            yield f"\n`{one_line(item.path, 1000)}`\n" + _fenced("\n".join(diff_lines(item)), "diff")
        elif isinstance(item, Text):
            yield _fenced(item.text)
        else:
            yield from _attachment(item)
    if call.shell is not None and call.shell.output.strip():
        yield _fenced(call.shell.output)
    if call.output is not None and not call.content and call.shell is None:
        yield _fenced(_plain(call.output))
    for run in call.subagents:
        yield f"\n*Sub-agent {one_line(run.name)}*\n"
        yield from _messages(numbered(subagent_turns(run, depth + 1)), depth + 1, brief=False)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else dumps(value)


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"\n{fence}{language}\n{text}{end}{fence}\n"


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
