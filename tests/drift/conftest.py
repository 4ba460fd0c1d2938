"""The real CLIs, installed once for all tests: into `REAL_CLIS`, where they stay, or into a directory of this run.

Each goes into a directory of its own. One that is there already is not installed again; remove it to get a newer one.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drift.clis import Cli

Install = Callable[[Cli], Path]

_REAL_CLIS = os.environ.get("REAL_CLIS", "")
_INSTALL_TIMEOUT = 600


@pytest.fixture(scope="session")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """A function that gives the path of a CLI's program."""
    root = Path(_REAL_CLIS) if _REAL_CLIS else tmp_path_factory.mktemp("clis")

    def installed(cli: Cli) -> Path:
        place = root / cli.tool
        program = place / "node_modules" / ".bin" / cli.program
        if not program.exists():
            place.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), cli.package]
            subprocess.run(command, check=True, timeout=_INSTALL_TIMEOUT, capture_output=True)
        return program

    return installed
