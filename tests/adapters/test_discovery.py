"""Discovery of all tools that keep files: by `scandir` and `stat` alone, on a made-up disk."""

from pathlib import Path

import pytest
from pyfakefs.fake_filesystem import set_uid

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_adapters.codex import Codex
from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Adapter, Discovery
from tests.conftest import environment_at

HOME = Path("/home/ada")
ID = "7e62aa0a-1df9-4d78-9c65-39382b0537e6"
PLACES: list[tuple[Adapter, str]] = [
    (ClaudeCode(), f".claude/projects/-home-ada-src-shop/{ID}.jsonl"),
    (GeminiCli(), ".gemini/tmp/shop/chats/session-2026-11-02T09-00-7e62aa0a.jsonl"),
    (Codex(), f".codex/sessions/2026/11/20/rollout-2026-11-20T10-08-31-{ID}.jsonl"),
    (QwenCode(), f".qwen/projects/-home-ada-src-shop/chats/{ID}.jsonl"),
]
pytestmark = pytest.mark.usefixtures("fs")
each_tool = pytest.mark.parametrize(("adapter", "place"), PLACES, ids=lambda value: getattr(value, "name", ""))


def _place(name: str) -> Path:
    """A path on the made-up disk, in a directory that exists."""
    path = Path(str(HOME), name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _discovered(adapter: Adapter) -> list[Discovery]:
    return [adapter.discover(store) for store in adapter.stores(environment_at(HOME))]


def _paths(adapter: Adapter) -> list[str]:
    return [str(unit.path) for discovery in _discovered(adapter) for unit in discovery.units]


@each_tool
def test_a_transcript_is_found_though_nobody_may_read_it(adapter: Adapter, place: str) -> None:
    """Discovery opens no transcript, so a file without any permission is listed like every other."""
    _place(place).write_text("{}\n", encoding="utf-8")
    _place(place).chmod(0)
    set_uid(1000)

    assert _paths(adapter) == [str(HOME / place)]


@each_tool
def test_a_link_with_the_name_of_a_transcript_is_none(adapter: Adapter, place: str) -> None:
    """It could lead anywhere."""
    secret = _place("secret")
    secret.write_text("{}\n", encoding="utf-8")
    _place(place).symlink_to(secret)

    assert _paths(adapter) == []


@each_tool
def test_a_machine_without_the_tool_has_nothing_to_find(adapter: Adapter, place: str) -> None:
    """A missing store is empty and complete."""
    assert place
    assert _paths(adapter) == []
    assert all(discovery.complete for discovery in _discovered(adapter))
