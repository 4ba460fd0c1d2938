"""Which parts of a turn are worth finding: what was said, and what tool calls were about."""

from collections.abc import Iterable, Iterator

from acp_history_bridge.adapter import Passage
from acp_history_bridge.turns import Compaction, Location, Part, Resource, ShellResult, Text, ToolCall, Turn

__all__ = ["passages_of", "tool_passage"]


def passages_of(turns: Iterable[Turn], *, output: bool = False) -> Iterator[Passage]:
    """Yield the passages of turns; `output` adds what tools printed."""
    for turn in turns:
        for part in turn.parts:
            yield from _of_part(part, output=output)


def tool_passage(title: str, locations: Iterable[Location], end: int = 0) -> Passage:
    """What is found of a tool call: its title and the paths it touched."""
    return Passage("tool", "\n".join(dict.fromkeys((title, *(location.path for location in locations)))), end)


def _of_part(part: Part, *, output: bool) -> Iterator[Passage]:
    match part:
        case Text(text) | Compaction(_, text):
            yield Passage("message", text)
        case ToolCall():
            yield tool_passage(part.title, part.locations)
            if output:
                yield from _outputs(part)
        case _:
            return


def _outputs(call: ToolCall) -> Iterator[Passage]:
    if isinstance(call.shell, ShellResult):
        yield Passage("output", call.shell.output)
    for content in call.content:
        if isinstance(content, Text | Resource) and content.text:
            yield Passage("output", content.text)
