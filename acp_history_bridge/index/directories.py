"""Comparing working directories, and finding the one a tool stored only a digest of.

Two directories are the same when they are after removing trailing slashes and dot parts and resolving links, as far
as they exist. Case counts. A `cwd` comes out of a transcript, so it is data: only links are resolved, nothing is
opened, and network paths are not touched at all.

Digests are looked up among all directories that any record of any tool names and their parents. What was once known
stays known: tools delete old sessions, and the directory of another tool's session must not get lost with them.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from acp_history_bridge.adapter import SessionRecord

__all__ = ["Directories", "digest_in", "digests_of", "usable"]

_DIGEST = re.compile("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}")
_PATH_LIMIT = 4096  # PATH_MAX
_PARENT_LIMIT = 64
_CACHE_LIMIT = 10_000


def usable(path: str | None) -> str | None:
    """The path if it can be a working directory at all: absolute, not too long, no NUL."""
    if not path or len(path) > _PATH_LIMIT or "\x00" in path:
        return None
    return path if path.startswith("/") or PureWindowsPath(path).is_absolute() else None


def digests_of(path: str) -> tuple[str, str]:
    """What a tool may have stored instead of this path."""
    data = path.encode("utf-8", errors="surrogatepass")
    return f"sha256:{hashlib.sha256(data).hexdigest()}", f"md5:{hashlib.md5(data, usedforsecurity=False).hexdigest()}"


def digest_in(record: SessionRecord) -> str | None:
    """What stands in for a working directory that the record does not name."""
    digest = (record.cwd_digest or "").lower()
    return digest if usable(record.cwd) is None and _DIGEST.fullmatch(digest) else None


def _with_parents(path: str) -> tuple[str, ...]:
    """The path without its trailing slash and what lies above it, nearest first."""
    pure: PurePath = PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)
    return (str(pure), *(str(parent) for parent in list(pure.parents)[:_PARENT_LIMIT]))


class Directories:
    """Normalises directories; remembers what the disk said of each."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._families: dict[str, tuple[tuple[str, ...], ...]] = {}

    def key(self, path: str) -> bytes:
        """What is equal for two names of one directory."""
        known = self._keys.get(path)
        if known is None:
            if len(self._keys) >= _CACHE_LIMIT:
                self._keys.clear()
            known = self._keys[path] = _resolved(path).encode("utf-8", errors="surrogatepass")
        return known

    def families(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        """These directories, also as they are with links resolved, each followed by its parents, nearest first."""
        return [family for name in names if usable(name) for family in self._families_of(name)]

    def _families_of(self, name: str) -> tuple[tuple[str, ...], ...]:
        known = self._families.get(name)
        if known is None:
            if len(self._families) >= _CACHE_LIMIT:
                self._families.clear()
            resolved = self.key(name).decode("utf-8", errors="surrogatepass")
            known = self._families[name] = tuple(dict.fromkeys((_with_parents(name), _with_parents(resolved))))
        return known


def _resolved(path: str) -> str:
    plain = os.path.normpath(path)
    if plain.startswith(("//", "\\\\")) or not Path(plain).is_absolute():  # a share, or another system's path
        return plain
    try:
        return os.path.realpath(plain)
    except (OSError, ValueError):  # ValueError: surrogates that no file name can hold
        return plain
