"""Writing a fork: the one place where a new file comes to lie in another tool's store, and only when somebody asks.

Policy:

- The adapter says what the file holds; it is written under a temporary name beside its place, synced, and only then
  given its name. So the tool never sees half a session, and whatever fails leaves nothing behind.
- Nothing is ever overwritten, and nothing is written outside the store, whatever links lie in it.
- The file is the user's alone (0600): a transcript holds what was said, and often secrets.
- The original is only read; memory does not grow with its size.
"""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import orjson

from acp_history_bridge.adapter import Adapter, Fork, SessionRecord, Store
from acp_history_bridge.decisions import Decisions
from acp_history_bridge.errors import BridgeError, ForkError
from acp_history_bridge.sessions import Change, Session, plain_id
from acp_history_bridge.text import TITLE_LIMIT, one_line

__all__ = ["ForkIndex", "encode_line", "fork_title", "take_in", "write_fork"]

_SUFFIX = " (fork)"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def fork_title(record: SessionRecord) -> str:
    """What a fork is called, as Claude Code calls it."""
    return (one_line(record.title or "", TITLE_LIMIT - len(_SUFFIX)) or "Forked session") + _SUFFIX


def encode_line(record: Mapping[str, object]) -> bytes:
    """Make a line of JSON Lines; whatever `jsonl.decode` gave can be written again."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # lone surrogates, integers beyond 64 bit
        return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


class ForkIndex(Protocol):
    """What is asked of the index; implemented by `acp_history_bridge.index.library.Library`."""

    @property
    def decisions(self) -> Decisions: ...  # noqa: D102 - documented where it is implemented, as all below

    def refresh(self, paths: Iterable[Path]) -> tuple[Change, ...]: ...  # noqa: D102
    def find(self, session_id: str) -> Session | None: ...  # noqa: D102
    def decided(self) -> tuple[Change, ...]: ...  # noqa: D102


def write_fork(adapter: Adapter, session: Session) -> Fork:
    """Write a fork of a session, and say where it lies.

    Raises:
        BridgeError: It cannot be forked, or not written; says why. Nothing is left behind then.
    """
    try:
        fork = adapter.fork(session.unit, _as_shown(session))
        _write(session.unit.store, fork)
    except BridgeError:
        raise
    except OSError as error:
        raise ForkError(f"the fork could not be written: {error.strerror or type(error).__name__}") from error
    except (Exception, SystemExit) as error:  # third-party code can fail in any way
        raise ForkError(f"the adapter {adapter.name} failed: {type(error).__name__}: {error}") from error
    return fork


def take_in(index: ForkIndex, adapter: Adapter, original: Session, fork: Fork) -> tuple[Session, tuple[Change, ...]]:
    """Find a fork that was just written, and what that changed in the index.

    Where the format has no place for a title in the file, the bridge itself keeps the one that says it is a fork.

    Raises:
        ForkError: The adapter does not find a session in what it said a fork should hold.
    """
    changes = index.refresh([fork.path])
    session_id = plain_id(adapter.prefix, fork.native_id)
    session = index.find(session_id)
    if session is None:
        raise ForkError(f"the fork was written to {fork.path.name}, but no session is found in it")
    if not (session.title or "").endswith(_SUFFIX):
        index.decisions.set_title(session_id, fork_title(_as_shown(original)))
        changes += index.decided()
        session = index.find(session_id) or session
    return session, changes


def _as_shown(session: Session) -> SessionRecord:
    """The record, with the title that lists show."""
    return replace(session.record, title=session.title)


def _write(store: Store, fork: Fork) -> None:
    directory = _directory_inside(store.root, fork.path)
    target = directory / fork.path.name
    if os.path.lexists(target):
        raise ForkError(f"there is a file named {target.name} already")
    temporary = directory / f".{target.name}.{secrets.token_hex(4)}.tmp"
    try:
        _write_new(temporary, fork.content)
        _give_name(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    _sync_directory(directory)


def _directory_inside(root: Path, path: Path) -> Path:
    """The real directory a file will lie in, made if need be; it must be below the real root."""
    inside = Path(os.path.realpath(root))
    directory = Path(os.path.realpath(path.parent))
    if ".." in path.parts or path.name in {"", "."} or not directory.is_relative_to(inside):
        raise ForkError("the fork would lie outside of its tool's histories")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _write_new(path: Path, content: Iterable[bytes]) -> None:
    descriptor = os.open(path, _CREATE, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for piece in content:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _give_name(temporary: Path, target: Path) -> None:
    try:
        target.hardlink_to(temporary)  # unlike a rename it never replaces a file
    except FileExistsError as error:
        raise ForkError(f"there is a file named {target.name} already") from error
    except OSError:  # a file system without links; the name holds a fresh id, so nobody else is after it
        temporary.rename(target)


def _sync_directory(directory: Path) -> None:
    with suppress(OSError):  # Windows opens no directories, some network drives do not sync them
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
