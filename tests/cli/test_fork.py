"""`bridge fork`."""

from pathlib import Path

import pytest

from tests.cli.conftest import Bridge
from tests.conftest import copy_home, digest_tree

pytestmark = pytest.mark.process


def test_a_fork_is_named_with_the_command_that_goes_on_with_it(tmp_path: Path) -> None:
    """One new file in the tool's store; whatever was there is as it was, and the fork is a session like others."""
    home = copy_home("claude-code", tmp_path / "home")
    before = digest_tree(home / ".claude")
    bridge = Bridge(home)
    result = bridge("fork", "last")
    assert (result.status, result.err) == (0, "")
    forked, resume = result.out.splitlines()
    label, session_id, title = forked.split(maxsplit=2)
    assert (label, title.endswith(" (fork)")) == ("Forked:", True)
    assert session_id.removeprefix("claude:") in resume
    after = digest_tree(home / ".claude")
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1
    assert bridge("show", session_id).status == 0


def test_what_cannot_be_forked_is_one_line_and_a_failure(tmp_path: Path) -> None:
    """Such as a session of a format that the tool itself has given up; nothing is written."""
    home = copy_home("codex", tmp_path / "home")
    before = digest_tree(home)
    result = Bridge(home)("fork", "codex:a3e37891")
    assert (result.status, result.out) == (1, "")
    assert result.err == "bridge: this session is older than the format that Codex CLI can go on with\n"
    assert (
        digest_tree(home / ".codex").items()
        == {
            name.removeprefix(".codex/"): digest for name, digest in before.items() if name.startswith(".codex/")
        }.items()
    )
