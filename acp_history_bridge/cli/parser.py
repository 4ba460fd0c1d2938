"""The command line: every command, its options and its help; docs/cli.md describes the same, and a test compares them.

Nothing but argparse is imported here, so `--help` and `--version` cost next to nothing.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from acp_history_bridge import __version__

__all__ = ["COMMANDS", "FORMATS", "LOG_LEVELS", "build_parser"]

FORMATS = ("md", "html", "json", "jsonl")
LOG_LEVELS = ("debug", "info", "warning", "error")

# Which module of this package runs a command.
COMMANDS = {
    "index": "index",
    "search": "search",
    "show": "show",
    "export": "export",
    "hide": "hide",
    "unhide": "hide",
    "acp": "acp",
    "try": "tour",
    "config": "config",
}

_AddCommand = Callable[..., argparse.ArgumentParser]


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole program."""
    program = Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(
        prog=program if program in {"bridge", "acp-history-bridge"} else "bridge",
        description="Lists, replays and follows the histories of CLI coding agents as one ACP agent.",
        epilog="Transcripts are only read, never written. `COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"acp-history-bridge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_index(commands.add_parser)
    _add_search(commands.add_parser)
    _add_show(commands.add_parser)
    _add_export(commands.add_parser)
    _add_hide(commands.add_parser)
    _add_acp(commands.add_parser)
    _add_try(commands.add_parser)
    _add_config(commands.add_parser)
    for command in commands.choices.values():
        _add_common_options(command)
    return parser


def _add_index(add: _AddCommand) -> None:
    text = "list the sessions of all tools, newest activity first"
    command = add("index", help=text, description=f"{text[0].upper()}{text[1:]}.")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object: sessions and their total number")
    form.add_argument("--jsonl", action="store_true", help="print one JSON object per session and line")
    _add_filters(command)
    command.add_argument(
        "--search", default="", metavar="WORDS", help="only sessions with all these words in the title"
    )
    command.add_argument("--hidden", action="store_true", help="only the sessions that were hidden")
    command.add_argument(
        "--limit", type=_count, metavar="N", help="at most N sessions, 0 for all (default: 50 on a terminal, else all)"
    )


def _add_search(add: _AddCommand) -> None:
    text = "find sessions by what was said in them"
    command = add(
        "search",
        help=text,
        description=f"{text[0].upper()}{text[1:]}, best match first. "
        'A query holds words, "phrases", prefix*, -excluded, and the filters tool:, cwd: and since:.',
    )
    command.add_argument("query", nargs="*", metavar="WORD", help="what to look for; all of it must occur")
    command.add_argument("--json", action="store_true", help="print one JSON object: sessions with their snippets")
    _add_filters(command)
    command.add_argument("--limit", type=_count, metavar="N", help="at most N sessions (default: 20)")
    command.add_argument("--update", action="store_true", help="bring the full-text index up to date first")
    command.add_argument("--quiet", action="store_true", help="with --update: run at low priority and say nothing")


def _add_show(add: _AddCommand) -> None:
    text = "show one conversation"
    command = add("show", help=text, description=f"{text[0].upper()}{text[1:]}, in a pager on a terminal.")
    _add_id(command)
    command.add_argument("--turns", type=_span, metavar="A-B", help="only these messages: 3, 3-7, or 3- to the end")
    command.add_argument(
        "--full", action="store_true", help="thoughts, whole diffs, inputs and outputs of tools, and sub-agents, too"
    )
    command.add_argument("--raw", action="store_true", help="Markdown as it was written, not rendered")
    command.add_argument("--no-pager", action="store_true", help="print directly")
    command.add_argument("--json", action="store_true", help="print one JSON object with everything")


def _add_export(add: _AddCommand) -> None:
    text = "write conversations as Markdown, HTML or JSON"
    command = add("export", help=text, description=f"{text[0].upper()}{text[1:]}, complete, with nothing shortened.")
    _add_id(command, nargs="?")
    command.add_argument("--all", action="store_true", help="every session that the filters leave, into a directory")
    command.add_argument("--format", choices=FORMATS, help="the form (default: as the file's name ends, else md)")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to (default: standard output)")
    _add_filters(command)


def _add_hide(add: _AddCommand) -> None:
    for name, text in (
        ("hide", "leave a session out of every list, search and push of the bridge; its transcript stays as it is"),
        ("unhide", "show a hidden session again"),
    ):
        _add_id(add(name, help=text, description=f"{text[0].upper()}{text[1:]}."))


def _add_id(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("id", nargs=nargs, metavar="ID", help="a session: its id or how that begins, last, last:TOOL")


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tool", action="append", metavar="TOOL", help="only this tool; can be given several times")
    command.add_argument("--cwd", type=Path, metavar="DIR", help="only sessions of this very directory")
    command.add_argument(
        "--since", metavar="TIME", help="only sessions active since then: 2026-11-01, 2026-11-01T09:30, 12h, 7d, 4w"
    )


def _add_config(add: _AddCommand) -> None:
    text = "show the settings in force, and where each comes from"
    command = add("config", help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_acp(add: _AddCommand) -> None:
    text = "serve the sessions to an editor: the Agent Client Protocol over standard input and output"
    add("acp", help=text, description=f"{text[0].upper()}{text[1:]}. Editors start this; it ends with its input.")


def _add_try(add: _AddCommand) -> None:
    text = "show what the bridge finds, and talk to the agent as an editor does"
    add("try", help=text, description=f"{text[0].upper()}{text[1:]}: it lists and replays the newest session.")


def _add_common_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("common options")
    group.add_argument("--demo", action="store_true", help="use a small bundled sample instead of the home directory")
    group.add_argument("--config", type=Path, metavar="FILE", help="use this settings file")
    group.add_argument(
        "--log-level", choices=LOG_LEVELS, help="what is logged (default: ACP_HISTORY_BRIDGE_LOG, else warning)"
    )
    group.add_argument("--log-stderr", action="store_true", help="log to standard error instead of the log file")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def _span(text: str) -> tuple[int, int | None]:
    first, dash, last = text.partition("-")
    span = int(first), (int(last) if last else None) if dash else int(first)
    if span[0] < 1 or (span[1] is not None and span[1] < span[0]):
        raise argparse.ArgumentTypeError("counts from 1, the smaller number first")
    return span
