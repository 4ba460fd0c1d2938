"""The program as a person or a script runs it: a process with a bare environment and a made-up home."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_history_bridge.cli import main
from acp_history_bridge.sample import lay_out


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str


class Bridge:
    """Runs the program on one home directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            # Beside the home directory, so that "nothing in it has changed" can be tested.
            "XDG_STATE_HOME": str(home.with_name("state")),
            "XDG_CACHE_HOME": str(home.with_name("cache")),
            "XDG_DATA_HOME": str(home.with_name("data")),
        }

    def __call__(self, *arguments: str, cwd: Path | None = None, **variables: str) -> Result:
        """Run a command with both outputs in pipes."""
        result = subprocess.run(
            self.argv(*arguments),
            env=self.variables | variables,
            cwd=cwd or self.home,
            capture_output=True,
            timeout=25,
            check=False,
        )
        return Result(result.returncode, result.stdout.decode("utf-8"), result.stderr.decode("utf-8"))

    def argv(self, *arguments: str) -> list[str]:
        """The program's argument vector."""
        return [sys.executable, "-m", "acp_history_bridge", *arguments]

    def on_terminal(self, *arguments: str, columns: int = 100, **variables: str) -> Result:
        """Run a command on a terminal of the given width; both outputs are the terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self.argv(*arguments),
            env={**self.variables, "TERM": "xterm-256color", "COLUMNS": str(columns), **variables},
            cwd=self.home,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = _drain(ours)
        os.close(ours)
        return Result(process.wait(timeout=25), shown.decode("utf-8").replace("\r\n", "\n"), "")


def _drain(descriptor: int) -> bytes:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux says "input/output error" when the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


MakeBridge = Callable[[Path], Bridge]


@pytest.fixture
def bridge(tmp_path: Path) -> Bridge:
    """The program on an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    return Bridge(home)


class Inside:
    """Runs the program in this process, on the sample as if it were real: a tenth of what a process costs."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        """Run a command with standard output captured."""
        self._capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as error:  # argparse
            status = error.code if isinstance(error.code, int) else 1
        shown = self._capsys.readouterr()
        return Result(status, shown.out, shown.err)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """The program in this process, with the sample history in the home directory."""
    home = tmp_path / "home"
    lay_out(home)
    monkeypatch.setenv("HOME", str(home))
    for name in ("STATE", "CACHE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return Inside(home, capsys)
