"""The command line: every command, its options and its help; docs/cli.md describes the same, and a test compares them.

Nothing but argparse is imported here, so `--help` and `--version` cost next to nothing.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from acp_history_bridge import __version__

__all__ = [
    "CLIENT_NAMES",
    "COMMANDS",
    "EXAMPLES",
    "FORMATS",
    "GROUPS",
    "LOG_LEVELS",
    "SHELLS",
    "build_parser",
    "command_parsers",
]

FORMATS = ("md", "html", "json", "jsonl")
SHELLS = ("bash", "zsh", "fish")
GROUPS = ("cwd", "tool", "day")
CLIENT_NAMES = (
    "zed",
    "jetbrains",
    "vscode",
    "acpx",
    "codecompanion",
    "avante",
    "agent-shell",
    "toad",
    "obsidian",
)
LOG_LEVELS = ("debug", "info", "warning", "error")

# Which module of this package runs a command.
COMMANDS = {
    "index": "index",
    "search": "search",
    "show": "show",
    "export": "export",
    "resume": "resume",
    "fork": "fork",
    "watch": "watch",
    "doctor": "doctor",
    "setup": "setup",
    "completion": "completion",
    "hide": "hide",
    "unhide": "hide",
    "acp": "acp",
    "try": "tour",
    "config": "config",
}

EXAMPLES = {
    "index": (
        "bridge index --cwd . --since 7d",
        "bridge index --group cwd",
        "bridge index --tool codex --jsonl | jq .title",
    ),
    "search": ("bridge search parser error", "bridge search '\"off by one\" since:4w'"),
    "show": ("bridge show last", "bridge show last:claude --full", "bridge show claude:6513 --turns 3-7"),
    "export": ("bridge export last -o session.html", "bridge export --all --since 30d --format md -o backup"),
    "resume": ("bridge resume last:claude", "bridge resume claude:6513 --print"),
    "fork": ("bridge fork last:claude",),
    "watch": ("bridge watch --cwd .", "bridge watch --jsonl"),
    "doctor": ("bridge doctor", "bridge doctor --deep --json"),
    "hide": ("bridge hide claude:6513", "bridge index --hidden"),
    "setup": ("bridge setup zed", "bridge setup jetbrains --write"),
    "completion": ("source <(bridge completion bash)",),
}

_AddCommand = Callable[..., argparse.ArgumentParser]


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole program."""
    return _build()[0]


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, by its name."""
    return _build()[1]


def _build() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    program = Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(
        prog=program if program in {"bridge", "acp-history-bridge"} else "bridge",
        description="Lists, replays and follows the histories of CLI coding agents as one ACP agent.",
        epilog="Transcripts are only read, never written. `COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"acp-history-bridge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add_command in _COMMANDS:
        add_command(commands.add_parser)
    for name, command in commands.choices.items():
        _add_common_options(command)
        command.formatter_class = _HelpFormatter
        command.epilog = (
            "\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[name])]) if name in EXAMPLES else None
        )
    return parser, dict(commands.choices)


def _add_index(add: _AddCommand) -> None:
    text = "list the sessions of all tools, newest activity first"
    command = add("index", help=text, description=f"{text[0].upper()}{text[1:]}.")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object: sessions and their total number")
    form.add_argument("--jsonl", action="store_true", help="print one JSON object per session and line")
    kind = command.add_mutually_exclusive_group()
    kind.add_argument("--group", choices=GROUPS, help="count the sessions of each directory, tool or day instead")
    kind.add_argument("--stats", action="store_true", help="draw how many sessions each tool and each day has")
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


def _add_fork(add: _AddCommand) -> None:
    text = "make a new session of the same tool that goes on from where this one ends"
    about = f"{text[0].upper()}{text[1:]}. This one stays as it is, and the tool itself can resume the new one."
    _add_id(add("fork", help=text, description=about))


def _add_resume(add: _AddCommand) -> None:
    text = "go on with a session in its own tool and directory"
    command = add("resume", help=text, description=f"{text[0].upper()}{text[1:]}.")
    _add_id(command)
    command.add_argument("--print", action="store_true", help="print the command as a shell line, and run nothing")


def _add_watch(add: _AddCommand) -> None:
    text = "follow what happens to the sessions of all tools"
    command = add("watch", help=text, description=f"{text[0].upper()}{text[1:]}, until it is interrupted.")
    command.add_argument("--tool", action="append", metavar="TOOL", help="only this tool; can be given several times")
    command.add_argument("--cwd", type=Path, metavar="DIR", help="only sessions of this very directory")
    command.add_argument("--jsonl", action="store_true", help="print one JSON object per change and line")
    command.set_defaults(since=None)


def _add_doctor(add: _AddCommand) -> None:
    text = "report what is found, what could not be read, and the state of the bridge itself"
    command = add("doctor", help=text, description=f"{text[0].upper()}{text[1:]}. It only looks.")
    command.add_argument("--deep", action="store_true", help="read every transcript whole, which can take minutes")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_setup(add: _AddCommand) -> None:
    text = "print what a client's configuration needs, or put it there"
    command = add("setup", help=text, description=f"{text[0].upper()}{text[1:]}; without CLIENT, name the clients.")
    command.add_argument("client", nargs="?", choices=CLIENT_NAMES, metavar="CLIENT", help=", ".join(CLIENT_NAMES))
    command.add_argument(
        "--write", action="store_true", help="merge it into the client's JSON configuration, and keep a copy of that"
    )


def _add_completion(add: _AddCommand) -> None:
    text = "print a completion script for a shell"
    command = add("completion", help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.add_argument("shell", choices=SHELLS, help="which shell")


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


# In the order of the help, which is that of COMMANDS.
_COMMANDS = (
    _add_index,
    _add_search,
    _add_show,
    _add_export,
    _add_resume,
    _add_fork,
    _add_watch,
    _add_doctor,
    _add_setup,
    _add_completion,
    _add_hide,
    _add_acp,
    _add_try,
    _add_config,
)
