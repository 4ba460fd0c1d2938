"""A small bundled history, so that a machine without one can try everything: `--demo`.

The transcripts lie under `home/` as package data. They are laid out in a temporary directory, each file with the
modification time its last record implies, because installers keep no times.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from acp_history_bridge.adapter import Environment
from acp_history_bridge.timestamps import parse_time

__all__ = ["lay_out", "sample_environment"]

_HOME = Path(__file__).parent / "home"
_TIMESTAMP = re.compile(r'"(?:timestamp|lastUpdated)":\s?"([^"]+)"')


def lay_out(home: Path) -> None:
    """Copy the sample transcripts below `home`, which need not exist."""
    shutil.copytree(_HOME, home, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for path in home.rglob("*.json*"):
        times = [parse_time(text) for text in _TIMESTAMP.findall(path.read_text(encoding="utf-8"))]
        if known := [time.timestamp() for time in times if time is not None]:
            os.utime(path, (max(known), max(known)))


@contextmanager
def sample_environment() -> Generator[Environment]:
    """An environment whose home holds nothing but the sample; it is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="acp-history-bridge-") as directory:
        lay_out(Path(directory))
        yield Environment(home=Path(directory))
