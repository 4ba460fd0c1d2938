"""A lock between processes that ends with its holder, however that ends.

The lock is on a file of its own: closing any descriptor of the database itself would drop SQLite's own locks. Windows
has no `flock`: nobody gets the lock there, and every bridge keeps its index in memory.
"""

import os
import sys
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """A lock that is held; made by `take`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> "FileLock | None":
        """Take the lock; None when somebody else holds it.

        Raises:
            OSError: The file cannot be made, or its filesystem knows no locks.
        """
        if sys.platform == "win32":
            return None
        import fcntl

        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Give the lock up. Idempotent; the file stays, because removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
