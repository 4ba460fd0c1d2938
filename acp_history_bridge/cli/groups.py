"""`bridge index --group` and `--stats`: how many sessions there are, by directory, tool or day.

Days are those of the clock on the wall.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from acp_history_bridge.cli.output import terminal_line
from acp_history_bridge.sessions import Session
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.timestamps import format_time

__all__ = ["KEYS", "Group", "Statistics", "as_json", "as_line", "chart", "groups", "statistics"]

_DAYS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"

KEYS: Mapping[str, Callable[[Session], str]] = {
    "cwd": lambda session: session.cwd,
    "tool": lambda session: session.tool,
    "day": lambda session: f"{session.updated_at.astimezone():%Y-%m-%d}",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Sessions that have something in common, and the last activity of any."""

    name: str
    sessions: int
    updated_at: datetime


def groups(sessions: Iterable[Session], key: str) -> list[Group]:
    """Count sessions that come newest first; the group with the newest activity is the first."""
    counts: Counter[str] = Counter()
    latest: dict[str, datetime] = {}
    for session in sessions:
        name = KEYS[key](session)
        counts[name] += 1
        latest.setdefault(name, session.updated_at)
    return [Group(name, counts[name], time) for name, time in latest.items()]


def as_json(group: Group, key: str) -> dict[str, object]:
    """The documented JSON form."""
    name = replace_surrogates(group.name)
    return {key: name, "sessions": group.sessions, "updatedAt": format_time(group.updated_at)}


def as_line(group: Group) -> str:
    """The documented plain form, the name last."""
    return f"{group.sessions}\t{format_time(group.updated_at)}\t{terminal_line(group.name)}"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sessions by tool, the most used first, and by the day of their last activity, for the last days up to today."""

    total: int
    tools: Mapping[str, int]
    days: Mapping[date, int]


def statistics(sessions: Iterable[Session], today: date) -> Statistics:
    """Count sessions."""
    tools: Counter[str] = Counter()
    days = {today - timedelta(days=back): 0 for back in range(_DAYS - 1, -1, -1)}
    for session in sessions:
        tools[session.tool] += 1
        day = session.updated_at.astimezone().date()
        if day in days:
            days[day] += 1
    return Statistics(tools.total(), dict(tools.most_common()), days)


def chart(found: Statistics, titles: Mapping[str, str], width: int) -> Iterator[str]:
    """Two bar charts, as wide as the terminal allows."""
    yield f"{found.total:,} sessions"
    yield ""
    yield from _bars({terminal_line(titles.get(tool, tool)): count for tool, count in found.tools.items()}, width)
    yield ""
    yield f"Last active, by day, in the last {_DAYS} days"
    yield from _bars({f"{day:%a %d %b}": count for day, count in found.days.items()}, width)


def _bars(counts: Mapping[str, int], width: int) -> Iterator[str]:
    labels = max(map(len, counts), default=0)
    most = max(counts.values(), default=0) or 1
    room = max(width - labels - len(f"{most:,}") - 3, 8)
    for label, count in counts.items():
        yield f"{label:<{labels}} {_bar(count * room * 8 // most, nonzero=count > 0)} {count or ''}".rstrip()


def _bar(eighths: int, *, nonzero: bool) -> str:
    """A bar; what is there at all is seen."""
    whole, rest = divmod(max(eighths, int(nonzero)), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
