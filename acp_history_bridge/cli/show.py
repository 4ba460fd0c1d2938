"""`bridge show`: one conversation, readable.

A terminal gets it rendered and in a pager; a pipe gets Markdown, sanitised as for a terminal, because a pager is what
usually follows; `--json` gives programs everything. All of them read one turn at a time.
"""

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

from acp_history_bridge.adapter import Transcript
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.conversations import open_conversation
from acp_history_bridge.cli.finding import find_session
from acp_history_bridge.cli.output import is_terminal, prepare_stdout
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.errors import BridgeError
from acp_history_bridge.export.conversation import Conversation, Numbered, numbered
from acp_history_bridge.text import terminal_safe
from acp_history_bridge.turns import Turn

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Show the session that is asked for."""
    prepare_stdout()
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        scan(library)
        session = find_session(library, adapters, arguments.id)
        with open_conversation(library, session) as (conversation, transcript):
            chosen = _chosen(numbered(conversation.turns), arguments.turns)
            if arguments.json:
                _print_json(conversation, chosen)
            elif is_terminal():
                _print_screen(arguments, conversation, chosen, transcript)
            else:
                _print_markdown(conversation, chosen, full=arguments.full)
    return 0


def _chosen(messages: Iterator[Numbered], span: tuple[int, int | None] | None) -> Iterator[Numbered]:
    """The messages of a span; reading stops behind it.

    Raises:
        BridgeError: The conversation has no such message.
    """
    if span is None:
        yield from messages
        return
    first, last = span
    number = 0
    for message in messages:
        number = message.number
        if last is not None and number > last:
            return
        if number >= first:
            yield message
    if number < first:
        raise BridgeError(f"--turns: the conversation has {number} messages")


def _print_json(conversation: Conversation, chosen: Iterable[Numbered]) -> None:
    from acp_history_bridge.export.records import json_document

    turns: Iterator[Turn] = (message.turn for message in chosen)
    for piece in json_document(replace(conversation, turns=turns)):
        sys.stdout.write(piece)


def _print_markdown(conversation: Conversation, chosen: Iterator[Numbered], *, full: bool) -> None:
    from acp_history_bridge.export.markdown import markdown_messages

    sys.stdout.write(f"# {terminal_safe(conversation.title)}\n")
    for piece in markdown_messages(chosen, brief=not full):
        sys.stdout.write(terminal_safe(piece))


def _print_screen(
    arguments: Namespace, conversation: Conversation, chosen: Iterator[Numbered], transcript: Transcript
) -> None:
    from acp_history_bridge.cli.pager import paged
    from acp_history_bridge.cli.screen import Screen

    with paged(use=not arguments.no_pager) as console:
        screen = Screen(console, full=arguments.full, raw=arguments.raw)
        screen.print_heading(conversation)
        for message in chosen:
            screen.print_message(message)
        if transcript.left_out:
            screen.print_remark(f"{transcript.left_out} messages that were rewound are left out.")
