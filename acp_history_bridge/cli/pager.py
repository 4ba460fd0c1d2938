"""A console whose output goes through the user's pager, as it is made: nothing waits for the end of a long history."""

import os
import shlex
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from shutil import which

from rich.console import Console

from acp_history_bridge.cli.table import make_console

__all__ = ["paged", "pager_command"]

# Leave when it fits on one screen, pass colours, keep the text on the screen afterwards.
_LESS = "-FRX"


def pager_command(variables: Mapping[str, str]) -> list[str] | None:
    """What `PAGER` names, else less; None when there is none, or when it is empty or `cat`."""
    named = variables.get("PAGER", "less")
    try:
        command = shlex.split(named)
    except ValueError:  # an unbalanced quote
        return None
    return None if not command or command == ["cat"] or which(command[0]) is None else command


@contextmanager
def paged(*, use: bool) -> Generator[Console]:
    """Yield a console, with a pager behind it if it is wanted and there is one."""
    console = make_console()
    command = pager_command(os.environ) if use else None
    if command is None:
        yield console
        return
    process = subprocess.Popen(  # noqa: S603 - the user's own pager
        command, stdin=subprocess.PIPE, env={"LESS": _LESS, **os.environ}, encoding="utf-8", errors="replace"
    )
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):  # it was left before the end
            yield make_console(file=process.stdin, width=console.width)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        _wait(process)


def _wait(process: "subprocess.Popen[str]") -> None:
    """Wait for the pager; Ctrl-C is the pager's business while it runs."""
    while process.poll() is None:
        with suppress(KeyboardInterrupt):
            process.wait()
