"""`bridge resume`: go on with a session in its own tool, in its own directory.

Policy: the tool's command is an argument vector and replaces this process; no shell sees anything of a transcript.
"""

import os
import sys
from argparse import Namespace
from contextlib import closing
from shutil import which

from acp_history_bridge.adapter import Command
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.conversations import resume_command, shell_line
from acp_history_bridge.cli.finding import find_session
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.errors import BridgeError
from acp_history_bridge.text import terminal_safe

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Become the tool, or print how that is done."""
    prepare_stdout()
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        scan(library)
        session = find_session(library, adapters, arguments.id)
        command = resume_command(library, session)
        if command is None:
            title = library.adapter(session.tool).title
            raise BridgeError(f"{title} cannot go on with {session.id}; `bridge show {session.id}` shows it")
    if arguments.print:
        write_lines([terminal_safe(shell_line(command))])
        return 0
    return _become(command)


def _become(command: Command) -> int:
    """Replace this process; returns only by raising."""
    program = which(command.argv[0])
    if program is None:
        raise BridgeError(f"{command.argv[0]} is not installed, or not in PATH")
    if command.cwd is not None:
        try:
            os.chdir(command.cwd)
        except OSError as error:
            raise BridgeError(f"its directory {command.cwd}: {error.strerror}") from error
    sys.stdout.flush()
    os.execv(program, command.argv)  # noqa: S606 - an argument vector from the adapter, no shell
