"""`bridge export`: conversations as files.

One session goes to standard output or to a file; `--all` writes every session that the filters leave into a directory,
with an index of them. Nothing is left half-written.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.conversations import open_conversation
from acp_history_bridge.cli.finding import find_session
from acp_history_bridge.cli.index import titles_of
from acp_history_bridge.cli.output import is_terminal, prepare_stdout
from acp_history_bridge.cli.progress import counted, scan
from acp_history_bridge.cli.query import make_query, sessions_of
from acp_history_bridge.cli.writing import write_whole
from acp_history_bridge.errors import BridgeError, ConfigurationError, TranscriptError
from acp_history_bridge.export.conversation import Conversation
from acp_history_bridge.export.overview import OVERVIEWS
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.text import one_line, replace_surrogates, terminal_safe

__all__ = ["form", "run"]

_SUFFIXES = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".json": "json", ".jsonl": "jsonl"}


def form(name: str) -> Callable[[Conversation], Iterator[str]]:
    """The function that writes a form; only the one that is needed is loaded."""
    if name == "html":
        from acp_history_bridge.export.html import html

        return html
    if name == "md":
        from acp_history_bridge.export.markdown import markdown

        return markdown
    from acp_history_bridge.export.records import json_document, json_lines

    return json_document if name == "json" else json_lines


def run(arguments: Namespace, context: Context) -> int:
    """Export what is asked for."""
    prepare_stdout()
    if arguments.all is (arguments.id is not None):
        raise ConfigurationError("export: give a session, or --all for every one that the filters leave")
    if arguments.all and arguments.output is None:
        raise ConfigurationError("export --all: -o DIR says where to")
    adapters = context.adapters()
    name = _form_name(arguments)
    query = make_query(arguments, adapters)
    with closing(context.library(adapters)) as library:
        scan(library)
        if arguments.all:
            return _export_all(library, query, name, arguments.output, adapters)
        session = find_session(library, adapters, arguments.id)
        with open_conversation(library, session) as (conversation, _):
            turns = counted("Writing turns", conversation.turns) if arguments.output else conversation.turns
            _export_one(form(name)(replace(conversation, turns=turns)), arguments.output)
    return 0


def _form_name(arguments: Namespace) -> str:
    """What `--format` says, else what the file's name ends with, else Markdown."""
    named: str | None = arguments.format
    output: Path | None = arguments.output
    if named is not None:
        return named
    return "md" if output is None or arguments.all else _SUFFIXES.get(output.suffix.lower(), "md")


def _export_one(pieces: Iterator[str], output: Path | None) -> None:
    if output is not None:
        write_whole(output, pieces)
        return
    # A terminal must not obey what a transcript holds; a file or a pipe gets every character as it is.
    clean = terminal_safe if is_terminal() else replace_surrogates
    for piece in pieces:
        sys.stdout.write(clean(piece))


def _export_all(library: Library, query: SessionQuery, name: str, directory: Path, adapters: Sequence[Adapter]) -> int:
    """Write a file per session and an index; a session that cannot be read costs itself only."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BridgeError(f"cannot make {directory}: {error.strerror}") from error
    sessions = list(sessions_of(library, query, 0))
    written: list[tuple[str, Session]] = []
    failed = 0
    for session in counted("Exporting", sessions, len(sessions)):
        file = f"{session.id.replace(':', '-')}.{name}"
        try:
            with open_conversation(library, session) as (conversation, _):
                write_whole(directory / file, form(name)(conversation))
            written.append((file, session))
        except TranscriptError as error:
            failed += 1
            print(f"bridge: {session.id}: {one_line(str(error))}", file=sys.stderr)
    write_whole(directory / f"index.{name}", OVERVIEWS[name](written, titles_of(adapters)))
    print(f"{len(written)} sessions written to {terminal_safe(str(directory))}", file=sys.stderr)
    return 1 if failed else 0
