"""Moving a session's own files to the desktop's trash, when the user has set that deleting means this.

Policy:

- The adapter names the files and directories that belong to this session alone. Each must lie below the store, under
  its real name; links are neither followed nor moved.
- A session that its tool has open is refused: the tool would go on writing to a file that nobody finds again.
- The transcript goes first: when that fails nothing has changed.
- Nothing is ever deleted. Where there is no trash, that is an error.
"""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from acp_history_bridge.adapter import Adapter, Store
from acp_history_bridge.errors import BridgeError, TrashError
from acp_history_bridge.sessions import Session

__all__ = ["move_to_trash"]


def move_to_trash(adapter: Adapter, session: Session) -> tuple[Path, ...]:
    """Move all that belongs to this session alone to the trash, and say what that was.

    Raises:
        BridgeError: It cannot be moved; says why.
    """
    try:
        paths = _files_of(adapter, session)
    except BridgeError:
        raise
    except (Exception, SystemExit) as error:  # third-party code can fail in any way
        raise TrashError(f"the adapter {adapter.name} failed: {type(error).__name__}: {error}") from error
    for path in paths:
        _send(path)
    return paths


def _files_of(adapter: Adapter, session: Session) -> tuple[Path, ...]:
    store = session.unit.store
    if session.record.native_id in adapter.active_sessions(store):
        raise TrashError(f"{adapter.title} has this session open; close it there")
    named = adapter.files(session.unit, session.record)
    paths = tuple(dict.fromkeys((session.unit.path, *named)))
    if session.unit.path not in named or not all(_lies_in(store, path) for path in paths):
        raise TrashError(f"the adapter {adapter.name} named files that are not this session's")
    return paths


def _lies_in(store: Store, path: Path) -> bool:
    root = Path(os.path.realpath(store.root))
    real = Path(os.path.realpath(path))
    expected = root / path.relative_to(store.root) if path.is_relative_to(store.root) else None
    return real != root and real == expected and real.exists()


def _send(path: Path) -> None:
    # The package carries no types. It is loaded by those alone who delete that way.
    send: Callable[[str], None] = import_module("send2trash").send2trash
    try:
        send(os.fspath(path))
    except OSError as error:
        raise TrashError(f"{path.name} cannot be moved to the trash: {error.strerror or error}") from error
    except Exception as error:  # the desktop's library has exceptions of its own
        raise TrashError(f"{path.name} cannot be moved to the trash: {error}") from error
