"""Where home is, in the poor environments that editors give."""

import os
import pwd
from pathlib import Path

import pytest

from acp_history_bridge.environment import current_environment


@pytest.mark.parametrize("variables", [{}, {"HOME": ""}, {"HOME": "relative/home"}, {"PATH": "/bin"}])
@pytest.mark.fault("F12")
def test_without_a_usable_home_variable_the_password_database_is_asked(variables: dict[str, str]) -> None:
    """The Neovim plugin avante passes only PATH."""
    assert current_environment(variables).home == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_the_home_variable_wins() -> None:
    """Somebody who sets HOME means it."""
    assert current_environment({"HOME": "/home/ada"}).home == Path("/home/ada")


@pytest.mark.fault("F12")
def test_a_user_without_an_entry_has_the_root_as_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run under user ids that nobody registered."""
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)

    assert current_environment({}).home == Path("/")


def test_the_variables_are_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the process environment does not change what was handed out."""
    monkeypatch.setenv("SOME_TOOL_HOME", "/a")
    environment = current_environment()
    monkeypatch.setenv("SOME_TOOL_HOME", "/b")

    assert environment.variables["SOME_TOOL_HOME"] == "/a"
