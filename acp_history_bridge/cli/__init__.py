"""The terminal: one program, several commands.

Policy: parsing imports argparse and nothing else of weight; a command's module is imported when it runs. Exit status:
0 done (an empty list is a result, too), 1 failed or not found and stderr says why in one line, 2 wrong usage or a wrong
setting, 3 an error nobody expected (its traceback is in the log), 130 interrupted. A reader that closes the pipe early
(`| head`) has what it wanted: 0, and silence.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_history_bridge.cli.parser import COMMANDS, build_parser

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_OK", "EXIT_UNEXPECTED", "EXIT_USAGE", "main"]

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNEXPECTED = 3
EXIT_INTERRUPTED = 130

# Python looks for cycles after every 700 new objects. Nearly nothing here is in one, and importing alone makes tens of
# thousands: looking so often is a tenth of the start.
_OBJECTS_BETWEEN_COLLECTIONS = 25_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        status = _run(build_parser().parse_args(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more at its end; that must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return status


def _run(arguments: "Namespace") -> int:
    from importlib import import_module

    from acp_history_bridge.cli.context import opened, start_logging
    from acp_history_bridge.errors import BridgeError, ConfigurationError

    log_file = start_logging(arguments)
    try:
        command = import_module(f"acp_history_bridge.cli.{COMMANDS[arguments.command]}")
        with opened(arguments) as context:
            status: int = command.run(arguments, context)
            return status
    except ConfigurationError as error:
        return _complain(str(error), EXIT_USAGE)
    except BridgeError as error:
        return _complain(str(error), EXIT_FAILED)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last boundary: whatever it is, a person gets one line
        return _unexpected(error, log_file)


def _unexpected(error: Exception, log_file: "Path") -> int:
    import logging

    logging.getLogger(__name__).error("unexpected error", exc_info=error)
    return _complain(f"unexpected {type(error).__name__}: {error} (more in {log_file})", EXIT_UNEXPECTED)


def _complain(text: str, status: int) -> int:
    from acp_history_bridge.text import one_line

    print(f"bridge: {one_line(text, 1000)}", file=sys.stderr)
    return status
