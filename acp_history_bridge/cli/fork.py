"""`bridge fork`: a new session in the tool's own format that goes on from where another ends."""

from argparse import Namespace
from contextlib import closing

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.conversations import resume_command, shell_line
from acp_history_bridge.cli.finding import find_session
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.forking import take_in, write_fork
from acp_history_bridge.text import terminal_safe

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Write the fork, and say what it is called and how its tool goes on with it."""
    prepare_stdout()
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        scan(library)
        session = find_session(library, adapters, arguments.id)
        adapter = library.adapter(session.tool)
        fork, _ = take_in(library, adapter, session, write_fork(adapter, session))
        lines = [f"Forked: {fork.id}  {terminal_safe(fork.title or '-')}"]
        command = resume_command(library, fork)
    if command is not None:
        lines.append(f"Go on with: {terminal_safe(shell_line(command))}")
    write_lines(lines)
    return 0
