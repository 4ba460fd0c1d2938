"""The session family over recorded homes, in the real program: decisions last, and files of tools stay as they are."""

import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import CopyCorpus, copy_home, digest_tree
from tests.peers.bridge import BridgeProcess, running

pytestmark = pytest.mark.process

COMMAND = (sys.executable, "-m", "acp_history_bridge", "acp")


def variables(home: Path, **settings: str) -> Mapping[str, str]:
    """A bare environment whose own directories lie beside the home directory."""
    ours = {f"XDG_{name}_HOME": str(home.with_name(name.lower())) for name in ("CACHE", "DATA", "STATE", "CONFIG")}
    return {"HOME": str(home), **ours, **{f"ACP_HISTORY_BRIDGE_{name}": text for name, text in settings.items()}}


@contextmanager
def agent(home: Path, **settings: str) -> Generator[BridgeProcess]:
    """The program after `initialize`; at the end it has to leave by itself."""
    with running(COMMAND, variables(home, **settings)) as bridge:
        bridge.initialize()
        yield bridge
        bridge.close_input()
        assert bridge.wait() == (0, b"")


def ids(bridge: BridgeProcess, **params: object) -> list[str]:
    """What a list shows."""
    return [row["sessionId"] for row in bridge.request("session/list", params)["sessions"]]


def test_decisions_outlive_the_process_and_the_index(copy_corpus: CopyCorpus) -> None:
    """Hidden, archived and renamed stay so; searches agree with lists; no transcript has changed."""
    home = copy_corpus("claude-code")
    with agent(home, UNSTABLE="true") as bridge:
        hidden, archived, renamed, *others = ids(bridge)
        bridge.request("session/delete", {"sessionId": hidden})
        bridge.request("session/archive", {"sessionId": archived})
        bridge.request("session/set_title", {"sessionId": renamed, "title": "Zebra crossing"})
    shutil.rmtree(home.with_name("cache"))
    with agent(home, UNSTABLE="true") as bridge:
        assert ids(bridge) == [renamed, *others]
        assert archived in ids(bridge, archived="only")
        assert ids(bridge, search="zebra") == [renamed]
        assert hidden not in ids(bridge, search="*", limit=1000)
        assert bridge.load(hidden)["_meta"]["acp-history-bridge"]["hidden"] is True
        assert bridge.updates(hidden, "user_message_chunk")


def test_get_and_load_tell_the_same(copy_corpus: CopyCorpus) -> None:
    """The text of the user and the agent is the same in both, for every recorded session of a tool."""
    with agent(copy_corpus("gemini-cli")) as bridge:
        for session_id in ids(bridge):
            bridge.load(session_id)
            kinds = ("user_message_chunk", "agent_message_chunk")
            told = [chunk["content"].get("text", "") for kind in kinds for chunk in bridge.updates(session_id, kind)]
            bridge.request("session/close", {"sessionId": session_id})
            said: list[str] = []
            offset: int | None = 0
            while offset is not None:
                answer = bridge.request("session/get", {"sessionId": session_id, "offset": offset, "limit": 7})
                blocks = [block for turn in answer["turns"] for block in turn["content"]]
                said += [block.get("text", "") for block in blocks if block.get("_meta", {}) == {}]
                offset = answer.get("nextOffset")
            assert sorted([*said, *(text for text in told if text.startswith("Conversation compacted."))]) == sorted(
                told
            )


@pytest.mark.parametrize("tool", ["claude-code", "gemini-cli", "codex", "qwen-code"])
def test_a_fork_is_listed_loaded_and_the_original_untouched(tmp_path: Path, tool: str) -> None:
    """One file is new, all others are as they were; over a restart without an index it is still there."""
    home = copy_home(tool, tmp_path / "home")
    before = digest_tree(home)
    with agent(home) as bridge:
        original = ids(bridge)[0]
        forked = bridge.request("session/fork", {"sessionId": original, "cwd": "/"})["sessionId"]
        assert forked in ids(bridge)
    shutil.rmtree(home.with_name("cache"))
    with agent(home) as bridge:
        rows = bridge.request("session/list")["sessions"]
        [row] = [row for row in rows if row["sessionId"] == forked]
        assert row["title"].endswith("(fork)")
        assert row["_meta"]["acp-history-bridge"]["parent"] == original
        bridge.load(forked)
        assert bridge.updates(forked, "user_message_chunk")
    after = digest_tree(home)
    assert {name: after.get(name) for name in before} == before
    assert len(after) == len(before) + 1
