"""What every test gets: a made-up home, no network, and corpora with their recorded file times."""

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest

from acp_history_bridge.adapter import Environment

# The time an example takes says nothing on a machine that does other things, too.
hypothesis.settings.register_profile("bridge", deadline=None)
hypothesis.settings.load_profile("bridge")

DATA = Path(__file__).parent / "data"

CopyCorpus = Callable[[str], Path]


@pytest.fixture
def anyio_backend() -> str:
    """The agent runs on asyncio only: its transport hands over with `call_soon_threadsafe`."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the real home, or a directory an environment variable names."""
    for name in list(os.environ):
        if name.startswith(("XDG_", "CLAUDE_", "GEMINI_", "CODEX_", "QWEN_", "OPENCODE_", "ACP_HISTORY_BRIDGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product uses no network at all; a test that reaches for it fails."""

    def refuse(_self: socket.socket, address: object) -> NoReturn:
        pytest.fail(f"a test tried to connect to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def copy_home(tool: str, target: Path) -> Path:
    """Copy a corpus' home and give every file the modification time that git lost."""
    shutil.copytree(DATA / tool / "home", target, dirs_exist_ok=True)
    for name, milliseconds in json.loads((DATA / tool / "mtimes.json").read_text(encoding="utf-8")).items():
        if (path := target / name).exists():
            os.utime(path, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))
    return target


def digest_tree(root: Path) -> dict[str, str]:
    """Bytes and modification time of every file below `root`, for "was anything touched?"."""
    return {
        str(path.relative_to(root)): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture
def copy_corpus(tmp_path: Path) -> Iterator[CopyCorpus]:
    """A function that lays out a tool's corpus as a home directory; afterwards no byte of it may have changed."""
    homes: list[tuple[Path, dict[str, str]]] = []

    def copy(tool: str) -> Path:
        home = copy_home(tool, tmp_path / f"home-{tool}")
        homes.append((home, digest_tree(home)))
        return home

    yield copy
    for home, before in homes:
        assert before == digest_tree(home)


@pytest.fixture(scope="session", autouse=True)
def _data_stays_as_it_is() -> Generator[None]:
    """The suite never writes below `tests/data`."""
    before = digest_tree(DATA)
    yield
    assert before == digest_tree(DATA)


def environment_at(home: Path, **variables: str) -> Environment:
    """An environment whose home directory is `home`."""
    return Environment(home=home, variables=variables)
