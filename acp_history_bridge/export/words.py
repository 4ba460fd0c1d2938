"""How the parts of a conversation are called and shortened to a line, alike in every form for people."""

from datetime import datetime

from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.text import one_line
from acp_history_bridge.turns import Image, Plan, PlanStatus, Resource, ResourceLink, ToolCall, Turn

__all__ = ["COMPACTED", "MARKS", "attachment_line", "clock_time", "outcome", "plan_lines", "speaker", "tool_input"]

COMPACTED = "The conversation was compacted here; the agent went on with a summary of everything above."
MARKS: dict[PlanStatus, str] = {"pending": " ", "in_progress": "~", "completed": "x"}
_SPEAKERS = {"user": "User", "agent": "Agent"}


def speaker(turn: Turn) -> str:
    """Who says this turn."""
    return "Note" if turn.synthetic else _SPEAKERS[turn.role]


def clock_time(time: datetime) -> str:
    """To the second, in UTC, as files outlive the zone they were written in."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def outcome(call: ToolCall) -> str:
    """How a call ended, in a word or two."""
    code = None if call.shell is None else call.shell.exit_code
    return call.status if code is None else f"{call.status}, exit code {code}"


def attachment_line(part: Image | Resource | ResourceLink) -> str:
    """An attachment that is not shown itself: what it is and where it lay; never a link that could be followed."""
    if isinstance(part, Image):
        size = f", {len(part.data) * 3 // 4:,} bytes" if part.data else ""
        return one_line(f"[image {part.mime_type}{size}{f', {part.uri}' if part.uri else ''}]")
    if isinstance(part, ResourceLink):
        return one_line(f"[attachment {part.name} {part.uri}]")
    return one_line(f"[attachment {part.uri}]")


def plan_lines(plan: Plan) -> list[str]:
    """A todo list, a line each."""
    return [f"- [{MARKS[entry.status]}] {one_line(entry.content, 2000)}" for entry in plan.entries]


def tool_input(call: ToolCall) -> str:
    """The arguments of a call, unless its title or a diff says them already."""
    return "" if call.input is None or call.input == {} else dumps(call.input)
