"""The real agent over a made-up home, as an editor starts it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.peers.bridge import BridgeProcess, running

__all__ = ["ACP", "agent", "environment", "list_all", "peak_memory", "run", "texts_of", "traced"]

ACP = (sys.executable, "-m", "acp_history_bridge", "acp")


def environment(home: Path, **more: str) -> dict[str, str]:
    """What an editor with a poor environment passes on."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), **more}


@contextmanager
def agent(home: Path, *before: str, **more: str) -> Generator[BridgeProcess]:
    """An agent that has answered `initialize`; `before` is put before its command."""
    with running((*before, *ACP), environment(home, **more)) as bridge:
        bridge.initialize()
        yield bridge


def run(home: Path, *arguments: str, before: tuple[str, ...] = (), **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the terminal tool to its end."""
    return subprocess.run(
        [*before, sys.executable, "-m", "acp_history_bridge", *arguments],
        env=environment(home, **more),
        capture_output=True,
        encoding="utf-8",
        timeout=25,
        check=False,
    )


def list_all(bridge: BridgeProcess) -> list[str]:
    """The ids of all sessions, page by page."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = bridge.request("session/list", cursor)
        found += [session["sessionId"] for session in page["sessions"]]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def texts_of(bridge: BridgeProcess, session_id: str) -> list[str]:
    """What was said in the updates of a session so far."""
    kinds = ("user_message_chunk", "agent_message_chunk")
    return [update["content"]["text"] for kind in kinds for update in bridge.updates(session_id, kind)]


def peak_memory(bridge: BridgeProcess) -> int:
    """The most memory that the process ever used, in MiB."""
    status = Path(f"/proc/{bridge.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) // 1024


def traced(*options: str) -> tuple[str, ...]:
    """The words that run a command under strace; where nobody may trace, the test is not run."""
    probe = ["strace", "-qq", "-o", os.devnull, "true"]
    if shutil.which("strace") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("strace is not installed, or may not trace")
    return ("strace", "-f", "-qq", *options)
