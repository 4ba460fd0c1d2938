"""A conversation on a terminal.

Policy: what a transcript holds is sanitised and handed to rich as `Text` or Markdown, never as markup, and links are
shown as text: a terminal would hide where they lead. Tool calls are folded to a line and the beginning of a diff,
unless everything is wanted.
"""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text as Line

from acp_history_bridge.export.conversation import Conversation, Numbered, numbered, subagent_turns
from acp_history_bridge.export.diffs import diff_lines
from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.export.words import attachment_line, outcome, plan_lines, speaker, tool_input
from acp_history_bridge.text import one_line, terminal_safe
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

__all__ = ["Screen"]

_MARKDOWN_LIMIT = 100_000  # rendering costs about 1 s per MB; what is longer is seldom prose
_DIFF_LINES = 12
_MARKS = {"completed": ("✓", "green"), "failed": ("✗", "red"), "unfinished": ("…", "yellow")}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_ROLES = {"user": "bold blue", "agent": "bold"}


class Screen:
    """Prints a conversation message by message."""

    def __init__(self, console: Console, *, full: bool = False, raw: bool = False) -> None:
        """Bind a console.

        Args:
            console: Where to print.
            full: Thoughts, whole diffs, what tools got and gave, and sub-agents.
            raw: Markdown as it was written.
        """
        self._console = console
        self._full = full
        self._raw = raw

    def print_heading(self, conversation: Conversation) -> None:
        """Title, id, place, and how to go on."""
        self._console.print(Line(terminal_safe(conversation.title), style="bold"))
        facts = [f"{conversation.tool}  {conversation.id}", conversation.cwd, conversation.resume]
        for fact in facts:
            if fact is not None:
                self._console.print(Line(one_line(fact, 1000), style="dim"), soft_wrap=True)

    def print_message(self, message: Numbered) -> None:
        """One message, or more of it."""
        for renderable in self._message(message, 0):
            self._console.print(renderable)

    def print_remark(self, text: str) -> None:
        """Something about the conversation."""
        self._console.print(Line(f"\n{text}", style="dim"))

    def _message(self, message: Numbered, depth: int) -> Iterator[RenderableType]:
        turn = message.turn
        shown = [renderable for part in turn.parts if (renderable := self._part(part, depth)) is not None]
        if shown and not message.continues:
            heading = Line(f"\n{message.number} {speaker(turn)}", style="dim" if turn.synthetic else _ROLES[turn.role])
            if turn.timestamp is not None:
                heading.append(f"  {turn.timestamp.astimezone():%Y-%m-%d %H:%M}", style="not bold dim")
            yield heading
        for renderable in shown:
            yield Padding(renderable, (0, 0, 0, 2))

    def _part(self, part: Part, depth: int) -> RenderableType | None:
        if isinstance(part, ToolCall):
            return Group(*self._tool(part, depth))
        if isinstance(part, Text):
            return self._prose(part.text) if part.text.strip() else None
        if isinstance(part, Thought | Compaction):
            return self._aside(part)
        if isinstance(part, Notice):
            return Line(terminal_safe(part.text), style="italic dim")
        if isinstance(part, Plan):
            return Line("\n".join(plan_lines(part)))
        return self._attachment(part)

    def _prose(self, text: str) -> RenderableType:
        clean = terminal_safe(text.strip("\n"))
        if self._raw or len(clean) > _MARKDOWN_LIMIT:
            return Line(clean)
        return Markdown(clean, hyperlinks=False, code_theme="ansi_dark")

    def _aside(self, part: Thought | Compaction) -> RenderableType | None:
        """Thoughts and summaries: how long they are, or all of it."""
        text = part.text if isinstance(part, Thought) else part.summary
        name = "thought" if isinstance(part, Thought) else "compacted; the agent went on with a summary"
        if not text.strip():
            return None if isinstance(part, Thought) else Line(f"── {name} ──", style="dim")
        if not self._full:
            return Line(f"[{name}, {_lines(text)}]", style="dim")
        return Line(f"[{name}]\n{terminal_safe(text.strip())}", style="dim")

    def _attachment(self, part: Image | Resource | ResourceLink) -> RenderableType:
        line = Line(attachment_line(part), style="magenta")
        if self._full and isinstance(part, Resource) and part.text is not None:
            line.append(f"\n{terminal_safe(part.text)}", style="not magenta dim")
        return line

    def _tool(self, call: ToolCall, depth: int) -> Iterator[RenderableType]:
        mark, style = _MARKS[call.status]
        line = Line(f"{mark} ", style=style).append(one_line(call.title), style="default")
        if call.status != "completed" or (call.shell is not None and call.shell.exit_code):
            line.append(f" ({outcome(call)})")
        yield line
        for item in call.content:
            if isinstance(item, Diff):
                yield self._diff(item)
            elif self._full:
                yield self._output(item.text) if isinstance(item, Text) else self._attachment(item)
        if self._full:
            yield from self._inside(call, depth)

    def _inside(self, call: ToolCall, depth: int) -> Iterator[RenderableType]:
        if not any(isinstance(item, Diff) for item in call.content) and (arguments := tool_input(call)):
            yield self._output(arguments)
        if call.shell is not None and call.shell.output.strip():
            yield self._output(call.shell.output)
        if call.output is not None and not call.content and call.shell is None:
            yield self._output(call.output if isinstance(call.output, str) else dumps(call.output))
        for run in call.subagents:
            yield Line(f"sub-agent {one_line(run.name)}", style="bold dim")
            for message in numbered(subagent_turns(run, depth + 1)):
                for renderable in self._message(message, depth + 1):
                    yield Padding(renderable, (0, 0, 0, 2))

    def _output(self, text: str) -> RenderableType:
        return Padding(Line(terminal_safe(text.rstrip()), style="dim"), (0, 0, 0, 2))

    def _diff(self, diff: Diff) -> RenderableType:
        text = Line()
        left_out = 0
        for place, line in enumerate(diff_lines(diff)):
            if place < _DIFF_LINES or self._full:
                text.append(f"{terminal_safe(line)}\n", style=_DIFF_STYLES.get(line[:1], "dim"))
            else:
                left_out += 1
        text.append(f"… {left_out} more lines" if left_out else "", style="dim")
        text.rstrip()
        return Padding(text, (0, 0, 0, 2))


def _lines(text: str) -> str:
    count = text.strip().count("\n") + 1
    return f"{count} line{'s' if count > 1 else ''}"
