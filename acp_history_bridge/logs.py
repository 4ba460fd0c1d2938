"""Logging: to a file in the state directory, never to stdout, to stderr only when asked.

Policy: nothing is created before the first record, a file is 0600 in a 0700 directory whatever the umask, and a log
that cannot be written costs nothing but the log. Several bridges append to one file; one that rotates it takes the
name away from the others, which notice and open the new one. Conversations are never logged.
"""

import logging
import logging.handlers
import os
import sys
from io import TextIOWrapper
from pathlib import Path

__all__ = ["LOG_NAME", "configure"]

LOG_NAME = "bridge.log"

_MAX_BYTES = 1024 * 1024
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def configure(directory: Path, level: str, *, stderr: bool = False) -> Path:
    """Send all records of `level` and above to the log file, or to stderr instead.

    Returns:
        The log file; it may not exist yet.
    """
    file = directory / LOG_NAME
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    handler = logging.StreamHandler(sys.stderr) if stderr else _PrivateFileHandler(file)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(level.upper())
    return file


class _PrivateFileHandler(logging.handlers.RotatingFileHandler):
    """A rotating file that nobody else may read, and that gives up silently."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=_MAX_BYTES, backupCount=2, encoding="utf-8", errors="replace", delay=True)

    def _open(self) -> TextIOWrapper:
        directory = Path(self.baseFilename).parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - the base class names it
        """Say whether the file is full; opens it again first when another bridge has renamed it."""
        if self.stream is not None and not self._is_current():
            self.stream.close()
            self.stream = self._open()
        return bool(super().shouldRollover(record))

    def _is_current(self) -> bool:
        assert self.stream is not None
        try:
            return os.path.samestat(os.fstat(self.stream.fileno()), Path(self.baseFilename).stat())
        except OSError:
            return False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it
        """Drop the record: a full disk or a read-only home must neither stop the agent nor reach stderr."""
