"""Writing to the terminal and to pipes: the only module, beside the protocol, that owns standard output."""

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import orjson

from acp_history_bridge.text import terminal_safe

__all__ = ["age", "home_relative", "is_terminal", "prepare_stdout", "terminal_line", "write_json", "write_lines"]

_AGES = ((365 * 86400, "year"), (30 * 86400, "month"), (7 * 86400, "week"), (86400, "day"), (3600, "hour"), (60, "min"))


def prepare_stdout() -> None:
    """Pipes get UTF-8 whatever the locale; a terminal keeps its encoding, and what that lacks becomes `?`."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # something else can stand in for standard output
    if callable(reconfigure):
        reconfigure(errors="replace", encoding=None if is_terminal() else "utf-8")


def is_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def write_lines(lines: Iterable[str]) -> None:
    """Print each line."""
    for line in lines:
        sys.stdout.write(line + "\n")


def write_json(value: object) -> None:
    """Print one JSON value on a line of its own."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")


def age(then: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits: `3 hours`; what lies in the future is `now`."""
    seconds = (now - then).total_seconds()
    for length, unit in _AGES:
        if (count := int(seconds // length)) >= 1:
            return f"{count} {unit}{'s' if count > 1 and unit != 'min' else ''}"
    return "now"


def home_relative(path: str, home: Path) -> str:
    """A directory as people write it, with `~`, safe to show."""
    prefix = str(home)
    if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
        path = "~" + path[len(prefix.rstrip("/")) :]
    return terminal_line(path)


def terminal_line(text: str) -> str:
    """Text that neither acts on a terminal nor ends the line or the field it stands in."""
    return terminal_safe(text).replace("\n", "\ufffd").replace("\t", "\ufffd")
