import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCENARIO = Path(__file__).with_name("scenario.py")
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that another user can reach; pytest's own are private."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def run(scenario: str, directory: Path, *before: str) -> None:
    """Run a scenario as a program; it must end well and say nothing on stderr but the notices it logs."""
    command = [*before, sys.executable, "-W", "error", str(SCENARIO), scenario, str(directory)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=25, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.process
@pytest.mark.parametrize("scenario", ["unreadable_directories", "unreadable_root"])
@pytest.mark.fault("W4")
def test_what_becomes_readable_is_watched(scenario: str, shared: Path) -> None:
    """Permission that comes later is noticed by the check, below a root and for the root itself."""
    run(scenario, shared)


@pytest.mark.process
@pytest.mark.parametrize("scenario", ["watch_limit_below_the_root", "watch_limit_at_the_root", "instance_limit"])
@pytest.mark.fault("W3")
def test_what_the_kernel_cannot_watch_is_polled(scenario: str, tmp_path: Path) -> None:
    """With too few watches or no instance, every change is still reported."""
    in_namespace = ("unshare", "--user", "--map-root-user")
    if shutil.which("unshare") is None or subprocess.run([*in_namespace, "true"], check=False).returncode:
        pytest.skip("this system lets nobody make a user namespace, so the limit cannot be set")
    run(scenario, tmp_path, *in_namespace)
