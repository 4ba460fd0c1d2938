"""Touching other tools' files safely: only regular files, no link in the last part, nothing blocks, nothing is written.

A FIFO or device that is named like a transcript must not hang a scan, and a link must not lead out of a store.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from acp_history_bridge.adapter import Fingerprint, Problem
from acp_history_bridge.errors import TranscriptError

__all__ = ["fingerprint_of", "list_directory", "open_regular", "path_of", "read_small", "stat_regular"]

# Windows has neither flag.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def open_regular(path: Path) -> Generator[int]:
    """Open a regular file for reading and yield its descriptor.

    Raises:
        TranscriptError: It is gone, a link, not a regular file, or not permitted.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise TranscriptError(f"cannot open {path.name}: {_reason(error)}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise TranscriptError(f"cannot open {path.name}: not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def read_small(path: Path, limit: int) -> bytes | None:
    """Read a side file of at most `limit` bytes; None when it is missing, larger, or not a regular file."""
    try:
        with open_regular(path) as descriptor:
            data = b""
            while len(data) <= limit and (chunk := os.read(descriptor, limit + 1 - len(data))):
                data += chunk
    except (TranscriptError, OSError):
        return None
    return data if len(data) <= limit else None


def list_directory(path: Path, problems: list[Problem]) -> list[os.DirEntry[str]] | None:
    """List a directory, sorted by name. A missing one is empty; one that cannot be read is None and a problem."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(Problem(path, "unreadable", error.strerror or type(error).__name__))
        return None


@lru_cache(maxsize=8192)
def path_of(name: str) -> Path:
    """Make a path of what a directory entry calls itself. Stores are listed again and again, and paths are slow."""
    return Path(name)


def stat_regular(path: Path | os.DirEntry[str]) -> os.stat_result | None:
    """Stat without following a link; None unless it is a regular file right now."""
    try:
        result = path.stat(follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return result if stat.S_ISREG(result.st_mode) else None


def fingerprint_of(result: os.stat_result, *companions: os.stat_result | None) -> Fingerprint:
    """Make a fingerprint; companions that exist (a side file, a `-wal`) take part in `beside`."""
    beside = 0
    for companion in companions:
        if companion is not None:
            beside = hash((beside, companion.st_size, companion.st_mtime_ns, companion.st_ino)) & 0x7FFF_FFFF_FFFF_FFFF
    return Fingerprint(result.st_size, result.st_mtime_ns, result.st_ino, beside)
