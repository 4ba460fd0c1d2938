"""Several bridges on one home: they list the same, and none depends on another."""

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from acp_history_bridge.sample import lay_out
from tests.peers.bridge import BridgeProcess, Message, running

pytestmark = pytest.mark.process_slow

AGENT = (sys.executable, "-m", "acp_history_bridge", "acp")


def _rows(bridge: BridgeProcess) -> list[Message]:
    bridge.initialize()
    return cast("list[Message]", bridge.request("session/list", {})["sessions"])


@pytest.mark.fault("C1")
@pytest.mark.parametrize("number", [2, 8])
def test_bridges_on_one_home_list_the_same_and_outlive_the_one_that_writes(tmp_path: Path, number: int) -> None:
    """Started cold at once; after the first was killed, every other still hears of a new session."""
    home = tmp_path / "home"
    lay_out(home)
    variables = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    with ExitStack() as stack:
        bridges = [stack.enter_context(running(AGENT, variables)) for _ in range(number)]
        lists = [_rows(bridge) for bridge in bridges]
        assert len(lists[0]) == 5
        assert all(rows == lists[0] for rows in lists)

        bridges[0].process.kill()
        bridges[0].process.wait()
        source = next(home.glob(".claude/projects/*/7e62aa0a*.jsonl"))
        shutil.copy(source, source.with_name(source.name.replace("7e62aa0a", "7e62aa0b")))

        for bridge in bridges[1:]:
            update = bridge.next()
            assert str(update["params"]).count("7e62aa0b") == 1


@pytest.mark.fault("C1")
def test_a_killed_bridge_leaves_an_index_that_the_next_one_starts_from(tmp_path: Path) -> None:
    """The lock goes with its holder, and what it had found is there."""
    home = tmp_path / "home"
    lay_out(home)
    variables = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    with running(AGENT, variables) as first:
        rows = _rows(first)
        first.process.kill()
        first.process.wait()
    with running(AGENT, variables) as second:
        assert _rows(second) == rows
