"""`bridge hide` and `bridge unhide`: which sessions lists show. Both can be repeated and undone."""

from argparse import Namespace
from contextlib import closing

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.finding import find_session
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.text import terminal_safe

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Hide a session, or show it again."""
    prepare_stdout()
    hiding = arguments.command == "hide"
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        # What was hidden can be shown again even while its transcript is away.
        if not hiding and library.decisions.unhide(arguments.id):
            write_lines([f"Shown again: {terminal_safe(arguments.id)}"])
            return 0
        scan(library)
        session = find_session(library, adapters, arguments.id)
        if hiding:
            library.decisions.hide(session.id)
        else:
            library.decisions.unhide(session.id)
        write_lines([f"{'Hidden' if hiding else 'Shown again'}: {session.id}  {terminal_safe(session.title or '-')}"])
    return 0
