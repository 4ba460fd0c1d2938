"""Writing files whole or not at all.

Policy: a file is written beside its place under a name of its own and moved there when it is complete, so an
interruption or a full disk leaves what was there before.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from acp_history_bridge.errors import BridgeError
from acp_history_bridge.text import replace_surrogates

__all__ = ["write_whole"]


def write_whole(path: Path, pieces: Iterable[str], mode: int = 0o600) -> None:
    """Write a text file as UTF-8; what it may be read by is `mode`, for conversations hold secrets.

    Raises:
        BridgeError: It cannot be written; nothing has changed.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:50]}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise BridgeError(f"cannot write {path}: {error.strerror}") from error
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            for piece in pieces:
                file.write(replace_surrogates(piece))
        partial.chmod(mode)
        partial.replace(path)
    except OSError as error:
        raise BridgeError(f"cannot write {path}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
